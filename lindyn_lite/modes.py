"""Scalar modes: closed forms for one singular value of the student while it learns its target.

Every function broadcasts its arguments (numbers, lists, arrays) and returns float64, a numpy float if all are scalars;
``t`` is in units of 1/η, from 0 to infinity inclusive. An argument that is empty, not real, NaN, out of range, or of a
shape that does not broadcast raises `ValueError` with its name.

Signs: every flow is ẇ = 2·(a factor even in w)·(s − w), so (w, s) ↦ (−w, −s) maps solutions to solutions. The fixed
points are w = s and, without floor (tau = 0), w = 0, which then no solution crosses.
"""

import numpy as np
from numpy.typing import ArrayLike

from .inputs import Floats, as_integer, real_arrays

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def normalised(t: Floats, *sizes: Floats) -> tuple[Floats, ...]:
    """Sizes over a power of two near the largest, time multiplied by it: nothing overflows and nothing is rounded."""
    exponent = np.frexp(np.max(np.abs(sizes), axis=0))[1]
    return exponent, np.ldexp(t, exponent), *(np.ldexp(size, -exponent) for size in sizes)


def odds(t: Floats, s: Floats, w0: Floats, tau: Floats) -> Floats:
    """γ/(1 − γ) of the mixed mode, ``(1 − e^{−2rt})(p e^{2rt} + q)/2r²``, as a product of positive terms.

    With r = √(s²+τ²), r_0 = √(w0²+τ²): p, q = r r_0 ± (s w0 + τ²), pq = τ²(s−w0)². Both are divided by r here.
    """
    r, r0 = np.hypot(s, tau), np.hypot(w0, tau)
    still = r == 0
    aligned = np.where(still, 0, s / r) * w0 + np.where(still, 1, tau / r) * tau
    large = r0 + np.abs(aligned)  # the one of p/r and q/r that is a sum of positive terms
    root = np.where(still, 1, tau / r) * np.abs(s - w0)  # √(pq)/r gives the other
    growth = np.exp(np.where(still, 0, r * t))  # e^{2rt} as two factors: p may be tiny where e^{2rt} overflows
    clock = np.where(still, t, -np.expm1(-2 * r * t) / (2 * r))
    small = np.where(aligned < 0, root * growth * (root * growth / large), root * (root / large))
    total = clock * (np.where(aligned < 0, large, large * growth * growth) + np.where(root == 0, 0, small))
    return np.where(large == 0, 0, total)  # w0 = tau = 0 stays where it is


def mixed_mode(t: Floats, s: Floats, w0: Floats, tau: Floats) -> Floats:
    """`mixed` for float64 arrays of one shape."""
    with np.errstate(all="ignore"):  # infinite intermediate values are meant: odds of 0 and of infinity
        exponent, t, s, w0, tau = normalised(t, s, w0, tau)
        ratio = odds(t, s, w0, tau)
        from_s, from_w0 = s / (1 + 1 / ratio), w0 / (1 + ratio)
        # Opposite signs: near its zero w is a difference. There take U, V = √(w²+τ²) ± w, sums of positive terms.
        r = np.hypot(s, tau)
        A, B = np.abs(s) + r, np.abs(w0) + np.hypot(w0, tau)
        decay, done, grown = np.exp(-2 * r * t), -np.expm1(-2 * r * t), np.where(tau == 0, 0, tau * np.exp(r * t))
        a, b = A / B + done + (tau / A) * (tau / B) * decay, 1 + A / B * done
        U, V = A * a / (b + (A / grown) ** 2), (tau * (tau / A) * b + A * decay) / a
        crossing = (s * w0 < 0) & ((U + V) / 2 < np.abs(from_s) + np.abs(from_w0))
        return np.ldexp(np.where(crossing, np.sign(s) * (U - V) / 2, from_s + from_w0), exponent)[()]


def mixed(t: ArrayLike, s: ArrayLike, w0: ArrayLike, tau: ArrayLike) -> Floats:
    """The mixed mode ``w(t)``: ``ẇ = 2 √(w² + τ²) (s − w)``, ``w(0) = w0``.

    Parameters
    ----------
    t
        Times in 1/η, at least 0.
    s, w0
        Target and start, of any sign.
    tau
        Floor of the learning rate, at least 0; with 0 this is `logistic`.

    Returns
    -------
    numpy.ndarray
        Of the broadcast shape.

    Raises
    ------
    ValueError
        For t < 0, tau < 0 and the inputs that this module refuses everywhere.

    Notes
    -----
    With r = √(s²+τ²), A = s + r, B = w0 + √(w0²+τ²), E = e^{−2rt}, the sum U = w + √(w²+τ²) is
    ``U = [A²B + τ²(A(1−E) + BE)] / [τ² + AB(1−E) + A²E]``, positive term by term for every sign of s and w0. The value
    is the weighted mean of s and w0, or (U − τ²/U)/2 while w crosses 0. Relative error below 1e-13 (for w0 s < 0:
    relative to ``|w| + min(|s|, τ, |w0|)``) for ratios of sizes from 1e-8 to 1e8.
    Source: exercise 6.1, in another form.

    Examples
    --------
    >>> print(f"{mixed(t=0.7, s=1, w0=-2, tau=0.5):.12f}")
    0.039308774906
    """
    return mixed_mode(*real_arrays({"t": 0, "tau": 0}, "t", t=t, s=s, w0=w0, tau=tau))


