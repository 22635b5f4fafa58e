"""Simulators against exact enumeration, exact stationary laws, and gradient descent where there is no noise."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite import balance, label_noise, sgd
from lindyn_lite.flow import DivergenceError, gradient_descent
from lindyn_lite.networks import gradients, product
from lindyn_lite.tasks import from_data

DIMS = [(3, 2), (3, 2, 4), (2, 4, 3, 2), (1, 1, 1)]


def rng(seed=0):
    return np.random.default_rng(seed)


def random_layers(dims, seed):
    source = rng(seed)
    return [source.standard_normal(shape) / 2 for shape in zip(dims[1:], dims[:-1], strict=True)]


def random_data(dims, samples, seed):
    source = rng(seed)
    return source.standard_normal((samples, dims[0])), source.standard_normal((samples, dims[-1]))


def layer_gradients(layers, x, y):
    """Of ½ mean‖y − Wx‖² over the rows, layer by layer, from the definition."""
    W = product(layers)
    G = (x @ W.T - y).T @ x / len(x)
    slopes = []
    for l in range(len(layers)):
        above = product(layers[l + 1 :]) if l + 1 < len(layers) else np.eye(len(W))
        below = product(layers[:l]) if l else np.eye(W.shape[1])
        slopes.append(above.T @ G @ below.T)
    return slopes


def flat(layers):
    return np.concatenate([W.ravel() for W in layers])


def assert_within(samples, expected, errors=5.0):
    """The mean over the first axis is the expected one, within so many standard errors; returns the largest number."""
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    away = np.abs(samples.mean(axis=0) - expected)
    assert np.all(away <= errors * error + 1e-14), (
        f"off by {np.max(away / np.maximum(error, 1e-300)):.2f} standard errors"
    )


def assert_same_runs(a, b):
    for left, right in zip(a.weights, b.weights, strict=True):
        assert_array_equal(left, right)


# minibatches


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_a_batch_of_all_samples_is_gradient_descent(dims):
    layers, (X, Y) = random_layers(dims, 1), random_data(dims, 12, 2)
    task = from_data(X, Y)
    Z = X @ task.whitening.T
    run = sgd.minibatch(layers, Z, Y, 0.1, 12, 40, rng(), replicas=2, every=8)
    exact = gradient_descent(layers, task.teacher, 0.1, 40, every=8)
    assert_array_equal(run.t, exact.t)
    for measured, expected in zip(run.weights, exact.weights, strict=True):
        assert measured.shape == (6, 2, *expected.shape[1:])
        assert_allclose(measured[:, 0], expected, atol=1e-13)
        assert_array_equal(measured[:, 0], measured[:, 1])


@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize(("replace", "batch"), [(False, 1), (False, 2), (False, 3), (True, 1), (True, 3)])
def test_a_step_has_the_mean_and_covariance_of_all_batches(dims, replace, batch):
    layers, (X, Y), eta = random_layers(dims, 3), random_data(dims, 4, 4), 0.05
    choices = itertools.product(range(4), repeat=batch) if replace else itertools.combinations(range(4), batch)
    every = np.array([flat(layer_gradients(layers, X[list(c)], Y[list(c)])) for c in choices])
    run = sgd.minibatch(layers, X, Y, eta, batch, 1, rng(5), replicas=10_000, replace=replace)
    steps = np.concatenate([(W[0] - W[1]).reshape(10_000, -1) for W in run.weights], axis=1) / eta
    mean = every.mean(axis=0)
    assert_allclose(mean, flat(layer_gradients(layers, X, Y)), atol=1e-13)
    assert_within(steps, mean)
    centred = every - mean
    products = (steps - mean)[:, :, None] * (steps - mean)[:, None, :]
    assert_within(products, centred.T @ centred / len(every), errors=5.5)  # up to 676 entries
    # every draw is one of the batches, and all of them occur
    distances = np.linalg.norm(steps[:2000, None] - every[None], axis=2)
    assert distances.min(axis=1).max() < 1e-12 and distances.min(axis=0).max() < 1e-12


def test_the_noise_of_a_batch_has_the_documented_variance():
    (X, Y), b, samples = random_data((1, 1), 6, 6), 3, 6
    single = np.array([(x * 0.3 - y) * x for x, y in zip(X[:, 0], Y[:, 0], strict=True)])
    for replace, factor in ((True, 1 / b), (False, (samples - b) / (b * (samples - 1)))):
        run = sgd.minibatch([[[0.3]]], X, Y, 1.0, b, 1, rng(7), replicas=50_000, replace=replace)
        squares = (0.3 - run.weights[0][1, :, 0, 0] - single.mean()) ** 2
        assert_within(squares, single.var() * factor)


def test_batches_of_different_steps_and_replicas_are_independent():
    X, Y = np.eye(5), np.zeros((5, 1))  # a step on sample p shrinks weight p alone: the path tells the draws
    run = sgd.minibatch([np.ones((1, 5))], X, Y, 0.5, 1, 2, rng(8), replicas=50_000)
    W = run.weights[0][:, :, 0]
    first, second = ((W[k] != W[k + 1]).argmax(axis=1) for k in (0, 1))
    for a, b in ((first, second), (first[1:], first[:-1])):
        counts = np.bincount(5 * a + b, minlength=25)
        assert np.sum((counts - len(a) / 25) ** 2 / (len(a) / 25)) < 60  # chi-square with 24 degrees: p < 1e-4


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    dims=st.lists(st.integers(1, 3), min_size=3, max_size=5),
    batch=st.integers(1, 5),
    seed=st.integers(0, 10**6),
)
def test_every_step_changes_the_balance_as_predicted_for_its_batch(dims, batch, seed):
    layers, (X, Y), eta = random_layers(dims, seed), random_data(dims, 5, seed), 0.1
    run = sgd.minibatch(layers, X, Y, eta, batch, 1, rng(seed), replicas=2)
    candidates = [list(c) for c in itertools.combinations(range(5), batch)]
    for r in range(2):
        after = [W[1, r] for W in run.weights]
        moves = [
            [W - eta * g for W, g in zip(layers, layer_gradients(layers, X[c], Y[c]), strict=True)] for c in candidates
        ]
        chosen = candidates[int(np.argmin([np.linalg.norm(flat(after) - flat(move)) for move in moves]))]
        G = (X[chosen] @ product(layers).T - Y[chosen]).T @ X[chosen] / batch
        for history, change in zip(run.balance, balance.sgd_change(layers, G, eta), strict=True):
            assert_allclose(history[1, r] - history[0, r], change, atol=1e-13)


def test_scalar_networks_shrink_lambda_by_one_minus_eta_squared_g_squared_in_every_step():
    X, Y = random_data((1, 1), 20, 9)
    for run, eta in (
        (sgd.minibatch([[[0.4]], [[1.7]]], X, Y, 0.2, 2, 50, rng(10), replicas=3), 0.2),
        (sgd.label_noise([[[0.4]], [[1.7]]], [[1.0]], 0.05, 2, 0.5, 50, rng(11), replicas=3), 0.05),
    ):
        w1, w2 = (W[:, :, 0, 0] for W in run.weights)
        g = (w1[:-1] - w1[1:]) / (eta * w2[:-1])
        lam = run.balance[0][:, :, 0, 0]
        assert_allclose(lam[1:], lam[:-1] * (1 - eta**2 * g**2), rtol=1e-12)
        assert np.all(lam[-1] < lam[0])


def test_data_that_the_network_can_fit_freezes_the_run():
    X = rng(12).standard_normal((8, 3))
    layers = random_layers((3, 3, 2), 13)
    teacher = rng(14).standard_normal((2, 3))
    run = sgd.minibatch(layers, X, X @ teacher.T, 0.1, 2, 3000, rng(15), replicas=3, every=1000)
    assert_allclose(run.function[-1], np.broadcast_to(teacher, (3, 2, 3)), atol=1e-9)
    fitted = [np.eye(3), teacher]
    run = sgd.minibatch(fitted, X, X @ teacher.T, 0.1, 2, 50, rng(16))
    assert_allclose(run.weights[1][-1, 0], teacher, atol=1e-14)


# label noise


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_without_noise_a_fitted_network_stays_and_any_other_converges(dims):
    layers = random_layers(dims, 17)
    run = sgd.label_noise(layers, product(layers), 0.1, 2, 0.0, 20, rng(18), replicas=2)
    for history, W in zip(run.weights, layers, strict=True):
        assert_allclose(history, np.broadcast_to(W, history.shape), atol=1e-14)
    wide = [W + np.eye(*W.shape) for W in layers]
    run = sgd.label_noise(wide, 1.1 * product(wide), 0.03, 8, 0.0, 3000, rng(19), every=3000)
    assert_allclose(run.function[-1, 0], 1.1 * product(wide), atol=1e-3)


@pytest.mark.parametrize("dims", [(1, 1, 1), (3, 2, 4), (2, 2, 3, 2)], ids=str)
@pytest.mark.parametrize("fitted", [True, False])
def test_label_noise_moves_the_balance_by_the_expected_drift(dims, fitted):
    layers, eta, batch, sigma = random_layers(dims, 20), 0.1, 3, 0.8
    S = product(layers) if fitted else product(layers) + rng(21).standard_normal((dims[-1], dims[0]))
    run = sgd.label_noise(layers, S, eta, batch, sigma, 1, rng(22), replicas=40_000)
    drifts = balance.label_noise_drift(layers, eta, batch, sigma, S)
    for history, drift in zip(run.balance, drifts, strict=True):
        assert_within(history[1] - history[0], drift)
        assert np.abs(drift).max() > 5 * (history[1] - history[0]).std() / 200  # seen above the noise of the mean


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_a_label_noise_step_has_the_mean_of_the_whitened_gradient(dims):
    layers, S, eta = random_layers(dims, 23), rng(24).standard_normal((dims[-1], dims[0])), 0.05
    run = sgd.label_noise(layers, S, eta, 2, 0.7, 1, rng(25), replicas=20_000)
    for history, expected in zip(run.weights, gradients(layers, S), strict=True):
        assert_within((history[0] - history[1]) / eta, expected)


def test_large_batches_approach_gradient_descent():
    layers, S = random_layers((3, 2, 3), 26), rng(27).standard_normal((3, 3))
    exact = gradient_descent(layers, S, 0.1, 5).function[-1]
    errors = []
    for batch in (200, 3200):
        run = sgd.label_noise(layers, S, 0.1, batch, 0.3, 5, rng(28), replicas=200, every=5)
        errors.append(np.sqrt(np.mean((run.function[-1] - exact) ** 2)))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.2)  # 200 replicas fix each of them to about 4 %
    assert errors[1] < 0.01


def test_lambda_decays_between_the_predicted_rate_and_its_bound():
    """λ_0 = 10, N = 1, b = 4, η = .02: the source measures 1.178 times the predicted rate, with the bound 1.181."""
    lam, eta, batch, sigma, steps = 10.0, 0.02, 4, 0.5, 2000
    w2 = np.sqrt(np.sqrt(1 + lam**2 / 4) + lam / 2)
    run = sgd.label_noise([[[1 / w2]], [[w2]]], [[1.0]], eta, batch, sigma, steps, rng(29), replicas=200, every=steps)
    decay = -np.log(run.balance[0][-1, :, 0, 0] / lam) * label_noise.decay_steps(1, eta, batch, sigma) / steps
    kappa = np.sqrt(4 + lam**2)
    bound = 1 / (1 - eta * kappa / 2 * (1 + 2 / batch))
    error = decay.std() / np.sqrt(len(decay))
    assert error < 0.005
    assert 1 < decay.mean() < bound + 4 * error
    assert decay.mean() == pytest.approx(1.178, abs=0.01 + 4 * error)


# Langevin


@pytest.mark.parametrize("dims", DIMS[:3], ids=str)
def test_without_noise_langevin_is_gradient_descent_bit_for_bit(dims):
    layers, M = random_layers(dims, 30), rng(31).standard_normal((dims[-1], dims[0]))
    ends = np.cumsum([W.size for W in layers])[:-1]

    def slope(theta):
        parts = [np.split(row, ends) for row in theta]
        networks = [[part.reshape(W.shape) for part, W in zip(row, layers, strict=True)] for row in parts]
        return np.stack([flat(gradients(network, M)) for network in networks])

    run = sgd.langevin(slope, flat(layers), 0.1, 30, rng(), sigma=0, replicas=2, every=7)
    exact = gradient_descent(layers, M, 0.1, 30, every=7)
    assert_array_equal(run.t, exact.t)
    expected = np.concatenate([W.reshape(len(exact.t), -1) for W in exact.weights], axis=1)
    assert_array_equal(run.states, np.stack([expected, expected], axis=1))


@pytest.mark.parametrize(("eta", "h", "sigma"), [(0.1, 5.0, 2.0), (0.5, 1.0, 1.0), (0.1, 18.0, 0.5), (0.01, 20.0, 1.0)])
def test_a_quadratic_has_the_exact_variance_of_an_autoregressive_process(eta, h, sigma):
    variance = eta * sigma**2 / (h * (2 - eta * h))
    replicas, a = 40_000, 1 - eta * h
    steps = int(np.ceil(np.log(1e-8) / np.log(abs(a)))) + 1
    start = np.full(replicas, 3 * np.sqrt(variance))
    run = sgd.langevin(lambda x: h * x, start, eta, steps, rng(32), sigma=sigma)
    assert run.states.shape == (steps + 1, replicas)
    now = run.states[-1]
    assert_within(now, start[0] * a**steps)
    assert_within(now**2, variance)  # Gaussian: the standard error is √(2/40 000) of the variance
    assert_within(run.states[-2] * now, a * variance)
    middle = steps // 4  # the approach is exact too
    assert_within((run.states[middle] - start * a**middle) ** 2, variance * (1 - a ** (2 * middle)))
    if (eta, h, sigma) == (0.1, 5.0, 2.0):
        assert variance == pytest.approx(0.0533333, abs=1e-7)  # the example of the source; Boltzmann says .04


def test_temperature_and_sigma_are_two_names_of_one_noise():
    runs = [
        sgd.langevin(lambda x: x, np.zeros(4), 0.3, 10, rng(33), **noise)
        for noise in ({"sigma": 0.8}, {"temperature": 0.3 * 0.8**2 / 2})
    ]
    assert_allclose(runs[0].states, runs[1].states, rtol=1e-13)
    free = sgd.langevin(lambda x: 0 * x, np.zeros((20_000, 2)), 0.1, 30, rng(34), temperature=0.7)
    assert_within(free.states[-1] ** 2, np.full(2, 2 * 0.7 * 3.0))  # variance 2Tt on a flat loss
    assert_within(free.states[-1, :, 0] * free.states[-1, :, 1], 0.0)


def well_slope(x):
    return x * (x * x - 1)


def quasi_stationary_law(eta, T, edge=2.6, points=521):
    """Of x ← x − ηV'(x) + √(2Tη)ξ for V = (x² − 1)²/4, as the leading left eigenvector of its Markov operator."""
    x = np.linspace(-edge, edge, points)
    mean = x - eta * well_slope(x)
    operator = np.exp(-((x - mean[:, None]) ** 2) / (4 * T * eta)) * (x[1] - x[0]) / np.sqrt(4 * np.pi * T * eta)
    law = np.exp(-((x**2 - 1) ** 2) / (4 * T))
    for _ in range(500):  # symmetric start: the slow exchange between the wells is never excited
        law = law @ operator
        law /= law.sum()
    return x, law


