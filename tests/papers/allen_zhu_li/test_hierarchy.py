"""Allen-Zhu & Li, what each layer learns: a small run of either way, and that wrong numbers would be found out."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from offtangent.lab import Results
from offtangent.networks.resnet import Hidden
from offtangent.papers.allen_zhu_li import _layers, _methods, hierarchy, hierarchy_report
from offtangent.training.grids import Search, grid_sgd

LOOKS = np.array([0, 9, 99])
NOTHING = 4 * (1 + _methods.ALPHA**2)  # E‖y‖² of the small target: the error of one who says nothing


def cell(way, epochs=400):
    return hierarchy.Layers(way, "version 1", 1000, 100, epochs, seeds=3, looks=3, first=100)


def planted(
    *,
    first=((0.0, 0.9, 0.9), (0.0, 0.0, 0.0)),
    rest=((0.0, 0.1, 0.1), (0.0, 0.1, 0.9)),
    missed=((1.0, 0.1, 0.1), (1.0, 0.9, 0.2)),
    after=0.8,
    own=0.1,
    epochs=400,
):
    """What out₁ and the rest have of F and of αG(F) at three looks, with three seeds that differ by a hundredth.

    The test errors are 0.2 together, `own` with a decay on W, `after` layer by layer with the same budget, and 0.05
    with a choice for each layer and all epochs for each.
    """
    jitter = np.array([0.99, 1.0, 1.01])
    learnt = jitter[:, None, None, None] * np.array([first, rest])
    together = xr.Dataset(
        {
            "learnt": (("seed", "part", "signal", "look"), learnt),
            "missed": (("seed", "part", "look"), jitter[:, None, None] * np.array(missed)),
            "test": ("seed", 0.2 * jitter),
            "best": ("seed", 0.17 * jitter),
        }
    ).assign(rate=0.1, decay=0.0, inside=True)
    together = together.assign_coords(part=list(_layers.PARTS), signal=list(_layers.SIGNALS), look=LOOKS)
    alone = together.isel(part=0, drop=True).assign(test=("seed", 0.9 * jitter), best=("seed", 0.88 * jitter))
    fair = together.assign(test=("seed", after * jitter), best=("seed", 0.78 * jitter))
    apart = together.assign(test=("seed", 0.05 * jitter))
    apart = apart.assign({f"alone_{name}": table for name, table in alone.data_vars.items()})
    first = together.assign(test=("seed", own * jitter))
    return Results(
        "paper",
        tuple(
            (cell(way, epochs), data) for way, data in zip(_layers.WAYS, (together, first, apart, fair), strict=True)
        ),
    )


@pytest.fixture(scope="module")
def trained():
    """A small run of either way, with one rate and one decay: a grid would take more programs."""

    def once(evaluate, rates, decays, *, by):
        return Search(rates[1:2], decays[1:2], evaluate(rates[1:2], decays[1:2]), by)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_methods, "search", once)
        return {
            way: hierarchy.run(hierarchy.Layers(way, "small", 400, 32, epochs=20, seeds=2, looks=3))
            for way in _layers.WAYS
        }


def verdicts(results):
    return [claim.verdict for claim in hierarchy.claims(results)]


def test_trained_together_the_layers_learn_F_and_half_of_the_labels_at_least(trained):
    found = trained["together"]
    of_F = found["learnt"].sel(signal="F").sum("part").values
    assert (of_F[:, 0] < 0.2).all()
    assert (of_F[:, -1] > 0.8).all()
    assert (found["test"].values < NOTHING / 2).all()


def test_layer_by_layer_the_first_layer_learns_F_in_its_own_stage(trained):
    found = trained["layer by layer"]
    far = found["alone_missed"].values
    assert (far[:, 0] > 1).all()
    assert (far[:, -1] < 0.5).all()
    assert (found["alone_test"].values < NOTHING / 2).all()


def test_layer_by_layer_the_second_stage_leaves_the_first_layer_alone(trained):
    """What out₁ has is the same at all looks of the second stage, and what the first stage ended with."""
    found = trained["layer by layer"]
    for name in ("learnt", "missed"):
        held = found[name].sel(part="first").values
        assert (held == held[..., :1]).all()
        np.testing.assert_allclose(held[..., 0], found[f"alone_{name}"].values[..., -1], rtol=1e-4, atol=1e-5)


def test_layer_by_layer_the_second_layer_mends_some_of_the_first_one_s_error(trained):
    found = trained["layer by layer"]
    rest = found["missed"].sel(part="rest").values
    assert (rest[:, -1] < rest[:, 0]).all()
    assert (found["test"].values < found["alone_test"].values).all()


def test_a_decay_on_w_alone_leaves_v_without(monkeypatch):
    seen = []

    def grid(rates, decays, weights, *, schedule):
        seen.append((decays, weights))
        return grid_sgd(rates, decays, weights, schedule=schedule)

    monkeypatch.setattr(_methods, "grid_sgd", grid)
    monkeypatch.setattr(
        _methods, "search", lambda evaluate, *_, by: Search((0.1,), (0.5,), evaluate((0.1,), (0.5,)), by)
    )
    hierarchy.run(hierarchy.Layers("together, decay on W", "small", 50, 8, epochs=1, seeds=1, looks=2))
    ((decays, weights),) = seen
    assert (decays.W.tolist(), decays.V.tolist()) == ([[0.5]], [[0.0]])
    assert weights.W.shape == (1, 17, 8)


def test_coefficients_tell_how_much_of_each_signal_is_in_each_part():
    """A first layer that gives F exactly, x₁x₂ = |x₁ + x₂| − 1 by four neurons, and a second layer that is silent."""
    W = np.zeros((3, 4))
    W[:2, 0], W[:2, 1], W[2, 2] = 1.0, -1.0, 1.0
    net = _methods.ResNet(jnp.asarray(W), jnp.zeros((2, 4)), jnp.array([[1.0, 1.0, -1.0, 0.0]]))
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    F = X.prod(axis=1)
    signals = jnp.asarray(np.stack([F, X[:, 0]], axis=1)[:, None], jnp.float32)
    zero = jax.tree.map(jnp.zeros_like, Hidden(net.W0, net.V0))
    found = _layers._of_both(net, zero, jnp.asarray(X), signals)
    np.testing.assert_allclose(found, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], atol=1e-6)
    np.testing.assert_allclose(_layers._of_first(net, zero.W, jnp.asarray(X), signals), found[:1], atol=1e-6)


def test_noise_beside_a_signal_leaves_its_coefficient_and_adds_to_its_distance():
    """With F = x₁ and αG(F) = 0.3x₂ over the cube, out₁ = F + 2x₁x₂ and a rest of 0.3x₂ − 2x₁x₂."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    noise = 2 * X.prod(axis=1)
    F, G = X[:, 0], 0.3 * X[:, 1]
    found = _layers.compared(jnp.stack([F + noise, G - noise])[:, :, None], jnp.stack([F, G], axis=1)[:, None])
    np.testing.assert_allclose(found, [[1.0, 0.0, 4.0], [0.0, 1.0, 4.0 / 0.09]], atol=1e-5, rtol=1e-5)


