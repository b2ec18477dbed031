"""What an experiment is and how it runs: cells, executors, the store, claims."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.lab.claims import Claim as Claim
    from offtangent.lab.costs import Cost as Cost
    from offtangent.lab.execution import execute as execute
    from offtangent.lab.results import Results as Results
    from offtangent.lab.slices import combine as combine
    from offtangent.lab.sweeps import Sweep as Sweep
    from offtangent.lab.sweeps import over_seeds as over_seeds

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "claims": "Claim",
        "execution": "execute",
        "results": "Results",
        "slices": "combine",
        "costs": "Cost",
        "sweeps": "Sweep over_seeds",
    },
)
