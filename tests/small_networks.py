"""Small networks of many kinds, each as f, its parameters and inputs: what a tangent kernel may be asked of."""

import jax
import jax.numpy as jnp

NHWC = ("NHWC", "HWIO", "NHWC")
NCHW = ("NCHW", "OIHW", "NCHW")


def draw(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def mlp(params, x):
    *hidden, (W, b) = params
    for V, c in hidden:
        x = jax.nn.relu(x @ V + c)
    return x @ W + b


def layers(*sizes):
    return [(draw(2 * i, a, b) / a**0.5, draw(2 * i + 1, b)) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]  # noqa: B905, RUF007


def convolve(x, w, strides=(1, 1), padding="SAME", numbers=NHWC, **words):
    return jax.lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **words)


def cnn(params, x, **words):
    filters, head = params
    channels_last = words.get("numbers", NHWC) == NHWC
    for w, b in filters:
        x = jax.nn.gelu(convolve(x, w, **words) + (b if channels_last else b[:, None, None]))
    return x.mean((1, 2) if channels_last else (2, 3)) @ head


def filters(groups=1):
    return [(draw(1, 3, 3, 4 // groups, 6) / 3, draw(2, 6)), (draw(3, 3, 3, 6 // groups, 4) / 5, draw(4, 4))]


def turned(pairs):
    return [(w.transpose(3, 2, 0, 1), b) for w, b in pairs]


def largest_of_four(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def residual(p, x):
    x = convolve(x, p["stem"])
    for _ in range(3):  # one convolution and one norm, used three times
        normed = (convolve(x, p["w"]) - 0.3) / jnp.sqrt(jnp.arange(1.0, 5.0) + 1e-5) * p["scale"] + p["shift"]
        x = x + jax.nn.relu(normed)
    return x.mean((1, 2)) @ p["head"]


def recurrent(p, x):
    def step(h, xt):
        return jnp.tanh(h @ p[0] + xt @ p[1] + p[2]), None

    return jax.lax.scan(step, jnp.zeros((x.shape[0], 6), x.dtype), x.swapaxes(0, 1))[0] @ p[3]


def lstm(p, x):
    def step(state, xt):
        h, c = state
        i, f, g, o = jnp.split(h @ p["U"] + xt @ p["V"] + p["b"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zero = jnp.zeros((x.shape[0], 5), x.dtype)
    return jax.lax.scan(step, (zero, zero), x.swapaxes(0, 1))[0][0] @ p["head"]


def by_layers(remember):
    def step(h, w):
        return jnp.tanh(h @ w[0] + w[1]), None

    return lambda p, x: jax.lax.scan(step if remember else jax.checkpoint(step), x, p[0])[0] @ p[1]


def transformer(p, x):
    E = p["E"][x] + p["places"]
    q, k, v = (jnp.einsum("nsd,dhe->nhse", E, p[c]) for c in "qkv")
    h = E + jnp.einsum("nhse,hed->nsd", jax.nn.softmax(q @ k.swapaxes(2, 3) / 2.0, -1) @ v, p["o"])
    h = (h - h.mean(-1, keepdims=True)) / h.std(-1, keepdims=True) * p["g"] + p["shift"]
    return (h + jax.nn.gelu(h @ p["up"]) @ p["down"])[:, -1]


@jax.custom_vjp
def sine(x):
    return jnp.sin(x)


sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))

VECTORS = (9, 4, 5)
IMAGES = (9, 3, 8, 8, 4)
WORDS = {"E": (11, 8), "places": (5, 8), "q": (8, 2, 4), "k": (8, 2, 4), "v": (8, 2, 4), "o": (2, 4, 8),
         "g": (8,), "shift": (8,), "up": (8, 16), "down": (16, 8)}  # fmt: skip


def words():
    return {name: draw(10 + i, *shape) for i, (name, shape) in enumerate(WORDS.items())}


def tokens():
    return jax.random.randint(jax.random.key(0), (3, 5), 0, 11)


ALL = {
    "MLP, three outputs": lambda: (mlp, layers(5, 7, 6, 3), draw(*VECTORS)),
    "MLP, one output, jitted": lambda: (lambda p, x: jax.jit(mlp)(p, x)[:, 0], layers(5, 7, 6, 1), draw(*VECTORS)),
    "MLP, checkpointed": lambda: (jax.checkpoint(mlp), layers(5, 7, 6, 2), draw(*VECTORS)),
    "MLP of one sample, vmapped": lambda: (
        lambda p, x: jax.vmap(lambda one: mlp(p, one))(x), layers(5, 7, 6, 2), draw(*VECTORS)),
    "NTK parametrisation": lambda: (
        lambda p, x: -jnp.tanh(x @ p[0] * 5**-0.5) @ p[1].T / jnp.sqrt(7.0), (draw(1, 5, 7), draw(2, 3, 7)),
        draw(*VECTORS)),
    "shared weights": lambda: (
        lambda p, x: jnp.tanh(jnp.tanh(x @ p + x) @ p) @ p, draw(1, 5, 5), draw(*VECTORS)),
    "weights and their transpose": lambda: (
        lambda p, x: jnp.tanh(jnp.tanh(x @ p) @ p.T) @ p, draw(1, 5, 7), draw(*VECTORS)),
    "weights above their biases": lambda: (
        lambda p, x: jnp.tanh(jnp.tanh(x @ p[0][:-1] + p[0][-1]) @ p[1][:-1] + p[1][-1]),
        (draw(1, 6, 7), draw(2, 8, 3)), draw(*VECTORS)),
    "layers in one array": lambda: (
        lambda p, x: jnp.tanh(jnp.tanh(jnp.tanh(x @ p[0]) @ p[2]) @ p[0]) @ p[1][:, :2], draw(1, 4, 5, 5),
        draw(*VECTORS)),
    "slices that overlap": lambda: (
        lambda p, x: jnp.tanh(x @ p[:5]) @ p[2:7] @ p[:5, :2], draw(1, 7, 5), draw(*VECTORS)),
    "an unused leaf": lambda: (lambda p, x: jnp.tanh(x @ p[0]), (draw(1, 5, 2), draw(2, 3)), draw(*VECTORS)),
    "sequences through one layer": lambda: (
        lambda p, x: jnp.tanh(x @ p[0]).sum(1) @ p[1], (draw(1, 5, 7), draw(2, 7, 2)), draw(9, 4, 3, 5)),
    "CNN": lambda: (cnn, (filters(), draw(5, 4, 3)), draw(*IMAGES)),
    "CNN, strides and dilation": lambda: (
        lambda p, x: cnn(p, x, strides=(2, 1), padding="VALID", rhs_dilation=(1, 2)),
        (filters(), draw(5, 4, 3)), draw(9, 3, 13, 14, 4)),
    "CNN, groups": lambda: (
        lambda p, x: cnn(p, x, strides=(2, 2), feature_group_count=2),
        (filters(2), draw(5, 4, 3)), draw(9, 3, 9, 8, 4)),
    "CNN, channels first, spread input": lambda: (
        lambda p, x: cnn(p, x, padding=[(2, 1), (0, 3)], lhs_dilation=(2, 2), numbers=NCHW),
        (turned(filters()), draw(5, 4, 3)), draw(9, 3, 4, 7, 7)),
    "CNN, depthwise": lambda: (
        lambda p, x: jnp.tanh(convolve(x, p[0], feature_group_count=4)).mean((1, 2)) @ p[1],
        (draw(1, 3, 3, 1, 8), draw(2, 8, 3)), draw(9, 3, 6, 6, 4)),
    "CNN, transposed": lambda: (
        lambda p, x: jnp.tanh(jax.lax.conv_transpose(x, p[0], (2, 2), "SAME")).mean((1, 2)) @ p[1],
        (draw(1, 3, 3, 4, 5), draw(2, 5, 2)), draw(9, 3, 4, 4, 4)),
    "CNN, max pooling": lambda: (
        lambda p, x: largest_of_four(convolve(x, p[0])).reshape(len(x), -1) @ p[1],
        (draw(1, 3, 3, 4, 3), draw(2, 48, 2)), draw(*IMAGES)),
    "residual, one convolution and norm thrice": lambda: (
        residual, {"stem": draw(1, 3, 3, 2, 4), "w": draw(2, 3, 3, 4, 4) / 6, "scale": draw(3, 4), "shift": draw(4, 4),
                   "head": draw(5, 4, 3)}, draw(9, 3, 6, 6, 2)),
    "recurrent": lambda: (
        recurrent, (draw(1, 6, 6) / 3, draw(2, 3, 6), draw(3, 6), draw(4, 6, 2)), draw(9, 4, 5, 3)),
    "LSTM": lambda: (
        lstm, {"U": draw(1, 5, 20) / 3, "V": draw(2, 3, 20), "b": draw(3, 20), "head": draw(4, 5, 2)},
        draw(9, 4, 6, 3)),
    "layers in a scan": lambda: (
        by_layers(True), ((draw(1, 4, 5, 5) / 2, draw(2, 4, 5)), draw(3, 5, 2)), draw(*VECTORS)),
    "layers in a scan, checkpointed": lambda: (
        by_layers(False), ((draw(1, 4, 5, 5) / 2, draw(2, 4, 5)), draw(3, 5, 2)), draw(*VECTORS)),
    "transformer": lambda: (
        lambda p, x: transformer(p, x) @ p["u"], words() | {"u": draw(12, 8, 2)}, tokens()),
    "transformer, tied embedding": lambda: (
        lambda p, x: (transformer(p, x) @ p["E"].T)[:, :3], words(), tokens()),
    "cond": lambda: (
        lambda p, x: jax.lax.cond(p[1].sum() > 0, lambda: jnp.tanh(x @ p[0]), lambda: x @ p[0]) @ p[1],
        (draw(1, 5, 7), draw(2, 7, 2)), draw(*VECTORS)),
    "a rule of one's own": lambda: (
        lambda p, x: sine(x @ p[0]) @ p[1], (draw(1, 5, 7), draw(2, 7, 2)), draw(*VECTORS)),
    "inputs of two parts": lambda: (
        lambda p, x: jnp.tanh(x["a"] @ p[0] + x["b"] @ p[1]) @ p[2],
        (draw(1, 5, 7), draw(2, 3, 7), draw(3, 7, 2)), {"a": draw(*VECTORS), "b": draw(8, 4, 3)}),
}  # fmt: skip
