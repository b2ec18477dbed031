"""Figures of a training, checkpoint by checkpoint."""

import numpy as np

from offtangent._arguments import check_kind
from offtangent.regime.course import Course
from offtangent.regime.measured import LEAVES
from offtangent.report.axes import style
from offtangent.report.figures import Figure, line, new_plot

COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")


def course_figures(found: Course) -> list[Figure]:
    """Draw what the orders leave at each checkpoint, and how the kernel turned meanwhile.

    Args:
        found: What `follow` gave.

    Returns:
        Two figures; three where there are labels.
    """
    check_kind("found", found, Course, "what follow(...) gives")
    at = np.array([float(name) for name in found.names])
    log = bool(at.min() > 0 and at.max() > 20 * at.min())
    figures = [_left(found, at, log), _turned(found, at, log)]
    return figures if found.last.alignment is None else [*figures, _aligned(found, at, log)]


def _left(found: Course, at: np.ndarray, log: bool) -> Figure:
    plot = new_plot()
    for k, colour in zip(range(len(found.last.left)), COLOURS, strict=False):
        left = np.array([one.left[k] / one.change for one in found.regimes])
        low, high = np.array([one.intervals[k] for one in found.regimes]).T
        line(plot, at, left, name=f"left by orders up to {k + 1}", colour=colour, band=(low, high))
    line(plot, at, np.full(len(at), LEAVES), name="a tenth", colour="grey", dash="dot")
    style(plot, x="step", y="left, over the change of the outputs", log_x=log)
    return Figure(
        "What the orders leave, along training",
        "The first order below a tenth carries the network. Bands are 95 % intervals over samples.",
        plot,
    )


def _turned(found: Course, at: np.ndarray, log: bool) -> Figure:
    plot = new_plot()
    line(plot, at, np.array([one.kernel.angle for one in found.regimes]), name="whole kernel", colour="blue")
    style(plot, x="step", y="angle to the start's, degrees", log_x=log)
    caption = "The angle between the kernel and that of the start, as vectors: zero for a lazy network."
    return Figure("How the tangent kernel turned, along training", caption, plot)


def _aligned(found: Course, at: np.ndarray, log: bool) -> Figure:
    plot, start = new_plot(), found.last.alignment
    after = np.array([one.alignment[1] if one.alignment else np.nan for one in found.regimes])
    line(plot, at, after, name="along training", colour="vermillion")
    if start is not None:
        line(plot, at, np.full(len(at), start[0]), name="at the start", colour="grey", dash="dot")
    style(plot, x="step", y="alignment with the labels", log_x=log)
    caption = "⟨K, YYᵀ⟩ over the product of their norms, Y the centred labels: one for a kernel that is YYᵀ."
    return Figure("How the tangent kernel came to see the labels", caption, plot)
