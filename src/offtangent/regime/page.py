"""The page about a trained network: what `measure_regime` or `follow` found, in figures and words."""

from collections.abc import Mapping, Sequence

import numpy as np

from offtangent._arguments import check_kind
from offtangent._checks import require
from offtangent._errors import a_kind
from offtangent.regime.course import Course
from offtangent.regime.course_page import course_figures
from offtangent.regime.measured import LEAVES, Regime
from offtangent.regime.words import answers, ordinal
from offtangent.report.axes import style
from offtangent.report.figures import Figure, line, new_plot, points
from offtangent.report.page import Cell, Note, Page, Section, Table
from offtangent.report.text import escaped


def regime_page(found: Regime | Course, name: str, facts: Mapping[str, str] | None = None) -> Page:
    """Make the page about a trained network.

    Args:
        found: What `measure_regime` or `follow` gave; of a course the last checkpoint leads.
        name: What the network is called.
        facts: What goes into the small table at the page's end.

    Returns:
        The page, for `report.page.write`.
    """
    check_kind("found", found, (Regime, Course), "what measure_regime(...) or follow(...) gives")
    require(isinstance(name, str), f"name is {a_kind(name)}: expected text.")
    require(facts is None or isinstance(facts, Mapping), f"facts is {a_kind(facts)}: expected text by name.")
    last = found.last if isinstance(found, Course) else found
    lead = (
        f"{last.parameters} parameters, seen through {last.samples} samples with {last.outputs} "
        f"{'output' if last.outputs == 1 else 'outputs'} each. Its outputs changed by {last.change:.3g} (root mean "
        "square) in training."
    )
    summary = [Table("In short", ("question", "answer"), [(one, escaped(two)) for one, two in answers(last)])]
    sections = [_orders(last)]
    if isinstance(found, Course) and len(found.regimes) > 1:
        sections.append(_course(found))
    if last.predictions:
        sections.append(_predictions(last))
    sections += [_movement(last), _kernel(last)]
    return Page(f"The regime of {escaped(name)}", lead, sections, dict(facts or {}), summary)


def regime_figures(found: Regime) -> list[Figure]:
    """Draw the page's two figures of one checkpoint by themselves: what each order adds, and how far neurons moved.

    `figure.plot` is plotly's: `.show()` it, or `.write_html(path)`.

    Args:
        found: What `measure_regime` gave.

    Returns:
        The two figures.

    >>> import jax.numpy as jnp
    >>> from offtangent.regime import measure_regime
    >>> found = measure_regime(lambda w, x: jnp.tanh(x @ w), jnp.zeros(1), jnp.full(1, 0.1), jnp.ones((1, 1)))
    >>> [figure.title for figure in regime_figures(found)]
    ['What each order adds, and what is left', 'Neurons against two powers of the width']
    """
    check_kind("found", found, Regime, "what measure_regime(...) gives")
    return [_orders_figure(found), _movement_figure(found)]


def _orders_figure(found: Regime) -> Figure:
    plot, k = new_plot(), np.arange(1, len(found.sizes) + 1)
    line(plot, k, np.full(len(k), found.change), name="the whole change", colour="grey", dash="dot")
    points(plot, k, np.array(found.sizes), name="size of the term", colour="blue")
    points(plot, k, np.array(found.left), name="left by all up to it", colour="vermillion", symbol="diamond")
    style(plot, x="order", y="root mean square over samples", log_y=min(*found.sizes, *found.left) > 0)
    plot.update_xaxes(tickmode="array", tickvals=k, ticktext=[str(order) for order in k])
    return Figure("What each order adds, and what is left", "Sizes on the given samples.", plot)


def _orders(found: Regime) -> Section:
    rows: list[Sequence[Cell]] = []
    for k, (size, share, left) in enumerate(zip(found.sizes, found.shares, found.left, strict=True), start=1):
        low, high = found.intervals[k - 1]
        rows.append((ordinal(k), size, share, left / found.change, f"{low:.3g} to {high:.3g}"))
    rows.append(("remainder", found.remainder, found.remainder_share, 0.0, ""))
    return Section(
        "Orders of the Taylor series",
        r"$f(\theta) - f(\theta_0) = \sum_k f^{(k)} + \dots$ around the initial parameters. Shares are inner products "
        "with the change, over its square: with the remainder's they add up to one, and where terms cancel they lie "
        f"outside of 0 and 1. An order carries the network where at most {LEAVES:.0%} of the change is left after it; "
        "the interval (95 %) is from drawing the samples again.",
        [
            Table(
                "The terms",
                ("order", "size", "share of the change", "left after it, over the change", "interval of that"),
                rows,
            ),
            _orders_figure(found),
        ],
        "orders",
    )


