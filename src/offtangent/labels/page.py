"""The page about a user's labels: what `analyse` found, in figures and words."""

from collections.abc import Mapping, Sequence

import numpy as np

from offtangent._arguments import check_kind
from offtangent._checks import require
from offtangent._errors import a_kind
from offtangent.labels.analysis import LabelAnalysis
from offtangent.report.axes import PALETTE, style
from offtangent.report.figures import Figure, line, new_plot, points
from offtangent.report.page import Badge, Cell, Note, Page, Section, Table
from offtangent.report.text import escaped

SHOWN = 50  # suspects in the table
PAIRS_SHOWN = 20  # groups of duplicates with different labels


def labels_page(found: LabelAnalysis, name: str, facts: Mapping[str, str] | None = None) -> Page:
    """The page for data called `name`; `facts` go into the small table at its end."""
    check_kind("found", found, LabelAnalysis, "what analyse(...) gives")
    require(isinstance(name, str), f"name is {a_kind(name)}: expected text.")
    require(facts is None or isinstance(facts, Mapping), f"facts is {a_kind(facts)}: expected text by name.")
    kind = "numbers" if found.classes is None else f"{len(found.classes)} classes"
    sections = [
        _inputs(found),
        _spectrum(found),
        _complexity(found),
        _noise(found),
        _curve(found),
        _suspects(found),
    ]
    summary: list[Figure | Table | Note] = [
        Table("In short", ("question", "answer"), [(question, escaped(answer)) for question, answer in answers(found)])
    ]
    if found.noise.estimate and found.noise.estimate.doubtful:
        summary.append(Note(doubt(found), "warn"))
    lead = (
        f"{found.n} rows of {found.features} features, labels: {kind}. Nothing was trained: all of this follows from "
    )
    lead += "the kernel of an infinitely wide network."
    return Page(f"The labels of {escaped(name)}", lead, sections, dict(facts or {}), summary)


def answers(found: LabelAnalysis) -> list[tuple[str, str]]:
    """The main numbers as questions and answers, in words: for the page's top and for the terminal."""
    shuffled, value = found.spectrum.shuffled, found.complexity
    low, high = found.curve.steps_to_1_percent
    steps = f"{low} steps or more" if high is None else f"{high} steps"
    later = found.curve.shuffled_steps
    told = [
        (
            "How hard are the labels?",
            f"complexity {value.value:.3g}; shuffled {shuffled.mean():.3g} ± {shuffled.std(ddof=1):.2g}"
            + (", harder than shuffled ones" if value.value > 1.001 * shuffled.max() else "")
            + ("" if np.isfinite(value.upper) else "; at least, for nearly equal rows leave no upper bound"),
        ),
        (
            "How fast will they be learnt?",
            "1 % of the loss is never reached"
            if low is None
            else f"{steps} to 1 % of the loss at the rate {found.curve.rate:.3g}"
            + ("" if later is None else f"; shuffled, {later}"),
        ),
        ("How well does a label follow from the others?", _follow(found)),
        ("How many labels are wrong?", _how_many(found)),
        ("Which look wrong?", _which(found)),
    ]
    merged = found.merged
    if merged.groups:
        copies = f"copies of earlier rows: {merged.dropped}; groups of equal rows whose labels disagree: "
        told.append(("Duplicate rows?", f"{copies}{len(merged.disagreeing)} of {len(merged.groups)}"))
    return told


def doubt(found: LabelAnalysis) -> str:
    """Why the estimate of the noise may be wrong."""
    assert found.noise.estimate is not None
    return (
        "These data are hard: the predictions that are least sure disagree with their labels much more often than the "
        f"surest ones. Up to {found.noise.estimate.hard:.1%} hard rows were allowed for, more than the 2 % that are "
        "assumed otherwise. Trust the upper bound more than the estimate."
    )


def _follow(found: LabelAnalysis) -> str:
    if found.classes is None:
        return f"R² = {1 - found.loo_error:.3f}, leaving one out"
    return f"{found.loo_error:.2%} are not what the others predict"


def _how_many(found: LabelAnalysis) -> str:
    noise = found.noise
    if noise.estimate is None:
        return f"no number is right or wrong; {_variance(found)}"
    low, high = noise.estimate.lower, noise.estimate.upper
    assert noise.bound is not None
    assert noise.even_bound is not None
    bound = "the complexity gives no bound"
    if noise.bound < 0.5:
        bound = f"at most {noise.bound:.1%} by the complexity"
    if noise.even_bound < 0.5:
        bound += f", {noise.even_bound:.1%} if all labels had the same chance to go wrong"
    if low >= 0.5:
        return "the labels do not follow from the features: half or more are not what the others predict"
    return f"about {noise.estimate.fraction:.1%} ({low:.1%} to {high:.1%}); {bound}"


