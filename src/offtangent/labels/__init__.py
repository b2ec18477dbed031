"""A user's labels: how hard they are, how many look wrong, what to do."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.labels.advice import advise as advise
    from offtangent.labels.analysis import analyse as analyse

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "analysis": "analyse",
        "advice": "advise",
    },
)
