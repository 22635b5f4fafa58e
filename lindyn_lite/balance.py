"""The balance of neighbouring layers: conserved by gradient flow, moved in second order by every discrete step."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .inputs import as_integer, as_matrix, as_number, refuse_overflow
from .networks import Weights, as_teacher, as_weights, prefix_products, pull_back, suffix_products, unchecked_gradients


class NearestLambda(NamedTuple):
    """The λ of the closest λ-balanced network, and how far the network is from it."""

    value: float
    deviation: float


def unchecked_balance(layers: Weights) -> Weights:
    """`conserved` for float64 arrays that are known to fit; leading axes (times, replicas) are kept."""
    return [
        np.swapaxes(above, -1, -2) @ above - below @ np.swapaxes(below, -1, -2)
        for below, above in itertools.pairwise(layers)
    ]


@refuse_overflow
def conserved(weights: Sequence[ArrayLike]) -> Weights:
    """The balance of each pair of neighbours, ``G_l = W_{l+1}ᵀW_{l+1} − W_lW_lᵀ``, constant under gradient flow.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``, ``Wl`` of shape ``(d_l, d_{l−1})``.

    Returns
    -------
    list of numpy.ndarray
        For l = 1, …, L−1, symmetric of shape ``(d_l, d_l)``; empty for one layer.

    Raises
    ------
    ValueError
        If the layers are not finite real matrices whose shapes chain.

    Notes
    -----
    Source: exercise 3.2; assumption A2 of "From Lazy to Rich" (arXiv 2409.14623) is G_1 = λI with two layers.
    """
    return unchecked_balance(as_weights(weights))


@refuse_overflow
def nearest_lambda(weights: Sequence[ArrayLike]) -> NearestLambda:
    """The minimiser of ``‖W_2ᵀW_2 − W_1W_1ᵀ − λI‖_F``, ``λ = tr(W_2ᵀW_2 − W_1W_1ᵀ)/N_h``, and the minimum.

    Parameters
    ----------
    weights
        Two layers ``[W1, W2]``, of shapes ``(N_h, N_i)`` and ``(N_o, N_h)``.

    Returns
    -------
    NearestLambda
        ``(value, deviation)``. What is λ-balanced by construction deviates by rounding, ``ε(‖W_1‖² + ‖W_2‖²)``.

    Raises
    ------
    ValueError
        If there are not two layers, or they are not finite real matrices whose shapes chain.

    Notes
    -----
    Source: assumption A2 of "From Lazy to Rich" (arXiv 2409.14623).
    """
    layers = as_weights(weights)
    if len(layers) != 2:
        raise ValueError(f"λ is defined for two layers [W1, W2], got {len(layers)}")
    (G,) = unchecked_balance(layers)
    value = float(np.trace(G)) / len(G)
    return NearestLambda(value, float(np.linalg.norm(G - value * np.eye(len(G)))))


@refuse_overflow
def gradient_descent_change(weights: Sequence[ArrayLike], M: ArrayLike, eta: float) -> Weights:
    """What one step of gradient descent adds to each G_l: exactly ``ΔG_l = η²(g_{l+1}ᵀg_{l+1} − g_l g_lᵀ)``.

    The first-order term ``−η(W_{l+1}ᵀg_{l+1} − g_l W_lᵀ + transpose)`` vanishes, because both products are
    ``(W_L … W_{l+1})ᵀ(W − M)(W_l … W_1)ᵀ``. So the balance drifts by O(η) in a fixed time t = ηk.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` before the step.
    M
        Teacher, shape ``(d_L, d_0)``.
    eta
        Learning rate, positive.

    Returns
    -------
    list of numpy.ndarray
        For l = 1, …, L−1, shape ``(d_l, d_l)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, or ``eta`` is not positive and finite.

    Notes
    -----
    Source: exercise 3.2, there for two layers.
    """
    layers, eta = as_weights(weights), as_number("the learning rate eta", eta)
    slopes = unchecked_gradients(layers, as_teacher(M, layers))
    return [eta**2 * G for G in unchecked_balance(slopes)]


@refuse_overflow
def sgd_change(weights: Sequence[ArrayLike], gradient: ArrayLike, eta: float) -> Weights:
    """What a step on any gradient of the product adds: ``ΔΛ = η²(W_1GᵀGW_1ᵀ − W_2ᵀGGᵀW_2)`` for two layers.

    For any depth it is ``η²(g_{l+1}ᵀg_{l+1} − g_l g_lᵀ)`` with ``g_l = (W_L … W_{l+1})ᵀ G (W_{l−1} … W_1)ᵀ``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` before the step.
    gradient
        ``G = mean(e xᵀ)`` of any minibatch, shape ``(d_L, d_0)``. Its sign does not matter: with samples in the
        rows of X and Y, ``G = (X @ W.T − Y).T @ X / len(X)`` is the gradient with respect to the product W.
    eta
        Learning rate, positive.

    Returns
    -------
    list of numpy.ndarray
        For l = 1, …, L−1, shape ``(d_l, d_l)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, or ``eta`` is not positive and finite.

    Notes
    -----
    Source: "Does λ survive SGD?" in the notes on arXiv 2409.14623.
    """
    layers, eta = as_weights(weights), as_number("the learning rate eta", eta)
    G, below = as_matrix("the gradient of the product", gradient), prefix_products(layers)[1:]
    if G.shape != below[-1].shape:
        raise ValueError(f"the gradient of the product has shape {G.shape}, but the product has {below[-1].shape}")
    return [eta**2 * change for change in unchecked_balance(pull_back(layers, below, G))]


@refuse_overflow
def label_noise_drift(
    weights: Sequence[ArrayLike], eta: float, batch: int, sigma: float, S: ArrayLike | None = None
) -> Weights:
    """The mean of `sgd_change` under label noise; ``E ΔΛ = (η²σ²/b)(N_o W_1W_1ᵀ − N_i W_2ᵀW_2)`` for two layers, P = S.

    A batch of fresh inputs x ~ N(0, I) with labels Sx + σξ has, for all symmetric A and B and with ``E = S − W``,
    ``E[GᵀAG] = (1+1/b)EᵀAE + (tr(EᵀAE) + σ² tr A)I/b`` and ``E[GBGᵀ] = E((1+1/b)B + tr(B)I/b)Eᵀ + σ² tr(B)I/b``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]`` before the step.
    eta, batch, sigma
        Learning rate η, batch size b and standard deviation σ of the noise on each label.
    S
        Teacher, shape ``(d_L, d_0)``; by default the product of the weights: noise around a fitted teacher.

    Returns
    -------
    list of numpy.ndarray
        The exact mean of ΔG_l in one step, for l = 1, …, L−1, shape ``(d_l, d_l)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, or ``eta``, ``batch`` or ``sigma`` is out of range.

    Notes
    -----
    Source: "Does λ survive SGD?" in the notes on arXiv 2409.14623, for two layers at P = S. Many steps: `label_noise`.
    """
    layers, eta, b = as_weights(weights), as_number("the learning rate eta", eta), as_integer("batch", batch, 1)
    noise = as_number("sigma", sigma, strict=False) ** 2
    below, above = prefix_products(layers), suffix_products(layers)
    E = 0 * below[-1] if S is None else as_teacher(S, layers) - below[-1]
    drifts = []
    for l in range(1, len(layers)):
        A, B = above[l + 1] @ above[l + 1].T, below[l - 1].T @ below[l - 1]
        EAE, EBE = E.T @ A @ E, E @ B @ E.T
        inner = (1 + 1 / b) * EAE + (np.trace(EAE) + noise * np.trace(A)) / b * np.eye(len(EAE))
        outer = (1 + 1 / b) * EBE + np.trace(B) / b * (E @ E.T + noise * np.eye(len(EBE)))
        drifts.append(eta**2 * (below[l] @ inner @ below[l].T - above[l].T @ outer @ above[l]))
    return drifts
