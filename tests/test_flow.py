"""Gradient flow and descent against closed forms, conserved quantities and orders of convergence."""

import itertools
import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite import flow, modes
from lindyn_lite.flow import DivergenceError, IntegrationError, gradient_descent, gradient_flow
from lindyn_lite.networks import gradients
from lindyn_lite.tasks import random_basis

REFERENCE = json.loads((Path(__file__).parent / "values" / "exercises.json").read_text(encoding="utf-8"))
ONE = [[[1.0]], [[1.0]]]


def random_problem(dims, seed):
    rng = np.random.default_rng(seed)
    layers = [rng.standard_normal(shape) / np.sqrt(max(dims)) for shape in zip(dims[1:], dims[:-1], strict=True)]
    return layers, rng.standard_normal((dims[-1], dims[0]))


def balance(below, above):
    return np.swapaxes(above, -1, -2) @ above - below @ np.swapaxes(below, -1, -2)


def logistic(t, s, w0):
    return s / (1 + (s / w0 - 1) * np.exp(-2 * s * t))


@pytest.mark.parametrize("w0", [1e-16, 1e-8, 1e-6, 1e-4, 1e-2, 1])
@pytest.mark.parametrize("s", [0.5, 1, 4])
def test_a_balanced_mode_follows_the_logistic_from_the_plateau_to_the_end(w0, s):
    t = np.linspace(0, 1.5 * np.log(10 * s / w0) / s, 25)
    run = gradient_flow([[[np.sqrt(w0)]], [[np.sqrt(w0)]]], [[s]], t)
    assert_allclose(run.function[:, 0, 0], logistic(t, s, w0), rtol=1e-11)


def test_aligned_modes_of_different_sizes_do_not_disturb_each_other():
    s, w0, t = np.array([4.0, 2, 1]), np.array([1e-8, 1e-2, 1e-6]), np.linspace(0, 12, 13)
    run = gradient_flow([np.diag(np.sqrt(w0))] * 2, np.diag(s), t)
    modes = np.diagonal(run.function, axis1=1, axis2=2)
    assert_allclose(modes, logistic(t[:, None], s, w0), rtol=1e-10)  # atol is set by the largest mode
    assert np.all(run.function[:, ~np.eye(3, dtype=bool)] == 0)


def test_a_balanced_mode_of_negative_sign_decays_to_the_origin_and_never_learns():
    t, s, v0 = np.linspace(0, 4, 9), 1.5, 0.8
    run = gradient_flow([[[np.sqrt(v0)]], [[-np.sqrt(v0)]]], [[s]], t)
    assert_allclose(run.function[:, 0, 0], -s / ((s / v0 + 1) * np.exp(2 * s * t) - 1), rtol=1e-11)


@pytest.mark.parametrize("w0", [1e-2, 1e-4, 1e-5])
def test_three_balanced_layers_reach_each_height_at_the_time_of_the_quadrature(w0):
    s, heights = 1.3, np.array([2 * w0, 0.1, 0.65, 1.25])

    def rate(x):  # w = x³, so that dw / 3w^{4/3}(s − w) = dx / x²(s − x³)
        return 1 / (x**2 * (s - x**3))

    root = [mpmath.cbrt(w) for w in (w0, *heights)]
    t = np.cumsum([float(mpmath.quad(rate, mpmath.linspace(a, b, 12))) for a, b in itertools.pairwise(root)])
    run = gradient_flow([[[np.cbrt(w0)]]] * 3, [[s]], t)
    assert_allclose(run.function[:, 0, 0], heights, rtol=2e-11)


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e["name"].startswith("depth_L mode time")], ids=str)
def test_deep_modes_rise_at_the_reference_times(entry):
    depth = entry["inputs"]["L"]
    w0, s, wf = (float(entry["inputs"][name]) for name in ("w0", "s", "wf"))
    run = gradient_flow([[[w0 ** (1 / depth)]]] * depth, [[s]], float(entry["value"]))
    assert_allclose(run.function, [[[wf]]], rtol=2e-10)  # the reference time has 15 digits, ẇ = 2 to 4 w^{2−2/L}(s − w)


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e["name"].startswith("mixed_mode")], ids=str)
def test_unbalanced_modes_take_the_reference_values_of_the_mixed_equation(entry):
    w0, s, tau, t = (float(entry["inputs"][name]) for name in ("w0", "s", "tau", "t"))
    w1 = np.sqrt(tau + np.hypot(tau, w0))  # w1² − w2² = 2τ, exercise 6.1
    run = gradient_flow([[[w1]], [[w0 / w1]]], [[s]], t)
    assert_allclose(run.function, [[[float(entry["value"])]]], rtol=1e-10)


