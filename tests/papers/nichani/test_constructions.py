"""Nichani, Bai & Lee, the constructions, in their smoke profile; and that wrong numbers would be found out."""

from functools import partial

import pytest

import faults
from offtangent.lab import Results
from offtangent.papers.nichani import constructions
from offtangent.papers.nichani.constructions import lemma1, lemma2, theorem2, theorem4
from offtangent.papers.nichani.constructions._setting import planted
from offtangent.papers.nichani.constructions.corollary1 import Descents
from offtangent.papers.nichani.constructions.lemma1 import Sparse
from offtangent.papers.nichani.constructions.lemma2 import Dense
from offtangent.papers.nichani.constructions.theorem2 import Joint
from offtangent.papers.nichani.constructions.theorem4 import Learned

KINDS = (Sparse, Dense, Joint, Descents, Learned)


@pytest.fixture(scope="module")
def smoke():
    cells = constructions.cells(constructions.PROFILES["smoke"])
    return Results("smoke", tuple((cell, constructions.run(cell)) for cell in cells))


failing, changed = partial(faults.failing, constructions), partial(faults.changed, constructions)


def test_no_claim_fails_and_most_are_judged(smoke):
    claims = list(constructions.claims(smoke))
    assert {claim.verdict for claim in claims} <= {"holds", "outside the hypothesis", "not testable at this size"}
    assert sum(claim.verdict == "holds" for claim in claims) > len(claims) / 2
    assert {claim.source for claim in claims} == {
        "Lemma 1", "Lemma 1, eq. (22)", "Lemma 2, eq. (23)", "Theorem 2", "Theorem 2, eq. (29)", "Theorem 2, eq. (30)",
        "Section 4.1", "Lemma 3, eq. (31)", "Corollary 1", "Theorem 3", "Theorems 1, 4", "Theorem 4, eq. (32)",
    }  # fmt: skip


def test_every_profile_has_five_sizes_of_two_decades():
    for name in ("laptop", "paper"):
        configs = [one.PROFILES[name] for one in (lemma1, lemma2, theorem2, theorem4)]
        sparse, dense, joint, learned = configs
        grown = [[n for n, _ in one[3]] for one in dense.grown]
        for sizes in (sparse.widths, sparse.dims, joint.widths, learned.samples, *grown):
            assert len(sizes) >= 5
            assert sizes[-1] >= 100 * sizes[0]
        assert all(config.seeds >= 10 for config in configs)


def test_what_needs_an_unreachable_width_is_outside_the_hypothesis(smoke):
    outside = [claim for claim in constructions.claims(smoke) if claim.verdict == "outside the hypothesis"]
    assert {claim.source for claim in outside} == {
        "Lemma 2, eq. (23)", "Theorem 2, eq. (29)", "Lemma 3, eq. (31)", "Corollary 1", "Theorem 3", "Theorems 1, 4",
    }  # fmt: skip


def test_there_are_figures_and_missing_cells_leave_the_others_standing(smoke):
    everything = len(list(constructions.claims(smoke)))
    assert len(list(constructions.draw(smoke))) == 6
    for kind in KINDS:
        less = Results("smoke", tuple(pair for pair in smoke if type(pair[0]) is not kind), complete=False)
        assert 0 < len(list(constructions.claims(less))) < everything
        assert len(list(constructions.draw(less))) == (4 if kind is Joint else 5)
    assert all(constructions.cost(cell).flops > 0 and constructions.cost(cell).bytes > 0 for cell, _ in smoke)


def test_targets_have_equal_energies_in_every_degree():
    import jax

    energies = planted(6, 2, 1, key=jax.random.key(0)).energies()
    assert energies.low[:3] == pytest.approx([1 / 3] * 3)


