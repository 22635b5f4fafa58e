"""Numerical training: gradient flow and gradient descent for linear networks of any depth."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DOP853

from .networks import Weights, as_integer, as_teacher, as_vector, as_weights, unchecked_gradients


class IntegrationError(RuntimeError):
    """The solver could not reach the last time; the message says where it stopped."""


class DivergenceError(RuntimeError):
    """Gradient descent left the finite numbers: the step is too large for the curvature."""


@dataclass(frozen=True)
class Trajectory:
    """A training run.

    Attributes
    ----------
    t
        Times in units of 1/η, shape ``(T,)``.
    weights
        One array per layer, shape ``(T, d_l, d_{l−1})``.
    teacher
        ``M``, shape ``(d_L, d_0)``.
    method
        How it was computed, with tolerances or step size.
    """

    t: NDArray[np.float64]
    weights: Weights
    teacher: NDArray[np.float64]
    method: str

    @cached_property
    def function(self) -> NDArray[np.float64]:
        """What the network computes, ``W(t) = W_L … W_1``, shape ``(T, d_L, d_0)``."""
        total = self.weights[0]
        for layer in self.weights[1:]:
            total = layer @ total
        return total

    @property
    def loss(self) -> NDArray[np.float64]:
        """``½‖M − W(t)‖²``, shape ``(T,)``."""
        return 0.5 * np.sum((self.teacher - self.function) ** 2, axis=(1, 2))

    @property
    def input_similarity(self) -> NDArray[np.float64]:
        """Gram matrix of the first layer, ``W_1ᵀW_1``, shape ``(T, d_0, d_0)``."""
        return np.swapaxes(self.weights[0], 1, 2) @ self.weights[0]

    @property
    def output_similarity(self) -> NDArray[np.float64]:
        """Gram matrix of the last layer, ``W_L W_Lᵀ``, shape ``(T, d_L, d_L)``."""
        return self.weights[-1] @ np.swapaxes(self.weights[-1], 1, 2)


def as_times(t: ArrayLike) -> NDArray[np.float64]:
    """Times as a vector of finite, non-negative numbers that do not decrease."""
    times = as_vector("t", t)
    if times[0] < 0:
        raise ValueError(f"t must not be negative, got t[0] = {times[0]:g}")
    if np.any(back := np.diff(times) < 0):
        k = int(np.argmax(back))
        raise ValueError(f"t must not decrease, got t[{k}] = {times[k]:g} before t[{k + 1}] = {times[k + 1]:g}")
    return times


def split(theta: NDArray[np.float64], layers: Weights) -> Weights:
    """The layers in a flat parameter vector, or in each of the rows of ``(T, p)`` parameters."""
    ends = np.cumsum([layer.size for layer in layers])[:-1]
    parts = np.split(theta, ends, axis=-1)
    return [part.reshape(*theta.shape[:-1], *layer.shape) for part, layer in zip(parts, layers, strict=True)]


def gradient_flow(weights: Sequence[ArrayLike], M: ArrayLike, t: ArrayLike, rtol: float = 1e-12) -> Trajectory:
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
        Relative tolerance of a step. The absolute tolerance is 1e-3 of it times the smallest layer's norm,
        so that small weights are followed while they grow on a plateau, where scipy's default of 1e-6 would
        take them for zero.

    Returns
    -------
    Trajectory
        At the times t.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, t is negative or decreases, or rtol is impossible.
    IntegrationError
        If the solver gives up.

    Notes
    -----
    Source: exercise 3.1 and 3.7.
    """
    layers = as_weights(weights)
    M, times = as_teacher(M, layers), as_times(t)
    if not 100 * np.finfo(float).eps <= rtol < 1:
        raise ValueError(f"rtol must lie between {100 * np.finfo(float).eps:.1e} and 1, got {rtol}")
    start = np.concatenate([layer.ravel() for layer in layers])
    sizes = [norm for norm in (np.linalg.norm(layer) for layer in layers) if norm > 0]
    atol = 1e-3 * rtol * min([1.0, *sizes])

    def velocity(_, theta):
        return -np.concatenate([g.ravel() for g in unchecked_gradients(split(theta, layers), M)])

    states = integrate(velocity, start, times, rtol, atol)
    return Trajectory(times, split(states, layers), M, f"DOP853, rtol={rtol:g}, atol={atol:.3g}")


def integrate(velocity, start: NDArray[np.float64], times: NDArray[np.float64], rtol: float, atol: float):
    """Solve ``ẏ = velocity(t, y)`` from t = 0, stepping exactly onto every time: shape ``(T, p)``.

    The solver's own interpolation between its steps is of lower order than the steps, and would cost two to
    three digits.
    """
    now, state, step = 0.0, start, None
    states = np.empty((len(times), len(start)))
    for k, end in enumerate(times):
        if end > now:
            first = None if step is None else min(step, end - now)
            solver = DOP853(velocity, now, state, end, rtol=rtol, atol=atol, first_step=first)
            while solver.status == "running":
                message = solver.step()
                if solver.status == "failed":
                    raise IntegrationError(f"the flow stopped at t = {solver.t:.6g} of {times[-1]:.6g}: {message}")
            now, state = end, solver.y
            step = solver.h_abs  # what the solver would try next
        states[k] = state
    return states


def gradient_descent(weights: Sequence[ArrayLike], M: ArrayLike, eta: float, steps: int, every: int = 1) -> Trajectory:
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
    Trajectory
        At the kept steps.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, ``eta`` is not positive, ``steps`` is negative, or
        ``every`` is less than 1.
    DivergenceError
        If the weights overflow.

    Notes
    -----
    Source: the exercises, conventions and 3.2.
    """
    layers = as_weights(weights)
    M = as_teacher(M, layers)
    if not (np.isfinite(eta) and eta > 0):
        raise ValueError(f"the learning rate eta must be positive and finite, got {eta}")
    steps, every = as_integer("steps", steps, 0), as_integer("every", every, 1)
    kept, times = [layers], [0.0]
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, steps + 1):
            layers = [W - eta * g for W, g in zip(layers, unchecked_gradients(layers, M), strict=True)]
            if k % every == 0 or k == steps:
                kept.append(layers)
                times.append(eta * k)
                if not all(np.all(np.isfinite(W)) for W in layers):
                    raise DivergenceError(
                        f"gradient descent diverged within {k} steps of eta = {eta:g}: take a smaller one"
                    )
    history = [np.array(stack) for stack in zip(*kept, strict=True)]
    return Trajectory(np.array(times), history, M, f"gradient descent, eta={eta:g}")
