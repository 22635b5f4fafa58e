"""The neural tangent kernel of a linear network: as an operator, as a matrix, and the distance between two of them.

For whitened inputs the kernel acts on maps F of shape ``(d_L, d_0)``; flattened row by row it is the sum of
Kronecker products ``Σ_l A_lA_lᵀ ⊗ B_lᵀB_l`` with ``A_l = W_L … W_{l+1}`` and ``B_l = W_{l−1} … W_1``.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import as_integer, as_matrix, refuse_overflow
from .landscape import jacobian
from .networks import Weights, as_weights, prefix_products, suffix_products


def factors(layers: Weights, X: ArrayLike | None) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The Gram factors ``(A_lA_lᵀ, X B_lᵀB_l Xᵀ)`` of every layer."""
    above, below = suffix_products(layers)[1:], prefix_products(layers)[:-1]
    if X is not None:
        X = as_matrix("X", X)
        if X.shape[1] != layers[0].shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns, but the network has {layers[0].shape[1]} inputs")
        below = [B @ X.T for B in below]
    return [(A @ A.T, B.T @ B) for A, B in zip(above, below, strict=True)]


def as_map(F: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """``F`` as a finite matrix of the shape of the product."""
    F = as_matrix("F", F)
    if F.shape != shape:
        raise ValueError(f"F has shape {F.shape}, but the kernel acts on maps of shape {shape}")
    return F


@refuse_overflow
def apply(weights: Sequence[ArrayLike], F: ArrayLike) -> NDArray[np.float64]:
    """The kernel of the weights, ``K[F] = Σ_l (W_L … W_{l+1})(W_L … W_{l+1})ᵀ F (W_{l−1} … W_1)ᵀ(W_{l−1} … W_1)``.

    Gradient flow moves the product by ``Ẇ = K[M − W]``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``, ``Wl`` of shape ``(d_l, d_{l−1})``.
    F
        A map, shape ``(d_L, d_0)``.

    Returns
    -------
    numpy.ndarray
        Shape ``(d_L, d_0)``.

    Raises
    ------
    ValueError
        If the shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: exercise 3.3 (two layers) and 3.7 (any depth); no balance is assumed.
    """
    layers = as_weights(weights)
    F = as_map(F, (layers[-1].shape[0], layers[0].shape[1]))
    above, below = suffix_products(layers)[1:], prefix_products(layers)[:-1]
    return sum(A @ (A.T @ F @ B.T) @ B for A, B in zip(above, below, strict=True))


@refuse_overflow
def matrix(weights: Sequence[ArrayLike], X: ArrayLike | None = None) -> NDArray[np.float64]:
    """The kernel as a matrix, ``K = Σ_l A_lA_lᵀ ⊗ X B_lᵀB_l Xᵀ``; two layers: ``K_2 ⊗ XXᵀ + I ⊗ X K_1 Xᵀ``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``; for two, ``K_1 = W_1ᵀW_1`` and ``K_2 = W_2W_2ᵀ``.
    X
        Inputs, shape ``(samples, d_0)``, one sample a row (the transpose of the source's X). By default the
        identity, for whitened inputs: then ``matrix(weights) @ F.ravel()`` is ``apply(weights, F).ravel()``.

    Returns
    -------
    numpy.ndarray
        Symmetric, of size ``d_L · samples`` (by default ``d_L d_0``), the output the slow index: entry
        ``[o · samples + p, o' · samples + p']`` is ``⟨∇_θ f_o(x_p), ∇_θ f_o'(x_p')⟩``.

    Raises
    ------
    ValueError
        If the shapes do not fit or an entry is not finite.

    Notes
    -----
    Source: "From Lazy to Rich" (arXiv 2409.14623), appendix C.5; exercise 3.7.
    """
    return sum(np.kron(*pair) for pair in factors(as_weights(weights), X))


@refuse_overflow
def spectrum(weights: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """The eigenvalues of the kernel for whitened inputs, ascending: the squared singular values of ``∂W/∂θ``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``.

    Returns
    -------
    numpy.ndarray
        Shape ``(d_L d_0,)``. For two layers they are all the sums of an eigenvalue of ``W_2W_2ᵀ`` and one of
        ``W_1ᵀW_1``; for balanced layers with ``W = U diag(w)Vᵀ``, w ≥ 0, the sums ``w_α + w_β``.

    Raises
    ------
    ValueError
        If the layers are not finite real matrices whose shapes chain.

    Notes
    -----
    Source: exercise 4.1. Singular values of the Jacobian lose half as many digits of a small eigenvalue as the
    eigenvalues of its Gram matrix would; the sums for two layers lose none.
    """
    layers = as_weights(weights)
    outputs, inputs = layers[-1].shape[0], layers[0].shape[1]
    if len(layers) == 2:
        first, second = np.zeros(inputs), np.zeros(outputs)
        for values, layer in ((first, layers[0]), (second, layers[1])):
            singular = np.linalg.svd(layer, compute_uv=False)
            values[: len(singular)] = singular**2
        return np.sort(np.add.outer(second, first).ravel())
    values = np.zeros(outputs * inputs)
    singular = np.linalg.svd(jacobian(layers), compute_uv=False)
    values[: len(singular)] = singular**2
    return values[::-1]


def normalised_columns(name: str, layers: Weights, X: ArrayLike | None):
    """Columns p_l, q_l with ``K/‖K‖ = Σ_l p_l ⊗ q_l`` (each a flattened Gram factor) and ``‖q_l‖ = 1``.

    All terms of ``‖K‖² = Σ ⟨P_l, P_m⟩⟨Q_l, Q_m⟩`` are non-negative, since Gram matrices are, so no p_l exceeds 1.
    Layers are divided by powers of two c_l first, without rounding: term l of K then lacks a factor ∝ 1/c_l².
    """
    scales = np.array([2.0 ** np.frexp(np.abs(layer).max())[1] for layer in layers])
    pairs = factors([layer / scale for layer, scale in zip(layers, scales, strict=True)], X)
    P, Q = (np.stack([factor.ravel() for factor in side], axis=1) for side in zip(*pairs, strict=True))
    sizes = np.linalg.norm(Q, axis=0)
    live = (sizes > 0) & np.any(P, axis=0)
    if not live.any():
        raise ValueError(f"the kernel of {name} is zero, so it has no direction to compare")
    P, Q = P * sizes, Q / np.where(live, sizes, 1.0)
    P *= np.minimum(scales[live].min() / scales, 1.0) ** 2
    return P / np.sqrt(np.sum((P.T @ P) * (Q.T @ Q))), Q


def both_columns(weights: Sequence[ArrayLike], others: Sequence[ArrayLike], X: ArrayLike | None):
    """`normalised_columns` of two networks that compute maps of one shape."""
    pair = {"weights": as_weights(weights), "others": as_weights(others)}
    shapes = [(layers[-1].shape[0], layers[0].shape[1]) for layers in pair.values()]
    if shapes[0] != shapes[1]:
        raise ValueError(f"the networks compute maps of different shapes, {shapes[0]} and {shapes[1]}")
    return [normalised_columns(name, layers, X) for name, layers in pair.items()]


@refuse_overflow
def distance(weights: Sequence[ArrayLike], others: Sequence[ArrayLike], X: ArrayLike | None = None) -> float:
    """The kernel distance ``1 − cos(K, K') = ½ ‖K/‖K‖ − K'/‖K'‖‖_F²``, a number from 0 to 1.

    Parameters
    ----------
    weights, others
        Two networks ``[W1, …, WL]`` with the same d_0 and d_L; hidden widths and depths may differ.
    X
        Inputs, shape ``(samples, d_0)``; by default the identity, for whitened inputs.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, or a kernel is zero.

    Notes
    -----
    The difference of two sums of Kronecker products rearranges into ``P Qᵀ`` with a few columns each; its norm is
    that of ``R_P R_Qᵀ`` of their QR factorisations. No matrix of size d_L d_0 is formed, and rounding enters
    before the square: a distance D has an error of about ``ε√D``, where 1 − cos has ε.
    Source: "From Lazy to Rich" (arXiv 2409.14623), appendix C.5.
    """
    (P, Q), (P_other, Q_other) = both_columns(weights, others, X)
    R_P = np.linalg.qr(np.hstack([P, -P_other]), mode="r")
    R_Q = np.linalg.qr(np.hstack([Q, Q_other]), mode="r")
    return 0.5 * float(np.sum((R_P @ R_Q.T) ** 2))


@refuse_overflow
def alignment(weights: Sequence[ArrayLike], others: Sequence[ArrayLike], X: ArrayLike | None = None) -> float:
    """The cosine of two kernels, ``⟨K, K'⟩/(‖K‖‖K'‖)``, from 0 to 1; arguments and errors as for `distance`.

    A sum of non-negative terms ``⟨P_l, P'_m⟩⟨Q_l, Q'_m⟩``, so that small cosines are accurate too.
    """
    (P, Q), (P_other, Q_other) = both_columns(weights, others, X)
    return min(1.0, float(np.sum((P.T @ P_other) * (Q.T @ Q_other))))


@refuse_overflow
def balanced_operator(W: ArrayLike, F: ArrayLike, depth: int) -> NDArray[np.float64]:
    """The kernel of L balanced layers from their product, ``Σ_k (WWᵀ)^{(L−k)/L} F (WᵀW)^{(k−1)/L}``, ``(·)^0 = I``.

    Parameters
    ----------
    W
        Product of the layers, shape ``(d_L, d_0)``, of any rank.
    F
        A map of the same shape.
    depth
        L ≥ 1; L = 2 gives ``(WWᵀ)^{1/2}F + F(WᵀW)^{1/2}``.

    Returns
    -------
    numpy.ndarray
        Shape ``(d_L, d_0)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, or ``depth`` is not a whole number of at least 1.

    Notes
    -----
    Singular values below ``max(W.shape) ε`` of the largest are rounding and count as zero: a fractional power
    would raise 1e-16 to 1e-16^{2/5}, about 4e-7, at L = 5. The zero power is the identity, not a projector.
    Source: exercise 3.6 (L = 2), 3.7.
    """
    W = as_matrix("W", W)
    F = as_map(F, W.shape)
    L = as_integer("depth", depth, 1)
    U, singular, Vt = np.linalg.svd(W)
    singular[singular <= max(W.shape) * np.finfo(float).eps * singular[0]] = 0.0
    left, right = np.zeros(len(U)), np.zeros(len(Vt))
    left[: len(singular)] = right[: len(singular)] = singular
    gain = sum(np.outer(left ** (2 * (L - k) / L), right ** (2 * (k - 1) / L)) for k in range(1, L + 1))
    return U @ (gain * (U.T @ F @ Vt.T)) @ Vt
