"""Real images as rows: scikit-learn's digits everywhere, MNIST and CIFAR-10 where their files are.

All three take the same words. `classes` picks classes (two: y = +1 for the first and −1 for the second;
otherwise y is the label), `samples` keeps the first ones in file order, `preprocess` is "raw" (numbers as in
the file), "centred" or "standardised" per pixel, `unit` then scales each row to norm 1.

Pixel statistics are those of all training images of the chosen classes, for both splits and before `samples`
cuts: so training and test images always agree, and fewer samples are always a prefix of more.
Memory is 8 bytes a pixel kept: 0.4 GB for all of MNIST, 1.2 GB for CIFAR-10.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Integer, Real

from offtangent._checks import check_count, require
from offtangent._errors import InputError
from offtangent.data import _formats
from offtangent.data.catalogue import FILES, data_folder, locate
from offtangent.data.fetch import available
from offtangent.data.fetch import download as fetch
from offtangent.data.labels import Labelled
from offtangent.data.preprocessing import check_how, fit_preprocessing

Images = tuple[Real[np.ndarray, "n d"], Integer[np.ndarray, " n"]]


def digits(
    classes: Sequence[int] | None = None,
    *,
    samples: int | None = None,
    preprocess: str = "raw",
    unit: bool = True,
) -> Labelled:
    """Load the 1797 handwritten digits of 8×8 pixels that ship with scikit-learn.

    The pixels are whole numbers from 0 to 16, before preprocessing. There is no test split, and nothing is downloaded.
    Memory is 8 bytes a pixel: 0.9 MB for all of them.

    Args:
        classes: The digits to keep, all of them by default. With two, y is +1 for the first and −1 for the second.
        samples: How many images to keep, the first ones of the chosen classes in their order; all by default.
        preprocess: What is done to each pixel: nothing ("raw"), its mean taken away ("centred"), or also divided by its
            standard deviation ("standardised"). The statistics are those of all images of the chosen classes, before
            `samples` cuts: fewer samples are always a prefix of more.
        unit: Whether each row is then scaled to norm 1, as the papers assume.

    Returns:
        The images X, one a row of 64 pixels, and their labels y in float64: the digit itself, or ±1 for two classes.

    Raises:
        InputError: If `classes` are no different digits, or if there are fewer images of them than `samples`; the
            message says how many there are.

    >>> X, y = digits(classes=(0, 1))
    >>> X.shape, y[:4]
    ((360, 64), array([ 1., -1.,  1., -1.]))
    """
    return _prepare("digits", lambda _: _bundled_digits(), "train", classes, samples, preprocess, unit)


def mnist(
    classes: Sequence[int] | None = None,
    *,
    samples: int | None = None,
    preprocess: str = "raw",
    unit: bool = True,
    split: str = "train",
    folder: str | Path | None = None,
    download: bool = False,
) -> Labelled:
    """Load MNIST: 60 000 training or 10 000 test images of 28×28 pixels, each a whole number from 0 to 255.

    The four IDX files are looked for in `<folder>/mnist/`, gzipped or not. Memory is 8 bytes a pixel kept, 0.4 GB for
    all training images, beside the file's own byte a pixel.

    Args:
        classes: The digits to keep, all of them by default. With two, y is +1 for the first and −1 for the second.
        samples: How many images to keep, the first ones of the chosen classes in file order; all by default.
        preprocess: What is done to each pixel: nothing ("raw"), its mean taken away ("centred"), or also divided by its
            standard deviation ("standardised"). The statistics are those of all *training* images of the chosen
            classes, for both splits and before `samples` cuts, so that training and test images always agree.
        unit: Whether each row is then scaled to norm 1, as the papers assume.
        split: Which images to load, "train" or "test".
        folder: The data folder; by default $OFFTANGENT_DATA, else offtangent/ in the user's cache folder.
        download: Whether to get the originals, as `data.download` does, where files are missing.

    Returns:
        The images X, one a row of 784 pixels, and their labels y in float64: the digit itself, or ±1 for two classes.

    Raises:
        InputError: If the files are missing or damaged, and the message says where they were looked for and how to get
            them; or if there are fewer images of these classes than `samples`.

    >>> mnist(folder="nowhere")
    Traceback (most recent call last):
    offtangent._errors.InputError: mnist is not here: looked for mnist/train-images-idx3-ubyte (or ...) in nowhere. ...
    >>> X, y = mnist(classes=(0, 1), samples=1000, download=True)  # doctest: +SKIP
    """
    where = _folder("mnist", folder, download)
    return _prepare("mnist", partial(_mnist, where), split, classes, samples, preprocess, unit)


def cifar10(
    classes: Sequence[int] | None = None,
    *,
    samples: int | None = None,
    preprocess: str = "raw",
    unit: bool = True,
    split: str = "train",
    folder: str | Path | None = None,
    download: bool = False,
) -> Labelled:
    """Load CIFAR-10: 50 000 training or 10 000 test images of 3×32×32 pixels, each a whole number from 0 to 255.

    A row holds the red, the green and the blue plane of an image, one after another. The binary batches are looked for
    in `<folder>/cifar10/cifar-10-batches-bin/`, gzipped or not, and may hold any number of records. Memory is 8 bytes a
    pixel kept, 1.2 GB for all training images, beside the file's own byte a pixel.

    Args:
        classes: The classes to keep, numbers from 0 (airplane) to 9 (truck), all of them by default. With two, y is +1
            for the first and −1 for the second.
        samples: How many images to keep, the first ones of the chosen classes in file order; all by default.
        preprocess: What is done to each pixel: nothing ("raw"), its mean taken away ("centred"), or also divided by its
            standard deviation ("standardised"). The statistics are those of all *training* images of the chosen
            classes, for both splits and before `samples` cuts, so that training and test images always agree.
        unit: Whether each row is then scaled to norm 1, as the papers assume.
        split: Which images to load, "train" or "test".
        folder: The data folder; by default $OFFTANGENT_DATA, else offtangent/ in the user's cache folder.
        download: Whether to get the originals, as `data.download` does, where files are missing.

    Returns:
        The images X, one a row of 3072 pixels, and their labels y in float64: the class, or ±1 for two classes.

    Raises:
        InputError: If the files are missing or damaged, and the message says where they were looked for and how to get
            them; or if there are fewer images of these classes than `samples`.

    >>> cifar10(folder="nowhere")
    Traceback (most recent call last):
    offtangent._errors.InputError: cifar10 is not here: looked for ...data_batch_1.bin (or ...) in nowhere. ...
    >>> X, y = cifar10(classes=(0, 1), samples=1000, download=True)  # doctest: +SKIP
    """
    where = _folder("cifar10", folder, download)
    return _prepare("cifar10", partial(_cifar10, where), split, classes, samples, preprocess, unit)


def _prepare(
    name: str,
    read: Callable[[str], Images],
    split: str,
    classes: Sequence[int] | None,
    samples: int | None,
    how: str,
    unit: bool,
) -> Labelled:
    require(split in ("train", "test"), f"split={split!r}: expected 'train' or 'test'.")
    if classes is not None and not _are_classes(classes):
        raise InputError(f"classes={classes!r}: expected different whole numbers from 0 to 9, as in (0, 1).")
    if samples is not None:
        check_count("samples", samples)
    check_how(how)

    pixels, labels = read(split)
    chosen = _of_classes(name, split, labels, classes)
    if samples is not None and samples > chosen.sum():
        raise InputError(
            f"samples={samples}: {name} has only {chosen.sum()} images of these classes in its {split} split."
        )
    rows = np.flatnonzero(chosen)[:samples]
    if how == "raw":
        reference = pixels[:1]  # no statistics are needed
    elif split == "train":
        reference = pixels[chosen]
    else:
        train, train_labels = read("train")
        reference = train[_of_classes(name, "train", train_labels, classes)]
    X = fit_preprocessing(reference, how, unit=unit)(pixels[rows])
    return Labelled(X, _as_targets(labels[rows], classes))


def _as_targets(labels: Integer[np.ndarray, " n"], classes: Sequence[int] | None) -> Float[np.ndarray, " n"]:
    if classes is not None and len(classes) == 2:
        return np.where(labels == classes[0], 1.0, -1.0)
    return labels.astype(np.float64)


def _are_classes(classes: Sequence[int]) -> bool:
    if not hasattr(classes, "__len__") or not all(hasattr(one, "__index__") for one in classes):
        return False
    return 0 < len(classes) == len(set(classes)) and set(classes) <= set(range(_formats.CLASSES))


def _of_classes(
    name: str, split: str, labels: Integer[np.ndarray, " n"], classes: Sequence[int] | None
) -> Bool[np.ndarray, " n"]:
    if classes is None:
        return np.ones(len(labels), dtype=bool)
    for wanted in classes:
        if not (labels == wanted).any():
            known = ", ".join(map(str, np.unique(labels)))
            raise InputError(
                f"The {split} files of {name} hold no image of class {wanted}, only of classes {known}. "
                f'All ten come with offtangent.data.download("{name}").'
            )
    return np.isin(labels, list(classes))


def _folder(name: str, folder: str | Path | None, download: bool) -> Path:
    if download and not available(name, folder):
        fetch(name, folder)
    return data_folder(folder)


def _mnist(folder: Path, split: str) -> Images:
    images, labels = FILES["mnist"][:2] if split == "train" else FILES["mnist"][2:]
    return _formats.read_mnist(locate("mnist", images, folder), locate("mnist", labels, folder))


def _cifar10(folder: Path, split: str) -> Images:
    files = FILES["cifar10"][:-1] if split == "train" else FILES["cifar10"][-1:]
    return _formats.read_cifar([locate("cifar10", file, folder) for file in files])


@lru_cache(maxsize=1)
def _bundled_digits() -> Images:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return pixels, labels
