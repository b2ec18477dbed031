"""Kernels of ⟨x, y⟩ on the corners of a cube: a table of d + 1 numbers, and λ_S that depends on |S| alone."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_count, check_finite, require
from offtangent._errors import InputError
from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.correlation import correlation_kernel
from offtangent.special.boolean import (
    CubeSpectrum,
    cube_spectrum,
    cube_values,
    hamming,
    krawtchouks,
)


@dataclass(frozen=True, eq=False)
class CubeKernel:
    """A kernel on corners {±a}^d as a table over Hamming distances: a `Kernel`, with its spectrum.

    >>> from offtangent.kernels.correlation import linear_plus_power
    >>> kernel = CubeKernel.of(linear_plus_power(2), 4)
    >>> kernel.values.round(12), kernel.spectrum.energies[:3].round(12)  # u + u², u = 1 − t/2; E u² = 1/4
    (array([ 2. , 0.75, 0. , -0.25, 0. ]), array([0.25, 1.  , 0.75]))
    """

    name: str
    values: Float[np.ndarray, " distances"] = field(repr=False)  # κ at Hamming distances 0, …, d

    @classmethod
    def of(cls, kernel: object, dim: int) -> "CubeKernel":
        """A kernel on {±1/√dim}^dim, where inputs have length 1; a name is that of a correlation kernel. Time O(dim²).

        >>> CubeKernel.of("u + u²", 4).name
        'linear_plus_power(2)'
        """
        check_count("dim", dim)
        found = correlation_kernel(kernel)
        require(
            isinstance(found, AngularKernel),
            f"{found.name} is no kernel of lengths and angle: a table over distances cannot hold it. Its "
            "coefficients are those of cube_coefficients(kernel, dim).",
        )
        rows = np.where(np.arange(dim) < np.arange(dim + 1)[:, None], -1.0, 1.0) / math.sqrt(dim)
        return cls(found.name, found.exact(rows[:1], rows)[0])

    @property
    def dim(self) -> int:
        return len(self.values) - 1

    @cached_property
    def spectrum(self) -> CubeSpectrum:
        """λ_s², s = 0, …, d. Time O(d²), once."""
        return cube_spectrum(self.values)

    @cached_property
    def squared(self) -> "CubeKernel":
        """Σ_S λ_S⁴ χ_S(x) χ_S(y) = E_z[K(x, z) K(z, y)], the kernel of the squared integral operator."""
        return CubeKernel(f"{self.name}²", cube_values(self.spectrum.squares**2))

    def __call__(self, X1: Float[Array, "p d"], X2: Float[Array, "q d"], /) -> Float[Array, "p q"]:
        """K(X1, X2), jittable. Time O(pqd)."""
        for X in (X1, X2):
            require(jnp.shape(X)[1:] == (self.dim,), f"X has shape {jnp.shape(X)}: expected rows of {self.dim} signs.")
        check_finite((X1, X2), "The corners")
        agreement = jnp.matmul(jnp.sign(X1), jnp.sign(X2).T, precision="highest")
        return jnp.asarray(self.values, jnp.result_type(X1, 1.0))[((self.dim - agreement) / 2).astype(int)]

    def diag(self, X: Any, /) -> Any:
        xp = np if isinstance(X, np.ndarray) else jnp
        return xp.full(len(X), self.values[0], xp.result_type(X, 1.0))

    def exact(
        self, X1: Float[np.ndarray, "p d"], X2: Float[np.ndarray, "q d"] | None = None, /
    ) -> Float[np.ndarray, "p q"]:
        """K(X1, X2) in float64. Time O(pqd)."""
        if np.shape(X1)[1] != self.dim:
            raise InputError(f"X has {np.shape(X1)[1]} columns: {self.name} is a table for {self.dim} dimensions.")
        return self.values[hamming(X1, X2)]

    def degree_norms(
        self, X: Float[np.ndarray, "n d"], beta: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "degrees k"]:
        """Σ_{|S|=s} u_{i,S}² of f_i = Σ_j β_{ij} K(·, x_j), for all sizes s: λ_s² β_iᵀ K_s β_i.

        Their sum over s is ‖β_i‖_K². Time O(n²(d + k)), memory 2n².
        """
        # β_iᵀ K_s(t) β_i needs only how much of β_i ⊗ β_i lies at each distance.
        distances = hamming(X)
        at_distance = np.stack(
            [
                np.bincount(distances.ravel(), np.outer(column, column).ravel(), minlength=self.dim + 1)
                for column in beta.T
            ],
            axis=1,
        )
        return self.spectrum.squares[:, None] * (krawtchouks(self.dim).astype(np.float64) @ at_distance)
