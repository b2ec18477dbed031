r"""Symmetric tensors of order p on R^d by their D_d^p = C(p + d − 1, p) different entries, and Gaussian polynomials.

Ge, Wang & Zhao (2019), Appendix E.1. With s_i, i ∈ I_d^p, the sum of the different permutations of
e_1^{⊗i_1} ⊗ … ⊗ e_d^{⊗i_d}, a symmetric tensor is M = Σ_i M_i s_i. Its reduced vectorised form φ_d^p(M) = (M_i) holds
one entry for each multi-index i, and ‖M‖_rv = ‖φ_d^p(M)‖₂. As ‖s_i‖₂² = p!/Πi_j!, the coordinates √(p!/Πi_j!) M_i keep
lengths and inner products: they are called isometric here. For x^{⊗p} the entries are monomials; d^p are never formed.

⟨M, x^{⊗p}⟩ is a homogeneous polynomial with coefficients f_i^M = (p!/Πi_j!) M_i. (The proof of Lemma 9 says that they
are M_i; the lemma gains from the difference.) In the normalised Hermite basis H_i(x) = Π_j H_{i_j}(x_j), orthonormal
for x ~ N(0, I), its variance is the sum of squares of all coefficients but the first (Proposition 5).
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from offtangent._arguments import check_not_negative
from offtangent._checks import check_bound, check_count, check_inputs, check_magnitude, require
from offtangent._errors import InputError
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.special.hermite_polynomials import hermite_times
from offtangent.theory.ge_wang_zhao.monomials import (
    exponents,
    exponents_up_to,
    letters,
    permutations,
    positions,
    product_places,
)


def reduced_power(X: object, power: int) -> Float[np.ndarray, "n D"]:
    """φ_d^p(x^{⊗p}) for every row x: its monomials of degree p. Time and memory O(npD).

    >>> reduced_power([[2.0, 3.0]], 2)
    array([[4., 6., 9.]])
    """
    inputs = check_inputs(X)
    check_count("power", power)
    chosen = letters(inputs.shape[1], power)
    product = inputs[:, chosen[:, 0]]
    for column in range(1, power):
        product = product * inputs[:, chosen[:, column]]
    return product


def isometric_power(X: object, power: int) -> Float[np.ndarray, "n D"]:
    """x^{⊗p} in isometric coordinates: inner products are (xᵀy)^p, singular values those of the d^p × n matrix.

    >>> a, b = isometric_power([[2.0, 3.0], [1.0, -1.0]], 3)
    >>> round(float(a @ b), 12)  # (2 − 3)³
    -1.0
    """
    inputs = check_inputs(X)
    return reduced_power(inputs, power) * np.sqrt(permutations(inputs.shape[1], power))


@dataclass(frozen=True, eq=False)
class SymmetricTensor:
    """M ∈ X_d^p by its reduced vectorised form.

    >>> M = SymmetricTensor.of([[1.0, 2.0], [2.0, 5.0]])
    >>> M.coefficients, M.norm**2, M.rv_norm**2
    (array([1., 2., 5.]), 34.0..., 30.0...)
    >>> M([[1.0, 1.0]])  # xᵀMx
    array([10.])
    """

    coefficients: Float[np.ndarray, "D"]
    dim: int
    power: int

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_count("power", self.power)
        values = np.asarray(self.coefficients, np.float64)
        if values.shape != (symmetric_dimension(self.dim, self.power),):
            raise InputError(
                f"coefficients have shape {values.shape}: a symmetric tensor of order {self.power} on R^{self.dim} has "
                f"{symmetric_dimension(self.dim, self.power)} of them, in the order of multi_indices(dim, power)."
            )
        require(np.isfinite(values).all(), "coefficients must be finite numbers.")
        object.__setattr__(self, "coefficients", values)

    @classmethod
    def of(cls, tensor: object) -> "SymmetricTensor":
        """Φ_d^p of a tensor of shape (d, …, d), which must be symmetric."""
        array = np.asarray(tensor, np.float64)
        require(
            array.ndim >= 1 and len(set(array.shape)) == 1 and array.size,
            f"the tensor has shape {array.shape}: expected (d, …, d), as many times as its order.",
        )
        scale = float(np.abs(array).max())
        for axis in range(array.ndim - 1):  # neighbouring transpositions make all permutations
            if not np.allclose(array, array.swapaxes(axis, axis + 1), rtol=0, atol=1e-12 * scale):
                raise InputError(
                    f"the tensor is not symmetric in its axes {axis} and {axis + 1}: give its mean over permutations."
                )
        dim, power = array.shape[0], array.ndim
        return cls(array[tuple(letters(dim, power).T)], dim, power)

    @classmethod
    def from_isometric(cls, values: object, dim: int, power: int) -> "SymmetricTensor":
        """The tensor with these isometric coordinates: of length ‖values‖₂."""
        check_count("dim", dim)
        check_count("power", power)
        given = np.asarray(values, np.float64)
        roots = np.sqrt(permutations(dim, power))
        require(given.shape == roots.shape, f"values have shape {given.shape}: expected ({len(roots)},).")
        return cls(given / roots, dim, power)

    @property
    def isometric(self) -> Float[np.ndarray, "D"]:
        return self.coefficients * np.sqrt(permutations(self.dim, self.power))

    @property
    def polynomial(self) -> Float[np.ndarray, "D"]:
        """f_i^M, the coefficients of ⟨M, x^{⊗p}⟩ at the monomials x^i."""
        return self.coefficients * permutations(self.dim, self.power)

    @property
    def rv_norm(self) -> float:
        """‖M‖_rv, between ‖M‖₂/√p! (Lemma 6) and ‖M‖₂."""
        return float(np.linalg.norm(self.coefficients))

    @property
    def norm(self) -> float:
        """‖M‖₂, over all d^p entries."""
        return float(np.linalg.norm(self.isometric))

    def __call__(self, X: object) -> Float[np.ndarray, "n"]:
        """⟨M, x^{⊗p}⟩ for every row."""
        return reduced_power(X, self.power) @ self.polynomial

    def dense(self) -> Float[np.ndarray, "..."]:
        """All d^p entries."""
        grid = np.stack(np.meshgrid(*[np.arange(self.dim)] * self.power, indexing="ij"), axis=-1)
        return self.coefficients[positions(np.sort(grid, axis=-1), self.dim)]


def symmetric_product(A: SymmetricTensor, B: SymmetricTensor) -> SymmetricTensor:
    """Proj(A ⊗ B) onto the symmetric tensors of order p + q: the product of the two polynomials.

    >>> e = SymmetricTensor.of([1.0, 0.0]), SymmetricTensor.of([0.0, 1.0])
    >>> symmetric_product(*e).dense()
    array([[0. , 0.5], [0.5, 0. ]])
    """
    require(A.dim == B.dim, f"the tensors are on R^{A.dim} and R^{B.dim}: expected one dimension for both.")
    product = multiply(A.polynomial[None], B.polynomial[None], A.dim, A.power, B.power)[0]
    power = A.power + B.power
    return SymmetricTensor(product / permutations(A.dim, power), A.dim, power)


def multiply(
    first: Float[np.ndarray, "n D"], second: Float[np.ndarray, "n E"], dim: int, p: int, q: int
) -> Float[np.ndarray, "n F"]:
    """Multiply homogeneous polynomials of degrees p and q in `dim` variables, row by row. Time O(nDE).

    Each row holds the coefficients of one polynomial, in the order of `monomials.exponents(dim, degree)`: D of them in
    `first` (degree p), E in `second` (degree q), and F = C(dim + p + q − 1, p + q) in each product.
    """
    product = np.zeros((len(first), symmetric_dimension(dim, p + q)))
    for i, places in enumerate(product_places(dim, p, q)):
        product[:, places] += first[:, [i]] * second  # the places of one row are different
    return product


def rv_norm_floor(norm: float | int, power: int) -> float:
    """Lemma 6: ‖M‖_rv ≥ ‖M‖₂/√p!, attained by tensors whose entries with two equal indices are zero.

    >>> rv_norm_floor(2.0, 2), SymmetricTensor.of([[0.0, 2.0**0.5], [2.0**0.5, 0.0]]).rv_norm
    (1.414..., 1.414...)
    """
    check_count("power", power)
    check_not_negative(norm=norm)
    return norm / math.sqrt(math.factorial(power))


def log_covering_bound(dim: int, power: int, epsilon: float | int, *, euclidean: bool = False) -> float:
    """Lemma 7: ln N(X̄_d^p, ε) ≤ D_d^p ln(1 + 2√p!/ε) for the symmetric tensors of unit length, its O(·) taken as one.

    `euclidean` leaves out √p!: isometric coordinates are a Euclidean space of dimension D_d^p, to which Proposition 1
    applies as it is.

    >>> round(log_covering_bound(2, 1, 0.5), 4)  # 2 ln 5
    3.2189
    """
    check_count("dim", dim)
    check_count("power", power)
    check_bound(epsilon=epsilon)
    stretch = 1.0 if euclidean else math.sqrt(math.factorial(power))
    return symmetric_dimension(dim, power) * math.log1p(2 * stretch / epsilon)


@dataclass(frozen=True, eq=False)
class HermiteExpansion:
    """F = Σ_i f_i^H H_i over the multi-indices of I_d^0, I_d^1, …, I_d^p, one after the other (Definition 6)."""

    indices: Int[np.ndarray, "c d"]
    coefficients: Float[np.ndarray, "c"]

    @property
    def mean(self) -> float:
        """E f(x) for x ~ N(0, I): Proposition 5."""
        return float(self.coefficients[0])

    @property
    def variance(self) -> float:
        """Var f(x) = Σ_{i ≠ 0} (f_i^H)²: Proposition 5."""
        return float(np.sum(self.coefficients[1:] ** 2))

    def __call__(self, X: object) -> Float[np.ndarray, "n"]:
        return hermite_basis(X, int(self.indices.sum(axis=1).max())) @ self.coefficients


def hermite_basis(X: object, order: int) -> Float[np.ndarray, "n c"]:
    """H_i(x) = Π_j H_{i_j}(x_j) for all multi-indices of degree at most `order`, in the order of HermiteExpansion.

    >>> hermite_basis([[2.0, 1.0]], 1)
    array([[1., 2., 1.]])
    """
    inputs = check_inputs(X)
    check_count("order", order, least=0)
    table = np.stack(list(hermite_times(order, inputs, np.ones_like(inputs))))
    indices = exponents_up_to(inputs.shape[1], order)
    product = np.ones((len(inputs), len(indices)))
    for j in range(inputs.shape[1]):
        product *= table[indices[:, j], :, j].T
    return product


def leading_hermite(M: SymmetricTensor) -> Float[np.ndarray, "D"]:
    """f_i^H = √(Πi_j!) f_i^M for i ∈ I_d^p (Proposition 4), whatever the shift of ⟨M, (x₀ + x)^{⊗p}⟩.

    Their squares sum to p!‖M‖₂².

    >>> leading_hermite(SymmetricTensor.of([[1.0, 0.0], [0.0, 0.0]])).round(4)  # x₁² = 1 + √2 H_2(x₁)
    array([1.4142, 0.    , 0.    ])
    """
    return M.polynomial * np.sqrt(math.factorial(M.power) / permutations(M.dim, M.power))


def hermite_expansion(M: SymmetricTensor, shift: object = None) -> HermiteExpansion:
    """⟨M, (x₀ + x)^{⊗p}⟩ as a polynomial in x, in the Hermite basis. Time and memory O(D_d^p C(d + p, p)).

    >>> expansion = hermite_expansion(SymmetricTensor.of([[1.0]]), [3.0])  # (3 + x)² = 10 + 6x + √2 H_2
    >>> expansion.coefficients.round(4), round(expansion.variance, 12)
    (array([10.    ,  6.    ,  1.4142]), 38.0)
    """
    at = _point("shift", shift, M.dim)
    check_magnitude(2 * M.power, shift=at)
    return HermiteExpansion(exponents_up_to(M.dim, M.power), _shifted(at, M.power) @ M.polynomial)


def gaussian_variance(M: SymmetricTensor, shift: object = None) -> float:
    """Var ⟨M, (x₀ + x)^{⊗p}⟩ for x ~ N(0, I), exactly: the left side of Lemma 9."""
    return hermite_expansion(M, shift).variance


def decoupled_variance(M: SymmetricTensor, first: object = None, second: object = None) -> float:
    """Var ⟨M, (u₀ + u)^{⊗p} ⊗ (v₀ + v)^{⊗p}⟩ for independent u, v ~ N(0, I) and M of order 2p: Lemma 10's left side.

    >>> decoupled_variance(SymmetricTensor.of([[1.0, 0.0], [0.0, 1.0]]), [3.0, 0.0])  # of uᵀv: 9 + 2
    11.0
    """
    power = _half(M)
    for name, at in (("first", first), ("second", second)):
        check_magnitude(2 * M.power, **{name: _point(name, at, M.dim)})
    values = M.coefficients[product_places(M.dim, power, power)]
    weights = permutations(M.dim, power)
    left, right = (_shifted(_point(name, at, M.dim), power) for name, at in (("first", first), ("second", second)))
    found = left @ (weights[:, None] * values * weights) @ right.T
    return float(np.sum(found**2) - found[0, 0] ** 2)


@dataclass(frozen=True)
class VarianceFloor:
    """A lower bound of a variance that holds for every shift: the lemma's, and the one that its proof could give."""

    lemma: float
    sharp: float


