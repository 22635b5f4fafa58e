"""Initial weights: balanced, λ-balanced, Gaussian and orthogonal.

Every function draws from the `numpy.random.Generator` it is given and returns layers ``[W1, …, WL]``, ``Wl`` of shape
``(d_l, d_{l−1})``, as `lindyn_lite.networks` takes them.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import as_generator, as_integer, as_matrix, as_numpy, as_real, as_vector
from .networks import Weights
from .tasks import random_basis

CONVENTIONS = ("mixed", "sigma2", "fan_in", "lecun", "glorot")
"""Names of the conventions of `gaussian`."""


class ImpossibleStartError(ValueError):
    """No λ-balanced start exists for these widths; the message names the inequality that fails."""


def balanced(widths: Sequence[int], scale: ArrayLike, rng: np.random.Generator) -> Weights:
    """A balanced start, ``W_{l+1}ᵀW_{l+1} = W_lW_lᵀ`` for every l, in random bases.

    ``W_l = R_l diag(σ) R_{l−1}ᵀ`` with independent, uniformly distributed ``R_l`` of shape ``(d_l, r)`` and orthonormal
    columns: all layers have the same r singular values, and the product has their L-th powers.

    Parameters
    ----------
    widths
        ``(d_0, …, d_L)``, inputs first.
    scale
        The singular values σ of every layer, at least 0: a number for r = min d_l equal ones, or a vector of at
        most that many.
    rng
        Source of randomness, for example ``numpy.random.default_rng(0)``.

    Raises
    ------
    ValueError
        If a width is not a positive integer, or ``scale`` is not finite, is negative, or has too many values.

    Notes
    -----
    Source: exercise 3.2 (two layers), 3.7 (any depth).
    """
    sizes, rng = as_widths(widths), as_generator(rng)
    sigma = as_values("scale", scale, min(sizes), signed=False)
    bases = [random_basis(d, rng)[:, : len(sigma)] for d in sizes]
    return [(above * sigma) @ below.T for below, above in itertools.pairwise(bases)]


def lambda_balanced(
    N_i: int,
    N_h: int,
    N_o: int,
    lam: float,
    rng: np.random.Generator,
    scale: ArrayLike = 1.0,
    aligned_to: ArrayLike | None = None,
) -> Weights:
    """A λ-balanced start, ``W_2ᵀW_2 − W_1W_1ᵀ = λI``, whose product has given singular values.

    ``W_2 = U S_2 Rᵀ``, ``W_1 = R S_1 Vᵀ`` with ``S_{2,1} = (S_λ ± λ/2)^{1/2}``, ``S_λ = (S² + λ²/4)^{1/2}`` on the
    modes of the product ``W_2W_1 = U S Vᵀ``, and ``|λ|^{1/2}`` in one layer on the hidden directions that carry none.
    The hidden basis R is random. The smaller square of a mode is computed as ``s²/(s_λ + |λ|/2)``.

    Parameters
    ----------
    N_i, N_h, N_o
        Numbers of inputs, hidden units and outputs.
    lam, rng
        λ, of any sign, and the source of randomness.
    scale
        Singular values of the product: a number for r = min(N_i, N_h, N_o) equal ones, or a vector of at most that many
        (the rest is zero). Negative values reverse a mode; together with ``aligned_to`` the order counts.
    aligned_to
        A teacher of shape ``(N_o, N_i)``: U and V are then its singular vectors, with the largest singular value first.
        ``None`` for uniformly distributed bases.

    Returns
    -------
    list of numpy.ndarray
        ``[W1, W2]`` of shapes ``(N_h, N_i)`` and ``(N_o, N_h)``.

    Raises
    ------
    ImpossibleStartError
        If λ > 0 and N_h > N_o, or λ < 0 and N_h > N_i: a layer would need rank N_h. λ = 0 is always possible.
    ValueError
        If a width is not a positive integer, ``lam`` or ``scale`` is not finite, ``scale`` has too many values, or the
        teacher has another shape.

    Notes
    -----
    Source: theorem 5.2 and assumption A2 of "From Lazy to Rich" (arXiv 2409.14623).
    """
    N_i, N_h, N_o = as_widths((N_i, N_h, N_o))
    rng, lam = as_generator(rng), as_real("lam", lam)
    sign, name, room, layer = (">", "N_o", N_o, "W2") if lam > 0 else ("<", "N_i", N_i, "W1")
    if lam and N_h > room:
        raise ImpossibleStartError(
            f"λ = {lam:g} {sign} 0 needs N_h ≤ {name}, since {layer} then has rank N_h, but N_h = {N_h} exceeds "
            f"{name} = {room} by {N_h - room}"
        )
    values = as_values("scale", scale, min(N_i, N_h, N_o), signed=True)
    if aligned_to is None:
        U, V = random_basis(N_o, rng), random_basis(N_i, rng)
    else:
        teacher = as_matrix("aligned_to", aligned_to)
        if teacher.shape != (N_o, N_i):
            raise ValueError(f"aligned_to must have shape (N_o, N_i) = {(N_o, N_i)}, got {teacher.shape}")
        U, _, Vt = np.linalg.svd(teacher)
        V = Vt.T
    R = random_basis(N_h, rng)
    large = np.hypot(values, lam / 2) + abs(lam) / 2
    small = np.divide(np.abs(values), np.sqrt(large), out=np.zeros_like(large), where=large > 0)
    big, idle = np.sqrt(large), np.full(N_h - len(values), np.sqrt(abs(lam)))
    first, second = (small, big) if lam >= 0 else (big, small)
    first = first * np.where(values < 0, -1.0, 1.0)
    if lam > 0:
        second = np.concatenate([second, idle])
    elif lam < 0:
        first = np.concatenate([first, idle])
    W1 = (R[:, : len(first)] * first) @ V[:, : len(first)].T
    W2 = (U[:, : len(second)] * second) @ R[:, : len(second)].T
    return [W1, W2]


def gaussian(widths: Sequence[int], rng: np.random.Generator, convention: str = "mixed", sigma: float = 1.0) -> Weights:
    """Independent centred Gaussian entries, ``(W_l)_{ij} ~ N(0, v_l)``, in a named convention.

    =============  ==========================================================================
    convention     variance ``v_l`` of the layer of shape ``(d_l, d_{l−1})``
    =============  ==========================================================================
    ``"mixed"``    ``σ²/√n``, n the hidden width, two layers only: then ``τ = σ²√n``
    ``"sigma2"``   ``σ²``: with n hidden units ``τ = σ²n``
    ``"fan_in"``   ``σ²/d_{l−1}``: keeps the variance of the signal from layer to layer at σ = 1
    ``"lecun"``    ``σ²/d_{l−1}``: another name of the same
    ``"glorot"``   ``2σ²/(d_l + d_{l−1})``
    =============  ==========================================================================

    Parameters
    ----------
    widths
        ``(d_0, …, d_L)``, inputs first.
    rng
        Source of randomness.
    convention
        One of the names in the table.
    sigma
        σ, at least 0.

    Raises
    ------
    ValueError
        If the convention is unknown or needs two layers, a width is not a positive integer, or ``sigma`` is negative or
        not finite.

    Notes
    -----
    In expectation two layers are λ-balanced, ``E(W_2ᵀW_2 − W_1W_1ᵀ) = (N_oσ_2² − N_iσ_1²) I``.
    Source: exercise 6.2 ("mixed"); Tu, Aranguri, Jacot, arXiv 2405.17580 ("sigma2"); appendix A.3 of
    "From Lazy to Rich", arXiv 2409.14623 ("lecun").
    """
    sizes, rng, sigma = as_widths(widths), as_generator(rng), as_real("sigma", sigma)
    if sigma < 0:
        raise ValueError(f"sigma is a standard deviation and must be at least 0, got {sigma:g}")
    if convention not in CONVENTIONS:
        raise ValueError(f"unknown convention {convention!r}: choose from {', '.join(map(repr, CONVENTIONS))}")
    if convention == "mixed" and len(sizes) != 3:
        raise ValueError(f'the convention "mixed" is for one hidden layer: it needs 3 widths, got {len(sizes)}')
    layers = []
    for below, above in itertools.pairwise(sizes):
        variance = {"mixed": sizes[1] ** -0.5, "sigma2": 1.0, "glorot": 2 / (above + below)}.get(convention, 1 / below)
        layers.append(sigma * np.sqrt(variance) * rng.standard_normal((above, below)))
    return layers


def orthogonal(widths: Sequence[int], scale: float, rng: np.random.Generator) -> Weights:
    """Layers ``W_l = scale · O_l`` with independent, uniformly distributed (semi-)orthogonal ``O_l``.

    ``O_lᵀO_l = I`` if ``d_l ≥ d_{l−1}``, else ``O_lO_lᵀ = I``. With equal widths such a start is balanced; otherwise it
    is balanced only where the widths allow it.

    Parameters
    ----------
    widths
        ``(d_0, …, d_L)``, inputs first.
    scale
        All singular values of every layer, at least 0.
    rng
        Source of randomness.

    Raises
    ------
    ValueError
        If a width is not a positive integer, or ``scale`` is negative or not finite.

    Notes
    -----
    Source: exercise 6.2 (orthogonal layers of equal width are balanced, τ = 0).
    """
    sizes, rng, scale = as_widths(widths), as_generator(rng), as_real("scale", scale)
    if scale < 0:
        raise ValueError(f"scale must be at least 0, got {scale:g}")
    return [scale * random_basis(max(pair), rng)[: pair[1], : pair[0]] for pair in itertools.pairwise(sizes)]


def as_widths(widths: Sequence[int]) -> list[int]:
    """Two or more positive integers."""
    if not isinstance(widths, Iterable) or len(widths) < 2:
        raise ValueError(f"widths must be two or more integers (d_0, …, d_L), got {widths!r}")
    return [as_integer("a width", width, 1) for width in widths]


def as_values(name: str, value: ArrayLike, most: int, signed: bool) -> NDArray[np.float64]:
    """Singular values: a number for as many equal ones as fit, or a vector."""
    if as_numpy(name, value).ndim == 0:
        values = np.full(most, as_real(name, value))
    else:
        values = as_vector(name, value)
        if len(values) > most:
            raise ValueError(f"{name} must be a number or at most {most} values, got {len(values)}")
    if not signed and np.any(values < 0):
        raise ValueError(f"{name} must be at least 0, got {values.min():g}")
    return values
