"""Sliders that work with a kernel and in the rendered page without one.

Every point of a parameter grid is drawn when the page is built. The sliders choose among the
finished pictures by links that run in the browser.
"""

import html
import inspect
import io
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence

import ipywidgets as widgets
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

PAGE_LIMIT = 1_500_000
"""Most bytes that the frames of one explorer may add to a page."""

SYMBOLS = {
    "w0": "$w_0$",
    "s": "$s$",
    "t": "$t$",
    "tau": r"$\tau$",
    "lam": r"$\lambda$",
    "eta": r"$\eta$",
    "kappa": r"$\kappa$",
    "sigma": r"$\sigma$",
    "theta": r"$\theta$",
    "depth": "depth $L$",
}
"""Labels of parameters whose name is a symbol of the book."""


class PageTooHeavyError(ValueError):
    """The frames of an explorer would make its page too heavy."""


def text_of(value: object) -> str:
    """A value as a slider shows it."""
    return f"{value:g}" if isinstance(value, int | float) or hasattr(value, "__float__") else str(value)


def checked_grid(grid: Mapping[str, Sequence]) -> dict[str, list]:
    """The grid as lists, every one of at least two different values."""
    if not grid:
        raise ValueError("explore needs at least one parameter, for example explore(draw, w0=[0.1, 1, 10])")
    lists = {}
    for name, values in grid.items():
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise ValueError(f"the values of {name!r} must be a list, got {values!r}")
        lists[name] = list(values)
        texts = [text_of(value) for value in lists[name]]
        if len(texts) < 2:
            raise ValueError(f"a slider needs at least two values, but {name!r} has {len(texts)}: {lists[name]}")
        if len(set(texts)) < len(texts):
            raise ValueError(f"the values of {name!r} look the same on its slider: {texts}")
    return lists


def describe(draw: Callable, fig: Figure, values: Mapping[str, object], alt: str | Callable[..., str] | None) -> str:
    """A sentence for those who cannot see the frame."""
    if callable(alt):
        text = alt(**values)
    elif alt is not None:
        text = alt.format(**values)
    else:
        summary = (inspect.getdoc(draw) or "").split("\n\n")[0].replace("\n", " ").strip().rstrip(".")
        axes = "; ".join(f"{ax.get_ylabel()} against {ax.get_xlabel()}" for ax in fig.axes if ax.get_xlabel())
        setting = ", ".join(f"{name} = {text_of(value)}" for name, value in values.items())
        text = f"{summary or axes or 'A figure'}, for {setting}."
    return " ".join(text.split())


STYLE = re.compile(r"<defs>\s*<style[^>]*>\s*\*\s*\{(?P<rule>[^}]*)\}\s*</style>\s*</defs>")


def frame_svg(fig: Figure, alt: str) -> str:
    """The figure as inline SVG that scales with the page and carries its alternative text.

    matplotlib's rule for all elements becomes a style of the picture, which its elements inherit: as a style sheet it
    would apply to the whole page, and every step of a slider would style and lay out the whole page again.
    """
    buffer = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "lindyn", "svg.fonttype": "path"}):
        fig.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = buffer.getvalue()
    rule = "".join(match["rule"].strip() for match in STYLE.finditer(svg))
    body = STYLE.sub("", svg[svg.index("<svg") :])
    start, rest = body.split(">", 1)
    width = fig.get_size_inches()[0] * 96
    view = start[start.index('viewBox="') :].split('"')[1]
    rest = "\n".join(line.lstrip() for line in rest.splitlines() if line.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{view}" '
        f'role="img" aria-label="{html.escape(alt, quote=True)}" '
        f'style="width:{width:.0f}px;max-width:100%;height:auto;background:white;{rule}">{rest}'
    )


def keep_layout(fig: Figure, places: list) -> None:
    """Put the axes where those of the first frame are: nothing jumps when a slider moves, and drawing is faster."""
    if not places:
        fig.draw_without_rendering()
        places += [ax.get_position(original=True) for ax in fig.axes]
    if len(fig.axes) == len(places):
        fig.set_layout_engine("none")
        for ax, place in zip(fig.axes, places, strict=True):
            ax.set_position(place)


def frame(draw: Callable, values: Mapping[str, object], alt, places: list) -> widgets.HTML:
    """Draw one point of the grid, with the axes at ``places``, which the first frame fills."""
    fig = draw(**values)
    if not isinstance(fig, Figure):
        raise TypeError(f"draw must return a matplotlib Figure, got {type(fig).__name__} for {dict(values)}")
    keep_layout(fig, places)
    picture = frame_svg(fig, describe(draw, fig, values, alt))
    plt.close(fig)
    return widgets.HTML(picture, layout=widgets.Layout(width="100%", margin="0"))


