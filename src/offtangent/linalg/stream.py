"""Passes over the tiles of a symmetric matrix in float64, on the host's initiative: products with their error, floors.

Unlike `SymmetricTiles` these passes are not jitted as a whole: they take minutes at n = 60 000, and between two
tiles they can be watched and interrupted.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent.linalg.brackets import EPS

SAMPLE = 256  # rows on which the length of the series' head is chosen

Share = Callable[[float], None]  # told the share of the pass that is done
Block = Callable[[Array, Array], tuple[Array, Array]]  # K(X1, X2) and a bound on its error, entry by entry
Diagonal = Callable[[Array], tuple[Array, Array]]
Devices = Sequence[jax.Device] | None  # none: the first


def rows_per_tile() -> int:
    """2048 on a CPU, where a tile should stay near the cache; 8192 on an accelerator, which wants more at once."""
    return 2048 if jax.default_backend() == "cpu" else 8192


class Cut(NamedTuple):
    """n rows in groups of `size`; the last group is filled up with copies of the first row, or with zeros."""

    n: int
    size: int
    groups: int

    @classmethod
    def of(cls, n: int, rows: int | None = None) -> "Cut":
        """As few groups as there are with at most `rows` rows, by default `rows_per_tile()`."""
        groups = -(-n // (rows_per_tile() if rows is None else rows))
        return cls(n, -(-n // groups), groups)

    def filled(self, X: Float[np.ndarray | Array, "n d"], dtype: Any) -> Float[np.ndarray, "groups size d"]:
        """All groups in one array of their own, the last filled up with copies of the first row."""
        rows = np.empty((self.groups * self.size, X.shape[1]), dtype)
        rows[: self.n], rows[self.n :] = X, np.asarray(X[:1])
        return rows.reshape(self.groups, self.size, -1)

    def inputs(self, X: Float[np.ndarray, "n d"]) -> list[Float[np.ndarray, "size d"]]:
        last = np.repeat(X[:1], self.size * self.groups - self.n, axis=0)
        return self._groups(X, last)

    def zeros_after(self, x: Float[np.ndarray, "n *c"]) -> list[Float[np.ndarray, "size *c"]]:
        return self._groups(x, np.zeros((self.size * self.groups - self.n, *x.shape[1:])))

    def _groups(self, rows: np.ndarray, last: np.ndarray) -> list[np.ndarray]:
        """Views of the rows, but for the last group."""
        starts = range(0, self.size * (self.groups - 1), self.size)
        return [*(rows[i : i + self.size] for i in starts), np.concatenate([rows[self.size * len(starts) :], last])]

    def pairs(self, watch: Share | None) -> Iterator[tuple[int, int]]:
        """The two groups of each tile on and above the diagonal."""
        total = self.groups * (self.groups + 1) // 2
        done = 0
        for i in range(self.groups):
            for j in range(i, self.groups):
                yield i, j
                done += 1
                if watch is not None:
                    watch(done / total)


class Pass:
    """One pass over the tiles, dealt out in turn to the devices; sums of parts by group, each device its own.

    A device holds its share of the groups of rows, and fetches others from the host as it meets them: with one device
    all rows stay there.
    """

    def __init__(self, cut: Cut, devices: Devices, *rows: list[np.ndarray]):
        self.cut, self.devices = cut, list(devices or jax.devices()[:1])
        share = -(-cut.groups // len(self.devices))
        self._rows = [
            [lru_cache(max(share, 2))(partial(_fetch, groups, device)) for groups in rows] for device in self.devices
        ]
        self._sums: list[dict[int, tuple[Array, ...]]] = [{} for _ in self.devices]
        self._busy: deque[Any] = deque()

    def over_tiles(self, watch: Share | None) -> Iterator[tuple[int, int, int]]:
        """The device's number and the two groups of each tile; no more than one tile a device is left unfinished."""
        for turn, (i, j) in enumerate(self.cut.pairs(watch)):
            yield turn % len(self.devices), i, j
            if len(self._busy) > 2 * len(self.devices):
                jax.block_until_ready(self._busy.popleft())

    def rows(self, device: int, group: int) -> tuple[Array, ...]:
        return tuple(fetch(group) for fetch in self._rows[device])

    def add(self, device: int, group: int, parts: tuple[Array, ...]) -> None:
        sums = self._sums[device]
        sums[group] = jax.tree.map(jnp.add, sums[group], parts) if group in sums else parts
        self._busy.append(sums[group])

    def total(self) -> tuple[Float[np.ndarray, "n *c"], ...]:
        """The sums over all devices, on the host."""
        groups = [
            [np.stack([np.asarray(part) for part in sums[group]]) for sums in self._sums if group in sums]
            for group in range(self.cut.groups)
        ]
        return tuple(np.concatenate([np.sum(parts, axis=0) for parts in groups], axis=1)[:, : self.cut.n])


def _fetch(groups: list[np.ndarray], device: jax.Device, group: int) -> Array:
    return jax.device_put(groups[group], device)


def product_with_error(
    block: Block,
    diagonal: Diagonal,
    X: Float[np.ndarray, "n d"],
    x: Float[np.ndarray, "n c"],
    *,
    watch: Share | None = None,
    devices: Devices = None,
) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, "n c"]]:
    """K(X, X) x in float64 and a bound on its error, entry by entry: that of the kernel and that of the sum.

    Time O(n²(d/2 + 4c)), memory X and a few tiles. `block` and `diagonal` are jittable; they are called in float64.
    On k devices each has a k-th of the tiles to compute and holds a k-th of X.
    """
    cut = Cut.of(len(X))
    # The sum of tiles' sums: its error grows with rows and number of tiles, not with n.
    terms = (cut.size + cut.groups + 3) * EPS
    with jax.enable_x64(True):
        inputs, columns = cut.inputs(np.asarray(X, np.float64)), cut.zeros_after(np.asarray(x, np.float64))
        run = Pass(cut, devices, inputs, columns)
        for device, i, j in run.over_tiles(watch):
            above, below = _tile(block, diagonal, i == j, run.rows(device, i), run.rows(device, j), terms)
            run.add(device, i, above)
            if i != j:
                run.add(device, j, below)
        product, error = run.total()
        return product, error


