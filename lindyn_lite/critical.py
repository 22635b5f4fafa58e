"""Critical points in closed form: the balanced representatives of ``P_S M`` and their spectrum."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import as_integer, as_matrix, as_shape, as_vector, refuse_overflow
from .networks import Weights


def learned_modes(modes: Iterable[int], available: int, widths: Sequence[int]) -> list[int]:
    """The modes as sorted 0-based indices, checked against the teacher and the widths."""
    if not isinstance(modes, Iterable):
        raise ValueError(f"modes must be a collection of integers such as [1, 2], got {modes!r}")
    chosen = sorted(as_integer("a mode", mode, 1) for mode in modes)
    if chosen and (chosen[-1] > available or len(set(chosen)) < len(chosen)):
        raise ValueError(f"modes must be different numbers from 1 to {available}, got {chosen}")
    if len(chosen) > min(widths):
        raise ValueError(f"{len(chosen)} modes do not pass through a layer of width {min(widths)}")
    return [mode - 1 for mode in chosen]


@refuse_overflow
def balanced_critical_point(M: ArrayLike, modes: Iterable[int], hidden: Sequence[int]) -> Weights:
    """The balanced critical point with product ``P_S M = Σ_{α∈S} s_α u_α v_αᵀ``.

    Mode α ∈ S runs through one unit of every hidden layer with weight ``s_α^{1/L}`` in each layer; the
    other units are idle (all their weights are zero).

    Parameters
    ----------
    M
        Teacher, shape ``(d_L, d_0)``.
    modes
        The learnt set S, counted from 1 in the order of decreasing singular values.
    hidden
        Widths ``(d_1, …, d_{L−1})`` of the hidden layers; its length is the depth minus one.

    Returns
    -------
    list of numpy.ndarray
        Layers ``[W1, …, WL]``.

    Raises
    ------
    ValueError
        If S names a mode that the teacher does not have, or more modes than a hidden layer has units.

    Notes
    -----
    Source: exercise 2.3. ``‖M − P_S M‖² / 2 = ½ Σ_{α∉S} s_α²``.
    """
    M = as_matrix("the teacher M", M)
    if not isinstance(hidden, Iterable) or len(hidden) == 0:
        raise ValueError(f"hidden must be the widths of one or more hidden layers such as [3], got {hidden!r}")
    units = [as_integer("a hidden width", width, 1) for width in hidden]
    U, s, Vt = np.linalg.svd(M)
    s[s < s[0] * max(M.shape) * np.finfo(float).eps] = 0.0  # rounding, whose root would not be small
    chosen = learned_modes(modes, len(s), units)
    depth, rank = len(units) + 1, len(chosen)
    root = np.diag(s[chosen] ** (1 / depth))
    sizes = (M.shape[1], *units, M.shape[0])
    layers = [np.zeros((after, before)) for before, after in itertools.pairwise(sizes)]
    for layer in layers[1:-1]:
        layer[:rank, :rank] = root
    layers[0][:rank] = root @ Vt[chosen]
    layers[-1][:, :rank] = U[:, chosen] @ root
    return layers


@refuse_overflow
def two_layer_spectrum(
    s: ArrayLike, modes: Iterable[int], hidden: int, shape: tuple[int, int] | None = None
) -> NDArray[np.float64]:
    """The Hessian spectrum at the balanced critical point ``P_S M`` of a two-layer network, in closed form.

    With ``r = |S|``, for every idle hidden unit: ``±s_α`` for each α ∉ S, and zeros; for each β ∈ S and α ∉ S:
    ``s_β ± s_α`` (and once ``s_β`` for each of the ``|N_o − N_i|`` dimensions without a partner);
    for each (β, β') ∈ S²: ``0`` and ``s_β + s_β'``; and ``2r(h − r)`` further zeros.

    Parameters
    ----------
    s
        All min(N_o, N_i) singular values of the teacher, zeros included, in decreasing order.
    modes
        The learnt set S, counted from 1.
    hidden
        Width h of the hidden layer.
    shape
        ``(N_o, N_i)`` of the teacher; default square.

    Returns
    -------
    numpy.ndarray
        The ``h (N_o + N_i)`` eigenvalues, ascending.

    Raises
    ------
    ValueError
        If S does not fit the teacher or the hidden layer, or s is not decreasing and non-negative.

    Notes
    -----
    Source: exercise 2.3 (square teachers); the terms for rectangular ones are this book's.
    """
    s, hidden = as_vector("s", s), as_integer("the hidden width", hidden, 1)
    outputs, inputs = as_shape("shape", (len(s), len(s)) if shape is None else shape)
    if min(outputs, inputs) != len(s):
        needed = min(outputs, inputs)
        raise ValueError(f"a teacher of shape {(outputs, inputs)} has {needed} singular values, got {len(s)}")
    if np.any(np.diff(s) > 0) or s[-1] < 0:
        raise ValueError(f"singular values must be non-negative and in decreasing order, got {s}")
    chosen = learned_modes(modes, len(s), [hidden])
    inside, outside = s[chosen], np.delete(s, chosen)
    idle, extra = hidden - len(chosen), abs(outputs - inputs)
    pairs = np.add.outer(inside, outside), np.subtract.outer(inside, outside)
    parts = [
        np.tile(np.concatenate([outside, -outside, np.zeros(extra)]), idle),
        np.concatenate([p.ravel() for p in pairs]),
        np.repeat(inside, extra),
        np.add.outer(inside, inside).ravel(),
        np.zeros(len(inside) ** 2 + 2 * len(inside) * idle),
    ]
    return np.sort(np.concatenate(parts))
