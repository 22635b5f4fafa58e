"""Many steps of SGD on noisy labels: how fast the λ of a fitted two-layer network changes, and where it comes to rest.

`balance.label_noise_drift` has the mean of one step for any weights; here a network has fitted its task and stays with
it, up to the residual that finite steps leave behind.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from .flow import IntegrationError
from .inputs import as_integer, as_number, as_vector, real_arrays, refuse_overflow

Floats = NDArray[np.float64]


@refuse_overflow
def decay_steps(width: int, eta: float, batch: int, sigma: float) -> float:
    """Steps in which label noise divides λ by e in a square network, ``K_λ = b/(η²σ²N)``: ``λ_k = λ_0 e^{−k/K_λ}``.

    The limit ηκ → 0 of `course` for N_i = N_h = N_o = N = ``width``; η, b and σ are the learning rate, the batch size
    and the standard deviation of the noise on a label. Non-positive input is a `ValueError`.
    Source: "Does λ survive SGD?" in the notes on arXiv 2409.14623.
    """
    width, batch = as_integer("width", width, 1), as_integer("batch", batch, 1)
    return batch / (as_number("the learning rate eta", eta) ** 2 * as_number("sigma", sigma) ** 2 * width)


@refuse_overflow
def resting_lambda(s: ArrayLike, outputs: int, inputs: int) -> Floats:
    """Where label noise brings the λ of a mode of singular value s: ``λ* = s(N_o − N_i)/√(N_iN_o)``.

    There the drift vanishes: ``N_o(s_λ − λ/2) = N_i(s_λ + λ/2)`` with ``s_λ = √(s² + λ²/4)``. Broadcasts over s;
    a negative s and non-positive dimensions are a `ValueError`. The limit ηκ → 0; it is the λ least sensitive to
    parameter noise. Source: as `decay_steps`.
    """
    outputs, inputs = as_integer("outputs", outputs, 1), as_integer("inputs", inputs, 1)
    (values,) = real_arrays({"s": 0}, s=s)
    return values * (outputs - inputs) / np.sqrt(inputs * outputs)


def _grams(lam: Floats, s: Floats, outputs: int, inputs: int) -> tuple[Floats, Floats]:
    """The eigenvalues of W_2W_2ᵀ and of W_1ᵀW_1 of a fitted network, ``s_λ ± λ/2`` and zeros for idle directions."""
    n, large = len(s), np.hypot(s, lam / 2) + np.abs(lam) / 2
    a, c = np.zeros(outputs), np.zeros(inputs)
    a[:n], c[:n] = np.where(lam >= 0, (large, s * (s / large)), (s * (s / large), large))
    return a, c


def _noise_gain(a: Floats, c: Floats, eta: float, b: int) -> Floats:
    """`noise_gain` from the eigenvalues a and c."""
    kappa = np.add.outer(a, c)[:, None, :]
    system = np.eye(len(c)) * (1 - eta / 2 * (1 + 1 / b) * kappa) - eta / 2 / b * kappa
    try:
        gain = np.linalg.solve(system, np.ones((len(a), len(c), 1)))[..., 0]
    except np.linalg.LinAlgError:
        gain = np.zeros(1)
    if not gain.min() >= 1:  # g = 1 + Mg with M ≥ 0 has a solution g ≥ 1 only if the variance converges
        safe = 2 / kappa.max() / (1 + (len(c) + 1) / b)
        raise ValueError(
            f"the residual has no stationary variance with a learning rate eta = {eta:g}, a batch of {b} and a tangent "
            f"kernel of up to {kappa.max():.6g}: it needs eta below {safe:.4g} to be sure of one"
        )
    return gain


def _checked(
    lam: ArrayLike, s: ArrayLike, outputs: int, inputs: int, eta: float, batch: int
) -> tuple[Floats, Floats, int, int, float, int]:
    """The arguments that `noise_gain` and `course` share."""
    s, outputs, inputs = as_vector("s", s), as_integer("outputs", outputs, 1), as_integer("inputs", inputs, 1)
    most = min(outputs, inputs)
    if len(s) > most or s.min() <= 0:
        raise ValueError(
            f"s must hold 1 to {most} positive singular values for {outputs} outputs and {inputs} inputs, got {s}"
        )
    lam, _ = real_arrays(lam=lam, s=s)
    if lam.shape != s.shape:
        raise ValueError(f"lam must be a number or one λ for each of the {len(s)} modes, got the shape {lam.shape}")
    return lam, s, outputs, inputs, as_number("the learning rate eta", eta), as_integer("batch", batch, 1)


@refuse_overflow
def noise_gain(lam: ArrayLike, s: ArrayLike, outputs: int, inputs: int, eta: float, batch: int) -> Floats:
    """Mean squares of the entries of the minibatch gradient G over those of the label noise alone, ``g = b⟨G²⟩/σ²``.

    Noise moves the product off the teacher, and the residual that it leaves behind adds to the gradient. In the
    singular bases of the teacher, with ``κ_αβ = a_α + c_β`` from the eigenvalues a of W_2W_2ᵀ and c of W_1ᵀW_1,

    ``g_αβ = 1 + (η/2) [(1 + 1/b) κ_αβ g_αβ + (1/b) Σ_γ κ_αγ g_αγ]``

    for whitened Gaussian inputs. It is 1 for ηκ → 0, and at most ``1/(1 − ηκq/2)``, ``q = 1 + (N_i + 1)/b``, with the
    largest κ.

    Parameters
    ----------
    lam
        λ of the modes, ``λ_α = w_2² − w_1²``: a number or one for each mode.
    s
        Singular values of the teacher, positive, one for each hidden unit; at most ``min(outputs, inputs)``.
    outputs, inputs
        N_o and N_i.
    eta, batch
        Learning rate η and batch size b.

    Returns
    -------
    numpy.ndarray
        g, shape ``(N_o, N_i)``, at least 1; modes first, then the directions that no mode uses.

    Raises
    ------
    ValueError
        If the input is out of range, or η is so large that the residual has no stationary variance.

    Notes
    -----
    Source: the chapter sgd_balance; the stationary residual is that of linear regression by SGD (arXiv
    2102.05375, theorem 2).
    """
    lam, s, outputs, inputs, eta, b = _checked(lam, s, outputs, inputs, eta, batch)
    return _noise_gain(*_grams(lam, s, outputs, inputs), eta, b)


def _velocity(lam: Floats, s: Floats, outputs: int, inputs: int, eta: float, b: int) -> Floats:
    """``c_α Σ_γ g_γα − a_α Σ_β g_αβ``, the change of λ_α in b/(ησ)² steps."""
    n, (a, c) = len(s), _grams(lam, s, outputs, inputs)
    g = _noise_gain(a, c, eta, b)
    return c[:n] * g.sum(axis=0)[:n] - a[:n] * g.sum(axis=1)[:n]


@refuse_overflow
def course(
    lam: ArrayLike, s: ArrayLike, outputs: int, inputs: int, eta: float, batch: int, sigma: float, steps: ArrayLike
) -> Floats:
    """The λ of each mode of a fitted network after k steps of label noise, residual included.

    ``dλ_α/dk = (η²σ²/b) (c_α Σ_γ g_γα − a_α Σ_β g_αβ)`` with `noise_gain` g, ``a, c = s_λ ± λ/2``. For ηκ → 0 it is
    ``λ_0 e^{−k/K_λ}`` in a square network (`decay_steps`) and otherwise a way to `resting_lambda`.

    Parameters
    ----------
    lam
        λ at step 0: a number or one for each mode.
    s, outputs, inputs, eta, batch
        As for `noise_gain`.
    sigma
        Standard deviation σ of the noise on a label, not negative.
    steps
        Numbers of steps k, not negative and finite, in any order; need not be whole.

    Returns
    -------
    numpy.ndarray
        λ_α, shape ``(*steps.shape, modes)``. What is left out is of relative order ησ²/b.

    Raises
    ------
    ValueError
        If the input is out of range, or η is so large that the residual has no stationary variance.
    flow.IntegrationError
        If the solver gives up.

    Notes
    -----
    A square network with unequal strengths rests near zero, at ``λ_α ≈ (ηN/2b) s_α (s̄ − s_α)``, s̄ the mean strength.
    Source: as `noise_gain`.
    """
    lam, s, outputs, inputs, eta, b = _checked(lam, s, outputs, inputs, eta, batch)
    (k,) = real_arrays({"steps": 0}, steps=steps)
    clock = k * (eta * as_number("sigma", sigma, strict=False)) ** 2 / b
    clock = np.minimum(clock, 1000.0)  # λ_α approaches its rest at least like e^{−clock}
    ticks, back = np.unique(np.append(0.0, clock), return_inverse=True)
    if len(ticks) == 1:
        return np.broadcast_to(lam, (*k.shape, len(s))).copy()
    end = ticks[-1]
    run = solve_ivp(
        lambda _, x: end * _velocity(x, s, outputs, inputs, eta, b),
        (0, 1),
        lam,
        "LSODA",
        ticks / end,
        rtol=1e-11,
        atol=1e-13 * s.max(),
    )
    if not run.success:
        raise IntegrationError(f"the course of λ stopped after {run.t[-1]:.3g} of the steps: {run.message}")
    return np.where(clock[..., None] == 0, lam, run.y.T[back[1:]].reshape(*k.shape, len(s)))
