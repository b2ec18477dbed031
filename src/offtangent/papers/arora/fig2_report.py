"""What Figure 2's results say: its claims and its figures."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
import xarray as xr
from jaxtyping import Float

from offtangent import data
from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, mean_interval
from offtangent.papers.arora._conditions import DELTA, NEW, or_too_wide, theorem_51
from offtangent.papers.arora.fig1_report import NAMES, OWN
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory import generalisation_bound

TWO_SIDED = 1.96  # standard errors of a normal 95 % interval
COLOURS = {"digits": "green", "mnist": "blue", "cifar10": "vermillion"}
ERRORS = {"l1": "ℓ1 loss", "wrong": "classification error"}
PORTIONS, NETWORKS = 5, 8  # with fewer no order can be told from chance
CHANGED = "The rule was changed after a record had been made, and is judged on draws from 1000 on, made since."


def claims(regressions: Results, networks: Results) -> Iterator[Claim]:
    """Figure 2 and Corollary 5.2, for every data set here and for the paper's two."""
    for name in dict.fromkeys([*regressions.values("data"), *networks.values("data"), *OWN]):
        found = regressions.where(data=name)
        if len(found):
            largest = max(found, key=lambda pair: pair[0].samples)
            yield _rises(*largest)
            yield _regression_order(*largest)
        elif not len(networks.where(data=name)):
            yield _without(name)
        for group in _groups(networks.where(data=name)):
            if len(group.values("portion")) >= PORTIONS:
                yield _network_order(group)
    yield from _bounds(regressions, networks)
    yield _upper(regressions, networks)


def _without(name: str) -> Claim:
    here = data.fetch.available(name)
    return Claim.not_run(
        reason="size" if here else "data",
        source=f"Figure 2, {NAMES[name]}",
        statement="the measure and the test error rise together with the portion of random labels",
        profile="laptop, or paper, where the data is",
        why=f"{name} is left out here."
        if here
        else f"{name} is not in the data folder: set OFFTANGENT_DATA, or fetch it with "
        f"offtangent.data.download({name!r}).",
    )


