"""Grids of rates and decays: the same steps as one network at a time, and a search that ends inside its grid."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from offtangent._errors import InputError
from offtangent.training import search, train
from offtangent.training.grids import Bounded, Search, grid_sgd, refine


class Squares:
    """½ mean (Xθ − y)² for a stack of θ."""

    def __call__(self, theta, X, y):
        return 0.5 * jnp.mean((theta @ X.T - y) ** 2, axis=-1)


@pytest.fixture(scope="module")
def problem():
    keys = jax.random.split(jax.random.key(0), 3)
    return tuple(
        np.asarray(jax.random.normal(key, shape)) for key, shape in zip(keys, ((20, 3), (20,), (3,)), strict=True)
    )


def test_every_network_takes_the_steps_of_momentum_and_decay_written_out(problem):
    X, y, initial = (np.asarray(one, np.float64) for one in problem)
    rates, decays = np.array([[0.1], [0.3]]), np.array([[0.0, 0.2]])
    grid = np.broadcast_arrays(rates, decays)
    schedule = optax.piecewise_constant_schedule(1.0, {10: 0.1})
    optimiser = grid_sgd(*grid, jnp.asarray(problem[2]), schedule=schedule)

    class Displaced(Squares):
        def __call__(self, theta, X, y):
            return super().__call__(problem[2] + theta, X, y)

    found = train(Displaced(), jnp.zeros((2, 2, 3)), *problem[:2], optimiser=optimiser, steps=20).params
    for i, rate in enumerate(rates[:, 0]):
        for j, decay in enumerate(decays[0]):
            theta, v = initial.copy(), np.zeros(3)
            for t in range(20):
                v = 0.9 * v + X.T @ (X @ theta - y) / len(y) + decay * theta
                theta = theta - rate * (1.0 if t < 10 else 0.1) * v
            np.testing.assert_allclose(found[i, j] + initial, theta, rtol=2e-5, atol=2e-5)


def test_parts_of_the_parameters_may_have_decays_of_their_own():
    """Without gradients a step of rate 1 takes the decay's share away, in each part and each network its own."""
    params = {"first": jnp.ones((2, 3)), "rest": {"a": jnp.ones((2, 1)), "b": jnp.ones((2, 2))}}
    decays = {"first": np.array([0.0, 0.5]), "rest": np.array([0.25, 0.0])}
    optimiser = grid_sgd(np.ones(2), decays, momentum=0.0)
    steps, _ = optimiser.update(jax.tree.map(jnp.zeros_like, params), optimiser.init(params), params)
    np.testing.assert_allclose(steps["first"], -np.outer(decays["first"], np.ones(3)))
    for name, columns in (("a", 1), ("b", 2)):
        np.testing.assert_allclose(steps["rest"][name], -np.outer(decays["rest"], np.ones(columns)))
    with pytest.raises(InputError, match="decays"):
        grid_sgd(np.ones(2), {"first": np.array([-1.0, 0.0]), "rest": np.zeros(2)})


def test_a_network_that_diverges_is_held_and_does_not_touch_the_others(problem):
    X, y, _ = problem
    rates, none = np.array([0.1, 1e4]), np.zeros(2)
    both = train(Bounded(Squares(), 10.0), jnp.ones((2, 3)), X, y, optimiser=grid_sgd(rates, none), steps=60)
    alone = train(Squares(), jnp.ones((1, 3)), X, y, optimiser=grid_sgd(rates[:1], none[:1]), steps=60)
    assert both.losses[-1, 1] == 10.0
    np.testing.assert_allclose(both.losses[:, 0], alone.losses[:, 0], rtol=1e-5)


def bowl(rates, decays):
    """Least at a rate of 1 and a decay of 10⁻³, the same for two seeds."""
    log = np.log10
    table = (log(np.array(rates))[:, None]) ** 2 + (log(np.array(decays) + 1e-9) + 3) ** 2
    return {"loss": np.stack([table, table], axis=2)}


def test_a_search_goes_to_the_best_and_ends_inside():
    found = search(bowl, (1e-4, 1e-3), (1e-6, 1e-5), by="loss")
    i, j = found.chosen
    assert found.rates[i] == pytest.approx(1.0)
    assert found.decays[j] == pytest.approx(1e-3)
    assert found.inside
    np.testing.assert_array_equal(found.tables["loss"], bowl(found.rates, found.decays)["loss"])


