"""The targets of Section 5.2 of Bai & Lee: what a test of them reports, and when one of them counts as learnt."""

import math
from typing import Any

import numpy as np

WRONG = 0.1  # of the test signs of XOR


def measure(task: str, labels: Any, outputs: Any) -> Any:
    """What a test reports: for XOR the fraction of wrong signs, for a polynomial the squared error over E f⋆² = 1."""
    return (labels * outputs <= 0).mean(axis=-1) if task == "xor" else ((outputs - labels) ** 2).mean(axis=-1)


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
    return WRONG if task == "xor" else top_share(int(task), dim) / 2