def test_one_layer_relaxes_exponentially_and_descent_geometrically():
    (W,), M = random_problem((3, 2), 0)
    t = np.linspace(0, 5, 6)
    run = gradient_flow([W], M, t)
    assert_allclose(run.function, M + np.exp(-t)[:, None, None] * (W - M), atol=1e-11)
    run = gradient_descent([W], M, 0.25, 20)
    assert_allclose(run.function, M + 0.75 ** np.arange(21)[:, None, None] * (W - M), atol=1e-14)


@pytest.mark.parametrize("dims", [(3, 2, 4), (2, 4, 3, 2)], ids=str)
def test_the_velocity_of_the_flow_is_minus_the_gradient(dims):
    layers, M = random_problem(dims, 1)
    x, end = chebyshev.chebpts2(33), 0.8
    run = gradient_flow(layers, M, (x + 1) * end / 2)
    for l, history in enumerate(run.weights):
        fit = chebyshev.chebfit(x, history.reshape(33, -1), 32)
        velocity = chebyshev.chebval(x, chebyshev.chebder(fit)).T * 2 / end
        expected = [-gradients([W[k] for W in run.weights], M)[l].ravel() for k in range(33)]
        assert_allclose(velocity, expected, atol=1e-9)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(dims=st.lists(st.integers(1, 4), min_size=3, max_size=4), seed=st.integers(0, 10**6))
def test_balance_is_conserved_and_the_loss_falls(dims, seed):
    layers, M = random_problem(dims, seed)
    run = gradient_flow(layers, M, np.linspace(0, 5, 6))
    for below, above in itertools.pairwise(run.weights):
        G = balance(below, above)
        assert_allclose(G, np.broadcast_to(G[0], G.shape), atol=1e-9)
    assert np.all(np.diff(run.loss) <= 1e-14)


@pytest.mark.parametrize("dims", [(3, 2, 4), (2, 4, 3, 2)], ids=str)
def test_rotated_problems_have_rotated_solutions(dims):
    layers, M = random_problem(dims, 2)
    Q = [random_basis(d, np.random.default_rng(3)) for d in dims]
    t = [0.0, 0.5, 3.0]
    turned = gradient_flow([Q[l + 1] @ W @ Q[l].T for l, W in enumerate(layers)], Q[-1] @ M @ Q[0].T, t)
    for l, (a, b) in enumerate(zip(turned.weights, gradient_flow(layers, M, t).weights, strict=True)):
        assert_allclose(a, Q[l + 1] @ b @ Q[l].T, atol=1e-11)


@pytest.mark.parametrize("dims", [(3, 2, 4), (2, 4, 3, 2)], ids=str)
def test_the_flow_is_a_semigroup_and_does_not_depend_on_the_output_times(dims):
    layers, M = random_problem(dims, 4)
    whole = gradient_flow(layers, M, [2.5])
    many = gradient_flow(layers, M, np.linspace(0, 2.5, 101))
    first = gradient_flow(layers, M, 0.7)
    second = gradient_flow([W[-1] for W in first.weights], M, 1.8)
    for a, b, c in zip(whole.weights, many.weights, second.weights, strict=True):
        assert_allclose(b[-1], a[0], atol=1e-11)
        assert_allclose(c[0], a[0], atol=1e-11)


def test_the_tolerance_can_be_chosen():
    end, exact = 5.0, logistic(5.0, 1, 0.01)
    runs = [gradient_flow([[[0.1]]] * 2, [[1]], end, rtol) for rtol in (1e-3, 1e-6, 1e-9)]
    coarse, middle, fine = (abs(run.function[0, 0, 0] / exact - 1) for run in runs)
    assert 10 * fine < middle < coarse / 10
    assert coarse < 1e-2 and middle < 1e-5 and fine < 1e-8


@pytest.mark.parametrize("t", [[0], 0, 0.0, [0, 0, 0]])
def test_at_time_zero_the_flow_is_at_the_start(t):
    layers, M = random_problem((3, 2, 4), 5)
    run = gradient_flow(layers, M, t)
    for history, W in zip(run.weights, layers, strict=True):
        assert history.shape == (np.size(t), *W.shape)
        assert_array_equal(history, np.broadcast_to(W, history.shape))