def test_what_is_kept_are_the_choice_by_its_own_samples_and_the_error_of_the_paper_s_choice():
    errors = {"choose": np.array([[3.0], [1.0], [2.0]]), "test": np.array([[3.0], [1.5], [1.2]])}
    tables = {name: table[:, None] * np.ones(2) for name, table in errors.items()}
    tables["seen"] = np.arange(3.0)[:, None, None, None, None, None] * np.ones((3, 1, 2, 2, 3, 4))
    found = _layers._dataset(Search((0.1, 0.2, 0.4), (0.0,), tables, "choose"))
    assert found["test"].values.tolist() == [1.5, 1.5]
    assert found["best"].values.tolist() == [1.2, 1.2]
    assert float(found["rate"]) == 0.2
    assert (found["learnt"].values == 1).all()
    assert found["learnt"].shape == (2, 2, 2, 4)
    assert found["missed"].shape == (2, 2, 4)


def test_all_of_the_paper_s_statements_hold_where_they_are_planted():
    assert verdicts(planted()) == ["holds"] * 5
    assert len(hierarchy.draw(planted())) == 5


@pytest.mark.parametrize(
    ("way", "which", "unsettled"),
    [
        ("together", "inside", [0, 1, 2, 3, 4]),
        (hierarchy_report.ONE, "inside", [3]),
        ("layer by layer", "inside", []),
    ],
)
def test_nothing_is_judged_by_a_choice_on_the_edge_of_its_grid(way, which, unsettled):
    pairs = tuple((one, data.assign({which: False}) if one.way == way else data) for one, data in planted())
    found = hierarchy.claims(Results("paper", pairs))
    assert [i for i, claim in enumerate(found) if claim.verdict == "outside the hypothesis"] == unsettled
    assert all("on the edge of its grid" in found[i].note for i in unsettled if i in (0, 1, 3))
    assert len(found) == 5


