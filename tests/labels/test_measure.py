"""The labels' energies from products, against all eigenpairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent.labels import measure as label_measure
from offtangent.labels.measure import exact_measure, lanczos_measure
from offtangent.linalg import Spectrum
from offtangent.linalg.krylov import lanczos
from offtangent.theory.arora.dynamics import predict_residual, steps_to


def problem(n, decay, seed, columns=1):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (Q * np.arange(1, n + 1.0) ** -decay) @ Q.T, rng.standard_normal((n, columns))


def test_with_all_eigenpairs_it_is_eq_8():
    H, Y = problem(30, 1.0, 0)
    spectrum, steps = Spectrum.of(H), np.array([0, 1, 10, 500])
    measure = exact_measure(spectrum, Y).lower
    norms = predict_residual(spectrum, Y[:, 0], rate=1.0, steps=steps).norm
    np.testing.assert_allclose(measure.losses(1.0, steps), norms**2 / np.sum(Y**2), rtol=1e-10)
    assert measure.steps_to(0.01, 1.0) == steps_to(spectrum, Y[:, 0], rate=1.0, loss=0.01)


def test_several_columns_count_together():
    H, Y = problem(30, 1.0, 1, columns=3)
    u = np.zeros_like(Y)
    for _ in range(20):
        u = u - H @ (u - Y)
    loss = np.sum((Y - u) ** 2) / np.sum(Y**2)
    for found in (exact_measure(Spectrum.of(H), Y), lanczos_measure(lambda v: H @ v, Y, rate=1.0)):
        np.testing.assert_allclose(found.lower.losses(1.0, np.array([20])), loss, rtol=1e-8)


@given(st.integers(20, 60), st.floats(0.5, 3.0), st.integers(0, 1000), st.integers(3, 12))
@settings(max_examples=30)
def test_few_products_bracket_the_loss_at_every_step(n, decay, seed, products):
    H, Y = problem(n, decay, seed)
    steps = np.unique(np.geomspace(1, 1e6, 15).astype(int))
    truth = exact_measure(Spectrum.of(H), Y).lower.losses(1.0, steps)
    *_, krylov = lanczos(lambda v: H @ v, Y, products)
    low, high = (label_measure._joined(krylov, radau=radau) for radau in (False, True))
    assert (low.losses(1.0, steps) <= truth * (1 + 1e-7) + 1e-13).all()
    assert (high.losses(1.0, steps) >= truth * (1 - 1e-7) - 1e-13).all()


def test_it_stops_when_the_number_of_steps_is_known_to_two_percent():
    H, Y = problem(400, 1.5, 2)
    truth = exact_measure(Spectrum.of(H), Y).lower.steps_to(0.01, 1.0)
    found = lanczos_measure(lambda v: H @ v, Y, rate=1.0)
    low, high = found.steps_to(0.01, 1.0)
    assert low <= truth <= high <= 1.02 * low + 1
    assert found.products < 399


def test_labels_along_one_eigenvector_are_known_after_one_product():
    H = np.diag([1.0, 0.5, 0.25, 0.125])
    found = lanczos_measure(lambda v: H @ v, np.eye(4)[:, [1]], rate=1.0)
    assert found.steps_to(0.1, 1.0) == (2, 2)  # ¼^k ≤ 0.1


@pytest.mark.parametrize("make", [lambda H, Y: exact_measure(Spectrum.of(H), Y),
                                  lambda H, Y: lanczos_measure(lambda v: H @ v, Y, rate=1.0)])  # fmt: skip
def test_what_is_never_learnt_has_no_number_of_steps(make):
    for unlearnt in (0.0, 1e-17):  # the same for one who computes in float64
        found = make(np.diag([1.0, 0.5, unlearnt]), np.ones((3, 1)))
        assert found.steps_to(0.01, 1.0) == (None, None)
