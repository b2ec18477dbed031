"""A user's labels: how hard they are, how many look wrong, what to do."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.labels import advice_text as advice_text
    from offtangent.labels import command as command
    from offtangent.labels import energies as energies
    from offtangent.labels import learning_curves as learning_curves
    from offtangent.labels import measure as measure
    from offtangent.labels import noise as noise
    from offtangent.labels import page as page
    from offtangent.labels import partition as partition
    from offtangent.labels import spectrum as spectrum
    from offtangent.labels import tasks as tasks
    from offtangent.labels.advice import advise as advise
    from offtangent.labels.analysis import analyse as analyse

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "analysis": "analyse",
            "advice": "advise",
        },
    )