@pytest.mark.parametrize("dims", [(3, 2), (3, 2, 4), (2, 4, 3, 2)], ids=str)
@pytest.mark.parametrize("kind", ["flow", "descent"])
def test_a_trajectory_has_its_times_weights_loss_and_similarities(dims, kind):
    layers, M = random_problem(dims, 6)
    t = 0.125 * np.arange(5)
    run = gradient_flow(layers, M, t) if kind == "flow" else gradient_descent(layers, M, 0.125, 4)
    assert_array_equal(run.t, t)
    assert [W.shape for W in run.weights] == [(5, *W.shape) for W in layers]
    for history, W in zip(run.weights, layers, strict=True):
        assert_array_equal(history[0], W)
    assert_array_equal(run.teacher, M)
    assert run.method.startswith({"flow": "DOP853, rtol=1e-12", "descent": "gradient descent, eta=0.125"}[kind])
    assert run.function.shape == (5, dims[-1], dims[0])
    assert run.input_similarity.shape == (5, dims[0], dims[0])
    assert run.output_similarity.shape == (5, dims[-1], dims[-1])
    for k in range(5):
        now = [W[k] for W in run.weights]
        product = np.linalg.multi_dot(now[::-1]) if len(now) > 1 else now[0]
        assert_allclose(run.function[k], product, atol=1e-14)
        assert run.loss[k] == pytest.approx(0.5 * np.linalg.norm(M - product) ** 2, rel=1e-13)
        assert_allclose(run.input_similarity[k], now[0].T @ now[0], atol=1e-14)
        assert_allclose(run.output_similarity[k], now[-1] @ now[-1].T, atol=1e-14)
    with pytest.raises(AttributeError):
        run.t = t


def test_zero_weights_and_learnt_teachers_stay_where_they_are():
    M = np.diag([2.0, 1])
    assert_array_equal(gradient_flow([np.zeros((2, 2))] * 2, M, [0, 10]).function, np.zeros((2, 2, 2)))
    assert_array_equal(gradient_flow([np.eye(2), M], M, [0, 10]).function, [M, M])


def test_one_descent_step_is_exact():
    # W = (3, 5), M − W = (2, −1); gradients −W2ᵀ(M − W) and −(M − W)W1ᵀ
    run = gradient_descent([[[1, 2], [0, 1]], [[3, -1]]], [[5, 4]], 0.5, 1)
    assert_array_equal(run.weights[0][1], [[1 + 3, 2 - 1.5], [0 - 1, 1 + 0.5]])
    assert_array_equal(run.weights[1][1], [[3 + 0, -1 - 0.5]])
    assert_array_equal(run.t, [0, 0.5])


def test_every_descent_step_is_the_start_minus_eta_times_the_gradient():
    layers, M = random_problem((3, 2, 4, 2), 7)
    run = gradient_descent(layers, M, 0.01, 10)
    for k in range(10):
        now = [W[k] for W in run.weights]
        for W, g, history in zip(now, gradients(now, M), run.weights, strict=True):
            assert_array_equal(history[k + 1], W - 0.01 * g)


def test_a_descent_step_changes_the_balance_by_eta_squared():
    layers, M = random_problem((3, 2, 4), 8)  # exercise 3.2: ΔG = η²(Ẇ2ᵀẆ2 − Ẇ1Ẇ1ᵀ)
    W1, W2 = gradient_descent(layers, M, 0.1, 5).weights
    G = balance(W1, W2)
    for k in range(5):
        V1, V2 = gradients([W1[k], W2[k]], M)
        assert_allclose(G[k + 1] - G[k], 0.01 * (V2.T @ V2 - V1 @ V1.T), atol=1e-14)


@pytest.mark.parametrize("dims", [(3, 2, 4), (2, 2, 2), (2, 4, 3, 2)], ids=str)
def test_descent_converges_to_the_flow_and_its_balance_in_first_order(dims):
    layers, M = random_problem(dims, 9)
    steps, end = np.array([200, 400, 800, 1600]), 1.5
    exact = gradient_flow(layers, M, end).weights
    runs = [gradient_descent(layers, M, end / k, int(k), every=int(k)).weights for k in steps]
    errors = [max(np.abs(a[-1] - b[-1]).max() for a, b in zip(run, exact, strict=True)) for run in runs]
    drifts = [np.abs(np.diff(balance(W1, W2), axis=0)).max() for W1, W2, *_ in runs]
    for values in (errors, drifts):
        assert np.polyfit(np.log(end / steps), np.log(values), 1)[0] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("steps", "every", "kept"),
    [(10, 1, range(11)), (10, 5, [0, 5, 10]), (10, 4, [0, 4, 8, 10]), (3, 7, [0, 3]), (0, 3, [0]), (1, 1, [0, 1])],
)
def test_every_keeps_the_start_and_the_last_step(steps, every, kept):
    layers, M = random_problem((3, 2, 4), 10)
    run, full = gradient_descent(layers, M, 0.1, steps, every), gradient_descent(layers, M, 0.1, 10)
    assert_allclose(run.t, 0.1 * np.array(kept), rtol=1e-15)
    for a, b in zip(run.weights, full.weights, strict=True):
        assert_array_equal(a, b[list(kept)])


