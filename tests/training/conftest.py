import numpy as np
import pytest

from offtangent.training import HalfSquares


def linear(w, X):
    return X @ w


LEAST_SQUARES = HalfSquares(linear)  # one object for all tests: it is compiled once for each optimiser


@pytest.fixture
def least_squares():
    return LEAST_SQUARES


@pytest.fixture
def regression():
    """Seven inputs in three dimensions, with labels."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((7, 3)).astype(np.float32), rng.standard_normal(7).astype(np.float32)
