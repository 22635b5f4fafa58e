"""Let nbval run every chapter and compare its text and numbers with ``tests/references/``.

nbval itself only collects ``.ipynb`` files. Here every page of the table of contents that has code becomes an
nbval file whose cells come from the page and whose expected outputs come from ``tests/references/<page>.json``.
``pytest --refresh`` (or ``make refresh``) rewrites those files with what nbval just saw.

pytest reads this hook only from the root ``conftest.py``.
"""

import json
import math
import os
import re
from collections import defaultdict
from pathlib import Path

import jupytext
import nbformat
import yaml
from nbval import plugin
from nbval.plugin import IPyNbCell, IPyNbFile

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # tests run side by side, and so do the chapters' kernels

ROOT = Path(__file__).resolve().parent
REFERENCES = ROOT / "tests" / "references"
NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")
RTOL, ATOL = 1e-6, 1e-9
COMPARED = ("text/plain", "text/markdown", "text/latex")  # pictures and widget ids are not


def table_of_contents(root: Path = ROOT) -> list[Path]:
    """The pages of the book, in order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    entries = [{"file": toc["root"]}] + [entry for part in toc["parts"] for entry in part["chapters"]]
    return [(root / entry["file"]).with_suffix(".md") for entry in entries]


def has_code(page: Path) -> bool:
    """Whether a page has cells to run."""
    return "```{code-cell}" in page.read_text(encoding="utf-8")


def pytest_collection_modifyitems(items):
    """Let the browser tests of a page follow one another, so that it is opened once; begin with this longest file."""
    groups = {}
    for item in sorted(items, key=lambda item: "browser" not in item.path.parts):
        page = item.callspec.params.get("page") if "browser" in item.path.parts and hasattr(item, "callspec") else None
        groups.setdefault(page or item.path, []).append(item)
    items[:] = [item for group in groups.values() for item in group]


def pytest_addoption(parser):
    """Add ``--refresh``."""
    parser.addoption("--refresh", action="store_true", help="rewrite tests/references/ with the outputs of this run")


def pytest_collect_file(file_path, parent):
    """Make every page with code an nbval file."""
    option = parent.config.option
    if file_path.suffix != ".md" or not (option.nbval or option.refresh):
        return None
    if file_path in table_of_contents() and has_code(file_path):
        return Chapter.from_parent(parent, path=file_path)
    return None


def pytest_sessionstart(session):
    """Remember the references, to say afterwards which ones changed."""
    session.config.references_before = {
        path.name: path.read_text(encoding="utf-8") for path in REFERENCES.glob("*.json")
    }


def pytest_terminal_summary(terminalreporter, config):
    """Say what ``--refresh`` changed."""
    if not config.option.refresh:
        return
    before = config.references_before
    after = {path.name: path.read_text(encoding="utf-8") for path in REFERENCES.glob("*.json")}
    changed = sorted(name for name in after if after[name] != before.get(name))
    terminalreporter.section("references")
    for name in changed:
        old, new = (json.loads(texts.get(name, "[]")) for texts in (before, after))
        cells = [number for number, cell in enumerate(new) if number >= len(old) or cell != old[number]]
        terminalreporter.write_line(
            f"tests/references/{name}: changed in cells {', '.join(map(str, cells)) or 'removed'}"
        )
    terminalreporter.write_line(
        f"{len(changed)} of {len(after)} reference files changed" + "; review the diff" * bool(changed)
    )


def same_text(new: str, old: str) -> bool:
    """Equal words, and equal numbers up to rounding differences between machines."""
    if " ".join(NUMBER.sub("#", new).split()) != " ".join(NUMBER.sub("#", old).split()):
        return False
    pairs = zip(NUMBER.findall(new), NUMBER.findall(old), strict=True)
    values = ((float(a.replace("−", "-")), float(b.replace("−", "-"))) for a, b in pairs)
    return all(math.isclose(a, b, rel_tol=RTOL, abs_tol=ATOL) for a, b in values)


def comparable(outputs) -> list[dict]:
    """What is compared of a cell's outputs, as plain dictionaries."""
    kept = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            kept.append({"output_type": kind, "name": output["name"], "text": output["text"]})
        elif kind == "error":
            kept.append({"output_type": kind, "ename": output["ename"], "evalue": output["evalue"]})
        else:
            data = {mime: text for mime, text in output["data"].items() if mime in COMPARED}
            if any(mime.startswith("image/") for mime in output["data"]):
                data.pop("text/plain", None)  # the size of a picture depends on the machine's fonts
            kept.append({"output_type": kind, "data": data})
    return kept


