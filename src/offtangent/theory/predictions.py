"""What an infinitely wide network outputs at any input, after any number of gradient steps.

Under its tangent kernel Θ, gradient descent on ½‖y − u‖² from output zero with learning rate η gives after t steps

    f_t(x) = Θ(x, X) φ_t(Θ) y,      φ_t(λ) = (1 − (1 − ηλ)^t) / λ,

the discrete form of Lee et al. (2019), Section 2.2; at the training inputs it is eq. (7) of Arora et al. (2019).
Networks differ by their initial outputs, in the limit a Gaussian process with the conjugate (NNGP) kernel K. Trained
for t steps, their outputs have mean f_t and, with A = Θ(x, X) φ_t(Θ), the variance

    K(x, x) + A K(X, X) Aᵀ − 2 A K(X, x).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Num

from offtangent._errors import InputError
from offtangent.data.checks import check_inputs
from offtangent.kernels import Kernel
from offtangent.kernels.regression import AT_ONCE, check_targets
from offtangent.linalg import Spectrum
from offtangent.theory.dynamics import check_rate, largest_stable_rate


@dataclass(frozen=True, eq=False)
class Predicted:
    """Outputs at p inputs after each number of steps."""

    steps: Float[np.ndarray, " t"]
    mean: Float[np.ndarray, "t p *k"]
    variance: Float[np.ndarray, "t p"] | None  # over initialisations, of every output; None without a conjugate


@dataclass(frozen=True, eq=False, repr=False)
class Descent:
    """Gradient descent on given samples, solved once for every input and every number of steps."""

    kernel: Kernel  # the tangent kernel Θ
    conjugate: Kernel | None  # the NNGP kernel of the initial outputs
    X: Float[np.ndarray, "n d"]
    Y: Float[np.ndarray, "n *k"]
    rate: float
    spectrum: Spectrum

    def predict(self, X_new: object, steps: Num[np.ndarray, " t"] | float | int) -> Predicted:
        """Mean and variance at new inputs (or at the old ones) after `steps`: whole numbers, or np.inf for the end.

        A block of inputs at a time. Time O(pn(d + tk)), with a conjugate kernel O(pn(d + tn)); memory 256 MB and the
        result.
        """
        inputs, times = check_inputs(X_new), _check_steps(steps)
        if inputs.shape[1] != self.X.shape[1]:
            raise InputError(f"X_new has {inputs.shape[1]} features, and training had {self.X.shape[1]}.")
        gains = self._gains(times)
        rows = max(1, AT_ONCE // len(self.X))
        parts = [self._block(inputs[start : start + rows], gains) for start in range(0, len(inputs), rows)]
        mean = np.concatenate([mean for mean, _ in parts], axis=1).reshape(len(times), len(inputs), *self.Y.shape[1:])
        variances = [variance for _, variance in parts if variance is not None]
        return Predicted(times, mean, np.concatenate(variances, axis=1) if variances else None)

    def _block(
        self, inputs: Float[np.ndarray, "p d"], gains: Float[np.ndarray, "t n"]
    ) -> tuple[Float[np.ndarray, "t p k"], Float[np.ndarray, "t p"] | None]:
        V = self.spectrum.vectors
        seen = self.kernel.exact(inputs, self.X) @ V  # Θ(x, X) in the eigenbasis of Θ(X, X)
        mean = np.stack([seen @ (gain[:, None] * self._along) for gain in gains])
        if self.conjugate is None:
            return mean, None
        start = np.asarray(self.conjugate.diag(inputs), np.float64)
        cross = self.conjugate.exact(inputs, self.X) @ V
        variance = np.empty((len(gains), len(inputs)))
        for at, gain in enumerate(gains):
            A = seen * gain
            variance[at] = start + np.einsum("pn,pn->p", A @ self._initial - 2 * cross, A)
        return mean, np.maximum(variance, 0.0)  # at the end of training it is zero at the samples, up to rounding

    @cached_property
    def _along(self) -> Float[np.ndarray, "n k"]:
        return self.spectrum.vectors.T @ self.Y.reshape(len(self.Y), -1)

    @cached_property
    def _initial(self) -> Float[np.ndarray, "n n"]:
        """K(X, X) in the eigenbasis of Θ(X, X)."""
        assert self.conjugate is not None
        V = self.spectrum.vectors
        return V.T @ (self.conjugate.exact(self.X) @ V)

    def _gains(self, steps: Float[np.ndarray, " t"]) -> Float[np.ndarray, "t n"]:
        """φ_t of every eigenvalue; ηt for those that are zero up to rounding, and nothing at the end of time."""
        values = self.spectrum.values
        zero = values <= len(values) * np.finfo(np.float64).eps * values[0]
        safe = np.where(zero, 1.0, values)
        x = 1 - self.rate * safe
        gains = np.empty((len(steps), len(values)))
        for at, t in enumerate(steps):
            if np.isinf(t):
                gains[at] = np.where(zero, 0.0, 1 / safe)
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                decay = np.where(x > 0, np.expm1(t * np.log1p(-self.rate * safe)), np.abs(x) ** t * (-1) ** (t % 2) - 1)
            gains[at] = np.where(zero, self.rate * t, -decay / safe)
        return gains

    def __repr__(self) -> str:
        return f"Descent({self.kernel.name}, {len(self.X)} samples, rate={self.rate:g})"


def gradient_descent(
    kernel: Kernel, X: object, Y: object, *, rate: float | None = None, conjugate: Kernel | None = None
) -> Descent:
    """Gradient descent under the tangent kernel from the samples (X, Y); by default at the rate 1/λ_max.

    Give `conjugate`, the NNGP kernel that belongs to the tangent kernel (`relu_output` to `relu_hidden`), to know the
    variance over initialisations too. Time O(n³) and memory 3n² floats, once.

    >>> from offtangent.kernels import relu_hidden
    >>> descent = gradient_descent(relu_hidden, np.eye(2), [1.0, -1.0], rate=1.0)
    >>> descent.predict(np.eye(2), np.array([0, 1, 2])).mean
    array([[ 0.  ,  0.  ],
           [ 0.5 , -0.5 ],
           [ 0.75, -0.75]])
    """
    inputs = check_inputs(X)
    targets = check_targets(Y, len(inputs))
    spectrum = Spectrum.of(kernel.exact(inputs))
    chosen = largest_stable_rate(spectrum) / 2 if rate is None else float(rate)
    check_rate(spectrum, chosen)
    return Descent(kernel, conjugate, inputs, targets, chosen, spectrum)


def _check_steps(steps: Num[np.ndarray, " t"] | float | int) -> Float[np.ndarray, " t"]:
    times = np.atleast_1d(np.asarray(steps, np.float64))
    whole = (times >= 0) & ((times == np.floor(times)) | np.isinf(times))
    if not whole.all():
        raise InputError(f"steps holds {times[~whole][0]:g}: numbers of steps are whole, 0 or more, or np.inf.")
    return times
