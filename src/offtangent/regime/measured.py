"""What was found of a trained network, as numbers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.regime.kernel import Layer, Turn
from offtangent.regime.movement import Movement
from offtangent.regime.scores import Prediction

LEAVES = 0.1  # of the change, at most, where the orders so far carry the network
RESAMPLED = 2000  # draws of the bootstrap


@dataclass(frozen=True, eq=False)
class Regime:
    """What one training did to a network, on given inputs. `summary()` has the numbers as a dictionary for JSON.

    `regime.page.regime_figures` draws it, and `regime.page.regime_page` makes a page of it.

    Attributes:
        samples: The number of inputs.
        outputs: The number of outputs for each of them.
        parameters: The number of parameters.
        change: The root mean square of f(θ) − f(θ₀) over samples and outputs.
        sizes: The terms of orders 1, 2, …, in the same units.
        left: What the sum of the first k terms leaves of the change, for k = 1, 2, …, in the same units.
        intervals: A 95 % interval for each of `left` over `change`, by drawing samples again.
        shares: ⟨f^{(k)}, f(θ) − f(θ₀)⟩ over ‖f(θ) − f(θ₀)‖², for each order k.
        remainder_share: The same of the remainder; with `shares` it adds up to one.
        movements: How far each array of parameters moved.
        kernel: How the tangent kernel, summed over outputs, changed and turned towards the labels.
        layers: The same of each array of parameters, with its part of the kernel.
        predictions: How well the network and each Taylor polynomial predict held-out labels; empty without any.
        loss: The loss by which predictions are judged, or None.
    """

    samples: int
    outputs: int
    parameters: int
    change: float
    sizes: tuple[float, ...]
    left: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    shares: tuple[float, ...]
    remainder_share: float
    movements: tuple[Movement, ...]
    kernel: Turn
    layers: tuple[Layer, ...]
    predictions: tuple[Prediction, ...] = ()
    loss: str | None = None

    @property
    def carried_by(self) -> int | None:
        """The smallest order k with ‖f(θ) − f(θ₀) − Σ_{j≤k} f^{(j)}‖ ≤ ‖f(θ) − f(θ₀)‖/10; None if none measured."""
        return next((k for k, left in enumerate(self.left, start=1) if left <= LEAVES * self.change), None)

    @property
    def remainder(self) -> float:
        """What all terms together leave of the change."""
        return self.left[-1]

    @property
    def is_sure(self) -> bool:
        """Whether `carried_by` would be the same at both ends of every interval that decides it."""
        order = self.carried_by
        decisive = self.intervals if order is None else self.intervals[:order]
        return all(low > LEAVES or (high <= LEAVES and at == order) for at, (low, high) in enumerate(decisive, start=1))

    @property
    def alignment(self) -> tuple[float, float] | None:
        """How the kernel is aligned with the labels, before and after; None without labels."""
        return self.kernel.alignment

    @property
    def kernel_change(self) -> float:
        """‖K(θ) − K(θ₀)‖_F / ‖K(θ₀)‖_F."""
        return self.kernel.change

    @property
    def kernel_turn(self) -> float:
        """The angle between the two kernels as vectors, in degrees."""
        return self.kernel.angle

    def summary(self) -> dict[str, Any]:
        """Put all numbers into a dictionary for JSON.

        Returns:
            Plain numbers, lists and text by name; None where there is nothing to say.
        """
        told = asdict(self) | {"carried_by": self.carried_by, "is_sure": self.is_sure, "remainder": self.remainder}
        plain: dict[str, Any] = _plain(told)
        return plain

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Regime":
        """Read what `summary()` wrote.

        Args:
            told: The dictionary, as JSON gives it back.

        Returns:
            The same numbers.
        """
        given = dict(told)
        for derived in ("carried_by", "is_sure", "remainder"):
            given.pop(derived)
        movements = (Movement(**_known(one, "relative") | {"shape": tuple(one["shape"])}) for one in told["movements"])
        layers = (Layer(one["name"], tuple(one["share"]), _turn(one["turn"])) for one in told["layers"])
        predictions = (Prediction(**_known(one, "error")) for one in told["predictions"])
        tuples = {name: tuple(told[name]) for name in ("sizes", "left", "shares")}
        read = {
            "movements": tuple(movements),
            "layers": tuple(layers),
            "kernel": _turn(told["kernel"]),
            "predictions": tuple(predictions),
            "intervals": tuple(tuple(one) for one in told["intervals"]),
        }
        return cls(**given | tuples | read)


def _turn(told: Mapping[str, Any]) -> Turn:
    given = _known(told, "change", "growth")
    return Turn(**given | {"alignment": told["alignment"] and tuple(told["alignment"])})


def _known(told: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """JSON knows no infinity and has None for it."""
    return {name: float("inf") if name in names and value is None else value for name, value in told.items()}


def _plain(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _plain(value) for name, value in told.items()}
    if isinstance(told, list | tuple):
        return [_plain(value) for value in told]
    return None if isinstance(told, float) and not np.isfinite(told) else told


def bootstrap(left: Float[np.ndarray, "n"], change: Float[np.ndarray, "n"]) -> tuple[float, float]:
    """Compute a 95 % interval of the root of Σ left / Σ change over samples, by drawing samples again.

    Args:
        left: For each sample, the square of what is left.
        change: The square of the whole change.

    Returns:
        Its ends, the quantiles 0.025 and 0.975 of draws with replacement from a fixed seed.
    """
    rng, n = np.random.default_rng(0), len(left)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLED).astype(np.float64)
    ratios = np.sqrt((counts @ left) / np.maximum(counts @ change, np.finfo(np.float64).tiny))
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)
