"""What an infinitely wide network outputs at any input, after any number of gradient steps.

Under its tangent kernel Θ, gradient descent on ½‖y − u‖² from output zero with learning rate η gives after t steps

    f_t(x) = Θ(x, X) φ_t(Θ) y,      φ_t(λ) = (1 − (1 − ηλ)^t) / λ,

the discrete form of Lee et al. (2019), Section 2.2; at the training inputs it is eq. (7) of Arora et al. (2019).
Networks differ by their initial outputs, in the limit a Gaussian process with the conjugate (NNGP) kernel K. Trained
for t steps, their outputs have mean f_t and, with A = Θ(x, X) φ_t(Θ), the variance

    K(x, x) + A K(X, X) Aᵀ − 2 A K(X, x).
"""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.sparse.linalg
from jaxtyping import Float, Num

from offtangent._checks import check_inputs, check_real, require
from offtangent._errors import InputError
from offtangent.kernels.regression import AT_ONCE, check_targets
from offtangent.kernels.solvable import Kernel
from offtangent.kernels.solves import exact_matrix
from offtangent.linalg import Spectrum
from offtangent.linalg.krylov import lanczos
from offtangent.theory.arora.dynamics import check_rate, largest_stable_rate

FEW_ROWS = 1000  # up to which all eigenpairs cost less than to iterate
CHECKS = (25, 50, 100, 200, 400)  # numbers of products after which they are compared
CLOSE = 1e-8  # the change, from one check to the next, that is small enough


@dataclass(frozen=True, eq=False)
class Predicted:
    """Outputs at p inputs after each number of steps."""

    steps: Float[np.ndarray, " t"]
    mean: Float[np.ndarray, "t p *k"]
    variance: Float[np.ndarray, "t p"] | None  # over initialisations, of every output; None without a conjugate


