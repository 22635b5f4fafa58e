"""Stationary laws of noisy training: exact variances, partition functions, occupations and passage times.

dx = −V′dt + √(2T) dW has the law ``e^{−V/T}/Z``, β = 1/T; SGD with gradient noise of variance σ² has T = ησ²/2 as
η → 0, with t in units of 1/η. Source of all: exercises 7.1 and 7.2. Arguments of closed forms broadcast. Input that is
not real and finite raises `ValueError`, a missing law `NoStationaryLawError`. The laws of a one-dimensional potential
are those of `lindyn_lite.potential` and can be called from here.
"""

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike
from scipy.special import k0e

from .inputs import Floats, real_arrays, refuse_overflow
from .potential import NoStationaryLawError, boltzmann_density, mean_passage_time, well_occupation

__all__ = [
    "NoStationaryLawError",
    "boltzmann_density",
    "box_partition_function",
    "log_partition_function",
    "mean_passage_time",
    "partition_function",
    "product_density",
    "quadratic_variance",
    "weight_density",
    "well_occupation",
]

NODES, WEIGHTS = legendre.leggauss(24)


def positive(**values: tuple[Floats, str]) -> None:
    """Raise `NoStationaryLawError`, with the reason given, for an array that is not positive."""
    for name, (array, reason) in values.items():
        if array.min() <= 0:
            raise NoStationaryLawError(f"{name} must be positive, got {array.min():g}: {reason}")


def moderate(least: float = 1e-40, **values: Floats) -> None:
    """Raise for an entry that is not of a size from ``least`` to 1e40: its powers would leave the range of float64."""
    for name, array in values.items():
        size = np.abs(array)
        if np.any(bad := (size < least) | (size > 1e40)):
            raise ValueError(
                f"{name} must be from {least:g} to 1e40 in size, got {size[bad][0]:g}: rescale the problem"
            )


@refuse_overflow
def quadratic_variance(curvature: ArrayLike, eta: ArrayLike, sigma: ArrayLike) -> Floats:
    """The stationary variance ``ησ² / (h(2 − ηh))`` of ``x ← x − η(h x + ξ)``, Var ξ = σ²: exact at any step size.

    Parameters
    ----------
    curvature, eta, sigma
        h > 0, η > 0 and σ ≥ 0. (The Boltzmann law has ησ²/2h, smaller by the factor 1 − ηh/2.)

    Raises
    ------
    NoStationaryLawError
        If h ≤ 0, η ≤ 0 or ηh ≥ 2: the factor 1 − ηh of each step does not contract.
    """
    h, eta, sigma = real_arrays({"sigma": 0}, curvature=curvature, eta=eta, sigma=sigma)
    positive(curvature=(h, "nothing pulls x back"), eta=(eta, "a run that does not move keeps its start"))
    moderate(curvature=h, eta=eta)
    moderate(0, sigma=sigma)
    worst = (eta * h).max()
    if worst >= 2:
        raise NoStationaryLawError(
            f"eta * curvature must be below 2, got {worst:g}, {worst - 2:g} too much: each step multiplies x by "
            f"1 - eta * curvature = {1 - worst:g} and the variance grows without limit"
        )
    return (eta * sigma**2 / (h * (2 - eta * h)))[()]


def two_weights(s: ArrayLike, beta: ArrayLike, weight_decay: ArrayLike, **others: ArrayLike) -> list[Floats]:
    """Checked arguments of the law of two weights, then its `excess_integral`, found before the others broadcast."""
    s, beta, kappa = real_arrays(s=s, beta=beta, weight_decay=weight_decay)
    flat = "the loss is flat along w1 w2 = s and Z over |w| < R diverges like 4 sqrt(2 pi T) ln R"
    positive(beta=(beta, "it is an inverse temperature"), weight_decay=(kappa, flat))
    moderate(beta=beta, weight_decay=kappa)
    moderate(0, s=s)
    integral = excess_integral(np.abs(s), beta, kappa)
    return real_arrays(s=s, beta=beta, weight_decay=kappa, **others, integral=integral)


def panels(edges: Floats) -> tuple[Floats, Floats]:
    """Nodes between consecutive edges, shape ``(panels, ORDER)``, and weights of the same shape."""
    half = np.diff(edges)[:, None] / 2
    return edges[:-1, None] + half * (1 + NODES), half * WEIGHTS


def excess(square: Floats, s: Floats, kappa: Floats) -> Floats:
    """``κ² S + s²/(1+S)`` minus its least value, which is κ(2s − κ) for s > κ, else s²; S = w²/κ."""
    above = (kappa * (1 + square) - s) ** 2
    return np.where(s > kappa, above, square * ((kappa - s) * (kappa + s) + kappa**2 * square)) / (1 + square)


@np.vectorize
def excess_integral(s: float, beta: float, kappa: float) -> float:
    """``∫ exp(−β excess(sinh²θ)/2) dθ`` over R, s ≥ 0, on panels growing from the width of the peak to length 1."""
    peak = np.arcsinh(np.sqrt(max(s - kappa, 0) / kappa))
    far = np.arccosh(np.sqrt(4 * max(s / kappa, 1) + 3200 / (beta * kappa**2)))
    width = 1 / (1 + 2 * np.sqrt(beta * kappa * abs(s - kappa)) + np.sqrt(np.sqrt(beta) * kappa))
    steps = width * 2.0 ** np.arange(-1, np.ceil(-np.log2(width)) + 1)
    ladder = np.concatenate([[0], steps, np.arange(steps[-1] + 1, far + 1)])
    y, weights = panels(np.unique(np.clip(np.concatenate([-ladder, ladder]), -peak, far - peak)))
    split = (kappa * np.sinh(y) * np.sinh(2 * peak + y) / np.cosh(peak + y)) ** 2  # no cancellation at the peak
    return 2 * np.sum(weights * np.exp(-beta / 2 * (split if s > kappa else excess(np.sinh(y) ** 2, s, kappa))))