@pytest.mark.parametrize(
    ("eta", "printed", "replicas", "steps"), [(0.4, 0.1776, 10_000, 300), (0.2, 0.0694, 10_000, 1500)]
)
def test_a_double_well_has_the_law_of_its_markov_operator_not_of_boltzmann(eta, printed, replicas, steps):
    T, bins = 0.1, np.linspace(-2.6, 2.6, 53)
    x, law = quasi_stationary_law(eta, T)
    boltzmann = np.exp(-((x**2 - 1) ** 2) / (4 * T))
    boltzmann /= boltzmann.sum()
    assert 0.5 * np.abs(law - boltzmann).sum() == pytest.approx(printed, abs=1e-4)
    start = np.where(np.arange(replicas) % 2, 1.0, -1.0)
    every = 20 if eta < 0.3 else 10
    run = sgd.langevin(well_slope, start, eta, steps, rng(35), temperature=T, every=every)
    skip = 30 // every + 2
    samples = run.states[skip:]

    def binned(weights):
        """The grid's law in bins of ten of its cells; a point on an edge belongs to both bins by halves."""
        cells = np.convolve(weights, [0.5, 0.5], "valid")
        return cells.reshape(52, -1).sum(axis=1)

    counts = np.stack([np.histogram(path, bins)[0] for path in samples.T]) / len(samples)
    inside = binned(law) > 1e-3
    assert_within(counts[:, inside], binned(law)[inside] / binned(law).sum(), errors=5)
    measured = 0.5 * np.abs(counts.mean(axis=0) - binned(boltzmann)).sum()
    assert measured == pytest.approx(printed, abs=0.012)  # noise of 52 bins and the width of a bin


