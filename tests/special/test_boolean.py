"""Fourier analysis on the cube against brute force: all subsets, all corners, all pairs."""

import itertools
import math

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.special.boolean import (
    character,
    corners,
    cube_spectrum,
    cube_values,
    hamming,
    krawtchouk,
    krawtchouk_matrix,
    krawtchouks,
    subset_sizes,
    subsets,
    walsh,
)


def test_krawtchouk_is_the_sum_of_all_characters_of_one_size():
    dim = 7
    for t in range(dim + 1):
        x = np.where(np.arange(dim) < t, -1, 1)
        for s in range(dim + 1):
            total = sum(math.prod(x[list(S)].tolist()) for S in itertools.combinations(range(dim), s))
            assert krawtchouk(s, t, dim=dim) == total


@pytest.mark.parametrize("dim", [1, 20, 60, 101])
def test_the_table_by_recurrence_is_the_sum_to_the_last_digit(dim):
    table = krawtchouks(dim)
    rng = np.random.default_rng(0)
    for s, t in rng.integers(0, dim + 1, (40, 2)):
        assert table[s, t] == krawtchouk(int(s), int(t), dim=dim)


def test_krawtchouk_polynomials_are_orthogonal_under_the_binomial_weights_exactly():
    dim = 60
    table, weights = krawtchouks(dim), np.array([math.comb(dim, t) for t in range(dim + 1)], object)
    products = (table * weights) @ table.T
    expected = np.diag(np.array([2**dim * math.comb(dim, s) for s in range(dim + 1)], object))
    assert (products == expected).all()


def test_a_dimension_of_a_hundred_thousand_needs_no_table():
    dim = 100_000
    assert krawtchouk(2, 50_000, dim=dim) == -50_000  # ((d − 2t)² − d)/2


def test_the_matrix_is_the_gram_matrix_of_all_characters():
    rng = np.random.default_rng(1)
    X, Z = rng.choice([-1, 1], (6, 9)), rng.choice([-0.5, 0.5], (4, 9))
    features = [np.stack([character(S, rows) for S in subsets(9, 3)]) for rows in (X, Z)]
    np.testing.assert_array_equal(krawtchouk_matrix(3, X, Z), features[0].T @ features[1])


def test_distances_count_the_signs_that_differ():
    X = np.random.default_rng(0).choice([-0.3, 0.3], (8, 11))
    np.testing.assert_array_equal(hamming(X), (X[:, None] != X[None]).sum(axis=2))


def test_the_walsh_transform_is_the_mean_with_every_character():
    dim = 6
    f = np.random.default_rng(0).standard_normal((2**dim, 2))
    x, found = corners(dim), walsh(f)
    for number in range(2**dim):
        S = tuple(j for j in range(dim) if number >> j & 1)
        assert len(S) == subset_sizes(dim)[number]
        np.testing.assert_allclose(found[number], (character(S, x)[:, None] * f).mean(axis=0), atol=1e-14)


def test_the_walsh_transform_is_its_own_inverse_up_to_the_number_of_corners():
    f = np.random.default_rng(0).standard_normal(2**10)
    np.testing.assert_allclose(walsh(walsh(f)) * 2**10, f, atol=1e-13)


def kappa(dim):
    u = 1 - 2 * np.arange(dim + 1) / dim
    return np.exp(u) + u**3 / 2


def test_the_spectrum_is_what_a_dense_eigendecomposition_finds():
    dim = 8
    x = corners(dim)
    dense = np.linalg.eigvalsh(kappa(dim)[hamming(x)] / 2**dim)
    spectrum = cube_spectrum(kappa(dim))
    repeated = np.repeat(spectrum.squares, spectrum.multiplicities.astype(int))
    np.testing.assert_allclose(np.sort(repeated), dense, atol=1e-14)