@refuse_overflow
def log_partition_function(s: ArrayLike, beta: ArrayLike, weight_decay: ArrayLike) -> Floats:
    """``ln Z`` of ``Z = ∫ exp(−β[½(s − w1 w2)² + ½κ(w1² + w2²)]) dw1 dw2`` over the plane.

    Parameters
    ----------
    s, beta, weight_decay
        Teacher (any sign), inverse temperature β > 0 and κ > 0.

    Raises
    ------
    NoStationaryLawError
        If weight_decay ≤ 0 or beta ≤ 0: the integral diverges.

    Notes
    -----
    With w1 = √κ sinh θ, ``Z = √(2π/β) ∫ exp(−β/2 [κ² sinh²θ + s²/cosh²θ]) dθ``, a smooth integrand; with p = w1 w2,
    ``Z = 2 ∫ e^{−β(s−p)²/2} K_0(βκ|p|) dp``; at s = 0, ``√(2π/β) e^{βκ²/4} K_0(βκ²/4)``.
    """
    s, beta, kappa, integral = two_weights(s, beta, weight_decay)
    least = np.where(np.abs(s) > kappa, kappa * (2 * np.abs(s) - kappa), s**2)
    return (np.log(2 * np.pi / beta) / 2 - beta * least / 2 + np.log(integral))[()]


def partition_function(s: ArrayLike, beta: ArrayLike, weight_decay: ArrayLike) -> Floats:
    """``Z`` of `log_partition_function`; 0 where it is below the float range."""
    return np.exp(log_partition_function(s, beta, weight_decay))


def product_density(p: ArrayLike, s: ArrayLike, beta: ArrayLike, weight_decay: ArrayLike) -> Floats:
    """The density ``2 e^{−β(s−p)²/2} K_0(βκ|p|) / Z`` of p = w1 w2 (`log_partition_function`); inf at p = 0."""
    s, beta, kappa, p, integral = two_weights(s, beta, weight_decay, p=p)
    p, s, size = np.where(s < 0, -p, p), np.abs(s), np.abs(p)
    with np.errstate(over="ignore"):
        rise = np.where(s > kappa, ((s - size) - kappa) ** 2 / 2, size**2 / 2 + (kappa - s) * size)
        tails = np.exp(-beta * (rise - 2 * s * np.minimum(p, 0)))
        return (2 * tails * k0e(beta * kappa * size) / (np.sqrt(2 * np.pi / beta) * integral))[()]


def weight_density(w: ArrayLike, s: ArrayLike, beta: ArrayLike, weight_decay: ArrayLike) -> Floats:
    """The density of one weight, ``√(2π/β) exp(−β/2 [κw² + κs²/(w²+κ)]) / (Z √(w²+κ))`` (`log_partition_function`)."""
    s, beta, kappa, w, integral = two_weights(s, beta, weight_decay, w=w)
    with np.errstate(over="ignore"):
        far = np.minimum(np.abs(w), 1e60)  # where the density is 0 in any case
        weight = np.exp(-beta * excess(far * far / kappa, np.abs(s), kappa) / 2)
        return (weight / (np.hypot(w, np.sqrt(kappa)) * integral))[()]


@np.vectorize
def box_integral(s: float, beta: float, area: float) -> float:
    """`box_partition_function` for s ≥ 0: panels grow from p = min(s, R²) at the scale 1/√β, and from 0."""
    peak, steps = min(s, area), 2.0 ** np.arange(-2, 8) / np.sqrt(beta)
    edges = np.concatenate([[-peak, 0], steps, -steps, area * 2.0 ** -np.arange(64) - peak])
    y, weights = panels(np.unique(np.clip(edges, -peak, area - peak)))
    p, missing = np.maximum(peak + y, 1e-20 * area), np.clip((area - peak - y) / area, 0, 0.5)
    logs = np.where(missing < 0.5, -np.log1p(-missing), np.log(area / p))
    gauss = np.exp(-beta * ((s - peak) - y) ** 2 / 2) + np.exp(-beta * (s + p) ** 2 / 2)
    return 2 * np.sum(weights * logs * gauss)


@refuse_overflow
def box_partition_function(s: ArrayLike, beta: ArrayLike, radius: ArrayLike) -> Floats:
    """``∫ exp(−β(s − w1 w2)²/2)`` over the box ``|w_i| < R``, ``2 ∫ e^{−β(s−p)²/2} ln(R²/|p|) dp``.

    It grows like 4√(2πT) ln R: without weight decay there is no Boltzmann law. beta, radius > 0.
    """
    s, beta, radius = real_arrays(s=s, beta=beta, radius=radius)
    positive(beta=(beta, "it is an inverse temperature"), radius=(radius, "the box is empty"))
    moderate(beta=beta, radius=radius)
    moderate(0, s=s)
    return box_integral(np.abs(s), beta, radius**2)[()]