def gaussian_variance_floor(M: SymmetricTensor) -> VarianceFloor:
    """Lemma 9: ‖M‖_rv². Its sharp form, the squares of `leading_hermite`, is p!‖M‖₂², attained for p = 1.

    >>> gaussian_variance_floor(SymmetricTensor.of([[0.0, 1.0], [1.0, 0.0]]))  # 2x₁x₂
    VarianceFloor(lemma=1.0, sharp=4.0...)
    """
    return VarianceFloor(M.rv_norm**2, math.factorial(M.power) * M.norm**2)


def decoupled_variance_floor(M: SymmetricTensor) -> VarianceFloor:
    """Lemma 10 for M of order 2p: ‖M‖_rv²/(2p)!. Its sharp form is (p!)²‖M‖₂², attained without shifts for p = 1."""
    power = _half(M)
    return VarianceFloor(M.rv_norm**2 / math.factorial(M.power), math.factorial(power) ** 2 * M.norm**2)


def _half(M: SymmetricTensor) -> int:
    require(not M.power % 2, f"M has order {M.power}: Lemma 10 speaks of tensors of an even order 2p.")
    return M.power // 2


def _point(name: str, value: object, dim: int) -> Float[np.ndarray, "d"]:
    if value is None:
        return np.zeros(dim)
    point = np.asarray(value, np.float64)
    require(
        point.shape == (dim,) and np.isfinite(point).all(),
        f"{name} has shape {point.shape}: expected ({dim},), of finite numbers.",
    )
    return point


def _shifted(at: Float[np.ndarray, "d"], power: int) -> Float[np.ndarray, "c D"]:
    """E[(x₀ + x)^i H_h(x)] for |h| ≤ p and |i| = p; in one variable √h! C(m, h) E(a + x)^{m−h}."""
    moments = [np.ones_like(at), at]
    for m in range(1, power):
        moments.append(at * moments[m] + m * moments[m - 1])
    table = np.zeros((power + 1, power + 1, len(at)))
    for m, h in itertools.product(range(power + 1), repeat=2):
        if h <= m:
            table[h, m] = math.sqrt(math.factorial(h)) * math.comb(m, h) * moments[m - h]
    rows, columns = exponents_up_to(len(at), power), exponents(len(at), power)
    product = np.ones((len(rows), len(columns)))
    for j in range(len(at)):
        product *= table[:, :, j][rows[:, j][:, None], columns[:, j]]
    return product