def logistic(t: ArrayLike, s: ArrayLike, w0: ArrayLike) -> Floats:
    """The balanced mode ``w(t) = s / (1 + (s/w0 − 1) e^{−2st})``: ``ẇ = 2 |w| (s − w)``, ``w(0) = w0``.

    Parameters and errors as in `mixed`.

    Notes
    -----
    - w0, s > 0: the formula, rising or falling to s. s = 0: ``w0 / (1 + 2|w0|t)``. w0 = 0: stays 0.
    - w0 < 0 < s: on the stable manifold of the saddle; ``w = w0 s E / (s + |w0|(1 − E))``, E = e^{−2st}, stays
      negative and tends to 0. (There the formula above solves another equation and blows up at a finite time.)
    - s < 0: minus the solution for (−s, −w0).

    Relative error below 1e-13 in all cases. Source: exercises 4.2 and 2.2.
    """
    t, s, w0 = real_arrays({"t": 0}, "t", t=t, s=s, w0=w0)
    return mixed_mode(t, s, w0, np.zeros_like(s))


def linearised(t: ArrayLike, s: ArrayLike, w0: ArrayLike, kernel: ArrayLike) -> Floats:
    """The mode with a frozen kernel, ``w(t) = s + (w0 − s) e^{−kernel·t}``: ``ẇ = kernel (s − w)``.

    ``kernel``, at least 0, is the NTK eigenvalue at the start: 2 w0 (balanced) or 2 tau (mixed). Other parameters and
    errors as in `mixed`. Source: exercise 5.1.
    """
    t, s, w0, kernel = real_arrays({"t": 0, "kernel": 0}, "t", t=t, s=s, w0=w0, kernel=kernel)
    with np.errstate(all="ignore"):
        exponent = np.where(kernel == 0, 0, kernel * t)
        return (w0 * np.exp(-exponent) - s * np.expm1(-exponent))[()]


def progress(t: ArrayLike, s: ArrayLike, w0: ArrayLike, lam: ArrayLike) -> tuple[Floats, Floats]:
    """``(γ, 1 − γ)`` in ``w(t) = w0 + γ(t) (s − w0)`` for the λ-balanced mode, neither found by subtraction.

    Parameters and errors as in `lambda_balanced`.

    Notes
    -----
    At w0 = s it is the limit. For lam = 0 and s w0 < 0, γ tends to w0/(w0 − s), not to 1: the mode ends at 0.
    Source: theorem 5.1 of arXiv 2409.14623.
    """
    t, s, w0, lam = real_arrays({"t": 0}, "t", t=t, s=s, w0=w0, lam=lam)
    with np.errstate(all="ignore"):
        ratio = odds(*normalised(t, s, w0, np.abs(lam) / 2)[1:])
        return (1 / (1 + 1 / ratio))[()], (1 / (1 + ratio))[()]


def lambda_balanced(t: ArrayLike, s: ArrayLike, w0: ArrayLike, lam: ArrayLike) -> Floats:
    """A singular value from an aligned λ-balanced start, ``ẇ = √(4w² + λ²) (s − w)``: `mixed` with ``τ = |λ|/2``.

    Parameters and errors as in `mixed`, with lam of any sign. That theorem 5.1's w0 + γ(t)(s − w0) solves the mixed
    equation is tested at 50 digits. Source: theorem 5.1 of arXiv 2409.14623; exercise 6.1.
    """
    t, s, w0, lam = real_arrays({"t": 0}, "t", t=t, s=s, w0=w0, lam=lam)
    return mixed_mode(t, s, w0, np.abs(lam) / 2)


