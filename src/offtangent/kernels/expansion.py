"""The moments of any activation through its Hermite series.

For u = rz, v = sz' with correlation cos θ and σ(rz) = Σ_n c_n(r) h_n(z) in normalised Hermite polynomials,

    E[σ(u)σ(v)] = Σ_n c_n(r) c_n(s) cosⁿθ

(O'Donnell, *Analysis of Boolean Functions*, §11.2). The coefficients depend on the length, so each input has its own,
by Gauss–Legendre quadrature on panels that shrink towards 0, where σ(rz) turns fast if r is large. Beyond the
last term the sum is closed so that it stays positive semidefinite:

- what is left of the energy E[σ²], even and odd, goes into one more term each: the diagonal is exact, and the error
  elsewhere is below what is left;
- a jump J of σ' at 0 makes c_n(r) = J r ρ_n + …, with ρ_n those of the ReLU, whose whole series has a closed form. So a
  leaky ReLU is exact, and other corners at 0 converge one order faster.
"""

import functools
import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from offtangent.kernels import series
from offtangent.kernels.arcs import arc1
from offtangent.kernels.moments import Moments, between
from offtangent.kernels.pairs import Pair, root
from offtangent.special.activations import Activation
from offtangent.special.hermite_polynomials import hermite_times

REACH = 13  # √φ(13) = 3e-19, and |h_n|√φ < 0.7 at any degree: for σ of polynomial growth nothing is left beyond
DYADIC = 14  # panels [2^{-k-1}, 2^{-k}]: down to where rz is of order 1/8, for r up to 2¹¹
UNROLL = 26
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


class _Row(NamedTuple):
    """Of every length: c_n and the two closing terms (first axis), and √E[σ²]."""

    terms: Any
    length: Any


@dataclass(frozen=True)
class Expansion:
    """A layer by the first `terms` Hermite coefficients of σ and of σ'. `jump` is that of σ' at 0.

    Time O(`terms`) an entry, besides O(900·`terms`) an input.
    """

    sigma: Activation
    terms: int
    jump: float = 0.0

    @classmethod
    def of(cls, sigma: Activation, terms: int) -> "Expansion":
        """With the jump found where σ' has one."""
        if sigma.smooth != 1 or 0.0 not in sigma.kinks:
            return cls(sigma, terms)
        with jax.ensure_compile_time_eval(), jax.enable_x64(True):
            after, before = (float(sigma.derivative(1)(jnp.asarray(side))) for side in (1e-30, -1e-30))
        return cls(sigma, terms, after - before)

    def __call__(self, pair: Pair, xp: ModuleType, *, slopes: bool = True) -> Moments:
        """On the host too the sums run in JAX, in float64: one loop over the entries instead of one for each term.

        Jitted in either case: a loop of its own outside of `jax.jit` would compile in every call.
        """
        if xp is jnp:
            return cast(Moments, _compiled(self, slopes)(pair))
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, _compiled(self, slopes)(Pair(*map(jnp.asarray, pair))))

    def _moments(self, pair: Pair, slopes: bool) -> Moments:
        left, right = self._row(pair.r, 0), self._row(pair.s, 0)
        slope = self._sum(self._row(pair.r, 1), self._row(pair.s, 1), pair, 1) if slopes else None
        return between(self._sum(left, right, pair, 0), slope, left.length, right.length, pair, jnp)

    def remainder(self, lengths: np.ndarray, slopes: bool) -> float:
        """The largest share of E[σ²], and with `slopes` of E[σ'²], that is left to the closing terms."""
        with jax.enable_x64(True):
            rows = [_compiled_row(self, order)(jnp.asarray(lengths)) for order in range(1 + slopes)]
            return max(float(((row.terms[-2:] ** 2).sum(axis=0) / row.length**2).max()) for row in rows)

    def _row(self, length: Any, derivative: int) -> _Row:
        """The coefficients of σ or σ' for lengths of any shape."""
        function = self.sigma.derivative(derivative)
        far = tuple(kink for kink in self.sigma.kinks if kink != 0)
        flat = length.reshape(-1)
        rule = functools.partial(_split_rule, kinks=far) if far else _fixed_rule
        terms, even, odd = rule(function, flat, self.terms)
        left = jnp.stack([even - (terms[::2] ** 2).sum(axis=0), odd - (terms[1::2] ** 2).sum(axis=0)])
        if self.jump:
            known = np.array([0.25, 0.25])  # of E[relu²], E[step²]: the even and the odd half
            known -= [part.sum() for part in (self._corner(derivative)[::2], self._corner(derivative)[1::2])]
            scale = self.jump**2 * flat ** (2 * (1 - derivative))
            left = left - jnp.asarray(np.maximum(known, 0), flat.dtype)[:, None] * scale
        closing = root(jnp.maximum(left, 0), jnp)
        closing = closing if self.terms % 2 == 0 else closing[::-1]
        shape = (self.terms + 2, *length.shape)
        return _Row(jnp.concatenate([terms, closing]).reshape(shape), root(even + odd, jnp).reshape(length.shape))

    def _sum(self, left: _Row, right: _Row, pair: Pair, derivative: int) -> Any:
        """Σ c_n(r)c_n(s) cosⁿ, with the corner's part of each term exchanged for its closed form."""
        if not self.jump:
            return _horner(left.terms, right.terms, pair.cosine)
        factor = self.jump**2 * (pair.r * pair.s) ** (1 - derivative)
        angles = pair.angles(jnp)
        closed = arc1(pair, angles, jnp)[0] if derivative == 0 else angles[1]
        shape = (self.terms, *(1 for _ in pair.cosine.shape))
        corner = jnp.asarray(self._corner(derivative).reshape(shape), pair.cosine.dtype)
        known = _horner(corner, jnp.ones_like(corner), pair.cosine)
        return _horner(left.terms, right.terms, pair.cosine) + factor * (closed / (2 * math.pi) - known)

    def _corner(self, derivative: int) -> np.ndarray:
        """ρ_n² of the ReLU, or of its step."""
        return series.arc_cosine(1 - derivative, self.terms) / 2


