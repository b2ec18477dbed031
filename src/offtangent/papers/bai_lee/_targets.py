"""The targets of Section 5.2 of Bai & Lee: their samples, what a test reports, and when one of them counts as learnt.

A task is "xor" (the corners of a cube), "noisy xor" (Wei et al.'s distribution), or the degree p of (βᵀx)^p.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Array, Float, Key

from offtangent import data

WRONG = 0.1  # of the test signs of XOR


def is_xor(task: str) -> bool:
    return task.endswith("xor")


def sample(
    task: str, count: int, dim: int, *, key: Key[Array, ""]
) -> tuple[Float[np.ndarray, "count dim"], Float[np.ndarray, " count"]]:
    """Inputs of length √d and their labels: signs, or the values of a polynomial with E f⋆² = 1."""
    if task == "xor":
        X = data.hypercube(count, dim, key=key)
        return X, X[:, 0] * X[:, 1]
    if task == "noisy xor":
        X = data.distributions.noisy_xor(count, dim, key=key)
        return X * math.sqrt(dim / (dim - 1)), X[:, 0] ** 2 - X[:, 1] ** 2
    X, power = data.sphere(count, dim, key=key), int(task)
    return X * math.sqrt(dim), X[:, 0] ** power / math.sqrt(moment(2 * power, dim))


def measure(task: str, labels: Any, outputs: Any) -> Any:
    """What a test reports: for XOR the fraction of wrong signs, for a polynomial the squared error over E f⋆² = 1."""
    return (labels * outputs <= 0).mean(axis=-1) if is_xor(task) else ((outputs - labels) ** 2).mean(axis=-1)


def moment(power: int, dim: int) -> float:
    """E u^power of one coordinate u of the unit sphere: (k − 1)!!/(d(d + 2) … (d + k − 2)), and zero for odd k.

    >>> moment(2, 5), moment(3, 5)
    (0.2, 0.0)
    """
    if power % 2:
        return 0.0
    return math.prod(((2 * j + 1) / (dim + 2 * j) for j in range(power // 2)), start=1.0)


def top_share(power: int, dim: int) -> float:
    """How much of E u^{2p} no polynomial of lower degree accounts for: p!/(2p − 1)!! as d grows.

    >>> round(top_share(3, 10**6), 4), round(top_share(4, 10**6), 4)
    (0.4, 0.2286)
    """
    lower = range(power)
    gram = np.array([[moment(i + j, dim) for j in lower] for i in lower])
    across = np.array([moment(i + power, dim) for i in lower])
    whole = moment(2 * power, dim)
    scale = np.sqrt(np.diag(gram))  # else the powers of u differ by orders of magnitude
    return float(1 - (across / scale) @ np.linalg.solve(gram / np.outer(scale, scale), across / scale) / whole)


def level(task: str, dim: int) -> float:
    """The test loss at which a target counts as learnt.

    XOR: a tenth of the signs are wrong. (βᵀx)^p: half of what its part of degree p contributes is left, so that to know
    its lower degrees alone never suffices.
    """
    return WRONG if is_xor(task) else top_share(int(task), dim) / 2