def _variance(found: LabelAnalysis) -> str:
    bound = found.noise.variance_bound
    if bound is None or bound >= 1:
        return "independent noise may be all of the labels' variance"
    return f"independent noise is at most {bound:.1%} of the labels' variance"


def _which(found: LabelAnalysis) -> str:
    rows = ", ".join(str(row) for row in found.suspects.rows[: min(8, found.suspects.likely)])
    if not rows:
        return "none"
    return f"{found.suspects.likely} rows, first {rows} (counted from 0)"


def _name(found: LabelAnalysis, label: float) -> str:
    return f"{label:.6g}" if found.classes is None else escaped(found.classes[int(label)])


def _inputs(found: LabelAnalysis) -> Section:
    from offtangent.labels.analysis import describe

    blocks: list[Table | Note] = []
    if found.classes is not None:
        by_class = found.spectrum.by_column if len(found.classes) > 2 else ()
        columns = ("class", "rows", "complexity against the rest") if by_class else ("class", "rows")
        rows: list[Sequence[Cell]] = [
            (escaped(name), count, *([by_class[i].value] if by_class else []))
            for i, (name, count) in enumerate(zip(found.classes, found.counts or (), strict=True))
        ]
        blocks.append(Table("Classes", columns, rows))
    merged = found.merged
    if merged.disagreeing:
        pairs = [
            (", ".join(map(str, group[:10])), ", ".join(_name(found, found.y[row]) for row in group[:10]))
            for group in merged.disagreeing[:PAIRS_SHOWN]
        ]
        count = len(merged.disagreeing)
        caption = f"Equal rows with different labels: {count} groups, the first {len(pairs)}"
        blocks.append(Table(caption, ("rows", "labels"), pairs))
    lead = f"Inputs: {describe(found.preprocessing)}. Kernel: {found.kernel}"
    lead += f", with a ridge of {found.ridge:g}" if found.ridge else ""
    lead += f". Rows: {found.n}, of which {found.n - merged.dropped} are different from each other."
    if len(found.parts) > 1:
        lead += (
            f"\n\nThe data are large: predictions were made within {len(found.parts)} random parts of about "
            f"{found.parts[0]} rows."
        )
    if found.rows < found.n - merged.dropped:
        lead += f" Spectrum, complexity and training are those of {found.rows} random rows."
    return Section("Inputs and labels", lead, blocks, "inputs")


def _spectrum(found: LabelAnalysis) -> Section:
    values = found.spectrum.values
    plot = new_plot()
    positive = values > 0
    index = np.arange(1, len(values) + 1)
    line(plot, index[positive], values[positive], name="eigenvalues", colour="blue")
    style(plot, x="number of the eigenvalue", y="eigenvalue λ", log_x=True, log_y=True)
    how = "All eigenvalues" if found.spectrum.complete else f"The {len(values)} largest eigenvalues"
    first = Figure("The spectrum of the kernel", f"{how} of $H^\\infty$ on {found.rows} rows.", plot)

    share = found.alignment
    plot, top = new_plot(), np.arange(1, len(share.share) + 1)
    line(plot, top, share.share, name="labels", colour="vermillion")
    band = (share.shuffled_low, share.shuffled_high)
    line(plot, top, share.shuffled_mean, name="the same labels, shuffled", colour="grey", band=band)
    style(plot, x="number of top eigenvectors", y="share of ‖y‖² in their span", log_x=True)
    draws = len(found.spectrum.shuffled)
    second = Figure(
        "How the labels align with it",
        f"Labels that lie along the top eigenvectors are learnt first. The band holds 90 % of {draws} shuffles.",
        plot,
    )
    return Section("Spectrum", "", [first, second], "spectrum")


def _complexity(found: LabelAnalysis) -> Section:
    value, shuffled = found.complexity, np.sort(found.spectrum.shuffled)
    plot = new_plot()
    line(
        plot,
        np.concatenate([shuffled[:1], shuffled]),
        np.arange(len(shuffled) + 1) / len(shuffled),
        name="the same labels, shuffled",
        colour="grey",
    )
    line(plot, np.full(2, value.value), np.array([0.0, 1.0]), name="labels", colour="vermillion")
    style(plot, x="complexity √(2 yᵀH⁻¹y / n)", y="share of shuffles at or below")
    plot.update_xaxes(rangemode="tozero")
    certified = "certified" if value.certified else "conditional"
    several = " For several classes it is the root of the mean square over classes, each against the rest."
    lead = (
        r"$\sqrt{2 y^\top (H^\infty)^{-1} y / n}$ bounds the error on new data where it is below one (Arora et al. "
        f"2019, Theorem 5.1). It is {value.value:.6g}, between {value.lower:.8g} and {value.upper:.8g} ({certified})."
    )
    lead += several if found.classes is not None and len(found.classes) > 2 else ""
    lead += f" Of {len(shuffled)} shuffles, {int(np.sum(shuffled <= value.value))} are as simple."
    return Section("Complexity", lead, [Figure("The labels among their shuffles", "", plot)], "complexity")