def _horner(left: Any, right: Any, cosine: Any) -> Any:
    """Σ_n left_n right_n cosⁿ, from the last term down.

    In loops of UNROLL terms: unrolled altogether it takes XLA seconds to compile, not at all and it is bound by memory.
    """
    size = min(UNROLL, len(left))
    spare = -len(left) % size
    parts = [jnp.concatenate([side, jnp.zeros((spare, *side.shape[1:]), side.dtype)]) for side in (left, right)]
    blocks = tuple(part.reshape(-1, size, *part.shape[1:]) for part in parts)

    def block(value: Array, terms: tuple[Array, ...]) -> tuple[Array, None]:
        for n in range(size - 1, -1, -1):
            value = value * cosine + terms[0][n] * terms[1][n]
        return value, None

    return jax.lax.scan(block, jnp.zeros_like(cosine), blocks, reverse=True)[0]


@functools.cache
def _compiled(expansion: Expansion, slopes: bool) -> Any:
    return jax.jit(functools.partial(expansion._moments, slopes=slopes))


@functools.cache
def _compiled_row(expansion: Expansion, derivative: int) -> Any:
    return jax.jit(functools.partial(expansion._row, derivative=derivative))


def _ends() -> np.ndarray:
    half = np.concatenate([0.5 ** np.arange(DYADIC, 0, -1), np.arange(1.0, REACH + 1)])
    return np.concatenate([-half[::-1], [0.0], half])


@functools.cache
def _nodes(terms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z, symmetric about 0, their weights under the Gaussian, and these times h_n (nodes × terms)."""
    ends = _ends()
    half = np.diff(ends)[:, None] / 2
    z = (ends[:-1, None] + half * (1 + NODES)).ravel()
    bell = np.exp(-(z**2) / 4) / (2 * math.pi) ** 0.25  # √φ: half in each factor, so that h_n√φ stays bounded
    weights = (half * WEIGHTS).ravel() * bell
    return z, weights * bell, weights[:, None] * np.stack(list(hermite_times(terms - 1, z, bell)), axis=1)


def _fixed_rule(function: Any, lengths: Any, terms: int) -> tuple[Any, Any, Any]:
    """c_n (terms × k) and the energies of the even and the odd part, for k lengths: one product of matrices."""
    z, weights, projections = (jnp.asarray(part, lengths.dtype) for part in _nodes(terms))
    values = function(lengths[:, None] * z)
    mirrored = values[:, ::-1]
    even, odd = (((values + sign * mirrored) / 2) ** 2 @ weights for sign in (1, -1))
    return jnp.matmul(values, projections, precision=jax.lax.Precision.HIGHEST).T, even, odd


def _split_rule(function: Any, lengths: Any, terms: int, kinks: tuple[float, ...]) -> tuple[Any, Any, Any]:
    """The same with every length's own panels, split at ±kink/r. Time and memory O(900·terms) and O(900) a length."""
    dtype = lengths.dtype
    both = jnp.asarray([*kinks, *(-kink for kink in kinks)], dtype)
    split = jnp.clip(both / jnp.where(lengths > 0, lengths, 1)[:, None], -REACH, REACH)
    fixed = jnp.broadcast_to(jnp.asarray(_ends(), dtype), (len(lengths), len(_ends())))
    ends = jnp.sort(jnp.concatenate([fixed, split], axis=1), axis=1)
    half = jnp.diff(ends)[:, :, None] / 2
    z = (ends[:, :-1, None] + half * jnp.asarray(1 + NODES, dtype)).reshape(len(lengths), -1)
    bell = jnp.exp(-(z**2) / 4) / (2 * math.pi) ** 0.25
    weights = (half * jnp.asarray(WEIGHTS, dtype)).reshape(z.shape) * bell
    values = function(lengths[:, None] * z)
    mirrored = values[:, ::-1]
    even, odd = ((((values + sign * mirrored) / 2) ** 2 * weights * bell).sum(axis=1) for sign in (1, -1))
    weighted = weights * values

    def step(state: tuple[Any, Any], n: Any) -> tuple[tuple[Any, Any], Any]:
        before, now = state
        after = (z * now - jnp.sqrt(n) * before) / jnp.sqrt(n + 1)
        return (now, after), (weighted * now).sum(axis=1)

    return jax.lax.scan(step, (jnp.zeros_like(z), bell), jnp.arange(terms, dtype=dtype))[1], even, odd