@pytest.mark.parametrize("every", [1, 7, 10**6])
def test_too_large_a_step_diverges_with_an_error_that_names_it(every):
    with pytest.raises(DivergenceError, match=r"diverged.*eta = 5\b"):
        gradient_descent([[[3]], [[3]]], [[1]], 5, 50, every)
    with pytest.raises(DivergenceError):
        gradient_descent([np.eye(2)], np.zeros((2, 2)), 3, 2000, every)  # doubles in every step


@pytest.mark.parametrize(("eta", "converges"), [(1.99, True), (2.01, False)])
def test_one_layer_diverges_above_eta_two(eta, converges):
    run = gradient_descent([[[0]]], [[1]], eta, 500, every=100)
    assert (run.loss[-1] < 1e-3) == converges
    assert (run.loss[-1] > 1e3) == (not converges)


BAD_TIMES = {
    "negative": [-1, 1],
    "a negative number": -0.1,
    "decreasing": [0, 2, 1],
    "NaN": [0, np.nan],
    "NaN first": np.nan,
    "infinite": [0, np.inf],
    "empty": [],
    "a matrix": [[0, 1]],
}


@pytest.mark.parametrize("t", BAD_TIMES.values(), ids=BAD_TIMES.keys())
def test_impossible_times_raise(t):
    with pytest.raises(ValueError, match=r"^t must"):
        gradient_flow(ONE, [[1]], t)


@pytest.mark.parametrize(("t", "received"), [([0, -3.5], "-3.5"), ([0, 2.25, 1.25], "1.25"), ([0, np.nan], "nan")])
def test_the_error_of_an_impossible_time_says_what_was_received(t, received):
    with pytest.raises(ValueError, match=received):
        gradient_flow(ONE, [[1]], t)


@pytest.mark.parametrize(("t", "message"), [([], "vector"), ([0, np.nan], r"t\[1\] = nan")])
def test_the_errors_of_vectors_speak_of_vectors(t, message):
    with pytest.raises(ValueError, match=message):
        gradient_flow(ONE, [[1]], t)


