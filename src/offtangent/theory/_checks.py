"""What the bounds of this room ask of their arguments."""

from offtangent._errors import InputError
from offtangent.data.keys import check_real


def check_bound(delta: float | int | None = None, /, **positive: float | int) -> None:
    """Refuse sizes that are not positive, and a probability of failure outside (0, 1)."""
    for name, value in positive.items():
        check_real(name, value)
        if not value > 0:
            raise InputError(f"{name}={value:g}: the bound holds for positive {name} only.")
    if delta is not None:
        check_real("delta", delta)
        if not 0 < delta < 1:
            raise InputError(f"delta={delta:g}: the probability of failure must lie between 0 and 1, such as 0.1.")