class Chapter(IPyNbFile):
    """A MyST page as nbval sees a notebook."""

    @property
    def reference(self) -> Path:
        """The file with the expected outputs."""
        return REFERENCES / f"{self.path.stem}.json"

    def collect(self):
        """One item per code cell, with its expected outputs from the reference."""
        refresh = self.config.option.refresh
        known = [] if refresh or not self.reference.exists() else json.loads(self.reference.read_text(encoding="utf-8"))
        self.nb = jupytext.read(self.path)
        self.cells = [cell for cell in self.nb.cells if cell.cell_type == "code"]
        self.seen = []
        if len(known) > len(self.cells):
            sizes = f"it has {len(known)} cells, the page {len(self.cells)}"
            raise self.CollectError(f"{self.reference.name} is stale: {sizes}; run make refresh")
        for position, cell in enumerate(self.cells):
            yield self.item(position, cell, known[position] if position < len(known) else None)

    def item(self, position, cell, known):
        """A cell with its expectation, or with the reason why there is none."""
        refresh = self.config.option.refresh
        stale = known is not None and known["source"] != cell.source
        cell.problem = None if refresh else "missing" if known is None else "stale" if stale else None
        cell.execution_count = 1  # nbval compares nothing where this is None
        cell.outputs = [nbformat.from_dict({"metadata": {}, **output}) for output in (known or {}).get("outputs", [])]
        options = defaultdict(bool, plugin.find_metadata_tags(cell.metadata))
        options.update(plugin.find_comment_markers(cell.source))
        options.setdefault("check", not refresh)
        return ChapterCell.from_parent(self, name=f"cell-{position}", cell_num=position, cell=cell, options=options)

    def teardown(self):
        """Write the reference if every cell ran."""
        if self.config.option.refresh and len(self.seen) == len(self.cells):
            REFERENCES.mkdir(exist_ok=True)
            text = json.dumps(self.seen, indent=1, ensure_ascii=False) + "\n"
            self.reference.write_text(text, encoding="utf-8")
        super().teardown()


class ChapterCell(IPyNbCell):
    """One code cell of a page."""

    def runtest(self):
        """Run the cell and compare, unless its reference cannot be trusted."""
        if self.cell.problem:
            name = self.parent.reference.name
            self.raise_cell_error(f"{name} is {self.cell.problem}: run make refresh and review the diff")
        super().runtest()
        for output in self.test_outputs:
            if output["output_type"] == "stream" and output["name"] == "stderr":
                self.raise_cell_error(f"the cell wrote to stderr:\n{output['text']}")
        if self.config.option.refresh:
            self.parent.seen.append({"source": self.cell.source, "outputs": comparable(self.test_outputs)})

    def compare_outputs(self, test, ref, skip_compare=None):
        """nbval's comparison, after numbers within tolerance have been made equal."""
        new, old = comparable(test), comparable(ref)
        for a, b in zip(new, old, strict=False):
            for left, right in ((a, b), (a.get("data", {}), b.get("data", {}))):
                for key in ("text", *COMPARED):
                    if key in left and key in right and same_text(left[key], right[key]):
                        left[key] = right[key]
        return super().compare_outputs(
            [nbformat.from_dict(output) for output in new], [nbformat.from_dict(output) for output in old], skip_compare
        )
