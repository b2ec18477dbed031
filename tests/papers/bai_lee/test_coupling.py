"""Bai & Lee, the coupling and higher orders, in their smoke profiles."""

import numpy as np
import pytest

from offtangent.lab import Results
from offtangent.papers.bai_lee import coupling, orders

EXPERIMENTS = {"coupling": coupling, "orders": orders}


def results_of(module):
    cells = module.cells(module.PROFILES["smoke"])
    return Results("smoke", tuple((cell, module.run(cell)) for cell in cells))


@pytest.fixture(scope="module")
def smoke_orders():
    return results_of(orders)


@pytest.fixture(scope="module")
def signs():
    return results_of(coupling)


@pytest.fixture(scope="module", params=EXPERIMENTS)
def smoke(request):
    module = EXPERIMENTS[request.param]
    return module, request.getfixturevalue("smoke_orders" if module is orders else "signs")


def test_no_claim_fails_and_every_one_is_tested(smoke):
    module, results = smoke
    verdicts = [claim.verdict for claim in module.claims(results)]
    assert verdicts
    assert set(verdicts) == {"holds"}


def test_there_are_figures_and_missing_cells_leave_the_others_standing(smoke):
    module, results = smoke
    assert len(list(module.draw(results))) >= 2
    less = Results("smoke", results.pairs[1:], complete=False)
    assert 0 < len(list(module.claims(less))) < len(list(module.claims(results)))
    assert list(module.draw(less))


def test_every_cell_says_what_it_costs(smoke):
    module, results = smoke
    assert all(module.cost(cell).flops > 0 and module.cost(cell).bytes > 0 for cell, _ in results)


def changed(results: Results, **exponents: float) -> set[str]:
    """The statements that fail when a number grows with this power of the width."""
    pairs = tuple(
        (cell, data.assign({name: data[name] * cell.width**power for name, power in exponents.items()}))
        for cell, data in results
    )
    return {claim.statement for claim in coupling.claims(Results("smoke", pairs)) if claim.verdict == "fails"}


@pytest.mark.parametrize("name", ["linear", "quadratic", "remainder_worst"])
def test_a_part_that_grew_faster_than_stated_would_be_found_out(signs, name):
    assert not changed(signs)
    assert changed(signs, **{name: 0.25})


@pytest.mark.parametrize(("power", "told"), [(0.0, 2), (0.5, 0)])
def test_a_remainder_is_said_to_fall_faster_only_where_it_does(signs, power, told):
    """For both activations; times m^(1/2) it falls slower than Lemma 11(b) has it."""
    pairs = tuple((cell, data.assign(remainder=data["remainder"] * cell.width**power)) for cell, data in signs)
    assert sum("It falls faster" in claim.note for claim in coupling.claims(Results("smoke", pairs))) == told


def test_without_signs_the_linear_part_is_not_small(signs):
    """One half of the softplus's neurons moves: f^L ~ m^{1/4} without signs."""
    data = [data for cell, data in signs if cell.activation == "softplus"]
    unsigned = np.array([float(one.linear_unsigned.mean()) for one in data])
    slope = np.polyfit(np.log([256, 2048, 16384]), np.log(unsigned), 1)[0]
    assert slope == pytest.approx(0.25, abs=0.02)


@pytest.fixture(scope="module", params=[2, 3, 4])
def terms(request, smoke_orders):
    return [(cell, data) for cell, data in smoke_orders if cell.order == request.param]


FAULTS = {
    "twice too large": lambda pairs: 2.0,  # noqa: ARG005
    "half of it": lambda pairs: 0.5,  # noqa: ARG005
    "missing": lambda pairs: 1e-9,  # noqa: ARG005
    "falling too slowly": lambda pairs: (pairs / 128) ** 0.25,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("shift", orders.SHIFTS)
def test_one_wrong_term_of_any_order_would_be_found_out(terms, shift, fault):
    """Below, at and above k: each f^(j) by itself, the others as they are."""
    right = [(cell, data) for cell, data in terms if cell.shift == shift]
    assert not failing(right)
    for j in range(1, right[0][0].order + 2):
        wrong = [
            (cell, data.assign(size=data["size"] * np.where(data.term == j, FAULTS[fault](cell.pairs), 1.0)))
            for cell, data in right
        ]
        assert failing(wrong), j


def test_every_row_names_its_order_and_nodes_and_what_was_drawn(smoke_orders):
    found = list(orders.claims(smoke_orders))
    assert len({claim.statement for claim in found}) == len(found)
    assert all("centred nodes" in claim.statement or "shifted by 0.5" in claim.statement for claim in found)
    means = [claim for claim in found if "E_z" in claim.statement]
    assert len(means) == 3 + 6  # the next term's for shifted nodes, the k-th for both
    assert all("mean over z± in closed form" in claim.measured for claim in means)
    assert not any("draws of z±" in claim.measured for claim in means)
    assert [claim for claim in found if claim.kind == "identity"] == means


def test_what_holds_by_algebra_is_an_identity_and_every_exponent_a_claim(signs):
    """Lemma 11's constants leave room for hundreds: its exponents are what can be wrong."""
    found = list(coupling.claims(signs))
    exact = [claim.source for claim in found if claim.kind == "identity"]
    assert exact == 2 * ["Section 3", "Section 3", "Section 3", "Lemma 11(b)", "Lemma 11(a)"]
    assert all("slope" in claim.measured for claim in found if claim.kind == "claim")


def test_an_initialisation_beyond_equation_4_is_outside_the_hypothesis(signs):
    wide = Results("smoke", tuple((cell, data.assign(initial=3 * data["initial"])) for cell, data in signs))
    told = {claim.verdict for claim in coupling.claims(wide) if claim.statement.startswith(("f^L", "f^Q "))}
    assert told == {"outside the hypothesis"}
    assert not any(claim.source == "eq. (4)" for claim in coupling.claims(signs))


def test_a_mean_of_the_k_th_or_next_term_that_grew_would_be_found_out(terms):
    right = [(cell, data) for cell, data in terms if cell.shift == 0.5]
    wrong = [(cell, data.assign(mean=data["mean"] * cell.pairs**0.1)) for cell, data in right]
    assert {claim.kind for claim in failing(wrong)} == {"identity"}
    assert len(failing(wrong)) == 2


def test_a_k_th_term_that_grew_as_drawn_would_be_found_out(terms):
    """The exact mean over z± does not see it."""
    wrong = [(cell, data.assign(size=data["size"] * cell.pairs**0.1)) for cell, data in terms if cell.shift == 0.5]
    k = terms[0][0].order
    assert any(f"f^({k}) = O(1)" in claim.statement and claim.kind == "claim" for claim in failing(wrong))


def failing(pairs):
    return [claim for claim in orders.claims(Results("smoke", tuple(pairs))) if claim.verdict == "fails"]
