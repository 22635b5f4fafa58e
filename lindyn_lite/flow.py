"""Numerical training: gradient flow and gradient descent for linear networks of any depth."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DOP853

from .inputs import as_integer, as_number, as_times, as_tolerance
from .networks import Weights, as_teacher, as_weights, unchecked_gradients
from .trajectory import Trajectory

MAX_STEPS = 200_000
"""Most steps of one integration: near a minimum an explicit method needs about t times the largest curvature."""


class IntegrationError(RuntimeError):
    """The solver could not reach the last time; the message says where it stopped."""


class DivergenceError(RuntimeError):
    """Gradient descent left the finite numbers: the step is too large for the curvature."""


@dataclass(frozen=True, kw_only=True)
class WeightTrajectory(Trajectory):
    """A `lindyn_lite.trajectory.Trajectory` with the weights themselves.

    Attributes
    ----------
    weights
        One array per layer, shape ``(T, d_l, d_{l−1})``.
    """

    weights: Weights


def with_weights(t: NDArray[np.float64], weights: Weights, M: NDArray[np.float64], method: str) -> WeightTrajectory:
    """A trajectory from the history of its layers, each of shape ``(T, d_l, d_{l−1})``."""
    first, last = weights[0], weights[-1]
    return WeightTrajectory(
        t=t,
        weights=weights,
        function=functools.reduce(lambda product, layer: layer @ product, weights),
        input_similarity=np.swapaxes(first, 1, 2) @ first,
        output_similarity=last @ np.swapaxes(last, 1, 2),
        teacher=M,
        method=method,
    )


def split(theta: NDArray[np.float64], layers: Weights) -> Weights:
    """The layers in a flat parameter vector, or in each of the rows of ``(T, p)`` parameters."""
    ends = np.cumsum([layer.size for layer in layers])[:-1]
    parts = np.split(theta, ends, axis=-1)
    return [part.reshape(*theta.shape[:-1], *layer.shape) for part, layer in zip(parts, layers, strict=True)]


def gradient_flow(weights: Sequence[ArrayLike], M: ArrayLike, t: ArrayLike, rtol: float = 1e-12) -> WeightTrajectory:
    """Gradient flow ``Ẇ_l = −∂𝓛/∂W_l``, integrated with an eighth-order Runge-Kutta method (DOP853).

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` at t = 0.
    M
        Teacher, shape ``(d_L, d_0)``.
    t
        Times in units of 1/η, increasing; the integration always starts at 0.
    rtol
        Relative tolerance of a step. The absolute tolerance of a weight is 1e-3 of it times the largest entry, at the
        time, of its row or of its column, whichever is smaller (and at most 1). So small weights are followed while
        they grow on a plateau, also beside large ones, where scipy's default of 1e-6 would take them for zero.

    Returns
    -------
    WeightTrajectory
        At the times t.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite or larger than 1e100, t is negative or decreases, rtol is
        impossible, or a weight is so small beside its velocity that their ratio leaves the range of float64.
    IntegrationError
        If the solver gives up, or needs more than `MAX_STEPS` steps. For long times and stiff starts of two layers see
        `lindyn_lite.riccati.solve`.

    Notes
    -----
    In float64 a mode in rotated bases is known to 1e-16 of the largest weight beside it only, and on a plateau that
    error grows with the mode: for two layers `lindyn_lite.riccati.solve` does not have this limit.
    Source: exercise 3.1 and 3.7.
    """
    layers = as_weights(weights)
    M, times, rtol = as_teacher(M, layers), as_times(t), as_tolerance(rtol)
    start = np.concatenate([layer.ravel() for layer in layers])

    def velocity(_, theta):
        return -np.concatenate([g.ravel() for g in unchecked_gradients(split(theta, layers), M)])

    def atol(theta):
        return 1e-3 * rtol * np.concatenate([scales(layer).ravel() for layer in split(theta, layers)])

    least = atol(start)
    refuse_extremes(start, M, velocity, least)
    states = integrate(velocity, start, times, rtol, atol)
    method = f"DOP853, rtol={rtol:g}, atol={least.min():.3g}"
    if least.max() > least.min():
        method += f" to {least.max():.3g} at the start"
    return with_weights(times, split(states, layers), M, method)


def scales(layer: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each weight the largest entry of its row or of its column, whichever is smaller but not zero; at most 1."""
    size = np.abs(layer)
    across = np.minimum(size.max(axis=1, keepdims=True), size.max(axis=0, keepdims=True))
    return np.minimum(np.where(across > 0, across, size.max() or 1.0), 1.0)


def refuse_extremes(start: NDArray[np.float64], M: NDArray[np.float64], velocity, atol: NDArray[np.float64]) -> None:
    """Raise for numbers that the solver could not square."""
    largest = max(np.abs(start).max(), np.abs(M).max())
    if largest > 1e100:
        raise ValueError(f"weights and teacher must be at most 1e100 in size, got {largest:.3g}: rescale them")
    with np.errstate(all="ignore"):
        speed = np.abs(velocity(0, start))
        ratio = np.max(speed / atol)
    if not ratio < 1e150 or atol.min() < 1e-300:
        raise ValueError(
            f"weights from {np.abs(start[start != 0]).min():.3g} to {largest:.3g} that start with a velocity of up to "
            f"{speed.max():.3g} are too far apart for the solver: rescale them, or make the smallest zero"
        )


def integrate(velocity, start: NDArray[np.float64], times: NDArray[np.float64], rtol: float, atol: Callable):
    """Solve ``ẏ = velocity(t, y)`` from t = 0, stepping exactly onto every time: shape ``(T, p)``.

    ``atol`` gives the absolute tolerance of a step from the state before it. The solver's own interpolation between its
    steps is of lower order than the steps, and would cost two to three digits.
    """
    now, state, step, steps = 0.0, start, None, 0
    states = np.empty((len(times), len(start)))
    for k, end in enumerate(times):
        if end > now:
            first = None if step is None else min(step, end - now)
            solver = DOP853(velocity, now, state, end, rtol=rtol, atol=atol(state), first_step=first)
            while solver.status == "running":
                solver.atol = atol(solver.y)
                message, steps = solver.step(), steps + 1
                if steps > MAX_STEPS:
                    message = f"{MAX_STEPS} steps were not enough, the flow is too stiff or too long"
                    solver.status = "failed"
                elif steps % 1000 == 0 and times[-1] - solver.t > 1000 * MAX_STEPS * solver.h_abs:
                    message = f"steps of {solver.h_abs:.2g} would never arrive, the flow is too stiff or too long"
                    solver.status = "failed"
                if solver.status == "failed" or not np.isfinite(solver.h_abs):
                    raise IntegrationError(f"the flow stopped at t = {solver.t:.6g} of {times[-1]:.6g}: {message}")
            now, state = end, solver.y
            step = solver.h_abs  # what the solver would try next
        states[k] = state
    return states


def gradient_descent(
    weights: Sequence[ArrayLike], M: ArrayLike, eta: float, steps: int, every: int = 1
) -> WeightTrajectory:
    """Gradient descent ``W_l ← W_l − η ∂𝓛/∂W_l``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` before the first step.
    M
        Teacher, shape ``(d_L, d_0)``.
    eta
        Learning rate, positive. After k steps the time is ``t = ηk``.
    steps
        Number of steps.
    every
        Keep every so many steps; the start and the last step are always kept.

    Returns
    -------
    WeightTrajectory
        At the kept steps.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, ``eta`` is not positive, ``steps`` is negative, or
        ``every`` is less than 1.
    DivergenceError
        If the weights exceed 1e100.

    Notes
    -----
    Source: the exercises, conventions and 3.2.
    """
    layers = as_weights(weights)
    M = as_teacher(M, layers)
    eta = as_number("the learning rate eta", eta)
    steps, every = as_integer("steps", steps, 0), as_integer("every", every, 1)
    kept, times = [layers], [0.0]
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, steps + 1):
            layers = [W - eta * g for W, g in zip(layers, unchecked_gradients(layers, M), strict=True)]
            if k % every == 0 or k == steps:
                kept.append(layers)
                times.append(eta * k)
                if not all(np.abs(W).max() < 1e100 for W in layers):
                    raise DivergenceError(
                        f"gradient descent diverged within {k} steps of eta = {eta:g}: take a smaller one"
                    )
    history = [np.array(stack) for stack in zip(*kept, strict=True)]
    return with_weights(np.array(times), history, M, f"gradient descent, eta={eta:g}")
