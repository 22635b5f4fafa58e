"""The book's figure style: colour-blind-safe colours with line styles, white background, page-sized.

Call `use` once in the set-up cell of a chapter.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
GREY = "#666666"
PALETTE = (BLUE, RED, GREEN, ORANGE, PINK, SKY)
"""Six of the colours of Okabe and Ito, told apart with any colour vision."""

COLOURS = (*PALETTE, GREY)
"""Seven, for groups of points."""

LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
"""A line style for every colour, so that a figure survives a grey print."""

DIVERGING = "PuOr"
"""Colour map for signed matrices."""

SEQUENTIAL = "cividis"
"""Colour map for surfaces."""

WIDTH = 5.6
"""Width of a figure in inches: fits the page, and is still readable when a phone shrinks it."""

STYLE = {
    "figure.figsize": (WIDTH, 3.3),
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.labelsize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=LINES),
    "lines.linewidth": 2.0,
    "image.cmap": SEQUENTIAL,
    "mathtext.fontset": "cm",
    "svg.fonttype": "path",
    "svg.hashsalt": "lindyn",
}


def use() -> None:
    """Make the book's style the default, and inline figures SVG, for the rest of the session."""
    mpl.rcParams.update(STYLE)
    try:
        from IPython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:
        return
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None})


def panels(rows: int = 1, columns: int = 1, height: float = 3.3, **options) -> tuple[Figure, Axes]:
    """A figure of the width of the page, ``height`` inches high, with a grid of axes.

    Parameters
    ----------
    rows, columns
        The grid.
    height
        Of the whole figure, in inches.
    **options
        Passed on to `matplotlib.pyplot.subplots`, for example ``sharex=True``.

    Returns
    -------
    tuple
        The figure and its axes, as `matplotlib.pyplot.subplots` gives them.
    """
    return plt.subplots(rows, columns, figsize=(WIDTH, height), **options)


def label_line(ax: Axes, text: str, x: float, y: float, color: str, **options) -> None:
    """Write a label beside a curve, in the curve's colour: better than a legend for few curves."""
    ax.annotate(text, (x, y), color=color, xytext=(4, 0), textcoords="offset points", va="center", **options)
