"""The closed equations against gradient flow of the weights, closed forms in mpmath and each other."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite import closed_flow
from lindyn_lite.closed_flow import gram_flow, mixed_flow
from lindyn_lite.flow import IntegrationError, gradient_flow, integrate
from lindyn_lite.tasks import random_basis


def random_problem(inputs, hidden, outputs, seed, scale=0.5):
    rng = np.random.default_rng(seed)
    W1, W2 = scale * rng.standard_normal((hidden, inputs)), scale * rng.standard_normal((outputs, hidden))
    return W1 / np.sqrt(hidden), W2 / np.sqrt(hidden), rng.standard_normal((outputs, inputs))


def square_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(np.sqrt(np.maximum(values, 0))) @ vectors.T


def mixed_velocity(W, M, tau):
    N, m = W.shape
    E = M - W
    return square_root(W @ W.T + tau**2 * np.eye(N)) @ E + E @ square_root(W.T @ W + tau**2 * np.eye(m))


def exact_mode(t, s, w0, tau):
    """Exercise 6.1 in 60 digits: ``tan((ψ−ψ_s)/2) = tan((ψ_0−ψ_s)/2) e^{−2rt}`` with w = τ tan ψ, r = √(s²+τ²)."""
    with mpmath.workdps(60):
        t, s, w0, tau = (mpmath.mpf(float(value)) for value in (t, s, w0, tau))
        psi_s, psi_0, r = mpmath.atan(s / tau), mpmath.atan(w0 / tau), mpmath.sqrt(s**2 + tau**2)
        half = mpmath.atan(mpmath.tan((psi_0 - psi_s) / 2) * mpmath.exp(-2 * r * t))
        return float(tau * mpmath.tan(psi_s + 2 * half))


@pytest.mark.parametrize(
    "dims", [(3, 1, 4), (3, 2, 3), (3, 3, 3), (4, 3, 2), (2, 40, 3), (1, 1, 1), (5, 8, 5)], ids=str
)
def test_the_gram_flow_is_gradient_flow_for_every_width(dims):
    W1, W2, S = random_problem(*dims, seed=0)
    t = [0.0, 0.3, 1.0, 4.0, 15.0]
    weights, grams = gradient_flow([W1, W2], S, t), gram_flow(W1, W2, S, t)
    assert_allclose(grams.function, weights.function, atol=1e-9)
    assert_allclose(grams.input_similarity, weights.input_similarity, atol=1e-9)
    assert_allclose(grams.output_similarity, weights.output_similarity, atol=1e-9)
    assert_allclose(grams.loss, weights.loss, atol=1e-9)


def gram_equation(W1, W2, S, t, error=0.0):
    """``K̇ = BK + KB`` for K itself, started with an error in K."""
    (outputs, inputs), Q = S.shape, np.vstack([W2, W1.T])

    def velocity(_, state):
        K = state.reshape(len(Q), len(Q))
        E = S - K[:outputs, outputs:]
        B = np.block([[np.zeros((outputs, outputs)), E], [E.T, np.zeros((inputs, inputs))]])
        return (B @ K + K @ B).ravel()

    start = Q @ Q.T + error * np.eye(len(Q))
    return integrate(velocity, start.ravel(), np.asarray(t), 1e-12, lambda _: 1e-15).reshape(-1, len(Q), len(Q))


@pytest.mark.parametrize("dims", [(3, 3, 3), (3, 9, 4), (2, 40, 2)], ids=str)
def test_the_gram_matrices_obey_their_closed_equation(dims):
    W1, W2, S = random_problem(*dims, seed=9)
    t = [0.3, 1.0, 4.0]
    K, run = gram_equation(W1, W2, S, t), gram_flow(W1, W2, S, t)
    o = dims[2]
    for block, expected in (
        (run.output_similarity, K[:, :o, :o]),
        (run.function, K[:, :o, o:]),
        (run.input_similarity, K[:, o:, o:]),
    ):
        assert_allclose(block, expected, atol=1e-10)


def test_a_bottleneck_stays_a_bottleneck_where_an_error_in_k_would_grow():
    W1, W2, S = random_problem(3, 1, 3, seed=0)
    floor = 0.5 * np.sum(np.linalg.svd(S, compute_uv=False)[1:] ** 2)  # Eckart and Young: the best of rank one
    assert_allclose(gram_flow(W1, W2, S, [30.0, 60.0]).loss, floor, rtol=1e-9)
    escaped = S - gram_equation(W1, W2, S, [30.0], error=1e-12)[0, :3, 3:]
    assert 0.5 * np.sum(escaped**2) < 0.5 * floor


def test_the_cost_does_not_grow_with_the_width_and_narrow_layers_are_not_touched(monkeypatch):
    seen = []

    def spy(layers, *rest):
        seen.append([W.shape for W in layers])
        return gradient_flow(layers, *rest)

    monkeypatch.setattr(closed_flow, "gradient_flow", spy)
    for hidden in (5000, 8, 7, 6, 2):
        W1, W2, S = random_problem(3, hidden, 4, seed=11)
        start = gram_flow(W1, W2, S, 0)
        assert seen.pop() == [(min(hidden, 7), 3), (4, min(hidden, 7))]
        if hidden <= 7:  # no rounding that could leave the stable manifold of a saddle
            assert_array_equal(start.function[0], W2 @ W1)
            assert_array_equal(start.input_similarity[0], W1.T @ W1)


@pytest.mark.parametrize("sizes", [(1e-6, 1.0), (1.0, 1e-9)])
def test_wide_layers_of_very_different_size_keep_their_digits(sizes):
    W1, W2, S = random_problem(2, 30, 2, seed=10, scale=1.0)
    W1, W2 = sizes[0] * W1, sizes[1] * W2
    weights, run = gradient_flow([W1, W2], S, [0.0, 0.1]), gram_flow(W1, W2, S, [0.0, 0.1])
    for name in ("function", "input_similarity", "output_similarity"):
        exact, measured = getattr(weights, name), getattr(run, name)
        for a, b in zip(exact, measured, strict=True):
            assert_allclose(b, a, atol=1e-11 * np.abs(a).max())


@settings(max_examples=15, deadline=None, derandomize=True)
@given(dims=st.tuples(*[st.integers(1, 5)] * 3), scale=st.floats(0.05, 3), seed=st.integers(0, 10**6))
def test_any_start_has_the_gram_matrices_of_gradient_flow_at_one_time(dims, scale, seed):
    W1, W2, S = random_problem(*dims, seed=seed, scale=scale)
    weights, grams = gradient_flow([W1, W2], S, 0.8), gram_flow(W1, W2, S, 0.8)
    size = max(1, scale**2)
    for name in ("function", "input_similarity", "output_similarity"):
        assert_allclose(getattr(grams, name), getattr(weights, name), atol=1e-9 * size)


def test_a_trajectory_has_the_names_and_shapes_of_the_one_with_weights():
    W1, W2, S = random_problem(3, 2, 4, seed=1)
    run = gram_flow(W1, W2, S, [0.0, 0.5])
    assert run.function.shape == (2, 4, 3)
    assert run.input_similarity.shape == (2, 3, 3) and run.output_similarity.shape == (2, 4, 4)
    assert_allclose(run.function[0], W2 @ W1, atol=1e-15)
    assert_allclose(run.input_similarity[0], W1.T @ W1, atol=1e-15)
    assert_allclose(run.output_similarity[0], W2 @ W2.T, atol=1e-15)
    assert_array_equal(run.t, [0, 0.5])
    assert_array_equal(run.teacher, S)
    assert run.loss[1] == pytest.approx(0.5 * np.linalg.norm(S - run.function[1]) ** 2, rel=1e-14)
    assert run.method.startswith("Gram flow, DOP853, rtol=1e-12, atol=")
    assert_allclose(run.input_similarity, np.swapaxes(run.input_similarity, 1, 2), atol=1e-15)
    with pytest.raises(AttributeError):
        run.t = 0
    mixed = mixed_flow(W2 @ W1, S, 0.3, 0.5)
    assert mixed.function.shape == (1, 4, 3) and mixed.loss.shape == (1,)
    assert mixed.method.startswith("mixed equation, tau=0.3, DOP853, rtol=1e-12, atol=")
    assert not hasattr(mixed, "input_similarity")


@pytest.mark.parametrize("w0", [1e-8, 1e-4, 0.1])
def test_a_balanced_mode_of_the_gram_flow_rises_from_its_plateau_as_the_logistic(w0):
    s, t = 1.3, np.linspace(0, 1.5 * np.log(10 * 1.3 / w0) / 1.3, 15)
    root = [[np.sqrt(w0)]]
    exact = s / (1 + (s / w0 - 1) * np.exp(-2 * s * t))
    assert_allclose(gram_flow(root, root, [[s]], t).function[:, 0, 0], exact, rtol=1e-10)
    assert_allclose(mixed_flow([[w0]], [[s]], 0, t).function[:, 0, 0], exact, rtol=1e-10)


def test_the_closed_flow_conserves_the_spectrum_of_the_balance():
    """K̇ = BK + KB and BJ = −JB leave the spectrum of KJ as it is: QᵀJQ = W_2ᵀW_2 − W_1W_1ᵀ has the same one."""
    W1, W2, S = random_problem(3, 6, 3, seed=2)
    run = gram_flow(W1, W2, S, np.linspace(0, 5, 6))
    K2, K1 = run.output_similarity, run.input_similarity
    traces = np.trace(K2, axis1=1, axis2=2) - np.trace(K1, axis1=1, axis2=2)
    assert_allclose(traces, np.sum(W2**2) - np.sum(W1**2), atol=1e-10)
    K = np.block([[K2, run.function], [np.swapaxes(run.function, 1, 2), K1]])
    J = np.diag([1.0] * 3 + [-1.0] * 3)
    spectra = np.sort_complex(np.linalg.eigvals(K @ J))  # those of G: QᵀJQ = W_2ᵀW_2 − W_1W_1ᵀ
    assert_allclose(spectra, np.broadcast_to(spectra[0], spectra.shape), atol=1e-8)


@pytest.mark.parametrize("tau", [1e-3, 0.3, 1.0, 30.0])
@pytest.mark.parametrize(("s", "w0"), [(1.0, 0.0), (2.0, 0.5), (0.5, 2.0), (1.0, -0.7), (-1.5, 0.4), (0.0, 1.0)])
def test_a_scalar_mode_of_the_mixed_equation_follows_its_closed_form(s, w0, tau):
    t = np.array([0.0, 0.01, 0.1, 0.7, 3.0])
    measured = mixed_flow([[w0]], [[s]], tau, t).function[:, 0, 0]
    exact = [exact_mode(now, s, w0, tau) for now in t]
    assert_allclose(measured, exact, rtol=1e-10, atol=1e-11 * max(abs(s), abs(w0)))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)], ids=str)
def test_aligned_modes_of_the_mixed_equation_are_independent_and_rotate_with_the_problem(shape):
    rng, t, tau = np.random.default_rng(3), np.array([0.2, 1.0]), 0.4
    s, w0 = np.array([2.0, 0.7, 0.3])[: min(shape)], np.array([0.1, 0.0, -0.2])[: min(shape)]
    U, V = random_basis(shape[0], rng), random_basis(shape[1], rng)

    def embed(values):
        return U[:, : len(values)] @ np.diag(values) @ V[:, : len(values)].T

    run = mixed_flow(embed(w0), embed(s), tau, t)
    expected = [embed([exact_mode(now, *mode, tau) for mode in zip(s, w0, strict=True)]) for now in t]
    assert_allclose(run.function, expected, atol=1e-11)


@pytest.mark.parametrize("tau", [0.05, 1.0])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2)], ids=str)
def test_the_velocity_of_the_mixed_flow_holds_the_matrix_square_roots(shape, tau):
    rng, h = np.random.default_rng(4), 1e-3
    W0, M = rng.standard_normal((2, *shape))
    values = mixed_flow(W0, M, tau, [0, h, 2 * h, 3 * h, 4 * h]).function
    slope = np.tensordot([1, -8, 0, 8, -1], values, 1) / (12 * h)
    assert_allclose(slope, mixed_velocity(values[2], M, tau), atol=1e-8)


@pytest.mark.parametrize("lam", [-2.0, -0.1, 0.6, 20.0])
def test_lambda_balanced_square_starts_obey_the_mixed_equation(lam):
    rng = np.random.default_rng(5)
    P, M = rng.standard_normal((2, 3, 3)) / 2
    U, s, Vt = np.linalg.svd(P)
    R, s_lam = random_basis(3, rng), np.sqrt(s**2 + lam**2 / 4)
    W1, W2 = R @ np.diag(np.sqrt(s_lam - lam / 2)) @ Vt, U @ np.diag(np.sqrt(s_lam + lam / 2)) @ R.T
    assert_allclose(W2.T @ W2 - W1 @ W1.T, lam * np.eye(3), atol=1e-13)
    t = np.array([0.1, 0.5, 2.0]) / max(1, abs(lam))
    grams, mixed = gram_flow(W1, W2, M, t), mixed_flow(P, M, abs(lam) / 2, t)
    assert_allclose(mixed.function, grams.function, atol=1e-8)
    # the conserved shift c = −λ/2: the Gram matrices are the square roots ± λ/2
    for K2, K1, W in zip(grams.output_similarity, grams.input_similarity, grams.function, strict=True):
        assert_allclose(K2, square_root(W @ W.T + lam**2 / 4 * np.eye(3)) + lam / 2 * np.eye(3), atol=1e-8)
        assert_allclose(K1, square_root(W.T @ W + lam**2 / 4 * np.eye(3)) - lam / 2 * np.eye(3), atol=1e-8)
    wrong = mixed_flow(P, M, 0.9 * abs(lam) / 2, t).function
    assert np.abs(wrong - grams.function).max() > 1e-4


@pytest.mark.parametrize("width", [6, 11])
@pytest.mark.parametrize("tau", [0.2, 3.0])
def test_starts_with_orthogonal_rows_of_q_obey_the_mixed_equation(width, tau):
    """2d orthogonal rows of squared norm τ: W(0) = 0 and c = 0."""
    rng = np.random.default_rng(6)
    rows = np.sqrt(tau) * random_basis(width, rng)[:6]
    W2, W1, M = rows[:3], rows[3:].T, rng.standard_normal((3, 3))
    t = [0.1, 0.4, 1.0, 3.0]
    grams, mixed = gram_flow(W1, W2, M, t), mixed_flow(np.zeros((3, 3)), M, tau, t)
    assert_allclose(mixed.function, grams.function, atol=1e-8)
    for K2, W in zip(grams.output_similarity, grams.function, strict=True):
        assert_allclose(K2, square_root(W @ W.T + tau**2 * np.eye(3)), atol=1e-8)


def test_orthogonal_layers_of_the_width_of_the_data_are_balanced_instead():
    rng = np.random.default_rng(7)
    W1, W2 = np.sqrt(0.5) * random_basis(3, rng), np.sqrt(0.5) * random_basis(3, rng)
    M = rng.standard_normal((3, 3))
    M *= np.sign(np.linalg.det(M) * np.linalg.det(W2 @ W1))  # else a singular value would cross zero, the kink of τ = 0
    exact = gram_flow(W1, W2, M, [0.5, 2.0]).function
    assert_allclose(mixed_flow(W2 @ W1, M, 0.0, [0.5, 2.0]).function, exact, atol=1e-8)
    assert np.abs(mixed_flow(W2 @ W1, M, 0.5, [0.5, 2.0]).function - exact).max() > 1e-2


def test_random_wide_layers_come_within_one_over_the_root_of_the_width():
    """d = 6, ‖M‖_F = 3.8, τ = .3: the median of max_t‖W − W_mixed‖_F over 9 starts of variance τ/n = σ²/√n."""
    widths, tau, t = np.array([100, 400, 1600, 6400]), 0.3, np.linspace(0.5, 3, 6)
    M = np.diag([3, 2, 1, 0.5, 0.3, 0.2])
    M *= 3.8 / np.linalg.norm(M)
    medians = []
    for n in widths:
        errors = []
        for seed in range(9):
            Q = np.random.default_rng(seed).standard_normal((12, n)) * np.sqrt(tau / n)
            wide = gram_flow(Q[6:].T, Q[:6], M, t, 1e-6).function
            mixed = mixed_flow(Q[:6] @ Q[6:].T, M, tau, t, 1e-6).function
            errors.append(np.linalg.norm(wide - mixed, axis=(1, 2)).max())
        medians.append(np.median(errors))
    slope = np.polyfit(np.log(widths), np.log(medians), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)  # groups of 9 seeds: −.46 to −.55
    assert_allclose(medians, 1.5 / np.sqrt(widths), rtol=0.4)  # the source: about .130, .068, .035, .017


@pytest.mark.parametrize(
    "flow", [lambda t: gram_flow([[0.1]], [[0.1]], [[1]], t), lambda t: mixed_flow([[0.1]], [[1]], 0.2, t)]
)
def test_output_times_do_not_change_the_flow(flow):
    assert_allclose(flow(np.linspace(0, 2, 41)).function[-1], flow(2.0).function[0], rtol=1e-11)
    assert_array_equal(flow(0).function, flow([0, 0]).function[:1])


def test_zero_starts_stay_where_they_are_without_warnings():
    zero, M = np.zeros((2, 2)), np.diag([2.0, 1.0])
    assert_array_equal(gram_flow(zero, zero, M, [0, 10]).function, np.zeros((2, 2, 2)))
    assert_array_equal(mixed_flow(zero, M, 0, [0, 10]).function, np.zeros((2, 2, 2)))
    assert_allclose(mixed_flow(zero, M, 1e-8, [0, 30]).function[-1], M, atol=1e-9)


def test_the_tolerance_can_be_chosen():
    W1, W2, S = random_problem(3, 5, 3, seed=8)
    exact = gram_flow(W1, W2, S, 2.0).function
    errors = [np.abs(gram_flow(W1, W2, S, 2.0, rtol).function - exact).max() for rtol in (1e-3, 1e-6, 1e-9)]
    assert errors[0] < 1e-2 and errors[1] < 1e-5 and errors[2] < 1e-8
    assert errors[2] < errors[0]


ONE = [[1.0]]
BAD = {
    "shapes that do not chain": (lambda: gram_flow(np.ones((2, 3)), np.ones((3, 3)), np.eye(3), 1), "do not chain"),
    "teacher": (lambda: gram_flow(ONE, ONE, np.eye(2), 1), r"teacher M.*\(2, 2\).*\(1, 1\)"),
    "NaN": (lambda: gram_flow([[np.nan]], ONE, ONE, 1), r"W1\[0, 0\] = nan"),
    "times": (lambda: gram_flow(ONE, ONE, ONE, [0, -1]), "t must not"),
    "rtol of zero": (lambda: gram_flow(ONE, ONE, ONE, 1, 0), "rtol must be at least 2.22e-14.*got 0"),
    "rtol too small": (lambda: gram_flow(ONE, ONE, ONE, 1, 1e-15), "rtol must be at least 2.22e-14.*got 1e-15"),
    "rtol NaN": (lambda: mixed_flow(ONE, ONE, 1, 1, np.nan), "rtol must be.*got nan"),
    "rtol of one": (lambda: mixed_flow(ONE, ONE, 1, 1, 1), "rtol must be.*below 1, got 1"),
    "W0": (lambda: mixed_flow(np.ones(3), ONE, 1, 1), r"W0 must be a non-empty matrix.*\(3,\)"),
    "mixed teacher": (lambda: mixed_flow(ONE, np.eye(2), 1, 1), r"teacher M.*\(2, 2\).*\(1, 1\)"),
    "mixed times": (lambda: mixed_flow(ONE, ONE, 1, [2, 1]), "t must not"),
    "tau negative": (lambda: mixed_flow(ONE, ONE, -0.5, 1), r"tau must be finite and at least 0, got -0\.5"),
    "tau NaN": (lambda: mixed_flow(ONE, ONE, np.nan, 1), "tau must be finite and at least 0, got nan"),
    "tau infinite": (lambda: mixed_flow(ONE, ONE, np.inf, 1), "tau must be finite and at least 0, got inf"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_raises_before_the_solver_starts(call, message, monkeypatch):
    def solver(*_, **__):
        raise AssertionError("the solver was started")

    monkeypatch.setattr(closed_flow, "integrate", solver)
    monkeypatch.setattr(closed_flow, "gradient_flow", solver)
    with pytest.raises(ValueError, match=message):
        call()


def test_a_negative_mode_without_floor_is_not_let_across_zero():
    early = mixed_flow([[-1e-3]], [[1.0]], 0, [1, 10])
    assert np.all(early.function < 0)
    with pytest.raises(IntegrationError, match="carried W across det W = 0"):
        mixed_flow([[-1e-3]], [[1.0]], 0, [1, 10, 100])
