"""The ledger file and its page: parsing, and every claim of a finished page checked once."""

import re
from pathlib import Path

import pytest
import yaml

from lindyn_lite.book import ledger
from lindyn_lite.book.claims import LedgerError, checks_in, code_cells, find_ledger, read_claims

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = ROOT / "chapters"
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
PAGES = [Path(entry["file"]).name for part in TOC["parts"] for entry in part["chapters"]]
PLANNED = {
    "conservation", "ntk_alignment", "lazy_rich", "mixed_dynamics", "lambda_balanced", "representations",
    "applications", "sgd_boltzmann", "sgd_balance", "your_data",
}  # fmt: skip
CLAIMS = read_claims(CHAPTERS / "claims.yml")
CHECKS = [
    (page, name, contrast) for page in PAGES for name, contrast in checks_in((CHAPTERS / f"{page}.md").read_text())
]
GOOD = {"id": "1-a", "source": "exercises", "where": "1", "claim": "A.", "verdict": "exact", "page": "one"}


def test_both_sources_are_there_with_about_sixty_claims():
    assert 55 <= len(CLAIMS) <= 120
    assert {claim.source for claim in CLAIMS.values()} == {"exercises", "lambda_balanced"}


def test_every_claim_belongs_to_a_page_that_exists_or_is_planned():
    assert {claim.page for claim in CLAIMS.values()} <= set(PAGES) | PLANNED


def test_every_claim_of_a_finished_page_is_checked_there_exactly_once():
    due = sorted((claim.page, claim.id) for claim in CLAIMS.values() if claim.page in PAGES)
    assert sorted((page, name) for page, name, _ in CHECKS) == due


def test_the_check_of_a_false_claim_contrasts_the_claimed_number():
    plain = [name for _, name, contrast in CHECKS if CLAIMS[name].verdict == "false" and not contrast]
    assert plain == []


def test_the_mathematics_of_every_claim_is_balanced():
    for claim in CLAIMS.values():
        assert claim.claim.count("$") % 2 == claim.holds.count("$") % 2 == 0, claim.id
        assert re.search(r"[.?!]$", claim.claim), claim.id


def test_the_ledger_page_counts_and_links_the_checks():
    table = ledger(CHAPTERS / "claims.yml")
    assert set(table.checked) == {name for _, name, _ in CHECKS}
    assert repr(table).startswith(f"{len(CLAIMS)} claims: {len(CHECKS)} checked, {len(CLAIMS) - len(CHECKS)} planned")
    page = table._repr_html_()
    for name, where in table.checked.items():
        assert f'<a href="{where}.html#check-{name.replace(".", "-")}">' in page
    assert page.count("<br>planned") == len(CLAIMS) - len(CHECKS)
    assert "$" not in page


def write(folder, entries, **pages):
    path = folder / "claims.yml"
    path.write_text(yaml.safe_dump(entries), encoding="utf-8")
    for name, cell in pages.items():
        (folder / f"{name}.md").write_text(f"# Page\n\n```{{code-cell}} ipython3\n:tags: [x]\n\n{cell}\n```\n")
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "true"}, "verdict of '1-a' is 'true'"),
        ({"source": "rumour"}, "source of '1-a' is 'rumour'"),
        ({"verdict": "limit"}, "'1-a' needs 'holds'"),
        ({"holds": "B."}, "'1-a' needs 'holds'"),
        ({"colour": "red"}, r"unknown fields \['colour'\]"),
    ],
)
def test_a_malformed_claim_is_refused_by_name(tmp_path, change, message):
    with pytest.raises(LedgerError, match=message):
        read_claims(write(tmp_path, [GOOD | change]))


def test_missing_fields_ids_and_repetitions_are_refused(tmp_path):
    with pytest.raises(LedgerError, match="missing or unknown"):
        read_claims(write(tmp_path, [{key: GOOD[key] for key in GOOD if key != "page"}]))
    with pytest.raises(LedgerError, match="needs an id"):
        read_claims(write(tmp_path, ["just text"]))
    with pytest.raises(LedgerError, match="more than once: \\['1-a'\\]"):
        read_claims(write(tmp_path, [GOOD, GOOD]))


def test_a_check_without_a_claim_or_twice_is_refused(tmp_path):
    with pytest.raises(LedgerError, match=r"one.md checks '1-b'"):
        ledger(write(tmp_path, [GOOD], one="check('1-b', 1, 1)"))
    with pytest.raises(LedgerError, match="more than once"):
        ledger(write(tmp_path, [GOOD], one="check('1-a', 1, 1)", two="check('1-a', 1, 1)"))
    with pytest.raises(LedgerError, match="must be written out"):
        ledger(write(tmp_path, [GOOD], one="check(name, 1, 1)"))


def test_the_ledger_is_found_from_a_page_and_from_elsewhere(tmp_path, monkeypatch):
    path = write(tmp_path, [GOOD])
    (tmp_path / "deep").mkdir()
    assert find_ledger(tmp_path / "deep") == path
    monkeypatch.chdir("/")
    assert find_ledger() == CHAPTERS / "claims.yml"


def test_cells_are_read_without_their_options():
    text = "```{code-cell} ipython3\n---\nmystnb:\n  figure: {}\n---\nx = 1\n```\n\n"
    text += "```{code-cell}\n:tags: [a]\n\ny = 2\n```\n"
    assert [cell.strip() for cell in code_cells(text)] == ["x = 1", "y = 2"]
