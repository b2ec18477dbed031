"""The tangent kernel of a network of ResNet-18's size on images of CIFAR's shape, next to what its flops take.

    python benchmarks/tangent_gpu.py [--samples 1000]

Eleven million parameters, ten outputs: K(X, X), ten thousand rows of eleven million numbers multiplied with each other
if one wrote them down. The floor is the time in which this device's own GEMM does the multiplications that the cheaper
of two ways needs for each layer, on half of the pairs; passes through the network are not counted in it. Needs a GPU.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from offtangent.kernels import empirical_ntk

STAGES = ((64, 32, 1), (128, 16, 2), (256, 8, 2), (512, 4, 2))  # channels, pixels along a side, stride of the first
BLOCKS, OUTPUTS = 2, 10
NUMBERS = ("NHWC", "HWIO", "NHWC")


def convolve(x: Any, w: Any, stride: int = 1) -> Any:
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=NUMBERS)


def normed(x: Any, scale: Any) -> Any:
    """What stands for batch norm in evaluation mode: a scale and a shift for each channel."""
    return x * scale[0] + scale[1]


def network(params: Any, x: Any) -> Any:
    x = jax.nn.relu(normed(convolve(x, params["stem"]), params["stem scale"]))
    for stage, (_, _, stride) in zip(params["stages"], STAGES, strict=True):
        for number, block in enumerate(stage):
            step = stride if number == 0 else 1
            y = jax.nn.relu(normed(convolve(x, block["first"], step), block["first scale"]))
            y = normed(convolve(y, block["second"]), block["second scale"])
            x = jax.nn.relu(y + (convolve(x, block["skip"], step) if "skip" in block else x))
    return x.mean((1, 2)) @ params["head"]


def initial(key: Any) -> Any:
    keys = iter(jax.random.split(key, 100))

    def kernel(size: int, a: int, b: int) -> Any:
        return jax.random.normal(next(keys), (size, size, a, b)) * (2 / (size * size * a)) ** 0.5

    def scale(b: int) -> Any:
        return jnp.stack([jnp.ones(b), jnp.zeros(b)])

    stages, a = [], 64
    for b, _, _ in STAGES:
        stage = []
        for _ in range(BLOCKS):
            block = {"first": kernel(3, a, b), "first scale": scale(b)}
            block |= {"second": kernel(3, b, b), "second scale": 0.3 * scale(b)}
            stage.append(block | ({"skip": kernel(1, a, b)} if a != b else {}))
            a = b
        stages.append(stage)
    head = jax.random.normal(next(keys), (512, OUTPUTS)) / 512**0.5
    return {"stem": kernel(3, 3, 64), "stem scale": scale(64), "stages": stages, "head": head}


def layers() -> list[tuple[int, int, int]]:
    """Positions, numbers in and numbers out of every convolution and of the head."""
    found, a = [(32 * 32, 27, 64)], 64
    for b, side, _ in STAGES:
        for _ in range(BLOCKS):
            found += [(side**2, 9 * a, b), (side**2, 9 * b, b)] + ([(side**2, a, b)] if a != b else [])
            a = b
    return [*found, (1, 512, OUTPUTS)]


def flops(samples: int, *, summed: bool) -> float:
    """Of the cheaper way of each layer, on half of the pairs: (h·h')(δ·δ') over positions, or gradients' products."""
    k = OUTPUTS if summed else OUTPUTS**2
    pairs = samples * (samples + 1) / 2
    each = [min(S * S * (a + k * b), k * a * b) for S, a, b in layers()]
    return 2 * pairs * sum(each)


def timed(compute: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        jax.block_until_ready(compute())
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=None, help="bytes that two blocks of samples may take")
    asked = parser.parse_args()
    n = asked.samples
    params = initial(jax.random.key(0))
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    X = jax.random.normal(jax.random.key(1), (n, 32, 32, 3))
    A = jax.random.normal(jax.random.key(2), (8192, 8192))
    product = jax.jit(lambda A: jnp.matmul(A, A.T, precision="highest"))
    product(A).block_until_ready()
    rate = 2 * 8192**3 / timed(lambda: product(A), 5)
    print(f"{jax.devices()[0].device_kind}: {count} parameters, {n} samples, {OUTPUTS} outputs", flush=True)
    print(f"GEMM in float32: {rate / 1e12:.1f} Tflop/s", flush=True)
    K = empirical_ntk(network, params, X, budget=asked.budget)
    for name, summed, compute in (("trace", True, K.trace), ("dense", False, K.dense)):
        first = timed(compute, 1)
        again = timed(compute, 1)
        floor = flops(n, summed=summed) / rate
        print(
            f"{name}: {again:.1f} s ({first:.1f} s with compilation), floor {floor:.2f} s for "
            f"{flops(n, summed=summed):.2e} flops, ratio {again / floor:.2f}",
            flush=True,
        )
    matrix = K.dense().transpose(0, 2, 1, 3).reshape(n * OUTPUTS, -1)
    print(f"symmetric to {np.abs(matrix - matrix.T).max() / np.abs(matrix).max():.1e}", flush=True)


if __name__ == "__main__":
    main()
