"""A λ-balanced start in the eigenbasis of the Riccati flow: growing and decaying directions.

`lindyn_lite.riccati` evaluates the solution; this module prepares what does not depend on time. It works with
λ ≥ 0 throughout: a start with λ < 0 is the transposed network ``(W_2ᵀ, W_1ᵀ, Sᵀ, −λ)``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvectors and eigenvalues of ``F = [[−λ/2 I, Sᵀ], [S, λ/2 I]]``, for λ ≥ 0.

    With ``S = U diag(s) Vᵀ`` the matrix F leaves every plane ``(v_α, u_α)`` invariant and has there the eigenvalues
    ``±s_λ``, ``s_λ = √(s² + λ²/4)``, with eigenvectors ``(low, high)`` and ``(high, −low)``. Left over are
    ``|N_o − N_i|`` directions: ``u_α`` with eigenvalue λ/2, or ``v_α`` with −λ/2. Rows are ordered
    ``[plane +, u, v, plane −]``, so that growing directions come first, fastest first.

    Attributes
    ----------
    outputs, inputs
        Full orthogonal ``U (No, No)`` and ``V (Ni, Ni)``.
    s, s_lambda
        ``s`` and ``s_λ`` of the m = min(Ni, No) planes, shape ``(m,)``, descending.
    low, high
        Entries of the eigenvectors, ``low² + high² = 1``; exactly equal at λ = 0.
    rates
        Eigenvalues of the d = Ni + No rows, shape ``(d,)``.
    half
        λ/2.
    growing
        Number of rows before the ``v``: those with a non-negative eigenvalue.
    signal
        Number of planes with s > 0: the rank of S.
    """

    outputs: Array
    inputs: Array
    s: Array
    s_lambda: Array
    low: Array
    high: Array
    rates: Array
    half: float
    growing: int
    signal: int


@dataclass(frozen=True)
class Start:
    """A start ``Q_0 = [W_1ᵀ; W_2]`` in the eigenbasis O of F, as ``OᵀQ_0 = lowerᵀ hidden``.

    Attributes
    ----------
    spectrum
        The eigenbasis.
    lower
        Shape ``(k, d)``, one row for each of the k = min(Nh, d) combinations of hidden units: zero before its pivot.
    pivots
        Row of OᵀQ_0 in which each combination starts, ascending.
    hidden
        Orthonormal rows, shape ``(k, Nh)``.
    first, second
        The two layers in the bases of the combinations and of S: ``hidden W_1 V`` and ``hidden W_2ᵀ U``.
    on_stable_manifold
        Whether a mode that a generic start of this width learns is absent, to within rounding.
    """

    spectrum: Spectrum
    lower: Array
    pivots: NDArray[np.intp]
    hidden: Array
    first: Array
    second: Array
    on_stable_manifold: bool

    @cached_property
    def relative_exponents(self) -> tuple[Array, Array, Array]:
        """How much slower a row grows than each pivot, ``(k, d)``; the pivots' rates, ``(k,)``; how much than row 0.

        Slower is negative, and a decaying row counts as one that does not grow.

        Differences of rates ``s_λ − s_λ'`` are formed as ``(s − s')(s + s')/(s_λ + s_λ')``, so that at large λ the
        slow growth above λ/2 keeps all its digits.
        """
        F, pivots = self.spectrum, self.pivots
        n = F.growing
        s = np.concatenate([F.s, np.zeros(n - len(F.s))])
        rate = np.maximum(F.rates, 0.0)

        def slower(own_s, own):
            total = rate[:n] + own
            growing = np.divide((s - own_s) * (s + own_s), total, out=np.zeros(total.shape), where=total > 0)
            return np.concatenate([growing, np.repeat(-own, len(rate) - n, axis=1)], axis=1)

        own = rate[pivots, None]
        own_s = np.where(pivots < n, s[np.minimum(pivots, n - 1)], 0.0)[:, None]
        exponents = np.where(pivots[:, None] < n, slower(own_s, own), 0.0)
        return np.minimum(exponents, 0.0), own[:, 0], slower(s[:1, None], rate[:1, None])[0]


def spectrum(S: Array, lam: float) -> Spectrum:
    """The eigenbasis of F for λ ≥ 0, without cancellation for any size of λ against s.

    Singular values that differ by rounding of the largest one count as equal, and those below it as zero.
    """
    No, Ni = S.shape
    U, s, Vt = np.linalg.svd(S)
    rounding = EPS * max(S.shape) * s[0]
    s = np.where(s > rounding, s, 0.0)
    breaks = np.flatnonzero(s[:-1] - s[1:] > rounding) + 1
    s = np.concatenate([np.full(len(group), np.mean(group)) for group in np.split(s, breaks)])
    half = lam / 2
    s_lambda = np.hypot(s, half)
    norm = np.hypot(s, s_lambda + half)
    low = np.divide(s, norm, out=np.zeros_like(s), where=norm > 0)
    high = np.divide(s_lambda + half, norm, out=np.ones_like(s), where=norm > 0)
    rest = [np.full(No - len(s), half), np.full(Ni - len(s), -half)]
    rates = np.concatenate([s_lambda, *rest, -s_lambda])
    return Spectrum(U, Vt.T, s, s_lambda, low, high, rates, half, No, int(np.sum(s > 0)))


