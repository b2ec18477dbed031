"""What the library is for, on PyTorch's modules: Taylor terms, tangent kernels, regimes; weights from files."""

import json
import re
import struct
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.interop import from_torch
from offtangent.interop.states import read_state
from offtangent.kernels import empirical_ntk
from offtangent.regime import measure_regime
from offtangent.taylor import expand

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'offtangent[torch]'")
nn = torch.nn


def convolutional():
    """Convolution, batch norm and pooling, of two outputs, in float64, and six images."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(12, 2)]
    module = nn.Sequential(*layers).double()
    module(torch.randn(20, 1, 6, 6, dtype=torch.float64))  # running statistics that are not those of the start
    return module.eval(), torch.randn(6, 1, 6, 6, dtype=torch.float64)


@pytest.fixture
def wide():
    with jax.enable_x64(True):
        yield


def jacobians(module, X):
    """PyTorch's own, leaf by leaf, (n, k, …)."""
    leaves = {name: one.detach() for name, one in module.named_parameters()}
    return torch.func.jacrev(lambda p: torch.func.functional_call(module, p, (X,)))(leaves)


@pytest.mark.usefixtures("wide")
def test_the_tangent_kernel_is_that_of_pytorch_s_jacobians():
    module, X = convolutional()
    f, params = from_torch(module, X[:2])
    K = empirical_ntk(f, params, X.numpy())
    slopes = jacobians(module, X)
    truth = sum(torch.einsum("ikp,jlp->ijkl", *[one.flatten(2)] * 2) for one in slopes.values()).numpy()
    np.testing.assert_allclose(K.dense(), truth, rtol=1e-12, atol=1e-12 * np.abs(truth).max())
    assert K.ways["['5.weight']"] == "positions"
    assert sum(np.prod(one.shape) for one in params.values()) == sum(one.numel() for one in module.parameters())


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by PyTorch's own jvp
@pytest.mark.usefixtures("wide")
def test_taylor_terms_are_those_of_pytorch_s_derivatives_along_the_movement():
    module, X = convolutional()
    f, params = from_torch(module, X[:2])
    start = {name: one.detach() for name, one in module.named_parameters()}
    delta = {name: 0.1 * torch.randn_like(one) for name, one in start.items()}
    moved = {name: params[name] + delta[name].numpy() for name in params}
    f0, f1, f2 = expand(f, params, order=2).terms(moved, jnp.asarray(X.numpy()))

    def along(t):
        return torch.func.functional_call(module, {name: start[name] + t * delta[name] for name in start}, (X,))

    zero, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    slope = lambda t: torch.func.jvp(along, (t,), (one,))[1]  # noqa: E731
    for found, truth in zip(
        (f0, f1, 2 * f2), (along(zero), slope(zero), torch.func.jvp(slope, (zero,), (one,))[1]), strict=True
    ):
        np.testing.assert_allclose(found, truth.detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("wide")
def test_a_trained_module_has_a_regime_and_its_movements_have_the_module_s_names(tmp_path):
    module, X = convolutional()
    y = torch.tensor([1.0, -1.0] * 3, dtype=torch.float64)
    f, start = from_torch(module, X)
    optimiser = torch.optim.SGD(module.parameters(), lr=1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        ((module(X)[:, 0] - y) ** 2).mean().backward()
        optimiser.step()
    torch.save(module.state_dict(), tmp_path / "end.pt")
    _, end = read_state(f, tmp_path / "end.pt")
    regime = measure_regime(f, start, end, X.numpy(), y.numpy())
    assert regime.carried_by == 1, "three small steps are lazy"
    assert {move.name for move in regime.movements} == {name for name, _ in module.named_parameters()}
    distance = (module[0].weight - torch.as_tensor(np.array(start["0.weight"]))).norm().item()
    found = next(move for move in regime.movements if move.name == "0.weight")
    assert found.distance == pytest.approx(distance, rel=1e-9)
    assert found.width == 3


def test_a_module_in_single_precision_stays_in_it_and_keeps_pytorch_s_numbers():
    module, X = convolutional()
    module, X = module.float(), X.float()
    f, params = from_torch(module, X)
    assert {one.dtype for one in jax.tree.leaves((f, params))} == {jnp.dtype("float32")}
    with torch.no_grad():
        np.testing.assert_allclose(f(params, X.numpy()), module(X).numpy(), rtol=1e-5, atol=1e-6)
        before = np.array(params["0.weight"])
        module[0].weight.zero_()
    np.testing.assert_array_equal(params["0.weight"], before, "the parameters are copies")


def test_frozen_parameters_and_buffers_are_constants_and_tied_ones_one_leaf():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3)).eval()
    module[1].weight = module[0].weight
    module[3].requires_grad_(False)
    f, params = from_torch(module, torch.zeros(2, 3))
    assert set(params) == {"0.weight", "0.bias", "1.bias", "2.weight", "2.bias"}
    assert set(f.constants) == {"2.running_mean", "2.running_var", "3.weight", "3.bias"}


