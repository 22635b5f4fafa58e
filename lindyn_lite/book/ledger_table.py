"""The ledger page: all claims with their verdicts and the checks that decide them."""

import html
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .claims import SOURCES, VERDICTS, Claim, LedgerError, anchor, badge, checks_in, find_ledger, read_claims


def mathematics(text: str) -> str:
    """Escape a sentence for HTML, with its dollar mathematics marked for MathJax."""
    pieces = text.split("$")
    return "".join(f"\\({html.escape(p)}\\)" if i % 2 else html.escape(p) for i, p in enumerate(pieces))


@dataclass(frozen=True)
class Ledger:
    """All claims and where each is checked: a summary as text, a table in a page."""

    claims: dict[str, Claim]
    checked: dict[str, str]

    def __repr__(self) -> str:
        total = Counter(claim.verdict for claim in self.claims.values())
        done = Counter(self.claims[name].verdict for name in self.checked)
        lines = [
            f"{len(self.claims)} claims: {len(self.checked)} checked, {len(self.claims) - len(self.checked)} planned"
        ]
        lines += [f"  {verdict:<12}{total[verdict]:>3}, of which checked {done[verdict]:>3}" for verdict in VERDICTS]
        return "\n".join(lines)

    def row(self, claim: Claim) -> str:
        page = self.checked.get(claim.id)
        name = html.escape(claim.id)
        link = f'<a href="{page}.html#{anchor("check", claim.id)}">{name}</a>' if page else f"{name}<br>planned"
        holds = f'<p class="lindyn-holds">{mathematics(claim.holds)}</p>' if claim.holds else ""
        where = f'{html.escape(claim.where)}<br><span class="lindyn-id">{link}</span>'
        return (
            f'<tr id="{anchor("claim", claim.id)}"><td>{where}</td>'
            f"<td><p>{mathematics(claim.claim)}</p>{holds}</td><td>{badge(claim.verdict)}</td></tr>"
        )

    def _repr_html_(self) -> str:
        parts = []
        for source, title in SOURCES.items():
            rows = "".join(self.row(claim) for claim in self.claims.values() if claim.source == source)
            parts.append(f"<tbody><tr><th colspan='3' scope='rowgroup'>{title}</th></tr>{rows}</tbody>")
        head = "<thead><tr><th>Where, check</th><th>Claim, and what holds</th><th>Verdict</th></tr></thead>"
        return f'<table class="lindyn-ledger tex2jax_process">{head}{"".join(parts)}</table>'


def ledger(path: Path | None = None) -> Ledger:
    """All claims of ``claims.yml``, with the page on which each is checked.

    A claim counts as checked if a page beside the file holds its check: a page whose check fails is not built.

    Parameters
    ----------
    path
        The ledger file; by default the one of the running notebook.

    Raises
    ------
    LedgerError
        If the file is malformed, a page checks a claim that is not in it, or a claim is checked twice.
    """
    path = path or find_ledger()
    claims, checked = read_claims(path), {}
    for page in sorted(path.parent.glob("*.md")):
        for name, _ in checks_in(page.read_text(encoding="utf-8")):
            if name not in claims:
                raise LedgerError(f"{page.name} checks {name!r}, which is not in {path.name}")
            if name in checked:
                raise LedgerError(f"{name!r} is checked more than once, on {checked[name]}.md and on {page.name}")
            checked[name] = page.stem
    return Ledger(claims, checked)