def _course(found: Course) -> Section:
    rows: list[Sequence[Cell]] = [
        (name, one.change, *(left / one.change for left in one.left[:2]), one.kernel.angle, one.kernel.growth)
        for name, one in zip(found.names, found.regimes, strict=True)
    ]
    seconds = ["left by the second"] if len(found.last.left) > 1 else []
    columns = ("step", "change of outputs", "left by the first", *seconds, "kernel turned, degrees", "kernel's growth")
    return Section(
        "Along training",
        "The same at every checkpoint, each against the start.",
        [*course_figures(found), Table("Checkpoints", columns, rows)],
        "training",
    )


def _predictions(found: Regime) -> Section:
    rows: list[Sequence[Cell]] = []
    for one in found.predictions:
        name = {-1: "the network", 0: "its start"}.get(one.order, f"orders up to {one.order}")
        accuracy = "" if one.accuracy is None else f"{one.accuracy:.1%}"
        unit, times = ("points", 100) if one.accuracy is not None else ("of loss", 1)
        behind = "" if one.order < 0 else f"{times * one.behind:.3g} ± {times * one.error:.2g} {unit}"
        rows.append((name, one.loss, accuracy, behind))
    return Section(
        "Predictions",
        "On inputs that were held out. Each Taylor polynomial has the trained parameters in it, so it says whether the "
        "terms up to its order hold what the network knows; a linearised network that is trained by itself may come "
        "elsewhere. The last column has standard errors over samples, each compared with itself.",
        [Table("Held-out samples", ("model", f"{found.loss} loss", "accuracy", "behind the network"), rows)],
        "predictions",
    )


def _movement_figure(found: Regime) -> Figure:
    plot, at = new_plot(), np.arange(len(found.movements))
    points(plot, at, np.array([one.largest for one in found.movements]), name="furthest neuron", colour="blue")
    points(plot, at, np.array([one.mean for one in found.movements]), name="mean over neurons", colour="sky")
    for power, symbol in ((-0.5, "line-ew-open"), (-0.25, "cross-thin-open")):
        widths = np.array([float(one.width) ** power for one in found.movements])
        points(plot, at, widths, name=f"m^({power:g})", colour="grey", symbol=symbol)
    style(plot, x="", y="distance from the start", log_y=all(one.mean > 0 for one in found.movements))
    plot.update_xaxes(tickmode="array", tickvals=at, ticktext=[one.name for one in found.movements])
    caption = "Grey marks are the powers of each array's own number of neurons m."
    return Figure("Neurons against two powers of the width", caption, plot)


def _movement(found: Regime) -> Section:
    rows = [
        (
            escaped(one.name),
            " × ".join(map(str, one.shape)) or "1",
            one.width,
            one.distance,
            one.relative,
            one.in_lazy_units,
            one.in_quadratic_units,
        )
        for one in found.movements
    ]
    columns = ("parameters", "shape", "neurons m", "distance", "over their norm", "furthest neuron, √m ×", "m^¼ ×")
    guessed = [escaped(one.name) for one in found.movements if one.is_guess]
    note = Note(
        f"The network does not tell which axis of {', '.join(guessed)} counts neurons: the last was taken.", "warn"
    )
    return Section(
        "How far it moved",
        "In the regime of the tangent kernel a neuron of a two-layer network of width $m$ moves by $m^{-1/2}$; by "
        "$m^{-1/4}$ where the second order carries it (Bai and Lee 2020).",
        [Table("Parameters", columns, rows), *([note] if guessed else []), _movement_figure(found)],
        "movement",
    )


def _kernel(found: Regime) -> Section:
    kernel = found.kernel
    rows: list[tuple[str, float]] = [
        ("change, over its norm", kernel.change),
        ("growth of its norm", kernel.growth),
        ("angle it turned by, in degrees", kernel.angle),
    ]
    if kernel.alignment is not None:
        rows += [("alignment with the labels before", kernel.alignment[0]), ("and after", kernel.alignment[1])]
    columns = ["parameters", "of the trace before", "and after", "change", "turned, degrees"]
    columns += ["alignment before", "and after"] if kernel.alignment is not None else []
    layers: list[Sequence[Cell]] = [
        (escaped(one.name), *one.share, one.turn.change, one.turn.angle, *(one.turn.alignment or ()))
        for one in found.layers
    ]
    return Section(
        "Its tangent kernel",
        "Gradients of the outputs at two samples, multiplied and summed over outputs, before and after training. A "
        "kernel that stays is that of a linear model; one that turns towards the labels has learnt features.",
        [Table("Before and after", ("what", "value"), rows), Table("Layer by layer", columns, layers)],
        "kernel",
    )
