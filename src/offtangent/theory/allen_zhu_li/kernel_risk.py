"""The error of a kernel regression on the cube over all 2^d corners, exactly and without listing them.

For f_i = Σ_j β_{ij} K(·, x_j) with K(x, y) = Σ_S λ_S² χ_S(x) χ_S(y), the coefficient of χ_S in f_i is
λ_S² Σ_j χ_S(x_j) β_{ij}, and E f_i² = β_iᵀ K² β_i with K²(x, y) = Σ_S λ_S⁴ χ_S(x) χ_S(y). So against the target of
Theorem 2 (Allen-Zhu & Li 2019), x_{j_i} + αΠ_l x_{j_l}, two coefficients and one quadratic form suffice, as in the
proof of Lemma E.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent._arguments import check_coordinates
from offtangent._checks import check_magnitude, check_numbers, require
from offtangent._errors import InputError
from offtangent.kernels.cube import CubeKernel
from offtangent.special.boolean import character, signs
from offtangent.theory.allen_zhu_li.kernel_limits import check_alpha, check_sizes


@dataclass(frozen=True, eq=False)
class ProductRisk:
    """E(f_i − H_i)² of every output, in three parts that add up."""

    base: Float[np.ndarray, "*paths k"]  # of F: (E[f_i x_{j_i}] − 1)²
    composite: Float[np.ndarray, "*paths k"]  # of αG(F): (E[f_i Π_l x_{j_l}] − α)²
    rest: Float[np.ndarray, "*paths k"]  # what f_i has elsewhere

    @property
    def outputs(self) -> Float[np.ndarray, "*paths k"]:
        return self.base + self.composite + self.rest

    @property
    def total(self) -> Float[np.ndarray, "*paths"]:
        """E‖f − H‖², the sum over outputs: what Theorem 2 bounds from below."""
        return np.asarray(self.outputs.sum(axis=-1))


def product_risk(
    kernel: object, X: object, beta: Float[np.ndarray, "*paths n k"], coordinates: Sequence[int], alpha: float | int
) -> ProductRisk:
    """The error of f = Σ_j β_j K(·, x_j) on the target of Theorem 2 with S* = `coordinates`, K a `CubeKernel`.

    Several β at once share one matrix. Time O(n²(d + k)), memory 3n².

    >>> from offtangent.kernels.correlation import linear_plus_power
    >>> X = np.array([[1.0, 1.0, 1.0]])
    >>> risk = product_risk(CubeKernel.of(linear_plus_power(2), 3), X, np.zeros((1, 2)), (0, 1), 0.5)
    >>> risk.outputs, risk.total
    (array([1.25, 1.25]), array(2.5))
    """
    corners, chosen = signs(X), tuple(coordinates)
    if not isinstance(kernel, CubeKernel):
        raise InputError(
            f"kernel is {kernel!r}, of type {type(kernel).__name__}: expected its table on the cube, "
            f"kernels.cube.CubeKernel.of(kernel, {corners.shape[1]})."
        )
    require(
        kernel.dim == corners.shape[1],
        f"{kernel.name} is a table for {kernel.dim} dimensions, and X has {corners.shape[1]} columns.",
    )
    check_sizes(corners.shape[1], len(chosen))
    check_coordinates(f"coordinates={chosen}", chosen, corners.shape[1])
    check_alpha(alpha)
    beta = check_numbers(beta, "beta")
    require(
        beta.shape[-2:] == (len(corners), len(chosen)),
        f"beta has shape {beta.shape}: expected ({len(corners)}, {len(chosen)}), an output for each.",
    )
    require(
        np.isfinite(beta).all(),
        "beta has entries that are NaN or infinite: give the coefficients of a regression that ended.",
    )
    check_magnitude(3, beta=beta)
    squares = kernel.spectrum.squares
    base = squares[1] * np.einsum("nk,...nk->...k", corners[:, chosen], beta)
    product = squares[len(chosen)] * np.einsum("n,...nk->...k", character(chosen, corners), beta)
    energy = np.einsum("...nk,...nk->...k", beta, kernel.squared.exact(corners) @ beta)
    return ProductRisk((base - 1) ** 2, (product - alpha) ** 2, np.maximum(energy - base**2 - product**2, 0.0))
