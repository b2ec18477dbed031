import gzip
import struct

import numpy as np
import pytest


def idx(array):
    """The bytes of an IDX file, written from the format's description."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype("u1").tobytes()


def cifar(labels, rng):
    return b"".join(bytes([label]) + rng.bytes(3072) for label in labels)


@pytest.fixture
def fake_mnist(tmp_path):
    """A folder with a small MNIST: 30 training and 20 test images of 2×3 pixels, images gzipped."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "mnist"
    folder.mkdir()
    for name, n in (("train", 30), ("t10k", 20)):
        images = idx(rng.integers(1, 256, size=(n, 2, 3)))
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, mtime=0))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(np.arange(n) % 10))
    return tmp_path


@pytest.fixture
def fake_cifar(tmp_path):
    """A folder with a small CIFAR-10: batches of 1, 2, 3, 4, 5 and 6 records of classes 0, 1, 2."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "cifar10" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for i, name in enumerate([*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]):
        (folder / name).write_bytes(cifar([j % 3 for j in range(i + 1)], rng))
    return tmp_path