def test_what_lies_on_the_edge_after_all_says_so():
    found = search(lambda rates, decays: {"loss": -np.add.outer(rates, decays)}, (1.0, 2.0), (0.0, 1.0), by="loss")
    assert not found.inside


def test_no_decay_is_no_edge():
    found = search(lambda r, w: {"loss": np.add.outer(np.log(r) ** 2, w)}, (0.5, 1.0, 2.0), (0.0, 1.0), by="loss")
    assert found.inside
    assert len(found.rates) == 3


def test_decays_that_begin_with_zero_go_on_in_tens():
    """With one decay beside zero there is no ratio to go on with."""

    def loss(rates, decays):
        return {"loss": np.add.outer(np.log(rates) ** 2, np.abs(np.array(decays) - 10))}

    found = search(loss, (0.5, 1.0, 2.0), (0.0, 1.0), by="loss")
    assert found.decays == pytest.approx((0.0, 1.0, 10.0, 100.0))
    assert found.inside


def test_a_lost_network_is_never_chosen():
    found = search(
        lambda r, w: {"loss": np.where(np.array(r)[:, None] > 1, np.nan, -np.add.outer(r, w) * (np.array(w) < 2))},
        (0.5, 1.0, 2.0), (0.0, 1.0, 2.0), by="loss",
    )  # fmt: skip
    assert found.chosen == (1, 1)


@pytest.mark.parametrize("rates", [(1.0,), (2.0, 1.0)])
def test_a_grid_that_cannot_be_widened_is_refused(rates):
    with pytest.raises(InputError, match="rates"):
        search(bowl, rates, (0.0, 1.0), by="loss")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"rates": (-1.0, 1.0)}, "rates are positive"),
        ({"rates": (0.0, 1.0)}, "rates are positive"),
        ({"decays": (-1.0, 1.0)}, "decays not negative"),
        ({"by": "error"}, "the tables are 'loss'"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(words, told):
    given = {"rates": (0.5, 1.0), "decays": (0.0, 1.0), "by": "loss"} | words
    with pytest.raises(InputError, match=told):
        search(bowl, given["rates"], given["decays"], by=given["by"])


def test_a_search_in_which_all_are_lost_says_so():
    with pytest.raises(InputError, match="No network of rates"):
        search(lambda r, w: {"loss": np.full((len(r), len(w)), np.nan)}, (0.5, 1.0), (0.0, 1.0), by="loss")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"rates": np.array([-1.0, 1.0])}, "not negative"),
        ({"decays": np.zeros(3)}, "meshgrid"),
        ({"decays": 0.1}, "meshgrid"),
        ({"momentum": 2.0}, "momentum=2"),
        ({"momentum": np.nan}, "momentum=nan"),
    ],
)
def test_steps_that_make_no_sense_are_refused(words, told):
    with pytest.raises(InputError, match=told):
        grid_sgd(**({"rates": np.ones(2), "decays": np.zeros(2)} | words))


def test_decays_of_another_structure_are_refused():
    params = {"W": jnp.ones((2, 1)), "V": jnp.ones((2, 1))}
    optimiser = grid_sgd(np.ones(2), (np.zeros(2), np.zeros(2)))
    with pytest.raises(InputError, match="structure"):
        optimiser.update(params, optimiser.init(params), params)


def test_a_refined_grid_has_the_networks_halfway_and_no_others():
    calls = []

    def counted(rates, decays):
        calls.append((rates, decays))
        return bowl(rates, decays)

    coarse = search(bowl, (1e-4, 1e-2, 1.0, 100.0), (1e-6, 1e-4, 1e-2), by="loss")
    fine = refine(coarse, counted)
    assert len(calls) == 1
    i, j = coarse.chosen
    assert calls[0][0] == pytest.approx([coarse.rates[i] / 10, coarse.rates[i], 10 * coarse.rates[i]])
    assert calls[0][1] == pytest.approx([coarse.decays[j] / 10, coarse.decays[j], 10 * coarse.decays[j]])
    loss = fine.tables["loss"][..., 0]
    known = np.isfinite(loss)
    assert known.sum() == len(coarse.rates) * len(coarse.decays) + 8
    for (a, rate), (b, decay) in itertools.product(enumerate(fine.rates), enumerate(fine.decays)):
        if known[a, b]:
            assert loss[a, b] == pytest.approx(bowl((rate,), (decay,))["loss"][0, 0, 0])
    assert loss[fine.chosen] <= coarse.tables["loss"][coarse.chosen][0]
    assert fine.inside