def passage_time(s: ArrayLike, w0: ArrayLike, w_final: ArrayLike, tau: ArrayLike = 0.0) -> Floats:
    """Time of the mixed mode from w0 to w_final: ``e^{2rt} − 1 = (B_f − B)(A² + τ²) / [(A − B_f)(τ² + AB)]``.

    A, B, r are those of `mixed`, B_f is B at w_final. Without floor: ``t = ln[w_f(s − w0) / (w0(s − w_f))] / 2s``.
    It is 0 for w_final = w0, inf if the mode never arrives: at or beyond s, behind w0, from or across 0 if tau = 0.
    Parameters and errors as in `mixed`. Source: exercises 4.3 and 6.1.
    """
    s, w0, wf, tau = real_arrays({"tau": 0}, s=s, w0=w0, w_final=w_final, tau=tau)
    with np.errstate(all="ignore"):
        exponent, _, s, w0, wf, tau = normalised(np.zeros_like(s), s, w0, wf, tau)
        flip = np.where((s < 0) | ((s == 0) & (w0 < 0)), -1.0, 1.0)
        s, w0, wf = flip * s, flip * w0, flip * wf
        r, r0, rf = np.hypot(s, tau), np.hypot(w0, tau), np.hypot(wf, tau)
        A, B, Bf = s + r, np.abs(w0) + r0, np.abs(wf) + rf  # for w < 0 the B of the formula is τ²/B
        b, bf = np.where(w0 < 0, tau / B * tau, B), np.where(wf < 0, tau / Bf * tau, Bf)
        rest = np.where(A == 0, 0, tau / A * tau)
        gap = (wf - w0) / (s - wf)  # positive where it arrives
        # above/below = (B_f + B)/(B + τ²/A), multiplied through by what keeps both in range
        above = np.select([w0 >= 0, wf < 0], [bf + b, B / Bf + 1], bf * (B / tau) + tau)
        below = np.select([w0 >= 0, wf < 0], [b + rest, 1 + B / A], tau * (1 + B / A))
        other = gap * ((r + rf) / (rf + r0)) / (A + bf)
        slow = other * (above / below)  # (e^{2rt} − 1)/2r, the time itself for s = tau = 0
        logs = np.log(2 * r) + np.log(other) + np.log(above) - np.log(below)
        fast = np.where(2 * r * slow < 1, np.log1p(2 * r * slow), logs + np.log1p(np.exp(-logs))) / (2 * r)
        never = ~(gap > 0) | ((tau == 0) & ((w0 == 0) | (np.sign(w0) * wf <= 0)))
        times = np.select([wf == w0, never, r == 0], [0, np.inf, slow], fast)
        return np.ldexp(times, -exponent)[()]


def half_time(s: ArrayLike, w0: ArrayLike, tau: ArrayLike) -> Floats:
    """Time at which the mixed mode is half learnt, ``w = s/2``; inf if it starts beyond (`passage_time`, exercise 6.1).

    For w0 = 0 and τ → 0 it tends to ln(2s/τ)/(2s).
    """
    s, w0, tau = real_arrays({"tau": 0}, s=s, w0=w0, tau=tau)
    return passage_time(s, w0, s / 2, tau)


def crossing_time(s: ArrayLike, tau: ArrayLike) -> Floats:
    """Time from ``w = 0`` to ``w = τ``, the end of the lazy phase: ``t = ln[tan(ψ/2) / tan(ψ/2 − π/8)] / 2r``.

    tan ψ = s/τ, r = √(s²+τ²); inf for s ≤ τ, asinh(1)/(2s) for s ≫ τ > 0, 0 for tau = 0. Source: exercise 6.3.
    """
    s, tau = real_arrays({"tau": 0}, s=s, tau=tau)
    return passage_time(s, np.zeros_like(s), tau, tau)


def deep_passage_time(s: ArrayLike, w0: ArrayLike, w_final: ArrayLike, depth: int) -> Floats:
    """Time from w0 to w_final of a balanced mode of depth L, ``ẇ = L |w|^{2−2/L} (s − w)``, L an integer ≥ 2.

    0, inf and errors as in `passage_time`; also inf where the time exceeds the float range. Relative error below 1e-12:
    dt becomes ``|s|^{2/L−2} e^{cz}(1 + e^z)^d dz/L`` with z = ln|s/w − 1|, ln|w/s − 1| or ln|w/s| as w moves up to s,
    down to s or towards 0, smooth and positive, left to Gauss-Legendre on panels. Source: exercises 4.3 and 2.3.
    """
    depth = as_integer("depth", depth, 2)
    s, w0, wf = real_arrays(s=s, w0=w0, w_final=w_final)
    sign, a = np.where(w0 < 0, -1.0, 1.0), 2 - 2 / depth
    s, w0, wf = sign * s, sign * w0, sign * wf
    with np.errstate(all="ignore"):
        gap = (wf - w0) / (s - wf)
        never, up, down = ~(gap > 0) | (wf <= 0) | (w0 == 0) | (wf == s), s > w0, s > 0
        first, last = (np.log(np.where(down, abs(s - w), w)) - np.log(np.where(up, w, abs(s))) for w in (w0, wf))
        growth = np.select([up, down], [gap * (s / w0), gap], (w0 - wf) / wf)
        length = np.where(np.isinf(growth), first - last, np.log1p(growth))
        c, d = np.select([up, down], [0, 0], 1 - a), np.select([up, down], [a - 1, -a], -1.0)
        length = np.where(never | (s == 0) | (wf == w0), 0, length)
        panels, integral = int(np.ceil(length.max() / 4)), np.zeros_like(s)
        for panel in range(panels):
            z = last[..., None] + (length / panels)[..., None] * (panel + (1 + NODES) / 2)
            logs = c[..., None] * z + d[..., None] * np.logaddexp(0, z) - a * np.log(abs(s))[..., None]
            integral = integral + np.exp(logs) @ WEIGHTS * (length / panels / 2)
        algebraic = -(wf**-a) * np.expm1(-a * np.log1p((w0 - wf) / wf)) / a
        return np.select([wf == w0, never, s == 0], [0, np.inf, algebraic / depth], integral / depth)[()]
