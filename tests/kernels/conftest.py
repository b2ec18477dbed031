import jax
import pytest
from hypothesis import settings

settings.register_profile("unhurried", deadline=None)  # a busy machine is no bug
settings.load_profile("unhurried")


@pytest.fixture(autouse=True, scope="module")
def strict_promotion():
    """Our own numerics mix no dtypes by accident."""
    with jax.numpy_dtype_promotion("strict"):
        yield
