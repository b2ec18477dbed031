"""The same product on several devices, each with its share of the memory: eight of the CPU, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

COUNTS = (2, 3, 4, 8)
EPS = float(np.finfo(np.float32).eps)


@pytest.fixture(scope="module")
def measured():
    flags = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"  # compiles faster
    program = Path(__file__).with_name("sharded.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kept", ["all", "none"])
@pytest.mark.parametrize("k", [1, *COUNTS])
def test_the_product_is_that_of_the_dense_matrix(measured, kept, k):
    """To the rounding of a sum of 240 terms."""
    one = measured[f"{kept} {k}"]
    assert one["devices"] == k
    assert one["everything"] == (kept == "all")
    assert one["error"] <= 240 * EPS


@pytest.mark.parametrize("kept", ["all", "none"])
@pytest.mark.parametrize("k", COUNTS)
def test_each_device_holds_its_share(measured, kept, k):
    one, alone = measured[f"{kept} {k}"], measured[f"{kept} 1"]
    assert one["told"] == one["held"]
    assert one["held"] <= 1.2 / k * alone["held"]


def test_a_gram_operator_on_three_devices_multiplies_and_solves(measured):
    found = measured["gram"]
    assert found["error"] <= 40 * EPS
    assert (found["method"], found["converged"]) == ("conjugate gradients", True)
    assert found["residual"] <= 1e-6
    np.testing.assert_allclose(found["told"], found["residual"], rtol=1e-3)


@pytest.mark.parametrize("k", [1, *COUNTS])
def test_the_float64_check_of_a_solve_is_shared_out_as_well(measured, k):
    """Eight groups of rows; a tile needs two of them at once."""
    found, alone = measured["checked"][str(k)], measured["checked"]["1"]
    assert found["within"]
    assert found["devices"] == k
    assert found["groups"] <= max(2, -(-8 // k))
    np.testing.assert_allclose(found["floor"], alone["floor"], rtol=1e-12)
