"""What a person asks about a training, and the answers, in words that say how sure they are."""

from collections.abc import Iterable

from offtangent._arguments import check_kind
from offtangent.regime.kernel import Layer
from offtangent.regime.measured import LEAVES, Regime
from offtangent.regime.scores import Prediction

ORDERS = ("", "first", "second", "third", "fourth", "fifth", "sixth")


def ordinal(k: int) -> str:
    """The word for k, up to six."""
    return ORDERS[k] if k < len(ORDERS) else f"{k}th"


def answers(found: Regime) -> list[tuple[str, str]]:
    """What a person asks about a training, and the answers.

    Args:
        found: What was measured.

    Returns:
        Questions with their answers, as plain text.
    """
    check_kind("found", found, Regime, "what measure_regime(...) gives")
    told = [("Is it lazy?", _lazy(found)), ("Which order carries it?", _carried(found))]
    if found.predictions:
        told += [(f"Would the {name} have predicted as well?", one) for name, one in _predicted(found)]
    told += [("How far did it move?", _moved(found)), ("How did its kernel change?", _kernel(found))]
    if found.alignment is not None:
        told.append(("Does the kernel see the labels?", _aligned(found)))
    return [*told, ("What follows?", _follows(found))]


def _interval(found: Regime, order: int) -> str:
    low, high = found.intervals[order - 1]
    return f"{found.left[order - 1] / found.change:.1%} [{low:.1%}, {high:.1%}] of the change"


def _lazy(found: Regime) -> str:
    left = _interval(found, 1)
    low, high = found.intervals[0]
    if low <= LEAVES < high:
        which = "just" if found.carried_by == 1 else "not quite"
        return f"{which}, and other samples may say otherwise: the first order leaves {left}, the limit is {LEAVES:.0%}"
    return f"{'yes' if found.carried_by == 1 else 'no'}: the first order leaves {left}"


def _carried(found: Regime) -> str:
    order = found.carried_by
    sure = "" if found.is_sure else "; with other samples it may be another"
    if order is None:
        return f"none of the first {len(found.shares)} orders: together they leave {_interval(found, len(found.left))}"
    if order == 1:
        return f"the first, that of its tangent kernel{sure}"
    return f"the {ordinal(order)}, which with those below leaves {_interval(found, order)}{sure}"


def _names(order: int) -> str:
    return {1: "linearised network", 2: "quadratic network"}.get(order, f"Taylor polynomial of order {order}")


def _predicted(found: Regime) -> Iterable[tuple[str, str]]:
    network = found.predictions[0]
    for one in found.predictions[2:]:  # after the network comes order 0, which is the start
        yield _names(one.order), _compared(network, one)


def _compared(network: Prediction, model: Prediction) -> str:
    if network.accuracy is None or model.accuracy is None:
        scores = f"loss {model.loss:.3g}, the network's {network.loss:.3g}"
        apart = f"by {model.behind:.2g} ± {model.error:.2g}"
    else:
        scores = f"{model.accuracy:.1%}, the network {network.accuracy:.1%}"
        apart = f"by {100 * model.behind:.1f} ± {100 * model.error:.1f} points"
    if model.behind > 2 * model.error:
        return f"no: {scores}; it is behind {apart} (standard error)"
    if model.behind < -2 * model.error:
        return f"better: {scores}; the network is behind {apart.replace('-', '')} (standard error)"
    return f"as far as these samples can tell, yes: {scores}; it is behind {apart} (standard error)"


def _moved(found: Regime) -> str:
    one = max(found.movements, key=lambda one: one.in_lazy_units)
    far = f"{one.in_lazy_units:.3g} m^(−1/2) or {one.in_quadratic_units:.3g} m^(−1/4), m = {one.width}"
    return f"{one.name} the most: its furthest neuron by {far}"


def _kernel(found: Regime) -> str:
    kernel = found.kernel
    far = f"{kernel.change:.1%} of" if kernel.change < 2 else f"{kernel.change:.3g} times"
    told = f"by {far} its norm: it turned by {kernel.angle:.1f}°, and its norm grew to {kernel.growth:.3g} times"
    return f"{told}. {_most(found.layers)}"


def _most(layers: Iterable[Layer]) -> str:
    one = max(layers, key=lambda layer: layer.share[1])
    return f"{one.name} has most of it: {one.share[0]:.0%} of the trace before, {one.share[1]:.0%} after"


def _aligned(found: Regime) -> str:
    assert found.alignment is not None
    before, after = found.alignment
    told = f"alignment {before:.3f} before, {after:.3f} after"
    layers = [layer for layer in found.layers if layer.turn.alignment is not None and layer.share[1] > 0]
    best = max(layers, key=lambda layer: layer.turn.alignment[1] if layer.turn.alignment else 0.0)
    assert best.turn.alignment is not None
    return f"{told}; most in {best.name}, {best.turn.alignment[0]:.3f} before, {best.turn.alignment[1]:.3f} after"


def _follows(found: Regime) -> str:
    order = found.carried_by
    seen = f"on these {found.samples} samples"
    if not found.is_sure:
        return f"{seen}, not enough to say which order carries it: measure more samples"
    if order == 1:
        return (
            f"{seen}, what theorems say of a fixed tangent kernel applies to this training: kernel regression with the "
            "kernel at the start describes it, and no feature was learnt that its outputs would need"
        )
    if order == 2:
        return (
            f"{seen}, the tangent kernel at the start does not describe this training; the quadratic model does, whose "
            "kernel moves as the weights do"
        )
    rest = f"the first {len(found.left)} orders" if order is None else f"orders below the {ordinal(order)}"
    return (
        f"{seen}, neither a fixed tangent kernel nor {rest} describe this training: what is proved of them says "
        "nothing about it"
    )
