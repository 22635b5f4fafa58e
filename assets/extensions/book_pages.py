"""Sphinx extension: two things that every page of the book needs and no setting gives.

*MathJax on every page.* Sphinx loads it only where a page's own text has mathematics; the ledger has it in the
output of a cell, and sliders have it in their labels.

*No font preloads.* The theme asks for its icon fonts twice, by ``<link rel="preload" crossorigin>`` and by its
style sheet. From ``file://`` the first is a cross-origin request, an error in the console; the second works.
"""

import re
from pathlib import Path

PRELOAD = re.compile(r'\s*<link rel="preload" as="font"[^>]*>')


def load_mathjax(app):
    """Load the registered scripts on every page."""
    app.set_html_assets_policy("always")


def drop_preloads(app, exception):
    """Rewrite the finished pages without their preload links."""
    if exception or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        lighter = PRELOAD.sub("", text)
        if lighter != text:
            page.write_text(lighter, encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", load_mathjax)
    app.connect("build-finished", drop_preloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
