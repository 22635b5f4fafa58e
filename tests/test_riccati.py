"""The Riccati solution against 60 digits, closed forms, invariants of the flow and numerical integration."""

import itertools
import json
import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite import flow, riccati, starts
from lindyn_lite.riccati import NotBalancedError, StableManifoldWarning
from lindyn_lite.tasks import random_basis

REFERENCE = json.loads((Path(__file__).parent / "values" / "lambda_balanced.json").read_text(encoding="utf-8"))
LAMBDAS = [0.0, 1e-8, -1e-8, 1e-3, -0.5, 1.0, -3.0, 50.0, -1e3, 1e4, -1e4]
SHAPES = [(2, 2, 2), (3, 3, 3), (3, 2, 2), (2, 2, 3), (3, 1, 2), (2, 4, 3), (4, 3, 2), (3, 2, 3)]
TIMES = [1e-12, 1e-6, 1e-3, 0.1, 0.5, 2.0, 30.0, 1e3, 1e6]
SPECTRA = {
    "generic": lambda m: np.linspace(2, 0.5, m),
    "rank one": lambda m: np.r_[1.5, np.zeros(m - 1)],
    "repeated": lambda m: np.full(m, 1.5),
    "zero": np.zeros,
    "graded": lambda m: np.logspace(0, -6, m),
}


def blocks(solution):
    return solution.input_similarity, solution.function, solution.output_similarity


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def eigen(W1, W2, S, lam):
    """Eigenvalues of F, descending, eigenvectors, and the start in that basis, in the working precision of mpmath."""
    d, Ni = S.shape[0] + S.shape[1], S.shape[1]
    F = mp.matrix(np.block([[np.zeros((Ni, Ni)), S.T], [S, np.zeros((d - Ni, d - Ni))]]).tolist())
    for i in range(d):
        F[i, i] = mp.mpf(lam) / (-2 if i < Ni else 2)
    E, O = mp.eighe(F)
    order = sorted(range(d), key=lambda i: -E[i])
    O = mp.matrix([[O[a, i] for i in order] for a in range(d)])
    return [E[i] for i in order], O, O.T * mp.matrix(np.concatenate([W1.T, W2]).tolist())


def textbook(W1, W2, S, lam, t, digits=120):
    """The formula as it stands: for e^{2s_λt} well below 10^digits."""
    with mp.workdps(digits):
        rates, O, A = eigen(W1, W2, S, lam)
        D = mp.diag([mp.mpf(t) if r == 0 else mp.expm1(2 * r * t) / (2 * r) for r in rates])
        grown = mp.diag([mp.exp(r * t) for r in rates]) * A
        G = O * (grown * mp.inverse(mp.eye(A.cols) + A.T * D * A) * grown.T) * O.T
        return np.array(G.tolist(), dtype=float)


