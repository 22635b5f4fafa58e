"""Closed equations for two-layer networks of any width: the Gram flow, and the mixed equation for the product."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .flow import IntegrationError, gradient_flow, integrate
from .inputs import as_matrix, as_number, as_times, as_tolerance
from .networks import as_teacher, as_weights
from .trajectory import FunctionTrajectory, Trajectory


def gram_flow(W1: ArrayLike, W2: ArrayLike, S: ArrayLike, t: ArrayLike, rtol: float = 1e-12) -> Trajectory:
    """Gradient flow of a two-layer network without its hidden layer: ``K̇ = BK + KB``.

    ``K = QQᵀ`` with ``Q = [W_2; W_1ᵀ]`` has the blocks ``W_2W_2ᵀ``, ``W = W_2W_1`` and ``W_1ᵀW_1``, and
    ``B = [[0, E], [Eᵀ, 0]]`` with ``E = S − W`` depends on K alone. The hidden layer can turn freely, so that every
    Q with the same K will do: the flow ``Q̇ = BQ`` is integrated for one of at most N_i + N_o columns.

    Parameters
    ----------
    W1, W2
        Layers at t = 0, shapes ``(N_h, N_i)`` and ``(N_o, N_h)``, any N_h.
    S
        Teacher, shape ``(N_o, N_i)``.
    t
        Times in units of 1/η, increasing; the integration starts at 0.
    rtol
        Relative tolerance of a step; the absolute one follows from it and the size of the layers, see
        `flow.gradient_flow`.

    Returns
    -------
    Trajectory
        At the times t. A time step costs O((N_i + N_o)³), whatever N_h.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, t is negative or decreasing, or rtol is out of range.
    flow.IntegrationError
        If the solver gives up.

    Notes
    -----
    A wide Q is replaced by the triangular factor of Qᵀ, whose rounding error is relative to each row of Q. K itself
    is not integrated: rounding gives it a rank above N_h, and at a bottleneck, N_h < rank S, that grows until the
    loss falls below what N_h units can reach. Source: exercise 6.2.
    """
    layers = as_weights([W1, W2])
    M, times, rtol = as_teacher(S, layers), as_times(t), as_tolerance(rtol)
    rows = np.hstack([layers[1].T, layers[0]])
    if len(rows) > rows.shape[1]:
        rows = np.linalg.qr(rows, mode="r")
    outputs = len(M)
    run = gradient_flow([rows[:, outputs:], rows[:, :outputs].T], M, times, rtol)
    method = f"Gram flow, {run.method}"
    return Trajectory(
        t=times,
        function=run.function,
        input_similarity=run.input_similarity,
        output_similarity=run.output_similarity,
        teacher=M,
        method=method,
    )


def mixed_flow(W0: ArrayLike, M: ArrayLike, tau: float, t: ArrayLike, rtol: float = 1e-12) -> FunctionTrajectory:
    """The mixed matrix equation ``Ẇ = √(WWᵀ + τ²) E + E √(WᵀW + τ²)``, ``E = M − W``.

    It is the flow of a two-layer network iff, for some real c, ``W_2W_2ᵀ + c`` and ``W_1ᵀW_1 − c`` are positive
    semi-definite and ``(K_0 + cJ)J(K_0 + cJ) = τ²J``, with K as in `gram_flow` and ``J = diag(I, −I)``: for a
    λ-balanced square start (c = −λ/2, ``τ = |λ|/2``), and for W(0) = 0 with
    orthogonal rows of Q of squared norm τ (c = 0, N_h ≥ N_i + N_o). Wide Gaussian layers of weight variance
    τ/N_h come within O(N_h^{−1/2}).

    Parameters
    ----------
    W0
        Product at t = 0, shape ``(N_o, N_i)``.
    M
        Teacher, of the same shape.
    tau
        τ ≥ 0; 0 gives the balanced equation, large τ the lazy ``Ẇ = 2τE``.
    t
        Times in units of 1/η, increasing; the integration starts at 0.
    rtol
        Relative tolerance of a step (DOP853). The absolute tolerance is 1e-3 of it times the larger of ``‖W0‖``
        and τ (at most 1). At τ = 0 the right side has a kink where a singular value crosses zero.

    Returns
    -------
    FunctionTrajectory
        At the times t.

    Raises
    ------
    ValueError
        If the shapes do not fit, an entry is not finite, tau is negative, t or rtol is out of range, or a number is too
        large or too small to be squared.
    flow.IntegrationError
        If the solver gives up, or if at τ = 0 rounding has carried a square W across det W = 0, which the exact
        solution never reaches.

    Notes
    -----
    In float64 a mode of W far below the largest one is known to 1e-16 of the latter only, and on a plateau that error
    grows with the mode: for starts below 1e-8 or so follow the weights instead (`gram_flow`).
    Source: exercise 6.1 and 6.2 (τ = σ²√n there, for a weight variance of σ²/√n).
    """
    W0 = as_matrix("W0", W0)
    M, times, rtol = as_teacher(M, [W0]), as_times(t), as_tolerance(rtol)
    tau = as_number("tau", tau, strict=False)

    def velocity(_, state):
        W = state.reshape(M.shape)
        U, singular, Vt = np.linalg.svd(W)
        left, right = np.full(len(U), float(tau)), np.full(len(Vt), float(tau))
        left[: len(singular)] = right[: len(singular)] = np.hypot(singular, tau)
        return (U @ (np.add.outer(left, right) * (U.T @ (M - W) @ Vt.T)) @ Vt).ravel()

    size = max(np.abs(W0).max(), tau)
    atol = 1e-3 * rtol * (min(1.0, size) if size > 0 else 1.0)
    if (largest := max(size, np.abs(M).max())) > 1e100 or 0 < size < 1e-100:
        got = (
            f"got {largest:.3g} for the largest" if largest > 1e100 else f"got {size:.3g} for the larger of W0 and tau"
        )
        raise ValueError(f"W0, tau and M must be at most 1e100 in size, and W0 or tau 0 or at least 1e-100, {got}")
    function = integrate(velocity, W0.ravel(), times, rtol, lambda _: atol).reshape(-1, *M.shape)
    if tau == 0 and M.shape[0] == M.shape[1]:
        refuse_crossing(np.concatenate([W0[None], function]), np.append(0.0, times))
    method = f"mixed equation, tau={tau:g}, DOP853, rtol={rtol:g}, atol={atol:.3g}"
    return FunctionTrajectory(t=times, function=function, teacher=M, method=method)


def refuse_crossing(function: NDArray[np.float64], times: NDArray[np.float64]) -> None:
    """Raise if the determinant changes its sign: at τ = 0 only rounding can do that."""
    signs = np.linalg.slogdet(function)[0]
    crossed = signs * signs[0] < 0
    if crossed.any():
        k = int(np.argmax(crossed))
        raise IntegrationError(
            f"between t = {times[k - 1]:g} and {times[k]:g} rounding carried W across det W = 0, "
            "which the exact solution at tau = 0 never reaches: it ends at a saddle"
        )