def test_a_refined_grid_goes_on_until_the_best_has_known_neighbours():
    """A narrow valley along rate·decay = 1: halfway lies a better place, of which two neighbours were not tried."""

    def valley(rates, decays):
        r, w = np.log2(np.array(rates))[:, None], np.log2(np.array(decays))
        return {"loss": (r + w) ** 2 + 0.1 * (r - 3.0) ** 2}

    coarse = search(valley, (0.25, 1.0, 4.0, 16.0), (1 / 64, 1 / 16, 0.25, 1.0, 4.0), by="loss")
    fine = refine(coarse, valley)
    assert (fine.rates[fine.chosen[0]], fine.decays[fine.chosen[1]]) == (8.0, 1 / 8)
    assert fine.inside
    i, j = fine.chosen
    assert np.isfinite(fine.tables["loss"][i - 1 : i + 2, j - 1 : j + 2]).all()
    holes = {"loss": fine.tables["loss"].copy()}
    holes["loss"][i + 1, j] = np.nan
    assert not Search(fine.rates, fine.decays, holes, "loss").inside


def test_a_neighbour_that_a_search_lost_is_known():
    """All seeds NaN at the larger rate: that was evaluated, and the choice has a worse neighbour there."""

    def loss(rates, decays):
        table = np.add.outer(np.log(rates) ** 2, np.array(decays))[..., None] + np.zeros(3)
        return {"loss": np.where(np.array(rates)[:, None, None] > 1, np.nan, table)}

    found = search(loss, (0.25, 1.0, 4.0), (0.0, 1.0), by="loss")
    assert found.rates == (0.25, 1.0, 4.0)
    assert found.chosen == (1, 0)
    assert found.inside


def test_a_lost_neighbour_is_known():
    def loss(rates, decays):
        fast = np.array(rates)[:, None] > 1
        return {"loss": np.where(fast, np.nan, np.add.outer(np.log(rates) ** 2, np.array(decays)))}

    calls = []
    fine = refine(
        search(loss, (0.25, 1.0, 4.0), (0.0, 1.0), by="loss"), lambda r, w: calls.append((r, w)) or loss(r, w)
    )
    assert fine.inside
    assert len(calls) == 1


def test_a_refined_grid_goes_below_the_least_decay_and_stays_above_zero():
    def loss(rates, decays):
        return {"loss": np.add.outer(np.log(rates) ** 2, (np.array(decays) - 0.3) ** 2)}

    fine = refine(search(loss, (0.5, 1.0, 2.0), (0.0, 1.0, 10.0), by="loss"), loss)
    assert fine.decays == pytest.approx((0.0, 1 / 3, 1.0, 10.0))
    assert fine.decays[fine.chosen[1]] == pytest.approx(1 / 3)


@pytest.mark.parametrize(("best", "rates"), [(-3.0, (-4, -3, -2)), (3.0, (2, 3, 4))])
def test_a_refined_grid_that_comes_to_an_edge_is_widened(best, rates):
    """With decays halfway the best rate lies outside the grid, with all others in its middle."""

    def loss(rates, decays):
        r, w = np.log2(np.array(rates))[:, None], np.log2(np.array(decays))
        halfway = np.round(w) % 2 == 1
        return {"loss": np.where(halfway, np.abs(r - best) - 9, r**2) + w**2 / 10}

    coarse = search(loss, (0.25, 1.0, 4.0), (0.25, 1.0, 4.0), by="loss")
    assert coarse.rates == (0.25, 1.0, 4.0)
    fine = refine(coarse, loss)
    assert fine.rates[fine.chosen[0]] == 2.0**best
    assert fine.inside
    assert set(fine.rates) >= {2.0**r for r in rates}


def test_a_refined_grid_that_comes_to_its_largest_decay_is_widened_too():
    def loss(rates, decays):
        r, w = np.log2(np.array(rates))[:, None], np.log2(np.array(decays))
        halfway = np.round(r) % 2 == 1
        return {"loss": np.where(halfway, np.abs(w - 3) - 9, w**2) + r**2 / 10}

    fine = refine(search(loss, (0.25, 1.0, 4.0), (0.25, 1.0, 4.0), by="loss"), loss)
    assert fine.decays[fine.chosen[1]] == 8.0
    assert fine.inside
