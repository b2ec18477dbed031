"""neural-tangents 0.6.5 in a virtual environment of its own: it needs a JAX of February 2024, and TensorFlow's shadow.

`run(program, *words)` gives the JSON that `program` prints. Without the peer a benchmark fails; it does not skip.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / ".peer"
PINS = (
    "jax==0.4.25",
    "jaxlib==0.4.25",
    "numpy==1.26.4",
    "scipy==1.12.0",
    "ml_dtypes==0.5.4",
    "opt_einsum==3.4.0",
    "frozendict==2.5.1",
)
# The package imports its experimental part, which wants TensorFlow; nothing measured here uses it.
STUB = """
import sys, types
for name in ("neural_tangents.experimental", "neural_tangents.experimental.empirical_tf"):
    sys.modules[name] = types.ModuleType(name)
"""


def python() -> Path:
    """The peer's interpreter; the environment is made on first use."""
    program = FOLDER / "bin" / "python"
    done = FOLDER / "complete"
    if not done.exists():
        print(f"making the peer's environment in {FOLDER} ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
        environment = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
        pip = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PINS], check=True, env=environment)
        subprocess.run([*pip, "--no-deps", "neural-tangents==0.6.5"], check=True, env=environment)
        done.touch()
    return program


def run(program: str, *words: str) -> Any:
    """What `program` prints as JSON, run in the peer's environment with `words` as its arguments."""
    done = subprocess.run([str(python()), "-c", STUB + program, *words], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])