def test_a_module_of_two_inputs_takes_a_tuple():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(5, 3), nn.Linear(3, 1)

        def forward(self, words, x):
            return self.out(self.table(words) * x)

    torch.manual_seed(0)
    module, args = Two().eval(), (torch.tensor([1, 4, 0]), torch.randn(3, 3))
    f, params = from_torch(module, args)
    x = tuple(one.numpy() for one in args)
    np.testing.assert_allclose(f(params, x), module(*args).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert empirical_ntk(f, params, x).dense().shape == (3, 3, 1, 1)
    with pytest.raises(InputError, match="1 of the inputs lie outside of a table of 5 rows"):
        f(params, (np.array([1, 5, 0]), x[1]))


def safe(path, tensors, **changed):
    """A .safetensors file of NumPy arrays, as its format is described; `changed` replaces parts of a header's entry."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, one in tensors.items():
        kind = {"float32": "F32", "float64": "F64", "int64": "I64"}[str(one.dtype)]
        offsets = [len(data), len(data) + one.nbytes]
        header[name] = {"dtype": kind, "shape": list(one.shape), "data_offsets": offsets} | changed
        data += one.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.fixture
def small():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 2)).eval()
    module[2].weight.requires_grad_(False)
    f, params = from_torch(module, torch.zeros(2, 3))
    other = {name: one.clone() + (1 if one.is_floating_point() else 0) for name, one in module.state_dict().items()}
    return module, f, params, other


@pytest.mark.parametrize("kind", ["pt", "within", "safetensors"])
def test_a_state_dict_from_a_file_gives_the_outputs_that_pytorch_gives_with_it(small, kind, tmp_path):
    module, f, params, other = small
    file = tmp_path / f"weights.{'safetensors' if kind == 'safetensors' else 'pt'}"
    if kind == "safetensors":
        safe(file, {name: one.numpy() for name, one in other.items()})
    else:
        torch.save({"epoch": 3, "model_state_dict": other} if kind == "within" else other, file)
    g, read = read_state(f, file)
    module.load_state_dict(other)
    X = torch.randn(4, 3)
    np.testing.assert_allclose(g(read, X.numpy()), module(X).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert set(read) == set(params)
    assert float(g.constants["1.running_mean"][0]) == 1.0


def without(tensors, *names):
    return {name: one for name, one in tensors.items() if name not in names}


CHANGED = {
    "lacks '0.weight', '1.running_mean'": lambda t: without(t, "0.weight", "1.running_mean"),
    "has 'more', which the module has not": lambda t: t | {"more": torch.ones(1)},
    r"'0.weight' in shape \(2, 2\): in the module it has shape \(2, 3\)": lambda t: t | {"0.weight": torch.ones(2, 2)},
    "'0.bias' in int32, and the module in float32": lambda t: t | {"0.bias": torch.ones(2, dtype=torch.int32)},
    "names begin with 'module.'": lambda t: {f"module.{name}": one for name, one in t.items()},
    "hold 2 entries that are NaN or infinite": lambda t: t | {"0.bias": torch.full((2,), torch.nan)},
    "'0.bias' is in float64, which JAX would round": lambda t: t | {"0.bias": torch.ones(2, dtype=torch.float64)},
    "has an int under 'epoch'": lambda t: t | {"epoch": 3},
    "holds a list: expected a state dict": lambda t: list(t.values()),
}


@pytest.mark.parametrize("said", CHANGED)
def test_a_file_that_does_not_fit_is_refused_with_what_is_wrong(small, said, tmp_path):
    _, f, _, other = small
    torch.save(CHANGED[said](other), tmp_path / "weights.pt")
    with pytest.raises(InputError, match=said):
        read_state(f, tmp_path / "weights.pt")


def test_files_that_are_none_are_refused(small, tmp_path):
    module, f, params, other = small
    numbers = {name: one.numpy() for name, one in other.items()}
    with pytest.raises(InputError, match=r"no.pt cannot be read: No such file"):
        read_state(f, tmp_path / "no.pt")
    with pytest.raises(InputError, match=r"no.safetensors cannot be read: No such file"):
        read_state(f, tmp_path / "no.safetensors")
    with pytest.raises(InputError, match=r"weights.onnx: expected the name"):
        read_state(f, tmp_path / "weights.onnx")
    with pytest.raises(InputError, match="expected what from_torch gives first"):
        read_state(params, tmp_path / "weights.pt")
    torch.save(module, tmp_path / "whole.pt")
    with pytest.raises(InputError, match=r"torch.save\(module.state_dict\(\), path\)"):
        read_state(f, tmp_path / "whole.pt")
    whole = safe(tmp_path / "a.safetensors", numbers).read_bytes()
    for cut in (whole[:4], whole[:50], whole[:-1], b"\xff" * 100):
        (tmp_path / "cut.safetensors").write_bytes(cut)
        with pytest.raises(InputError, match=r"no whole \.safetensors file"):
            read_state(f, tmp_path / "cut.safetensors")
    with pytest.raises(InputError, match="has dtype F4"):
        read_state(f, safe(tmp_path / "b.safetensors", numbers, dtype="F4"))


def test_tied_names_may_be_missing_and_must_agree(tmp_path):
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    module[1].weight = module[0].weight
    f, _ = from_torch(module, torch.zeros(2, 2))
    state = {name: one.clone() for name, one in module.state_dict().items()}
    torch.save(without(state, "0.weight"), tmp_path / "one.pt")
    _, read = read_state(f, tmp_path / "one.pt")
    np.testing.assert_array_equal(read["0.weight"], state["1.weight"].numpy())
    torch.save(state | {"1.weight": state["1.weight"] + 1}, tmp_path / "two.pt")
    with pytest.raises(InputError, match=r"other numbers for '1\.weight' than"):
        read_state(f, tmp_path / "two.pt")


def test_the_guide_s_lines_run():
    page = (Path(__file__).parents[2] / "docs" / "taylor.md").read_text()
    (code,) = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    torch.manual_seed(0)
    names = {}
    exec(compile(code, "taylor.md", "exec"), names)
    assert sum(names["regime"].shares) + names["regime"].remainder_share == pytest.approx(1)
    assert names["K"].trace().shape == (20, 20)
