"""The symmetry of the landscape: the GL action, and the dimensions of its orbits and of the fibres.

Hidden layers can change their basis without changing what the network computes:
``(W_1, …, W_L) ↦ (g_1 W_1, g_2 W_2 g_1⁻¹, …, W_L g_{L−1}⁻¹)``.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import as_matrix, refuse_overflow
from .networks import Weights, as_weights, widths


@refuse_overflow
def transform(weights: Sequence[ArrayLike], g: Sequence[ArrayLike]) -> Weights:
    """The action of the symmetry group, ``(g_1 W_1, g_2 W_2 g_1⁻¹, …, W_L g_{L−1}⁻¹)``.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``.
    g
        One invertible matrix for every hidden layer, ``g_l`` of shape ``(d_l, d_l)``.

    Raises
    ------
    ValueError
        If the number or a shape of the group elements does not fit, or one is singular.

    Notes
    -----
    Source: exercise 2.4. The product does not change.
    """
    layers = as_weights(weights)
    if not isinstance(g, Sequence | np.ndarray):
        raise ValueError(f"g must be a list of matrices, one for every hidden layer, got {g!r}")
    if len(g) != len(layers) - 1:
        raise ValueError(f"{len(layers)} layers have {len(layers) - 1} hidden layers, got {len(g)} group elements")
    for l, element in enumerate(g):
        element = as_matrix(f"g{l + 1}", element)
        width = layers[l].shape[0]
        if element.shape != (width, width):
            raise ValueError(f"g{l + 1} has shape {element.shape}, but hidden layer {l + 1} needs {(width, width)}")
        if np.linalg.cond(element) > 1 / np.finfo(float).eps:
            raise ValueError(f"g{l + 1} is singular to working precision: not an element of GL({width})")
        layers[l] = element @ layers[l]
        layers[l + 1] = np.linalg.solve(element.T, layers[l + 1].T).T
    return layers


def rescaled(layers: Weights, size: float) -> Weights:
    """The same network with non-zero layers of equal spectral norm, moved along the symmetry by positive factors.

    Where a layer is zero the factors of the others are free, and their norms become ``size`` if that is positive.
    """
    norms = [float(np.linalg.norm(layer, 2)) for layer in layers]
    positive = [norm for norm in norms if norm > 0]
    common = float(np.exp(np.mean(np.log(positive)))) if positive else 0.0
    if 0 in norms and size > 0:
        common = size
    return [layer * (common / norm) if norm > 0 else layer for layer, norm in zip(layers, norms, strict=True)]


def ranks(weights: Sequence[ArrayLike]) -> NDArray[np.int64]:
    """The ranks of all partial products, ``r[i, j] = rank(W_j … W_{i+1})`` for i < j, ``r[i, i] = d_i``.

    They decide every dimension below. A singular value counts as zero up to the rounding error of the
    product, ``max(d) · ε · Π‖W_l‖``, so that the scale of a layer does not matter. Its conditioning does: after
    `transform` with a condition number above 1e4 small true singular values can fall below that error.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``.

    Returns
    -------
    numpy.ndarray
        Shape ``(L + 1, L + 1)``; entries below the diagonal are 0.
    """
    layers = as_weights(weights)
    sizes = widths(layers)
    norms = [np.linalg.norm(layer, 2) for layer in layers]
    units = [layer / norm if norm else layer for layer, norm in zip(layers, norms, strict=True)]
    table = np.diag(sizes)
    for i in range(len(layers)):
        partial = np.eye(sizes[i])
        for j in range(i, len(layers)):
            partial = units[j] @ partial
            threshold = (j - i + 1) * max(sizes) * np.finfo(float).eps
            table[i, j + 1] = np.sum(np.linalg.svd(partial, compute_uv=False) > threshold)
    return table


def fibre_dimension(weights: Sequence[ArrayLike]) -> int:
    """Dimension of the kernel of the Jacobian of the product map at these weights.

    At a point where the fibre ``{θ : W_L … W_1 = W}`` is a manifold this is its dimension. The rank of
    the Jacobian is ``Σ_l (a_l − a_{l−1}) b_l`` with ``a_l = rank(W_L … W_{l+1})``, a_0 = 0, and
    ``b_l = rank(W_{l−1} … W_1)``: the images of the layers are ``col(W_L … W_{l+1}) ⊗ row(W_{l−1} … W_1)``,
    the first factors grow with l, the second shrink.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``.

    Returns
    -------
    int
        ``Σ d_l d_{l−1} − rank J``.

    Raises
    ------
    ValueError
        If the layers are not finite real matrices whose shapes chain.

    Notes
    -----
    Source: exercise 2.4; the formula by ranks is this book's.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> fibre_dimension([rng.standard_normal((10, 2)), rng.standard_normal((2, 10))])
    36
    """
    layers = as_weights(weights)
    table = ranks(layers)
    last = len(layers)
    columns = [0, *(int(table[l, last]) for l in range(1, last + 1))]
    rows = [int(table[0, l - 1]) for l in range(1, last + 1)]
    rank = sum((columns[l] - columns[l - 1]) * rows[l - 1] for l in range(1, last + 1))
    return sum(layer.size for layer in layers) - rank


def interval_multiplicities(table: NDArray[np.int64]) -> dict[tuple[int, int], int]:
    """How often each interval [a, b] occurs when the chain of layers is split into chains of ones.

    ``W_1, …, W_L`` act as a sum of pieces, each of which starts at layer a, is passed on by identities
    and ends at layer b. Their numbers follow from the ranks by inclusion and exclusion.
    """
    size = len(table)
    padded = np.zeros((size + 2, size + 2), dtype=int)
    padded[1:-1, 1:-1] = table
    counts = {}
    for a in range(size):
        for b in range(a, size):
            i, j = a + 1, b + 1
            counts[a, b] = int(padded[i, j] - padded[i - 1, j] - padded[i, j + 1] + padded[i - 1, j + 1])
    if min(counts.values()) < 0:
        raise ValueError(
            "the numerical ranks of the partial products contradict each other: "
            "some singular values lie at the edge of rounding error"
        )
    return counts


def orbit_dimension(weights: Sequence[ArrayLike]) -> int:
    """Dimension of the orbit of ``GL(d_1) × … × GL(d_{L−1})`` through these weights.

    It is ``Σ d_l²`` over the hidden layers minus the dimension of the stabiliser, the matrices X with
    ``X_l W_l = W_l X_{l−1}``, ``X_0 = 0``, ``X_L = 0``. For two layers that is ``h² − (h − r_1)(h − r_2)``,
    ``r_i = rank W_i``. For any depth split the chain into intervals [a, b]: the stabiliser has dimension
    ``Σ m_{ab} m_{cd}`` over c ≤ a ≤ d ≤ b with a ≥ 1 and d ≤ L − 1.

    Parameters
    ----------
    weights
        Layers ``[W1, …, WL]``.

    Raises
    ------
    ValueError
        If the layers are not finite real matrices whose shapes chain, or singular values at the edge of
        rounding make the ranks of the partial products contradict each other.

    Notes
    -----
    Source: exercise 2.4 (two layers); the formula for any depth is this book's.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> orbit_dimension([rng.standard_normal((10, 2)), rng.standard_normal((2, 10))])
    36
    """
    layers = as_weights(weights)
    last = len(layers)
    counts = interval_multiplicities(ranks(layers))
    stabiliser = sum(
        m * n
        for (a, b), m in counts.items()
        for (c, d), n in counts.items()
        if c <= a <= d <= b and a >= 1 and d <= last - 1
    )
    return sum(layer.shape[0] ** 2 for layer in layers[:-1]) - stabiliser