def test_the_spectrum_is_the_walsh_transform_of_the_kernel():
    dim = 9
    found = walsh(kappa(dim)[hamming(np.ones((1, dim)), corners(dim))[0]])
    np.testing.assert_allclose(found, cube_spectrum(kappa(dim)).squares[subset_sizes(dim)], atol=1e-14)


def test_energies_add_up_to_the_diagonal():
    spectrum = cube_spectrum(kappa(60))
    assert spectrum.energies.sum() == pytest.approx(
        kappa(60)[0], abs=float(spectrum.rounding @ spectrum.multiplicities)
    )


def test_the_gaussian_kernel_has_the_product_of_its_coordinates_for_a_spectrum():
    """exp(−2t/h) = Π (½(1 + q) + ½(1 − q) x_j y_j), q = e^{−2/h}: λ_s² = ((1+q)/2)^{d−s} ((1−q)/2)^s."""
    dim, q = 60, math.exp(-2 / 60)
    spectrum = cube_spectrum(q ** np.arange(dim + 1.0))
    s = np.arange(dim + 1)
    truth = ((1 + q) / 2) ** (dim - s) * ((1 - q) / 2) ** s
    assert (abs(spectrum.squares - truth) <= spectrum.rounding).all()
    assert spectrum.coefficient(4) == pytest.approx(math.sqrt(truth[4]), rel=1e-9)


def test_a_coefficient_below_rounding_is_zero():
    u = 1 - 2 * np.arange(41) / 40
    assert cube_spectrum(np.arcsin(u)).coefficient(4) == 0.0
    assert cube_spectrum(u).squares[1] == pytest.approx(1 / 40, rel=1e-12)


@pytest.mark.parametrize("dim", [11, 30, 60])
def test_an_odd_kernel_has_no_even_coefficients_whatever_rounding_leaves_of_them(dim):
    """For arcsin u as π/2 − arccos u, which floating point does not make odd to the last digit."""
    spectrum = cube_spectrum(np.pi / 2 - np.arccos(1 - 2 * np.arange(dim + 1) / dim))
    even = range(0, dim + 1, 2)
    assert spectrum.squares[::2].max() > 0  # or there would be nothing to cut
    assert [spectrum.coefficient(s) for s in even] == [0.0] * len(even)
    assert spectrum.coefficient(1) > 0


def test_values_and_spectrum_are_inverse_to_each_other():
    np.testing.assert_allclose(cube_values(cube_spectrum(kappa(25)).squares), kappa(25), atol=1e-10)


def test_values_of_no_kernel_are_refused_with_the_degree():
    u = 1 - 2 * np.arange(11) / 10
    for little in (0.2, 1e-9, 1e-13):
        with pytest.raises(InputError, match="size 1: a negative eigenvalue"):
            cube_spectrum(u**2 - little * u)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: corners(21), "goes up to dim=20"),
        (lambda: corners(21), "cube_spectrum, which needs d \\+ 1 values"),
        (lambda: subsets(60, 6), "krawtchouk_matrix"),
        (lambda: subsets(3, 4), "subsets of 0 to 3"),
        (lambda: krawtchouk(5, 0, dim=4), "degree=5"),
        (lambda: krawtchouk(1, 5, dim=4), "distance=5"),
        (lambda: hamming(np.array([[1.0, 0.0]])), "corners of a cube"),
        (lambda: hamming(np.ones((1, 2)), np.ones((1, 3))), "2 columns and X2 3"),
        (lambda: character((0, 0), np.ones((1, 3))), "different indices"),
        (lambda: walsh(np.ones(3)), "a power of 2"),
        (lambda: cube_spectrum(np.ones(5)).coefficient(5), "degree=5: on a cube of 4 dimensions it is from 0 to 4"),
        (lambda: cube_spectrum(np.ones(5)).coefficient(-1), "degree=-1"),
        (lambda: cube_spectrum(np.array([1.0, np.nan])), "finite numbers"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, said):
    with pytest.raises(InputError, match=said):
        call()
