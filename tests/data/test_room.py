import subprocess
import sys

from offtangent import data


def test_importing_the_room_loads_neither_jax_nor_sklearn_nor_pyarrow():
    heavy = "{'jax', 'sklearn', 'pyarrow', 'pandas'}"
    code = f"import sys, offtangent.data; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_exists_and_is_documented():
    assert all(getattr(data, name).__doc__ for name in data.__all__)
