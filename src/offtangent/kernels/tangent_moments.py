"""How large a tangent kernel is, how many directions it has, and how it is aligned with labels, without the matrix."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent._checks import require
from offtangent.kernels.tangent import TangentKernel, shaped
from offtangent.linalg.stochastic import Estimate, moments


@dataclass(frozen=True)
class TangentMoments:
    """Estimates by Hutch++, each with its standard error.

    Attributes:
        trace: tr K, the sum of ‖∂f_j(x)‖² over samples and outputs.
        frobenius: ‖K‖_F.
        effective_rank: (tr K)²/‖K‖_F²: how many directions of one size would have this trace and this norm.
        alignment: ⟨K, YYᵀ⟩/(‖K‖_F ‖Y‖²) with the labels, or None without.
    """

    trace: Estimate
    frobenius: Estimate
    effective_rank: Estimate
    alignment: Estimate | None

    @classmethod
    def of(cls, K: TangentKernel, Y: object, products: int, key: Key[Array, ""]) -> "TangentMoments":
        """Estimate, as `TangentKernel.moments` has it."""
        labels = None if Y is None else shaped(Y, "Y", K)
        require(labels is None or labels.any(), "Y is zero: no kernel is aligned with it.")
        plain = K.with_ridge(0.0)

        def product(v: Float[np.ndarray, "nk c"]) -> Float[np.ndarray, "nk c"]:
            columns = [np.asarray(plain @ jnp.asarray(one.reshape(K.outputs)), np.float64).ravel() for one in v.T]
            return np.stack(columns, axis=1)

        found = moments(product, K.shape[0], products=products, key=key)
        aligned = None
        if labels is not None:
            y = labels.ravel() / np.linalg.norm(labels)
            aligned = found.alignment(float(y @ product(y[:, None])[:, 0]))
        return cls(found.trace, found.frobenius, found.effective_rank, aligned)
