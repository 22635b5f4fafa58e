"""Many times in a short interval: the closed form at Chebyshev points, and a polynomial between them.

``QQᵀ(t)`` is analytic where M(t) is invertible: around the real axis to about ``π/(4 s_λ)`` on both sides, where the
exponentials ``e^{2s_λt}`` keep a positive real part. So a polynomial through the closed form at n Chebyshev points of
an interval misses it by about ``ρ^{−n}``, with ρ known beforehand, and where many more times are asked for it saves
their evaluation. Each polynomial is compared with the closed form at three of its times before it is used.
"""

import numpy as np
from numpy.polynomial.chebyshev import chebpts1

from .gram import evaluate
from .growth import EPS, Array
from .lambda_start import Problem

STRIP = 0.7
"""Half-width, in units of 1/s_λ, of the strip around the real axis that is counted on; below π/4."""

VARIATION = 50.0
"""Largest ratio of the norms of a block within an interval, since interpolation rounds relative to the largest."""

AGREEMENT = 32 * EPS
"""Largest deviation of a block from the closed form, relative to the block, at which a polynomial is used."""

FEWEST = 24
"""Fewest times for which an interval is considered."""

Blocks = tuple[Array, Array, Array]


@np.errstate(over="ignore")  # a growth or a product with a time beyond 1e308 is infinite
def blocks(problem: Problem, t: Array) -> Blocks:
    """``W_1ᵀW_1``, ``W_2W_1``, ``W_2W_2ᵀ`` at the times t, in any order, any of them 0 or ∞."""
    order = np.argsort(t, kind="stable")
    fast, reach = domain(problem)
    runs = intervals(t[order], fast, reach)
    if not runs:
        return exact(problem, t)
    samples = [sample(t[order[run]], fast, reach) for run in runs]
    ends = np.cumsum([len(times) for times in samples])[:-1]
    values = [np.split(block, ends) for block in exact(problem, np.concatenate(samples))]
    result = tuple(np.empty((len(t), *parts[0].shape[1:])) for parts in values)
    single = np.ones(len(t), dtype=bool)
    for run, *parts in zip(runs, *values, strict=True):
        where = order[run]
        matrix = interpolation(t[where], len(parts[0]) - 3)
        single[where] = not all(
            [interpolate(matrix, part, out, where) for part, out in zip(parts, result, strict=True)]
        )
    if single.any():
        for out, block in zip(result, exact(problem, t[single]), strict=True):
            out[single] = block
    return result


def exact(problem: Problem, t: Array) -> Blocks:
    """The blocks from the closed form at every time."""
    return evaluate(problem.start, problem.W1, problem.W2, problem.lam < 0, t)


def domain(problem: Problem) -> tuple[float, float]:
    """The largest rate s_λ, and how far to the left of t = 0 the solution is counted on."""
    fast = float(problem.start.spectrum.s_lambda[0])
    size = float(np.sum(problem.W1**2) + np.sum(problem.W2**2))
    return max(fast, 1e-300), 0.5 / max(size + fast, 1e-300)


def intervals(t: Array, fast: float, reach: float) -> list[slice]:
    """Runs of increasing times, each in an interval of length at most 1/s_λ and 2(t + reach), worth a polynomial."""
    ends = np.searchsorted(t, t + np.minimum(1 / fast, 2 * (t + reach)), side="right")
    candidates = np.flatnonzero((t > 0) & (t < np.inf) & (ends - np.arange(len(t)) >= FEWEST))
    runs, i = [], 0
    while (k := np.searchsorted(candidates, i)) < len(candidates):
        i, j = candidates[k], ends[candidates[k]]
        if t[j - 1] > t[i] and j - i >= 2 * len(sample(t[i:j], fast, reach)):
            runs.append(slice(i, j))
            i = j
        else:
            i += FEWEST // 2
    return runs


def sample(t: Array, fast: float, reach: float) -> Array:
    """Times of the closed form for increasing times t: Chebyshev points, then the first, a middle and the last time.

    The number of points is such that an ellipse with the end points as foci, in which the solution is analytic, gives
    every digit.
    """
    a, h = t[0], t[-1] - t[0]
    across, left = 2 * STRIP / (fast * h), 1 + 2 * (a + reach) / h
    rho = min(across + np.hypot(across, 1), left + np.sqrt(left**2 - 1))
    count = int(np.ceil(-np.log(EPS / 4) / np.log(rho)))
    return np.concatenate([a + h * (1 + chebpts1(count)) / 2, t[[0, len(t) // 2, -1]]])


def interpolation(t: Array, count: int) -> Array:
    """Matrix from values at Chebyshev points of [t[0], t[-1]] to those at the times t, by the barycentric formula."""
    apart = (2 * (t - t[0]) / (t[-1] - t[0]) - 1)[:, None] - chebpts1(count)
    weights = (-1.0) ** np.arange(count) * np.sin((np.arange(count) + 0.5) * np.pi / count)
    matrix = weights / np.where(apart == 0, 1.0, apart)
    hit = np.any(apart == 0, axis=1)
    matrix[hit] = apart[hit] == 0
    return matrix / np.sum(matrix, axis=1, keepdims=True)


def interpolate(matrix: Array, values: Array, out: Array, where: Array) -> bool:
    """Fill ``out[where]`` from the values of a block at a `sample`; whether it can be trusted to rounding."""
    count, size = len(values) - 3, len(where)
    nodes, known = np.split(values.reshape(len(values), -1), [count])
    if np.all(np.diff(where) == 1):
        block = out[where[0] : where[0] + size].reshape(size, -1)
        np.matmul(matrix, nodes, out=block)
    else:
        block = matrix @ nodes
        out[where] = block.reshape(-1, *out.shape[1:])
    norms = np.sqrt(np.concatenate([np.sum(part * part, axis=1) for part in (nodes, known)]))
    off = np.linalg.norm(block[[0, size // 2, -1]] - known, axis=1)
    return bool(norms.max() <= VARIATION * norms.min() and np.all(off <= AGREEMENT * norms[count:]))