def test_ten_thousand_replicas_take_ten_thousand_steps_in_ten_seconds():
    seconds = []
    for _ in range(3):  # the best of three, of 3 % of the steps: other processes only ever slow a run down
        begin = time.perf_counter()
        sgd.langevin(well_slope, 1.0, 0.1, 300, rng(36), temperature=0.1, replicas=10_000, every=300)
        seconds.append(time.perf_counter() - begin)
    assert min(seconds) < 0.3


# what all share


def simulate_batches(source, **k):
    return sgd.minibatch(random_layers((3, 2, 4), 0), *random_data((3, 2, 4), 9, 1), 0.1, 2, rng=source, **k)


def simulate_labels(source, **k):
    return sgd.label_noise(random_layers((3, 2, 4), 0), np.ones((4, 3)), 0.1, 2, 0.5, rng=source, **k)


def simulate_chain(source, **k):
    return sgd.langevin(lambda x: x, np.ones(3), 0.1, rng=source, sigma=0.5, **k)


SIMULATORS = {"minibatch": simulate_batches, "label noise": simulate_labels, "Langevin": simulate_chain}


def arrays(run):
    return run.weights if hasattr(run, "weights") else [run.states]


@pytest.mark.parametrize("simulate", SIMULATORS.values(), ids=SIMULATORS.keys())
def test_a_run_is_reproducible_by_its_seed_and_replicas_differ(simulate):
    runs = [simulate(rng(seed), steps=20, replicas=3) for seed in (1, 1, 2)]
    for a, b, c in zip(*map(arrays, runs), strict=True):
        assert_array_equal(a, b)
        assert np.all(np.abs(a[-1] - c[-1]).max(axis=tuple(range(1, a.ndim - 1))) > 0)
        assert len(np.unique(a[-1].reshape(3, -1), axis=0)) == 3


