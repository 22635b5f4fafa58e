"""Sliders: frames, links between slider and picture, alternative text, and what is refused."""

import re
import xml.etree.ElementTree as ET

import ipywidgets as widgets
import matplotlib.pyplot as plt
import pytest

from lindyn_lite.book import explore, figures
from lindyn_lite.book.explorer import PageTooHeavyError


def draw(w0, tau=1):
    """A straight line.

    With details that no reader of a picture needs.
    """
    fig, ax = figures.panels(height=2)
    ax.plot([0, w0], [0, tau])
    return fig


def leaves(widget):
    """The frames below a widget, left to right."""
    if isinstance(widget, widgets.HTML):
        return [widget]
    return [leaf for child in widget.children for leaf in leaves(child)]


def labels(box):
    return [re.search('aria-label="([^"]*)"', leaf.value)[1] for leaf in leaves(box.children[-1])]


def test_every_point_of_the_grid_has_a_frame_in_order():
    box = explore(draw, w0=[1, 2], tau=[3, 4, 5])
    pairs = [(w0, tau) for w0 in (1, 2) for tau in (3, 4, 5)]
    assert labels(box) == [f"A straight line, for w0 = {w0}, tau = {tau}." for w0, tau in pairs]


def test_each_slider_is_linked_to_every_stack_of_its_parameter(monkeypatch):
    links = []
    monkeypatch.setattr(widgets, "jslink", lambda source, target: links.append((source, target)))
    box = explore(draw, w0=[1, 2], tau=[3, 4, 5])
    w0, tau, outer = box.children
    assert [slider.description for slider in (w0, tau)] == ["$w_0$", r"$\tau$"]
    wanted = [((w0, "index"), (outer, "selected_index"))]
    wanted += [((tau, "index"), (inner, "selected_index")) for inner in outer.children]
    assert sorted(links, key=str) == sorted(wanted, key=str)


def test_sliders_start_in_the_middle_or_where_they_are_told():
    middle = explore(draw, w0=[1, 2, 3])
    told = explore(draw, w0=[1, 2, 3], start={"w0": 3})
    assert (middle.children[0].index, middle.children[1].selected_index) == (1, 1)
    assert (told.children[0].index, told.children[1].selected_index) == (2, 2)


def test_a_frame_is_wellformed_svg_that_scales_and_reads_aloud():
    svg = leaves(explore(draw, w0=[1, 2], alt="Value <{w0:g}> & more.").children[-1])[0].value
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg") and root.get("role") == "img"
    assert root.get("aria-label") == "Value <1> & more."
    assert "max-width:100%" in root.get("style") and root.get("viewBox")
    assert "stroke-linejoin: round" in root.get("style")  # matplotlib's default, without a style sheet for the page
    assert "<style" not in svg


def test_alternative_text_may_be_a_function():
    box = explore(draw, w0=[1, 2], alt=lambda w0: f"The end is at {10 * w0}.")
    assert labels(box) == ["The end is at 10.", "The end is at 20."]


def test_frames_are_reproducible():
    first, second = (leaves(explore(draw, w0=[1, 2]).children[-1])[-1].value for _ in range(2))
    assert first == second


def test_no_figure_stays_open():
    explore(draw, w0=[1, 2])
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "at least one parameter"),
        ({"w0": []}, "at least two values, but 'w0' has 0"),
        ({"w0": [1]}, "at least two values, but 'w0' has 1"),
        ({"w0": 3}, "must be a list"),
        ({"w0": "abc"}, "must be a list"),
        ({"w0": [1, 1.0]}, "look the same"),
    ],
)
def test_a_grid_without_choice_is_refused(grid, message):
    with pytest.raises(ValueError, match=message):
        explore(draw, **grid)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"start names \['tau'\]"):
        explore(draw, w0=[1, 2], start={"tau": 1})
    with pytest.raises(ValueError, match="not among"):
        explore(draw, w0=[1, 2], start={"w0": 7})
    with pytest.raises(ValueError, match=r"labels names \['x'\]"):
        explore(draw, w0=[1, 2], labels={"x": "$x$"})


def test_a_draw_that_returns_no_figure_is_refused():
    with pytest.raises(TypeError, match=r"must return a matplotlib Figure, got NoneType for \{'w0': 1\}"):
        explore(lambda w0: None, w0=[1, 2])


def test_a_grid_that_is_too_heavy_is_refused_early_and_with_the_numbers():
    drawn = []

    def heavy(a, b):
        drawn.append((a, b))
        return draw(a)

    message = r"20 x 30 = 600 frames of about \d+ kB make .* limit of 1.50 MB: use at most"
    with pytest.raises(PageTooHeavyError, match=message):
        explore(heavy, a=range(20), b=range(30))
    assert len(drawn) <= 4
    assert plt.get_fignums() == []


def test_all_frames_have_the_layout_of_the_first():
    figures_seen = []

    def growing(w0):
        figures_seen.append(draw(w0))
        return figures_seen[-1]

    explore(growing, w0=[1, 1000])
    first, second = (fig.axes[0].get_position().bounds for fig in figures_seen)
    assert first == second
