"""The loss landscape: exact Hessian, critical points, inertia.

Everything is for the loss ``½‖M − W_L … W_1‖²`` over all parameters of the network, flattened layer
by layer, each layer row by row. The closed forms of `lindyn_lite.critical` and the dimensions of
`lindyn_lite.symmetry` are part of the landscape and can be called from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .critical import balanced_critical_point, two_layer_spectrum
from .inputs import as_number, refuse_overflow
from .networks import Weights, as_teacher, as_weights, loss, prefix_products, suffix_products, unchecked_gradients
from .symmetry import fibre_dimension, orbit_dimension, ranks, rescaled, transform

__all__ = [
    "CriticalPoint",
    "Inertia",
    "NotCriticalError",
    "balanced_critical_point",
    "critical_point",
    "fibre_dimension",
    "hessian",
    "inertia",
    "jacobian",
    "orbit_dimension",
    "ranks",
    "transform",
    "two_layer_spectrum",
]

CRITICAL_TOLERANCE = 1e-7
"""Largest gradient entry of a critical point, relative to the natural size of a gradient there."""


class NotCriticalError(ValueError):
    """A function about critical points was given a point where the gradient does not vanish."""


class Inertia(NamedTuple):
    """Numbers of negative, zero and positive eigenvalues."""

    negative: int
    zero: int
    positive: int


@dataclass(frozen=True)
class CriticalPoint:
    """What the second derivatives say about a critical point.

    Attributes
    ----------
    loss
        ``½‖M − W‖²``.
    gradient
        Largest absolute entry of the gradient: how far from critical the point is.
    eigenvalues
        Of the full Hessian at these weights, ascending.
    tolerance
        Eigenvalues of absolute value up to this counted as zero, after the layers were rescaled to one norm.
    inertia
        Counts of (negative, zero, positive) eigenvalues.
    """

    loss: float
    gradient: float
    eigenvalues: NDArray[np.float64]
    tolerance: float
    inertia: Inertia


@refuse_overflow
def jacobian(weights: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """The Jacobian of the product map ``μ(W_1, …, W_L) = W_L … W_1``.

    Row-major flattening gives, for layer l, the block ``(W_L … W_{l+1}) ⊗ (W_{l−1} … W_1)ᵀ``. Source: exercise 2.4.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``, ``Wl`` of shape ``(d_l, d_{l-1})``.

    Returns
    -------
    numpy.ndarray
        Shape ``(d_L d_0, Σ d_l d_{l−1})``.

    Raises
    ------
    ValueError
        If the layers are not finite real matrices whose shapes chain.
    """
    layers = as_weights(weights)
    below, above = prefix_products(layers), suffix_products(layers)
    return np.hstack([np.kron(above[l + 1], below[l].T) for l in range(len(layers))])


@refuse_overflow
def hessian(weights: Sequence[ArrayLike], M: ArrayLike) -> NDArray[np.float64]:
    """The exact Hessian of the loss, ``H = JᵀJ − ⟨M − W, ∂²μ⟩``, at any point.

    The second term couples layers i < j: with ``C = W_{j−1} … W_{i+1}`` and
    ``G = (W_{i−1} … W_1)(M − W)ᵀ(W_L … W_{j+1})`` it is ``−tr(G dW_j C dW_i)``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``.
    M
        Teacher, shape ``(d_L, d_0)``.

    Returns
    -------
    numpy.ndarray
        Symmetric, of size ``Σ d_l d_{l−1}``.

    Raises
    ------
    ValueError
        If the shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: exercise 2.2 (the 2×2 case), 2.3. No finite differences are taken.
    """
    layers = as_weights(weights)
    M = as_teacher(M, layers)
    below, above = prefix_products(layers), suffix_products(layers)
    residual = M - below[-1]
    J = jacobian(layers)
    H = J.T @ J
    ends = np.cumsum([0, *(layer.size for layer in layers)])
    for i in range(len(layers)):
        C = np.eye(layers[i].shape[0])
        for j in range(i + 1, len(layers)):
            G = below[i] @ residual.T @ above[j + 1]
            block = -np.einsum("ab,cd->bcda", G, C).reshape(layers[j].size, layers[i].size)
            rows, columns = slice(ends[j], ends[j + 1]), slice(ends[i], ends[i + 1])
            H[rows, columns] += block
            H[columns, rows] += block.T
            C = layers[j] @ C
    return H


def gradient_ratio(layers: Weights, M: NDArray[np.float64]) -> float:
    """Largest gradient entry over ``n^{L−1} max(‖M‖, ‖M − W‖)``, for layers of equal norm n; 0 at the origin."""
    norm = max(np.linalg.norm(layer, 2) for layer in layers)
    error = max(np.linalg.norm(M, 2), np.linalg.norm(M - prefix_products(layers)[-1], 2))
    largest = max(float(np.abs(g).max()) for g in unchecked_gradients(layers, M))
    return largest / (norm ** (len(layers) - 1) * error) if largest else 0.0


def count_signs(eigenvalues: NDArray[np.float64], zero: float) -> Inertia:
    """How many eigenvalues are below −zero, between, and above zero."""
    negative, positive = int(np.sum(eigenvalues < -zero)), int(np.sum(eigenvalues > zero))
    return Inertia(negative, len(eigenvalues) - negative - positive, positive)


@refuse_overflow
def critical_point(weights: Sequence[ArrayLike], M: ArrayLike, tolerance: float = CRITICAL_TOLERANCE) -> CriticalPoint:
    """Loss, Hessian spectrum and inertia at a critical point of any depth.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` at which every gradient vanishes.
    M
        Teacher, shape ``(d_L, d_0)``.
    tolerance
        The point counts as critical if, with the layers rescaled to one common norm n, no gradient entry exceeds
        ``tolerance · n^{L−1} max(‖M‖, ‖M − W‖)`` (spectral norms). A point that does not, but whose weights are
        all below ``tolerance · ‖M‖^{1/L}``, L ≥ 2, is taken for the origin.

    Raises
    ------
    NotCriticalError
        If the gradient does not vanish to that tolerance; a `ValueError`.
    ValueError
        If the shapes do not fit or an entry is not finite.

    Notes
    -----
    The signs are counted at the rescaled representative, since the inertia does not depend on it but rounding does.
    An eigenvalue counts as zero up to the rounding error ``4 p ε max|eigenvalue|`` for p parameters, plus ten times
    the gradient over n: along the symmetry directions the eigenvalues of a point that is only nearly critical are
    of that size. Two limits: at a representative ``transform(weights, g)`` with ``cond(g)²`` near ``1/(p ε)`` true
    eigenvalues drown in rounding, and at a flat saddle (L ≥ 3) that is known only to an error δ the eigenvalues of
    order δ count as they are. Source: exercise 2.3.
    """
    layers, tolerance = as_weights(weights), as_number("tolerance", tolerance)
    M = as_teacher(M, layers)
    gradient = max(float(np.abs(g).max()) for g in unchecked_gradients(layers, M))
    size = float(np.linalg.norm(M, 2)) ** (1 / len(layers))
    level = rescaled(layers, size)
    ratio = gradient_ratio(level, M)
    tiny = len(layers) > 1 and max(np.linalg.norm(layer, 2) for layer in layers) <= tolerance * size
    if ratio > tolerance and tiny:
        layers = level = [np.zeros_like(layer) for layer in layers]
        ratio = 0.0
    if ratio > tolerance:
        raise NotCriticalError(
            f"not a critical point: the largest gradient entry is {gradient:.3g}, "
            f"that is {ratio:.3g} of its natural size, but at a critical point it is at most {tolerance:g} of it"
        )
    eigenvalues = np.linalg.eigvalsh(hessian(level, M))
    zero = 4 * len(eigenvalues) * np.finfo(float).eps * float(np.abs(eigenvalues).max())
    if ratio:
        largest = max(float(np.abs(g).max()) for g in unchecked_gradients(level, M))
        zero += 10 * largest / max(float(np.linalg.norm(layer, 2)) for layer in level)
    spectrum = np.linalg.eigvalsh(hessian(layers, M))
    return CriticalPoint(loss(layers, M), gradient, spectrum, zero, count_signs(eigenvalues, zero))


def inertia(weights: Sequence[ArrayLike], M: ArrayLike) -> Inertia:
    """Numbers of (negative, zero, positive) eigenvalues of the Hessian at a critical point.

    Unlike the eigenvalues it is the same along the orbit ``(W_1, …) ↦ (g_1 W_1, g_2 W_2 g_1⁻¹, …)`` of the symmetry.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` at which every gradient vanishes.
    M
        Teacher, shape ``(d_L, d_0)``.

    Raises
    ------
    NotCriticalError
        If the gradient does not vanish there; a `ValueError` that says by how much.
    ValueError
        If the shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: exercise 2.3. See `critical_point` for the eigenvalues and the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> inertia([np.zeros((1, 1)), np.zeros((1, 1))], np.array([[3.0]]))
    Inertia(negative=1, zero=0, positive=1)
    """
    return critical_point(weights, M).inertia
