"""Translated modules against PyTorch itself, in float64: values, gradients, training, any size of the batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.interop import from_torch

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'offtangent[torch]'")

torch_modules = pytest.importorskip("torch_modules")

NAMES = tuple(torch_modules.cases())
RATE, STEPS, CLOSE = 1e-3, 10, 1e-12


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


def apart(found, truth):
    """The largest difference, over the largest number but at least over one."""
    found, truth = np.asarray(found), np.asarray(truth)
    assert found.shape == truth.shape
    return float(np.abs(found - truth).max() / max(1.0, np.abs(truth).max()))


def gradients(module):
    """PyTorch's gradients by the first name of each parameter."""
    return {
        name: np.zeros(one.shape) if one.grad is None else one.grad.numpy() for name, one in module.named_parameters()
    }


def test_there_are_at_least_twenty_modules():
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_values_gradients_and_ten_steps_of_training_are_pytorch_s_for_any_batch(name):
    module, example = torch_modules.cases()[name]
    f, params = from_torch(module, example)
    assert set(params) == {name for name, _ in module.named_parameters()}
    generator = torch.Generator().manual_seed(1)
    batch = example[torch.randint(0, 3, (7,), generator=generator)]
    truth = module(batch)
    labels = torch.randn(truth.shape, dtype=torch.float64, generator=generator)
    X, y = (jnp.asarray(one.numpy()) for one in (batch, labels))
    with torch.no_grad():
        assert apart(jax.jit(f)(params, X[:1]), module(batch[:1])) <= CLOSE

    @jax.jit
    def step(params):
        """The outputs, the gradient of ‖f − y‖²/2 and the parameters after one step along it."""
        found, back = jax.vjp(lambda p: f(p, X), params)
        slopes = back(found - y)[0]
        return found, slopes, jax.tree.map(lambda p, g: p - RATE * g, params, slopes)

    optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
    for k in range(STEPS):
        found, slopes, params = step(params)
        optimiser.zero_grad()
        outputs = module(batch)
        ((outputs - labels) ** 2).sum().mul(0.5).backward()
        optimiser.step()
        if k == 0:
            assert apart(found, outputs.detach()) <= CLOSE
            assert {leaf: apart(slopes[leaf], one) for leaf, one in gradients(module).items()} == pytest.approx(
                dict.fromkeys(slopes, 0), abs=CLOSE
            )
    for leaf, one in module.named_parameters():
        assert apart(params[leaf], one.detach()) <= STEPS * CLOSE, leaf