def exact(W1, W2, S, lam, t, digits=60):
    """The same for any t: columns triangularised from the fastest row down and divided by their growth."""
    with mp.workdps(digits):
        rates, O, A = eigen(W1, W2, S, lam)
        t, Z, pivots = mp.mpf(t), [], []
        for r in range(A.rows):
            row = A[r, :]
            for z in Z + Z:
                row -= (row * z.T)[0] * z
            if mp.norm(row) > mp.mpf(10) ** (-digits // 2) and len(Z) < A.cols:
                Z.append(row / mp.norm(row))
                pivots.append(r)
        unit = [mp.exp(-max(rates[p], 0) * t) for p in pivots]
        L = mp.matrix(A.rows, len(Z))
        for (j, z), r in itertools.product(enumerate(Z), range(A.rows)):
            L[r, j] = (A[r, :] * z.T)[0] * unit[j] if r >= pivots[j] else 0
        D = mp.diag([mp.sqrt(t if r == 0 else mp.expm1(2 * r * t) / (2 * r)) for r in rates])
        M = (D * L).T * (D * L) + mp.diag([u * u for u in unit])
        size = mp.diag([1 / mp.sqrt(M[j, j]) for j in range(len(Z))])
        G = O * mp.diag([mp.exp(r * t) for r in rates]) * L * size
        G = G * mp.inverse(size * M * size) * G.T
        return np.array([[float(x) for x in row] for row in G.tolist()])


def errors(solution, G):
    """Blockwise relative errors of K1, P, K2 against the whole Gram matrix."""
    n = solution.input_similarity.shape[-1]
    pairs = zip(blocks(solution), (G[:n, :n], G[n:, :n], G[n:, n:]), strict=True)
    return [relative(a, b) if np.linalg.norm(b) > 1e-280 else np.linalg.norm(a) for a, b in pairs]


def cases():
    for shape, spectrum, lam in itertools.product(SHAPES, SPECTRA, LAMBDAS):
        Ni, Nh, No = shape
        if not (lam > 0 and Nh > No) and not (lam < 0 and Nh > Ni):
            yield shape, spectrum, lam


def problem(shape, spectrum, lam, scale, rotate=True, rng=None):
    """A start and a teacher off every stable manifold, with σ_min of O_+ᵀQ_0 not below 1e-3 of its size."""
    Ni, Nh, No = shape
    m = min(Ni, No)
    S = np.zeros((No, Ni))
    np.fill_diagonal(S, SPECTRA[spectrum](m))
    rng = rng or np.random.default_rng(LAMBDAS.index(lam) + 100 * SHAPES.index(shape))
    if rotate:
        S = random_basis(No, rng) @ S @ random_basis(Ni, rng).T
    for _ in range(100):
        W = starts.lambda_balanced(Ni, Nh, No, lam, rng, scale * np.linspace(1, 0.4, min(shape)))
        start = riccati.as_problem(*W, S, lam).start
        n = min(start.spectrum.signal, Nh)
        size = np.linalg.svd(start.lower[:n, :n], compute_uv=False) if n else np.ones(1)
        if not start.on_stable_manifold and size[-1] > 1e-3 * size[0]:
            return W, S
    raise AssertionError("no regular start found")


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e["kind"] == "qqt"], ids=lambda e: e["id"])
def test_reference_values_of_the_gram_matrix(entry):
    given_ = entry["inputs"]
    solution = riccati.solve(*(given_[name] for name in ("W1", "W2", "S", "t", "lam")))
    for name, block in zip(("W1tW1", "W2W1", "W2W2t"), blocks(solution), strict=True):
        assert relative(block, np.array(entry["outputs"][name], dtype=float)) < 1e-14  # 15 digits are given


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e["kind"] == "thmC.4"], ids=lambda e: e["id"])
@pytest.mark.parametrize("t", [1e6, np.inf])
def test_reference_eigenvalues_at_convergence(entry, t):
    lam, s = entry["inputs"]["lam"], entry["inputs"]["S_sv"]
    W = starts.lambda_balanced(2, 2, 2, lam, np.random.default_rng(0), [0.3, 0.1], np.eye(2))
    solution = riccati.solve(*W, np.diag(s), t, lam)
    for name, block in (("eig_W1tW1", solution.input_similarity), ("eig_W2W2t", solution.output_similarity)):
        assert_allclose(np.linalg.eigvalsh(block)[::-1], np.array(entry["outputs"][name], dtype=float), rtol=1e-12)


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e["id"] == "ntk_coeff" or e["id"].startswith("ntk_move")])
def test_reference_movement_of_the_kernel(entry):
    given_, out = entry["inputs"], entry["outputs"]
    S = np.array(given_["S"])
    if entry["id"] == "ntk_coeff":  # |λ|‖ΔK‖ as |λ| → ∞, corrections of relative order λ⁻²
        U, s, Vt = np.linalg.svd(P0 := np.array(given_["P0"]))
        lam = 1e5
        large = np.hypot(s, lam / 2) + lam / 2
        W1, W2 = (s / np.sqrt(large))[:, None] * Vt, U * np.sqrt(large)
        assert_allclose(W2 @ W1, P0, atol=1e-14)
    else:
        W1, W2, lam = np.array(given_["W1"]), np.array(given_["W2"]), given_["lam"]
    run = riccati.solve(W1, W2, S, [0, np.inf], lam)
    identity = np.eye(2)
    K = [
        np.kron(identity, a) + np.kron(b, identity)
        for a, b in zip(run.input_similarity, run.output_similarity, strict=True)
    ]
    movement = np.linalg.norm(K[1] - K[0])
    if entry["id"] == "ntk_coeff":  # ΔK2 is a small difference of entries of size λ: 1e-16 λ² of the answer
        assert_allclose(lam * movement, float(out["lim_abs_lam_times_norm_dK"]), rtol=1e-5)
        return
    assert_allclose(movement, float(out["abs"]), rtol=1e-10)
    assert_allclose(movement / np.linalg.norm(K[0]), float(out["rel"]), rtol=1e-10)
    a, b = (k / np.linalg.norm(k) for k in K)
    assert_allclose(0.5 * np.linalg.norm(a - b) ** 2, float(out["kernel_distance"]), rtol=1e-8)


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e["kind"] == "transfer"], ids=lambda e: e["id"])
def test_reference_similarities_of_the_hierarchy_at_convergence(entry):
    S = np.concatenate([np.kron(np.eye(n), np.ones((1, 8 // n))) for n in (1, 2, 4, 8)]) / np.sqrt(8)
    lam = entry["inputs"]["lam"]
    W = starts.lambda_balanced(8, 8, 15, lam, np.random.default_rng(1), 0.1, S)
    K1 = riccati.solve(*W, S, np.inf, lam).input_similarity
    K1 /= K1[0, 0]
    for column, name in ((1, "sim_same_pair"), (2, "sim_same_half"), (4, "sim_other")):
        assert_allclose(K1[0, column], float(entry["outputs"][name]), rtol=1e-9)


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e["kind"] == "reversal"], ids=lambda e: e["id"])
def test_reference_times_of_reversal(entry):
    lam, t = entry["inputs"]["lam"], float(entry["outputs"]["t"])
    W = starts.lambda_balanced(1, 1, 1, lam, np.random.default_rng(0), -1.0, np.eye(1))
    solution = riccati.solve(*W, [[1.0]], t, lam)
    assert_allclose(solution.function, [[entry["inputs"]["level"]]], rtol=4e-15 / lam)  # ε‖Q_0‖/σ_min(B), σ_min ~ λ


@pytest.mark.parametrize("case", list(itertools.islice(cases(), 0, None, 17)), ids=str)
def test_the_oracle_is_the_textbook_formula_where_that_can_be_evaluated(case):
    W, S = problem(*case, 1.0)
    t = 20 / max(np.linalg.norm(S, 2), abs(case[2]), 1)
    whole = exact(*W, S, case[2], t)
    assert_allclose(whole, textbook(*W, S, case[2], t), rtol=1e-13, atol=1e-15 * np.linalg.norm(whole))


def known_to_rounding(case, t):
    """A rotated repeated spectrum is repeated to rounding only: a bottleneck decides on (s − s')t."""
    (Ni, Nh, No), spectrum, _ = case
    return not (spectrum == "repeated" and Nh < min(Ni, No) and t > 1e2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_block_is_exact_to_rounding_in_every_corner(shape):
    rng = np.random.default_rng(SHAPES.index(shape))
    for k, case in enumerate(c for c in cases() if c[0] == shape):
        W, S = problem(*case, [1e-8, 1.0, 30.0][k % 3])
        t = float(rng.choice(TIMES))
        if not known_to_rounding(case, t):
            continue
        measured = max(errors(riccati.solve(*W, S, t, case[2]), exact(*W, S, case[2], t)))
        assert measured < 1e-12, (case, t, measured)


def test_a_repeated_spectrum_in_a_bottleneck_is_exact_where_it_is_exactly_repeated():
    for lam in LAMBDAS:
        W, S = problem((3, 2, 3), "repeated", lam, 1.0, rotate=False)
        for t in (1e-3, 2.0, 1e6):
            assert max(errors(riccati.solve(*W, S, t, lam), exact(*W, S, lam, t))) < 1e-12


@pytest.mark.parametrize("lam", LAMBDAS)
def test_the_limit_has_the_form_of_theorem_c4(lam):
    for shape, spectrum in itertools.product([(2, 2, 2), (3, 2, 2), (2, 2, 3), (4, 3, 4)], ["generic"]):
        if (shape, lam) in [(s, l) for s in SHAPES for l in LAMBDAS]:
            W, S = problem(shape, spectrum, lam, 1.0)
        else:
            rng = np.random.default_rng(5)
            S = rng.standard_normal((shape[2], shape[0]))
            W = starts.lambda_balanced(*shape, lam, rng, 0.2, S)
        U, s, Vt = np.linalg.svd(S, full_matrices=False)
        U, s, Vt = U[:, : shape[1]], s[: shape[1]], Vt[: shape[1]]
        large = np.hypot(s, lam / 2) + abs(lam) / 2
        K1, K2 = (s**2 / large, large) if lam >= 0 else (large, s**2 / large)
        solution = riccati.solve(*W, S, np.inf, lam)
        for block, expected in zip(blocks(solution), ((Vt.T * K1) @ Vt, (U * s) @ Vt, (U * K2) @ U.T), strict=True):
            assert relative(block, expected) < 2e-14


def regular(shape, lam, seed):
    """A random regular start and teacher for the tests of invariants."""
    rng = np.random.default_rng(seed)
    while True:
        Ni, Nh, No = shape
        W = starts.lambda_balanced(Ni, Nh, No, lam, rng, np.linspace(1, 0.3, min(shape)))
        S = rng.standard_normal((No, Ni))
        start = riccati.as_problem(*W, S, lam).start
        n = min(start.spectrum.signal, Nh)
        if not start.on_stable_manifold and np.linalg.svd(start.lower[:n, :n], compute_uv=False)[-1] > 1e-2:
            return W, S, rng


POSSIBLE = st.sampled_from([(s, l) for s in SHAPES for l in (0.0, 1e-8, 0.7, -0.7, 30.0, -30.0)]).filter(
    lambda c: not (c[1] > 0 and c[0][1] > c[0][2]) and not (c[1] < 0 and c[0][1] > c[0][0])
)
FEW = settings(max_examples=25, deadline=None, derandomize=True)


@FEW
@given(case=POSSIBLE, seed=st.integers(0, 10**6), t=st.floats(0, 20))
def test_rotated_problems_have_rotated_solutions(case, seed, t):
    W, S, rng = regular(*case, seed)
    V, R, U = (random_basis(n, rng) for n in case[0])
    turned = riccati.solve(R @ W[0] @ V.T, U @ W[1] @ R.T, U @ S @ V.T, t, case[1])
    plain = riccati.solve(*W, S, t, case[1])
    for a, b, left, right in zip(blocks(turned), blocks(plain), (V, U, U), (V, V, U), strict=True):
        assert relative(left.T @ a @ right, b) < 2e-12


@FEW
@given(case=POSSIBLE, seed=st.integers(0, 10**6), t=st.floats(0, 50))
def test_transposed_networks_swap_the_layers_and_the_sign_of_lambda(case, seed, t):
    W, S, _ = regular(*case, seed)
    a, b = riccati.solve(*W, S, t, case[1]), riccati.solve(W[1].T, W[0].T, S.T, t, -case[1])
    assert relative(b.function.T, a.function) < 1e-12
    assert relative(b.input_similarity, a.output_similarity) < 1e-12
    assert relative(b.output_similarity, a.input_similarity) < 1e-12


@FEW
@given(case=POSSIBLE, seed=st.integers(0, 10**6), t=st.floats(0, 2), more=st.floats(0, 4))
def test_the_flow_is_a_semigroup(case, seed, t, more):
    W, S, _ = regular(*case, seed)
    middle = riccati.weights(*W, S, t, case[1])
    whole, second = riccati.solve(*W, S, t + more, case[1]), riccati.solve(*middle, S, more, case[1])
    for a, b in zip(blocks(second), blocks(whole), strict=True):
        assert relative(a, b) < 1e-9


@FEW
@given(case=POSSIBLE, seed=st.integers(0, 10**6))
def test_balance_is_conserved_and_the_loss_falls(case, seed):
    W, S, _ = regular(*case, seed)
    run = riccati.solve(*W, S, np.r_[0, np.geomspace(1e-3, 1e4, 30), np.inf], case[1])
    K1, P, K2 = blocks(run)  # of W2ᵀW2 − W1W1ᵀ = λI: W2(W2ᵀW2 − W1W1ᵀ)W1 = λP and so on
    scale = np.linalg.norm(K1, axis=(1, 2)) + np.linalg.norm(K2, axis=(1, 2))
    assert np.all(np.linalg.norm(K2 @ P - P @ K1 - case[1] * P, axis=(1, 2)) < 1e-13 * scale * (scale + 1))
    assert np.all(np.diff(0.5 * np.sum((P - S) ** 2, axis=(1, 2))) <= 1e-13)


@pytest.mark.parametrize(
    ("shape", "lam"),
    [((2, 2, 2), 0.0), ((3, 3, 3), 1e-8), ((3, 2, 2), -4.0), ((2, 4, 3), 0.0), ((3, 2, 3), 20.0)],
    ids=str,
)
def test_weights_and_gram_matrices_are_those_of_numerical_gradient_flow(shape, lam):
    W, S, _ = regular(shape, lam, 3)
    t = np.array([0, 1e-3, 0.05, 0.4, 1.5, 6.0])
    run = flow.gradient_flow(W, S, t, 1e-13)
    W1, W2 = riccati.weights(*W, S, t, lam)
    assert_allclose(W1, run.weights[0], atol=1e-10)
    assert_allclose(W2, run.weights[1], atol=1e-10)
    assert_array_equal(W1[0], W[0])
    assert_array_equal(W2[0], W[1])
    solution = riccati.solve(*W, S, t, lam)
    for a, b in zip(blocks(solution), blocks(run), strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("lam", [1e4, -1e4, 0.0])
def test_weights_are_lambda_balanced_and_have_the_gram_matrices_at_stiff_starts_and_long_times(lam):
    W, S, _ = regular((2, 2, 2), lam, 4)
    t = [1e-5, 1e6, 0.3]
    W1, W2 = riccati.weights(*W, S, t, lam)
    expected = blocks(riccati.solve(*W, S, t, lam))
    for k in range(3):
        for a, b in zip((W1[k].T @ W1[k], W2[k] @ W1[k], W2[k] @ W2[k].T), expected, strict=True):
            assert relative(a, b[k]) < 1e-13
        size = np.sum(W1[k] ** 2) + np.sum(W2[k] ** 2)
        assert np.linalg.norm(W2[k].T @ W2[k] - W1[k] @ W1[k].T - lam * np.eye(2)) < 1e-12 * size


def test_time_zero_returns_the_gram_matrices_of_the_start():
    W, S, _ = regular((3, 2, 3), 0.7, 5)
    run = riccati.solve(*W, S, [1.0, 0, 2.0], 0.7)
    assert_array_equal(run.function[1], W[1] @ W[0])
    assert_array_equal(run.input_similarity[1], W[0].T @ W[0])
    assert_array_equal(run.output_similarity[1], W[1] @ W[1].T)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("lam", [0.0, None])
def test_half_of_random_square_starts_without_lambda_are_on_a_stable_manifold(n, lam):
    rng, count, trials = np.random.default_rng(n), 0, 200
    for _ in range(trials):
        W, S = starts.lambda_balanced(n, n, n, 0.0, rng, rng.uniform(0.3, 1, n)), rng.standard_normal((n, n))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solution = riccati.solve(*W, S, np.inf, lam)
        opposite = np.linalg.det(W[1] @ W[0]) * np.linalg.det(S) < 0
        assert solution.on_stable_manifold == opposite == bool(caught)
        s = np.linalg.svd(S, compute_uv=False)
        loss = 0.5 * np.sum((solution.function - S) ** 2)
        assert loss == pytest.approx(0.5 * s[-1] ** 2 * opposite, rel=1e-10, abs=1e-25)
        count += opposite
    assert abs(count - trials / 2) < 4 * np.sqrt(trials) / 2


def test_a_reversed_task_flows_to_the_origin_as_its_closed_form():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4):
        S = rng.standard_normal((n, n))
        U, s, Vt = np.linalg.svd(S)
        W = [np.sqrt(s)[:, None] * Vt, -U * np.sqrt(s)]
        t = np.array([0.1, 1.0, 30.0, 100.0])
        with pytest.warns(StableManifoldWarning, match="stable manifold") as caught:
            solution = riccati.solve(*W, S, [*t, np.inf])
        assert len(caught) == 1 and solution.on_stable_manifold
        for k, now in enumerate(t):
            w = -s / (2 * np.exp(2 * s * now) - 1)
            assert relative(solution.function[k], (U * w) @ Vt) < 1e-12
        assert_array_equal(solution.function[-1], np.zeros((n, n)))


@pytest.mark.parametrize(
    ("W1", "W2", "S", "lam", "limit"),
    [
        ([[0, 1]], [[0], [1]], [[2, 0], [0, 1]], 0, [[0, 0], [0, 1]]),  # a bottleneck that lacks the first mode
        ([[0, 0], [0, 1]], [[0, 0], [0, 1]], [[2, 0], [0, 1]], 0, [[0, 0], [0, 1]]),
        ([[0, 0, 1]], [[0]], [[3, 0, 0]], -1, [[0, 0, 0]]),  # funnel, row space of W1 without v_1
        ([[0, 0]], [[0], [0]], [[2, 0], [0, 1]], 0, [[0, 0], [0, 0]]),
    ],
)
def test_other_stable_manifolds_are_reported_with_the_saddle_at_their_end(W1, W2, S, lam, limit):
    with pytest.warns(StableManifoldWarning):
        solution = riccati.solve(W1, W2, S, [1e-3, 1.0, 80.0, np.inf], lam)
    assert solution.on_stable_manifold
    assert_allclose(solution.function[2:], [limit, limit], atol=1e-12)
    assert_array_equal(solution.function[3], limit)


@pytest.mark.parametrize(
    ("W1", "W2", "S", "limit"),
    [
        ([[1, 0]], [[1], [0]], [[2, 0], [0, 1]], [[2, 0], [0, 0]]),  # the best that width 1 can do
        (np.eye(2), np.eye(2), [[2, 0], [0, 0]], [[2, 0], [0, 0]]),
        (np.diag([1, 1e-10]), np.diag([1, 1e-10]), [[2, 0], [0, 1]], [[2, 0], [0, 1]]),  # a long plateau
        (np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))),
    ],
)
def test_starts_that_learn_all_their_width_can_are_not_reported(W1, W2, S, limit):
    solution = riccati.solve(W1, W2, S, np.inf, 0)
    assert not solution.on_stable_manifold
    assert_allclose(solution.function, limit, atol=1e-15)


def test_callers_can_turn_the_warning_into_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", StableManifoldWarning)
        for function in (riccati.solve, riccati.stream, riccati.weights):
            with pytest.raises(StableManifoldWarning):
                function([[1.0]], [[-1.0]], [[1.0]], 1.0)


def test_lambda_is_inferred_and_an_unbalanced_start_is_refused_with_its_deviation():
    W, S, _ = regular((2, 2, 2), 0.7, 6)
    assert riccati.solve(*W, S, 1.0).lam == pytest.approx(0.7, abs=1e-15)
    with pytest.raises(NotBalancedError, match=r"= 1\.41 for λ = -0\.3.*at most.*nearest λ is 0\.(7|69)"):
        riccati.solve(*W, S, 1.0, -0.3)
    with pytest.raises(NotBalancedError, match=r"nearest λ is 1\.5"):
        riccati.solve(np.eye(2), np.diag([1, 2]), S, 1.0)
    assert issubclass(NotBalancedError, ValueError)


@pytest.mark.parametrize("n", [1, 2, 5, 64])
def test_a_stream_is_the_solution_in_portions(n):
    W, S, _ = regular((3, 2, 3), -0.7, 7)
    t = np.r_[np.inf, np.linspace(0, 5, 9)]
    whole, parts = riccati.solve(*W, S, t), list(riccati.stream(*W, S, t, chunk=n))
    assert [len(part.t) for part in parts] == [min(n, 10 - i) for i in range(0, 10, n)]
    assert_array_equal(np.concatenate([part.t for part in parts]), t)
    for name in ("function", "input_similarity", "output_similarity"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert_allclose(joined, getattr(whole, name), rtol=1e-13, atol=1e-15)
    assert len(next(riccati.stream(*W, S, t)).t) == 10


def test_shapes_follow_the_times():
    W, S, _ = regular((3, 2, 2), 0.0, 8)
    for t, lead in ((1, ()), (0.5, ()), (np.float64(np.inf), ()), ([2], (1,)), ([3, 1, 0], (3,))):
        solution = riccati.solve(*W, S, t)
        assert np.shape(solution.t) == lead and solution.function.shape == (*lead, 2, 3)
        assert solution.input_similarity.shape == (*lead, 3, 3) and solution.output_similarity.shape == (*lead, 2, 2)
    W1, W2 = riccati.weights(*W, S, 1)
    assert W1.shape == (2, 3) and W2.shape == (2, 2)


@pytest.mark.parametrize("size", [1.0, 1e90])
def test_times_beyond_the_range_of_growth_have_arrived(size):
    t = np.array([8e307, 1e308, np.finfo(float).max, np.inf]) / size
    run = riccati.solve([[1e-3]], [[1e-3]], [[size]], t)
    assert_allclose(run.function[:, 0, 0], size, rtol=1e-15)
    W = starts.lambda_balanced(3, 2, 2, 100.0, np.random.default_rng(0))
    run = riccati.solve(*W, np.ones((2, 3)), [1e304, 1e306, 1e308, np.inf])
    assert_allclose(run.function, np.ones((4, 2, 3)), rtol=1e-14)


BAD = {
    "NaN": (([[np.nan]], [[1]], [[1]], 1), r"W1\[0, 0\] = nan"),
    "infinite": (([[1]], [[np.inf]], [[1]], 1), r"W2\[0, 0\] = inf"),
    "complex": (([[1j]], [[1]], [[1]], 1), "real"),
    "chain": (([[1]], [[1, 2]], [[1]], 1), "chain"),
    "teacher": (([[1]], [[1]], [[1, 2]], 1), r"\(1, 2\)"),
    "vector": (([1], [[1]], [[1]], 1), "2 dimensions"),
    "huge weights": (([[1e200]], [[1e200]], [[1]], 1), r"largest entry of the weights.*got 1e\+200"),
    "tiny teacher": (([[1]], [[1]], [[1e-200]], 1), "largest entry of S.*got 1e-200"),
    "empty matrix": ((np.zeros((0, 2)), np.zeros((2, 0)), np.eye(2), 1), "non-empty"),
    "negative time": (([[1]], [[1]], [[1]], [1, -0.5]), r"t must be at least 0.*got -0\.5"),
    "NaN time": (([[1]], [[1]], [[1]], [np.nan]), "t must be at least 0.*got nan"),
    "empty time": (([[1]], [[1]], [[1]], []), "t must be"),
    "complex time": (([[1]], [[1]], [[1]], 1j), "t must be"),
    "time matrix": (([[1]], [[1]], [[1]], [[1]]), "t must be"),
    "NaN lambda": (([[1]], [[1]], [[1]], 1, np.nan), "lam must be"),
    "complex lambda": (([[1]], [[1]], [[1]], 1, 1j), "lam must be"),
    "vector lambda": (([[1]], [[1]], [[1]], 1, [0.0]), "lam must be"),
    "huge lambda": (([[1]], [[1]], [[1]], 1, 1e200), r"λI‖ = 1e\+200 for λ = 1e\+200"),
    "masked time": (([[1]], [[1]], [[1]], np.ma.masked_less([1.0, 2.0], 1.5)), "t must not have masked entries, but 1"),
    "masked layer": (([[1]], np.ma.masked_all((1, 1)), [[1]], 1), "W2 must not have masked entries"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("function", [riccati.solve, riccati.stream, riccati.weights])
def test_bad_input_raises(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def test_bad_chunks_and_infinite_times_of_weights_raise():
    for chunk in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="chunk must be"):
            riccati.stream([[1]], [[1]], [[1]], 1, chunk=chunk)
    with pytest.raises(ValueError, match="finite"):
        riccati.weights([[1]], [[1]], [[1]], [0, np.inf])


def test_lists_and_integers_are_accepted_and_arguments_are_not_written_to():
    arrays = [np.eye(2), np.eye(2), np.diag([2.0, 1.0]), np.array([0.0, 1.0])]
    copies = [array.copy() for array in arrays]
    a = riccati.solve(*arrays)
    b = riccati.solve([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[2, 0], [0, 1]], [0, 1], 0)
    assert_array_equal(a.function, b.function)
    riccati.weights(*arrays)
    for array, copy in zip(arrays, copies, strict=True):
        assert_array_equal(array, copy)
