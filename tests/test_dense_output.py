"""Many times at once: the same solution, from far fewer evaluations of the closed form."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from lindyn_lite import dense_output, riccati, starts
from lindyn_lite.tasks import random_basis


def blocks(solution):
    return solution.input_similarity, solution.function, solution.output_similarity


def deviation(dense, exact):
    """Largest blockwise relative deviation."""
    return max(
        float((np.linalg.norm(a - b, axis=(1, 2)) / np.linalg.norm(b, axis=(1, 2))).max())
        for a, b in zip(dense, exact, strict=True)
    )


def one_by_one(W, S, t, lam):
    """Every time in a call of its own: no polynomial is involved."""
    single = [blocks(riccati.solve(*W, S, float(time), lam)) for time in t]
    return [np.array(parts) for parts in zip(*single, strict=True)]


@pytest.fixture
def evaluations(monkeypatch):
    """Counts the times at which the closed form is evaluated."""
    asked, evaluate = [], dense_output.evaluate

    def counting(*args):
        asked.append(len(args[-1]))
        return evaluate(*args)

    monkeypatch.setattr(dense_output, "evaluate", counting)
    return asked


@pytest.mark.filterwarnings("ignore::lindyn_lite.riccati.StableManifoldWarning")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    shape=st.sampled_from([(1, 1, 1), (2, 2, 2), (3, 2, 2), (2, 2, 4), (2, 4, 3), (3, 1, 3)]),
    lam=st.sampled_from([0.0, 1e-8, 0.2, -1.0, 4.0]),
    scale=st.sampled_from([1e-3, 0.3, 20.0]),
    end=st.sampled_from([0.01, 1.0, 6.0]),
    seed=st.integers(0, 10**6),
)
def test_a_dense_grid_gives_what_each_time_gives_alone(shape, lam, scale, end, seed):
    rng = np.random.default_rng(seed)
    Ni, Nh, No = shape
    lam = lam if Nh <= (No if lam > 0 else Ni) else 0.0
    W = starts.lambda_balanced(Ni, Nh, No, lam, rng, np.full(min(shape), scale))
    S = random_basis(No, rng)[:, : min(Ni, No)] @ random_basis(Ni, rng)[: min(Ni, No)] * 1.3
    t = np.linspace(0, end, 601)
    few = np.arange(0, 601, 40)
    with np.errstate(all="raise"):
        dense = riccati.solve(*W, S, t, lam)
    if not dense.on_stable_manifold:
        assert deviation([b[few] for b in blocks(dense)], one_by_one(W, S, t[few], lam)) < 5e-14


@pytest.mark.parametrize("lam", [0.0, 0.5, -1.0])
def test_a_dense_grid_against_forty_digits(lam, evaluations):
    """Aligned modes with random bases: each follows w' = √(4w² + λ²)(s − w), solved here by its tangent form."""
    rng = np.random.default_rng(5)
    s, w0 = np.array([1.5, 0.9, 0.4]), np.array([0.02, 0.3, 0.05])
    U, V = random_basis(3, rng), random_basis(3, rng)
    small = w0 / np.sqrt(np.sqrt(w0**2 + lam**2 / 4) + abs(lam) / 2)
    first, second = (small, w0 / small) if lam >= 0 else (w0 / small, small)
    t = np.linspace(0, 4, 801)
    solution = riccati.solve(np.diag(first) @ V.T, U * second, U * s @ V.T, t, lam)
    assert sum(evaluations) < 300
    w = np.einsum("ia,tij,ja->ta", U, solution.function, V)
    for k in range(0, 801, 50):
        assert_allclose(w[k], [mode(t[k], *pair, abs(lam) / 2) for pair in zip(s, w0, strict=True)], rtol=2e-14)


def mode(t, s, w0, tau):
    """The mixed mode in 40 digits: tan((ψ − ψ_s)/2) shrinks by e^{−2rt}, w = τ tan ψ; logistic for τ = 0."""
    with mp.workdps(40):
        t, s, w0, tau = map(mp.mpf, (float(t), float(s), float(w0), float(tau)))
        if tau == 0:
            return float(s / (1 + (s / w0 - 1) * mp.exp(-2 * s * t)))
        end, begin = mp.atan(s / tau), mp.atan(w0 / tau)
        shrunk = mp.tan((begin - end) / 2) * mp.exp(-2 * mp.hypot(s, tau) * t)
        return float(tau * mp.tan(end + 2 * mp.atan(shrunk)))


def test_a_layer_that_passes_through_zero_keeps_its_digits():
    """W_1 and the product change sign at one time: a polynomial would round relative to its largest values."""
    lam, s, w0 = 2.0, 1.0, -0.4
    first = w0 / np.sqrt(np.hypot(w0, 1) + 1)
    W = [np.array([[first]]), np.array([[w0 / first]])]
    t = np.linspace(0, 2, 2001)
    dense = riccati.solve(*W, [[s]], t, lam)
    exact = [mode(time, s, w0, 1) for time in t]
    small = np.array([w**2 / (np.hypot(w, 1) + 1) for w in exact])
    assert min(exact) < 0 < max(exact)
    assert_allclose(dense.function[:, 0, 0], exact, rtol=1e-14, atol=1e-15)
    assert_allclose(dense.input_similarity[:, 0, 0], small, rtol=1e-13, atol=3e-16 * np.sqrt(small.max()))


def test_times_in_any_order_and_repeated():
    rng = np.random.default_rng(3)
    W, S = starts.lambda_balanced(3, 3, 3, 0.5, rng), np.diag([2.0, 1.0, 0.5])
    t = np.concatenate([np.linspace(0, 3, 500), [0.0, np.inf, 1e6], np.full(60, 0.7), np.linspace(0.5, 0.6, 100)])
    order = rng.permutation(len(t))
    mixed, sorted_ = riccati.solve(*W, S, t[order], 0.5), riccati.solve(*W, S, np.sort(t), 0.5)
    place = np.argsort(np.argsort(t[order], kind="stable"), kind="stable")
    assert deviation(blocks(mixed), [b[place] for b in blocks(sorted_)]) < 1e-14
    assert deviation([b[::25] for b in blocks(mixed)], one_by_one(W, S, t[order][::25], 0.5)) < 1e-14


def test_dense_times_cost_far_fewer_evaluations_and_sparse_ones_no_more(evaluations):
    W, S = starts.lambda_balanced(2, 2, 2, 1.0, np.random.default_rng(0)), np.diag([1.0, 0.5])
    riccati.solve(*W, S, np.linspace(0, 5, 5001), 1.0)
    assert sum(evaluations) < 400
    evaluations.clear()
    riccati.solve(*W, S, np.linspace(0, 1e4, 300), 1.0)
    assert sum(evaluations) == 300


def test_a_polynomial_that_misses_is_not_used(evaluations, monkeypatch):
    """With far too wide an ellipse there are too few points: every time is then evaluated after all."""
    domain = dense_output.domain
    monkeypatch.setattr(dense_output, "STRIP", 1e3)
    monkeypatch.setattr(dense_output, "domain", lambda problem: (domain(problem)[0], 1e3))
    W, S = starts.lambda_balanced(2, 2, 2, 1.0, np.random.default_rng(0)), np.diag([1.0, 0.5])
    t = np.linspace(1, 3, 1001)
    dense = riccati.solve(*W, S, t, 1.0)
    assert sum(evaluations) > 1001
    assert deviation([b[::100] for b in blocks(dense)], one_by_one(W, S, t[::100], 1.0)) < 1e-14
