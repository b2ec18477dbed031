"""Every rule by itself against the operation of PyTorch that it stands for: values and gradients, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.interop.elementwise import OF_NUMBERS_TOO, OF_TWO_TENSORS, SINGLE
from offtangent.interop.operations import ours

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'offtangent[torch]'")

CLOSE = 1e-12
# What says sizes, makes room in memory or has no gradient by itself: the modules of test_truth.py run it.
ELSEWHERE = {
    "offtangent.stop_gradient.default",
    "aten.sym_size.int",
    "aten.sym_numel.default",
    "aten.empty.memory_format",
    "aten.empty_strided.default",
    "aten._embedding_bag.default",
    "aten._embedding_bag_forward_only.default",
    "aten.lift_fresh_copy.default",
    "aten.contiguous.default",
    "aten._to_copy.default",
    "aten.copy.default",
    "aten.rrelu_with_noise_functional.default",
    "aten.scalar_tensor.default",
    "aten.max_pool1d.default",
    "aten.max_pool2d.default",
    "aten.max_pool3d.default",
}
generator = torch.Generator().manual_seed(0)


def within(*shape, low=0.1, high=0.9):
    """Numbers in an interval on which every function of one number that is tried is smooth."""
    return low + (high - low) * torch.rand(shape, dtype=torch.float64, generator=generator)


def single(name):
    if name == "bitwise_not":
        return (torch.tensor([1, 5, -3]),)
    return (within(2, 3, low=1.1, high=2.0) if name == "acosh" else within(2, 3, high=0.45),)


def pair(name):
    if name.startswith("bitwise"):
        return torch.tensor([6, 3, 5]), torch.tensor([3, 3, 4])
    return within(2, 3), within(2, 3)


# Square arrays of size 1 + 2·3 in the middle of things: their eigenvalues are well apart.
row, square, image = within(2, 5) - 0.5, torch.eye(3, dtype=torch.float64) * 2 + within(2, 3, 3), within(2, 4, 6, 6)
line, box = within(2, 4, 7), within(1, 2, 5, 5, 5)
places = torch.tensor([[3, 0, 1], [2, 2, 4]])
unlike = torch.tensor([[3, 0, 1], [2, 1, 4]])
scale, shift = within(4), within(4)
table = {f"aten.{name}.default": [single(name)] for name in SINGLE}
table |= {f"aten.{name}.default": [pair(name)] for name in OF_TWO_TENSORS}
table |= {f"aten.{name}.Tensor": [pair(name), (pair(name)[0], pair(name)[0])] for name in OF_NUMBERS_TOO}
table |= {f"aten.{name}.Scalar": [(pair(name)[0], 3 if "bitwise" in name else 0.4)] for name in OF_NUMBERS_TOO}
table |= {f"aten.{name}.Tensor": [(row, row.flip(0)), (row, row[:1])] for name in ("add", "sub", "div")}
table |= {f"aten.{name}.Scalar": [(row, 0.3)] for name in ("add", "sub", "div")}
table |= {
    "aten.div.Tensor_mode": [
        (row, within(2, 5), {"rounding_mode": "floor"}),
        (row, within(2, 5), {"rounding_mode": "trunc"}),
        (torch.tensor([7, -7]), torch.tensor([2, 2]), {"rounding_mode": "floor"}),
        (torch.tensor([7, -7]), torch.tensor([2, 2]), {"rounding_mode": "trunc"}),
    ],
    "aten.div.Scalar_mode": [(row, 0.3, {"rounding_mode": "floor"})],
    "aten.pow.Tensor_Scalar": [(row, 3), (row, 2.0), (within(3), 0.5), (within(3), 2.5), (within(3), -1)],
    "aten.pow.Tensor_Tensor": [(within(3), within(3))],
    "aten.pow.Scalar": [(2, row)],
    "aten.where.self": [(row > 0, row, row.exp())],
    "aten.clamp.default": [(row, -0.2, 0.2), (row, None, float(row[0, 0])), (row, float(row[0, 0]), None)],
    "aten.clamp.Tensor": [(row, row * 0 - 0.2, row * 0 + 0.2)],
    "aten.hardtanh.default": [(row, -0.2, 0.2), (row, float(row[0, 0]), 1.0)],
    "aten.gelu.default": [(row,), (row, {"approximate": "tanh"})],
    "aten.leaky_relu.default": [(row, 0.2)],
    "aten.elu.default": [(row, 1.5, 1.2, 0.7), (1000 * row,)],
    "aten.celu.default": [(row, 2.0), (1000 * row,)],
    "aten.softplus.default": [(row, 2.0, 0.3), (1000 * row,)],
    "aten.mish.default": [(row,), (1000 * row,)],
    "aten.clone.default": [(row,)],
    "aten.alias.default": [(row,)],
    "aten.alias_copy.default": [(row,)],
    "aten.fill.Scalar": [(row, 2.0)],
    "aten.full_like.default": [(row, 2.0)],
    "aten.full.default": [([2, 3], 1.5, {"dtype": torch.float64})],
    "aten.zeros.default": [([2, 3], {"dtype": torch.float64})],
    "aten.ones.default": [([2, 3], {"dtype": torch.float64})],
    "aten.arange.start_step": [(1, 8, 3, {"dtype": torch.int64}), (5, 0, -2, {"dtype": torch.int64}), (0, 0, 1)],
    "aten.view.default": [(row, [5, -1])],
    "aten.view_copy.default": [(row, [5, 2])],
    "aten.reshape.default": [(row, [10])],
    "aten._unsafe_view.default": [(row, [10])],
    "aten.permute.default": [(image, [2, 0, 3, 1])],
    "aten.unsqueeze.default": [(row, -1), (row, 1)],
    "aten.squeeze.dims": [(row[:1, None], [0, 1, 2])],
    "aten.squeeze.dim": [(row[:1, None], 1), (row, 0)],
    "aten.expand.default": [(row[:, None], [3, -1, 4, 5])],
    "aten.repeat.default": [(row, [3, 1, 2])],
    "aten.flip.default": [(row, [0, 1])],
    "aten.diagonal.default": [(image, 1, 2, 3), (square, -1, 1, 2)],
    "aten.slice.Tensor": [(row, 1, 1, 9223372036854775807, 2), (row, -1, -3, -1), (row, 0, None, None)],
    "aten.slice_scatter.default": [(row, within(2, 2), 1, 1, 5, 2)],
    "aten.select.int": [(row, 1, -2), (row, 0, 1)],
    "aten.select_scatter.default": [(row, within(2), 1, -2)],
    "aten.cat.default": [([row, row[:, :2]], 1), ([torch.empty(0, dtype=torch.float64), row], -1)],
    "aten.stack.default": [([row, row], 1)],
    "aten.split_with_sizes.default": [(row, [2, 3], -1)],
    "aten.unfold.default": [(row, 1, 3, 2), (image, -1, 2, 2)],
    "aten.constant_pad_nd.default": [(row, [1, 2], 0.5), (image, [-1, 2, 0, -2])],
    "aten.embedding.default": [(within(5, 3), places), (within(5, 3), places, 2)],
    "aten.index.Tensor": [(within(5, 3), [places]), (row, [None, torch.tensor([4, -1])])],
    "aten.index_put.default": [
        (within(5), [unlike[1]], within(3)),
        (within(5), [places[1]], within(3), True),
        (row, [row > 0], torch.tensor(2.0, dtype=torch.float64)),
    ],
    "aten.index_select.default": [(row, 1, places[0])],
    "aten.gather.default": [(row, 1, places), (row[:, :3], 0, torch.tensor([[1, 0]]))],
    "aten.scatter.src": [(row, 1, unlike, within(2, 3))],
    "aten.scatter.value": [(row, 1, unlike, 2.0)],
    "aten.scatter_add.default": [(row, 1, places, within(2, 3)), (row, 0, torch.tensor([[1, 0, 1]]), within(1, 3))],
    "aten.scatter_reduce.two": [(row, 1, unlike, within(2, 3), how) for how in ("sum", "amax", "amin")],
    "aten.sort.default": [(row, 1, True), (row, 0)],
    "aten.sort.stable": [(row, {"stable": True, "dim": 1})],
    "aten.topk.default": [(row, 2, 1), (row, 2, 1, False)],
    "aten.median.dim": [(row, 1), (row[:, :4], 1, True)],
    "aten.max.dim": [(row, 1), (row, 0, True), (row.round(), 1)],
    "aten.min.dim": [(row, 1), (row, 0, True), (row.round(), 1)],
    "aten.argmax.default": [(row,), (row, 1, True)],
    "aten.argmin.default": [(row,), (row, 1, True)],
    "aten.sum.dim_IntList": [(row, [1]), (row, None, True), (row, [0, 1])],
    "aten.sum.default": [(row,)],
    "aten.mean.dim": [(row, [-1], True), (row, None)],
    "aten.mean.default": [(row,)],
    "aten.prod.dim_int": [(row, 1, True)],
    "aten.prod.default": [(row,)],
    "aten.amax.default": [(row, [1], True), (row.round(), [1])],
    "aten.amin.default": [(row, [1]), (row.round(), [1])],
    "aten.max.default": [(row,)],
    "aten.min.default": [(row,)],
    "aten.var.correction": [(row, [1]), (row, [1], {"correction": 0, "keepdim": True}), (row, None, {"correction": 2})],
    "aten.var.dim": [(row, [1]), (row, [0, 1], False, True)],
    "aten.cumsum.default": [(row, 1)],
    "aten.cumprod.default": [(row, 1)],
    "aten._softmax.default": [(row, -1, False)],
    "aten._safe_softmax.default": [(row, -1), (torch.where(row > row[0, 0], -torch.inf, row), 0)],
    "aten._log_softmax.default": [(row, 0, False)],
    "aten.linalg_vector_norm.default": [(row, p, [1], True) for p in (0, 1, 2, 3.5, torch.inf, -torch.inf)]
    + [(0 * row,)],
    "aten.mm.default": [(row, row.T)],
    "aten.bmm.default": [(square, square)],
    "aten.matmul.default": [(image, within(6, 2))],
    "aten.mv.default": [(row, row[0])],
    "aten.dot.default": [(row[0], row[1])],
    "aten.addmm.default": [(within(2), row, row.T), (within(2, 2), row, row.T, {"beta": 0.5, "alpha": 2})],
    "aten.baddbmm.default": [(square, square, square, {"beta": 0.5, "alpha": 2})],
    "aten._trilinear.default": [
        (within(2, 3), within(4, 3, 5), within(2, 5), [1, 3], [0], [1, 2], [2, 3]),
    ],
    "aten._cdist_forward.default": [(square, square.flip(1) + 1, p, None) for p in (1.0, 2.0, 3.0)],
    "aten._linalg_det.default": [(square,)],
    "aten.linalg_inv_ex.default": [(square,)],
    "aten.linalg_cholesky_ex.default": [(square @ square.mT,), (square @ square.mT, {"upper": True})],
    "aten.linalg_matrix_exp.default": [(square,)],
    "aten.convolution.default": [
        (line, within(6, 2, 3), within(6), [2], [1], [2], False, [0], 2),
        (image, within(4, 6, 3, 2), within(12), [2, 1], [1, 0], [1, 2], True, [1, 0], 2),
        (box, within(2, 3, 2, 2, 2), None, [2, 2, 2], [0, 0, 0], [1, 1, 1], True, [0, 1, 0], 1),
    ],
    "aten._native_batch_norm_legit_no_training.default": [
        (image, scale, shift, within(4), within(4), 0.1, 1e-5),
        (line, None, None, within(4), within(4), 0.1, 1e-3),
    ],
    "aten._native_batch_norm_legit.no_stats": [
        (image, scale, shift, True, 0.1, 1e-5),
        (line, None, None, True, 0.1, 1e-5),
    ],
    "aten.native_layer_norm.default": [(image, [6, 6], within(6, 6), None, 1e-5), (row, [5], None, within(5), 1e-5)],
    "aten.native_group_norm.default": [(image, scale, shift, 2, 4, 36, 2, 1e-5), (line, None, None, 2, 4, 7, 4, 1e-5)],
    "aten.max_pool2d_with_indices.default": [
        (image, [3, 3], [2, 2], [1, 1], [1, 1], True),
        (image.round(), [2, 3], [1, 2], [0, 1], [2, 1], False),
        (image, [5, 5], [3, 3], [0, 0], [1, 1], True),
        (image, [2]),
    ],
    "aten.max_pool3d_with_indices.default": [(box, [2, 2, 2], [2, 2, 2], [1, 0, 1], [1, 1, 2], True)],
    "aten.avg_pool1d.default": [(line, [3], [2], [1], True, False), (line, [3], [2], [1], True, True)],
    "aten.avg_pool2d.default": [
        (image, [3, 3], [2, 2], [1, 1], True, True),
        (image, [3, 3], [2, 2], [1, 1], True, False),
        (image, [3, 2], [2, 2], [1, 1], True, True, 5),
        (image, [5, 5], [3, 3], [0, 0], True),
        (image, [2]),
    ],
    "aten.avg_pool3d.default": [(box, [2, 2, 2], [2, 2, 2], [1, 0, 1], True, False)],
    "aten._adaptive_avg_pool2d.default": [(image, [4, 7])],
    "aten._adaptive_avg_pool3d.default": [(box, [2, 3, 1])],
    "aten.adaptive_max_pool2d.default": [(image, [4, 2]), (image.round(), [4, 5])],
    "aten.adaptive_max_pool3d.default": [(box, [2, 3, 1])],
    "aten.upsample_nearest1d.vec": [(line, None, [2.5]), (line, [4], None)],
    "aten.upsample_nearest2d.vec": [(image, [9, 4], None), (image, None, [2.0, 1.5])],
    "aten.upsample_nearest3d.vec": [(box, None, [2.0, 1.0, 2.0])],
    "aten.upsample_bilinear2d.vec": [
        (image, [9, 4], False, None),
        (image, [9, 1], True, None),
        (image, None, False, [2.0, 1.5]),
    ],
}
for how in ("some", "every"):
    kind = {"some": "any", "every": "all"}[how]
    table |= {
        f"aten.{kind}.default": [(row > 0,)],
        f"aten.{kind}.dim": [(row > 0, 1, True)],
        f"aten.{kind}.dims": [(row > 0, [0, 1])],
    }


def operation(name):
    _, packet, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, packet), overload)


def translated(given):
    """An argument for a rule."""
    if isinstance(given, torch.Tensor):
        return jnp.asarray(given.detach().numpy())
    if isinstance(given, torch.dtype):
        return jnp.dtype(str(given).removeprefix("torch."))
    return [translated(one) for one in given] if isinstance(given, list) else given


def floating(tree):
    """The floating-point tensors among arguments, in lists too."""
    flat = [one for given in tree for one in (given if isinstance(given, list) else [given])]
    return [one for one in flat if isinstance(one, torch.Tensor) and one.is_floating_point()]


def results(found):
    return list(found) if isinstance(found, tuple | list) else [found]


def compare(name, args):
    args, words = (args[:-1], args[-1]) if isinstance(args[-1], dict) else (args, {})
    args = [
        [one.clone() for one in given]
        if isinstance(given, list) and given and isinstance(given[0], torch.Tensor)
        else given.clone()
        if isinstance(given, torch.Tensor)
        else given
        for given in args
    ]
    # Running statistics have no gradient.
    inputs = [one.requires_grad_() for one in floating(args[:3] if "no_training" in name else args)]
    truth = results(operation(name)(*args, **words))
    rule, keys = ours()[name], {key: translated(one) for key, one in words.items()}

    def run(arrays):
        rest = iter(arrays)
        put = lambda one: next(rest) if any(one is given for given in inputs) else translated(one)  # noqa: E731
        given = [[put(one) for one in each] if isinstance(each, list) else put(each) for each in args]
        return results(rule(*given, **keys))

    arrays = [translated(one) for one in inputs]
    found = run(arrays)
    first = len(found) if "split" in name else 1
    for ours_, theirs in zip(found[:first], truth[:first], strict=True):
        assert tuple(ours_.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(ours_, theirs.detach().numpy(), rtol=CLOSE, atol=CLOSE)
    if not inputs or not truth[0].is_floating_point() or not truth[0].requires_grad:
        return
    weights = within(*truth[0].shape)
    slopes = torch.autograd.grad((truth[0] * weights).nansum(), inputs, allow_unused=True)
    _, back = jax.vjp(lambda arrays: run(arrays)[0], arrays)
    for one, slope, given in zip(back(jnp.asarray(weights.numpy()))[0], slopes, inputs, strict=True):
        expected = torch.zeros_like(given) if slope is None else slope
        np.testing.assert_allclose(one, expected.numpy(), rtol=1e-10, atol=CLOSE)


def test_every_rule_is_tried_here_or_elsewhere():
    assert sorted([*table, *ELSEWHERE]) == sorted(ours())


@pytest.mark.parametrize("name", table)
def test_values_and_gradients_are_pytorch_s(name):
    with jax.enable_x64(True):
        for args in table[name]:
            compare(name, args)