@partial(jax.jit, static_argnums=(0, 1, 2))
def _tile(
    block: Block,
    diagonal: Diagonal,
    same: bool,
    rows: tuple[Array, Array],
    columns: tuple[Array, Array],
    terms: Array | float,
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """One tile's part of the product and of its error, on both sides of the diagonal."""
    (Xi, xi), (Xj, xj) = rows, columns
    K, E = block(Xi, Xj)
    if same:
        eye = jnp.eye(len(Xi), dtype=bool)
        on, off = diagonal(Xi)
        K, E = jnp.where(eye, on[:, None], K), jnp.where(eye, off[:, None], E)
    E = E + jnp.asarray(terms, K.dtype) * jnp.abs(K)
    above = K @ xj, E @ jnp.abs(xj)
    return above, above if same else (K.T @ xi, E.T @ jnp.abs(xi))


def series_floor(
    g: Callable[[Array], Array],
    coefficients: Float[np.ndarray, "terms"],
    directions: Float[np.ndarray, "n d"],
    *,
    watch: Share | None = None,
    devices: Devices = None,
) -> float:
    """A proven lower bound for λ_min of g(UUᵀ), for g(u) = Σ a_l u^l with all a_l ≥ 0 and unit rows U.

    The powers up to L sum to a positive semidefinite matrix (Schur), so with the tail T_L = g − Σ_{l ≤ L} a_l u^l

        λ_min ≥ min_i (T_L(1) − Σ_{j≠i} T_L(|u_ij|))

    by Gershgorin, for any L: the best of 1, 2, 4, … on a sample of rows is taken. Cosines are made larger by their
    rounding error, which makes the sums larger. May come out negative: then it says nothing. Time O(n²(d/2 + L)),
    memory a few tiles; a sample that is negative already ends it.
    """
    n, d = directions.shape
    coefficients = np.asarray(coefficients, np.float64)
    margin = (2 * d + 8) * EPS
    slack = 16 * EPS * n * float(coefficients.sum() + 1)
    sample = np.sort(np.random.default_rng(0).choice(n, size=min(n, SAMPLE), replace=False))
    cut = Cut.of(n)
    with jax.enable_x64(True):
        run = Pass(cut, devices, cut.inputs(directions), cut.zeros_after(np.ones(n)))
        some = jax.device_put(directions[sample], run.devices[0])
        pilot = {}
        for k in range((len(coefficients) - 1).bit_length()):
            head = tuple(coefficients[: 2**k + 1])
            sums = sum(_tail_sums(g, head, some, *run.rows(0, group), margin) for group in range(cut.groups))
            top = float(_tail(g, head, jnp.ones((), jnp.float64)))
            pilot[head] = top - float(jnp.max(sums) - top)
        head, found = max(pilot.items(), key=lambda item: item[1])
        if found <= slack:
            return found - slack
        top = float(_tail(g, head, jnp.ones((), jnp.float64)))
        for device, i, j in run.over_tiles(watch):
            above, below = _tail_tile(g, head, i == j, run.rows(device, i), run.rows(device, j), margin)
            run.add(device, i, (above,))
            if i != j:
                run.add(device, j, (below,))
        (sums,) = run.total()
        return top - float((sums - top).max()) - slack


def _tail(g: Callable[[Array], Array], head: tuple[float, ...], u: Array) -> Array:
    """T_L(u) = g(u) − Σ_{l ≤ L} a_l u^l, by Horner's rule; zero coefficients cost nothing in between."""
    total = jnp.full_like(u, head[-1])
    square, step = u * u, 1
    for coefficient in head[-2::-1]:
        if coefficient == 0 and step == 1:
            step = 2
            continue
        total = total * (square if step == 2 else u) + coefficient
        step = 1
    return g(u) - (total * u if step == 2 else total)


def _tails(g: Callable[[Array], Array], head: tuple[float, ...], U: Array, V: Array, margin: Array | float) -> Array:
    return jnp.abs(_tail(g, head, jnp.minimum(jnp.abs(U @ V.T) + margin, 1.0)))


@partial(jax.jit, static_argnums=(0, 1))
def _tail_sums(
    g: Callable[[Array], Array], head: tuple[float, ...], U: Array, V: Array, counts: Array, margin: Array | float
) -> Array:
    """Σ_j T_L(|u_ij|) over the rows of V that count; a row that meets itself counts T_L(1)."""
    return _tails(g, head, U, V, margin) @ counts


@partial(jax.jit, static_argnums=(0, 1, 2))
def _tail_tile(
    g: Callable[[Array], Array],
    head: tuple[float, ...],
    same: bool,
    rows: tuple[Array, Array],
    columns: tuple[Array, Array],
    margin: Array | float,
) -> tuple[Array, Array]:
    """One tile's part of the sums, on both sides of the diagonal."""
    tails = _tails(g, head, rows[0], columns[0], margin)
    above = tails @ columns[1]
    return above, above if same else rows[1] @ tails


def tile_slices(n: int) -> list[tuple[slice, slice]]:
    """Rows and columns of the tiles on and above the diagonal of an n × n matrix, for the host."""
    size = rows_per_tile()
    starts = range(0, n, size)
    return [(slice(i, min(i + size, n)), slice(j, min(j + size, n))) for i in starts for j in starts if j >= i]
