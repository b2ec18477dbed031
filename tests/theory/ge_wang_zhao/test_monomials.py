"""Multi-indices against all tuples of exponents."""

import itertools

import pytest

from offtangent._errors import InputError
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.theory.ge_wang_zhao.monomials import multi_indices, multiplicities


@pytest.mark.parametrize(("dim", "power"), [(1, 1), (4, 1), (3, 2), (2, 3), (3, 4)])
def test_multi_indices_are_all_that_sum_to_the_power(dim, power):
    every = {one for one in itertools.product(range(power + 1), repeat=dim) if sum(one) == power}
    found = [tuple(one) for one in multi_indices(dim, power).tolist()]
    assert set(found) == every
    assert len(found) == symmetric_dimension(dim, power)
    assert multiplicities(dim, power).sum() == dim**power


def test_a_dimension_of_zero_is_refused():
    with pytest.raises(InputError, match="dim=0"):
        multi_indices(0, 2)
