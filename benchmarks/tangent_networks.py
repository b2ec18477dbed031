"""The networks whose tangent kernels are timed; neural-tangents reads this file with a JAX of its own time."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(0)
NUMBERS = ("NHWC", "HWIO", "NHWC")


def draw(*shape):
    return jnp.asarray(RNG.standard_normal(shape) / np.sqrt(np.prod(shape[:-1])), jnp.float32)


def inputs(*shape):
    return jnp.asarray(RNG.standard_normal(shape), jnp.float32)


def mlp(params, x):
    *hidden, (W, b) = params
    for V, c in hidden:
        x = jax.nn.relu(x @ V + c)
    return x @ W + b


def convolve(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NUMBERS)


def cnn(params, x):
    for w, b in params[0]:
        x = jax.nn.relu(convolve(x, w) + b)
    return x.mean((1, 2)) @ params[1] + params[2]


def residual(params, x):
    x = convolve(x, params[0])
    for w1, w2 in params[1]:
        x = x + convolve(jax.nn.relu(convolve(jax.nn.relu(x), w1)), w2)
    return x.mean((1, 2)) @ params[2]


def perceptron(outputs):
    sizes = (784, 512, 512, outputs)
    return mlp, [(draw(a, b), draw(b)) for a, b in itertools.pairwise(sizes)], inputs(128, 784)


NETWORKS = {
    "784-512-512-1, 128 samples": lambda: perceptron(1),
    "784-512-512-10, 128 samples": lambda: perceptron(10),
    "CNN of 32, 64, 64 channels on 32 × 32 × 3, ten outputs, 16 samples": lambda: (
        cnn,
        ([(draw(3, 3, a, b), draw(b)) for a, b in ((3, 32), (32, 64), (64, 64))], draw(64, 10), draw(10)),
        inputs(16, 32, 32, 3),
    ),
    "residual, three blocks of 32 channels on 16 × 16 × 3, ten outputs, 16 samples": lambda: (
        residual,
        (draw(3, 3, 3, 32), [(draw(3, 3, 32, 32), draw(3, 3, 32, 32)) for _ in range(3)], draw(32, 10)),
        inputs(16, 16, 16, 3),
    ),
}
