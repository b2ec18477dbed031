"""What an experiment is and how it runs: cells, executors, the store, claims."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.lab.claims import Claim as Claim
    from offtangent.lab.claims import Verdict as Verdict
    from offtangent.lab.costs import Cost as Cost
    from offtangent.lab.execution import execute as execute
    from offtangent.lab.results import Results as Results
    from offtangent.lab.slices import combine as combine
    from offtangent.lab.statistics import error_interval as error_interval
    from offtangent.lab.statistics import fraction_interval as fraction_interval
    from offtangent.lab.statistics import mean_interval as mean_interval
    from offtangent.lab.statistics import ratio_interval as ratio_interval
    from offtangent.lab.statistics import slope_interval as slope_interval
    from offtangent.lab.sweeps import Sweep as Sweep
    from offtangent.lab.sweeps import over_seeds as over_seeds

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "claims": "Claim Verdict",
        "execution": "execute",
        "results": "Results",
        "slices": "combine",
        "costs": "Cost",
        "statistics": "error_interval fraction_interval mean_interval ratio_interval slope_interval",
        "sweeps": "Sweep over_seeds",
    },
)
