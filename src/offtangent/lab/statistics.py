"""Intervals over seeds."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._errors import InputError


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes:
        value: The estimate.
        low: The lower end.
        high: The upper end.

    >>> f"{Interval(0.5, 0.25, 0.75):.2f}"
    '0.50 [0.25, 0.75]'
    """

    value: float
    low: float
    high: float

    def __format__(self, form: str) -> str:
        """The estimate and both ends, each in this form: `f"{interval:.2f}"` is "0.50 [0.45, 0.55]"."""
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]" if form else str(self)

    def widened(self, by: float) -> "Interval":
        """The interval with both ends moved outwards: what is exact to rounding may have one of no width."""
        return Interval(self.value, self.low - by, self.high + by)


def mean_interval(samples: Float[np.ndarray, "s"], *, level: float = 0.95) -> Interval:
    """Compute the mean over seeds with Student's confidence interval.

    It is x̄ ± t·s/√n with the quantile t of Student's distribution with n − 1 degrees of freedom. Time O(n).

    Args:
        samples: A number for each of n ≥ 2 seeds.
        level: The probability with which the interval covers the mean of normal samples.

    Returns:
        The mean and the ends of the interval.

    Raises:
        InputError: If there are fewer than two samples, which have no interval.

    >>> mean_interval(np.array([1.0, 2.0, 3.0]))
    Interval(value=2.0, low=-0.484..., high=4.484...)
    """
    samples = np.asarray(samples, np.float64)
    if len(samples) < 2:
        raise InputError(f"{len(samples)} sample(s): an interval over seeds needs at least two.")
    import scipy.special  # a third of a worker's start, if it were imported above

    mean = float(samples.mean())
    half = float(scipy.special.stdtrit(len(samples) - 1, 0.5 + level / 2) * samples.std(ddof=1) / len(samples) ** 0.5)
    return Interval(mean, mean - half, mean + half)


def error_interval(errors: Float[np.ndarray, "s"], *, level: float = 0.95) -> Interval:
    """Compute the mean over seeds of what cannot be negative, with Student's interval, which cannot be either.

    It is that of `mean_interval`, cut at zero.

    Args:
        errors: A number, zero or positive, for each of at least two seeds.
        level: The probability with which the interval covers the mean of normal samples.

    Returns:
        The mean and the ends of the interval, the lower one at least zero.

    Raises:
        InputError: If there are fewer than two samples.

    >>> error_interval(np.array([1.0, 2.0, 3.0]))
    Interval(value=2.0, low=0.0, high=4.484...)
    """
    found = mean_interval(errors, level=level)
    return Interval(found.value, max(found.low, 0.0), found.high)


def slope_interval(sizes: Float[np.ndarray, "k"], values: Float[np.ndarray, "s k"], *, level: float = 0.95) -> Interval:
    """Fit the exponent of a power law, value ~ size^slope, with Student's interval over seeds.

    For each seed a line is fitted to log value against log size by least squares. The result is the `mean_interval` of
    their slopes, which are rounded to twelve decimals. Time O(sk).

    Args:
        sizes: The k sizes, positive.
        values: The values, positive, a row for each of at least two seeds and a column for each size.
        level: The probability with which the interval covers the mean of normal slopes.

    Returns:
        The mean slope and the ends of the interval.

    Raises:
        InputError: If there are fewer than two seeds.

    >>> sizes = np.array([1.0, 10.0, 100.0])
    >>> slope_interval(sizes, np.stack([sizes**-0.5, 3 * sizes**-0.5])).value
    -0.5
    """
    x = np.log(np.asarray(sizes, np.float64))
    y = np.log(np.asarray(values, np.float64))
    slopes = (y - y.mean(axis=1, keepdims=True)) @ (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    return mean_interval(np.round(slopes, 12), level=level)


def ratio_interval(above: Float[np.ndarray, "s"], below: Float[np.ndarray, "t"], *, level: float = 0.95) -> Interval:
    """Compute the geometric mean of a ratio over seeds, with Student's interval of its logarithms.

    Seeds are compared one by one. Where one side has more of them, their geometric means are, with the interval of
    Welch and Satterthwaite. Time O(s + t).

    Args:
        above: The numerators, positive, one for each of at least two seeds.
        below: The denominators, the same; of as many seeds they are taken to be those of the same seeds.
        level: The probability with which the interval covers the mean of normal logarithms.

    Returns:
        The ratio and the ends of the interval.

    Raises:
        InputError: If a side has fewer than two seeds.

    >>> ratio_interval(np.array([2.0, 8.0]), np.array([1.0, 1.0])).value
    4.0
    >>> ratio_interval(np.array([2.0, 4.0, 8.0]), np.array([1.0, 1.0])).value
    4.0
    """
    first, second = (np.log(np.asarray(side, np.float64)) for side in (above, below))
    paired = len(first) == len(second)
    found = mean_interval(first - second, level=level) if paired else _welch(first, second, level)
    return Interval(*(float(np.exp(one)) for one in (found.value, found.low, found.high)))


def _welch(first: Float[np.ndarray, "s"], second: Float[np.ndarray, "t"], level: float) -> Interval:
    """The difference of two means, with the degrees of freedom of Welch and Satterthwaite."""
    sides = [mean_interval(side, level=level) for side in (first, second)]  # refuses a single sample
    import scipy.special

    squares = np.array([side.var(ddof=1) / len(side) for side in (first, second)])
    freedom = squares.sum() ** 2 / max(
        float((squares**2 / [len(first) - 1, len(second) - 1]).sum()), np.finfo(float).tiny
    )
    half = float(scipy.special.stdtrit(max(freedom, 1.0), 0.5 + level / 2) * np.sqrt(squares.sum()))
    value = sides[0].value - sides[1].value
    return Interval(value, value - half, value + half)


def fraction_interval(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Compute a success rate with Clopper and Pearson's exact interval.

    Its ends are quantiles of Beta distributions, so that it covers the probability at least as often as it says, also
    where no trial or every one succeeded. Time O(1).

    Args:
        successes: How many trials succeeded.
        trials: How many there were.
        level: The least probability with which the interval covers the true rate.

    Returns:
        The rate and the ends of the interval.

    Raises:
        InputError: If there are no trials, or more successes than trials.

    >>> fraction_interval(20, 20)
    Interval(value=1.0, low=0.831..., high=1.0)
    """
    if not 0 <= successes <= trials or trials < 1:
        raise InputError(f"{successes} successes in {trials} trials: there must be at least one trial.")
    import scipy.special

    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(scipy.special.betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(scipy.special.betaincinv(successes + 1, trials - successes, 1 - tail))
    return Interval(successes / trials, low, high)
