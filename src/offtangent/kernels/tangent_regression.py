"""Ridge regression with the tangent kernel: what the linearised network becomes when it is trained to the end."""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from offtangent._checks import check_finite
from offtangent.kernels.blocks import arrays
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.passes import outputs, pulled, pushed
from offtangent.kernels.regression import LeaveOneOut
from offtangent.kernels.tangent import Method, TangentKernel, shaped
from offtangent.taylor.checks import check_outputs


@dataclass(frozen=True, eq=False, repr=False)
class TangentRegression:
    """A fitted regression: `predict` for new inputs, `leave_one_out` for the old ones.

    Attributes:
        kernel: The tangent kernel of the training inputs, with the ridge.
        Y: The labels.
        start: What the network gives before it is fitted, f(X).
        coefficients: α = (K + ridge·I)⁻¹(Y − f(X)), shaped like the labels.
        residual: ‖Y − f(X) − (K + ridge·I)α‖ / ‖Y − f(X)‖.
        method: How α was found.
    """

    kernel: TangentKernel
    Y: Float[np.ndarray, "n *k"]
    start: Float[np.ndarray, "n *k"]
    coefficients: Float[np.ndarray, "n *k"]
    residual: float
    method: str

    @classmethod
    def of(cls, K: TangentKernel, Y: object, tolerance: float, method: Method | None) -> "TangentRegression":
        """Fit labels, as `TangentKernel.fit` has it."""
        labels = shaped(Y, "Y", K)
        start = np.asarray(outputs(K.f, K.params, K.X), np.float64)
        found = K.solve(labels - start, tolerance=tolerance, method=method)
        return cls(K, labels, start, found.value, found.residual, found.method)

    @cached_property
    def displacement(self) -> PyTree:
        """θ − params = J(X)ᵀα, an array for each leaf of floating-point numbers: where the training would end."""
        K = self.kernel
        return pulled(K.f, K.params, K.X, jnp.asarray(self.coefficients))

    def predict(self, X_new: PyTree) -> Float[np.ndarray, "p *k"]:
        """Predict f(x) + k(x, X)α, as f(x) + J(x)(θ − params): one forward pass for each new input, no kernel at all.

        Args:
            X_new: New inputs, in the form of X.

        Returns:
            The linearised network's outputs, shaped like f's.

        Raises:
            InputError: If f fails on X_new, or if there are NaN among it.
        """
        K, new = self.kernel, arrays(X_new)
        check_finite(new, "The inputs")
        check_outputs(K.f, K.params, new)
        moved = pushed(K.f, K.params, new, self.displacement)
        return np.asarray(outputs(K.f, K.params, new), np.float64) + np.asarray(moved, np.float64)

    @cached_property
    def leave_one_out(self) -> Float[np.ndarray, "n *k"]:
        """What each sample's labels are predicted to be from all the others, in closed form.

        With G = (K + ridge·I)⁻¹ and G_ii its k × k block of sample i, yᵢ − prediction = G_ii⁻¹αᵢ. Time (nk)³, memory
        3(nk)² floats, once.
        """
        n, size = len(self.kernel), self.kernel.shape[0]
        k = size // n
        inverse = Inverse.of(self.kernel._flat.dense())
        if k == 1:
            told = LeaveOneOut.of(inverse, (self.Y - self.start).reshape(n))
            return self.start + told.predictions.reshape(self.Y.shape)
        blocks = np.stack([inverse.lower[at : at + k, at : at + k] for at in range(0, size, k)])
        blocks = blocks + np.tril(blocks, -1).swapaxes(1, 2)
        exact = (inverse @ (self.Y - self.start).reshape(size, 1)).reshape(n, k, 1)
        return self.Y - np.linalg.solve(blocks, exact).reshape(self.Y.shape)

    def __repr__(self) -> str:
        return f"TangentRegression({self.kernel!r})"
