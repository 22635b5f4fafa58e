"""The ledger: every claim of the sources, its verdict, and the check that decides it.

``chapters/claims.yml`` holds the claims. A chapter checks a claim with `lindyn_lite.book.check` in a
visible cell; the ledger page shows them all with `lindyn_lite.book.ledger`.
"""

import ast
import html
import re
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

VERDICTS = ("exact", "limit", "conditional", "false")
SOURCES = {"exercises": "Exercises", "lambda_balanced": "From Lazy to Rich"}


class LedgerError(ValueError):
    """The ledger is missing or malformed, or a check names a claim that it does not hold."""


@dataclass(frozen=True)
class Claim:
    """One claim of a source.

    Attributes
    ----------
    id
        Such as ``"5.2-balanced-lazy"``.
    source
        A key of `SOURCES`.
    where
        Exercise, theorem or section of the source.
    claim
        What the source says, in one sentence.
    verdict
        One of `VERDICTS`.
    page
        The chapter that checks it.
    holds
        The right statement, where the verdict is not ``"exact"``.
    """

    id: str
    source: str
    where: str
    claim: str
    verdict: str
    page: str
    holds: str = ""


def find_ledger(start: Path | None = None) -> Path:
    """``claims.yml`` beside the running notebook or above it, else the one of this checkout."""
    here = (start or Path.cwd()).resolve()
    folders = [here, *here.parents, Path(__file__).resolve().parents[2]]
    for folder in folders:
        for path in (folder / "claims.yml", folder / "chapters" / "claims.yml"):
            if path.is_file():
                return path
    raise LedgerError(f"no claims.yml in {here}, in a chapters folder above it, or beside the package")


def parse_claim(entry: object, path: Path) -> Claim:
    """One entry of the file as a claim; a malformed one is refused by name."""
    if not isinstance(entry, dict) or "id" not in entry:
        raise LedgerError(f"{path.name}: an entry needs an id, got {entry!r}")
    names, needed = {f.name for f in fields(Claim)}, {f.name for f in fields(Claim) if f.name != "holds"}
    if wrong := (set(entry) - names) | (needed - set(entry)):
        raise LedgerError(f"{path.name}: claim {entry['id']!r} has missing or unknown fields {sorted(wrong)}")
    claim = Claim(**{name: " ".join(str(text).split()) for name, text in entry.items()})
    if claim.verdict not in VERDICTS:
        raise LedgerError(f"{path.name}: verdict of {claim.id!r} is {claim.verdict!r}, not one of {VERDICTS}")
    if claim.source not in SOURCES:
        raise LedgerError(f"{path.name}: source of {claim.id!r} is {claim.source!r}, not one of {tuple(SOURCES)}")
    if (claim.verdict == "exact") == bool(claim.holds):
        raise LedgerError(f"{path.name}: {claim.id!r} needs 'holds' exactly if its verdict is not 'exact'")
    return claim


def read_claims(path: Path | None = None) -> dict[str, Claim]:
    """All claims of a ledger by id, in the order of the file.

    Raises
    ------
    LedgerError
        If the file is missing, an entry is malformed, or an id occurs twice.
    """
    path = path or find_ledger()
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    claims = [parse_claim(entry, path) for entry in entries]
    if twice := [name for name, n in Counter(claim.id for claim in claims).items() if n > 1]:
        raise LedgerError(f"{path.name}: these ids occur more than once: {twice}")
    return {claim.id: claim for claim in claims}


CODE_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def code_cells(text: str) -> list[str]:
    """The source of every code cell of a MyST notebook, without its options."""
    cells = []
    for body in CODE_CELL.findall(text):
        if body.startswith("---\n"):
            body = body.split("\n---\n", 1)[1]
        cells.append("\n".join(line for line in body.splitlines() if not line.startswith(":")))
    return cells


def checks_in(text: str) -> list[tuple[str, bool]]:
    """The claims that a page checks, in order, and whether the check contrasts the source's number."""
    found = []
    for cell in code_cells(text):
        for node in ast.walk(ast.parse(cell)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check":
                if not (node.args and isinstance(node.args[0], ast.Constant)):
                    raise LedgerError(f"the id of a check must be written out, got {ast.unparse(node)}")
                found.append((node.args[0].value, any(k.arg == "claimed" for k in node.keywords)))
    return found


def anchor(kind: str, claim_id: str) -> str:
    """The place of a claim (``kind="claim"``) or of its check (``"check"``) in a page, without dots."""
    return html.escape(f"{kind}-{claim_id.replace('.', '-')}")


def badge(verdict: str) -> str:
    """The verdict as a small coloured label."""
    return f'<span class="lindyn-verdict lindyn-{verdict}">{verdict}</span>'
