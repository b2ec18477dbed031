"""Seconds of a call, of one of many calls in a row, and what this machine's bare products and copies take."""

import time

import jax
import jax.numpy as jnp

ROUNDS = 15


def best(f, *args) -> float:
    jax.block_until_ready(f(*args))
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        taken.append(time.perf_counter() - start)
    return min(taken)


def in_a_row(f, start, *args, steps: int = 200) -> float:
    """Seconds of one of many calls, each on the last one's result: a GPU waits for none of them."""

    def through() -> None:
        value = start
        for _ in range(steps):
            value = f(value, *args)
        jax.block_until_ready(value)

    return best(lambda: through() or 0) / steps


def bare(size: int = 8192, precision: str | None = None) -> tuple[float, float]:
    """Operations a second of a product of two square matrices, and bytes a second of a copy."""
    A = jnp.full((size, size), 1e-4)
    product = jax.jit(lambda A, B: jnp.matmul(A, B, precision=precision))
    return 2 * size**3 / in_a_row(product, A, A, steps=20), 2 * A.nbytes / in_a_row(jax.jit(lambda A: A + 1), A)
