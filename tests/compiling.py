"""Call the public functions of `kernels`, `linalg`, `taylor` and `training` twice, counting what is compiled each time.

    python tests/compiling.py

The calls are those of `odd_calls` and `door_calls`, and below what is done with their results. The second call has the
same functions of the user and arrays of the same shapes. Printed as JSON, for tests/test_compiling.py: name → programs
compiled in the first call, in the second.
"""

import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import door_calls
import doors
import odd_calls
from offtangent import kernels, special, taylor, training
from offtangent.kernels import Gram, cross, solves
from offtangent.linalg import conjugate, factor, krylov, stream, tiles

COMPILED = "/jax/core/compile/backend_compile_duration"
ROOMS = ("kernels", "linalg", "taylor", "training")
RNG = np.random.default_rng(0)

programs = [0]


def count(event: str, _: float, **__: Any) -> None:
    if event == COMPILED:
        programs[0] += 1


def tabled(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The calls of the two tables. `repr` of what comes back makes sure that it has been computed."""
    for name, words in odd_calls.calls().items():
        if name.startswith(ROOMS) or name.startswith("on_cube"):
            yield name, lambda name=name, words=words: repr(odd_calls.named(name)(**words))
    functions = dict(found for room in ROOMS for found in doors.walked(room))
    for name, words in door_calls.calls(folder).items():
        if name in functions:
            good = {word: arg.good for word, arg in words.items()}
            yield name, lambda name=name, good=good: said(name, functions[name], good)


def said(name: str, function: Callable[..., Any], words: dict[str, Any]) -> None:
    kind, text = doors.answer(name, function, words)
    if kind != "a result":
        raise AssertionError(f"{name}: {kind}: {text}")


def drawn(n: int = 40) -> np.ndarray:
    """Inputs that differ from call to call."""
    return RNG.standard_normal((n, 3))


def gram(make: Callable[[], Any] = lambda: kernels.relu_hidden, **options: Any) -> Gram:
    """A Gram matrix of a kernel that is made anew."""
    return Gram(make(), drawn(), 0.5, **options)


def f(params: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ params)


def single(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.standard_normal(shape), jnp.float32)


def square(X1: jax.Array, X2: jax.Array) -> jax.Array:
    return (X1 @ X2.T) ** 2


def squares(X: jax.Array) -> jax.Array:
    return (X * X).sum(axis=1) ** 2


def certain(X1: jax.Array, X2: jax.Array) -> tuple[jax.Array, jax.Array]:
    return square(X1, X2), 0 * square(X1, X2)


def certain_diagonal(X: jax.Array) -> tuple[jax.Array, jax.Array]:
    return squares(X), 0 * squares(X)


MAKERS: dict[str, Callable[[], Any]] = {
    "relu_hidden": lambda: kernels.relu_hidden,
    "gaussian": lambda: kernels.gaussian(2.0),
    "deep": lambda: kernels.deep(2, activation="erf"),
    "deep by quadrature": lambda: kernels.deep(1, activation="tanh"),
    "convolutional": lambda: kernels.convolutional(2, patch=3),
    "resnet": lambda: kernels.residual.resnet(),
    "named": lambda: kernels.named_kernel("step"),
}


def of_grams() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every way to use a Gram matrix, of a new operator each time; then with each kind of kernel."""
    y, Y = RNG.standard_normal(40), RNG.standard_normal((40, 3))
    iterated = "conjugate gradients"
    uses: dict[str, Callable[[Gram], Any]] = {
        "dense": lambda H: H.dense(),
        "dense in float32": lambda H: H.dense(np.float32),
        "diag": lambda H: H.diag(),
        "@": lambda H: H @ y,
        "@ ten": lambda H: H @ Y,
        "with_ridge": lambda H: H.with_ridge(0.25) @ y,
        "operator": lambda H: H.operator() @ jnp.asarray(y),
        "eigh": lambda H: H.eigh(),
        "eigh of the largest": lambda H: H.eigh(2),
        "eigh of the smallest": lambda H: H.eigh(2, which="smallest"),
        "solve": lambda H: H.solve(Y),
        "solve by iteration": lambda H: H.solve(Y, method=iterated),
        "inverse_quadratic": lambda H: H.inverse_quadratic(y),
        "inverse_quadratic by iteration": lambda H: H.inverse_quadratic(y, method=iterated),
    }
    for name, use in uses.items():
        yield f"kernels.Gram: {name}", lambda use=use: use(gram())
    yield "kernels.Gram: no tiles kept", lambda: gram(budget=0) @ y
    for name, make in MAKERS.items():
        yield f"kernels.Gram of {name}: @", lambda make=make: gram(make) @ y
        yield f"kernels.Gram of {name}: dense", lambda make=make: gram(make).dense(np.float32)
        yield f"kernels.Gram of {name}: solve", lambda make=make: gram(make).solve(y, method=iterated)
        yield f"kernels.{name}", lambda make=make: make()(single(4, 3), single(5, 3))
        yield f"kernels.{name}: exact", lambda make=make: make().exact(drawn(4))
        yield f"kernels.cross of {name}", lambda make=make: cross.Cross(make(), drawn(6), drawn()) @ y


def of_rooms() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is done with what public functions make, and functions behind the doors."""
    params, y = single(3), RNG.standard_normal(40)
    A = np.eye(6) + 0.1

    def fitted() -> Any:
        return kernels.ridge_regression(kernels.gaussian(2.0), drawn(), y, ridge=0.5)

    def tangent() -> Any:
        return kernels.empirical_ntk(f, params, single(8, 3))

    yield "kernels.ridge_regression: predictions", lambda: fitted().predict(drawn(5))
    for use in ("dense", "diagonal", "trace"):
        yield f"kernels.empirical_ntk: {use}", lambda use=use: getattr(tangent(), use)()
    for order in (1, 2, 3):
        yield (
            f"taylor.expand: terms up to {order}",
            lambda order=order: [
                np.asarray(term) for term in taylor.expand(f, params, order=order).terms(single(3), single(4, 3))
            ],
        )
    yield "taylor.expand: the sum", lambda: taylor.expand(f, params, order=2)(single(3), single(4, 3))
    yield "taylor.linearise: the sum", lambda: taylor.linearise(f, params)(single(3), single(4, 3))
    loss, optimiser = training.HalfSquares(f), optax.sgd(0.1)
    yield (
        "training.train",
        lambda: training.train(loss, single(3), single(8, 3), single(8), optimiser=optimiser, steps=5),
    )
    mean = training.MeanLoss(f, special.losses.squared)
    yield (
        "training.train on batches",
        lambda: training.train(
            mean, single(3), single(8, 3), single(8), optimiser=optimiser, steps=5, batch=4, key=jax.random.key(0)
        ),
    )
    yield (
        "linalg.tiles",
        lambda: tiles.SymmetricTiles.build(square, squares, drawn().astype(np.float32), budget=0) @ single(40),
    )
    yield (
        "linalg.stream.product_with_error",
        lambda: stream.product_with_error(certain, certain_diagonal, drawn(), RNG.standard_normal((40, 2))),
    )
    yield (
        "linalg.stream.series_floor",
        lambda: stream.series_floor(jnp.exp, np.array([1, 1, 1 / 2, 1 / 6, 1 / 24]), np.eye(8)),
    )
    yield (
        "linalg.conjugate",
        lambda: conjugate.conjugate_gradients(jnp.asarray(A, jnp.float32), single(6, 2), tolerance=1e-3, most=9),
    )
    yield "linalg.krylov", lambda: list(krylov.lanczos(lambda v: A @ v, RNG.standard_normal((6, 1)), 3))
    yield "linalg.factor", lambda: factor.tiled_cholesky(square, drawn(6), -1.0, rows=4)


def main() -> None:
    warnings.simplefilter("ignore")
    jax.monitoring.register_event_duration_secs_listener(count)
    solves.DENSE_ROWS = 0  # so that 40 rows are many
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for calls in (tabled(Path(folder)), of_grams(), of_rooms()):
            for name, call in calls:
                taken: list[int] = []
                for _ in range(2):
                    before = programs[0]
                    jax.block_until_ready([leaf for leaf in jax.tree.leaves(call()) if isinstance(leaf, jax.Array)])
                    taken.append(programs[0] - before)
                found[name] = taken
    print(json.dumps(found))


if __name__ == "__main__":
    main()
