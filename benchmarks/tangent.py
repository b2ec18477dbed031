"""The tangent kernel of networks at their own width, next to whole Jacobians and to the backward passes it must take.

    taskset -c 0 python benchmarks/tangent.py

CPU time of one pinned core, the sides in turns, the best of nine rounds (three of whole Jacobians), without compiling.
The first side is `empirical_ntk(f, params, X).dense()`; the second forms each sample's Jacobian, leaf by leaf, and
multiplies them; the third is one backward pass for each sample and output, which any way has to take.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from tangent_networks import NETWORKS

from offtangent.kernels import empirical_ntk

ROUNDS, SLOW_ROUNDS = 9, 3


@jax.jit
def product(J1, J2):
    parts = [jnp.einsum("iap,jbp->ijab", a, b, precision="highest") for a, b in zip(J1, J2, strict=True)]
    return sum(parts[1:], start=parts[0])


def sides(f, params, X):
    """The three sides as functions without arguments."""
    K = empirical_ntk(f, params, X)

    @jax.jit
    def jacobians(params, X):
        def one(x):
            return jax.tree.leaves(jax.jacrev(lambda p: f(p, x[None])[0])(params))

        return [leaf.reshape(*leaf.shape[:2], -1) for leaf in jax.vmap(one)(X)]

    @jax.jit
    def backward(params, X):
        outputs, back = jax.vjp(lambda inner: f(params, inner), X)
        basis = jnp.broadcast_to(jnp.eye(outputs.shape[1])[:, None], (outputs.shape[1], *outputs.shape))
        return jax.vmap(back)(basis)

    def whole():
        J = jacobians(params, X)
        return np.asarray(product(J, J))

    return K.dense, whole, lambda: jax.block_until_ready(backward(params, X))


def main() -> None:
    for name, make in NETWORKS.items():
        calls = sides(*make())
        found, expected, _ = (call() for call in calls)
        error = np.abs(found - expected).max() / np.abs(expected).max()
        taken: list[list[float]] = [[] for _ in calls]
        for turn in range(ROUNDS):
            for times, call in zip(taken, calls, strict=True):
                if call is calls[1] and turn >= SLOW_ROUNDS:
                    continue
                start = time.process_time()
                call()
                times.append(time.process_time() - start)
        ours, whole, passes = (min(times) for times in taken)
        print(
            f"{name}: {1e3 * ours:.2f} ms; whole Jacobians {whole / ours:.3g} ×; over one backward pass for each "
            f"sample and output {ours / passes:.3g} ×; largest difference {error:.1e}"
        )


if __name__ == "__main__":
    main()