def _rises(cell: Any, found: xr.Dataset) -> Claim:
    steps = found.measure.transpose("draw", "portion").diff("portion").values
    intervals = [mean_interval(step) for step in steps.T]
    weakest = min(range(len(intervals)), key=lambda at: intervals[at].low)
    levels, means = found.portion.values, found.measure.mean("draw").values
    shown = sorted({0, len(levels) // 2, len(levels) - 1})
    return Claim.at_least(
        intervals[weakest], 0, strict=True,
        source=f"Section 5, Figure 2, {NAMES[cell.data]}",
        statement="as the portion of random labels increases, the complexity measure (10) increases",
        measured=f"the weakest of {len(intervals)} steps between portions, from {levels[weakest]:g} to "
        f"{levels[weakest + 1]:g}, mean of {cell.draws} draws, n = {cell.samples}",
        note="The measure is " + ", ".join(f"{means[at]:.3g} at portion {levels[at]:g}" for at in shown) + ".",
    )  # fmt: skip


def _regression_order(cell: Any, found: xr.Dataset) -> Claim:
    steps = {kind: found[kind].transpose("draw", "portion").diff("portion").values for kind in ERRORS}
    intervals = {(kind, at): mean_interval(step) for kind in ERRORS for at, step in enumerate(steps[kind].T)}
    kind, at = min(intervals, key=lambda where: intervals[where].low)
    levels, weakest = found.portion.values, intervals[kind, at]
    said: dict[str, Any] = {
        "source": f"Figure 2, {NAMES[cell.data]}",
        "statement": "the measure matches the trend of kernel regression's test error: as the measure, ℓ1 loss and "
        "classification error increase with every step of the portion",
    }
    ranks = _told({kind: float(_by_draw(found, kind).mean()) for kind in ERRORS})
    if cell.first < NEW:
        step = f"the weakest step is {weakest.value:.2g} [{weakest.low:.2g}, {weakest.high:.2g}], of {cell.draws} draws"
        before = f"The rule before was a rank correlation above {_by_chance(len(levels)):.3f}, chance's."
        return _seen(f"{step}. {ranks} {before}", **said)
    return Claim.at_least(
        weakest,
        0,
        strict=True,
        **said,
        measured=f"the weakest of {len(intervals)} steps, of the {ERRORS[kind]} from portion {levels[at]:g} to "
        f"{levels[at + 1]:g}, mean of draws {cell.first} to {cell.first + cell.draws - 1}, n = {cell.samples}, "
        f"{cell.tests} test images",
        note=f"{ranks} {CHANGED}",
    )


def _seen(found: str, **said: Any) -> Claim:
    """What the draws by which a rule was chosen say, which decides nothing."""
    why = f"{CHANGED} On the draws that were seen by then {found}"
    return Claim.not_run(**said, reason="data", why=why, profile="laptop, and in arora/again at the paper's sizes")


def _network_order(group: Results) -> Claim:
    cell, found = group.pairs[0][0], [one for _, one in group]
    words: dict[str, Any] = {
        "source": f"Figure 2, {NAMES[cell.data]}",
        "statement": "the measure matches the trend of trained networks' test error as the portion increases",
    }
    if len(found) < NETWORKS:
        why = f"{_counted(len(found), 'network')}: too few to tell an order from chance."
        return Claim.not_run(reason="size", **words, profile="paper", why=why)
    ranks = {kind: _rank_interval(_of(found, "measure"), _of(found, kind)) for kind in ERRORS}
    worst, levels = min(ERRORS, key=lambda kind: ranks[kind].low), len(group.values("portion"))
    chance = _by_chance(levels)
    told = _told({kind: rank.value for kind, rank in ranks.items()})
    if min(group.values("seed")) < NEW:
        low = f"the interval of the {ERRORS[worst]}'s starts at {ranks[worst].low:.3f}, to exceed {chance:.3f}"
        return _seen(f"{low}. {told} The rule before was to exceed zero.", **words)
    claim = Claim.at_least(
        ranks[worst],
        chance,
        strict=True,
        measured=f"rank correlation of measure and {ERRORS[worst]}, {_counted(len(found), 'network')}, {levels} "
        f"portions, {_counted(len(group.values('seed')), 'seed')}, {_setting(cell)}",
        note=f"{told} Of random orders of the portions one in twenty exceeds what is expected. {CHANGED} Networks "
        f"{_ended(group)} Mean ℓ1 loss: {_of(found, 'l1').mean():.3g}; kernel regression's on the same labels: "
        f"{_of(found, 'limit_l1').mean():.3g}.",
        **words,
    )
    return or_too_wide(claim, ranks[worst].value > chance, _counted(len(found), "network"))


def _bounds(regressions: Results, networks: Results) -> Iterator[Claim]:
    """Corollary 5.2 where it says anything: the measure is below one."""
    words: dict[str, Any] = {
        "source": "Theorem 5.1, Corollary 5.2",
        "statement": "where the measure (10) is below one it bounds the test ℓ1 loss, and so the classification error, "
        "even without the O(·) term",
    }
    limits = [row for cell, found in regressions for row in _draws(cell, found) if row["measure"] < 1]
    if limits:
        worst, ratio = _worst(limits)
        cell, n, measure = worst["cell"], worst["cell"].samples, worst["measure"]
        smallest = worst["smallest"]
        full = generalisation_bound(measure**2 * n / 2, n, smallest=smallest, delta=DELTA, training=0.0)
        yield Claim.at_most(
            ratio,
            1,
            measured=f"largest ratio of ℓ1 loss to measure over {_counted(len(limits), 'kernel regression')} (infinite "
            f"width, κ → 0): {NAMES[cell.data]}, n = {n}, portion {worst['portion']:g}, {cell.tests} test images",
            hypotheses=theorem_51(n, width=math.inf, scale=0.0, smallest=smallest),
            note=f"{_numbers(worst)}; the whole bound with the proof's constants, δ = {DELTA}: {full.total:.3g}. "
            "Elsewhere the measure is above one and says nothing.",
            **words,
        )
    names = ("measure", "l1", "l1_error", "wrong", "smallest")
    rows = [{"cell": cell, **{name: float(one.variables[name].values) for name in names}} for cell, one in networks]
    trained = [row for row in rows if row["measure"] < 1]
    if trained:
        worst, ratio = _worst(trained)
        cell = worst["cell"]
        yield Claim.at_most(
            ratio,
            1,
            measured=f"largest ratio of ℓ1 loss to measure over {_counted(len(trained), 'trained network')}: "
            f"{NAMES[cell.data]}, portion {cell.portion:g}, {cell.tests} test images, {_setting(cell)}",
            hypotheses=theorem_51(cell.samples, width=cell.width, scale=cell.scale, smallest=worst["smallest"]),
            note=f"{_numbers(worst)}.",
            **words,
        )


def _draws(cell: Any, found: xr.Dataset) -> Iterator[dict[str, Any]]:
    """Every kernel regression of a cell; without random labels its draws are all the same."""
    names = ("measure", "l1", "l1_error", "wrong")
    tables = {name: found[name].transpose("portion", "draw").values for name in names}
    for at, portion in enumerate(found.portion.values):
        for draw in range(cell.draws if portion else 1):
            values = {name: float(table[at, draw]) for name, table in tables.items()}
            yield {"cell": cell, "portion": float(portion), "smallest": float(found.smallest), **values}


def _numbers(row: dict[str, Any]) -> str:
    return f"ℓ1 loss {row['l1']:.3g}, classification error {row['wrong']:.3g}, measure {row['measure']:.3g}"


def _worst(rows: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], Interval]:
    """The largest ratio of ℓ1 loss to measure, with what the finite number of test images leaves open."""
    ratios = []
    for row in rows:
        value, half = row["l1"], TWO_SIDED * row["l1_error"]
        ratios.append(Interval(*(number / row["measure"] for number in (value, value - half, value + half))))
    at = max(range(len(rows)), key=lambda at: ratios[at].high)
    return rows[at], ratios[at]


def _upper(regressions: Results, networks: Results) -> Claim:
    worst = max(float(found.excess.max()) for results in (regressions, networks) for _, found in results)
    count = sum(found.l1.size for _, found in regressions)
    return Claim.at_most(
        worst, 0,
        source="Figure 2",
        statement="the ℓ1 loss is always an upper bound on the classification error (|y − f(x)| ≥ 1 where the sign is "
        "wrong)",
        measured=f"largest 0-1 loss minus ℓ1 loss of a single test image, {_counted(count, 'kernel regression')} and "
        f"{_counted(len(networks), 'network')}",
        identity=True,
    )  # fmt: skip


def figures(regressions: Results, networks: Results) -> Iterator[Figure]:
    yield from printed(regressions, networks)
    if len(regressions):
        yield _against_measure(regressions, networks)
    if len(networks):
        yield _steps(networks)
        yield _on_the_way(networks)


def printed(regressions: Results, networks: Results) -> list[Figure]:
    """The paper's own plot of every data set and size."""
    return [
        _as_printed(cell, found, networks.where(data=cell.data, samples=cell.samples)) for cell, found in regressions
    ]


def _as_printed(cell: Any, found: xr.Dataset, networks: Results) -> Figure:
    plot = new_plot()
    looks = (("l1", "blue"), ("wrong", "vermillion"))
    for kind, colour in looks:
        values = found[kind].transpose("draw", "portion").values
        band = (np.quantile(values, 0.05, axis=0), np.quantile(values, 0.95, axis=0))
        name = f"{ERRORS[kind]}, kernel"
        line(plot, found.portion.values, values.mean(axis=0), name=name, colour=colour, band=band)
    caption = ""
    for group in _groups(networks):
        example, ones = group.pairs[0][0], [one for _, one in group]
        who, symbol = ("networks", "circle") if example.momentum else ("networks, plain descent", "x")
        at = np.array([trained.portion for trained, _ in group])
        for kind, colour in looks:
            points(plot, at, _of(ones, kind), name=f"{ERRORS[kind]}, {who}", colour=colour, symbol=symbol)
        seeds = _counted(len(group.values("seed")), "seed")
        caption += f" {who.capitalize()} ({_setting(example)}, {seeds}) {_ended(group)}"
    ends = np.array([0.0, 1.0])
    line(plot, ends, ends, name="ℓ1 loss, floor", colour="sky", dash="dot")
    line(plot, ends, ends / 2, name="classification error, floor", colour="orange", dash="dot")
    line(plot, found.portion.values, found.expected.values, name="measure, exact", colour="grey", dash="dash")
    line(plot, found.portion.values, found.measure.mean("draw").values, name="measure, right axis", colour="purple")
    style(plot, x="portion of random labels", y="test loss, test error")
    _on_the_right(plot, 2, "complexity measure (10)")
    return Figure(
        f"Measure and test error: {NAMES[cell.data]}, n = {cell.samples}",
        "Test ℓ1 loss and classification error (left axis) and complexity measure (right axis) against the portion of "
        f"random labels, in training and test data. Lines: kernel regression, mean of {cell.draws} draws, bands from "
        f"the 5th to the 95th percentile, {cell.tests} test images. Dotted: what no predictor can beat, since the test "
        f"labels are random too. Dashed: the measure's root mean square over all draws, exactly.{caption}",
        plot,
    )


def _on_the_right(plot: Any, last: int, title: str) -> None:
    """Give the last traces an axis of their own; after `style`."""
    axis = plot.layout.template.layout.yaxis.to_plotly_json()
    axis |= {"title": {**axis["title"], "text": title}, "overlaying": "y", "side": "right", "tickmode": "auto"}
    plot.update_layout(yaxis2={**axis, "showgrid": False, "rangemode": "tozero"}, yaxis={"rangemode": "tozero"})
    for trace in plot.data[-last:]:
        trace.yaxis = "y2"


def _against_measure(regressions: Results, networks: Results) -> Figure:
    """The plot it should have shown: no second axis, all data sets, and what is left with true test labels."""
    plot = new_plot()
    told = []
    for name in regressions.values("data"):
        groups = [group for group in _groups(networks.where(data=name)) if len(group.values("portion")) >= PORTIONS]
        sizes = [group.pairs[0][0].samples for group in groups]
        cell, found = max(regressions.where(data=name), key=lambda pair: (pair[0].samples in sizes, pair[0].samples))
        where = f"{NAMES[name]}, n = {cell.samples}"
        for kind, dash, label in (("wrong", None, "kernel"), ("clean", "dot", "kernel, true test labels")):
            measure, error = found.measure.mean("draw").values, found[kind].mean("draw").values
            line(plot, measure, error, name=f"{where}, {label}", colour=COLOURS[name], dash=dash)
        told.append(f"{NAMES[name]} {_by_draw(found, 'wrong').mean():.3f}")
        for group in groups:
            ones = [one for trained, one in group if trained.samples == cell.samples and trained.momentum]
            if ones:
                measure, error = _of(ones, "measure"), _of(ones, "wrong")
                points(plot, measure, error, name=f"{where}, networks", colour=COLOURS[name])
    style(plot, x="complexity measure (10)", y="classification error")
    plot.update_xaxes(rangemode="tozero")
    return Figure(
        "One number orders the errors of a data set, and bounds few",
        "Classification error against the measure as the portion of random labels grows. Lines: kernel regression; "
        "solid with random labels among the test data, as in the paper, dotted with true ones alone. Points: networks, "
        f"with random labels in the test data. Rank correlation of solid lines, mean over draws: {', '.join(told)}. "
        "Between data sets the same measure goes with different errors, and a bound above one says nothing.",
        plot,
    )


def _steps(networks: Results) -> Figure:
    """Eq. (8) against what networks of finite width need."""
    plot = new_plot()
    drawn = [1.0]
    for name in networks.values("data"):
        for group in _groups(networks.where(data=name)):
            example = group.pairs[0][0]
            ones = [one for _, one in group if np.isfinite(float(one.steps_to_level))]
            foreseen, took = (np.maximum(_of(ones, key), 1) for key in ("predicted_steps", "steps_to_level"))
            drawn += [*foreseen]
            words = f"{NAMES[name]}, n = {example.samples}, to {example.level:.0%}"
            if ones:
                points(
                    plot, foreseen, took, name=words + ("" if example.momentum else ", plain descent"),
                    colour=COLOURS[name], symbol="circle" if example.momentum else "x",
                )  # fmt: skip
    line(plot, [1, max(drawn)], [1, max(drawn)], name="as eq. (8) says", colour="grey", dash="dash")
    style(plot, x="steps by eq. (8)", y="steps taken", log_x=True, log_y=True)
    late = sum(not np.isfinite(float(one.steps_to_level)) for _, one in networks)
    return Figure(
        "Steps until the loss is down",
        "Every point is a network on one portion of random labels. Across: the steps an infinitely wide one takes, by "
        "eq. (8) or, with momentum, by the same recursion with momentum. Far above the diagonal the weights have left "
        "the neighbourhood of their initialisation in which eq. (8) holds."
        + (f" Not drawn: {_counted(late, 'network')} of {len(networks)} that met the cap before." if late else ""),
        plot,
    )


def _on_the_way(networks: Results) -> Figure:
    """The test loss against the training loss, where there are runs with and without momentum, or of the first set."""
    plain = [cell for cell, _ in networks if not cell.momentum]
    example = (plain or [cell for cell, _ in networks])[0]
    chosen = networks.where(data=example.data, samples=example.samples, seed=example.seed)
    plot = new_plot()
    for portion, colour in ((0.0, "green"), (0.5, "blue"), (1.0, "vermillion")):
        for cell, found in chosen.where(portion=portion):
            how = f"momentum {cell.momentum:g}" if cell.momentum else "plain descent"
            line(
                plot, found.path_loss.values, found.path_l1.values,
                name=f"portion {portion:g}, {how}", colour=colour, dash=None if cell.momentum else "dash",
            )  # fmt: skip
    style(plot, x="training loss / first training loss", y="test ℓ1 loss", log_x=True)
    plot.update_xaxes(autorange="reversed")
    return Figure(
        f"On the way down: {NAMES[example.data]}",
        f"Test ℓ1 loss as the training loss falls (to the right), n = {example.samples}, m = {example.width}, "
        f"κ = {example.scale:g}, one seed." + (" Dashed: without momentum, as far as it came." if plain else ""),
        plot,
    )


def _groups(networks: Results) -> list[Results]:
    """Networks of one data set that differ in portion and seed alone; with momentum first."""
    kinds = sorted({(cell.samples, cell.momentum) for cell, _ in networks}, key=lambda kind: (kind[0], -kind[1]))
    return [networks.where(samples=samples, momentum=momentum) for samples, momentum in kinds]


def _of(found: Sequence[xr.Dataset], name: str) -> Float[np.ndarray, "k"]:
    return np.array([float(one.variables[name].values) for one in found])


def _by_draw(found: xr.Dataset, kind: str) -> Float[np.ndarray, "s"]:
    pairs = zip(found.measure.values.T, found[kind].values.T, strict=True)
    return np.array([_spearman(measure, error) for measure, error in pairs])


def _spearman(a: Float[np.ndarray, "k"], b: Float[np.ndarray, "k"]) -> float:
    return float(np.corrcoef(scipy.stats.rankdata(a), scipy.stats.rankdata(b))[0, 1])


def _rank_interval(a: Float[np.ndarray, "k"], b: Float[np.ndarray, "k"]) -> Interval:
    """Rank correlation with Bonett and Wright's 95 % interval, by Fisher's transformation."""
    rank = float(np.clip(_spearman(a, b), -1 + 1e-9, 1 - 1e-9))
    half = TWO_SIDED * np.sqrt((1 + rank**2 / 2) / (len(a) - 3))
    return Interval(rank, *(float(np.tanh(np.arctanh(rank) + side * half)) for side in (-1, 1)))


def _by_chance(count: int) -> float:
    """The rank correlation that one random order in twenty exceeds, by Student's approximation."""
    t = scipy.special.stdtrit(count - 2, 0.95)
    return float(t / np.sqrt(count - 2 + t**2))


def _told(ranks: dict[str, float]) -> str:
    return (
        "Rank correlation with the "
        + ", with the ".join(f"{ERRORS[kind]} {rank:.3f}" for kind, rank in ranks.items())
        + "."
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _setting(cell: Any) -> str:
    how = f"gradient descent with momentum {cell.momentum:g}" if cell.momentum else "plain gradient descent"
    return f"n = {cell.samples}, m = {cell.width}, κ = {cell.scale:g}, {how}"


def _ended(group: Results) -> str:
    """In words: where training ended."""
    cell = group.pairs[0][0]
    losses: dict[float, list[float]] = {}
    for trained, one in group:
        losses.setdefault(trained.portion, []).append(float(one.loss))
    late = {portion: max(found) for portion, found in losses.items() if max(found) > cell.level}
    if not late:
        return f"trained to {cell.level:.0%} of the first loss."
    ends = ", ".join(f"{loss:.2g} at portion {portion:g}" for portion, loss in late.items())
    return f"trained to {cell.level:.0%} of the first loss or for {cell.cap} steps; the loss ended above it: {ends}."