def draw_frames(draw: Callable, lists: Mapping[str, list], alt) -> dict[tuple[int, ...], widgets.HTML]:
    """All frames by their slider positions; stops as soon as they would be too heavy for a page."""
    positions = list(itertools.product(*(range(len(values)) for values in lists.values())))
    frames, weight, places = {}, 0, []
    for done, position in enumerate(positions, start=1):
        values = {name: lists[name][i] for name, i in zip(lists, position, strict=True)}
        frames[position] = frame(draw, values, alt, places)
        weight += len(json.dumps(frames[position].value))
        expected = weight / done * len(positions)
        if max(weight, expected if done >= min(4, len(positions)) else 0) > PAGE_LIMIT:
            shape = " x ".join(str(len(values)) for values in lists.values())
            raise PageTooHeavyError(
                f"{shape} = {len(positions)} frames of about {weight / done / 1e3:.0f} kB make a page of "
                f"{expected / 1e6:.2f} MB, over the limit of {PAGE_LIMIT / 1e6:.2f} MB: "
                f"use at most {int(PAGE_LIMIT * done / weight)} frames, or draw fewer points"
            )
    return frames


def slider(name: str, values: list, label: str, index: int) -> widgets.SelectionSlider:
    """One labelled slider over the positions of a list."""
    return widgets.SelectionSlider(
        options=[(text_of(value), position) for position, value in enumerate(values)],
        index=index,
        description=label,
        style={"description_width": "7.5em"},
        layout=widgets.Layout(width="100%", max_width="34em"),
    )


def explore(
    draw: Callable[..., Figure],
    /,
    *,
    alt: str | Callable[..., str] | None = None,
    labels: Mapping[str, str] | None = None,
    start: Mapping[str, object] | None = None,
    **grid: Sequence,
) -> widgets.VBox:
    """Draw ``draw(**values)`` for every point of a parameter grid, behind one slider per parameter.

    The sliders work live, and, since all pictures are drawn beforehand and linked in the browser, in the
    static page too. Pictures are SVG: sharp on any screen, as wide as the page allows, with alternative text.
    All frames take the layout of the first, so fix limits and ticks where labels could outgrow it.

    Parameters
    ----------
    draw
        Called with one value of every parameter by keyword; returns a matplotlib figure.
    alt
        Alternative text of a frame, a full sentence: a template such as ``"The loss for w0 = {w0:g}."`` or a
        function of the values. By default the first sentence of draw's docstring with the values.
    labels
        Label of a slider by the parameter's name, with mathematics between dollars; the names of the book's
        symbols (`SYMBOLS`) have one.
    start
        Value each slider starts at; by default the middle of its list.
    **grid
        The values of each parameter.

    Returns
    -------
    ipywidgets.VBox
        The sliders above the picture.

    Raises
    ------
    ValueError
        If there is no parameter, or one has fewer than two different values, or ``start`` or ``labels`` names
        something that is not in the grid.
    PageTooHeavyError
        If the frames would add more than `PAGE_LIMIT` bytes to the page; a `ValueError` with the numbers.
    TypeError
        If ``draw`` does not return a matplotlib figure.
    """
    lists = checked_grid(grid)
    index = starting_index(lists, start or {})
    if unknown := set(labels or {}) - set(lists):
        raise ValueError(f"labels names {sorted(unknown)}, but the parameters are {list(lists)}")
    frames = draw_frames(draw, lists, alt)
    named = {**SYMBOLS, **(labels or {})}
    sliders = {name: slider(name, values, named.get(name, name), index[name]) for name, values in lists.items()}

    def stack(chosen: tuple[int, ...]) -> widgets.Widget:
        if len(chosen) == len(lists):
            return frames[chosen]
        name = list(lists)[len(chosen)]
        children = [stack((*chosen, position)) for position in range(len(lists[name]))]
        box = widgets.Stack(children, selected_index=index[name], layout=widgets.Layout(width="100%"))
        widgets.jslink((sliders[name], "index"), (box, "selected_index"))
        return box

    box = widgets.VBox([*sliders.values(), stack(())], layout=widgets.Layout(width="100%"))
    return box.add_class("lindyn-explorer")


def starting_index(lists: Mapping[str, list], start: Mapping[str, object]) -> dict[str, int]:
    """Where each slider starts."""
    if unknown := set(start) - set(lists):
        raise ValueError(f"start names {sorted(unknown)}, but the parameters are {list(lists)}")
    index = {}
    for name, values in lists.items():
        if name in start and start[name] not in values:
            raise ValueError(f"start gives {name!r} the value {start[name]!r}, which is not among {values}")
        index[name] = values.index(start[name]) if name in start else len(values) // 2
    return index
