"""Is a start λ-balanced, and at which times is it asked for: what `lindyn_lite.riccati` checks first."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .growth import EPS, Array, Start, prepare
from .inputs import as_numpy, as_real
from .networks import as_teacher, as_weights

BALANCE_TOLERANCE = 1e-12
"""Largest ``‖W_2ᵀW_2 − W_1W_1ᵀ − λI‖`` of a λ-balanced start, relative to ``‖W_1‖² + ‖W_2‖²``."""


class NotBalancedError(ValueError):
    """The start is not λ-balanced; the message gives the deviation and the nearest λ."""


@dataclass(frozen=True)
class Problem:
    """Checked arguments, with the start in the eigenbasis of F."""

    W1: Array
    W2: Array
    S: Array
    lam: float
    start: Start


def as_problem(W1: ArrayLike, W2: ArrayLike, S: ArrayLike, lam: float | None) -> Problem:
    """Check a start and prepare it."""
    W1, W2 = as_weights([W1, W2])
    S = as_teacher(S, [W1, W2])
    for name, largest in (("the weights", max(np.abs(W1).max(), np.abs(W2).max())), ("S", np.abs(S).max())):
        if largest and not 1e-100 <= largest <= 1e100:
            raise ValueError(f"the largest entry of {name} must be 0 or from 1e-100 to 1e100, got {largest:.3g}")
    lam = balance(W1, W2, lam)
    start = prepare(W1, W2, S, lam) if lam >= 0 else prepare(W2.T, W1.T, S.T, -lam)
    return Problem(W1, W2, S, lam, start)


def balance(W1: Array, W2: Array, lam: float | None) -> float:
    """λ of a start, inferred as ``tr(W_2ᵀW_2 − W_1W_1ᵀ)/N_h`` if None; raises `NotBalancedError`."""
    difference = W2.T @ W2 - W1 @ W1.T
    size = float(np.sum(W1**2) + np.sum(W2**2))
    width = len(W1)
    nearest = float(np.trace(difference)) / width
    if abs(nearest) * width <= 4 * EPS * size:
        nearest = 0.0
    used = nearest if lam is None else as_real("lam", lam)
    if abs(used) > 1e150:  # its square would overflow
        deviation = abs(used)
    else:
        deviation = float(np.linalg.norm(difference - used * np.eye(width)))
    if not deviation <= BALANCE_TOLERANCE * size:
        raise NotBalancedError(
            f"the start is not λ-balanced: ‖W2ᵀW2 − W1W1ᵀ − λI‖ = {deviation:.3g} for λ = {used:.6g}, but it must be "
            f"at most {BALANCE_TOLERANCE * size:.3g} ({BALANCE_TOLERANCE:g} of ‖W1‖² + ‖W2‖²); "
            f"the nearest λ is {nearest!r}"
        )
    return used


def as_times(t: ArrayLike) -> Array:
    """Times, in any order, as a number or a non-empty vector of non-negative numbers; inf is a time."""
    times = as_numpy("t", t)
    if times.dtype.kind not in "iuf" or times.ndim > 1 or times.size == 0:
        raise ValueError(
            f"t must be a real number or a non-empty vector of them, got shape {times.shape} and dtype {times.dtype}"
        )
    times = times.astype(float)
    bad = times[~(times >= 0)]
    if bad.size:
        raise ValueError(f"t must be at least 0 (inf included), got {bad[0]}")
    return times
