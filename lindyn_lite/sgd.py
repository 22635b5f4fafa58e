"""Stochastic gradient descent over many replicas at once: minibatches of data, label noise, and Langevin noise.

Every simulator takes the learning rate ``eta`` > 0, the number of ``steps``, the source of randomness ``rng`` (a
`numpy.random.Generator`, so that the run can be repeated), the number of independent ``replicas``, and ``every``:
the start, each so many steps and the last step are kept, at the times ``t = ηk`` in units of 1/η. All raise
`ValueError` if a shape does not fit, an entry is not finite or a number is out of range, and
`flow.DivergenceError`, with the step, as soon as a replica overflows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from .balance import unchecked_balance
from .flow import DivergenceError
from .inputs import as_flag, as_generator, as_integer, as_matrix, as_number, as_numpy, real_arrays
from .networks import Weights, as_teacher, as_weights, pull_back, running_products

BLOCK = 1 << 16  # random numbers drawn at a time: many enough to hide the cost of a call, few enough for the cache


@dataclass(frozen=True)
class NetworkRuns:
    """Networks at the times ``t`` (shape ``(T,)``): one array per layer, shape ``(T, replicas, d_l, d_{l−1})``."""

    t: NDArray[np.float64]
    weights: Weights
    method: str

    @cached_property
    def function(self) -> NDArray[np.float64]:
        """The products ``W_L … W_1``, shape ``(T, replicas, d_L, d_0)``."""
        return running_products(self.weights)[-1]

    @property
    def balance(self) -> Weights:
        """``W_{l+1}ᵀW_{l+1} − W_lW_lᵀ`` for l = 1, …, L−1, shape ``(T, replicas, d_l, d_l)``."""
        return unchecked_balance(self.weights)


@dataclass(frozen=True)
class StateRuns:
    """Chains at the times ``t`` (shape ``(T,)``): ``states`` has the shape ``(T, replicas, …)``."""

    t: NDArray[np.float64]
    states: NDArray[np.float64]
    method: str


def as_replicas(weights: Sequence[ArrayLike], replicas: int | None) -> Weights:
    """Copies of the start of shape ``(replicas, d_l, d_{l−1})``, from one network or from a stack of them."""
    if isinstance(weights, list | tuple) and weights and all(np.ndim(layer) == 3 for layer in weights):
        counts = [len(layer) for layer in weights]
        needed = as_integer("replicas", counts[0] if replicas is None else replicas, 1)
        if set(counts) != {needed}:
            raise ValueError(f"every layer must hold one matrix for each of {needed} replicas, but they hold {counts}")
        return [np.stack(stack) for stack in zip(*map(as_weights, zip(*weights, strict=True)), strict=True)]
    count = as_integer("replicas", 1 if replicas is None else replicas, 1)
    return [np.repeat(layer[None], count, axis=0) for layer in as_weights(weights)]


def normals(rng: Generator, shape: tuple[int, ...]):
    """Endless standard normal arrays of a shape; the stream does not depend on the size of the blocks."""
    block = np.empty((max(1, BLOCK // int(np.prod(shape))), *shape))
    while True:
        yield from rng.standard_normal(out=block)


def run_chain(state: Weights, step: Callable[[], None], eta: float, steps: int, every: int, rng: Generator):
    """Call ``step``, which changes the arrays of ``state`` in place, so many times: times, and a history of each."""
    rng, steps, every = as_generator(rng), as_integer("steps", steps, 0), as_integer("every", every, 1)
    kept = np.unique(np.append(np.arange(0, steps + 1, every), steps))
    history = [np.empty((len(kept), *part.shape)) for part in state]
    slots = dict(zip(kept.tolist(), zip(*history, strict=True), strict=True))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(steps + 1):
            if k:
                step()
            if not all(np.isfinite(part).all() for part in state):
                lost = sum(~np.all([np.isfinite(part).reshape(len(part), -1).all(axis=1) for part in state], axis=0))
                where = f"step {k} (t = {eta * k:g}) left the finite numbers in {lost} of {len(state[0])} replicas"
                raise DivergenceError(f"{where}: take eta below {eta:g}")
            for past, part in zip(slots.get(k, ()), state, strict=False):
                past[...] = part
    return eta * kept, history


def train(layers: Weights, gradient, eta: float, steps: int, every: int, rng: Generator, method: str):
    """Steps ``W_l ← W_l − η g_l``, where ``gradient`` draws a gradient with respect to the product."""

    def step():
        below = running_products(layers)
        for layer, slope in zip(layers, pull_back(layers, below, gradient(below[-1])), strict=True):
            layer -= eta * slope

    return NetworkRuns(*run_chain(layers, step, eta, steps, every, rng), f"{method}, eta={eta:g}")


def minibatch(
    weights: Sequence[ArrayLike],
    X: ArrayLike,
    Y: ArrayLike,
    eta: float,
    batch: int,
    steps: int,
    rng: Generator,
    replicas: int | None = None,
    every: int = 1,
    replace: bool = False,
) -> NetworkRuns:
    """Minibatch SGD on ``½ mean‖y − Wx‖²``: ``W_l ← W_l − η ∂/∂W_l ½ mean_{batch}‖y − W_L … W_1 x‖²``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` before the first step; or a start for each replica, ``(replicas, d_l, d_{l−1})``.
    X, Y
        Inputs ``(samples, d_0)`` and targets ``(samples, d_L)``, one sample a row.
    batch
        Samples in a batch. Every step and replica draws its own from all samples, independently of earlier steps.
    replace
        Draw the samples of a batch with replacement. Without, a batch of all samples is gradient descent.

    Notes
    -----
    The gradient of b samples of P has the covariance C/b with replacement and ``C(P − b)/(b(P − 1))`` without, C
    that of one sample. The other arguments and the errors: see the module. Source: exercise 7.1.
    """
    layers, eta = as_replicas(weights, replicas), as_number("the learning rate eta", eta)
    X, Y, batch = as_matrix("X", X), as_matrix("Y", Y), as_integer("batch", batch, 1)
    replace = as_flag("replace", replace)
    samples, count, needed = len(X), len(layers[0]), (layers[0].shape[2], layers[-1].shape[1])
    if len(Y) != samples or (X.shape[1], Y.shape[1]) != needed:
        expected = f"as many rows and {needed[0]} and {needed[1]} columns for this network"
        raise ValueError(f"X and Y must have {expected}, got shapes {X.shape} and {Y.shape}")
    if batch > samples and not replace:
        raise ValueError(f"without replacement batch must be at most {samples}, the number of samples, got {batch}")

    def gradient(W):
        if replace:
            chosen = rng.integers(0, samples, (count, batch))
        elif batch < samples:  # where the smallest of random numbers are
            chosen = rng.random((count, samples)).argpartition(batch, axis=1)[:, :batch]
        else:
            chosen = slice(None)
        x, y = X[chosen], Y[chosen]
        return np.swapaxes(x @ np.swapaxes(W, 1, 2) - y, 1, 2) @ x / batch

    return train(layers, gradient, eta, steps, every, rng, f"minibatches of {batch} of {samples}")


def label_noise(
    weights: Sequence[ArrayLike],
    S: ArrayLike,
    eta: float,
    batch: int,
    sigma: float,
    steps: int,
    rng: Generator,
    replicas: int | None = None,
    every: int = 1,
) -> NetworkRuns:
    """Online SGD with noisy labels: every step a fresh batch ``x ~ N(0, I)``, ``y = Sx + σξ``, ``ξ ~ N(0, I)``.

    Parameters
    ----------
    weights, S
        Start, as for `minibatch`, and teacher, shape ``(d_L, d_0)``.
    batch, sigma
        Fresh samples in a step, and the standard deviation of the noise on each label, at least 0.

    Notes
    -----
    A fitted network stays where it is if sigma = 0; else see `balance.label_noise_drift`. The other arguments and
    the errors: see the module. Source: exercise 7.1; "Does λ survive SGD?" in the notes on arXiv 2409.14623.
    """
    layers, eta = as_replicas(weights, replicas), as_number("the learning rate eta", eta)
    S, sigma = as_teacher(S, [layer[0] for layer in layers]), as_number("sigma", sigma, strict=False)
    batch, inputs = as_integer("batch", batch, 1), S.shape[1]
    draws = normals(rng, (len(layers[0]), batch, sum(S.shape)))

    def gradient(W):
        draw = next(draws)
        x, noise = draw[..., :inputs], draw[..., inputs:]
        return np.swapaxes(x @ np.swapaxes(W - S, 1, 2) - sigma * noise, 1, 2) @ x / batch

    return train(layers, gradient, eta, steps, every, rng, f"label noise, sigma={sigma:g}, batches of {batch}")


def langevin(
    gradient: Callable[[NDArray[np.float64]], ArrayLike],
    start: ArrayLike,
    eta: float,
    steps: int,
    rng: Generator,
    *,
    sigma: float | None = None,
    temperature: float | None = None,
    replicas: int | None = None,
    every: int = 1,
) -> StateRuns:
    """The chain ``θ ← θ − η(∇𝓛(θ) + ξ)``, ``ξ ~ N(0, σ²I)``, with the temperature ``T = ησ²/2``.

    Parameters
    ----------
    gradient
        ``∇𝓛`` for all replicas at once: from ``(replicas, …)`` to the same shape. Its argument is read-only.
    start
        One state, with ``replicas``; else the states of all replicas, shape ``(replicas, …)``.
    sigma, temperature
        One of them, at least 0. In a time t the noise adds the variance ``ησ²t = 2Tt`` to every coordinate.

    Notes
    -----
    10 000 scalar replicas take 10 000 steps in two seconds. The rest: see the module. Source: exercise 7.1.
    """
    eta = as_number("the learning rate eta", eta)
    if (sigma is None) == (temperature is None):
        raise ValueError(f"give either sigma or temperature, got sigma={sigma} and temperature={temperature}")
    T = None if temperature is None else as_number("temperature", temperature, strict=False)
    sigma = as_number("sigma", sigma, strict=False) if T is None else np.sqrt(2 * T / eta)
    if not callable(gradient):
        raise ValueError(f"gradient must be a function of the states of all replicas, got {gradient!r}")
    theta = np.array(real_arrays(start=start)[0])
    if replicas is not None:
        theta = np.repeat(theta[None], as_integer("replicas", replicas, 1), axis=0)
    if theta.ndim == 0:
        raise ValueError(f"start must be one state with replicas, or (replicas, …) of them; got {start!r}")
    noise, work, shown = normals(rng, theta.shape), np.empty_like(theta), theta.view()
    shown.flags.writeable = False

    def step():
        slope = as_numpy("the gradient", gradient(shown))
        if slope.dtype.kind not in "biuf" or slope.shape != theta.shape:
            got = f"dtype {slope.dtype} and shape {slope.shape}"
            raise ValueError(f"gradient must keep the shape {theta.shape} and be real, but returned {got}")
        if lost := np.isnan(slope).sum():
            raise ValueError(f"the gradient is NaN in {lost} of {slope.size} entries, at finite states")
        np.subtract(theta, np.multiply(slope, eta, out=work), out=theta)
        if sigma:
            np.subtract(theta, np.multiply(next(noise), eta * sigma, out=work), out=theta)

    times, (states,) = run_chain([theta], step, eta, steps, every, rng)
    return StateRuns(times, states, f"Langevin, eta={eta:g}, sigma={sigma:g}")
