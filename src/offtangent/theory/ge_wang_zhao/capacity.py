"""Which network memorises how much: Theorems 1 and 2 of Ge, Wang & Zhao (2019), by counting.

Two layers express the quadratic forms xᵀSx, of which C(d + 1, 2) are independent: that many samples in general position
have any labels, with r ≥ 2d + 2 neurons. With k random features (rᵀx)^p in front, k takes the place of d.
"""

import math
from dataclasses import dataclass

from offtangent._checks import check_count
from offtangent._errors import InputError
from offtangent.networks import PolynomialNet, QuadraticNet
from offtangent.networks.quadratic import check_halves, symmetric_dimension


def most_samples(dim: int) -> int:
    """C(d + 1, 2), the most samples in general position to which xᵀSx can give any labels.

    >>> most_samples(784), most_samples(100), most_samples(750)
    (307720, 5050, 281625)
    """
    return symmetric_dimension(dim, 2)


def least_width(dim: int) -> int:
    """2d + 2: from this width on every local minimum of f is a global one (Lemma 1)."""
    check_count("dim", dim)
    return 2 * dim + 2


def theorem_features(samples: int) -> int:
    """K = 2⌈√n⌉ random features, Theorem 5's choice.

    >>> theorem_features(60_000)
    490
    """
    check_count("samples", samples)
    return 2 * (math.isqrt(samples - 1) + 1)


def admissible_features(dim: int, power: int) -> int:
    """The largest k of Lemma 13, D_d^{2p}/(D_d^p C(2p, p)). Smaller than one might think.

    >>> admissible_features(30, 2), admissible_features(60, 2), admissible_features(100, 2)
    (14, 54, 145)
    """
    check_count("dim", dim)
    check_count("power", power)
    return symmetric_dimension(dim, 2 * power) // (symmetric_dimension(dim, power) * math.comb(2 * power, power))


@dataclass(frozen=True)
class Capacity:
    """What a network of a shape can memorise, next to what it is asked to.

    With `features` None there are two layers, and three else.
    """

    samples: int
    dim: int
    width: int
    features: int | None = None
    power: int | None = None

    @classmethod
    def of(cls, net: QuadraticNet | PolynomialNet, samples: int) -> "Capacity":
        """Of a network that is there."""
        if isinstance(net, PolynomialNet):
            return cls(samples, net.R.shape[1], net.net.width, net.net.dim, net.power)
        return cls(samples, net.dim, net.width)

    @property
    def inputs(self) -> int:
        """What the quadratic layers see: d, or k."""
        return self.dim if self.features is None else self.features

    @property
    def parameters(self) -> int:
        """Trained ones: W."""
        return self.inputs * self.width

    @property
    def most(self) -> int:
        """Samples that fit: C(d + 1, 2); with features no more than there are polynomials of degree 2p either."""
        quadratics, polynomials = most_samples(self.inputs), self._polynomials
        return quadratics if polynomials is None else min(quadratics, polynomials)

    @property
    def fits(self) -> bool:
        return self.samples <= self.most

    @property
    def wide_enough(self) -> bool:
        """R ≥ 2d + 2 (2k + 2): whether Lemmas 1 and 3 speak of this network."""
        return self.width >= least_width(self.inputs)

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps the theorems from applying, each with the number that would do. Empty: nothing."""
        told = []
        layer, seen = ("d", "inputs") if self.features is None else ("k", "features")
        if not self.fits:
            what = f"quadratic forms of {self.inputs} {seen}"
            if self.power is not None and self.most < most_samples(self.inputs):
                what = f"polynomials of degree 2p = {2 * self.power} in {self.dim} inputs"
            told.append(
                f"{self.samples} samples are more than the {self.most} that {what} can fit: give {self.most} at most, "
                f"or {self._remedy()}."
            )
        if not self.wide_enough:
            told.append(
                f"{self.width} neurons are fewer than 2{layer} + 2 = {least_width(self.inputs)}: minima may be local"
            )
        if self.features is not None and self.power is not None:
            allowed = admissible_features(self.dim, self.power)
            if self.features > allowed:
                told.append(
                    f"{self.features} features are more than the {allowed} of Lemma 13, on which Theorem 5 rests: the "
                    "smallest singular value has no bound from below"
                )
        return tuple(told)

    @property
    def _polynomials(self) -> int | None:
        if self.features is None or self.power is None:
            return None
        return symmetric_dimension(self.dim, 2 * self.power)

    def _remedy(self) -> str:
        if self.dim == 1:  # all samples are multiples of each other, to any power
            return "more inputs than one (a column of ones will do)"
        features = next(k for k in range(1, self.samples + 1) if most_samples(k) >= self.samples)
        power = next(p for p in range(1, self.samples + 1) if symmetric_dimension(self.dim, 2 * p) >= self.samples)
        if self.features is None:
            return f"put {features} or more random features (rᵀx)^{power} in front"
        told = [] if self.features >= features else [f"{features} features or more"]
        if self._polynomials is not None and self._polynomials < self.samples:
            told.append(f"the power {power} or a higher one")
        return " and ".join(told)


def memorisation(
    samples: int, dim: int, *, width: int | None = None, power: int | None = None, features: int | None = None
) -> Capacity:
    """The network of Theorem 1, or with a power p that of Theorem 5, for n samples of d inputs.

    Widths and features that are not given are the theorems': r = 2d + 2, k = 2⌈√n⌉.

    >>> memorisation(5000, 100), memorisation(5000, 100).fits
    (Capacity(samples=5000, dim=100, width=202, features=None, power=None), True)
    >>> memorisation(60_000, 100, power=2).width
    982
    >>> memorisation(60_000, 100, width=3000).problems[0][:52]
    '60000 samples are more than the 5050 that quadratic '
    """
    check_count("samples", samples)
    check_count("dim", dim)
    if power is None:
        if features is not None:
            raise InputError(f"features={features} without a power: give power=p for the features (rᵀx)^p.")
    else:
        check_count("power", power)
        features = theorem_features(samples) if features is None else features
        check_count("features", features)
    inputs = dim if features is None else features
    width = least_width(inputs) if width is None else width
    check_halves(width)
    return Capacity(samples, dim, width, features, power)
