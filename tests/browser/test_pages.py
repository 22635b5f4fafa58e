"""Every page of the built book, opened in Chromium."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "tests" / "published_pages.txt").read_text(encoding="utf-8").split()
SENTENCE = re.compile(r"[A-Z].{25,}\.", re.DOTALL)
PAGE_LIMIT = 1_500_000
each = pytest.mark.parametrize("page", PAGES)
SERVED = ["chapters/index.html", "chapters/saddles.html", "chapters/claims.html"]  # all pages load the same scripts
with_sliders = pytest.mark.parametrize(
    "page", [page for page in PAGES if "explore(" in (ROOT / page).with_suffix(".md").read_text(encoding="utf-8")]
)


@each
def test_a_page_loads_alone_and_without_errors(visit, page):
    assert visit(page).problems == []


@pytest.mark.parametrize("page", SERVED)
def test_a_served_page_loads_without_errors(visit, page):
    assert visit(page, "http").problems == []


@each
@pytest.mark.parametrize("width", [375, 1200])
def test_a_page_fits_the_screen(visit, page, width):
    tab = visit(page, width=width).tab
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


@each
def test_all_mathematics_is_typeset(visit, page):
    tab = visit(page).tab
    assert tab.locator("mjx-merror").count() == 0
    assert (
        tab.evaluate("[...document.querySelectorAll('.math')].filter(m => !m.querySelector('mjx-container')).length")
        == 0
    )
    prose = """() => {
      const article = document.querySelector("article").cloneNode(true);
      for (const code of article.querySelectorAll("pre, code")) code.remove();
      return article.textContent;
    }"""
    assert not re.search(r"\\\(|\\\[|\\frac|\\alpha", tab.evaluate(prose))


@each
def test_every_picture_has_a_sentence_as_alternative_text(visit, page):
    tab = visit(page).tab
    images = tab.eval_on_selector_all("article img", "all => all.map(image => image.alt)")
    frames = tab.eval_on_selector_all("article svg[role=img]", "all => all.map(f => f.getAttribute('aria-label'))")
    for text in images + frames:
        assert SENTENCE.fullmatch(text), text


@each
def test_a_page_is_light(visit, book, page):
    visited = visit(page)
    sources = visited.tab.eval_on_selector_all("article img", "all => all.map(image => image.getAttribute('src'))")
    images = {(book / page).parent / source for source in sources}
    weight = (book / page).stat().st_size + sum(image.stat().st_size for image in images)
    assert weight < PAGE_LIMIT


def shown(explorer):
    """The alternative text of the visible frame."""
    return explorer.locator("svg[role=img]").get_attribute("aria-label")


def handles(tab):
    """Each explorer of a page with each of its slider handles."""
    return [
        (box, handle) for box in tab.locator(".lindyn-explorer").all() for handle in box.get_by_role("slider").all()
    ]


@with_sliders
def test_every_slider_moves_its_picture_by_keyboard(visit, page):
    visited = visit(page, width=375)
    sliders = handles(visited.tab)
    assert sliders
    for explorer, handle in sliders:
        handle.focus()
        visited.tab.keyboard.press("Home")
        first = shown(explorer)
        visited.tab.keyboard.press("ArrowRight")
        second = shown(explorer)
        visited.tab.keyboard.press("ArrowLeft")
        assert first != second and shown(explorer) == first
    assert visited.problems == []


@with_sliders
def test_every_slider_moves_its_picture_by_mouse(visit, page):
    visited = visit(page)
    for explorer, handle in handles(visited.tab):
        before = shown(explorer)
        track = handle.locator("xpath=ancestor::*[contains(@class, 'noUi-target')]")
        box = track.bounding_box()
        at = handle.bounding_box()
        side = 0.02 if at["x"] > box["x"] + box["width"] / 2 else 0.98
        track.click(position={"x": box["width"] * side, "y": box["height"] / 2}, force=True)
        expect(explorer.locator("svg[role=img]")).not_to_have_attribute("aria-label", before)


@with_sliders
def test_every_slider_has_a_typeset_label_a_name_and_a_spoken_value(visit, page):
    tab = visit(page).tab
    for explorer, handle in handles(tab):
        label = handle.locator("xpath=ancestor::*[contains(@class, 'widget-hslider')]").locator(".widget-label")
        assert "$" not in label.inner_text() and "\\" not in label.inner_text()
        assert re.search(r"\w", handle.get_attribute("aria-label"))
        readout = handle.locator("xpath=ancestor::*[contains(@class, 'widget-hslider')]").locator(".widget-readout")
        assert handle.get_attribute("aria-valuetext") == readout.inner_text()
        assert explorer.locator("svg[role=img]").count() == 1
        assert explorer.locator("style").count() == 0  # it would be the style of the whole page, anew with every step


CONTRAST = """elements => elements.map(element => {
  const rgba = text => (([r, g, b, a = 1]) => [r, g, b, a])(text.match(/[\\d.]+/g).map(Number));
  const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => a * c + (1 - a) * below[i]);
  const light = colour => colour.map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const grounds = [];
  for (let node = element; node; node = node.parentElement) grounds.push(rgba(getComputedStyle(node).backgroundColor));
  const ground = grounds.reduceRight((below, above) => over(above, below), [255, 255, 255]);
  const [back, front] = [light(ground), light(over(rgba(getComputedStyle(element).color), ground))];
  return [(Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05), element.textContent.slice(0, 40)];
})"""
WORDS = """.widget-label, .widget-readout, .lindyn-check a, .lindyn-check dt, .lindyn-check dd, .lindyn-verdict,
    .lindyn-ledger p, .lindyn-ledger a, .cell_output pre, article p"""


@each
@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_their_ground(visit, page, dark):
    ratios = visit(page, dark=dark).tab.eval_on_selector_all(WORDS, CONTRAST)
    assert ratios
    assert [faint for faint in ratios if faint[0] < 4.5] == []


def test_every_check_the_ledger_links_to_is_there(visit, book):
    tab = visit("chapters/claims.html").tab
    links = tab.eval_on_selector_all(".lindyn-ledger a", "all => all.map(a => a.getAttribute('href'))")
    assert len(links) > 15
    for link in links:
        page, target = link.split("#")
        assert f'id="{target}"' in (book / "chapters" / page).read_text(encoding="utf-8"), link


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_search_finds_a_page(visit, scheme):
    visited = visit("search.html?q=saddle", scheme)
    visited.tab.locator("#search-results li a[href*=saddles]").first.wait_for()
    assert visited.problems == []
