"""Lemma D.1's bounds and what is known of their left sides as m → ∞, for a cell of `coupling`."""

import math
from typing import Any

from offtangent.theory.allen_zhu_li.worst_signs import operator_limit, output_limit

SIGMA_V = 4.0


def length_v(cell: Any) -> float:
    return float(cell.ratio) * SIGMA_V


def norm_of_a(cell: Any) -> float:
    """√m‖A‖₂ is at most √m + √k + t with probability 1 − e^{−t²/2}; t = 3."""
    return 1 + (math.sqrt(cell.outputs) + 3) / math.sqrt(cell.width)


def share_w(cell: Any) -> float:
    return float(cell.tau * cell.width ** (0.125 - 0.5)) ** (2 / 3)


def share_v(cell: Any) -> float:
    return float(cell.ratio) ** (2 / 3)


def bound_b(cell: Any) -> float:
    sigma = cell.width**-0.125
    turned = math.log(cell.width) * cell.tau * (cell.tau / sigma) ** (1 / 3) * cell.width ** (-1 / 6)
    return float(turned + math.sqrt(cell.outputs) * sigma)


def limit_b(cell: Any) -> float:
    sigma = cell.width**-0.125
    turned = output_limit(math.sqrt(2) * cell.tau, math.sqrt(2) * sigma, cell.width)
    return turned + math.sqrt(cell.outputs) * sigma


def bound_e(cell: Any) -> float:
    return math.log(cell.width) * length_v(cell) * float(cell.ratio) ** (1 / 3)


def limit_e(cell: Any) -> float:
    still = SIGMA_V * math.sqrt(cell.outputs / (2 * cell.width))
    return output_limit(length_v(cell), SIGMA_V / math.sqrt(cell.width), cell.width) + still


def limit_f(cell: Any) -> float:
    return operator_limit(length_v(cell), SIGMA_V / math.sqrt(cell.width), cell.width)
