"""What the learning curves say: how many samples each learner needs, and how that grows with the dimension.

2-XOR's n_Q = Õ(d) is a bound for large d. That it is looked at from d = 25 on, with one logarithm, was decided after
the first seeds had been seen: there is a verdict on others alone, and over all d the number is shown without one.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import ratio_interval, slope_interval
from offtangent.papers.bai_lee._curves import NAMES, SIGMA, TITLES, TaskCurves, listed, tasks
from offtangent.papers.bai_lee._curves import needed as needed  # for Nichani et al.'s figures
from offtangent.papers.bai_lee._targets import WRONG, is_xor, level, moment
from offtangent.theory.bai_lee.bounds import coupling_width
from offtangent.theory.bai_lee.expressivity import RidgePower, xor_target

EASIER = 1.5  # times the level, for a learner that does not come down to it: three quarters of degree p, 15 % of signs
LARGE = 25  # the d from which 2-XOR's bound is judged, on seeds that were drawn after this was decided
CHOSEN = (
    f"That d ≥ {LARGE} is large, and that Õ is one logarithm, was chosen after the seeds from 0 on had been seen: "
    "there is a verdict on new seeds alone."
)


def claims(results: Results) -> list[Claim]:
    """All of them, task by task.

    Args:
        results: The curves.

    Returns:
        The claims; none of a task without an NTK and a quadratic model at two dimensions.
    """
    fresh = results.only(lambda cell: cell.first > 0)
    return [
        claim
        for task in tasks(results)
        for claim in (*_of(task), *on_new_seeds(task, TaskCurves(task.task, fresh.where(task=task.task))))
    ]


def _of(task: TaskCurves) -> list[Claim]:
    found: list[Claim] = []
    for learner in ("quadratic", "randomised"):
        if not task.known("ntk", learner):
            found += [one for one in [_unknown(task, learner)] if one not in found]  # the NTK's is one for both
        if learner in task.learners:
            found += _compared(task, learner)
    easier = TaskCurves(task.task, task.results, EASIER)
    missed = [learner for learner in task.learners if not task.known(learner) and easier.known(learner, "ntk")]
    for learner in missed:
        found += [*_compared(easier, learner), *_slopes(easier, [learner])]
    return [*found, *_slopes(task, task.learners)]


def _wide(task: TaskCurves, learner: str) -> tuple[Hypothesis, ...]:
    """That the randomised network is as wide as (6) asks, at the dimension where it is the furthest from it."""
    if learner != "randomised":
        return ()
    found = [
        (task.curve(learner, dim)[0].width, asked_width(task.task, int(dim)), int(dim)) for dim in task.dims[learner]
    ]
    width, asked, dim = min(found, key=lambda one: one[0] / one[1])
    return (Hypothesis(f"width m (d = {dim})", width, "≥", asked, "eq. (6), even with ε = 1", given=False),)


def _compared(task: TaskCurves, learner: str) -> list[Claim]:
    """Next to the NTK: at the largest dimension that both have, and how that changes with d."""
    dims, ratio = task.against_ntk(learner)
    if not len(dims):
        return []
    means = ", ".join(f"{one:.2f}" for one in np.exp(np.log(ratio).mean(axis=0)))
    said: dict[str, Any] = {"source": "Section 5.2", "hypotheses": _wide(task, learner), "strict": True}
    head = f"{task.title}: the {NAMES[learner]}"
    found = [
        Claim.at_most(
            ratio_interval(ratio[:, -1], np.ones(len(ratio))),
            1.0,
            **said,
            statement=f"{head} needs fewer samples than the NTK at d = {dims[-1]:.0f}",
            measured=f"ratio of the n at which {_goal(task)}, 95 % interval, {task.where([learner, 'ntk'], dims[-1:])}",
            note=f"Ratios at d = {listed(dims)}: {means}.",
        )
    ]
    if len(dims) > 1:
        interval = slope_interval(dims, ratio)
        within = "within" if interval.low <= -1 <= interval.high else "outside"
        found.append(
            Claim.at_most(
                interval,
                0.0,
                **said,
                statement=f"{head}'s n over the NTK's falls with d",
                measured=_slope(task, "the ratio of the n", [learner, "ntk"], dims),
                note=f"{'1/d' if is_xor(task.task) else 'p/d'} in the paper's bounds: −1 is {within} the interval.",
            )
        )
    return found


def _slope(task: TaskCurves, quantity: str, learners: list[str], dims: Any = None) -> str:
    return f"log-log slope in d of {quantity} at which {_goal(task)}, 95 % interval, {task.where(learners, dims)}"


def _goal(task: TaskCurves) -> str:
    if is_xor(task.task):
        return f"{100 * task.times * WRONG:.0f} % of the signs are wrong"
    return f"{'half' if task.times == 1 else 'three quarters'} of the part of degree p is left"


def _slopes(task: TaskCurves, learners: list[str]) -> Iterator[Claim]:
    """How the n grows with d, for each learner, next to the paper's bound where it has one; over all d.

    Polynomials: with E f⋆² = 1 on the unit sphere α²‖β‖^{2p} grows like d^p, so n_L = Õ(d^p) and n_Q = Õ(d^{p−1}).
    """
    for learner in learners:
        if learner == "plain" or not task.known(learner) or len(task.dims[learner]) < 2:
            continue
        if learner != "ntk":
            yield _of_quadratic(task, learner)
            continue
        interval = slope_interval(task.dims["ntk"], task.needed["ntk"])
        words: dict[str, Any] = {
            "measured": _slope(task, "the n", [learner]),
            "note": f"n: {task.sizes(learner)}.",
            "source": "Section 5.2",
        }
        head, degree = f"{task.title}: the {NAMES[learner]} needs", task.task
        if is_xor(task.task):
            inputs = "those of Wei et al." if task.task == "noisy xor" else "corners of the cube"
            setting = (
                Hypothesis("inputs", inputs, "=", "those of Wei et al.", "Wei et al. (2019)"),
                Hypothesis("the kernel's activation", "relu³/6", "=", "relu", "Wei et al. (2019)"),
            )
            statement = f"{head} n_L = Ω(d²) samples (Wei et al., 2019)"
            yield Claim.at_least(interval, 2.0, hypotheses=setting, **words, statement=statement)
        else:
            yield Claim.no_slower(interval, int(degree), **words, statement=f"{head} n_L = Õ(d^{degree}) samples")


def _of_quadratic(task: TaskCurves, learner: str) -> Claim:
    """n_Q over all d: for polynomials without any logarithm, for XOR divided by one."""
    dims, table = task.dims[learner], task.needed[learner]
    xor = is_xor(task.task)
    power, logs = (1 if xor else int(task.task) - 1), np.log(dims)
    plain, divided = slope_interval(dims, table), slope_interval(dims, table / logs)
    other = plain if xor else divided
    return Claim.no_slower(
        divided if xor else plain,
        power,
        source="Section 5.2",
        hypotheses=(*((_large(dims),) if xor else ()), *_wide(task, learner)),
        statement=f"{task.title}: the {NAMES[learner]} needs n_Q = Õ(d{'' if power == 1 else f'^{power}'}) samples "
        f"over all d, {'with one logarithm of d' if xor else 'without a logarithm'}",
        measured=_slope(task, "the n, over log d," if xor else "the n", [learner]),
        note=f"n: {task.sizes(learner)}. {'Without the logarithm' if xor else 'Divided by log d'}: {other.value:.3f} "
        f"[{other.low:.3f}, {other.high:.3f}].",
    )


def _large(dims: Float[np.ndarray, " k"]) -> Hypothesis:
    """That d is large, of which the paper says no more: 25 is a reading of it."""
    said = f"Section 5.2, a bound for large d, with {LARGE} as our reading"
    return Hypothesis("smallest d", float(dims[0]), "≥", LARGE, said, given=False)


def on_new_seeds(task: TaskCurves, fresh: TaskCurves) -> Iterator[Claim]:
    """2-XOR's n_Q = Õ(d) where d is large, on the seeds that were drawn since; or that there are none.

    Args:
        task: The curves of the seeds from 0 on, of which a note tells.
        fresh: Those of other seeds, which are judged.

    Returns:
        One claim; none of a polynomial.
    """
    if not is_xor(task.task):
        return
    statement = (
        f"{TITLES[task.task]}: the {NAMES['quadratic']} needs n_Q = Õ(d) samples where d ≥ {LARGE}, with one logarithm "
        "of d, on new seeds"
    )
    dims = fresh.dims.get("quadratic", np.zeros(0))
    if len(dims) > 1 and fresh.known("quadratic"):
        table = fresh.needed["quadratic"]
        plain = slope_interval(dims, table)
        yield Claim.no_slower(
            slope_interval(dims, table / np.log(dims)),
            1.0,
            source="Section 5.2",
            hypotheses=(_large(dims),),
            statement=statement,
            measured=_slope(fresh, "the n, over log d,", ["quadratic"]),
            note=f"n: {fresh.sizes('quadratic')}. {CHOSEN} Without the logarithm: {plain.value:.3f} [{plain.low:.3f}, "
            f"{plain.high:.3f}].",
        )
        return
    large = task.dims["quadratic"] >= LARGE
    seen = ""
    if large.sum() > 1 and task.known("quadratic"):
        old = slope_interval(
            task.dims["quadratic"][large],
            task.needed["quadratic"][:, large] / np.log(task.dims["quadratic"][large]),
        )
        seen = f" On those seeds it is {old.value:.3f} [{old.low:.3f}, {old.high:.3f}] there, which decides nothing."
    yield Claim.not_run(
        source="Section 5.2",
        statement=statement,
        reason="data",
        why=f"{CHOSEN}{seen}",
        profile="paper of bai_lee/again",
    )


def _unknown(task: TaskCurves, learner: str) -> Claim:
    """A learner that is left out; or that is above the level at every n of its grid, or at none, and so has no n.

    Or the NTK, where it is the one that has none.
    """
    noise = (
        "the noise of random signs, with a variance like m^(−1/2) at W⋆, asks for a wider network, more steps or more "
        "samples"
    )
    statement = f"{TITLES[task.task]}: the {NAMES[learner]} needs fewer samples than the NTK"
    missing: dict[str, Any] = {"reason": "size", "source": "Section 5.2", "profile": "paper"}
    if learner not in task.learners:
        return Claim.not_run(statement=statement, why=f"It is left out here: {noise}.", **missing)
    who = "ntk" if task.known(learner) else learner
    table = task.needed[who]
    column = int(np.flatnonzero(~np.isfinite(table).all(axis=0))[0])
    cell, data = task.curve(who, task.dims[who][column])
    errors, limit = data["test"].values, level(task.task, cell.dim)
    name = f"the {NAMES[who]}{'' if who == 'ntk' else f' with {cell.width} neurons'}"
    if not np.isinf(table).any():
        why = (
            f"At d = {cell.dim} {name} is not above the level with {cell.samples[0]} samples for every seed: the grid "
            "of n starts too late to tell the n that is needed."
        )
        return Claim.not_run(statement=statement, why=why, **missing)
    reached = ", ".join(
        f"{count} of {len(table)} at d = {dim:.0f}"
        for dim, count in zip(task.dims[who], (~np.isinf(table)).sum(axis=0), strict=True)
    )
    told = f"Seeds that reach the level: {reached}. The training loss here is {_trained(task, data)}."
    if who != "randomised":
        why = f"At d = {cell.dim} {name} does not come down to the level with {cell.samples[-1]} samples. {told}"
        return Claim.not_run(statement=statement, why=why, **missing)
    return Claim.at_most(
        float(errors[:, -1].max()),
        limit,
        source="Section 5.2",
        hypotheses=_wide(task, who),
        statement=f"{TITLES[task.task]}: {name} comes down to the level with {cell.samples[-1]} samples",
        measured=f"test error, the worst of {cell.seeds} seeds, next to the level, d = {cell.dim}, m = {cell.width}, "
        f"{SIGMA}",
        note=f"{told} {noise[0].upper()}{noise[1:]}.",
    )


def asked_width(task: str, dim: int) -> float:
    """The width that (6) asks for with ε = 1, where W⋆ is that of Theorem 7 for this target.

    Args:
        task: A task of `_targets`.
        dim: The dimension of the inputs.

    Returns:
        The width, with the constant of O(·) as one.
    """
    radius, targets = dim**0.5, list(xor_target(dim))
    if task == "noisy xor":
        first, second = np.eye(dim)[:2]
        targets = [RidgePower(first, 2, 1.0), RidgePower(second, 2, -1.0)]
    if not is_xor(task):
        radius, targets = 1.0, [RidgePower(np.eye(dim)[0], int(task), moment(2 * int(task), dim) ** -0.5)]
    norm = sum(target.expected_norm4(radius) ** 0.25 for target in targets)
    return float(coupling_width(dim, norm=norm, epsilon=1.0, radius=radius))


def _trained(task: TaskCurves, data: Any) -> str:
    """The last training loss, by which one sees whether samples or steps were too few."""
    return f"{data['train'].values[:, -1].mean():.3f} ({'logistic' if is_xor(task.task) else 'pseudo-Huber'} loss)"