def prepare(W1: Array, W2: Array, S: Array, lam: float) -> Start:
    """Rotate the start into the eigenbasis, and triangularise it from the fastest direction down.

    The start lies on the stable manifold of a saddle when, for some s > 0, the rows of ``OᵀQ_0`` of the n modes with
    singular values ≥ s have rank less than ``min(n, N_h)``. A rank counts singular values above the rounding
    error of the rows, which is bounded entry by entry, so that a mode that starts 1e-20 of another is seen where it is
    represented. What lies below is removed: the solution then stays on the manifold, as the exact one does.
    """
    F = spectrum(S, lam)
    m, signal, width = len(F.s), F.signal, len(W1)

    def rows(v, u):
        """The rows of OᵀQ for Q with coordinates v, u in the singular bases."""
        low, high = F.low[:, None], F.high[:, None]
        return low * v[:m] + high * u[:m], u[m:], v[m:], high * v[:m] - low * u[:m]

    first, second = W1 @ F.inputs, W2.T @ F.outputs
    A = np.concatenate(rows(first.T, second.T))
    noise = rows(np.abs(F.inputs).T @ np.abs(W1).T, np.abs(F.outputs).T @ np.abs(W2))[0][:signal]
    noise = 4 * sum(S.shape) * EPS * np.linalg.norm(noise, axis=1)
    if signal == 0 or (signal <= width and _smallest(A[:signal], noise) > 4):
        hidden, lower = np.linalg.qr(A.T)
        hidden, pivots, missing = hidden.T, np.arange(len(lower)), False
    else:
        lower, pivots, hidden, missing = _echelon(F, A, noise)
    return Start(F, lower, pivots, hidden, hidden @ first, hidden @ second, missing)


def _smallest(B: Array, noise: Array) -> float:
    """The smallest singular value of B, in units of the rounding error of its rows."""
    return float(np.linalg.svd(B / noise[:, None], compute_uv=False)[-1]) if np.all(noise > 0) else 0.0


def _echelon(F: Spectrum, A: Array, noise: Array) -> tuple[Array, NDArray[np.intp], Array, bool]:
    """Column echelon form of A, level by level of the singular values, without what is only rounding.

    Returns ``lower``, ``pivots``, ``hidden`` and ``on_stable_manifold`` of a `Start`.
    """
    width, signal = A.shape[1], F.signal
    Z, blur, pivots, missing = np.empty((0, width)), np.empty(0), [], False
    clean = A.copy()
    levels = np.split(np.arange(signal), np.flatnonzero(np.diff(F.s[:signal])) + 1)
    for level in levels:
        along = A[level] @ Z.T
        residual = A[level] - along @ Z
        residual -= (residual @ Z.T) @ Z
        error = noise[level] + np.abs(along) @ blur
        scale = np.where(error > 0, error, 1.0)[:, None]
        _, size, directions = np.linalg.svd(residual / scale, full_matrices=False)
        new = size > 1
        missing |= int(np.sum(new)) < min(len(level), width - len(Z))
        clean[level] = along @ Z + residual @ directions[new].T @ directions[new]
        Z, blur = np.concatenate([Z, directions[new]]), np.concatenate([blur, 1 / size[new]])
        pivots += [level[0]] * int(np.sum(new))
    beyond = np.linalg.qr(Z.T, mode="complete")[0][:, len(Z) :].T  # the hidden directions that carry no signal
    turn, _ = np.linalg.qr((A[signal:] @ beyond.T).T)
    hidden = np.concatenate([Z, turn.T @ beyond])
    lower = hidden @ clean.T
    pivots = np.array(pivots + list(range(signal, signal + turn.shape[1])), dtype=np.intp)
    lower[np.arange(A.shape[0]) < pivots[:, None]] = 0.0
    return lower, pivots, hidden, bool(missing)


def limit(start: Start) -> Array:
    """What the combinations tend to as t → ∞, in the eigenbasis: shape ``(k, d)``.

    ``QQᵀ → Σ 2Λ ΠΛ`` over the eigenvalues Λ > 0 of F, with Π_Λ the projector, within the eigenspace, on what the start
    reaches there and not faster elsewhere.
    """
    F = start.spectrum
    k, d = start.lower.shape
    result = np.zeros((k, d))
    rates = np.where(F.rates > 0, F.rates, 0.0)
    s = np.concatenate([F.s, np.zeros(F.growing - len(F.s))])
    edges = np.flatnonzero(np.diff(s))  # of s, since s_λ − λ/2 may be below rounding
    taken = 0
    for level in np.split(np.arange(F.growing), edges + 1):
        if taken == k or rates[level[0]] == 0:
            break
        _, size, right = np.linalg.svd(start.lower[taken:, level], full_matrices=False)
        if level[0] < F.signal:
            count = int(np.sum((start.pivots >= level[0]) & (start.pivots <= level[-1])))
        else:
            count = int(np.sum(size > 4 * EPS * d * np.linalg.norm(start.lower)))
        result[taken : taken + count, level] = np.sqrt(2 * rates[level]) * right[:count]
        taken += count
    return result