@pytest.mark.parametrize("simulate", SIMULATORS.values(), ids=SIMULATORS.keys())
@pytest.mark.parametrize(
    ("steps", "every", "kept"), [(10, 4, [0, 4, 8, 10]), (10, 5, [0, 5, 10]), (3, 7, [0, 3]), (0, 1, [0])]
)
def test_every_keeps_the_start_and_the_last_step_of_the_same_run(simulate, steps, every, kept):
    run = simulate(rng(3), steps=steps, every=every, replicas=2)
    full = simulate(rng(3), steps=steps, replicas=2)
    assert_allclose(run.t, 0.1 * np.array(kept), rtol=1e-15)
    for a, b in zip(arrays(run), arrays(full), strict=True):
        assert_array_equal(a, b[kept])


@pytest.mark.parametrize("simulate", SIMULATORS.values(), ids=SIMULATORS.keys())
def test_runs_do_not_depend_on_how_many_numbers_are_drawn_at_a_time(simulate, monkeypatch):
    whole = simulate(rng(4), steps=30, replicas=2)
    monkeypatch.setattr(sgd, "BLOCK", 1)
    for a, b in zip(arrays(whole), arrays(simulate(rng(4), steps=30, replicas=2)), strict=True):
        assert_array_equal(a, b)


def test_a_run_can_go_on_from_the_replicas_of_another():
    layers, S = random_layers((2, 3, 2), 37), np.eye(2)
    first = sgd.label_noise(layers, S, 0.1, 2, 0.5, 10, rng(38), replicas=4)
    source = rng(39)
    second = sgd.label_noise([W[-1] for W in first.weights], S, 0.1, 2, 0.5, 5, source)
    whole = rng(38)
    both = sgd.label_noise(layers, S, 0.1, 2, 0.5, 10, whole, replicas=4)
    for a, b, c in zip(first.weights, both.weights, second.weights, strict=True):
        assert_array_equal(a, b)
        assert_array_equal(c[0], a[-1])
        assert c.shape[:2] == (6, 4)
    assert layers[0].shape == (3, 2) and np.all(
        layers[0] == random_layers((2, 3, 2), 37)[0]
    )  # the start is not changed
    again = sgd.minibatch([W[-1] for W in first.weights], np.eye(2), np.eye(2), 0.1, 1, 3, rng(), replicas=4)
    assert again.function.shape == (4, 4, 2, 2)


