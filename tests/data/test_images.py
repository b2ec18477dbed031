import gzip
import struct

import numpy as np
import pytest
from sklearn.datasets import load_digits

from offtangent import data
from offtangent._errors import InputError
from offtangent.data.catalogue import data_folder, find

needs_mnist = pytest.mark.skipif(not data.fetch.available("mnist"), reason="no MNIST in $OFFTANGENT_DATA")
needs_cifar = pytest.mark.skipif(not data.fetch.available("cifar10"), reason="no CIFAR-10 in $OFFTANGENT_DATA")


def by_hand(file):
    """The unpacked bytes of a MNIST file."""
    path = find(f"mnist/{file}", data_folder())
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def test_digits_are_those_of_scikit_learn_scaled_to_the_sphere():
    pixels, labels = load_digits(return_X_y=True)
    X, y = data.digits()
    np.testing.assert_allclose(X, pixels / np.linalg.norm(pixels, axis=1, keepdims=True), rtol=1e-14)
    assert np.array_equal(y, labels)


def test_two_classes_get_signs_and_the_first_is_positive():
    _, labels = load_digits(return_X_y=True)
    y = data.digits(classes=(8, 3)).y
    assert (y == 1).sum() == (labels == 8).sum()
    assert (y == -1).sum() == (labels == 3).sum()


def test_three_classes_keep_their_labels():
    assert set(data.digits(classes=(1, 5, 7)).y) == {1.0, 5.0, 7.0}


def test_raw_digits_without_unit_are_the_pixels():
    assert np.array_equal(data.digits(preprocess="raw", unit=False, samples=5).X, load_digits(return_X_y=True)[0][:5])


@pytest.mark.parametrize("how", ["raw", "centred", "standardised"])
def test_fewer_samples_are_a_prefix_of_more(how):
    few, many = (data.digits(classes=(0, 1), samples=n, preprocess=how) for n in (10, 200))
    assert np.array_equal(few.X, many.X[:10])
    assert np.array_equal(few.y, many.y[:10])


def test_changing_a_result_does_not_change_the_next():
    data.digits(unit=False).X[:] = 0
    assert data.digits(unit=False).X.any()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"classes": (0, 0)}, "different whole numbers"),
        ({"classes": (0, 10)}, "from 0 to 9"),
        ({"classes": ()}, "classes"),
        ({"samples": 0}, "at least 1"),
        ({"samples": 361, "classes": (0, 1)}, "only 360 images"),
        ({"preprocess": "white"}, "'centred'"),
    ],
)
def test_impossible_choices_are_refused(options, fault):
    with pytest.raises(InputError, match=fault):
        data.digits(**options)


def test_test_images_use_the_statistics_of_the_training_images(fake_mnist):
    train, test = (data.mnist(unit=False, split=split, folder=fake_mnist).X for split in ("train", "test"))
    X = data.mnist(unit=False, preprocess="standardised", split="test", folder=fake_mnist).X
    np.testing.assert_allclose(X, (test - train.mean(axis=0)) / train.std(axis=0), rtol=1e-12, atol=1e-12)


def test_batches_of_any_length_are_joined_in_order(fake_cifar):
    X, y = data.cifar10(unit=False, folder=fake_cifar)
    assert X.shape == (15, 3072)
    assert y.tolist() == [0, 0, 1, 0, 1, 2, 0, 1, 2, 0, 0, 1, 2, 0, 1]


def test_a_class_the_files_do_not_hold_is_named(fake_cifar):
    with pytest.raises(InputError, match=r"no image of class 7, only of classes 0, 1, 2"):
        data.cifar10(classes=(0, 7), folder=fake_cifar)


def test_an_unknown_split_is_refused(fake_mnist):
    with pytest.raises(InputError, match="'train' or 'test'"):
        data.mnist(split="validation", folder=fake_mnist)


@pytest.mark.parametrize("load", [data.mnist, data.cifar10])
def test_missing_files_name_the_folder_the_variable_and_the_download(load, tmp_path):
    with pytest.raises(InputError) as refused:
        load(folder=tmp_path)
    for part in (str(tmp_path), "OFFTANGENT_DATA", "offtangent.data.download"):
        assert part in str(refused.value)


