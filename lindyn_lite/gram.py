"""Factors of the Riccati solution at many times, without a growing exponential.

``QQᵀ = G Gᵀ`` with ``G = e^{Ft} Q_0 M^{−1/2}``, ``M = I + Q_0ᵀ (∫_0^t e^{2Fs}ds) Q_0``. In the eigenbasis of F (see
`lindyn_lite.growth`) ``Q_0 = O A``, ``A = lowerᵀ hidden``, and M^{1/2} is the triangular factor of the tall matrix
``[√D lowerᵀ; I]``, D the integrals of ``e^{2Λs}``. Arrays are transposed: a row for each combination of hidden units.
"""

import numpy as np

from .growth import Array, Start, limit

EARLY = 0.5
"""Times up to this over the largest s_λ use hyperbolic functions in place of the eigenbasis."""

WELL_CONDITIONED = 0.25
"""Smallest squared pivot of a Cholesky factor of a Gram matrix of unit diagonal that needs no Newton step."""

INVERTED = 64
"""Largest triangular matrix that is inverted as a whole: a product is then cheaper than the steps of a solution."""

WORKING_SET = 2**17
"""Entries of one working array: times are taken in portions that stay in the cache."""


def portions(start: Start, t: Array) -> list[np.ndarray]:
    """The indices of the times 0 < t < ∞, in portions of one size and one kind for `factors`."""
    size = max(1, WORKING_SET // start.lower.size)
    moving = (t > 0) & (t < np.inf)
    early = np.where(moving, t, 0.0) * start.spectrum.s_lambda[0] <= EARLY
    kinds = [np.flatnonzero(moving & early), np.flatnonzero(moving & ~early)]
    return [kind[i : i + size] for kind in kinds for i in range(0, len(kind), size)]


@np.errstate(over="ignore")  # a growth beyond 1e308 is infinite, and a decay 0
def factors(start: Start, t: Array) -> tuple[Array, Array]:
    """The blocks of Gᵀ at times 0 < t < ∞: ``(T, k, Ni)`` and ``(T, k, No)``.

    Each column of the tall matrix is divided by the growth ``e^{Λt}`` of its pivot, so that all exponents are ≤ 0,
    and orthonormalised; its upper part is then ``√D e^{−Λt} G``. The times must be all early or all late.
    """
    F = start.spectrum
    t = t[:, None]
    tall, unit, root = tall_matrix(start, t)
    if t[0, 0] * F.s_lambda[0] <= EARLY:
        inputs, outputs = hyperbolic(start, t)
        split = inputs.shape[-1]
        G = orthonormal(tall, unit, np.concatenate([inputs, outputs], axis=-1) * unit[:, :, None])
        return G[..., :split] @ F.inputs.T, G[..., split:] @ F.outputs.T
    G = orthonormal(tall, unit)
    G *= (np.exp(np.minimum(F.rates, 0.0) * t) / root)[:, None, :]
    return rotate_back(start, G)


def tall_matrix(start: Start, t: Array) -> tuple[Array, Array, Array]:
    """``√D lowerᵀ`` and the identity over the growth of each pivot, and ``√D`` over that of each row.

    The growth of a row relative to a pivot is one exponential for each pair, or the ratio of two where neither can
    underflow.
    """
    F = start.spectrum
    rates = 2 * np.abs(F.rates)
    x = rates * t
    quotient = np.divide(-np.expm1(-x), x, out=np.ones_like(x), where=x > 0)
    root = np.sqrt(np.where(x > 1, -np.expm1(-x) / np.where(rates > 0, rates, 1.0), t * quotient))
    exponents, own, lead = start.relative_exponents
    unit = np.exp(-own * t)
    if float(t.max()) * (F.rates[0] - own.min()) <= 300:
        tall = start.lower * (root * np.exp(lead * t))[:, None, :]
        tall *= np.exp((-lead[start.pivots]) * t)[:, :, None]
    else:
        tall = start.lower * np.exp(exponents * t[:, :, None])
        tall *= root[:, None, :]
    return tall, unit, root


def rotate_back(start: Start, G: Array) -> tuple[Array, Array]:
    """From the eigenbasis to inputs and outputs."""
    F = start.spectrum
    m, n, last = len(F.s), F.growing, F.growing + len(F.inputs) - len(F.s)
    plus, minus = G[..., :m], G[..., last:]
    inputs = np.concatenate([F.low * plus + F.high * minus, G[..., n:last]], axis=-1)
    outputs = np.concatenate([F.high * plus - F.low * minus, G[..., m:n]], axis=-1)
    return apply(inputs, F.inputs.T), apply(outputs, F.outputs.T)


def apply(rows: Array, matrix: Array) -> Array:
    """``rows @ matrix`` as one product over all times."""
    return (rows.reshape(-1, rows.shape[-1]) @ matrix).reshape(rows.shape)


def hyperbolic(start: Start, t: Array) -> tuple[Array, Array]:
    """``e^{Ft}Q_0`` in the singular bases at short times: no digit of a small layer is lost to a large one."""
    F, m = start.spectrum, len(start.spectrum.s)
    a, b = start.first[:, :m], start.second[:, :m]
    x = F.s_lambda * t
    cosh = np.cosh(x)[:, None, :]
    sinh = (t * np.divide(np.sinh(x), x, out=np.ones_like(x), where=x > 0))[:, None, :]
    rest = F.half * t[:, :, None]
    inputs = [(cosh - F.half * sinh) * a + F.s * sinh * b, np.exp(-rest) * start.first[:, m:]]
    outputs = [F.s * sinh * a + (cosh + F.half * sinh) * b, np.exp(rest) * start.second[:, m:]]
    return np.concatenate(inputs, axis=-1), np.concatenate(outputs, axis=-1)


def orthonormal(tall: Array, unit: Array, target: Array | None = None) -> Array:
    """``C⁻¹ target`` (default: tall), with C the lower triangular factor ``C Cᵀ = tall tallᵀ + diag(unit²)``.

    A Cholesky factor of the Gram matrix of the normalised rows is cheap, and leaves in the orthogonality of
    ``Z = C⁻¹ [tall, diag(unit)]`` an error of rounding times its condition number. Newton steps ``Z ← (I − Δ/2) Z``,
    ``Δ = ZZᵀ − I``, remove it where it is large; only where Cholesky fails is a QR factorisation needed.
    """
    diagonal = np.arange(tall.shape[1])
    gram = tall @ np.swapaxes(tall, 1, 2)
    gram[:, diagonal, diagonal] += unit**2
    inverse = 1 / np.sqrt(gram[:, diagonal, diagonal])
    gram *= inverse[:, :, None]
    gram *= inverse[:, None, :]
    try:
        C = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        whole = np.concatenate([tall, unit[:, :, None] * np.eye(len(diagonal))], axis=2) * inverse[:, :, None]
        C = np.swapaxes(np.linalg.qr(np.swapaxes(whole, 1, 2), mode="r"), 1, 2)
    G = solve_lower(C, (tall if target is None else target) * inverse[:, :, None])
    rough = np.flatnonzero(C[:, diagonal, diagonal].min(axis=1) ** 2 < WELL_CONDITIONED)
    if rough.size:
        Z = G[rough] if target is None else solve_lower(C[rough], tall[rough] * inverse[rough, :, None])
        B = solve_lower(C[rough], (unit * inverse)[rough, :, None] * np.eye(len(diagonal)))
        for _ in range(4):
            delta = Z @ np.swapaxes(Z, 1, 2) + B @ np.swapaxes(B, 1, 2)
            delta[:, diagonal, diagonal] -= 1.0
            delta *= -0.5
            Z += delta @ Z
            G[rough] = Z if target is None else G[rough] + delta @ G[rough]
            if np.abs(delta).max() < 1e-8:
                break
            B += delta @ B
    return G


def solve_lower(C: Array, rhs: Array) -> Array:
    """``C⁻¹ rhs`` for stacks of lower triangular matrices, by halves, with products in between.

    numpy alone: the thread pools of two BLAS libraries, numpy's and scipy's, in turns would wait for each other.
    """
    k = C.shape[1]
    if k <= INVERTED:
        return inverse_lower(C) @ rhs
    half = k // 2
    upper = solve_lower(C[:, :half, :half], rhs[:, :half])
    lower = solve_lower(C[:, half:, half:], rhs[:, half:] - C[:, half:, :half] @ upper)
    return np.concatenate([upper, lower], axis=1)


def inverse_lower(C: Array) -> Array:
    """Inverses of a stack of lower triangular matrices: row by row if small, else by halves, both in one stack."""
    k = C.shape[1]
    X = np.zeros_like(C)
    if k <= 8:
        pivot = 1 / C[:, np.arange(k), np.arange(k)]
        for j in range(k):
            X[:, j] = np.einsum("nl,nlm->nm", C[:, j, :j], X[:, :j]) * -pivot[:, j, None]
            X[:, j, j] = pivot[:, j]
        return X
    half = (k + 1) // 2
    ends = np.stack([C[:, :half, :half], C[:, k - half :, k - half :]])  # they overlap by one row if k is odd
    upper, lower = inverse_lower(ends.reshape(-1, half, half)).reshape(ends.shape)
    lower = lower[:, 2 * half - k :, 2 * half - k :]
    X[:, :half, :half], X[:, half:, half:] = upper, lower
    X[:, half:, :half] = -lower @ (C[:, half:, :half] @ upper)
    return X


def at_infinity(start: Start) -> tuple[Array, Array]:
    """The blocks of Gᵀ at t = ∞, ``(k, Ni)`` and ``(k, No)``."""
    return rotate_back(start, limit(start))


def evaluate(start: Start, W1: Array, W2: Array, flipped: bool, t: Array) -> tuple[Array, Array, Array]:
    """``W_1ᵀW_1``, ``W_2W_1``, ``W_2W_2ᵀ`` at the times t, any of them 0 or ∞; flipped if λ < 0."""
    Ni, No = W1.shape[1], W2.shape[0]
    K1, P, K2 = np.empty((len(t), Ni, Ni)), np.empty((len(t), No, Ni)), np.empty((len(t), No, No))
    for indices in portions(start, t):
        a, b = factors(start, t[indices])[:: -1 if flipped else 1]
        run = slice(indices[0], indices[-1] + 1) if indices[-1] - indices[0] == len(indices) - 1 else indices
        at, bt = np.swapaxes(a, 1, 2), np.swapaxes(b, 1, 2)
        K1[run], P[run], K2[run] = at @ a, bt @ a, bt @ b
    if np.any(t == np.inf):
        a, b = at_infinity(start)[:: -1 if flipped else 1]
        K1[t == np.inf], P[t == np.inf], K2[t == np.inf] = a.T @ a, b.T @ a, b.T @ b
    K1[t == 0], P[t == 0], K2[t == 0] = W1.T @ W1, W2 @ W1, W2 @ W2.T
    return K1, P, K2
