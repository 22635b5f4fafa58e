"""λ under label noise: closed forms, the iterated second moments, SGD itself, and the limits of small steps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

from lindyn_lite import balance, label_noise, sgd, starts
from lindyn_lite.networks import product

S4 = np.array([2.0, 1.5, 1.0, 0.5])


def aligned(lam, s, outputs, inputs):
    """Fitted layers that are diagonal in the modes."""
    s_lam = np.sqrt(s**2 + lam**2 / 4)
    W1 = np.sqrt(s_lam - lam / 2)[:, None] * np.eye(len(s), inputs)
    return [W1, np.eye(outputs, len(s)) * np.sqrt(s_lam + lam / 2)]


def iterated_gain(lam, s, outputs, inputs, eta, b, steps):
    """b⟨G²⟩/σ² after many steps of the second moments of E under a constant kernel, from Wishart moments."""
    a, c = np.zeros(outputs), np.zeros(inputs)
    s_lam = np.sqrt(s**2 + lam**2 / 4)
    a[: len(s)], c[: len(s)] = s_lam + lam / 2, s_lam - lam / 2
    kappa = a[:, None] + c
    v = np.zeros_like(kappa)
    for _ in range(steps):
        G2 = (1 + 1 / b) * v + v.sum(axis=1, keepdims=True) / b + 1 / b
        v = (1 - 2 * eta * kappa) * v + (eta * kappa) ** 2 * G2
    return b * ((1 + 1 / b) * v + v.sum(axis=1, keepdims=True) / b + 1 / b)


@pytest.mark.parametrize(
    ("lam", "s", "dims", "eta", "b"),
    [
        (10.0, S4, (4, 4), 0.01, 1),
        (-3.0, S4, (4, 4), 0.03, 4),
        (0.0, S4[:2], (2, 3), 0.1, 2),
        (2.5, S4[:3], (12, 3), 0.02, 8),
    ],
)
def test_the_gain_is_the_fixed_point_of_the_second_moments(lam, s, dims, eta, b):
    iterated = iterated_gain(lam, s, *dims, eta, b, 8000)
    assert_allclose(label_noise.noise_gain(lam, s, *dims, eta, b), iterated, rtol=1e-11)


def test_one_mode_attains_the_bound_and_several_stay_below():
    kappa = np.hypot(2, 10)
    bound = 1 / (1 - 0.02 * kappa / 2 * (1 + 2 / 4))
    assert_allclose(label_noise.noise_gain(10, 1, 1, 1, 0.02, 4), [[bound]], rtol=1e-14)
    kappa = 2 * np.hypot(2, 5)
    for b in (1, 4, 16):
        gain = label_noise.noise_gain(10.0, S4, 4, 4, 0.01, b)
        assert gain.min() > 1
        assert gain.max() < 1 / (1 - 0.01 * kappa / 2 * (1 + 5 / b))


@pytest.mark.parametrize("eta", [0.08, 0.2, 10.0])
def test_a_learning_rate_without_a_stationary_residual_is_an_error(eta):
    with pytest.raises(ValueError, match=f"no stationary variance with a learning rate eta = {eta:g}.*needs eta below"):
        label_noise.noise_gain(10.0, S4, 4, 4, eta, 1)
    with pytest.raises(ValueError, match="no stationary variance"):
        label_noise.course(10.0, S4, 4, 4, eta, 1, 0.5, [0, 10])


def test_one_mode_follows_its_quadrature():
    """With N = 1 the rate is λ/(1 − ηκq/2), κ = √(4s² + λ²), so the clock is an integral over λ."""
    s, eta, b, sigma = 0.7, 0.03, 2, 0.4
    q = 1 + 2 / b
    ends = np.array([6.0, 2.0, 0.3, -1.0])
    starts_ = np.array([8.0, 8.0, 8.0, -8.0])
    for start, end in zip(starts_, ends, strict=True):
        clock, _ = quad(lambda x: -(1 - eta * q / 2 * np.hypot(2 * s, x)) / x, start, end, epsabs=0, epsrel=1e-13)
        steps = clock * b / (eta * sigma) ** 2
        assert_allclose(label_noise.course(start, s, 1, 1, eta, b, sigma, steps), [end], rtol=1e-10)


def test_small_steps_decay_exponentially_with_an_error_of_first_order():
    errors = []
    for eta in (1e-3, 5e-4):
        K = label_noise.decay_steps(4, eta, 4, 0.5)
        lam = label_noise.course(10.0, S4, 4, 4, eta, 4, 0.5, [0, K, 3 * K])
        assert_array_equal(lam[0], np.full(4, 10.0))
        errors.append(lam[1:].mean(axis=1) / (10 * np.exp([-1, -3])) - 1)
    assert np.all(np.abs(errors[1]) < 0.01)
    assert_allclose(errors[0] / errors[1], 2, rtol=0.01)


@pytest.mark.parametrize("dims", [(12, 3), (3, 8)], ids=str)
@pytest.mark.parametrize("lam", [-2.0, 6.0])
def test_unequal_dimensions_come_to_rest_at_lambda_star(dims, lam):
    s, eta = S4[:3], 1e-6
    folding = 8 / (eta * 0.5) ** 2 * sum(dims) / 2 / np.prod(dims)
    lam = label_noise.course(lam, s, *dims, eta, 8, 0.5, 20 * folding)
    assert_allclose(lam, label_noise.resting_lambda(s, *dims), rtol=5e-6)  # the residual: a few ηκ


def test_unequal_strengths_rest_near_zero_by_the_second_order_law():
    """Sampled inputs break the symmetry of the layers: λ_α → (ηN/2b) s_α (s̄ − s_α) to first order in η."""
    eta, b = 1e-4, 2
    lam = label_noise.course(0.5, S4, 4, 4, eta, b, 1.0, 40 * label_noise.decay_steps(4, eta, b, 1.0))
    assert_allclose(lam, eta * 4 / 2 / b * S4 * (S4.mean() - S4), rtol=2e-3)  # next order: a few ηκ


def test_sgd_follows_the_course_and_rests_away_from_zero():
    """N = 2 at a large step, where λ = 0 would be off by many standard errors."""
    s, eta, b, sigma, steps = np.array([2.0, 0.5]), 0.04, 1, 0.3, 16_000
    layers, source = aligned(np.zeros(2), s, 2, 2), np.random.default_rng(1)
    run = sgd.label_noise(layers, np.diag(s), eta, b, sigma, steps, source, replicas=80, every=500)
    W1, W2 = (W[16:] for W in run.weights)  # the last half
    lam = (np.sum(W2**2, axis=3) - np.sum(W1**2, axis=2)).mean(axis=0)
    expected = label_noise.course(0.0, s, 2, 2, eta, b, sigma, run.t[16:] / eta).mean(axis=0)
    error = lam.std(axis=0, ddof=1) / np.sqrt(len(lam))
    assert np.all(np.abs(lam.mean(axis=0) - expected) < 4 * error)
    assert np.all(np.abs(expected) > 8 * error)


def test_the_first_step_is_the_mean_drift():
    """At E = 0 and η → 0 the velocity is that of `balance.label_noise_drift`, mode by mode."""
    lam, eta = np.array([3.0, 1.0, -0.5]), 1e-7
    layers = aligned(lam, S4[:3], 5, 3)
    (drift,) = balance.label_noise_drift(layers, eta, 4, 0.5)
    moved = label_noise.course(lam, S4[:3], 5, 3, eta, 4, 0.5, 1e8) - lam
    assert_allclose(moved / 1e8, np.diagonal(drift), rtol=2e-6)  # the residual: a few ηκ


def test_steps_come_in_any_order_and_shape():
    steps = np.array([[500, 0, 100], [500, 2000, 1]])
    lam = label_noise.course([10, 9, 8, 7], S4, 4, 4, 0.01, 4, 1.0, steps)
    assert lam.shape == (2, 3, 4)
    assert_array_equal(lam[0, 0], lam[1, 0])
    assert_array_equal(lam[0, 1], [10, 9, 8, 7])
    for index in np.ndindex(steps.shape):
        alone = label_noise.course([10, 9, 8, 7], S4, 4, 4, 0.01, 4, 1.0, int(steps[index]))
        assert_allclose(alone, lam[index], rtol=1e-10)
    assert_array_equal(label_noise.course(10, S4, 4, 4, 0.01, 4, 0.0, [0, 1000]), np.full((2, 4), 10.0))
    assert_array_equal(label_noise.course(10, S4, 4, 4, 0.01, 4, 1.0, 1e-200), np.full(4, 10.0))
    late = label_noise.course(10, S4, 4, 4, 0.01, 4, 1.0, [1e7, 1e12, 1e200])
    assert_allclose(late, np.broadcast_to(late[0], late.shape), rtol=1e-8)


def test_transposing_the_network_changes_the_sign_to_first_order():
    """Only the sampling of the inputs, 1/b, tells the layers apart: it vanishes for large batches."""
    forth = label_noise.course(3.0, S4[:2], 5, 3, 0.01, 10**9, 1.0, 1e13)
    back = label_noise.course(-3.0, S4[:2], 3, 5, 0.01, 10**9, 1.0, 1e13)
    assert_allclose(forth, -back, rtol=1e-8)


def test_a_square_network_loses_lambda_in_k_lambda_steps():
    layers = starts.lambda_balanced(3, 3, 3, 1.2, np.random.default_rng(9))
    steps = label_noise.decay_steps(3, 0.02, 4, 0.5)
    (drift,) = balance.label_noise_drift(layers, 0.02, 4, 0.5)
    assert_allclose(drift, -balance.conserved(layers)[0] / steps, atol=1e-12 / steps)
    assert label_noise.decay_steps(4, 0.01, 4, 0.5) == pytest.approx(40000)  # the example of the source


@pytest.mark.parametrize("dims", [(3, 8), (8, 3), (2, 2), (1, 4)], ids=str)
def test_the_drift_of_an_aligned_mode_vanishes_at_lambda_star(dims):
    inputs, outputs = dims
    s = S4[: min(dims)]
    lam = label_noise.resting_lambda(s, outputs, inputs)
    layers = aligned(lam, s, outputs, inputs)
    assert_allclose(np.diagonal(product(layers)), s, rtol=1e-14)
    assert_allclose(np.diagonal(balance.conserved(layers)[0]), lam, atol=1e-14)
    (drift,) = balance.label_noise_drift(layers, 1.0, 1, 1.0)
    assert_allclose(drift, np.zeros_like(drift), atol=1e-13)
    (drift,) = balance.label_noise_drift([1.1 * layers[0], layers[1] / 1.1], 1.0, 1, 1.0)  # λ below λ*: it rises
    assert np.all(np.diagonal(drift) > 0.1)


def test_lambda_star_is_least_sensitive_to_parameter_noise():
    s, outputs, inputs = 1.7, 8, 3
    lam = label_noise.resting_lambda(s, outputs, inputs)
    at = lam + np.array([-1e-3, 0, 1e-3])
    s_lam = np.sqrt(s**2 + at**2 / 4)
    cost = outputs * (s_lam - at / 2) + inputs * (s_lam + at / 2)
    assert cost[1] == pytest.approx(2 * s * np.sqrt(outputs * inputs), rel=1e-14)  # its minimum, by the two means
    assert cost[1] < cost[0] and cost[1] < cost[2]
    assert_allclose(label_noise.resting_lambda([1.0, 2.0], 8, 2), [1.5, 3.0], rtol=1e-15)
    assert label_noise.resting_lambda(1.0, 3, 3) == 0


def gain(lam=1.0, s=(2.0, 1.0), outputs=2, inputs=3, eta=0.01, batch=4):
    return label_noise.noise_gain(lam, s, outputs, inputs, eta, batch)


def course(sigma=0.5, steps=10, lam=1.0):
    return label_noise.course(lam, (2.0, 1.0), 2, 3, 0.01, 4, sigma, steps)


BAD = {
    "width": (lambda: label_noise.decay_steps(0, 0.1, 1, 1), "width must be.*at least 1, got 0"),
    "no noise": (lambda: label_noise.decay_steps(1, 0.1, 1, 0), "sigma must be finite and positive, got 0"),
    "no outputs": (lambda: label_noise.resting_lambda(1.0, 0, 1), "outputs must be.*at least 1, got 0"),
    "no inputs": (lambda: label_noise.resting_lambda(1.0, 1, -2), "inputs must be.*at least 1, got -2"),
    "negative strength": (lambda: label_noise.resting_lambda(-1.0, 1, 2), "s must be at least 0, got -1"),
    "a strength of zero": (lambda: gain(s=(1.0, 0.0)), "1 to 2 positive singular values for 2 outputs and 3 inputs"),
    "too many modes": (lambda: gain(s=(3.0, 2.0, 1.0)), "1 to 2 positive singular values"),
    "a table of modes": (lambda: gain(s=np.ones((2, 2))), "s must"),
    "λ for other modes": (lambda: gain(lam=[1.0, 2.0, 3.0]), "do not broadcast"),
    "too many λ": (lambda: gain(lam=np.ones((2, 2))), r"one λ for each of the 2 modes, got the shape \(2, 2\)"),
    "λ NaN": (lambda: gain(lam=np.nan), "lam must be finite"),
    "eta": (lambda: gain(eta=0), "eta must be finite and positive, got 0"),
    "batch": (lambda: gain(batch=2.5), r"batch must be an integer, got 2\.5"),
    "inputs": (lambda: gain(inputs=0), "inputs must be at least 1, got 0"),
    "sigma": (lambda: course(sigma=-1), "sigma must be finite and at least 0, got -1"),
    "negative steps": (lambda: course(steps=[3, -1]), "steps must be at least 0, got -1"),
    "endless steps": (lambda: course(steps=np.inf), "steps must be finite"),
    "steps as text": (lambda: course(steps="many"), "steps must hold real numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        call()