def test_with_fewer_epochs_than_the_paper_s_at_least_half_is_judged_all_the_same():
    shown = "outside the hypothesis"
    assert verdicts(planted(epochs=40)) == ["holds", "holds", shown, shown, "holds"]


def test_the_paper_s_choice_by_test_error_and_the_edge_of_a_grid_are_told():
    together, *_, apart, _ = (claim.note for claim in hierarchy.claims(planted()))
    assert "inside its grid, test error 0.200; chosen by the test error, as in the paper: 0.170" in together
    assert "inside its grid, test error 0.900; chosen by the test error, as in the paper: 0.880" in apart
    assert "inside its grid, test error 0.800; chosen by the test error, as in the paper: 0.780" in apart


def test_a_larger_budget_for_layer_wise_training_is_told_and_not_judged():
    """0.05 with two rates, two decays and twice the epochs, against 0.2 together."""
    (claim,) = [one for one in hierarchy.claims(planted()) if "crucial" in one.statement]
    assert claim.verdict == "holds"
    assert claim.value == pytest.approx(0.25)
    assert "layer by layer 0.050" in claim.note
    assert "no fair comparison" in claim.note
    without = tuple(pair for pair in planted() if pair[0].way != hierarchy_report.ONE)
    (claim,) = [one for one in hierarchy.claims(Results("paper", without)) if "crucial" in one.statement]
    assert claim.verdict == "not run here"


def test_what_the_layers_learn_is_judged_on_seeds_that_are_new_to_the_rule():
    old = Results("paper", tuple((replace(one, first=0), data) for one, data in planted()))
    assert verdicts(old)[:2] == ["not run here"] * 2


def test_new_seeds_have_other_networks_and_samples(monkeypatch):
    seen = []
    monkeypatch.setitem(_layers.WAYS, "together", lambda problems, **_: seen.append([one.seed for one in problems]))
    with pytest.raises(AttributeError):  # of what was not trained
        hierarchy.run(cell("together"))
    assert seen == [[100, 101, 102]]


def test_with_one_budget_the_second_stage_leaves_the_first_layer_alone_and_has_half_the_epochs(trained, monkeypatch):
    held = trained[hierarchy_report.ONE]["learnt"].sel(part="first").values
    assert (held == held[..., :1]).all()
    epochs = []

    def once(*args, **_):
        epochs.append(args[6])
        raise StopIteration

    monkeypatch.setattr(_methods, "trained_grid", once)
    problems = [_methods.Problem(_methods.target("small", 0.3, 1.0), 100, 0)]
    with pytest.raises(StopIteration):
        _layers.one_budget(problems, width=8, epochs=20, looks=3, precision="highest")
    assert epochs == [10]


