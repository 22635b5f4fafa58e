"""One-dimensional noisy motion in a potential, dx = −V′dt + √(2T) dW: densities, occupations and passage times.

The potential V is called with arrays of any shape and returns arrays of the same shape; T has the unit of V, and times
are those of dt (1/η in training). Integrals over infinite ranges go as far as V/T lies within 80 of its least value.
Arguments that are not real, bounds in the wrong order, and potentials that fail, are NaN, or are too rough for T raise
`ValueError`; potentials that do not confine raise `NoStationaryLawError`. Source of all: exercises 7.1 and 7.2.
"""

from collections.abc import Callable

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from .inputs import Floats, as_bound, as_number, as_numpy, as_real, real_arrays

Potential = Callable[[Floats], ArrayLike]
ORDER, NEGLIGIBLE = 24, 80.0  # nodes of a panel; a weight e^{−80} below the largest counts as nothing
NODES, WEIGHTS = legendre.leggauss(ORDER)
COEFFICIENTS = np.linalg.inv(legendre.legvander(NODES, ORDER - 1)).T  # values at the nodes @ this: Legendre series
CUMULATIVE = COEFFICIENTS @ [legendre.Legendre.basis(k).integ(lbnd=-1)(NODES) for k in range(ORDER)]


class NoStationaryLawError(ValueError):
    """There is no normalisable stationary law: the noise drives the parameters away."""


def as_law(potential: Potential, temperature: float) -> float:
    """The temperature, once it is known to be positive and the potential to be a function."""
    if not callable(potential):
        raise ValueError(f"the potential must be a function of an array, got {potential!r}")
    T = as_number("temperature", temperature)
    if T < 1e-250:
        raise ValueError(f"temperature must be at least 1e-250, since V/T must be a float, got {temperature}")
    return T


def scaled(potential: Potential, temperature: float, x: Floats) -> Floats:
    """V/T at the points x; a potential that does not give a real number for each is refused."""
    try:
        values = potential(x)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "the potential must take an array of any shape and return one of the same shape (numpy functions, or "
            f"numpy.vectorize), but it raised: {error}"
        ) from error
    values = as_numpy("the potential", values)
    if values.dtype.kind not in "biuf" or values.shape not in ((), x.shape):
        raise ValueError(
            f"the potential must return real numbers of the shape it is called with, {x.shape}, "
            f"got dtype {values.dtype} and shape {values.shape}"
        )
    return np.broadcast_to(values, x.shape) / temperature


def bottoms(potential: Potential, temperature: float, x: Floats, phi: Floats) -> tuple[Floats, Floats]:
    """Places and values of V/T of the local minima that points x with values phi bracket."""
    inner = (phi[1:-1] <= phi[:-2]) & (phi[1:-1] <= phi[2:]) & np.isfinite(phi[1:-1])
    k = np.flatnonzero(inner) + 1
    left, right, rows = x[k - 1], x[k + 1], np.arange(len(k))
    for _ in range(10):
        grid = left[:, None] + (right - left)[:, None] * np.linspace(0, 1, 17)
        values = scaled(potential, temperature, grid)
        best = values.argmin(axis=1)
        left, right = grid[rows, np.maximum(best - 1, 0)], grid[rows, np.minimum(best + 1, 16)]
    return grid[rows, best], values[rows, best]


def outward(potential: Potential, temperature: float, start: float, side: float) -> Floats:
    """Edges of panels from start towards side·∞, to beyond the last place where V/T is within 80 of its least value.

    The search goes out to 1e19 on a ladder of eight points an octave, and refines each local minimum it brackets. A
    needle well between two rungs can be missed: give finite bounds.
    """
    ladder = start + np.copysign(max(1.0, abs(start)), side) * 2.0 ** np.arange(-20, 64, 0.125)
    phi = scaled(potential, temperature, ladder)
    if np.isnan(phi).all():
        raise ValueError(f"the potential is NaN from x = {ladder[0]:g} to {ladder[-1]:g}")
    phi = np.where(np.isnan(phi), np.inf, phi)  # far out an overflow may give inf − inf
    wells, depths = bottoms(potential, temperature, ladder, phi)
    low = min(phi.min(), depths.min(initial=np.inf)) + NEGLIGIBLE
    if (phi[-24:] <= low).any():
        raise NoStationaryLawError(
            f"the potential does not confine towards {side}: out to x = {ladder[-1]:.1e}, V/T does not stay "
            f"{NEGLIGIBLE:g} above its least value; give a finite bound, or add weight decay"
        )
    counted = np.abs(np.concatenate([ladder[phi <= low], wells[depths <= low], [start]]) - start).max()
    last = np.argmax(np.abs(ladder - start) > counted) + 2
    inside = wells[np.abs(wells - start) <= counted]
    return np.unique(np.concatenate([[start], ladder[:last:2], ladder[last - 1 : last], inside]))


def between(start: float, stop: float) -> Floats:
    """Edges of panels between two bounds: equal ones, or growing from start on if stop is very far."""
    near = max(1.0, abs(start))
    if abs(stop - start) <= 1e6 * near:
        return np.linspace(start, stop, 65)
    steps = near * 2.0 ** np.arange(-20, 1000, 0.5)
    return np.concatenate([[start], start + np.copysign(steps[steps < abs(stop - start)], stop - start), [stop]])


