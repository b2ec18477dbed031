"""The numbers of perturbed gradient descent: Algorithm 1's thresholds, and Theorem 4's choice of everything.

Jin et al. (2017); Ge, Wang & Zhao (2019), Appendices B and D.2. Theorem 4 hands its algorithm not the ε that f is to
reach but ε′ = (σ²ε/nd)^{5/4}/(6B⁴√(2(f(0) + 1))), for which √(ρε′) = γ. As printed, with ε itself, it is false: see
`theorem4_as_printed`.
"""

import math
from dataclasses import dataclass

from offtangent._arguments import check_positive
from offtangent._checks import check_bound, check_count, check_real, require
from offtangent._errors import InputError
from offtangent.networks.quadratic import check_halves
from offtangent.theory.ge_wang_zhao.capacity import least_width, most_samples

SETTINGS, BOUND = 1e45, 1e20  # sizes whose powers, as they are multiplied here, float64 holds: from their inverses on


@dataclass(frozen=True)
class DescentSettings:
    """What Algorithm 1 looks at. Any numbers will do in practice; `algorithm1_settings` has the theory's."""

    rate: float  # η
    radius: float  # r, of the ball from which a perturbation is drawn
    gradient: float  # g_thres: below this norm it may perturb
    decrease: float  # f_thres: what a perturbation must gain within `wait` steps
    wait: int  # t_thres

    def __post_init__(self) -> None:
        for name in ("rate", "radius", "gradient", "decrease"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InputError(f"{name}={value:g}: it must be positive and finite.")
        check_count("wait", self.wait)


def algorithm1_settings(
    *,
    smoothness: float | int,
    hessian: float | int,
    epsilon: float | int,
    parameters: int,
    gap: float | int,
    c: float | int = 1.0,
    delta: float | int = 0.1,
) -> DescentSettings:
    """Algorithm 1's first line, for an ℓ-smooth function with a ρ-Lipschitz Hessian and f(x₀) − f* ≤ Δ = `gap`.

        χ = 3 max{log(dℓΔ/cε²δ), 4},  η = c/ℓ,  r = √c ε/χ²ℓ,  g = √c ε/χ²,  f = (c/χ³)√(ε³/ρ),  t = χℓ/(c²√(ρε))

    d is the number of parameters. Theorem 3 has c ≤ c_max, a constant that is not named; the proof of Theorem 4 has c ≤
    1.

    >>> algorithm1_settings(smoothness=1, hessian=1, epsilon=0.01, parameters=10, gap=1).wait
    415
    """
    given = {"smoothness": smoothness, "hessian": hessian, "epsilon": epsilon, "gap": gap, "c": c, "delta": delta}
    check_positive(**given)
    check_count("parameters", parameters)
    _check_range(SETTINGS, **given, parameters=parameters)
    if c > 1 or delta >= 1 or epsilon > smoothness**2 / hessian:
        raise InputError(
            f"c={c:g}, delta={delta:g}, epsilon={epsilon:g}: expected c ≤ 1, δ < 1 and ε ≤ ℓ²/ρ = "
            f"{smoothness**2 / hessian:g}."
        )
    chi = 3 * max(math.log(parameters * smoothness * gap / (c * epsilon**2 * delta)), 4.0)
    slope = math.sqrt(c) * epsilon / chi**2
    return DescentSettings(
        rate=c / smoothness,
        radius=slope / smoothness,
        gradient=slope,
        decrease=c / chi**3 * math.sqrt(epsilon**3 / hessian),
        wait=math.ceil(chi * smoothness / (c**2 * math.sqrt(hessian * epsilon))),
    )


def _check_range(most: float, **sizes: float | int) -> None:
    """Refuse sizes of which products would be beyond float64."""
    for name, value in sizes.items():
        require(1 / most < value < most, f"{name}={value:g}: expected a size between {1 / most:g} and {most:g}.")


@dataclass(frozen=True)
class Theorem4:
    """Everything that Theorem 4 chooses for a loss of at most ε on n samples in d dimensions."""

    gamma: float  # γ, of the regulariser
    hessian: float  # ρ
    smoothness: float  # ℓ
    accuracy: float  # ε′, of the second-order stationary point
    start: float  # f(0)
    parameters: int  # dr
    iterations: float  # the theorem's bound, its constant and δ aside: B⁸ℓ(nd)^{5/2}(f(0) + 1)²σ⁻⁵ε^{−5/2} log⁴(…)

    def settings(self, *, c: float | int = 1.0, delta: float | int = 0.1) -> DescentSettings:
        """Algorithm 1's, from W = 0 with Δ = f(0) + 1."""
        return algorithm1_settings(
            smoothness=self.smoothness,
            hessian=self.hessian,
            epsilon=self.accuracy,
            parameters=self.parameters,
            gap=self.start + 1,
            c=c,
            delta=delta,
        )


def theorem4(
    *,
    samples: int,
    dim: int,
    width: int,
    smallest: float | int,
    radius: float | int,
    label: float | int,
    start: float | int,
    epsilon: float | int,
    delta: float | int = 0.1,
) -> Theorem4:
    """For σ = `smallest` singular value of [x_j ⊗ x_j], ‖x‖ ≤ B = `radius`, |y| ≤ Y = `label`, f(0) = `start`.

    The theorem is about r ≥ 2d + 2 neurons.

    >>> t = theorem4(samples=300, dim=100, width=300, smallest=0.755, radius=1, label=1, start=0.095, epsilon=0.1)
    >>> f"{t.gamma:.2g} {t.hessian:.3g} {t.smoothness:.3g} {t.accuracy:.1g}"
    '0.0014 239 4.77e+03 8e-09'
    """
    for name, count in (("samples", samples), ("dim", dim)):
        check_count(name, count)
    check_halves(width)
    check_positive(smallest=smallest, radius=radius, label=label, epsilon=epsilon)
    check_bound(delta)
    check_real("start", start)
    require(
        0 <= start < math.inf,
        f"start={start:g}: f(0) = (1/4n) Σ y² is finite and not negative. Give risk.loss(net.origin), or "
        "np.mean(y**2) / 4.",
    )
    _check_range(BOUND, smallest=smallest, radius=radius, label=label, epsilon=epsilon, delta=delta, start=start + 1)
    if width < least_width(dim):
        raise InputError(
            f"width={width}: Theorem 4 holds for r ≥ 2d + 2 = {least_width(dim)} neurons. Use {least_width(dim)}."
        )
    require(
        samples <= most_samples(dim),
        f"samples={samples}: {dim} inputs have {most_samples(dim)} quadratic forms, so that of more samples σ is zero.",
    )
    nd = samples * dim
    share = smallest**2 * epsilon / nd
    scale = 6 * radius**4 * math.sqrt(2 * (start + 1))
    gamma, hessian, accuracy = math.sqrt(share), scale * share**-0.25, share**1.25 / scale
    smoothness = max(3 * radius**4 * 2 * (start + 1) / gamma + label * radius**2 + gamma, 1.0)
    inside = radius * samples * width * dim * smoothness * (start + 1) ** 2 / (epsilon**2 * delta * smallest)
    leading = radius**8 * smoothness * nd**2.5 * (start + 1) ** 2 / (smallest**5 * epsilon**2.5)
    require(math.isfinite(leading), "The number of iterations is beyond float64: give sizes nearer to one.")
    return Theorem4(gamma, hessian, smoothness, accuracy, float(start), dim * width, leading * math.log(inside) ** 4)


@dataclass(frozen=True)
class PrintedRun:
    """What Algorithm 1 does at W = 0 when it is called as Theorem 4 is printed: with ε, not with ε′.

    Attributes:
        settings: Algorithm 1's thresholds for ε.
        ratio: f(0)/ε, which is what it returns over what is promised, if it returns W = 0.
        length: No W_t is longer than this while it waits after its first perturbation, or infinite.
        gain: g(0) − g(W_t) is at most this while it waits, or infinite.
    """

    settings: DescentSettings
    ratio: float
    length: float
    gain: float

    @property
    def stays(self) -> bool:
        """Whether it is proven to return W = 0: no perturbation gains f_thres within t_thres steps."""
        return self.gain < self.settings.decrease


def theorem4_as_printed(
    angle: float | int, *, c: float | int = 1.0, delta: float | int = 0.1, epsilon: float | int = 0.5
) -> PrintedRun:
    """Follow Theorem 4's statement on two unit inputs at an angle θ, with labels 2 and −2, for d = 2 and r = 6.

    There f(0) = 1 and σ = ‖M(0)‖ = sin θ. A step of descent lengthens W by the factor 1 + η(‖M(W)‖ − γ) at most, with
    ‖M(W)‖ ≤ sin θ + ‖W‖², and g(W) ≥ g(0) − (sin θ − γ)‖W‖²/2. As θ falls, t_thres steps do not lengthen W any
    more: for every c there is an angle below which the point returned is W = 0, with f = ε·`ratio`.

    Args:
        angle: θ in radians, between 0 and π/2.
        c: The constant of Algorithm 1, at most 1.
        delta: The probability of failure δ, below 1.
        epsilon: The ε of the statement.

    Returns:
        A `PrintedRun`.

    Raises:
        InputError: If the angle is not between 0 and π/2, or a constant is out of range.

    >>> [theorem4_as_printed(c / 10, c=c).stays for c in (1.0, 1e-3, 1e-6)]
    [True, True, True]
    >>> theorem4_as_printed(0.1).ratio
    2.0
    """
    check_real("angle", angle)
    require(0 < angle < math.pi / 2, f"angle={angle:g}: expected an angle between 0 and π/2.")
    norm = math.sin(angle)
    chosen = theorem4(
        samples=2, dim=2, width=6, smallest=norm, radius=1.0, label=2.0, start=1.0, epsilon=epsilon, delta=delta
    )
    settings = algorithm1_settings(
        smoothness=chosen.smoothness,
        hessian=chosen.hessian,
        epsilon=epsilon,
        parameters=chosen.parameters,
        gap=2.0,
        c=c,
        delta=delta,
    )
    time, excess = settings.rate * settings.wait, max(norm - chosen.gamma, 0.0)
    length = math.inf if time * excess > 300 else settings.radius * math.exp(1 + time * excess)
    if time * length**2 > 1:  # then ‖W_t‖² may add more than the one e-fold that is allowed for
        length = math.inf
    return PrintedRun(settings, 1.0 / epsilon, length, 0.5 * excess * length**2 if excess else 0.0)
