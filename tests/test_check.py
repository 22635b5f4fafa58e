"""The check of a claim: what passes, what is shown, what is refused."""

import numpy as np
import pytest

from lindyn_lite.book import check
from lindyn_lite.book.checks import ClaimError
from lindyn_lite.book.claims import LedgerError

LEDGER = """
- {id: 1-true, source: exercises, where: Exercise 1, claim: "A < B", verdict: exact, page: one}
- {id: 1-false, source: exercises, where: Exercise 1, claim: B, verdict: "false", holds: "Not B.", page: one}
"""


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    (tmp_path / "claims.yml").write_text(LEDGER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def shown(monkeypatch):
    panels = []
    monkeypatch.setattr("lindyn_lite.book.checks.display", panels.append)
    return panels


def test_a_passed_check_shows_verdict_and_both_numbers(shown):
    check("1-true", 1.0000001, 1, rtol=1e-6)
    assert repr(shown[0]).split() == [
        "✓",
        "1-true:",
        "exact",
        "measured",
        "1.0000001",
        "expected",
        "1",
        "(±",
        "1e-06",
        "relative)",
    ]
    assert 'id="check-1-true"' in shown[0]._repr_html_() and 'href="claims.html#claim-1-true"' in shown[0]._repr_html_()


def test_outside_a_notebook_it_prints(capsys):
    check("1-true", 2, 2)
    assert "measured   2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("measured", "expected", "tolerances"),
    [
        (1.1, 1, {}),
        (1.1, 1, {"rtol": 0.09}),
        (1.1, 1, {"atol": 0.09}),
        (np.nan, np.nan, {"atol": 1}),
        (np.inf, 1, {"atol": 1}),
        ([1, 2], [1, 3], {"rtol": 0.1}),
        ([1, np.nan], [1, 1], {"rtol": 1}),
        (0.0, 1e-300, {}),
    ],
)
def test_numbers_that_disagree_fail(measured, expected, tolerances):
    with pytest.raises(ClaimError, match=r"1-true: measured .* expected"):
        check("1-true", measured, expected, **tolerances)


@pytest.mark.parametrize("value", [3, 0.1, np.inf, True, [1, 2], np.eye(2)])
def test_equal_numbers_pass_without_tolerance(value, shown):
    check("1-true", value, value)
    assert "exactly" in repr(shown[0])


def test_the_tolerance_is_relative_to_the_expected_number():
    check("1-true", 109.9, 100, rtol=0.1)
    with pytest.raises(ClaimError):
        check("1-true", 100, 89, rtol=0.1)


def test_a_single_expected_number_holds_for_every_entry():
    check("1-true", [1, 1 + 1e-9], 1, atol=1e-8)
    with pytest.raises(ClaimError):
        check("1-true", [1, 2], 1, atol=1e-8)


def test_the_claimed_number_must_really_fail(shown):
    check("1-false", 2, 2, claimed=3)
    assert "as claimed 3  (does not hold)" in repr(shown[0])
    with pytest.raises(ClaimError, match="agrees with the claimed 2 after all"):
        check("1-false", 2, 2, claimed=2)


def test_an_unknown_claim_is_refused_with_the_nearest_ids():
    with pytest.raises(LedgerError, match="no claim '1-ture'; did you mean '1-true'"):
        check("1-ture", 1, 1)


@pytest.mark.parametrize(
    ("measured", "expected", "tolerances", "message"),
    [
        ([1, 2], [1, 2, 3], {}, r"measured has shape \(2,\), expected \(3,\)"),
        (1, [1, 1], {}, "shape"),
        ([], [], {}, "shape"),
        ("one", 1, {}, "measured must be a number"),
        (1, None, {}, "must be"),
        (1, 1, {"rtol": -1}, "tolerances"),
        (1, 1, {"atol": np.nan}, "tolerances"),
        (1, 1, {"rtol": np.inf}, "tolerances"),
        (1j, 1, {}, "measured must be"),
    ],
)
def test_what_is_not_a_comparison_is_refused(measured, expected, tolerances, message):
    with pytest.raises(ValueError, match=message):
        check("1-true", measured, expected, **tolerances)