def test_the_folder_is_the_argument_then_the_variable_then_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OFFTANGENT_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("OFFTANGENT_DATA")
    assert data_folder() == tmp_path / "cache" / "offtangent"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".cache" / "offtangent"


@pytest.mark.parametrize(
    ("file", "content", "fault"),
    [
        ("train-images-idx3-ubyte.gz", b"no gzip", "no whole gzip file"),
        ("train-images-idx3-ubyte.gz", gzip.compress(bytes(100), mtime=0)[:-9], "no whole gzip file"),
        ("train-images-idx3-ubyte.gz", gzip.compress(b"\0\0\x08\x01" + bytes(20), mtime=0), "expected 00 00 08 03"),
        ("train-images-idx3-ubyte.gz", gzip.compress(b"\0\0", mtime=0), "begins with bytes 00 00"),
        (
            "train-images-idx3-ubyte.gz",
            gzip.compress(struct.pack(">4I", 0x803, 30, 2, 3) + bytes(179), mtime=0),
            "179 follow",
        ),
        (
            "train-images-idx3-ubyte.gz",
            gzip.compress(struct.pack(">4I", 0x803, *[2**32 - 1] * 3), mtime=0),
            "0 follow",
        ),
        ("train-labels-idx1-ubyte", struct.pack(">2I", 0x801, 29) + bytes(29), "29 labels for the 30 images"),
        (
            "train-labels-idx1-ubyte",
            struct.pack(">2I", 0x801, 30) + bytes(29) + b"\x0a",
            "record 29 .* label 10",
        ),
        ("train-labels-idx1-ubyte", b"", "begins with bytes"),
    ],
)
def test_a_damaged_mnist_file_is_named_with_its_fault(fake_mnist, file, content, fault):
    (fake_mnist / "mnist" / file).write_bytes(content)
    with pytest.raises(InputError, match=rf"{file}.* is damaged .*{fault}"):
        data.mnist(folder=fake_mnist)


@pytest.mark.parametrize(
    ("content", "fault"), [(b"", "0 bytes"), (bytes(3072), "3072 bytes"), (b"\x0b" + bytes(3072), "label 11")]
)
def test_a_damaged_cifar_batch_is_named_with_its_fault(fake_cifar, content, fault):
    (fake_cifar / "cifar10" / "cifar-10-batches-bin" / "data_batch_3.bin").write_bytes(content)
    with pytest.raises(InputError, match=rf"data_batch_3.bin is damaged .*{fault}"):
        data.cifar10(folder=fake_cifar)


@needs_mnist
def test_mnist_zero_and_one_has_12665_training_and_2115_test_images():
    """Published counts: 5923 + 6742 and 980 + 1135."""
    train, test = (data.mnist(classes=(0, 1), split=split) for split in ("train", "test"))
    assert (train.y == 1).sum() == 5923
    assert (train.y == -1).sum() == 6742
    assert (test.y == 1).sum() == 980
    assert (test.y == -1).sum() == 1135


@needs_mnist
@pytest.mark.parametrize(("split", "prefix", "n"), [("train", "train", 60_000), ("test", "t10k", 10_000)])
def test_mnist_equals_a_parse_by_hand(split, prefix, n):
    images, labels = by_hand(f"{prefix}-images-idx3-ubyte"), by_hand(f"{prefix}-labels-idx1-ubyte")
    assert struct.unpack(">4I", images[:16]) == (0x803, n, 28, 28)
    X, y = data.mnist(split=split, samples=100, unit=False)
    assert X[0].tolist() == list(images[16 : 16 + 784])
    assert X[99].tolist() == list(images[16 + 99 * 784 : 16 + 100 * 784])
    assert y.tolist() == list(labels[8:108])


@needs_cifar
def test_cifar_begins_with_the_raw_bytes_of_its_first_record():
    path = find("cifar10/cifar-10-batches-bin/data_batch_1.bin", data_folder())
    record = path.read_bytes()[:3073]
    X, y = data.cifar10(samples=1, unit=False)
    assert y[0] == record[0]
    assert X[0].tolist() == list(record[1:])


@needs_cifar
def test_cifar_airplane_against_automobile_is_balanced():
    """Published counts: 5000 training and 1000 test images a class."""
    for split, each in (("train", 5000), ("test", 1000)):
        y = data.cifar10(classes=(0, 1), split=split, unit=False).y
        assert (y == 1).sum() == (y == -1).sum() == each