def test_a_first_layer_that_learns_the_composite_would_be_found_out():
    found = verdicts(planted(first=((0.0, 0.2, 0.2), (0.0, 0.1, 0.9)), rest=((0.0, 0.4, 0.4), (0.0,) * 3)))
    assert found[:2] == ["fails"] * 2


def test_a_first_layer_that_is_F_and_as_much_else_would_be_found_out_with_the_paper_s_epochs():
    much = ((1.0, 1.2, 1.2), (1.0, 0.9, 0.2))
    assert verdicts(planted(missed=much))[2] == "fails"
    assert verdicts(planted(missed=much, epochs=40))[2] == "outside the hypothesis"


def test_a_signal_that_is_in_neither_layer_is_not_in_the_right_one():
    results = planted(first=((0.0, 0.01, 0.01), (0.0,) * 3), rest=((0.0, 0.01, 0.01), (0.0,) * 3))
    assert verdicts(results)[:2] == ["fails"] * 2


def test_seeds_that_do_not_agree_tell_nothing_and_such_as_learn_it_elsewhere_are_found_out():
    def swapped(*seeds):
        pairs = []
        for one, data in planted():
            learnt = data["learnt"].copy()
            for seed in seeds:
                learnt[{"seed": seed}] = learnt[{"seed": seed, "part": [1, 0]}].values
            pairs.append((one, data.assign(learnt=learnt)))
        return hierarchy.claims(Results("paper", tuple(pairs)))

    found = swapped(1)
    assert [claim.verdict for claim in found[:2]] == ["not testable at this size"] * 2
    assert "Our explanation" in found[0].note
    assert "Our explanation" not in hierarchy.claims(planted())[0].note
    assert [claim.verdict for claim in swapped(0, 1, 2)[:2]] == ["fails"] * 2


def test_a_composite_that_is_learnt_before_its_base_would_be_found_out():
    rest = ((0.0, 0.1, 0.1), (0.9, 0.9, 0.9))
    assert verdicts(planted(rest=rest))[-1] == "fails"


def test_a_composite_that_is_never_learnt_has_no_order():
    assert verdicts(planted(rest=((0.0, 0.1, 0.1), (0.0, 0.1, 0.2))))[-1] == "not run here"


def test_an_order_is_judged_where_both_are_learnt_and_says_where_they_are_not():
    never = planted(rest=((0.0, 0.1, 0.1), (0.0, 0.1, 0.2))).where(way="together")
    more = tuple((replace(one, samples=2000), data) for one, data in planted().where(way="together"))
    *_, last = hierarchy.claims(Results("paper", never.pairs + more))
    assert (last.verdict, last.note) == (
        "holds",
        "Not every seed learns half of F and half of αG(F) from 1000 samples.",
    )
    assert "N = 2000" in last.measured


def test_layers_that_learn_as_well_one_by_one_would_be_found_out_with_the_paper_s_epochs():
    assert verdicts(planted(after=0.15))[3] == "fails"
    assert verdicts(planted(after=0.15, epochs=40))[3] == "outside the hypothesis"


def test_layer_by_layer_the_figure_shows_the_first_layer_along_its_own_stage():
    results = planted()
    ((one, data),) = results.where(way="layer by layer").pairs
    (plot,) = (figure.plot for figure in hierarchy.draw(Results("paper", ((one, data),))) if "learnt" in figure.title)
    changed = data.assign(alone_learnt=data["alone_learnt"] + 1)
    (other,) = (f.plot for f in hierarchy.draw(Results("paper", ((one, changed),))) if "learnt" in f.title)
    moved = [not np.allclose(a.y, b.y) for a, b in zip(plot.data, other.data, strict=True)]
    assert [trace.name for trace, m in zip(plot.data, moved, strict=True) if m and trace.meta != "band"] == [
        "F in out₁",
        "αG(F) in out₁",
    ]


def test_every_profile_has_cells_with_a_cost():
    for config in hierarchy.PROFILES.values():
        assert all(hierarchy.cost(one).flops > 0 and hierarchy.cost(one).bytes > 0 for one in hierarchy.cells(config))
