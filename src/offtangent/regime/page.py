"""The page about a trained network: what `measure_regime` found, in figures and words."""

from collections.abc import Mapping, Sequence

import numpy as np

from offtangent._arguments import check_kind
from offtangent._checks import require
from offtangent._errors import a_kind
from offtangent.regime.measure import Regime
from offtangent.report.axes import style
from offtangent.report.figures import Figure, line, new_plot, points
from offtangent.report.page import Cell, Page, Section, Table
from offtangent.report.text import escaped

ORDERS = ("", "first", "second", "third", "fourth", "fifth", "sixth")


def regime_page(found: Regime, name: str, facts: Mapping[str, str] | None = None) -> Page:
    """The page for a network called `name`; `facts` go into the small table at its end."""
    check_kind("found", found, Regime, "what measure_regime(...) gives")
    require(isinstance(name, str), f"name is {a_kind(name)}: expected text.")
    require(facts is None or isinstance(facts, Mapping), f"facts is {a_kind(facts)}: expected text by name.")
    lead = (
        f"{found.parameters} parameters, seen through {found.samples} samples with {found.outputs} "
        f"{'output' if found.outputs == 1 else 'outputs'} each. Its outputs changed by {found.change:.3g} (root mean "
        "square) in training."
    )
    summary = [Table("In short", ("question", "answer"), answers(found))]
    sections = [_orders(found), _movement(found), _kernel(found)]
    return Page(f"The regime of {escaped(name)}", lead, sections, dict(facts or {}), summary)


def answers(found: Regime) -> list[tuple[str, str]]:
    """What a person asks about a training, and the answers."""
    check_kind("found", found, Regime, "what measure_regime(...) gives")
    order, rest = found.carried_by, found.remainder / found.change
    if order is None:
        carried = f"none of the first {len(found.shares)} orders: together they still leave {rest:.1%} of the change"
    else:
        which = (
            "first, that of its tangent kernel, which" if order == 1 else f"{_ordinal(order)}, which with those below"
        )
        carried = f"the {which} leaves {found.left[order - 1] / found.change:.1%} of the change"
        carried += "" if order == 1 else f"; the first alone leaves {found.left[0] / found.change:.1%}"
    furthest = max(found.movements, key=lambda one: one.in_lazy_units)
    far = f"{furthest.in_lazy_units:.3g} m^(−1/2) or {furthest.in_quadratic_units:.3g} m^(−1/4), m = {furthest.width}"
    turned = f"it turned by {found.kernel_turn:.1f}° and grew to {found.kernel_growth:.3g} times its norm"
    told = [
        ("Which order carries it?", carried),
        ("Is it lazy?", "yes" if order == 1 else "no"),
        ("How far did it move?", f"{escaped(furthest.name)} the most: its furthest neuron by {far}"),
        ("How did its kernel change?", f"by {found.kernel_change:.1%} of itself; {turned}"),
    ]
    if found.alignment is not None:
        before, after = found.alignment
        told.append(("Does the kernel see the labels?", f"alignment {before:.3f} before, {after:.3f} after"))
    return told


def regime_figures(found: Regime) -> list[Figure]:
    """The page's two figures by themselves: what each order adds, and how far neurons moved.

    `figure.plot` is plotly's: `.show()` it, or `.write_html(path)`.

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
    terms = zip(range(1, len(found.sizes) + 1), found.sizes, found.shares, found.left, strict=True)
    rows: list[Sequence[Cell]] = [(_ordinal(i), size, share, left / found.change) for i, size, share, left in terms]
    rows.append(("remainder", found.remainder, found.remainder_share, 0.0))
    return Section(
        "Orders of the Taylor series",
        r"$f(\theta) - f(\theta_0) = \sum_k f^{(k)} + \dots$ around the initial parameters. Shares are inner products "
        "with the change, over its square: with the remainder's they add up to one, and where terms cancel they lie "
        "outside of 0 and 1.",
        [
            Table("The terms", ("order", "size", "share of the change", "left after it, over the change"), rows),
            _orders_figure(found),
        ],
        "orders",
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
            one.distance,
            one.relative,
            one.in_lazy_units,
            one.in_quadratic_units,
        )
        for one in found.movements
    ]
    columns = ("parameters", "shape", "distance", "over their norm", "furthest neuron, √m ×", "m^¼ ×")
    return Section(
        "How far it moved",
        "In the regime of the tangent kernel a neuron of a two-layer network of width $m$ moves by $m^{-1/2}$; by "
        "$m^{-1/4}$ where the second order carries it (Bai and Lee 2020).",
        [
            Table("Parameters", columns, rows),
            _movement_figure(found),
        ],
        "movement",
    )


def _kernel(found: Regime) -> Section:
    rows: list[tuple[str, float]] = [
        ("change, over its norm", found.kernel_change),
        ("growth of its norm", found.kernel_growth),
        ("angle it turned by, in degrees", found.kernel_turn),
    ]
    if found.alignment is not None:
        rows += [("alignment with the labels before", found.alignment[0]), ("and after", found.alignment[1])]
    return Section(
        "Its tangent kernel",
        "Gradients of the outputs at two samples, multiplied and summed over outputs, before and after training. A "
        "kernel that stays is that of a linear model; one that turns towards the labels has learnt features.",
        [Table("Before and after", ("what", "value"), rows)],
        "kernel",
    )


def _ordinal(k: int) -> str:
    return ORDERS[k] if k < len(ORDERS) else f"{k}th"
