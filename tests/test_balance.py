"""Balance against integer arithmetic, exact averages over Gaussian batches, and the steps it describes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite import balance
from lindyn_lite.flow import gradient_descent, gradient_flow
from lindyn_lite.networks import gradients, product
from lindyn_lite.tasks import random_basis

DIMS = [(3, 2, 4), (2, 2, 2), (2, 4, 3, 2), (1, 1, 1), (3, 2, 1, 2, 4)]


def random_layers(dims, rng):
    return [rng.standard_normal(shape) for shape in zip(dims[1:], dims[:-1], strict=True)]


def gram_difference(below, above):
    return above.T @ above - below @ below.T


def differences(layers):
    return [gram_difference(*pair) for pair in itertools.pairwise(layers)]


def lambda_balanced(s, lam, rng):
    """Square layers with W2ᵀW2 − W1W1ᵀ = λI and singular values s of the product, theorem 5.2."""
    U, R, V = (random_basis(len(s), rng) for _ in range(3))
    big = np.sqrt(s**2 + lam**2 / 4) + abs(lam) / 2
    first, second = (s**2 / big, big) if lam >= 0 else (big, s**2 / big)
    return [R @ np.diag(np.sqrt(first)) @ V.T, U @ np.diag(np.sqrt(second)) @ R.T]


def test_the_balance_of_small_integer_layers_is_what_it_is_by_hand():
    W1, W2 = [[1, 2], [0, 1]], [[3, -1]]  # W2ᵀW2 = [[9, −3], [−3, 1]], W1W1ᵀ = [[5, 2], [2, 1]]
    assert_array_equal(balance.conserved([W1, W2]), [[[4, -5], [-5, 0]]])
    assert balance.conserved([W1]) == []


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_gradient_flow_conserves_every_balance(dims):
    layers = [0.6 * W for W in random_layers(dims, np.random.default_rng(10))]
    M = np.random.default_rng(1).standard_normal((dims[-1], dims[0]))
    end = [W[-1] for W in gradient_flow(layers, M, 3.0).weights]
    assert np.linalg.norm(product(end) - M) < 0.99 * np.linalg.norm(product(layers) - M)
    for before, after in zip(balance.conserved(layers), balance.conserved(end), strict=True):
        assert_allclose(after, before, atol=1e-10)


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_a_descent_step_changes_the_balance_by_the_second_order_term_alone(dims):
    """Integer weights and a step of 2⁻⁷ keep every product exact, so that the first order must vanish exactly."""
    rng, eta = np.random.default_rng(2), 2.0**-7
    layers = [rng.integers(-3, 4, shape).astype(float) for shape in zip(dims[1:], dims[:-1], strict=True)]
    M = rng.integers(-3, 4, (dims[-1], dims[0])).astype(float)
    slopes = gradients(layers, M)
    for l in range(len(layers) - 1):
        first = layers[l + 1].T @ slopes[l + 1] - slopes[l] @ layers[l].T
        assert_array_equal(first, np.zeros_like(first))
        assert np.abs(slopes[l]).max() > 0
    after = differences([W - eta * g for W, g in zip(layers, slopes, strict=True)])
    changes = balance.gradient_descent_change(layers, M, eta)
    for G0, G1, change in zip(differences(layers), after, changes, strict=True):
        assert_array_equal(G1 - G0, change)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    dims=st.lists(st.integers(1, 4), min_size=3, max_size=5),
    eta=st.floats(1e-3, 1.0),
    seed=st.integers(0, 10**6),
)
def test_the_change_is_exact_for_any_step_size_and_depth(dims, eta, seed):
    rng = np.random.default_rng(seed)
    layers, M = random_layers(dims, rng), rng.standard_normal((dims[-1], dims[0]))
    run = gradient_descent(layers, M, eta, 1)
    before, after = ([W[k] for W in run.weights] for k in (0, 1))
    changes = balance.gradient_descent_change(layers, M, eta)
    assert len(changes) == len(layers) - 1
    for G0, G1, change in zip(differences(before), differences(after), changes, strict=True):
        size = max(np.abs(G0).max(), np.abs(G1).max(), np.abs(change).max(), 1.0)
        assert_allclose(G1 - G0, change, atol=1e-13 * size)


def test_halving_the_step_halves_the_drift_in_a_fixed_time():
    rng = np.random.default_rng(3)
    layers, M = [0.5 * W for W in random_layers((3, 2, 4), rng)], rng.standard_normal((4, 3))
    drifts = []
    for steps in (250, 500, 1000):
        W1, W2 = gradient_descent(layers, M, 1.0 / steps, steps, every=steps).weights
        drifts.append(gram_difference(W1[-1], W2[-1]) - gram_difference(W1[0], W2[0]))
    assert np.linalg.norm(drifts[0]) > 1e-4
    for coarse, fine in itertools.pairwise(drifts):
        assert np.linalg.norm(fine) / np.linalg.norm(coarse) == pytest.approx(0.5, abs=0.01)
    # and drift/η tends to the integral of the changes along the flow; the extrapolation leaves an error of η²
    extrapolated = 2 * 1000 * drifts[2] - 500 * drifts[1]
    t = np.linspace(0, 1, 201)
    flow = gradient_flow(layers, M, t).weights
    changes = [balance.gradient_descent_change([W[k] for W in flow], M, 1.0)[0] for k in range(len(t))]
    weights = np.where(np.arange(201) % 2, 4, 2) / 600.0  # Simpson's rule
    weights[[0, -1]] = 1 / 600
    integral = np.tensordot(weights, changes, 1)
    assert_allclose(extrapolated, integral, atol=1e-4 * np.linalg.norm(integral))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    dims=st.lists(st.integers(1, 4), min_size=3, max_size=5),
    batch=st.integers(1, 6),
    seed=st.integers(0, 10**6),
)
def test_a_step_on_any_minibatch_changes_the_balance_as_predicted(dims, batch, seed):
    rng, eta = np.random.default_rng(seed), 0.1
    layers, X, Y = (
        random_layers(dims, rng),
        rng.standard_normal((batch, dims[0])),
        rng.standard_normal((batch, dims[-1])),
    )
    gradient = (X @ product(layers).T - Y).T @ X / batch
    moved = []
    for l, W in enumerate(layers):
        above, below = np.eye(dims[l + 1]), np.eye(dims[0])
        for layer in layers[l + 1 :]:
            above = layer @ above
        for layer in layers[:l]:
            below = layer @ below
        moved.append(W - eta * above.T @ gradient @ below.T)
    changes = balance.sgd_change(layers, gradient, eta)
    for G0, G1, change, same in zip(
        differences(layers), differences(moved), changes, balance.sgd_change(layers, -gradient, eta), strict=True
    ):
        assert_allclose(G1 - G0, change, atol=1e-13 * max(1.0, np.abs(G1).max()))
        assert_array_equal(change, same)


def test_two_layers_have_the_formula_of_the_source_and_scalars_shrink_by_one_minus_eta_squared_g_squared():
    rng, eta = np.random.default_rng(4), 0.3
    W1, W2 = random_layers((3, 2, 4), rng)
    G = rng.standard_normal((4, 3))
    expected = eta**2 * (W1 @ G.T @ G @ W1.T - W2.T @ G @ G.T @ W2)
    assert_allclose(balance.sgd_change([W1, W2], G, eta), [expected], atol=1e-14)
    w1, w2, g = 0.7, 1.9, 1.3
    (change,) = balance.sgd_change([[[w1]], [[w2]]], [[g]], eta)
    assert (w2**2 - w1**2) + change == pytest.approx((w2**2 - w1**2) * (1 - eta**2 * g**2), rel=1e-14)


def test_the_gradient_of_the_whitened_loss_gives_the_change_of_gradient_descent():
    rng = np.random.default_rng(5)
    layers, M = random_layers((2, 4, 3, 2), rng), rng.standard_normal((2, 2))
    for a, b in zip(
        balance.sgd_change(layers, product(layers) - M, 0.2),
        balance.gradient_descent_change(layers, M, 0.2),
        strict=True,
    ):
        assert_allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("lam", [-100, -1, 0, 0.1, 1e4])
def test_lambda_balanced_layers_have_their_lambda_and_deviate_by_rounding(lam):
    layers = lambda_balanced(np.array([2.0, 1.5, 1.0, 0.5]), lam, np.random.default_rng(6))
    nearest = balance.nearest_lambda(layers)
    size = sum(np.linalg.norm(W) ** 2 for W in layers)
    assert nearest.value == pytest.approx(lam, abs=1e-14 * size)
    assert nearest.deviation < 1e-14 * size
    value, deviation = nearest
    assert (value, deviation) == (nearest.value, nearest.deviation)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    dims=st.tuples(*[st.integers(1, 4)] * 3),
    other=st.floats(-10, 10),
    seed=st.integers(0, 10**6),
)
def test_no_other_lambda_is_nearer(dims, other, seed):
    """Pythagoras: ``‖Λ − μI‖² = deviation² + N_h(μ − λ)²``."""
    layers = random_layers(dims, np.random.default_rng(seed))
    value, deviation = balance.nearest_lambda(layers)
    distance = np.linalg.norm(gram_difference(*layers) - other * np.eye(dims[1]))
    assert distance**2 == pytest.approx(deviation**2 + dims[1] * (other - value) ** 2, rel=1e-12)


def test_one_hidden_unit_is_always_lambda_balanced():
    value, deviation = balance.nearest_lambda([[[3.0, 4.0]], [[1.0], [2.0]]])
    assert (value, deviation) == (5.0 - 25.0, 0.0)


def average_change(layers, S, eta, batch, sigma):
    """E ΔG_l over Gaussian batches, exact: three Gauss-Hermite nodes integrate the quartic without error."""
    nodes, probabilities = np.array([-np.sqrt(3), 0, np.sqrt(3)]), np.array([1, 4, 1]) / 6
    outputs, inputs = S.shape
    size, W = batch * (inputs + outputs), product(layers)
    grid = np.array(list(itertools.product(range(3), repeat=size)))
    weight = np.prod(probabilities[grid], axis=1)
    values = nodes[grid].reshape(-1, batch, inputs + outputs)
    x, noise = values[..., :inputs], values[..., inputs:]
    G = np.swapaxes(x @ (W - S).T - sigma * noise, 1, 2) @ x / batch
    averages = []
    for l in range(1, len(layers)):
        slopes = []
        for k in (l - 1, l):
            above = product(layers[k + 1 :]) if k + 1 < len(layers) else np.eye(outputs)
            below = product(layers[:k]) if k else np.eye(inputs)
            slopes.append(above.T @ G @ below.T)
        low, high = slopes
        change = np.swapaxes(high, 1, 2) @ high - low @ np.swapaxes(low, 1, 2)
        averages.append(eta**2 * np.tensordot(weight, change, 1))
    return averages


@pytest.mark.parametrize(
    ("dims", "batch"),
    [((1, 1, 1), 4), ((2, 3, 2), 2), ((3, 2, 1), 2), ((1, 2, 3), 2), ((2, 3, 2, 1), 2), ((4, 2, 3), 1)],
)
@pytest.mark.parametrize("fitted", [True, False])
def test_the_mean_drift_under_label_noise_is_exact(dims, batch, fitted):
    rng = np.random.default_rng(7)
    layers = random_layers(dims, rng)
    S = product(layers) if fitted else rng.standard_normal((dims[-1], dims[0]))
    drifts = balance.label_noise_drift(layers, 0.1, batch, 0.7, None if fitted else S)
    for drift, expected in zip(drifts, average_change(layers, S, 0.1, batch, 0.7), strict=True):
        assert_allclose(drift, expected, atol=1e-12 * np.abs(expected).max())


def test_at_a_fitted_teacher_two_layers_drift_by_the_formula_of_the_source():
    W1, W2 = random_layers((3, 2, 5), np.random.default_rng(8))
    eta, b, sigma = 0.02, 4, 0.5
    expected = eta**2 * sigma**2 / b * (5 * W1 @ W1.T - 3 * W2.T @ W2)
    assert_allclose(balance.label_noise_drift([W1, W2], eta, b, sigma), [expected], rtol=1e-13)
    assert_array_equal(balance.label_noise_drift([W1, W2], eta, b, 0.0), np.zeros((1, 2, 2)))


ONE = [[[1.0]], [[2.0]]]
BAD = {
    "shapes that do not chain": (
        lambda: balance.conserved([np.eye(2), np.eye(3)]),
        r"do not chain.*\(2, 2\).*\(3, 3\)",
    ),
    "no layers": (lambda: balance.conserved([]), "at least one layer"),
    "NaN": (lambda: balance.conserved([[[np.nan]]]), r"W1\[0, 0\] = nan"),
    "one layer has no λ": (lambda: balance.nearest_lambda([[[1.0]]]), "two layers.*got 1"),
    "three layers have no λ": (lambda: balance.nearest_lambda([np.eye(2)] * 3), "two layers.*got 3"),
    "teacher": (lambda: balance.gradient_descent_change(ONE, np.eye(2), 0.1), r"teacher M.*\(2, 2\).*\(1, 1\)"),
    "eta of zero": (lambda: balance.gradient_descent_change(ONE, [[1]], 0), r"eta must be finite and positive, got 0"),
    "eta NaN": (lambda: balance.sgd_change(ONE, [[1]], np.nan), "eta must be finite and positive, got nan"),
    "eta negative": (lambda: balance.sgd_change(ONE, [[1]], -0.5), r"eta must be finite and positive, got -0\.5"),
    "eta is text": (lambda: balance.sgd_change(ONE, [[1]], "fast"), "eta must be a number, got 'fast'"),
    "gradient": (lambda: balance.sgd_change(ONE, np.eye(2), 0.1), r"gradient.*shape \(2, 2\).*\(1, 1\)"),
    "gradient NaN": (lambda: balance.sgd_change(ONE, [[np.inf]], 0.1), "gradient of the product must be finite"),
    "batch": (lambda: balance.label_noise_drift(ONE, 0.1, 0, 1), "batch must be.*at least 1, got 0"),
    "half a batch": (lambda: balance.label_noise_drift(ONE, 0.1, 1.5, 1), r"batch must be an integer, got 1\.5"),
    "sigma": (lambda: balance.label_noise_drift(ONE, 0.1, 1, -1), "sigma must be finite and at least 0, got -1"),
    "S": (lambda: balance.label_noise_drift(ONE, 0.1, 1, 1, np.eye(2)), r"teacher M.*\(2, 2\).*\(1, 1\)"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_raises_and_says_what_was_received(call, message):
    with pytest.raises(ValueError, match=message):
        call()
