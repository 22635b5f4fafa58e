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
from .networks import Weights, as_teacher, as_weights, prefix_products, suffix_products, unchecked_gradients
from .symmetry import fibre_dimension, orbit_dimension, ranks, transform

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
        Of the full Hessian, ascending.
    tolerance
        Eigenvalues of absolute value up to this count as zero.
    inertia
        Counts of (negative, zero, positive) eigenvalues.
    """

    loss: float
    gradient: float
    eigenvalues: NDArray[np.float64]
    tolerance: float
    inertia: Inertia


def jacobian(weights: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """The Jacobian of the product map ``μ(W_1, …, W_L) = W_L … W_1``.

    Row-major flattening gives, for layer l, the block ``(W_L … W_{l+1}) ⊗ (W_{l−1} … W_1)ᵀ``.

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

    Notes
    -----
    Source: exercise 2.4.
    """
    layers = as_weights(weights)
    below, above = prefix_products(layers), suffix_products(layers)
    return np.hstack([np.kron(above[l + 1], below[l].T) for l in range(len(layers))])


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


def size_of(layers: Weights, M: NDArray[np.float64]) -> float:
    """The natural size of a weight, ``ω = max(‖M‖^{1/L}, ‖W_l‖)`` in spectral norms."""
    return max(np.linalg.norm(M, 2) ** (1 / len(layers)), *(np.linalg.norm(layer, 2) for layer in layers))


def critical_point(weights: Sequence[ArrayLike], M: ArrayLike, tolerance: float = CRITICAL_TOLERANCE) -> CriticalPoint:
    """Loss, Hessian spectrum and inertia at a critical point of any depth.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` at which every gradient vanishes.
    M
        Teacher, shape ``(d_L, d_0)``.
    tolerance
        The point counts as critical if no gradient entry exceeds ``tolerance · ω^{L−1} max(‖M‖, ‖M − W‖)``,
        with ``ω = max(‖M‖^{1/L}, ‖W_l‖)`` the size of the weights (spectral norms).

    Raises
    ------
    NotCriticalError
        If the gradient does not vanish to that tolerance; a `ValueError`.
    ValueError
        If the shapes do not fit or an entry is not finite.

    Notes
    -----
    An eigenvalue counts as zero up to the rounding error of the spectrum, ``4 p ε max|eigenvalue|`` for p
    parameters, plus ten times the gradient over ω: along the symmetry directions the eigenvalues of a
    point that is only nearly critical are of that size. At a representative ``transform(weights, g)`` with
    ``cond(g)²`` near ``1/(p ε)`` true eigenvalues drown in rounding: count at a better-balanced one.
    Source: exercise 2.3.
    """
    layers = as_weights(weights)
    M = as_teacher(M, layers)
    residual = M - prefix_products(layers)[-1]
    omega = size_of(layers, M)
    gradient = max(float(np.abs(g).max()) for g in unchecked_gradients(layers, M))
    natural = omega ** (len(layers) - 1) * max(np.linalg.norm(M, 2), np.linalg.norm(residual, 2))
    if gradient > tolerance * natural:
        raise NotCriticalError(
            f"not a critical point: the largest gradient entry is {gradient:.3g}, "
            f"but it must be at most {tolerance * natural:.3g} ({tolerance:g} times its natural size)"
        )
    eigenvalues = np.linalg.eigvalsh(hessian(layers, M))
    zero = 4 * len(eigenvalues) * np.finfo(float).eps * float(np.abs(eigenvalues).max())
    zero += 10 * gradient / omega if gradient else 0.0
    negative, positive = int(np.sum(eigenvalues < -zero)), int(np.sum(eigenvalues > zero))
    counts = Inertia(negative, len(eigenvalues) - negative - positive, positive)
    return CriticalPoint(0.5 * float(np.sum(residual**2)), gradient, eigenvalues, zero, counts)


def inertia(weights: Sequence[ArrayLike], M: ArrayLike) -> Inertia:
    """Numbers of (negative, zero, positive) eigenvalues of the Hessian at a critical point.

    The inertia, unlike the eigenvalues, is the same along the whole orbit of the symmetry group
    ``(W_1, …) ↦ (g_1 W_1, g_2 W_2 g_1⁻¹, …)``.

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
