"""Check a claim of the ledger against a measured number."""

import difflib
import html
from dataclasses import dataclass

import numpy as np
from IPython.display import display
from numpy.typing import ArrayLike

from .claims import Claim, LedgerError, anchor, badge, read_claims


class ClaimError(AssertionError):
    """A measured number disagrees with what the verdict of its claim says."""


def digits(x: float) -> str:
    """Ten significant digits; two for a residual that only says how small it is."""
    return f"{x:.10g}" if x == 0 or abs(x) >= 1e-9 else f"{x:.1e}"


def number(value: np.ndarray) -> str:
    """A number, or the first few of an array."""
    texts = [digits(x) for x in np.ravel(value)[:6]]
    if value.ndim == 0:
        return texts[0]
    return f"({', '.join(texts)}{', …' if value.size > 6 else ''})"


@dataclass(frozen=True)
class Check:
    """The outcome of a check that passed: prints as text, shows as a panel in a page."""

    claim: Claim
    measured: np.ndarray
    expected: np.ndarray
    tolerance: str
    claimed: np.ndarray | None

    def lines(self) -> list[tuple[str, str]]:
        rows = [("measured", number(self.measured)), ("expected", f"{number(self.expected)}  ({self.tolerance})")]
        if self.claimed is not None:
            rows.append(("as claimed", f"{number(self.claimed)}  (does not hold)"))
        return rows

    def __repr__(self) -> str:
        head = f"✓ {self.claim.id}: {self.claim.verdict}"
        return "\n".join([head, *(f"  {name:<10} {text}" for name, text in self.lines())])

    def _repr_html_(self) -> str:
        rows = "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in self.lines())
        return (
            f'<div class="lindyn-check" id="{anchor("check", self.claim.id)}">'
            f'<p><span aria-hidden="true">✓</span> <a href="claims.html#{anchor("claim", self.claim.id)}">'
            f"{html.escape(self.claim.id)}</a> {badge(self.claim.verdict)}</p><dl>{rows}</dl></div>"
        )


def real_array(name: str, value: ArrayLike) -> np.ndarray:
    """``value`` as a float array; anything else is refused."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a number or an array of numbers, got {value!r}") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be a number or an array of numbers, got {value!r}")
    return array.astype(float)


def agrees(measured: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> bool:
    """Entry by entry ``|measured − expected| ≤ atol + rtol |expected|``; infinities must be equal, NaN never is."""
    return bool(np.all(np.isclose(measured, expected, rtol=rtol, atol=atol)))


def check(
    claim_id: str,
    measured: ArrayLike,
    expected: ArrayLike,
    rtol: float = 0.0,
    atol: float = 0.0,
    claimed: ArrayLike | None = None,
) -> None:
    """Check a claim of the ledger against a measured number, and show the verdict with both numbers.

    Parameters
    ----------
    claim_id
        Id of the claim in ``claims.yml``.
    measured, expected
        Numbers or arrays of one shape (a single expected number is compared with every entry):
        ``|measured − expected| ≤ atol + rtol |expected|`` in every entry.
    rtol, atol
        Tolerances; both 0, the default, asks for equality.
    claimed
        What the source's statement would give, where it fails: the check also demands that the measured
        numbers do *not* agree with it.

    Raises
    ------
    LedgerError
        If the ledger has no such claim; a `ValueError` that names the nearest ids.
    ClaimError
        If the numbers disagree; an `AssertionError` with both and the tolerance.
    ValueError
        If a number is not real, the shapes differ, or a tolerance is negative or not finite.
    """
    claims = read_claims()
    if claim_id not in claims:
        near = difflib.get_close_matches(str(claim_id), claims, n=3, cutoff=0.4)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise LedgerError(f"the ledger has no claim {claim_id!r}{hint}")
    if not (0 <= rtol < np.inf and 0 <= atol < np.inf):
        raise ValueError(f"tolerances must be finite and at least 0, got rtol={rtol}, atol={atol}")
    got, want = real_array("measured", measured), real_array("expected", expected)
    if got.size == 0 or (want.ndim and want.shape != got.shape):
        raise ValueError(f"{claim_id}: measured has shape {got.shape}, expected {want.shape}")
    tolerance = " ".join(f"± {size:g}{unit}" for size, unit in ((atol, ""), (rtol, " relative")) if size) or "exactly"
    if not agrees(got, want, rtol, atol):
        worst = float(np.max(np.abs(got - want)))
        raise ClaimError(
            f"{claim_id}: measured {number(got)}, expected {number(want)} ({tolerance}); "
            f"the largest difference is {worst:.3g}"
        )
    other = None if claimed is None else real_array("claimed", claimed)
    if other is not None and agrees(got, other, rtol, atol):
        raise ClaimError(f"{claim_id}: measured {number(got)} agrees with the claimed {number(other)} after all")
    display(Check(claims[claim_id], got, want, tolerance, other))
