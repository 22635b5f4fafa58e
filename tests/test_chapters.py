"""Rules for the sources of the pages, and references that cover them."""

import ast
import json
import re
from pathlib import Path

import pytest
import yaml

from lindyn_lite.book.claims import code_cells

ROOT = Path(__file__).resolve().parents[1]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
FILES = [TOC["root"]] + [entry["file"] for part in TOC["parts"] for entry in part["chapters"]]
TEXTS = {Path(file).name: (ROOT / f"{file}.md").read_text(encoding="utf-8") for file in FILES}
CELLS = {page: code_cells(text) for page, text in TEXTS.items() if code_cells(text)}
CONTENT = [page for page in CELLS if page not in ("index", "claims")]
PUBLISHED = (ROOT / "tests" / "published_pages.txt").read_text(encoding="utf-8").split()
REFERENCES = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "tests/references").glob("*.json")
}
each = pytest.mark.parametrize("page", CELLS)


def test_every_page_is_in_the_table_of_contents():
    assert {path.stem for path in (ROOT / "chapters").glob("*.md")} == set(TEXTS)


def test_published_paths_are_kept():
    assert set(PUBLISHED) == {f"{file}.html" for file in FILES}, "a new page: add it to tests/published_pages.txt"


def test_references_cover_exactly_the_pages_with_code():
    assert set(REFERENCES) == set(CELLS)


@each
def test_references_hold_the_cells_of_the_page(page):
    sources = [cell["source"].strip() for cell in REFERENCES[page]]
    assert sources == [cell.strip() for cell in CELLS[page]]


@each
def test_references_compare_a_number(page):
    texts = [
        out.get("text") or out["data"].get("text/plain", "") for cell in REFERENCES[page] for out in cell["outputs"]
    ]
    assert any(re.search(r"\d", text) for text in texts if not re.match(r"<|VBox\(", text))


@each
def test_cells_are_short(page):
    for block in re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", TEXTS[page], re.MULTILINE | re.DOTALL):
        assert len(block.rstrip().splitlines()) <= 25, block
    for cell in CELLS[page]:
        assert max(map(len, cell.splitlines())) <= 79, cell


@each
def test_cells_avoid_what_fails_in_the_page(page):
    text = "\n".join(CELLS[page])
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert not names & {"interact", "interactive", "interactive_output"}, "its picture would not move without a kernel"
    assert not re.search(r";\s*$", text, re.MULTILINE), "nbval does not know the silencing semicolon"
    assert "NBVAL" not in text and "nbval" not in TEXTS[page], "every cell is compared"


@each
def test_randomness_is_seeded(page):
    for node in ast.walk(ast.parse("\n".join(CELLS[page]))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.endswith("default_rng"):
                assert node.args, "default_rng needs the seed"
            legacy = re.search(r"\brandom\.(?!default_rng|Generator)\w+$", name)
            assert not (legacy and name.startswith(("np.", "numpy.", "random."))), f"{name}: use default_rng(SEED)"


@each
def test_every_figure_has_a_caption_and_alternative_text(page):
    for block in re.findall(r"^```\{code-cell\}.*?^```", TEXTS[page], re.MULTILINE | re.DOTALL):
        if "plt.show()" not in block:
            continue
        settings = yaml.safe_load(block.split("---\n")[1])["mystnb"]
        assert settings["figure"]["caption"].strip() and settings["figure"]["name"].startswith("fig-")
        assert re.fullmatch(r"[A-Z].{40,}\.", " ".join(settings["image"]["alt"].split()))


@pytest.mark.parametrize("page", CONTENT)
def test_a_chapter_has_the_shape_of_a_chapter(page):
    text = TEXTS[page]
    assert f"({page})=\n# " in text
    for part in ("**You will be able to**", "**You need**", "**Time**", "## Exercises", "## Summary", "explore("):
        assert part in text, part
    assert text.count("```{exercise}") == text.count("solution-start}") + text.count("```{solution}")
    assert len(re.findall("^- ", text.split("## Summary")[1], re.MULTILINE)) == 5


def test_every_label_of_a_page_is_used_once():
    labels = re.findall(r"^(?::label:|\s*name:) ((?!python3)\S+)", "\n".join(TEXTS.values()), re.MULTILINE)
    assert len(labels) == len(set(labels))
