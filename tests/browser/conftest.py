"""A browser and the built book, for the tests that look at pages as a reader does.

Without a browser the tests are skipped; with the environment variable CI they are required.
"""

import fcntl
import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
SOURCES = ("_config.yml", "_toc.yml", "assets", "chapters", "lindyn_lite")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def newest(paths):
    """The latest change below some files and folders."""
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))]
    return max(file.stat().st_mtime for file in files if file.is_file() and "__pycache__" not in file.parts)


@pytest.fixture(scope="session")
def executable():
    """A Chromium of the system."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        reason = "no Chromium found: install it (Debian: apt install chromium) or set CHROMIUM to its path"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def book(executable):
    """The folder of the built book, built now if a source is newer."""
    index = HTML / "index.html"
    HTML.parent.mkdir(exist_ok=True)
    with open(HTML.parent / "lock", "w") as lock:  # another worker may be building it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not index.exists() or index.stat().st_mtime < newest([ROOT / name for name in SOURCES]):
            command = [
                Path(sys.executable).with_name("jupyter-book"),
                "build",
                ".",
                "--all",
                "-W",
                "--keep-going",
                "-n",
            ]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return HTML


@pytest.fixture(scope="session")
def origins(book):
    """The book opened from disk, and served on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=book)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield {"file": book.as_uri(), "http": f"http://127.0.0.1:{server.server_port}"}
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def chromium(executable):
    """One browser for all tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page that is open, with everything that went wrong while it loaded."""

    def __init__(self, tab, origin):
        self.tab, self.problems = tab, []
        tab.on("console", lambda m: m.type == "error" and self.problems.append(f"console: {m.text}"))
        tab.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        tab.on("requestfailed", lambda request: self.problems.append(f"failed: {request.url}"))
        tab.on("response", lambda r: r.status >= 400 and self.problems.append(f"{r.status}: {r.url}"))
        allowed = (origin, "data:", "blob:")
        tab.on("request", lambda r: r.url.startswith(allowed) or self.problems.append(f"foreign: {r.url}"))

    def open(self, url):
        self.tab.goto(url, wait_until="load")
        self.tab.evaluate("() => window.MathJax.startup.promise")
        for explorer in self.tab.locator(".cell_output:has(script[type*=widget-view])").all():
            explorer.locator(".lindyn-explorer svg").first.wait_for(state="visible")
        labels = "[...document.querySelectorAll('.lindyn-explorer .widget-label')]"
        self.tab.wait_for_function(f"() => {labels}.every(label => !label.textContent.includes('$'))")
        return self


@pytest.fixture(scope="session")
def visit(chromium, origins):
    """A page, loaded once a scheme and seen as asked: ``visit(page, scheme="file", width=1200, dark=False)``.

    Two tabs stay open: the tests of a page follow one another, and every further tab costs memory and time.
    """
    context = chromium.new_context(color_scheme="light", reduced_motion="reduce")  # a click scrolls at once
    context.set_default_timeout(20_000)
    tabs = {}

    def opened(page, scheme):
        if (page, scheme) not in tabs:
            if len(tabs) == 2:
                tabs.pop(next(iter(tabs))).tab.close()
            tabs[page, scheme] = Visit(context.new_page(), origins[scheme]).open(f"{origins[scheme]}/{page}")
        return tabs[page, scheme]

    def visited(page, scheme="file", width=1200, dark=False):
        seen = opened(page, scheme)
        seen.tab.set_viewport_size({"width": width, "height": 900})
        seen.tab.evaluate("theme => { document.documentElement.dataset.theme = theme; }", "dark" if dark else "light")
        seen.tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # laid out
        return seen

    yield visited
    context.close()