def test_a_run_has_its_products_and_balances():
    run = sgd.label_noise(
        random_layers((2, 3, 2, 4), 40), np.ones((4, 2)), 0.05, 2, 0.5, 6, rng(41), replicas=3, every=2
    )
    assert run.function.shape == (4, 3, 4, 2)
    assert [G.shape for G in run.balance] == [(4, 3, 3, 3), (4, 3, 2, 2)]
    for k, r in np.ndindex(4, 3):
        now = [W[k, r] for W in run.weights]
        assert_allclose(run.function[k, r], product(now), atol=1e-14)
        for G, expected in zip(run.balance, balance.conserved(now), strict=True):
            assert_allclose(G[k, r], expected, atol=1e-14)
    assert run.method == "label noise, sigma=0.5, batches of 2, eta=0.05"
    with pytest.raises(AttributeError):
        run.t = 0


def test_overflow_names_the_step_and_the_replicas():
    start = np.array([0.0, 1.0, 0.0])
    with pytest.raises(DivergenceError, match=r"step 1024 \(t = 3072\) left.*1 of 3 replicas.*take eta below 3"):
        sgd.langevin(lambda x: x, start, 3.0, 5000, rng(), sigma=0, every=5000)  # doubles: 2^1024 is the first overflow
    with pytest.raises(DivergenceError, match=r"step \d+ .* left the finite numbers in 2 of 2 replicas"):
        sgd.label_noise([[[3.0]], [[3.0]]], [[1.0]], 5.0, 2, 0.5, 100, rng(), replicas=2)
    with pytest.raises(DivergenceError, match="take eta below 5"):
        sgd.minibatch([[[3.0]], [[3.0]]], [[1.0], [2.0]], [[1.0], [0.0]], 5.0, 1, 100, rng(), every=100)


