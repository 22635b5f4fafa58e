"""The references bite: a constant of the package that moves makes a chapter fail, in a copy of the book."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def copy(tmp_path):
    """The book with one small chapter, in a folder of its own."""
    for name in ("chapters", "lindyn_lite"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "tests" / "references").mkdir(parents=True)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: chapters/small\nparts: []\n")
    (tmp_path / "chapters" / "small.md").write_text(SMALL)
    return tmp_path


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


def test_a_missing_reference_fails_and_refresh_writes_it(copy):
    code, out = run(copy)
    assert code == 1 and "small.json is missing" in out
    code, out = run(copy, "--refresh")
    assert code == 0 and "tests/references/small.json: changed in cells 0, 1" in out
    assert run(copy)[0] == 0


def test_a_constant_that_moves_fails_twice(copy):
    assert run(copy, "--refresh")[0] == 0
    source = copy / "lindyn_lite" / "networks.py"
    mutate(source, "return 0.5 * float", "return 0.500005 * float")  # inside the tolerance of the check
    code, out = run(copy)
    assert code == 1 and "Cell outputs differ" in out and re.search(r"loss 2\.00002", out)
    mutate(source, "return 0.500005 * float", "return 0.6 * float")  # outside
    code, out = run(copy)
    assert code == 1 and "ClaimError" in out and "2.1-decoupling: measured 2.4, expected 2" in out


def test_an_edited_cell_is_stale_until_refreshed(copy):
    assert run(copy, "--refresh")[0] == 0
    mutate(copy / "chapters" / "small.md", 'print(f"loss', 'print(f"Loss')
    code, out = run(copy)
    assert code == 1 and "small.json is stale" in out
    code, out = run(copy, "--refresh")
    assert code == 0 and "changed in cells 1\n" in out
    assert run(copy)[0] == 0


def test_a_removed_cell_is_stale_too(copy):
    assert run(copy, "--refresh")[0] == 0
    page = copy / "chapters" / "small.md"
    page.write_text(page.read_text().rsplit("```{code-cell}", 1)[0])
    code, out = run(copy)
    assert code != 0 and "small.json is stale: it has 2 cells, the page 1" in out


def test_a_failing_cell_keeps_the_old_reference_and_stderr_is_an_error(copy):
    assert run(copy, "--refresh")[0] == 0
    before = (copy / "tests/references/small.json").read_text()
    mutate(copy / "chapters" / "small.md", "print(f", "import sys; print('oh', file=sys.stderr); print(f")
    code, out = run(copy, "--refresh")
    assert code == 1 and "the cell wrote to stderr" in out
    assert (copy / "tests/references/small.json").read_text() == before
