import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.labels.tasks import Classes, Numbers, labels_of


@pytest.mark.parametrize(
    ("y", "task", "kind"),
    [
        ([0.0, 1.0, 1.0, 0.0], "auto", Classes),
        ([-1.0, 1.0, 1.0, -1.0], "auto", Classes),
        ([0.5, 1.0, 1.5, 2.0], "auto", Numbers),
        (np.arange(100.0), "auto", Numbers),
        (np.arange(100.0) % 7, "auto", Classes),
        (np.arange(100.0) % 7, "regression", Numbers),
        ([0.5, 1.5, 0.5, 1.5], "classification", Classes),
    ],
)
def test_few_whole_numbers_are_classes_unless_said_otherwise(y, task, kind):
    assert isinstance(labels_of(np.asarray(y), task, None), kind)


def test_two_classes_are_one_column_of_signs_and_more_a_column_each():
    two = labels_of(np.array([3.0, 5.0, 3.0]), "auto", None)
    assert two.names == ("3", "5")
    assert two.counts == (2, 1)
    assert two.columns(two.values).tolist() == [[-1], [1], [-1]]
    three = labels_of(np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0]), "auto", ("a", "b", "c"))
    assert three.columns(np.array([2.0, 0.0])).tolist() == [[-1, -1, 1], [1, -1, -1]]
    assert three.names == ("a", "b", "c")


def test_the_score_is_the_margin_against_the_label():
    labels = labels_of(np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0]), "auto", None)
    outputs = np.array([[0.8, -0.4, -1.0], [0.8, -0.4, -1.0]])
    found = labels.compare(np.array([0.0, 2.0]), outputs, np.ones(2))
    np.testing.assert_allclose(found.scores, [-0.6, 0.9])
    np.testing.assert_allclose(found.margins, [0.6, 0.6])
    assert found.predicted.tolist() == [0, 0]
    assert found.wrong.tolist() == [False, True]
    assert found.error == 0.5
    two = labels_of(np.array([0.0, 1.0]), "auto", None).compare(
        np.array([0.0, 1.0]), np.array([[0.3], [-0.2]]), np.ones(2)
    )
    np.testing.assert_allclose(two.scores, [0.3, 0.2])
    assert two.wrong.all()


def test_the_residual_of_a_number_is_in_units_of_its_own_deviation():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(400) * 3 + 10
    labels = labels_of(y, "regression", None)
    precision = rng.uniform(0.5, 4.0, 400)
    residuals = rng.standard_normal(400) / np.sqrt(precision)
    found = labels.compare(y, labels.columns(y) - residuals[:, None], precision)
    assert np.corrcoef(found.scores, np.abs(residuals * np.sqrt(precision)))[0, 1] > 0.9999
    assert 0.9 < np.mean(found.scores**2) ** 0.5 < 1.1
    np.testing.assert_allclose(found.predicted, y - 3 * residuals, atol=0.5)
    np.testing.assert_allclose(found.error, np.sum(residuals**2) / np.sum((labels.columns(y) - 0) ** 2), rtol=1e-6)


@pytest.mark.parametrize(
    ("y", "task", "names", "answer"),
    [
        (np.ones(5), "auto", None, "All 5 labels are 1"),
        (np.zeros(5), "auto", ("cat",), "All 5 labels are cat"),
        (np.arange(5.0), "clustering", None, "expected one of 'auto'"),
        (np.array([0.0, 1.0, 0.0]), "regression", ("a", "b"), "not numbers"),
        (np.arange(40.0), "classification", None, "task='regression'"),
        (np.array([0.0, 5.0, 0.0, 5.0]), "auto", ("a", "b"), "classes has 2 names"),
    ],
)
def test_labels_that_cannot_be_meant_are_refused(y, task, names, answer):
    with pytest.raises(InputError, match=answer):
        labels_of(y, task, names)
