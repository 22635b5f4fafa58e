"""Sphinx extension: run the chapters side by side before the pages are read.

Sphinx reads, and so runs, one page after the other. Here all chapters are run first, one process for each core, into a
fresh cache that MyST-NB then reads. The cache is emptied every time: it knows a chapter's code, not the package that
the code calls. A chapter that fails is run again by MyST-NB, which reports it.

Each process computes with one thread: side by side, two processes with two threads each would wait for each other.
"""

import logging
import os
import shutil
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor

READER = {"name": "myst_nb_md", "type": "plugin"}


def run_chapters(app, config):
    """Fill the cache, and let MyST-NB use it."""
    if config.nb_execution_mode != "force":
        return
    path = Path(app.outdir).parent / ".run_chapters"
    shutil.rmtree(path, ignore_errors=True)
    cache = get_cache(path)
    for page in sorted(Path(app.srcdir, "chapters").glob("*.md")):
        if "{code-cell}" in page.read_text(encoding="utf-8"):
            cache.add_nb_to_project(str(page), read_data=READER)
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    executor = load_executor("local-parallel", cache, logging.getLogger("run_chapters"))
    executor.run_and_cache(timeout=config.nb_execution_timeout)
    config.nb_execution_mode, config.nb_execution_cache_path = "cache", str(path)


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", run_chapters)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
