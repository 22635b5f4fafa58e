"""The package as a whole: what importing it costs and loads, and one direction of imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "lindyn_lite"
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
GROUND = {"inputs", "networks", "tasks", "modes"}


def imports(path):
    """Modules of the package that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("lindyn_lite")):
            names |= {node.module.split(".")[-1]} if node.module else {alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("module", MODULES)
def test_science_loads_neither_matplotlib_nor_widgets(module):
    code = (
        f"import lindyn_lite.{module}, sys; print({{'matplotlib', 'ipywidgets', 'yaml', 'IPython'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("module", MODULES)
def test_science_does_not_import_the_book(module):
    assert "book" not in imports(PACKAGE / f"{module}.py")


@pytest.mark.parametrize("module", sorted(GROUND & set(MODULES)))
def test_the_ground_floor_imports_only_itself(module):
    assert imports(PACKAGE / f"{module}.py") <= GROUND


def test_imports_have_no_cycle():
    graph = {module: imports(PACKAGE / f"{module}.py") & set(MODULES) for module in MODULES}
    while leaves := {module for module, needs in graph.items() if not needs & set(graph)}:
        graph = {module: needs for module, needs in graph.items() if module not in leaves}
    assert graph == {}


def test_modules_stay_one_concept_long():
    long = {path.name: n for path in PACKAGE.rglob("*.py") if (n := len(path.read_text().splitlines())) > 250}
    assert long == {}