@np.errstate(all="ignore")  # far out V may overflow
def resolve(potential: Potential, temperature: float, start: float, stop: float, barriers: bool = False):
    """V/T and weights, shape ``(panels, ORDER)``, on panels from start to stop, each with a smooth small step of V/T.

    Panels that lie high above the least value are left coarse, unless barriers matter.
    """
    edges = between(start, stop) if np.isfinite(stop) else outward(potential, temperature, start, stop)
    a, b = np.sort(edges)[:-1], np.sort(edges)[1:]
    found, lowest, level = [], np.inf, 0
    while len(a):
        x, weights = a[:, None] + (b - a)[:, None] * (1 + NODES) / 2, (b - a)[:, None] * WEIGHTS / 2
        phi = scaled(potential, temperature, x)
        if np.any(np.isnan(phi) | (phi == -np.inf)) or len(a) > 20000:
            raise ValueError(f"the potential is NaN, -inf or too rough for this T around x = {np.median(x):g}")
        least, step = phi.min(axis=1), np.ptp(phi, axis=1)
        lowest = min(lowest, least.min())
        noise = np.abs(phi).max(axis=1) + np.abs(x).max(axis=1) * step / (b - a)  # times the rounding unit
        smooth = np.abs(phi @ COEFFICIENTS[:, -2:]).max(axis=1) < 1e-12 + 1e-15 * noise
        high = (least - step > lowest + NEGLIGIBLE) | (least == np.inf)  # V may fall by a step between nodes
        level, good = level + 1, smooth & (step < 3) | high & (not barriers) | (level > 60)  # so deep only at a jump
        found += zip(a[good], phi[good], weights[good], strict=True)
        middle = (a + b)[~good] / 2
        a, b = np.append(a[~good], middle), np.append(middle, b[~good])
    found.sort(key=lambda panel: panel[0])
    return np.array([panel[1] for panel in found]), np.array([panel[2] for panel in found])


def log_mass(potential: Potential, temperature: float, start: float, stop: float) -> float:
    """``ln ∫ e^{−V/T} dx`` between start and stop, −inf if they are equal."""
    phi, weights = resolve(potential, temperature, start, stop) if start != stop else (np.inf, 1)
    return logsumexp(-phi, b=weights)


@np.errstate(over="ignore")
def well_occupation(potential: Potential, temperature: float, barrier: float, lower=-np.inf, upper=np.inf) -> float:
    """The mass of ``e^{−V/T}`` between barrier and upper over that between lower and barrier.

    For wells of equal depth it tends to √(V″(below)/V″(above)) as T → 0. `NoStationaryLawError` if V does not confine.
    """
    T, barrier = as_law(potential, temperature), as_real("barrier", barrier)
    lower, upper = as_bound("lower", lower), as_bound("upper", upper)
    if not lower < barrier < upper:
        raise ValueError(f"needed: lower < barrier < upper, got {lower}, {barrier}, {upper}")
    return np.exp(np.subtract(*(log_mass(potential, T, barrier, bound) for bound in (upper, lower))))


def unreachable(phi: Floats) -> bool:
    """Whether V/T climbs by more than 2000 along the way: a time of e^{2000} is inf, however narrow the wells are."""
    return bool(np.max(phi - np.minimum.accumulate(phi)) > 2000)


@np.errstate(over="ignore")
def mean_passage_time(potential: Potential, temperature: float, start: float, end: float, lower=-np.inf) -> float:
    """The mean time from start up to end of dx = −V′dt + √(2T) dW, reflected at lower; inf beyond the float range.

    It is ``(1/T) ∫_start^end e^{V(y)/T} ∫_lower^y e^{−V(z)/T} dz dy``. To go down, mirror V.
    """
    T, lower = as_law(potential, temperature), as_bound("lower", lower)
    start, end = as_real("start", start), as_real("end", end)
    if not lower <= start < end:
        raise ValueError(f"needed: lower <= start < end, got {lower}, {start}, {end}")
    if unreachable(scaled(potential, T, np.linspace(start, end, 257))):
        return np.inf
    before = log_mass(potential, T, start, lower)
    phi, weights = resolve(potential, T, start, end, barriers=True)
    reached = np.logaddexp.accumulate(np.append(before, logsumexp(-phi, b=weights, axis=1)))[:-1, None]
    least, length = phi.min(axis=1, keepdims=True), weights.sum(axis=1, keepdims=True)
    inner = np.log(np.exp(least - phi) @ CUMULATIVE * length / 2) - least
    return np.exp(logsumexp(phi + np.logaddexp(reached, inner), b=weights) - np.log(T))


def boltzmann_density(potential: Potential, temperature: float, lower=-np.inf, upper=np.inf) -> Callable:
    """The density ``e^{−V/T}/Z`` between lower and upper, 0 outside, as a function of x."""
    T, lower, upper = as_law(potential, temperature), as_bound("lower", lower), as_bound("upper", upper)
    if not lower < upper:
        raise ValueError(f"needed: lower < upper, got {lower}, {upper}")
    origin = min(max(0.0, lower), upper)  # 0, or the bound that is nearest to it
    total = np.logaddexp.reduce([log_mass(potential, T, origin, bound) for bound in (lower, upper)])

    @np.errstate(over="ignore")
    def density(x: ArrayLike) -> Floats:
        (x,) = real_arrays(x=x)
        inside = np.exp(-scaled(potential, T, np.clip(x, lower, upper)) - total)
        return np.where((x >= lower) & (x <= upper), inside, 0)[()]

    return density