@dataclass(frozen=True, eq=False, repr=False)
class Descent:
    """Gradient descent on given samples, solved for every input and every number of steps."""

    kernel: Kernel  # the tangent kernel Θ
    conjugate: Kernel | None  # the NNGP kernel of the initial outputs
    X: Float[np.ndarray, "n d"]
    Y: Float[np.ndarray, "n *k"]
    rate: float
    matrix: Float[np.ndarray, "n n"]  # Θ(X, X)

    def predict(self, X_new: object, steps: Num[np.ndarray, " t"] | float | int) -> Predicted:
        """Mean and variance at new inputs (or at the old ones) after `steps`: whole numbers, or np.inf for the end.

        φ_t(Θ)y comes from a few hundred products with Θ where they say it to 10⁻⁸, and else, or once they are known,
        from all eigenpairs. Inputs are taken a block at a time. Time O(pn(d + tk)), with a conjugate kernel
        O(pn(d + tn)); memory 256 MB and the result.
        """
        inputs, times = check_inputs(X_new), _check_steps(steps)
        require(
            inputs.shape[1] == self.X.shape[1],
            f"X_new has {inputs.shape[1]} features, and training had {self.X.shape[1]}.",
        )
        trained = self._trained(times)
        rows = max(1, AT_ONCE // len(self.X))
        blocks = [inputs[start : start + rows] for start in range(0, len(inputs), rows)]
        mean = np.concatenate([self.kernel.exact(block, self.X) @ trained for block in blocks])
        mean = np.moveaxis(mean.reshape(len(inputs), len(times), *self.Y.shape[1:]), 1, 0)
        if self.conjugate is None:
            return Predicted(times, mean, None)
        gains = [self._gain(t, self.spectrum.values) for t in times]
        return Predicted(times, mean, np.concatenate([self._variance(block, gains) for block in blocks], axis=1))

    def _trained(self, times: Float[np.ndarray, " t"]) -> Float[np.ndarray, "n tk"]:
        """φ_t(Θ)y, of every number of steps and every output."""
        Y = self.Y.reshape(len(self.Y), -1)
        if (
            len(Y) > FEW_ROWS
            and "spectrum" not in self.__dict__
            and self.conjugate is None
            and np.isfinite(times).all()
        ):
            found = self._by_products(Y, times)
            if found is not None:
                return found
        V = self.spectrum.vectors
        along = V.T @ Y
        return np.hstack([V @ (self._gain(t, self.spectrum.values)[:, None] * along) for t in times])

    def _by_products(
        self, Y: Float[np.ndarray, "n k"], times: Float[np.ndarray, " t"]
    ) -> Float[np.ndarray, "n tk"] | None:
        """By Lanczos, when doubling the number of products changes less than 10⁻⁸ of it; None if that never comes."""
        before: list[np.ndarray] | None = None
        for m, krylov in enumerate(lanczos(lambda v: self.matrix @ v, Y, CHECKS[-1]), start=1):
            if m not in CHECKS:
                continue
            now = [krylov.coordinates(partial(self._gain, t)) for t in times]
            if before is not None and all(map(_close, before, now)):
                return np.hstack([krylov.apply(partial(self._gain, t)) for t in times])
            before = now
        return None

    def _variance(
        self, inputs: Float[np.ndarray, "p d"], gains: list[Float[np.ndarray, " n"]]
    ) -> Float[np.ndarray, "t p"]:
        assert self.conjugate is not None
        V = self.spectrum.vectors
        start = np.asarray(self.conjugate.diag(inputs), np.float64)
        seen, cross = self.kernel.exact(inputs, self.X) @ V, self.conjugate.exact(inputs, self.X) @ V
        variance = np.empty((len(gains), len(inputs)))
        for at, gain in enumerate(gains):
            A = seen * gain
            variance[at] = start + np.einsum("pn,pn->p", A @ self._initial - 2 * cross, A)
        return np.maximum(variance, 0.0)  # at the end of training it is zero at the samples, up to rounding

    @cached_property
    def spectrum(self) -> Spectrum:
        """All eigenpairs of Θ(X, X). Time O(n³), memory 3n² floats."""
        return Spectrum.of(self.matrix)

    @cached_property
    def _initial(self) -> Float[np.ndarray, "n n"]:
        """K(X, X) in the eigenbasis of Θ(X, X)."""
        assert self.conjugate is not None
        V = self.spectrum.vectors
        return V.T @ (exact_matrix(self.conjugate, self.X) @ V)

    def _gain(self, t: float, values: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
        """φ_t of each value; ηt for those that are zero up to rounding, and nothing at the end of time."""
        zero = values <= len(self.X) * np.finfo(np.float64).eps * np.abs(values).max()
        safe = np.where(zero, 1.0, values)
        if np.isinf(t):
            return np.where(zero, 0.0, 1 / safe)
        x = 1 - self.rate * safe
        with np.errstate(divide="ignore", invalid="ignore"):
            decay = np.where(x > 0, np.expm1(t * np.log1p(-self.rate * safe)), np.abs(x) ** t * (-1) ** (t % 2) - 1)
        return np.where(zero, self.rate * t, -decay / safe)

    def __repr__(self) -> str:
        return f"Descent({self.kernel.name}, {len(self.X)} samples, rate={self.rate:g})"


def gradient_descent(
    kernel: Kernel, X: object, Y: object, *, rate: float | None = None, conjugate: Kernel | None = None
) -> Descent:
    """Gradient descent under the tangent kernel from the samples (X, Y); by default at the rate 1/λ_max.

    Give `conjugate`, the NNGP kernel that belongs to the tangent kernel (`relu_output` to `relu_hidden`), to know the
    variance over initialisations too. Time O(n²d) and memory n² floats, once, beside what predictions take.

    >>> from offtangent.kernels import relu_hidden
    >>> descent = gradient_descent(relu_hidden, np.eye(2), [1.0, -1.0], rate=1.0)
    >>> descent.predict(np.eye(2), np.array([0, 1, 2])).mean
    array([[ 0.  ,  0.  ],
           [ 0.5 , -0.5 ],
           [ 0.75, -0.75]])
    """
    check_real("rate", 1.0 if rate is None else rate)
    inputs = check_inputs(X)
    targets = check_targets(Y, len(inputs))
    matrix = exact_matrix(kernel, inputs)
    top = _largest(matrix)
    chosen = largest_stable_rate(top) / 2 if rate is None else float(rate)
    check_rate(top, chosen)
    return Descent(kernel, conjugate, inputs, targets, chosen, matrix)


def _largest(matrix: Float[np.ndarray, "n n"]) -> Spectrum:
    if len(matrix) <= FEW_ROWS:
        return Spectrum.of(matrix, 1)
    start = np.random.default_rng(0).standard_normal(len(matrix))
    return Spectrum(*scipy.sparse.linalg.eigsh(matrix, 1, v0=start))


def _close(before: Float[np.ndarray, "r k"], now: Float[np.ndarray, "s k"]) -> bool:
    change = now.copy()
    change[: len(before)] -= before
    return bool((np.linalg.norm(change, axis=0) <= CLOSE * np.linalg.norm(now, axis=0)).all())


def _check_steps(steps: Num[np.ndarray, " t"] | float | int) -> Float[np.ndarray, " t"]:
    times = np.atleast_1d(np.asarray(steps, np.float64))
    whole = (times >= 0) & ((times == np.floor(times)) | np.isinf(times))
    if not whole.all():
        raise InputError(f"steps holds {times[~whole][0]:g}: numbers of steps are whole, 0 or more, or np.inf.")
    return times