BAD_STEPS = {
    "eta of zero": ((0, 3), "eta must be finite and positive, got 0"),
    "negative eta": ((-0.1, 3), r"eta must be finite and positive, got -0\.1"),
    "NaN eta": ((np.nan, 3), "eta must be finite and positive, got nan"),
    "infinite eta": ((np.inf, 3), "eta must be finite and positive, got inf"),
    "negative steps": ((0.1, -1), "steps must be at least 0, got -1"),
    "steps that are no integer": ((0.1, 3.0), "steps must be an integer, got 3.0"),
    "every that is no integer": ((0.1, 3, 1.5), "every must be an integer, got 1.5"),
    "every of zero": ((0.1, 3, 0), "every must be at least 1, got 0"),
    "negative every": ((0.1, 3, -2), "every must be at least 1, got -2"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_STEPS.values(), ids=BAD_STEPS.keys())
def test_impossible_steps_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        gradient_descent(ONE, [[1]], *arguments)


@pytest.mark.parametrize("run", [lambda W, M: gradient_flow(W, M, 1), lambda W, M: gradient_descent(W, M, 0.1, 1)])
@pytest.mark.parametrize(
    ("weights", "M", "message"),
    [
        ([np.eye(2), np.ones((2, 3))], np.eye(2), r"W1.*\(2, 2\).*W2.*\(2, 3\)"),
        (ONE, [[np.nan]], r"M\[0, 0\] = nan"),
        (ONE, np.eye(2), r"teacher M.*\(2, 2\).*\(1, 1\)"),
        ([], [[1]], "at least one layer"),
    ],
)
def test_bad_networks_raise(run, weights, M, message):
    with pytest.raises(ValueError, match=message):
        run(weights, M)


@pytest.mark.parametrize("rtol", [0, -1, np.nan, np.inf, 1e-15])
def test_an_impossible_tolerance_raises_before_the_solver_starts(rtol, monkeypatch):
    def solver(*_, **__):
        raise AssertionError("the solver was started")

    monkeypatch.setattr(flow, "DOP853", solver)
    with pytest.raises(ValueError, match="rtol"):
        gradient_flow(ONE, [[2]], 1, rtol)


def test_a_solver_that_gives_up_says_where():
    with pytest.raises(IntegrationError, match=r"stopped at t = (1|0\.99999\d*|1\.0000\d*) of 2:"):  # ẏ = y² ends at 1
        flow.integrate(lambda _, y: y**2, np.array([1.0]), np.array([0.5, 2.0]), 1e-10, lambda _: 1e-10)


@pytest.mark.parametrize("run", [lambda W, M: gradient_flow(W, M, 1), lambda W, M: gradient_descent(W, M, 0.1, 3)])
def test_a_run_does_not_write_into_its_arguments(run):
    layers, M = random_problem((3, 2, 4), 11)
    before = [W.copy() for W in (*layers, M)]
    trajectory = run(layers, M)
    for history in trajectory.weights:
        history[:] = 0
    trajectory.teacher[:] = 0
    for a, b in zip((*layers, M), before, strict=True):
        assert_array_equal(a, b)


def test_layers_whose_squares_underflow_are_followed():
    run = gradient_flow([[[1e-200]]] * 2, [[1.0]], [461, 500])
    assert_allclose(run.function[:, 0, 0], [1 / (1 + np.exp(400 * np.log(10) - 922)), 1], rtol=1e-8)


@pytest.mark.parametrize("small", [1e-8, 1e-20, 1e-60])
def test_a_small_mode_is_followed_beside_a_large_one(small):
    """The absolute tolerance of a weight follows its own row and column, not the largest weight of its layer."""
    t = np.array([0.3, 0.7, 1.0, 1.2]) * -np.log(small)
    run = gradient_flow([np.diag([1.0, small])] * 2, np.diag([2.0, 1.0]), t)
    assert_allclose(run.function[:, 1, 1], modes.logistic(t, 1.0, small**2), rtol=1e-10)
    assert "to 1e-15 at the start" in run.method


def test_hidden_units_that_start_small_keep_their_proportions():
    """Dense, small units beside a large one, to where two of them have grown: nothing escapes, nothing stalls."""
    rng = np.random.default_rng(5)
    W1, W2 = np.zeros((3, 3)), np.zeros((3, 3))
    W1[0, 0] = W2[0, 0] = np.sqrt(3)
    W1[1:, 1:], W2[1:, 1:] = rng.normal(0, 1e-12, (2, 2, 2))
    run = gradient_flow([W1, W2], np.diag([3.0, 2, 1]), [10, 200])
    alone = gradient_flow([W1[1:, 1:], W2[1:, 1:]], np.diag([2.0, 1]), [10, 200])
    assert_allclose(run.function[0, 1:, 1:], alone.function[0], rtol=1e-10)
    assert run.loss[-1] < 1e-20


EXTREMES = {
    "subnormal": ([[[5e-324]], [[1.0]]], [[1.0]], "too far apart for the solver"),
    "far apart": ([[[1e-160]], [[1.0]]], [[1.0]], "from 1e-160 to 1 .*velocity of up to 1 are too far apart"),
    "huge weights": ([[[1e200]], [[1.0]]], [[1.0]], r"at most 1e100 in size, got 1e\+200"),
    "huge teacher": ([[[1.0]], [[1.0]]], [[1e200]], r"at most 1e100 in size, got 1e\+200"),
}


@pytest.mark.parametrize("case", EXTREMES)
def test_numbers_that_the_solver_cannot_square_are_named(case):
    weights, M, message = EXTREMES[case]
    with pytest.raises(ValueError, match=message):
        gradient_flow(weights, M, [1.0])


def test_a_flow_that_would_run_for_ever_says_so_soon():
    with pytest.raises(IntegrationError, match="would never arrive, the flow is too stiff or too long"):
        gradient_flow([np.eye(2), np.eye(2)], 2 * np.eye(2), [1e200])
    run = gradient_flow([[[1.0]]] * 4, [[0.0]], [1e9])  # slows down, and its steps grow
    assert_allclose(run.function.ravel(), [(1 + 6e9) ** (-2 / 3)], rtol=1e-8)  # a weight has a^-6 = 1 + 6t


def test_a_flow_that_needs_too_many_steps_stops(monkeypatch):
    monkeypatch.setattr(flow, "MAX_STEPS", 500)
    with pytest.raises(IntegrationError, match="500 steps were not enough"):
        gradient_flow([np.eye(2), np.eye(2)], 2 * np.eye(2), [1e6])
