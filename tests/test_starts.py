"""Initial weights against the equations that define them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite import starts
from lindyn_lite.networks import product
from lindyn_lite.starts import ImpossibleStartError

LAMBDAS = [0.0, *(sign * 10.0**k for k in (-8, -4, -1, 0, 2, 4) for sign in (1, -1))]
DIMS = list(itertools.product((1, 2, 3, 5), repeat=3))


def rng(seed=0):
    return np.random.default_rng(seed)


def possible(N_i, N_h, N_o, lam):
    return not (lam > 0 and N_h > N_o) and not (lam < 0 and N_h > N_i)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(widths=st.lists(st.integers(1, 7), min_size=2, max_size=5), seed=st.integers(0, 10**6))
def test_balanced_starts_are_balanced_and_all_layers_share_their_singular_values(widths, seed):
    sigma = np.sort(rng(seed).uniform(0.1, 2, min(widths)))[::-1]
    layers = starts.balanced(widths, sigma, rng(seed))
    assert [W.shape for W in layers] == list(zip(widths[1:], widths[:-1], strict=True))
    for below, above in itertools.pairwise(layers):
        assert np.linalg.norm(above.T @ above - below @ below.T) < 1e-14 * np.linalg.norm(below) ** 2
    for W in layers:
        s = np.linalg.svd(W, compute_uv=False)
        assert_allclose(s[: len(sigma)], sigma, rtol=1e-13)
        assert np.all(s[len(sigma) :] < 1e-14)
    s = np.linalg.svd(product(layers), compute_uv=False)[: len(sigma)]
    assert_allclose(s, sigma ** len(layers), rtol=1e-10)


def test_a_balanced_start_of_one_scale_has_full_rank_and_can_have_less():
    layers = starts.balanced((3, 5, 4), 0.5, rng())
    assert_allclose(np.linalg.svd(layers[0], compute_uv=False), [0.5] * 3, rtol=1e-14)
    layers = starts.balanced((3, 5, 4), [2.0], rng())
    assert np.linalg.matrix_rank(product(layers)) == 1


@pytest.mark.parametrize("lam", LAMBDAS)
def test_lambda_balanced_starts_are_lambda_balanced_to_rounding_for_all_shapes(lam):
    for N_i, N_h, N_o in DIMS:
        r = min(N_i, N_h, N_o)
        s = np.linspace(1.0, 0.2, r)
        if not possible(N_i, N_h, N_o, lam):
            with pytest.raises(ImpossibleStartError):
                starts.lambda_balanced(N_i, N_h, N_o, lam, rng())
            continue
        W1, W2 = starts.lambda_balanced(N_i, N_h, N_o, lam, rng(1), s)
        assert W1.shape == (N_h, N_i) and W2.shape == (N_o, N_h)
        size = np.sum(W1**2) + np.sum(W2**2)
        assert np.linalg.norm(W2.T @ W2 - W1 @ W1.T - lam * np.eye(N_h)) < 1e-14 * size
        assert_allclose(np.linalg.svd(W2 @ W1, compute_uv=False)[:r], s, rtol=1e-12)


@pytest.mark.parametrize("lam", [1e4, -1e4, 1.0, 0.0])
def test_the_small_layer_keeps_all_its_digits(lam):
    W1, W2 = starts.lambda_balanced(2, 2, 2, lam, rng(), [1.0, 0.5])
    s = np.array([1.0, 0.5])
    large = np.sqrt(np.hypot(s, lam / 2) + abs(lam) / 2)
    small = np.linalg.svd(W1 if lam >= 0 else W2, compute_uv=False)
    assert_allclose(small, s / large, rtol=1e-14)  # theorem 5.2, without the difference s_λ − |λ|/2


@pytest.mark.parametrize("lam", [0.0, 0.7, -0.7, 1e4])
@pytest.mark.parametrize("dims", [(3, 3, 3), (4, 3, 3), (3, 2, 4), (3, 3, 5)], ids=str)
def test_aligned_starts_are_diagonal_in_the_bases_of_the_teacher(dims, lam):
    N_i, N_h, N_o = dims
    S = rng(5).standard_normal((N_o, N_i))
    values = np.array([0.3, -0.2, 0.1])[: min(dims)]
    W1, W2 = starts.lambda_balanced(N_i, N_h, N_o, lam, rng(2), values, aligned_to=S)
    U, _, Vt = np.linalg.svd(S)
    expected = np.zeros((N_o, N_i))
    np.fill_diagonal(expected[: len(values), : len(values)], values)
    assert_allclose(U.T @ W2 @ W1 @ Vt.T, expected, atol=1e-14)
    for seed in (3, 4):  # the hidden basis is all that the seed decides
        other = starts.lambda_balanced(N_i, N_h, N_o, lam, rng(seed), values, aligned_to=S)
        assert_allclose(other[1] @ other[0], W2 @ W1, atol=1e-14)
        assert N_h == 1 or not np.allclose(other[0], W1)


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_a_product_of_zero_is_possible(lam):
    W1, W2 = starts.lambda_balanced(3, 2, 2, lam, rng(), 0.0)
    assert_array_equal(W1, np.zeros((2, 3)))
    assert_allclose(W2.T @ W2, lam * np.eye(2), atol=1e-15)


def test_impossible_starts_name_the_inequality_and_its_numbers():
    with pytest.raises(ImpossibleStartError, match=r"λ = 0\.5 > 0 needs N_h ≤ N_o.*N_h = 4 exceeds N_o = 2 by 2"):
        starts.lambda_balanced(5, 4, 2, 0.5, rng())
    with pytest.raises(ImpossibleStartError, match=r"λ = -0\.5 < 0 needs N_h ≤ N_i.*N_h = 4 exceeds N_i = 3 by 1"):
        starts.lambda_balanced(3, 4, 5, -0.5, rng())
    assert issubclass(ImpossibleStartError, ValueError)
    starts.lambda_balanced(3, 4, 2, 0, rng())


VARIANCES = {  # (d0, n, d2) = (40, 400, 90), σ = .7: one variance per layer
    "mixed": (0.49 / 20, 0.49 / 20),
    "sigma2": (0.49, 0.49),
    "fan_in": (0.49 / 40, 0.49 / 400),
    "lecun": (0.49 / 40, 0.49 / 400),
    "glorot": (0.98 / 440, 0.98 / 490),
}


@pytest.mark.parametrize("convention", VARIANCES)
def test_gaussian_entries_are_independent_normal_with_the_variance_of_the_convention(convention):
    layers = starts.gaussian((40, 400, 90), rng(7), convention, 0.7)
    for W, variance in zip(layers, VARIANCES[convention], strict=True):
        n, z = W.size, W / np.sqrt(variance)
        assert abs(z.mean()) < 4.5 / np.sqrt(n)
        assert abs((z**2).mean() - 1) < 4.5 * np.sqrt(2 / n)
        assert abs((z**4).mean() - 3) < 4.5 * np.sqrt(96 / n)
        assert abs((z[1:] * z[:-1]).mean()) < 4.5 / np.sqrt(n)


def test_gaussian_starts_are_lambda_balanced_in_expectation():
    trials, (N_i, N_h, N_o) = 4000, (3, 2, 5)
    draw = rng(8)
    G = np.zeros((trials, N_h, N_h))
    for k in range(trials):
        W1, W2 = starts.gaussian((N_i, N_h, N_o), draw, "sigma2", 0.5)
        G[k] = W2.T @ W2 - W1 @ W1.T
    error = G.std(axis=0) / np.sqrt(trials)
    assert np.all(np.abs(G.mean(axis=0) - 0.25 * (N_o - N_i) * np.eye(N_h)) < 4 * error)


def test_other_conventions_take_any_depth():
    for convention in ("sigma2", "fan_in", "lecun", "glorot"):
        assert [W.shape for W in starts.gaussian((2, 3, 4, 5), rng(), convention)] == [(3, 2), (4, 3), (5, 4)]


@pytest.mark.parametrize("widths", [(3, 3), (2, 4, 3), (5, 1, 2, 2)], ids=str)
def test_orthogonal_layers_are_semi_orthogonal(widths):
    layers = starts.orthogonal(widths, 1.5, rng(3))
    for W, (below, above) in zip(layers, itertools.pairwise(widths), strict=True):
        assert W.shape == (above, below)
        G = W.T @ W if above >= below else W @ W.T
        assert_allclose(G, 2.25 * np.eye(min(above, below)), atol=1e-14)


DRAWS = {
    "balanced": lambda g: starts.balanced((2, 3, 2), 1.0, g),
    "lambda_balanced": lambda g: starts.lambda_balanced(2, 2, 2, 0.3, g),
    "gaussian": lambda g: starts.gaussian((2, 3, 2), g),
    "orthogonal": lambda g: starts.orthogonal((2, 3, 2), 1.0, g),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_seeds_reproduce_and_differ_and_successive_draws_differ(draw):
    generator = rng(1)
    a, b, c, d = draw(generator), draw(rng(1)), draw(rng(2)), draw(generator)
    for first, same, other, later in zip(a, b, c, d, strict=True):
        assert_array_equal(first, same)
        assert not np.allclose(first, other) and not np.allclose(first, later)


BAD = {
    "one width": (lambda: starts.orthogonal((2,), 1, rng()), "two or more"),
    "no width": (lambda: starts.balanced((), 1, rng()), "two or more"),
    "zero width": (lambda: starts.balanced((2, 0, 2), 1, rng()), "at least 1"),
    "float width": (lambda: starts.gaussian((2, 2.5, 2), rng()), "must be an integer, got 2.5"),
    "a number": (lambda: starts.gaussian(3, rng()), "integers"),
    "a seed": (lambda: starts.gaussian((2, 2, 2), 0), "rng must be a numpy.random.Generator"),
    "no rng": (lambda: starts.lambda_balanced(2, 2, 2, 0, None), "rng must be"),
    "convention": (lambda: starts.gaussian((2, 2, 2), rng(), "he"), "unknown convention 'he'.*'mixed'.*'glorot'"),
    "mixed depth": (lambda: starts.gaussian((2, 2, 2, 2), rng(), "mixed"), "needs 3 widths, got 4"),
    "sigma": (lambda: starts.gaussian((2, 2, 2), rng(), "lecun", -1), "sigma.*got -1"),
    "NaN sigma": (lambda: starts.gaussian((2, 2, 2), rng(), "lecun", np.nan), "sigma must be.*nan"),
    "negative scale": (lambda: starts.balanced((2, 2), [1, -1], rng()), "scale must be at least 0, got -1"),
    "scale": (lambda: starts.orthogonal((2, 2), -0.5, rng()), r"scale must be at least 0, got -0\.5"),
    "too many values": (lambda: starts.balanced((2, 3), [1, 1, 1], rng()), "at most 2 values"),
    "NaN value": (lambda: starts.lambda_balanced(2, 2, 2, 0, rng(), [1, np.nan]), "finite"),
    "complex scale": (lambda: starts.lambda_balanced(2, 2, 2, 0, rng(), 1j), "scale must be"),
    "infinite lambda": (lambda: starts.lambda_balanced(2, 2, 2, np.inf, rng()), "lam must be.*inf"),
    "teacher": (lambda: starts.lambda_balanced(2, 2, 3, 0, rng(), 1, np.eye(2)), r"\(N_o, N_i\) = \(3, 2\).*\(2, 2\)"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_raises(call, message):
    with pytest.raises(ValueError, match=message):
        call()
