"""Allen-Zhu & Li, what each layer learns: a small run of either way, and that wrong numbers would be found out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from offtangent.lab import Results
from offtangent.networks import Hidden
from offtangent.papers.allen_zhu_li import _layers, _methods, hierarchy
from offtangent.training import Search

LOOKS = np.array([0, 9, 99])


def cell(way, epochs=400):
    return hierarchy.Layers(way, "version 1", 1000, 100, epochs, seeds=3, looks=3)


def planted(
    *, first=((0.0, 0.9, 0.9), (0.0, 0.0, 0.0)), rest=((0.0, 0.1, 0.1), (0.0, 0.1, 0.9)), after=0.8, epochs=400
):
    """What out₁ and the rest have of F and of αG(F) at three looks, with three seeds that differ by a hundredth."""
    jitter = np.array([0.99, 1.0, 1.01])
    learnt = jitter[:, None, None, None] * np.array([first, rest])
    axes = ("seed", "part", "signal", "look")
    together = xr.Dataset({"learnt": (axes, learnt), "test": ("seed", 0.2 * jitter)}).assign(rate=0.1, decay=0.0)
    together = together.assign_coords(part=list(_layers.PARTS), signal=list(_layers.SIGNALS), look=LOOKS)
    apart = together.assign(test=("seed", after * jitter), alone=("seed", 0.9 * jitter))
    return Results("paper", ((cell("together", epochs), together), (cell("layer by layer", epochs), apart)))


@pytest.fixture
def one_grid(monkeypatch):
    """A small grid, as it is: to widen it would take another program."""

    def once(evaluate, rates, decays, *, by):
        return Search(rates[:2], decays[:1], evaluate(rates[:2], decays[:1]), by)

    monkeypatch.setattr(_methods, "search", once)


def verdicts(results):
    return [claim.verdict for claim in hierarchy.claims(results)]


@pytest.mark.usefixtures("one_grid")
@pytest.mark.parametrize("way", _layers.WAYS)
def test_a_small_run_gives_errors_and_shares_along_training(way):
    small = hierarchy.Layers(way, "small", 60, 8, epochs=2, seeds=2, looks=3)
    found = hierarchy.run(small)
    assert found["learnt"].shape == (2, 2, 2, found.sizes["look"])
    assert np.isfinite(found["learnt"].values).all()
    assert (found["test"].values > 0).all()


def test_coefficients_tell_how_much_of_each_signal_is_in_each_part():
    """A first layer that gives F exactly, x₁x₂ = |x₁ + x₂| − 1 by four neurons, and a second layer that is silent."""
    W = np.zeros((3, 4))
    W[:2, 0], W[:2, 1], W[2, 2] = 1.0, -1.0, 1.0
    net = _methods.ResNet(jnp.asarray(W), jnp.zeros((2, 4)), jnp.array([[1.0, 1.0, -1.0, 0.0]]))
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    F = X.prod(axis=1)
    signals = jnp.asarray(np.stack([F, X[:, 0]], axis=1)[:, None], jnp.float32)
    zero = jax.tree.map(jnp.zeros_like, Hidden(net.W0, net.V0))
    found = _layers._coefficients(net, zero, jnp.asarray(X), signals)
    np.testing.assert_allclose(found, [[1.0, 0.0], [0.0, 0.0]], atol=1e-6)


def test_all_of_the_paper_s_statements_hold_where_they_are_planted():
    assert verdicts(planted()) == ["holds"] * 5
    assert len(hierarchy.draw(planted())) == 2


def test_a_first_layer_that_learns_the_composite_would_be_found_out():
    assert (
        verdicts(planted(first=((0.0, 0.4, 0.4), (0.0, 0.1, 0.9)), rest=((0.0,) * 3, (0.0,) * 3)))[:2] == ["fails"] * 2
    )


def test_a_composite_that_is_learnt_before_its_base_would_be_found_out():
    rest = ((0.0, 0.1, 0.1), (0.9, 0.9, 0.9))
    assert verdicts(planted(rest=rest))[2] == "fails"


def test_a_composite_that_is_never_learnt_has_no_order():
    assert verdicts(planted(rest=((0.0, 0.1, 0.1), (0.0, 0.1, 0.2))))[2] == "not testable at this size"


def test_layers_that_learn_as_well_one_by_one_would_be_found_out_with_the_paper_s_epochs():
    assert verdicts(planted(after=0.15))[3:] == ["fails", "fails"]
    assert verdicts(planted(after=0.15, epochs=40))[3:] == ["outside the hypothesis"] * 2


def test_every_profile_has_cells_with_a_cost():
    for config in hierarchy.PROFILES.values():
        assert all(hierarchy.cost(one).flops > 0 and hierarchy.cost(one).bytes > 0 for one in hierarchy.cells(config))
