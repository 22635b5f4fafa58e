"""The rotation of the hidden layer that the Gram matrix QQᵀ leaves open.

``Q(t) = e^{Ft}Q_0X`` with ``X' = −½M⁻¹M'X``, X(0) = I. From ``Q' = (F − QQᵀ/2) Q`` the matrix ``QᵀQ'`` is symmetric:
among all factors G of ``QQᵀ = GGᵀ`` the weights are the one that never turns by itself. So they are carried along any
factor in closed form: ``Q(t + h) ≈ G Ω`` with Ω the orthogonal matrix for which GΩ is nearest to Q(t), the polar factor
of GᵀQ(t). A step and its reverse undo each other, hence its error has even powers of h only, and Romberg's
extrapolation applies. Where the weights rest, a step of any length is exact.
"""

import numpy as np

from .gram import factors, portions
from .growth import Array, Start

STEP_TOLERANCE = 1e-13
"""Relative change by the last extrapolation of each layer that accepts a step."""

HALVINGS = 6
"""The last extrapolation uses 2**(HALVINGS − 1) steps."""


def both(start: Start, t: Array) -> Array:
    """The factor Gᵀ, ``(T, k, Ni + No)``, at increasing times."""
    result = np.empty((len(t), len(start.lower), start.lower.shape[1]))
    for indices in portions(start, t):
        result[indices] = np.concatenate(factors(start, t[indices]), axis=-1)
    return result


def carry(Q: Array, G: Array) -> Array:
    """The factor nearest to Q, both transposed."""
    left, _, right = np.linalg.svd(Q @ G.T, full_matrices=False)
    return left @ (right @ G)


def step(start: Start, Q: Array, a: float, b: float) -> tuple[Array, float]:
    """Q at time b from Q at time a, and the change by the last extrapolation relative to each layer."""
    finest = 2 ** (HALVINGS - 1)
    G = both(start, a + (b - a) * np.arange(1, finest + 1) / finest)
    rows, change = [], np.inf
    for level in range(HALVINGS):
        every = finest >> level
        now = Q
        for k in range(every - 1, finest, every):
            now = carry(now, G[k])
        row = [now]
        for j, coarser in enumerate(rows):
            row.append(row[-1] + (row[-1] - coarser) / (4 ** (j + 1) - 1))
        if rows:
            split = len(start.spectrum.inputs)
            parts = [(row[-1] - rows[-1])[:, :split], (row[-1] - rows[-1])[:, split:]]
            sizes = [row[-1][:, :split], row[-1][:, split:]]
            change = max(np.linalg.norm(p) / max(np.linalg.norm(s), 1e-300) for p, s in zip(parts, sizes, strict=True))
        rows = row
        if change < STEP_TOLERANCE:
            break
    return carry(rows[-1], G[-1]), float(change)


@np.errstate(over="ignore")  # as in the closed form
def transport(start: Start, Q: Array, t: Array) -> Array:
    """``[W_1, W_2ᵀ]`` at increasing times t > 0 or = 0, shape ``(T, Nh, Ni + No)``, from Q at t = 0."""
    now, size = 0.0, 0.25 / (np.linalg.norm(Q) ** 2 + start.spectrum.s_lambda[0] + 1e-300)
    floor = 1e-3 * size  # rounding, not the step, limits the change there
    states = np.empty((len(t), *Q.shape))
    for k, end in enumerate(t):
        while now < end:
            after = end if now + 1.01 * size >= end else now + size
            moved, change = step(start, Q, now, after)
            if change < STEP_TOLERANCE or after - now <= floor:
                Q, now, size = moved, after, max(2 * (after - now), size)
            else:
                size = (after - now) / 4
        states[k] = Q
    return states
