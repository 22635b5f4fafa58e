"""The references bite: a constant of the package that moves makes a chapter fail, in a copy of the book."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The package and the hook with one small chapter, in a folder of its own, without references."""
    folder = tmp_path_factory.mktemp("bare")
    shutil.copytree(ROOT / "lindyn_lite", folder / "lindyn_lite", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "chapters").mkdir()
    shutil.copy(ROOT / "chapters" / "claims.yml", folder / "chapters")
    (folder / "chapters" / "small.md").write_text(SMALL, encoding="utf-8")
    (folder / "_toc.yml").write_text("format: jb-book\nroot: chapters/small\nparts: []\n", encoding="utf-8")
    (folder / "tests" / "references").mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def reviewed(bare, tmp_path_factory):
    """The same with a reference, and what pytest said before, while and after it was written."""
    folder = shutil.copytree(bare, tmp_path_factory.mktemp("reviewed") / "book")
    return folder, [run(folder), run(folder, "--refresh"), run(folder)]


@pytest.fixture
def copy(reviewed, tmp_path):
    """A copy of the reviewed book to break."""
    return shutil.copytree(reviewed[0], tmp_path / "book")


SMALL = """---
kernelspec:
  display_name: Python 3
  name: python3
---
# Small

```{code-cell} ipython3
from lindyn_lite import networks
from lindyn_lite.book import check

value = networks.loss([[[1.0]], [[1.0]]], [[3.0]])
check("2.1-decoupling", value, 2, rtol=1e-3)
```

```{code-cell} ipython3
print(f"loss {value:.10g}")
```
"""


def run(folder, *options):
    """pytest on the chapter of the copy, with the copy's package."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PY_COLORS": "0"}
    command = [sys.executable, "-m", "pytest", "chapters", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def mutate(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_missing_reference_fails_and_refresh_writes_it(reviewed):
    missing, refreshed, passed = reviewed[1]
    assert missing[0] == 1 and "small.json is missing" in missing[1]
    assert refreshed[0] == 0 and "tests/references/small.json: changed in cells 0, 1" in refreshed[1]
    assert passed[0] == 0 and "2 passed" in passed[1]


@pytest.mark.parametrize(
    ("constant", "error"),
    [
        ("0.500005", r"Cell outputs differ[^$]*loss 2\.00002"),  # within the tolerance of the check
        ("0.6", r"ClaimError[^$]*2\.1-decoupling[^$]*measured 2\.4, expected 2"),
    ],
)
def test_a_constant_of_the_package_that_moves_makes_the_chapter_fail(copy, constant, error):
    mutate(copy / "lindyn_lite" / "networks.py", "return 0.5 * float", f"return {constant} * float")
    code, out = run(copy)
    assert code == 1 and re.search(error, out)


def test_an_edited_cell_is_stale_until_refreshed(copy):
    mutate(copy / "chapters" / "small.md", 'print(f"loss', 'print(f"Loss')
    code, out = run(copy)
    assert code == 1 and "small.json is stale" in out
    code, out = run(copy, "--refresh")
    assert code == 0 and "changed in cells 1\n" in out


def test_a_removed_cell_is_stale_too(copy):
    page = copy / "chapters" / "small.md"
    page.write_text(page.read_text(encoding="utf-8").rsplit("```{code-cell}", 1)[0], encoding="utf-8")
    code, out = run(copy)
    assert code != 0 and "small.json is stale: it has 2 cells, the page 1" in out


def test_a_failing_cell_keeps_the_old_reference_and_stderr_is_an_error(copy):
    before = (copy / "tests/references/small.json").read_text(encoding="utf-8")
    mutate(copy / "chapters" / "small.md", "print(f", "import sys; print('oh', file=sys.stderr); print(f")
    code, out = run(copy, "--refresh")
    assert code == 1 and "the cell wrote to stderr" in out
    assert (copy / "tests/references/small.json").read_text(encoding="utf-8") == before
