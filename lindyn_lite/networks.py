"""Deep linear networks: product, loss and gradients, for any depth.

A network is a sequence of weights ``[W1, …, WL]``, input layer first. Layer ``l`` has shape
``(d_l, d_{l-1})``, so that the network computes ``x ↦ W x`` with ``W = WL … W1``.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import as_matrix, refuse_overflow

Weights = list[NDArray[np.float64]]


def as_weights(weights: Sequence[ArrayLike]) -> Weights:
    """The layers as float64 matrices whose shapes chain.

    Raises
    ------
    ValueError
        If there is no layer, a layer is not a finite real matrix, or the input dimension of a
        layer is not the output dimension of the one before.
    """
    if isinstance(weights, np.ndarray) and weights.ndim == 2:
        raise ValueError("weights must be a list of layers [W1, …, WL], got one matrix: write [W1]")
    if not isinstance(weights, Iterable) or (isinstance(weights, np.ndarray) and weights.ndim == 0):
        raise ValueError(f"weights must be a list of layers [W1, …, WL], got {weights!r}")
    layers = [as_matrix(f"W{number}", layer) for number, layer in enumerate(weights, start=1)]
    if not layers:
        raise ValueError("weights must hold at least one layer, got an empty list")
    for number, (first, second) in enumerate(itertools.pairwise(layers), start=1):
        if second.shape[1] != first.shape[0]:
            raise ValueError(
                f"the shapes of the layers do not chain: W{number} has shape {first.shape} and gives "
                f"{first.shape[0]} outputs, but W{number + 1} has shape {second.shape} and takes {second.shape[1]}"
            )
    return layers


def as_teacher(M: ArrayLike, weights: Weights) -> NDArray[np.float64]:
    """The teacher as a float64 matrix of the shape of the network's product.

    Raises
    ------
    ValueError
        If ``M`` is not a finite real matrix of shape ``(d_L, d_0)``.
    """
    matrix = as_matrix("the teacher M", M)
    needed = (weights[-1].shape[0], weights[0].shape[1])
    if matrix.shape != needed:
        raise ValueError(f"the teacher M has shape {matrix.shape}, but these weights compute a map of shape {needed}")
    return matrix


def widths(weights: Sequence[ArrayLike]) -> tuple[int, ...]:
    """The widths ``(d_0, …, d_L)`` of a network, inputs first."""
    layers = as_weights(weights)
    return (layers[0].shape[1], *(layer.shape[0] for layer in layers))


def prefix_products(layers: Weights) -> Weights:
    """``W_l … W_1`` for l = 0, …, L; the first is the identity of the input space."""
    products = [np.eye(layers[0].shape[1])]
    for layer in layers:
        products.append(layer @ products[-1])
    return products


def suffix_products(layers: Weights) -> Weights:
    """``W_L … W_{l+1}`` for l = 0, …, L; the last is the identity of the output space."""
    products = [np.eye(layers[-1].shape[0])]
    for layer in reversed(layers):
        products.append(products[-1] @ layer)
    return products[::-1]


@refuse_overflow
def product(weights: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """The map the network computes, ``W = W_L … W_1``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``, ``Wl`` of shape ``(d_l, d_{l-1})``.

    Returns
    -------
    numpy.ndarray
        Shape ``(d_L, d_0)``.

    Raises
    ------
    ValueError
        If the layers are not finite real matrices whose shapes chain.
    """
    return prefix_products(as_weights(weights))[-1]


@refuse_overflow
def loss(weights: Sequence[ArrayLike], M: ArrayLike) -> float:
    """The loss ``𝓛 = ½ ‖M − W_L … W_1‖_F²``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``.
    M
        Teacher, shape ``(d_L, d_0)``.

    Raises
    ------
    ValueError
        If the shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: the exercises, conventions. For whitened inputs this is half the mean squared error
    of the network up to a constant (see `lindyn_lite.tasks.from_data`).
    """
    layers = as_weights(weights)
    residual = as_teacher(M, layers) - prefix_products(layers)[-1]
    return 0.5 * float(np.sum(residual**2))


@refuse_overflow
def gradients(weights: Sequence[ArrayLike], M: ArrayLike) -> Weights:
    """The gradients ``∂𝓛/∂W_l = −(W_L … W_{l+1})ᵀ (M − W) (W_{l−1} … W_1)ᵀ``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``.
    M
        Teacher, shape ``(d_L, d_0)``.

    Returns
    -------
    list of numpy.ndarray
        One gradient per layer, of the layer's shape. Gradient flow is ``Ẇ_l = −∂𝓛/∂W_l``
        in time of units 1/η.

    Raises
    ------
    ValueError
        If the shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: exercise 3.1 (two layers), 3.7 (any depth).
    """
    layers = as_weights(weights)
    return unchecked_gradients(layers, as_teacher(M, layers))


def running_products(layers: Weights) -> Weights:
    """``W_l … W_1`` for l = 1, …, L, leading axes kept."""
    return [*itertools.accumulate(layers, lambda done, layer: layer @ done)]


def pull_back(layers: Weights, below: Weights, gradient: NDArray[np.float64]) -> Weights:
    """The chain rule: ``(W_L … W_{l+1})ᵀ (∂ℓ/∂W) (W_{l−1} … W_1)ᵀ`` for every layer, leading axes kept.

    ``below`` holds the products ``W_l … W_1`` for l = 1, …, L; whoever computed ∂ℓ/∂W had to form them already.
    """
    slopes = []
    for layer, inputs in zip(reversed(layers), reversed([None, *below[:-1]]), strict=True):
        slopes.append(gradient if inputs is None else gradient @ np.swapaxes(inputs, -1, -2))
        if inputs is not None:
            gradient = np.swapaxes(layer, -1, -2) @ gradient
    return slopes[::-1]


def unchecked_gradients(layers: Weights, M: NDArray[np.float64]) -> Weights:
    """`gradients` for float64 arrays that are known to fit: the inner loop of every simulator."""
    below = running_products(layers)
    return pull_back(layers, below, below[-1] - M)