def test_a_wrong_w_q_would_be_found_out(smoke):
    assert "Lemma 1, eq. (22)" in changed(smoke, Sparse, error=lambda cell, data: data["error"] * cell.width**0.5)
    assert changed(smoke, Sparse, ratio=lambda _, data: data["ratio"] / 10) == {"Lemma 1"}
    assert changed(smoke, Sparse, norm_mean=lambda _, data: 1.5 * data["norm_mean"]) == {"Lemma 1"}
    assert changed(smoke, Sparse, worst=lambda _, data: 10 * data["worst"]) == {"Lemma 1, eq. (22)"}
    assert changed(smoke, Sparse, norm4=lambda _, data: 20 * data["norm4"]) == {"Lemma 1, eq. (22)"}
    assert changed(smoke, Sparse, largest=lambda cell, data: data["largest"] * cell.dim**4) == {"Lemma 1, eq. (22)"}


@pytest.mark.parametrize("name", ["signed_ratio", "random_ratio", "flip", "signed"])
def test_signs_that_do_not_cancel_would_be_found_out(smoke, name):
    faults = {"flip": lambda _, data: data["flip"] + 1e-6, "signed": lambda _, data: 0 * data["signed"] + 1.0}
    assert changed(smoke, Sparse, **{name: faults.get(name, lambda _, data: 2 * data[name])}) == {"Section 4.1"}


def test_a_wrong_w_l_would_be_found_out(smoke):
    assert changed(smoke, Dense, error=lambda _, data: 0 * data["error"] + 0.1) == {"Lemma 2, eq. (23)"}
    assert changed(smoke, Dense, scaled=lambda cell, data: data["scaled"] * cell.dim) == {"Lemma 2, eq. (23)"}


def test_a_wrong_w_star_would_be_found_out(smoke):
    for name in ("r1", "r3"):
        fault = changed(smoke, Joint, **{name: lambda _, data, name=name: 0 * data[name] + 1.0})
        assert fault == {"Theorem 2, eq. (30)"}
    for name in ("r2", "r4"):
        fault = changed(smoke, Joint, **{name: lambda cell, data, name=name: data[name] * cell.width**0.5})
        assert fault == {"Theorem 2, eq. (30)"}
    assert changed(smoke, Joint, loss=lambda _, data: 0 * data["loss"] + 0.1) == {"Theorem 2, eq. (29)"}
    assert changed(smoke, Joint, best=lambda _, data: data["best"] + 1) == {"Theorem 2"}
    assert changed(smoke, Joint, drawn=lambda _, data: 4 * data["drawn"]) == {"Theorem 2"}


def test_a_wrong_landscape_would_be_found_out(smoke):
    assert changed(smoke, Joint, proven=lambda _, data: -data["proven"]) == {"Lemma 3, eq. (31)"}
    assert changed(smoke, Joint, terms=lambda _, data: 0 * data["terms"] + 1) == {"Lemma 3, eq. (31)"}


@pytest.mark.parametrize("name", ["gradient", "lowest"])
def test_a_descent_that_has_not_arrived_is_not_counted_as_certified(smoke, name):
    pairs = [(cell, data.copy()) for cell, data in smoke.where(Descents)]
    for _, data in pairs:
        data[name] = data[name] + (1 if name == "gradient" else -1)
    (claim,) = (c for c in constructions.claims(Results("smoke", tuple(pairs))) if c.source == "Theorem 3")
    assert (claim.value, claim.met) == (0.0, False)
    (arrived,) = (c for c in constructions.claims(smoke) if c.source == "Theorem 3")
    assert (arrived.value, arrived.met) == (1.0, True)


def test_a_network_from_zero_that_had_learnt_nothing_would_be_seen(smoke):
    pairs = tuple((cell, data.assign(test=data["test"] + 2)) for cell, data in smoke.where(Descents))
    for results, met in ((smoke, True), (Results("smoke", pairs), False)):
        (claim,) = (c for c in constructions.claims(results) if c.source == "Theorems 1, 4")
        assert claim.met == met
    (_, data) = smoke.where(Descents).pairs[0]
    assert float(data["test"].max()) < 0.5 * float(data["loss"].isel(look=0).mean())


def test_a_network_that_learns_by_heart_would_be_found_out(smoke):
    assert changed(smoke, Learned, test=lambda _, data: data["bound"] + data["test"]) == {"Theorem 4, eq. (32)"}
    assert changed(smoke, Learned, train=lambda _, data: data["test"] - 0.01) == {"Theorem 4, eq. (32)"}
