"""Proposition C.2, with its constants: against draws, every choice of columns, and the law of one column."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from offtangent._errors import InputError
from offtangent.theory.allen_zhu_li.gaussian_matrices import sparse_norm_bound


@pytest.mark.parametrize(("rows", "columns", "sparsity"), [(1, 1, 1), (3, 8, 1), (4, 6, 2), (5, 5, 5), (2, 9, 3)])
def test_few_matrices_make_a_sparse_vector_longer(rows, columns, sparsity):
    delta, draws = 0.2, 2000
    M = np.random.default_rng(rows).standard_normal((draws, rows, columns))
    longest = np.max(
        [
            np.linalg.norm(M[:, :, chosen], 2, axis=(1, 2))
            for chosen in itertools.combinations(range(columns), sparsity)
        ],
        axis=0,
    )
    share = (longest > sparse_norm_bound(rows, columns, sparsity, delta=delta)).mean()
    assert share <= delta + 3 * math.sqrt(delta / draws)


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6])
def test_one_column_is_as_long_as_its_law_allows(delta):
    """χ of n = 50, whose deviations are 1/√2 of those of a 1-Lipschitz function: the bound lies above its quantile."""
    exact, t = scipy.stats.chi(50).isf(delta), math.sqrt(2 * math.log(1 / delta))
    assert exact < sparse_norm_bound(50, 1, 1, delta=delta) < exact + 1.1 + t


def test_the_union_bound_counts_every_choice_of_columns():
    apart = sparse_norm_bound(7, 10, 3, delta=0.1) - math.sqrt(7) - math.sqrt(3)
    assert apart**2 / 2 == pytest.approx(math.log(120 / 0.1), rel=1e-12)


def test_it_is_no_more_than_what_the_proposition_prints_with_its_constants_as_two():
    for rows, columns, sparsity in itertools.product((1, 100), (8, 1000, 10**4), (1, 8)):
        delta = math.exp(-(rows + sparsity * math.log(columns) ** 2) / 2)
        printed = math.sqrt(rows) + math.sqrt(sparsity) * math.log(columns)
        assert sparse_norm_bound(rows, columns, sparsity, delta=delta) <= 3 * printed


def test_more_entries_than_columns_are_refused():
    with pytest.raises(InputError, match="sparsity=4: v has 3 entries"):
        sparse_norm_bound(2, 3, 4, delta=0.1)
    with pytest.raises(InputError, match="delta"):
        sparse_norm_bound(2, 3, 1, delta=0.0)
