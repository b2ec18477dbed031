"""Wrong numbers put into an experiment's results, and which of its claims notice."""

from offtangent.lab import Results


def failing(experiment, results):
    """The sources of the claims that fail."""
    return {claim.source for claim in experiment.claims(results) if claim.verdict == "fails"}


def changed(experiment, results, kind, **faults):
    """Those that fail when numbers of one kind of cell are replaced by fault(cell, data)."""
    pairs = tuple(
        (cell, data.assign({name: fault(cell, data) for name, fault in faults.items()}) if type(cell) is kind else data)
        for cell, data in results
    )
    return failing(experiment, Results("smoke", pairs))
