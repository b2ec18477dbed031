"""A symmetric matrix that is never held: tiles K(Xᵢ, Xⱼ), i ≤ j, some kept, the others made anew in each product.

The rows of X are cut into t groups of b. Each of the t(t+1)/2 tiles on and above the diagonal is computed once and
serves twice, out_i += K v_j and out_j += Kᵀ v_i. On k devices the groups lie on a ring: device a owns T = t/k of
them, and the groups of its neighbours visit it in ⌊k/2⌋ turns, so that every pair of groups meets exactly once, no
device ever holds more than its own share and one visitor, and all have the same work to do.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from offtangent._checks import require
from offtangent.linalg.stream import Cut, rows_per_tile

AXIS = "ring"

Rows = Any  # arrays with an entry for each row, one array or a pytree of them
Block = Callable[[Rows, Rows], Array]
Diagonal = Callable[[Rows], Array]


def rows_per_product_tile() -> int:
    """512 on a CPU, where a tile is used at once and should lie in the cache; else as in `rows_per_tile`."""
    return 512 if jax.default_backend() == "cpu" else rows_per_tile()


class SymmetricTiles(eqx.Module):
    """K(X, X) as an operator, a pytree: pass it into jitted functions. `tiles @ v` takes (n,), (n, c) and so on.

    Time of a product O(n²d/2) for the tiles that are not kept and O(n²) to read those that are; memory: X, the kept
    tiles, and one tile at work. Sharded over the devices it was built on.
    """

    rows: Rows  # by device, group and row: what `block` is to know of each row of X
    kept: Float[Array, "k q b b"]
    kept_at: Int[Array, "k _ 3"]  # group i, group j, and whether the entry counts (lists are padded to one length)
    fresh_at: tuple[Int[Array, "k _ 3"], ...]  # by turn of the ring: own group, visiting group, whether it counts
    block: Block = eqx.field(static=True)
    diagonal: Diagonal = eqx.field(static=True)
    n: int = eqx.field(static=True)
    mesh: Mesh | None = eqx.field(static=True)

    @classmethod
    def build(
        cls,
        block: Block,
        diagonal: Diagonal,
        X: Float[np.ndarray | Array, "n d"],
        *,
        budget: float | int,
        devices: Sequence[jax.Device] | None = None,
        rows: int | None = None,
        ready: Callable[[Array], Rows] | None = None,
    ) -> "SymmetricTiles":
        """Cut X into tiles and compute those that fit into `budget` bytes on each device.

        `block(X1, X2)` is a jittable K(X1, X2), `diagonal(X)` the diagonal of K(X, X), which the diagonal of a
        tile is replaced by: a kernel of an angle is inaccurate just there. With `ready` both are given `ready(X)`
        instead of X, arrays with an entry for each row, which are found once and kept in place of X.

        All three are static in what is compiled: where they are equal and hashed alike for equal kernels, a second
        operator of the same shapes compiles nothing.
        """
        require(budget >= 0, f"budget={budget}: the memory for kept tiles is a number of bytes, 0 or more.")
        n = len(X)
        k = 1 if devices is None else len(devices)
        T, b = _cut(n, k, rows_per_product_tile() if rows is None else rows)
        lists = _ring(k, T)
        longest = [max(len(turn[a]) for a in range(k)) for turn in lists]
        tile_bytes = b * b * X.dtype.itemsize
        room = int(min(budget, sum(longest) * tile_bytes) // tile_bytes)

        kept: list[np.ndarray] = []
        kept_at: list[np.ndarray] = []
        fresh_at: list[Array] = []
        left = room
        mesh = None if k == 1 or devices is None else Mesh(np.asarray(devices), (AXIS,))
        put = _placer(mesh, None if devices is None else devices[0])
        for turn, length in zip(lists, longest, strict=True):
            table = np.zeros((k, length, 3), np.int32)
            for a in range(k):
                table[a, : len(turn[a])] = turn[a]
            take = min(left, length)
            left -= take
            kept.append(table[:, :take])
            fresh_at.append(put(table[:, take:]))
            kept_at.append(_global(table[:, :take], len(kept_at), T))
        known = put(Cut(n, b, k * T).filled(X, X.dtype).reshape(k, T, b, -1))
        tiles = cls(
            rows=known if ready is None else _aside(mesh, entries_ready, ready, known),
            kept=put(np.zeros((k, 0, b, b), X.dtype)),
            kept_at=put(np.concatenate(kept_at, axis=1)),
            fresh_at=tuple(fresh_at),
            block=block,
            diagonal=diagonal,
            n=n,
            mesh=mesh,
        )
        if room == 0:
            return tiles
        turns = tuple(put(turn) for turn in kept)
        return eqx.tree_at(lambda one: one.kept, tiles, _aside(mesh, _make, tiles, turns))

    def __matmul__(self, v: Float[Array, "n *c"]) -> Float[Array, "n *c"]:
        check_length(v, self.n)
        return _product(self, v.reshape(self.n, math.prod(v.shape[1:]))).reshape(v.shape)

    @property
    def everything_kept(self) -> bool:
        return all(turn.shape[1] == 0 for turn in self.fresh_at)

    @property
    def bytes_per_device(self) -> int:
        """What lies on each device between products: what it knows of its rows, and its kept tiles."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.rows, self.kept))) // self.kept.shape[0]


