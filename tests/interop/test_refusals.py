"""What cannot be translated is said in a sentence with the way out; an operation that is missing can be added."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.interop import from_torch, operations
from offtangent.interop.operations import register
from offtangent.kernels import empirical_ntk
from offtangent.regime import measure_regime
from offtangent.taylor import expand
from offtangent.training import HalfSquares

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'offtangent[torch]'")
Of = pytest.importorskip("torch_modules").Of
nn = torch.nn

X = torch.linspace(-1, 1, 12).reshape(3, 4)


def by_sum(net, x):
    if net.one(x).sum() > 0:
        return x
    return net.one(x)


def missing(net, x):
    return torch.special.i0e(net.one(x))


def with_one(forward):
    return Of(forward, one=nn.Linear(4, 4)).eval()


def lazily():
    return nn.Sequential(nn.LazyLinear(2))


def overlapping():
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    module[1].weight = nn.Parameter(module[0].weight.data.t())
    return module


def frozen():
    return nn.Linear(4, 2).requires_grad_(False)


BAD = {
    "decides by its data what it does": lambda: with_one(by_sum),
    "takes a number out of a tensor": lambda: with_one(lambda net, x: net.one(x) * x.max().item()),
    "A mask selects entries here": lambda: with_one(lambda net, x: (net.one(x) * x)[x > 0]),
    "batches of 3 samples alone": lambda: with_one(lambda net, x: net.one(x) / len(x)),
    "dropout": lambda: nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)),
    r"changes its '1.running_mean' whenever": lambda: nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)),
    "a lazy module gets it from module": lazily,
    "expected a torch.nn.Module. Give an instance": lambda: nn.Linear,
    "module is a function: expected": lambda: by_sum,
    "fails on an example of shape (3, 4) of float32: RuntimeError": lambda: nn.Linear(5, 2),
    "returns a tuple: expected one tensor": lambda: nn.GRU(4, 2, batch_first=True),
    "requires a gradient: call module.requires_grad_()": frozen,
    "share a part of their memory": overlapping,
    "numbers of dtype int64: expected floating-point": lambda: with_one(lambda net, x: net.one(x).argmax(1)),
    "parameters hold 1 entry that is NaN": lambda: spoilt(),
    "is in float64, which JAX would round": lambda: nn.Linear(4, 2).double(),
    "aten.special_i0e.default": lambda: with_one(missing),
    "torch_modules.py:": lambda: with_one(missing),
    "Result 1 of this operation": lambda: with_one(
        lambda net, x: (
            nn.functional.max_pool1d(net.one(x)[:, None], 2, return_indices=True)[1] * net.one(x)[:, None, :2]
        )
    ),
}


def spoilt():
    module = nn.Linear(4, 1)
    module.bias.data.fill_(torch.nan)
    return module


@pytest.mark.parametrize("said", BAD)
def test_each_is_refused_in_a_sentence(said):
    example = X[:, None] if "tuple" in said else X.double() if "float64" in said else X
    with pytest.raises(InputError) as told:
        from_torch(BAD[said](), example)
    assert said in str(told.value)


def test_an_example_that_is_none_is_refused_with_what_makes_one():
    module = nn.Linear(4, 2)
    for example, said in (
        (X.numpy(), "torch.as_tensor(array)"),
        (torch.tensor(1.0), "has no axes"),
        (X[:0], "has no samples"),
        ((), "example is empty"),
        ((X, X[:2]), "as many of each"),
    ):
        with pytest.raises(InputError) as told:
            from_torch(module, example)
        assert said in str(told.value)


def test_the_module_and_pytorch_s_random_numbers_stay_as_they_are():
    module = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2), nn.Dropout())
    before, drawn = {name: one.clone() for name, one in module.state_dict().items()}, torch.random.get_rng_state()
    with pytest.raises(InputError):
        from_torch(module, X)  # in training mode
    from_torch(module.eval(), X)
    assert all(torch.equal(one, before[name]) for name, one in module.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), drawn)
    assert torch.backends.mha.get_fastpath_enabled()


def test_an_example_of_one_sample_does_for_any_number():
    f, params = from_torch(nn.Linear(4, 2), X[:1])
    assert f(params, X.numpy()).shape == (3, 2)


def test_inputs_and_parameters_that_do_not_fit_are_refused():
    f, params = from_torch(nn.Linear(4, 2), X)
    for p, x, said in (
        (params, X, "give x.numpy()"),
        (params, X.numpy()[:, :3], "expected (n, 4)"),
        (params, X.numpy().astype(int), "Give x.astype('float32')"),
        (params, (X.numpy(),), "the module takes one array"),
        ({"weight": params["weight"]}, X.numpy(), "lack 'bias'"),
        (params | {"bias": jnp.ones(3)}, X.numpy(), "'bias' has shape (3,)"),
        (list(params), X.numpy(), "expected the dictionary that from_torch gives"),
    ):
        with pytest.raises(InputError) as told:
            f(p, x)
        assert said in str(told.value)


def test_the_library_sends_a_module_to_from_torch():
    module = nn.Linear(4, 2)
    params = dict(module.named_parameters())
    for call in (
        lambda: expand(module, params, 2),
        lambda: empirical_ntk(module, params, X),
        lambda: measure_regime(module, params, params, X),
        lambda: HalfSquares(module),
    ):
        with pytest.raises(InputError, match=r"offtangent.interop.from_torch\(module, example\)"):
            call()
    f, _ = from_torch(module, X)
    with pytest.raises(InputError, match="tensors of PyTorch"):
        expand(f, params, 2)


def test_a_missing_operation_can_be_registered_and_a_wrong_rule_is_found_out(monkeypatch):
    monkeypatch.setattr(operations, "_REGISTERED", {})
    module = with_one(missing)
    name = "aten.special_i0e.default"

    @register(name)
    def wrong(x):
        return x

    with pytest.raises(InputError, match="differ by"):
        from_torch(module, X)

    @register(name)
    def scaled_bessel(x):
        from jax.scipy.special import i0e

        return i0e(x)

    f, params = from_torch(module, X)
    np.testing.assert_allclose(f(params, X.numpy()), module(X).detach().numpy(), rtol=1e-5)
    with pytest.raises(InputError, match="full names of operations"):
        register("i0e")
    with pytest.raises(InputError, match="expected a function of JAX arrays"):
        register(name)(3)


def test_without_pytorch_a_sentence_says_how_to_get_it():
    code = """
import sys
sys.modules["torch"] = None
from offtangent._errors import InputError
from offtangent.interop import from_torch
try:
    from_torch(None, None)
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'offtangent[torch]'" in done.stdout


def test_the_room_loads_neither_pytorch_nor_jax():
    code = "import sys, offtangent.interop; sys.exit('jax' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