def _noise(found: LabelAnalysis) -> Section:
    noise, estimate = found.noise, found.noise.estimate
    scores = found.suspects.scores
    plot = new_plot()
    margins = scores if found.classes is None else -scores
    width = max(float(np.ptp(margins)) / 60, 1e-9)
    ends = (int(np.floor(margins.min() / width)), int(np.ceil(margins.max() / width)) + 1)
    counts, edges = np.histogram(margins, bins=np.arange(ends[0], ends[1] + 1) * width)  # zero is an edge
    sides = (edges[:-1] + edges[1:]) / 2
    wrong = sides > 3 if found.classes is None else sides < 0
    for chosen, name, colour in ((~wrong, "as predicted", "blue"), (wrong, "not as predicted", "vermillion")):
        plot.add_bar(x=sides[chosen], y=counts[chosen], name=name, marker={"color": PALETTE[colour]}, width=width)
    x = "standardised residual" if found.classes is None else "margin of the prediction towards the label"
    style(plot, x=x, y="rows", log_y=True)
    plot.update_layout(barmode="overlay")
    figure = Figure(
        "Each label against its prediction from all others",
        f"Kernel ridge regression, leaving out one row at a time; ridge of least error: {found.spectrum.ridge:.3g}.",
        plot,
    )
    if estimate is None or noise.bound is None or noise.even_bound is None:
        lead = "A number is not right or wrong, so there is no fraction of wrong labels. "
        lead += f"From the complexity, {noise.level:.0%} sure: {_variance(found)}."
        return Section("Label noise", lead, [figure], "noise")
    why = "each label goes wrong independently, with whatever chance up to one half; that makes labels harder"
    bounds = [f"at most {b:.2%}" if b < 0.5 else "no bound below 50 %" for b in (noise.bound, noise.even_bound)]
    rows: list[Sequence[Cell]] = [
        (f"about {estimate.fraction:.2%}", "estimated from the predictions that disagree with their labels"),
        (f"{estimate.lower:.2%} to {estimate.upper:.2%}", f"{estimate.level:.0%} interval, under the assumption below"),
        (bounds[0], f"by the complexity alone, {noise.level:.0%} sure: {why}"),
        (bounds[1], "the same, if all labels have the same chance to go wrong"),
    ]
    blocks: list[Table | Note | Figure] = [
        Table("Wrong labels", ("fraction", "where it comes from"), rows),
        Note(f"The interval assumes: {estimate.assumption}"),
    ]
    if estimate.doubtful:
        blocks.append(Note(doubt(found), "warn"))
    lead = (
        "A wrong label and a hard sample look alike: both differ from what the other samples say. So there is a bound "
    )
    lead += "that needs no assumption about how hard the data are, and an estimate that does."
    return Section("Label noise", lead, [*blocks, figure], "noise")


def _curve(found: LabelAnalysis) -> Section:
    curve = found.curve
    plot, steps = new_plot(), curve.steps[1:]
    line(plot, steps, curve.shuffled[1:], name="the same labels, shuffled", colour="grey")
    band = (curve.lower[1:], curve.upper[1:])
    line(plot, steps, curve.upper[1:], name="labels", colour="vermillion", band=band)
    known = [step for step in curve.steps_to_1_percent if step is not None]
    if known:
        points(plot, known[-1:], np.array([0.01]), name="1 % of the loss", colour="blue")
    style(plot, x="gradient steps", y="loss ‖y − u‖² / ‖y‖²", log_x=True, log_y=True)
    caption = (
        f"Gradient descent at the rate $1/\\lambda_{{\\max}}$ = {curve.rate:.4g}, half of the largest stable one, by "
    )
    caption += "eq. (8) of Arora et al."
    return Section("Predicted training", "", [Figure("How the loss will fall", caption, plot)], "training")


def _suspects(found: LabelAnalysis) -> Section:
    suspects = found.suspects
    rows: list[Sequence[Cell]] = []
    for rank in range(min(SHOWN, found.n)):
        row = int(suspects.rows[rank])
        looks = Badge("unlike the others", "warn") if rank < suspects.likely else Badge("as predicted", "neutral")
        label, predicted = _name(found, found.y[row]), _name(found, suspects.predicted[rank])
        rows.append((row, label, predicted, float(suspects.scores[rank]), looks))
    score = "standardised residual" if found.classes is None else "margin"
    columns = ("row", "label", "the others predict", score, "verdict")
    lead = (
        f"{suspects.likely} of {found.n} labels are not what the others predict. Rows are counted from 0, without a "
        "header; labels.json ranks all of them."
    )
    table = Table(f"The {len(rows)} most suspect rows", columns, rows)
    return Section("Labels that look wrong", lead, [table], "suspects")
