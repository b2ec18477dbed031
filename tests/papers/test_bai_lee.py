"""Bai & Lee, the coupling and higher orders, in their smoke profiles."""

from dataclasses import replace

import numpy as np
import pytest

from offtangent.lab import Results
from offtangent.papers.bai_lee import coupling, orders

EXPERIMENTS = {"coupling": coupling, "orders": orders}


@pytest.fixture(scope="module", params=EXPERIMENTS)
def smoke(request):
    module = EXPERIMENTS[request.param]
    cells = module.cells(module.PROFILES["smoke"])
    return module, Results("smoke", tuple((cell, module.run(cell)) for cell in cells))


def test_no_claim_fails_and_every_one_is_tested(smoke):
    module, results = smoke
    verdicts = [claim.verdict for claim in module.claims(results)]
    assert verdicts
    assert set(verdicts) == {"holds"}


def test_there_are_figures_and_missing_cells_leave_the_others_standing(smoke):
    module, results = smoke
    assert len(module.draw(results)) >= 2
    less = Results("smoke", results.pairs[1:], complete=False)
    assert 0 < len(module.claims(less)) < len(module.claims(results))
    assert module.draw(less)


def test_every_cell_says_what_it_costs(smoke):
    module, results = smoke
    assert all(module.cost(cell).flops > 0 and module.cost(cell).bytes > 0 for cell, _ in results)


@pytest.fixture(scope="module")
def signs():
    cells = coupling.cells(coupling.PROFILES["smoke"])
    return Results("smoke", tuple((cell, coupling.run(replace(cell, draws=8))) for cell in cells))


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


def test_without_signs_the_linear_part_is_not_small(signs):
    """One half of the softplus's neurons moves: f^L ~ m^{1/4} without signs."""
    data = [data for cell, data in signs if cell.activation == "softplus"]
    unsigned = np.array([float(one.linear_unsigned.mean()) for one in data])
    slope = np.polyfit(np.log([256, 2048, 16384]), np.log(unsigned), 1)[0]
    assert slope == pytest.approx(0.25, abs=0.02)


def test_an_order_that_were_too_large_would_be_found_out():
    config = replace(orders.PROFILES["smoke"], orders=(2,))
    cells = [cell for cell in orders.cells(config) if cell.shift == 0.5]
    pairs = tuple((cell, orders.run(cell)) for cell in cells)
    wrong = tuple((cell, data.assign(mean=data["mean"] * cell.pairs**0.1)) for cell, data in pairs)
    assert not [c for c in orders.claims(Results("smoke", pairs)) if c.verdict == "fails"]
    assert len([c for c in orders.claims(Results("smoke", wrong)) if c.verdict == "fails"]) == 2