def check_length(v: Array, n: int) -> None:
    """What is multiplied has n rows: JAX would reshape a vector of 2n into two of n without a word."""
    require(
        v.shape[:1] == (n,),
        f"The vector has shape {v.shape}: expected ({n},) or ({n}, k), one row per column of the matrix.",
    )


def _cut(n: int, k: int, rows: int) -> tuple[int, int]:
    """Groups per device and rows per group: as few groups as `rows` allows, an even number where devices share."""
    T = -(-n // (k * rows))
    if k > 1:
        T = max(2, T + T % 2)
    return T, -(-n // (k * T))


def _ring(k: int, T: int) -> list[list[list[tuple[int, int, int]]]]:
    """For each turn s and device a, the pairs (own group, visiting group) it takes care of."""
    turns = []
    for s in range(k // 2 + 1):
        turn = []
        for a in range(k):
            if s == 0:
                pairs = [(i, j, 1) for i in range(T) for j in range(i, T)]
            elif 2 * s < k:
                pairs = [(i, j, 1) for i in range(T) for j in range(T)]
            else:  # the two meet from both sides: each takes one half
                half, first = T // 2, a < k // 2
                pairs = [(i, j, 1) for i in range(T) for j in range(T) if (i < half if first else j >= half)]
            turn.append(pairs)
        turns.append(turn)
    return turns


def _global(table: np.ndarray, s: int, T: int) -> np.ndarray:
    """The same pairs with the groups numbered over all devices."""
    k = len(table)
    own = np.arange(k, dtype=np.int32)[:, None]
    return np.stack([own * T + table[..., 0], (own + s) % k * T + table[..., 1], table[..., 2]], axis=-1)


def _placer(mesh: Mesh | None, device: jax.Device | None) -> Callable[[np.ndarray], Array]:
    where = device if mesh is None else NamedSharding(mesh, PartitionSpec(AXIS))

    def put(array: np.ndarray) -> Array:
        with jax.ensure_compile_time_eval():  # not a tracer, even where an outer function is being traced
            return jax.device_put(array, where)

    return put


def _aside(mesh: Mesh | None, f: Any, *known: Any) -> Any:
    """f(*known), which is jitted, of arrays that are there: at once, even where an outer function is being traced."""
    if mesh is None:
        with jax.ensure_compile_time_eval():
            return f(*known)
    return f.lower(*known).compile()(*known)  # shard_map does not work in there


@eqx.filter_jit
def entries_ready(ready: Callable[[Array], Rows], X: Float[Array, "*groups size d"]) -> Rows:
    """`ready` of each group of rows, all in one program."""
    for _ in X.shape[:-2]:
        ready = jax.vmap(ready)
    return ready(X)


def group(rows: Rows, at: Any) -> Rows:
    """What is ready of one group of rows."""
    return jax.tree.map(lambda leaf: leaf[at], rows)


def _tile(tiles: SymmetricTiles, Xi: Rows, Xj: Rows, same: Array | bool) -> Array:
    """K(Xᵢ, Xⱼ), with its diagonal put right where both are the same group: one more step of what is fused anyhow."""
    tile = tiles.block(Xi, Xj)
    on_diagonal = jnp.eye(tile.shape[0], dtype=bool) & same
    return jnp.where(on_diagonal, tiles.diagonal(Xi)[:, None].astype(tile.dtype), tile)


def _visits(tiles: SymmetricTiles, X: Rows, turns: Sequence[Any]) -> Any:
    """Yield, turn by turn, whose groups visit: X itself at first, then those of the next device, and so on."""
    visitor, k = X, 1 if tiles.mesh is None else tiles.mesh.size
    for s, turn in enumerate(turns):
        if s > 0:
            visitor = jax.lax.ppermute(visitor, AXIS, [((a + 1) % k, a) for a in range(k)])
        yield s, visitor, turn


def _spread(tiles: SymmetricTiles, f: Callable[..., Array], out: PartitionSpec, *sharded: Any) -> Callable[..., Array]:
    """Run f on every device, on its own slices of `sharded`; further arguments are known to all."""
    if tiles.mesh is None:
        return lambda *known: f(*jax.tree.map(lambda leaf: leaf[0], sharded), *known)
    ring, known_to_all = PartitionSpec(AXIS), PartitionSpec()

    def run(*known: Array) -> Array:
        specs = (jax.tree.map(lambda _: ring, sharded), *(known_to_all for _ in known))

        def body(own: Any, *rest: Array) -> Array:
            return f(*jax.tree.map(lambda leaf: leaf[0], own), *rest)

        return jax.shard_map(body, mesh=tiles.mesh, in_specs=specs, out_specs=out)(sharded, *known)

    return run


@eqx.filter_jit
def _make(tiles: SymmetricTiles, turns: tuple[Int[Array, "k _ 3"], ...]) -> Float[Array, "k q b b"]:
    """The tiles to keep, each device its own."""

    def own(X: Rows, turns: tuple[Array, ...]) -> Array:
        made = []
        for s, visitor, turn in _visits(tiles, X, turns):
            step = partial(_made, tiles, X, visitor, s)
            made.append(jax.lax.map(step, turn))
        return jnp.concatenate(made)[None]

    return _spread(tiles, own, PartitionSpec(AXIS), tiles.rows, turns)()


def _made(tiles: SymmetricTiles, X: Rows, visitor: Rows, s: int, at: Array) -> Array:
    return _tile(tiles, group(X, at[0]), group(visitor, at[1]), (at[0] == at[1]) & (s == 0))


@eqx.filter_jit
def _product(tiles: SymmetricTiles, v: Float[Array, "n c"]) -> Float[Array, "n c"]:
    k, T, b = jax.tree.leaves(tiles.rows)[0].shape[:3]
    highest = jax.lax.Precision.HIGHEST
    # One vector on an accelerator: sums fuse with what makes the tile, which then is never written out.
    single = v.shape[1] == 1 and jax.default_backend() != "cpu"
    # Groups of columns lie in rows, (group, c, b): on a CPU both products below then run at the speed of memory.
    V = jnp.pad(v, ((0, k * T * b - tiles.n), (0, 0))).reshape(k * T, b, -1).transpose(0, 2, 1)

    def both(out: Array, V: Array, tile: Array, i: Array, j: Array, counts: Array) -> Array:
        if single:
            right, left = jnp.sum(tile * V[j], axis=1)[None], jnp.sum(tile * V[i].T, axis=0)[None]
        else:
            right = jax.lax.dot_general(tile, V[j], (((1,), (1,)), ((), ())), precision=highest).T
            left = jax.lax.dot_general(V[i], tile, (((1,), (0,)), ((), ())), precision=highest)
        weight = counts.astype(v.dtype)
        out = out.at[i].add(weight * right)
        return out.at[j].add(jnp.where(i == j, jnp.zeros((), v.dtype), weight) * left)

    def own(X: Rows, kept: Array, kept_at: Array, fresh_at: tuple[Array, ...], me: Array, V: Array) -> Array:
        def use(out: Array, item: tuple[Array, Array]) -> tuple[Array, None]:
            tile, at = item
            return both(out, V, tile, at[0], at[1], at[2]), None

        out = jnp.zeros_like(V)
        if tiles.mesh is not None:
            out = jax.lax.pcast(out, AXIS, to="varying")
        if len(kept):
            out, _ = jax.lax.scan(use, out, (kept, kept_at))
        for s, visitor, turn in _visits(tiles, X, fresh_at):
            if not len(turn):
                continue

            @partial(jax.checkpoint, prevent_cse=False)  # or else a gradient would keep all tiles after all
            def fresh(out: Array, at: Array, s: int = s, visitor: Rows = visitor) -> tuple[Array, None]:
                tile = _made(tiles, X, visitor, s, at)
                return both(out, V, tile, me * T + at[0], (me + s) % k * T + at[1], at[2]), None

            out, _ = jax.lax.scan(fresh, out, turn)
        return out if tiles.mesh is None else jax.lax.psum(out, AXIS)

    run = _spread(
        tiles,
        own,
        PartitionSpec(),
        tiles.rows,
        tiles.kept,
        tiles.kept_at,
        tiles.fresh_at,
        jnp.arange(k, dtype=jnp.int32),
    )
    return run(V).transpose(0, 2, 1).reshape(k * T * b, -1)[: tiles.n]
