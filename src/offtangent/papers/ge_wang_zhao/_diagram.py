"""A phase diagram of memorisation: what its axes are, and what counting says about each of its networks."""

from dataclasses import dataclass

from offtangent.networks.quadratic import symmetric_dimension
from offtangent.theory.ge_wang_zhao.capacity import least_width, most_samples

LEVEL = 1e-4  # of f(0): below it, a network has memorised its samples


@dataclass(frozen=True)
class Diagram:
    """n against `sizes`, which are widths, dimensions, or numbers of features of power p."""

    axis: str  # "width", "dimension", "features"
    sizes: tuple[int, ...]
    samples: tuple[int, ...]
    dim: int
    power: int
    steps: int
    seeds: int
    lengths: str = "one"  # of what the quadratic layers see: divided by its length, or "as printed"

    @property
    def seen(self) -> str:
        """What the quadratic layers see, in letters."""
        seen = "(Rx)^p" if self.axis == "features" else "x"
        return f"{seen} over its length" if self.lengths == "one" else seen


def inputs(cell: Diagram, size: int) -> int:
    """What the quadratic layers see."""
    return cell.dim if cell.axis == "width" else size


def width(cell: Diagram, size: int) -> int:
    return size if cell.axis == "width" else least_width(size)


def capacity(cell: Diagram, size: int) -> int:
    """The most samples that a network of this size can give any labels, by counting polynomials."""
    most = most_samples(inputs(cell, size))
    return min(most, symmetric_dimension(cell.dim, 2 * cell.power)) if cell.axis == "features" else most
