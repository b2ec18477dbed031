"""Where inputs and labels come from: distributions, targets, image sets, label noise, a user's own file.

Everything here is host-level and returns NumPy float64: X is n×d with samples as rows, y has length n.
JAX and scikit-learn are imported only by the functions that need them.
"""

from offtangent.data.checks import check_inputs, check_labels, check_not_parallel
from offtangent.data.distributions import gaussian, hypercube, noisy_xor, smooth_inputs, sphere
from offtangent.data.duplicates import Merged, merge_duplicates
from offtangent.data.fetch import available, checksum, download
from offtangent.data.files import UserData, load
from offtangent.data.hierarchy import (
    GeneralRidges,
    Hierarchy,
    Parities,
    SmoothRidges,
    parity_hierarchy,
    polarised_hierarchy,
)
from offtangent.data.images import cifar10, digits, mnist
from offtangent.data.labels import Labelled, add_label_noise, flip_labels, random_labels, two_classes
from offtangent.data.preprocess import Preprocessing, fit_preprocessing, preprocess, unit_norm
from offtangent.data.targets import (
    DegreeEnergies,
    LowDegreePlusSparse,
    QuadraticPlusCubic,
    gaussian_target,
    quadratic_plus_cubic,
    sphere_target,
)

__all__ = [
    "check_inputs",
    "check_labels",
    "check_not_parallel",
    "sphere",
    "hypercube",
    "noisy_xor",
    "smooth_inputs",
    "gaussian",
    "LowDegreePlusSparse",
    "QuadraticPlusCubic",
    "DegreeEnergies",
    "sphere_target",
    "gaussian_target",
    "quadratic_plus_cubic",
    "Hierarchy",
    "SmoothRidges",
    "GeneralRidges",
    "Parities",
    "parity_hierarchy",
    "polarised_hierarchy",
    "Labelled",
    "two_classes",
    "random_labels",
    "add_label_noise",
    "flip_labels",
    "Preprocessing",
    "fit_preprocessing",
    "preprocess",
    "unit_norm",
    "Merged",
    "merge_duplicates",
    "digits",
    "mnist",
    "cifar10",
    "available",
    "checksum",
    "download",
    "UserData",
    "load",
]
