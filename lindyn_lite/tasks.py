"""Teachers: diagonal, low rank plus noise, and from data by whitening."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import as_flag, as_generator, as_integer, as_matrix, as_number, as_shape, as_vector, refuse_overflow


def diagonal(s: ArrayLike, shape: tuple[int, int] | None = None) -> NDArray[np.float64]:
    """The teacher ``M = diag(s_1, …, s_k)``.

    Parameters
    ----------
    s
        Its k diagonal entries.
    shape
        ``(outputs, inputs)``, both at least k; default ``(k, k)``. The rest is zero.

    Raises
    ------
    ValueError
        If ``s`` is not a finite, non-empty vector or does not fit the shape.
    """
    values = as_vector("s", s)
    outputs, inputs = as_shape("shape", (len(values), len(values)) if shape is None else shape)
    if min(outputs, inputs) < len(values):
        raise ValueError(f"{len(values)} singular values do not fit a teacher of shape {(outputs, inputs)}")
    M = np.zeros((outputs, inputs))
    np.fill_diagonal(M[: len(values), : len(values)], values)
    return M


def random_basis(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A uniformly (Haar) distributed orthogonal matrix of size n."""
    n, rng = as_integer("n", n, 1), as_generator(rng)
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)


@refuse_overflow
def low_rank(s: ArrayLike, shape: tuple[int, int], rng: np.random.Generator, noise: float = 0.0) -> NDArray[np.float64]:
    """A teacher ``M = U diag(s) Vᵀ + noise · Z`` with random singular vectors.

    Parameters
    ----------
    s
        The k singular values of the signal.
    shape
        ``(outputs, inputs)``, both at least k.
    rng
        Source of randomness, for example ``numpy.random.default_rng(0)``.
    noise
        Standard deviation of the independent Gaussian entries of ``Z`` times ``noise``; 0 for none.

    Raises
    ------
    ValueError
        If ``s`` does not fit the shape, an entry is not finite, or ``noise`` is negative.
    """
    shape, rng = as_shape("shape", shape), as_generator(rng)
    noise = as_number("the standard deviation noise", noise, strict=False)
    if np.any(as_vector("s", s) < 0):
        raise ValueError(f"singular values must not be negative, got {s}")
    signal = random_basis(shape[0], rng) @ diagonal(s, shape) @ random_basis(shape[1], rng).T
    return signal + noise * rng.standard_normal(shape) if noise else signal


@dataclass(frozen=True)
class Whitened:
    """A regression task in whitened coordinates ``z = K x``, where ``mean(z zᵀ) = I``.

    Attributes
    ----------
    teacher
        ``M = mean(y zᵀ)``, shape ``(outputs, rank)``: the least-squares map from z to y.
    whitening
        ``K``, shape ``(rank, inputs)``; ``rank`` is the rank of the input covariance.
    floor
        The loss no linear map can go below: ``½ mean‖y − W z‖² = ½‖M − W‖² + floor``.
    """

    teacher: NDArray[np.float64]
    whitening: NDArray[np.float64]
    floor: float


@refuse_overflow
def from_data(X: ArrayLike | None, Y: ArrayLike, centre: bool = False) -> Whitened:
    """The teacher that a linear network sees when it learns ``y`` from ``x`` by least squares.

    The inputs are whitened on the range of their covariance ``C = mean(x xᵀ)`` by ``z = K x`` with
    ``K = Λ^{-1/2} Eᵀ``, where E and Λ hold the eigenvectors of C of non-zero eigenvalue. Then
    ``½ mean‖y − W z‖² = ½‖M − W‖² + floor`` with ``M = mean(y zᵀ)``, for every W.

    Parameters
    ----------
    X
        Inputs, shape ``(samples, inputs)``, one sample a row. ``None`` gives every sample an input
        of its own (one-hot): then ``K = √samples · I`` and ``M = Yᵀ/√samples``.
    Y
        Targets, shape ``(samples, outputs)``.
    centre
        Subtract the mean over samples from the targets, and from the inputs if there are any.

    Raises
    ------
    ValueError
        If X and Y differ in their number of samples, an entry is not finite, or the inputs are zero.

    Notes
    -----
    Source: assumption A1 of "From Lazy to Rich" (arXiv 2409.14623), without its condition that the
    covariance be invertible. The basis E is fixed only up to rotations of equal eigenvalues, so compare
    invariants (singular values of the teacher, predictions), not entries.
    """
    Y = as_matrix("Y", Y)
    centre = as_flag("centre", centre)
    samples = len(Y)
    if centre:
        Y = Y - Y.mean(axis=0)
    if X is None:
        whitening = np.sqrt(samples) * np.eye(samples)
        return Whitened(Y.T / np.sqrt(samples), whitening, 0.0)
    X = as_matrix("X", X)
    if len(X) != samples:
        raise ValueError(f"X has {len(X)} samples (rows) but Y has {samples}")
    rounding = np.abs(X).max() * np.sqrt(X.size) * max(X.shape) * np.finfo(float).eps
    if centre:
        X = X - X.mean(axis=0)
    left, singular, right = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(singular > rounding))
    if rank == 0:
        raise ValueError("the inputs X are zero" + (" after centring" if centre else "") + ": nothing to whiten")
    Z = np.sqrt(samples) * left[:, :rank]
    teacher = Y.T @ Z / samples
    residual = Y - Z @ teacher.T
    whitening = np.sqrt(samples) * right[:rank] / singular[:rank, None]
    return Whitened(teacher, whitening, 0.5 * float(np.sum(residual**2)) / samples)
