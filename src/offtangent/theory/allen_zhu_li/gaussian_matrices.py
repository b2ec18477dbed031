r"""How long a Gaussian matrix makes a vector, in general and where few of its entries are not zero.

Allen-Zhu & Li (2019), Proposition C.2, for M of n rows and m columns with entries N(0, 1):

    ‖M‖₂ ≤ O(√n + √m) + t                        but with probability e^{−Ω(t²)},
    ‖Mv‖₂ ≤ O(√n + √s log m)‖v‖₂ for s-sparse v  but with probability e^{−Ω(n + s log² m)}.

The first has constants: ‖M‖₂ ≤ √n + √m + t but with probability e^{−t²/2} (Gordon, and that ‖·‖₂ is 1-Lipschitz). The
second follows as the paper says, from the first for all C(m, s) choices of s columns, and then it has constants too.
"""

import math

from offtangent._checks import check_bound, check_count, require


def sparse_norm_bound(rows: int, columns: int, sparsity: int, *, delta: float) -> float:
    """Proposition C.2: ‖Mv‖₂ ≤ (√n + √s + √(2 ln(C(m, s)/δ)))‖v‖₂ for all s-sparse v, but with probability δ.

    With s = m it is the first part, √n + √m + t with δ = e^{−t²/2}; as ln C(m, s) ≤ s ln m the bound is no more than
    √n + √s(1 + √(2 ln m)) + √(2 ln(1/δ)), which is O(√n + √s log m) as printed.

    Args:
        rows: The number n of rows of M.
        columns: The number m of columns.
        sparsity: The number s of entries of v that may differ from zero.
        delta: The probability δ with which the bound may fail.

    Returns:
        The bound on max ‖Mv‖₂/‖v‖₂.

    >>> round(sparse_norm_bound(9, 16, 16, delta=math.exp(-2)), 12)  # √9 + √16 + 2
    9.0
    """
    for name, count in (("rows", rows), ("columns", columns), ("sparsity", sparsity)):
        check_count(name, count)
    check_bound(delta)
    require(sparsity <= columns, f"sparsity={sparsity}: v has {columns} entries, one for each column of M.")
    choices = math.lgamma(columns + 1) - math.lgamma(sparsity + 1) - math.lgamma(columns - sparsity + 1)
    return math.sqrt(rows) + math.sqrt(sparsity) + math.sqrt(2 * (choices - math.log(delta)))