ONE, DATA = [[[1.0]], [[2.0]]], ([[1.0], [2.0]], [[0.5], [1.0]])


def mini(weights=ONE, X=DATA[0], Y=DATA[1], eta=0.1, batch=1, steps=1, source=None, **k):
    return sgd.minibatch(weights, X, Y, eta, batch, steps, rng() if source is None else source, **k)


def labels(weights=ONE, S=((1.0,),), eta=0.1, batch=1, sigma=0.5, steps=1, source=None, **k):
    return sgd.label_noise(weights, S, eta, batch, sigma, steps, rng() if source is None else source, **k)


def chain(gradient=lambda x: x, start=(1.0,), eta=0.1, steps=1, source=None, **k):
    return sgd.langevin(gradient, start, eta, steps, rng() if source is None else source, **({"sigma": 1.0} | k))


STACK = [np.ones((3, 1, 1)), np.ones((3, 1, 1))]
BAD = {
    "weights": (lambda: mini([np.eye(2), np.eye(3)]), "do not chain"),
    "no weights": (lambda: mini([]), "at least one layer"),
    "weights NaN": (lambda: labels([[[np.nan]]]), r"W1\[0, 0\] = nan"),
    "stacks of different length": (lambda: mini([np.ones((3, 1, 1)), np.ones((2, 1, 1))]), r"3 replicas.*\[3, 2\]"),
    "stacks of another length": (lambda: labels(STACK, replicas=4), r"4 replicas.*\[3, 3\]"),
    "stacks that do not chain": (lambda: labels([np.ones((3, 2, 1)), np.ones((3, 1, 1))]), "do not chain"),
    "stacks with NaN": (lambda: labels([STACK[0], np.nan * STACK[1]]), r"W2\[0, 0\] = nan"),
    "a stack and a matrix": (lambda: labels([STACK[0], [[1.0]]]), "W1 must be a non-empty matrix"),
    "rows": (lambda: mini(Y=[[1.0]]), r"as many rows.*\(2, 1\) and \(1, 1\)"),
    "inputs": (lambda: mini(X=np.ones((2, 3))), r"1 and 1 columns.*\(2, 3\)"),
    "targets": (lambda: mini(Y=np.ones((2, 3))), r"1 and 1 columns.*\(2, 3\)"),
    "X NaN": (lambda: mini(X=[[np.nan], [1]]), r"X\[0, 0\] = nan"),
    "Y NaN": (lambda: mini(Y=[[np.inf], [1]]), r"Y\[0, 0\] = inf"),
    "batch of zero": (lambda: mini(batch=0), "batch must be.*at least 1, got 0"),
    "batch too large": (lambda: mini(batch=3), "batch must be at most 2.*got 3"),
    "half a batch": (lambda: mini(batch=0.5), "batch must be an integer, got 0.5"),
    "label batch": (lambda: labels(batch=-1), "batch must be.*got -1"),
    "teacher": (lambda: labels(S=np.eye(2)), r"teacher M.*\(2, 2\).*\(1, 1\)"),
    "negative sigma": (lambda: labels(sigma=-1), "sigma must be finite and at least 0, got -1"),
    "sigma NaN": (lambda: chain(sigma=np.nan), "sigma must be finite and at least 0, got nan"),
    "no noise given": (lambda: chain(sigma=None), "either sigma or temperature, got sigma=None and temperature=None"),
    "both given": (lambda: chain(temperature=1.0), r"either sigma or temperature, got sigma=1\.0 and temperature=1\.0"),
    "temperature": (lambda: chain(sigma=None, temperature=-1), "temperature must be finite and at least 0, got -1"),
    "shape of the gradient": (lambda: chain(lambda x: x.sum()), r"gradient must keep the shape \(1,\).*\(\)"),
    "start without replicas": (lambda: chain(start=1.0), "replicas.*got 1.0"),
    "start NaN": (lambda: chain(start=[np.nan]), "start must be finite"),
    "empty start": (lambda: chain(start=[]), "start must hold real numbers"),
    "complex start": (lambda: chain(start=[1 + 2j]), "start must hold real numbers, got dtype complex128"),
    "dates": (lambda: chain(start=np.array(["2020"], "M8[D]")), "start must hold real numbers, got dtype datetime64"),
    "words": (lambda: chain(start=["1", "2"]), "start must hold real numbers, got dtype <U1"),
    "ragged start": (lambda: chain(start=[[1], [1, 2]]), "start must be an array, but its rows"),
    "no gradient": (lambda: chain(3.0, steps=0), r"gradient must be a function.*got 3\.0"),
    "complex gradient": (lambda: chain(lambda x: x * 1j), "be real, but returned dtype complex128"),
    "gradient NaN": (lambda: chain(lambda x: x * np.nan), "the gradient is NaN in 1 of 1 entries, at finite states"),
    "gradient in place": (lambda: chain(lambda x: np.multiply(x, 2, out=x)), "read-only"),
    "endless steps": (lambda: chain(steps=10**400), r"steps must be at most 2\*\*53"),
    "replicas": (lambda: chain(start=1.0, replicas=0), "replicas must be.*at least 1, got 0"),
}
for name, call in (("minibatch", mini), ("label noise", labels), ("Langevin", chain)):
    BAD |= {
        f"{name}: eta": (lambda call=call: call(eta=0), "eta must be finite and positive, got 0"),
        f"{name}: eta NaN": (lambda call=call: call(eta=np.nan), "eta must be finite and positive, got nan"),
        f"{name}: steps": (lambda call=call: call(steps=-1), "steps must be.*at least 0, got -1"),
        f"{name}: steps of a float": (lambda call=call: call(steps=1.0), "steps must be an integer"),
        f"{name}: every": (lambda call=call: call(every=0), "every must be.*at least 1, got 0"),
        f"{name}: replicas": (lambda call=call: call(replicas=-2), "replicas must be.*at least 1, got -2"),
        f"{name}: a seed": (lambda call=call: call(source=7), r"rng must be a numpy\.random\.Generator.*got 7"),
    }


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_raises_and_says_what_was_received(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("simulate", [sgd.minibatch, sgd.label_noise, sgd.langevin])
def test_the_source_of_randomness_is_required(simulate):
    with pytest.raises(TypeError, match="rng"):
        simulate(weights=ONE) if simulate is not sgd.langevin else simulate(well_slope, 1.0, 0.1, 1)
