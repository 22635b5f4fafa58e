"""The exact dynamics of a two-layer linear network from any λ-balanced start.

``Q = [W_1ᵀ; W_2]`` with ``W_2ᵀW_2 − W_1W_1ᵀ = λI`` follows ``Q' = (F − QQᵀ/2) Q``, so that the Gram matrix obeys the
matrix Riccati equation ``(QQᵀ)' = F QQᵀ + QQᵀ F − (QQᵀ)²``, whose solution is in closed form.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from .dense_output import blocks
from .growth import Array
from .hidden_rotation import transport
from .inputs import as_integer
from .lambda_start import BALANCE_TOLERANCE, NotBalancedError, Problem, as_problem, as_times
from .trajectory import Trajectory

__all__ = [
    "BALANCE_TOLERANCE",
    "NotBalancedError",
    "Solution",
    "StableManifoldWarning",
    "solve",
    "stream",
    "weights",
]


class StableManifoldWarning(UserWarning):
    """The start lies, to within rounding, on the stable manifold of a saddle, and the exact flow ends there."""


@dataclass(frozen=True, kw_only=True)
class Solution(Trajectory):
    """The exact solution at the times t: a `lindyn_lite.trajectory.Trajectory`; for a scalar t without time axis.

    Attributes
    ----------
    lam
        λ, as given or inferred.
    on_stable_manifold
        True if the start lies, to within rounding, on the stable manifold of a saddle. The solution then is the exact
        one of the manifold: it ends at the saddle, whereas a simulation leaves it by rounding.
    """

    lam: float
    on_stable_manifold: bool


def solve(W1: ArrayLike, W2: ArrayLike, S: ArrayLike, t: ArrayLike, lam: float | None = None) -> Solution:
    """The Gram matrix of a λ-balanced start under gradient flow, in closed form.

    ``QQᵀ(t) = e^{Ft}Q_0 [I + Q_0ᵀ(∫_0^t e^{2Fs}ds)Q_0]⁻¹ Q_0ᵀe^{Ft}`` with ``Q = [W_1ᵀ; W_2]``,
    ``F = [[−λ/2 I, Sᵀ], [S, λ/2 I]]``, for any λ, widths and rank of S.

    Parameters
    ----------
    W1, W2
        The start, shapes ``(Nh, Ni)`` and ``(No, Nh)``, with ``W_2ᵀW_2 − W_1W_1ᵀ = λI``.
    S
        The teacher, shape ``(No, Ni)``.
    t
        Times in units of 1/η, a number or a vector in any order, from 0 to inf included.
    lam
        λ; ``None`` takes ``tr(W_2ᵀW_2 − W_1W_1ᵀ)/N_h``, or 0 where that is rounding.

    Returns
    -------
    Solution
        ``.function (T, No, Ni)``, ``.input_similarity (T, Ni, Ni)``, ``.output_similarity (T, No, No)``, without T
        for a scalar t (the simulators of `flow` keep it); also ``.t``, ``.lam`` and ``.on_stable_manifold``.

    Raises
    ------
    NotBalancedError
        If the start deviates from λ-balance by more than `BALANCE_TOLERANCE`; a `ValueError`.
    ValueError
        If the shapes do not fit, an entry is not real and finite, a time is negative or NaN, or the largest entry of
        the weights or of S is neither 0 nor from 1e-100 to 1e100 (squares would leave the range of float64).

    Warns
    -----
    StableManifoldWarning
        Once a call, if the start is on the stable manifold of a saddle: for some singular value s > 0 of S, the rows
        of ``O_+ᵀQ_0`` of the n modes with singular values ≥ s have rank below ``min(n, N_h)``, to within rounding (the
        row's own, entry by entry). The flow then ends above the least loss that rank N_h allows. For a width of at
        least rank S this says that ``B = O_+ᵀQ_0`` is singular on the modes with s > 0. It never happens for λ ≠ 0 in
        square nets, and happens for half of random starts with λ = 0.

    Notes
    -----
    Each block is accurate to rounding relative to its own norm, times ``‖Q_0‖/σ_min(B)`` where a start is close to
    a stable manifold. Singular values of S within ``max(N_i, N_o) ε s_1`` count as equal, and those below it as zero:
    where a bottleneck has to choose between such modes the error is that times t, and the teacher ``diag(1e16, 1)``
    has rank one. A start that is balanced within the tolerance only, and not to rounding, is not reported when it lies
    as close to a stable manifold as to balance; the solution is then that of a balanced start nearby.
    Many times in an interval of length 1/s_λ are interpolated from the closed form at some thirty of them, to rounding
    (see `lindyn_lite.dense_output`). Memory is up to twice that of the result; see `stream` for more times than fit.
    Source: theorem 4.3 of "From Lazy to Rich" (arXiv 2409.14623), without its assumption on N_h.

    Examples
    --------
    >>> solve([[0.1]], [[0.1]], [[1.0]], [0, 2, float("inf")]).function[:, 0, 0].round(6).tolist()
    [0.01, 0.355461, 1.0]
    """
    problem, times = as_problem(W1, W2, S, lam), as_times(t)
    _warn(problem)
    result = _solution(problem, np.atleast_1d(times))
    if times.ndim == 0:
        names = ("t", "function", "input_similarity", "output_similarity")
        result = replace(result, **{name: getattr(result, name)[0] for name in names})
    return result


def stream(
    W1: ArrayLike, W2: ArrayLike, S: ArrayLike, t: ArrayLike, lam: float | None = None, chunk: int | None = None
) -> Iterator[Solution]:
    """`solve`, a portion of the times after the other, for runs whose whole result does not fit in memory.

    Parameters
    ----------
    W1, W2, S, t, lam
        As in `solve`; a scalar t is one portion of one time.
    chunk
        Times in a portion; default: as many as fill 128 MB.

    Yields
    ------
    Solution
        For consecutive portions of t, in the order of t.

    Raises
    ------
    ValueError
        As `solve`, and if ``chunk`` is not a positive integer; at the call, before the first portion.
    """
    problem, times = as_problem(W1, W2, S, lam), np.atleast_1d(as_times(t))
    if chunk is None:
        Ni, No = problem.W1.shape[1], len(problem.W2)
        chunk = max(1, 2**24 // (Ni * Ni + Ni * No + No * No))
    chunk = as_integer("chunk", chunk, 1)
    _warn(problem)
    return (_solution(problem, times[i : i + chunk]) for i in range(0, len(times), chunk))


def weights(W1: ArrayLike, W2: ArrayLike, S: ArrayLike, t: ArrayLike, lam: float | None = None) -> tuple[Array, Array]:
    """The weights themselves, ``Q(t) = [W_1ᵀ; W_2] = e^{Ft}Q_0X(t)``, ``X' = −½M⁻¹M'X``, X(0) = I.

    Parameters
    ----------
    W1, W2, S, lam
        As in `solve`.
    t
        Finite times, a number or a vector in any order.

    Returns
    -------
    W1, W2 : numpy.ndarray
        Shapes ``(T, Nh, Ni)`` and ``(T, No, Nh)``, without T for a scalar t.

    Raises
    ------
    ValueError
        As `solve`, and for t = inf.

    Warns
    -----
    StableManifoldWarning
        As `solve`.

    Notes
    -----
    Up to a rotation of the hidden layer the weights are the closed form of `solve`. The rotation is carried along it in
    extrapolated steps of relative error 1e-13 (see `lindyn_lite.hidden_rotation`), which never leave the closed form.
    Source: theorem 4.3 of "From Lazy to Rich" (arXiv 2409.14623).
    """
    problem, times = as_problem(W1, W2, S, lam), as_times(t)
    if np.any(np.isinf(times)):
        raise ValueError("t must be finite for the weights, got inf: for the limit of their products use solve")
    _warn(problem)
    distinct, place = np.unique(times, return_inverse=True)
    flipped = problem.lam < 0
    layers = [problem.W1, problem.W2.T][:: -1 if flipped else 1]
    states = transport(problem.start, np.concatenate(layers, axis=1), distinct)[place.reshape(times.shape)]
    first, second = np.split(states, [layers[0].shape[1]], axis=-1)
    if flipped:
        first, second = second, first
    return first, np.swapaxes(second, -1, -2)


def _solution(problem: Problem, t: Array) -> Solution:
    """The solution at a vector of times."""
    K1, P, K2 = blocks(problem, t)
    return Solution(
        t=t,
        function=P,
        input_similarity=K1,
        output_similarity=K2,
        teacher=problem.S,
        method=f"exact, λ={problem.lam:.10g}",
        lam=problem.lam,
        on_stable_manifold=problem.start.on_stable_manifold,
    )


def _warn(problem: Problem) -> None:
    """Warn, in the name of the caller of a public function, of a start on a stable manifold."""
    if problem.start.on_stable_manifold:
        warnings.warn(
            "the start lies, to within rounding, on the stable manifold of a saddle: O_+ᵀQ_0 lacks a mode of S that "
            "this width can learn, so the exact flow (returned) never learns it; a simulation may, by rounding",
            StableManifoldWarning,
            stacklevel=3,
        )
