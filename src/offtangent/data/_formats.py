"""The two binary formats of the image sets: IDX (MNIST) and CIFAR-10's batches.

Pixels and labels come as uint8, images flattened to rows, in file order. Every length is checked.
"""

from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from offtangent.data.catalogue import damaged, read

UNSIGNED_BYTE = 0x08  # IDX's code for the type of the entries
CIFAR_PIXELS = 3 * 32 * 32
CLASSES = 10


def read_idx(path: Path, ndim: int) -> UInt8[np.ndarray, " n *shape"]:
    """An IDX file: 0, 0, type, ndim, then ndim big-endian uint32 sizes, then the entries."""
    content = read(path)
    head = 4 + 4 * ndim
    if len(content) < head or content[:4] != bytes([0, 0, UNSIGNED_BYTE, ndim]):
        expected = bytes([0, 0, UNSIGNED_BYTE, ndim]).hex(" ")
        raise damaged(path, f"it begins with bytes {content[:4].hex(' ')}, expected {expected}")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=ndim, offset=4))
    size = int(np.prod(shape, dtype=object))
    if size == 0 or len(content) != head + size:
        raise damaged(path, f"its head promises {shape} entries of one byte, and {len(content) - head} follow")
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)


def read_mnist(images: Path, labels: Path) -> tuple[UInt8[np.ndarray, "n d"], UInt8[np.ndarray, " n"]]:
    """One split of MNIST: pixels (28×28, row by row) and labels."""
    pixels, digits = read_idx(images, 3), read_idx(labels, 1)
    if len(pixels) != len(digits):
        raise damaged(labels, f"it has {len(digits)} labels for the {len(pixels)} images in {images.name}")
    _check_classes(labels, digits)
    return pixels.reshape(len(pixels), -1), digits


def read_cifar(paths: list[Path]) -> tuple[UInt8[np.ndarray, "n d"], UInt8[np.ndarray, " n"]]:
    """Batches of any length: one label byte, then 3072 pixels (red, green, blue planes, each 32×32)."""
    batches = []
    for path in paths:
        content = read(path)
        if not content or len(content) % (1 + CIFAR_PIXELS):
            raise damaged(path, f"its {len(content)} bytes are no whole number of 3073-byte records")
        batch = np.frombuffer(content, np.uint8).reshape(-1, 1 + CIFAR_PIXELS)
        _check_classes(path, batch[:, 0])
        batches.append(batch)
    records = np.concatenate(batches)
    return records[:, 1:], records[:, 0]


def _check_classes(path: Path, labels: UInt8[np.ndarray, " n"]) -> None:
    if labels.max() >= CLASSES:
        record = int((labels >= CLASSES).argmax())
        raise damaged(path, f"record {record} (counted from 0) has label {labels[record]}, expected 0 to 9")
