"""The kernel against derivatives, high-precision kernels of λ-balanced networks, and balanced closed forms."""

import itertools

import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite import kernel
from lindyn_lite.landscape import jacobian
from lindyn_lite.networks import gradients, product
from lindyn_lite.tasks import random_basis

DIMS = [(3, 2), (3, 2, 4), (2, 5, 3), (2, 4, 3, 2), (3, 2, 1, 2, 2)]
S, START = np.array([2.0, 1.5, 1.0, 0.5]), np.array([0.1, 0.2, 0.3, 0.4])  # the curve of the source, C.5


def random_layers(dims, rng):
    return [rng.standard_normal(shape) for shape in zip(dims[1:], dims[:-1], strict=True)]


def lambda_balanced(s, lam, U=None, V=None):
    """Theorem 5.2: W2 = U √(S_λ + λ/2), W1 = √(S_λ − λ/2) Vᵀ; the small one without cancellation."""
    big = np.sqrt(s**2 + lam**2 / 4) + abs(lam) / 2
    first, second = (s**2 / big, big) if lam >= 0 else (big, s**2 / big)
    U, V = (np.eye(len(s)) if basis is None else basis for basis in (U, V))
    return [np.diag(np.sqrt(first)) @ V.T, U @ np.diag(np.sqrt(second))]


def balanced(s, shape, depth, rng):
    """Balanced layers of random widths ≥ len(s) whose product has the singular values s."""
    sizes = [shape[1], *rng.integers(len(s), len(s) + 3, depth - 1), shape[0]]
    frames = [random_basis(int(size), rng)[:, : len(s)] for size in sizes]
    return [above @ np.diag(s ** (1 / depth)) @ below.T for below, above in itertools.pairwise(frames)]


def explicit_distance(a, b):
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    return 0.5 * np.linalg.norm(a - b) ** 2


def exact_distance(lam):
    """The kernel distance from START to S in 60 digits: aligned kernels are diagonal, with entries k2_i + k1_j."""
    with mpmath.workdps(60):

        def entries(values):
            lam_ = mpmath.mpf(lam)
            s = [mpmath.mpf(v) for v in values]
            s_lam = [mpmath.sqrt(v**2 + lam_**2 / 4) for v in s]
            return [(a + lam_ / 2) + (b - lam_ / 2) for a in s_lam for b in s_lam]

        a, b = entries([".1", ".2", ".3", ".4"]), entries(["2", "1.5", "1", ".5"])
        norms = [mpmath.sqrt(sum(x**2 for x in values)) for values in (a, b)]
        return float(1 - sum(x * y for x, y in zip(a, b, strict=True)) / (norms[0] * norms[1]))


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_the_kernel_of_the_residual_is_the_velocity_of_the_product(dims):
    rng, step = np.random.default_rng(0), 1e-30
    layers, M = random_layers(dims, rng), rng.standard_normal((dims[-1], dims[0]))
    moved = [W - 1j * step * g for W, g in zip(layers, gradients(layers, M), strict=True)]
    total = moved[0]
    for layer in moved[1:]:
        total = layer @ total
    assert_allclose(kernel.apply(layers, M - product(layers)), total.imag / step, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_the_matrix_is_the_operator_on_rows_and_the_gram_matrix_of_the_jacobian(dims):
    rng = np.random.default_rng(1)
    layers, F = random_layers(dims, rng), rng.standard_normal((dims[-1], dims[0]))
    K = kernel.matrix(layers)
    assert_allclose(K @ F.ravel(), kernel.apply(layers, F).ravel(), atol=1e-12)
    J = jacobian(layers)
    assert_allclose(K, J @ J.T, atol=1e-12)
    assert_allclose(kernel.spectrum(layers), np.linalg.eigvalsh(K), atol=1e-12 * np.abs(K).max() * len(K))


def test_two_layers_have_the_kernel_of_the_source_on_data():
    rng = np.random.default_rng(2)
    (W1, W2), X = random_layers((3, 2, 4), rng), rng.standard_normal((5, 3))
    expected = np.kron(np.eye(4), X @ W1.T @ W1 @ X.T) + np.kron(W2 @ W2.T, X @ X.T)
    assert_allclose(kernel.matrix([W1, W2], X), expected, atol=1e-12)
    assert_allclose(kernel.matrix([W1, W2], np.eye(3)), kernel.matrix([W1, W2]), atol=1e-13)


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_the_kernel_on_data_holds_the_inner_products_of_parameter_gradients(dims):
    rng, step = np.random.default_rng(3), 1e-30
    layers, X = random_layers(dims, rng), rng.standard_normal((4, dims[0]))
    columns = []
    for l, layer in enumerate(layers):
        for entry in np.ndindex(layer.shape):
            outputs = X.T.astype(complex)
            for k, W in enumerate(layers):
                W = W.astype(complex)
                if k == l:
                    W[entry] += 1j * step
                outputs = W @ outputs
            columns.append(outputs.imag.ravel() / step)  # (output, sample), the output slow
    J = np.stack(columns, axis=1)
    assert_allclose(kernel.matrix(layers, X), J @ J.T, atol=1e-11)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(dims=st.lists(st.integers(1, 4), min_size=2, max_size=5), seed=st.integers(0, 10**6))
def test_the_kernel_is_symmetric_and_never_negative(dims, seed):
    rng = np.random.default_rng(seed)
    layers = random_layers(dims, rng)
    F, G = rng.standard_normal((2, dims[-1], dims[0]))
    K_F, size = kernel.apply(layers, F), np.abs(kernel.matrix(layers)).max()
    assert np.sum(G * K_F) == pytest.approx(np.sum(F * kernel.apply(layers, G)), abs=1e-12 * size * F.size)
    assert np.sum(F * K_F) >= -1e-14 * size
    values = kernel.spectrum(layers)
    assert values.shape == (dims[-1] * dims[0],) and np.all(values >= 0) and np.all(np.diff(values) >= 0)
    assert values.sum() == pytest.approx(np.trace(kernel.matrix(layers)), rel=1e-12)


def test_balanced_layers_have_the_sums_of_singular_values_as_spectrum():
    s = np.array([3.0, 1.0, 1e-9])
    layers = balanced(s, (3, 3), 2, np.random.default_rng(4))
    assert_allclose(kernel.spectrum(layers), np.sort(np.add.outer(s, s).ravel()), rtol=1e-7)  # ε/√1e-9 relative
    wide = kernel.spectrum(balanced(s[:2], (3, 4), 2, np.random.default_rng(5)))
    expected = np.add.outer([3.0, 1, 0], [3.0, 1, 0, 0]).ravel()
    assert_allclose(wide, np.sort(expected), atol=1e-14)


@pytest.mark.parametrize("depth", [3, 5])
def test_small_eigenvalues_of_deep_kernels_keep_digits(depth):
    s = np.array([1.0, 1e-6])
    layers = balanced(s, (2, 2), depth, np.random.default_rng(6))
    powers = s[:, None] ** (2 * np.arange(depth) / depth)
    expected = np.sort((powers[:, None, ::-1] * powers[None, :, :]).sum(axis=-1).ravel())
    assert_allclose(kernel.spectrum(layers), expected, rtol=1e-7)
    assert expected[0] < 1e-7


@pytest.mark.parametrize(
    ("lam", "printed", "digits"),
    [(0, 0.1818, 4), (0.1, 0.1729, 4), (1, 0.04971, 5), (10, 1.872e-4, 7), (100, 2.167e-8, 11)],
)
def test_the_kernel_moves_by_the_distances_of_the_source(lam, printed, digits):
    start, end = lambda_balanced(START, lam), lambda_balanced(S, lam)
    assert kernel.distance(start, end) == pytest.approx(printed, abs=0.5001 * 10.0**-digits)
    rotated = [random_basis(4, np.random.default_rng(seed)) for seed in range(2)]
    turned = [lambda_balanced(s, lam, *rotated) for s in (START, S)]
    assert kernel.distance(*turned) == pytest.approx(exact_distance(lam), rel=1e-7)


@pytest.mark.parametrize("lam", [0, 0.1, 1, 10, 100, 1e3, 1e4, -1, -1e3])
def test_the_distance_has_all_the_digits_that_the_weights_have(lam):
    """Weights with relative errors ε fix a distance D to about ε/√D, which is far below ε absolute."""
    measured = kernel.distance(lambda_balanced(START, lam), lambda_balanced(S, lam))
    exact = exact_distance(lam)
    assert measured == pytest.approx(exact, rel=10 * np.finfo(float).eps / np.sqrt(exact))
    assert measured == pytest.approx(exact, rel=1e-6)


def test_the_distance_falls_like_the_fourth_power_of_lambda_and_is_even_in_it():
    lams = np.array([50.0, 100.0, 200.0, 400.0])
    values = [kernel.distance(lambda_balanced(START, lam), lambda_balanced(S, lam)) for lam in lams]
    assert np.polyfit(np.log(lams), np.log(values), 1)[0] == pytest.approx(-4, abs=0.01)
    other = [kernel.distance(lambda_balanced(START, -lam), lambda_balanced(S, -lam)) for lam in lams]
    assert_allclose(other, values, rtol=1e-9)
    for lam in (1.0, 1e3):  # K_1 + K_2 does not change at all with the sign of λ, though both layers do
        assert kernel.distance(lambda_balanced(S, lam), lambda_balanced(S, -lam)) < 1e-30


@pytest.mark.parametrize("scale", [1e-3, 1, 100])
def test_at_lambda_zero_the_absolute_scale_of_the_start_does_not_matter(scale):
    assert kernel.distance(lambda_balanced(scale * START, 0), lambda_balanced(S, 0)) == pytest.approx(2 / 11, rel=1e-12)


def test_the_printed_value_at_lambda_zero_is_two_elevenths():
    # entries s_i + s_j: cos = 9/11 for (.1, .2, .3, .4) against (2, 1.5, 1, .5)
    assert exact_distance(0) == pytest.approx(2 / 11, rel=1e-15)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    ends=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    hidden=st.tuples(*[st.lists(st.integers(1, 4), max_size=3)] * 2),
    data=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_distance_and_alignment_are_those_of_the_matrices(ends, hidden, data, seed):
    rng = np.random.default_rng(seed)
    a, b = (random_layers((ends[0], *widths, ends[1]), rng) for widths in hidden)
    X = rng.standard_normal((3, ends[0])) if data else None
    K_a, K_b = kernel.matrix(a, X), kernel.matrix(b, X)
    cosine = np.sum(K_a * K_b) / (np.linalg.norm(K_a) * np.linalg.norm(K_b))
    assert kernel.distance(a, b, X) == pytest.approx(explicit_distance(K_a, K_b), abs=1e-13)
    assert kernel.alignment(a, b, X) == pytest.approx(cosine, rel=1e-12)
    assert kernel.distance(a, b, X) + kernel.alignment(a, b, X) == pytest.approx(1, abs=1e-13)
    assert 0 <= kernel.alignment(a, b, X) <= 1
    assert kernel.distance(a, a, X) < 1e-30


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_the_distance_is_invariant_under_rotations_and_the_scale_of_a_kernel(dims):
    rng = np.random.default_rng(7)
    a, b = random_layers(dims, rng), random_layers(dims, rng)
    Q, hidden = [random_basis(d, rng) for d in dims], [random_basis(d, rng) for d in dims]
    hidden[0], hidden[-1] = Q[0], Q[-1]  # inputs and outputs turn together, hidden layers as they like
    turned = [[R[l + 1] @ W @ R[l].T for l, W in enumerate(layers)] for layers, R in ((a, Q), (b, hidden))]
    assert kernel.distance(*turned) == pytest.approx(kernel.distance(a, b), abs=1e-13)
    assert kernel.distance([1e40 * W for W in a], [1e-30 * W for W in a]) < 1e-28
    if len(dims) == 2:
        assert kernel.distance(a, b) < 1e-30  # the kernel of one layer is the identity


@pytest.mark.parametrize("dims", [(3, 2, 4), (2, 4, 3, 2)], ids=str)
def test_small_movements_have_a_quadratic_distance(dims):
    """D = ½ ‖dK_⊥‖²/‖K‖² h² with dK the derivative of the kernel: no floor at ε, as 1 − cos would have."""
    rng = np.random.default_rng(8)
    layers, direction = random_layers(dims, rng), random_layers(dims, rng)
    K, h = kernel.matrix(layers), 1e-5
    ahead, behind = (
        kernel.matrix([W + sign * h * d for W, d in zip(layers, direction, strict=True)]) for sign in (1, -1)
    )
    slope = (ahead - behind) / (2 * h)
    slope -= np.sum(slope * K) / np.sum(K * K) * K
    rate = 0.5 * np.sum(slope**2) / np.sum(K**2)
    for step in (1e-7, 1e-9, 1e-11):
        moved = [W + step * d for W, d in zip(layers, direction, strict=True)]
        assert kernel.distance(layers, moved) == pytest.approx(rate * step**2, rel=max(1e-5, 1e-14 / step))


def test_alignment_of_nearly_orthogonal_kernels_is_accurate():
    h = 1e-9  # W1 = 0 leaves K_2 ⊗ I, of rank one: the cosine is h²/(1 + h²), where 1 − distance would give 0
    a, b = ([np.zeros((1, 3)), np.array([[x], [1.0]])] for x in (h, 0.0))
    assert kernel.alignment(a, b) == pytest.approx(1 / (1 + h**2), rel=1e-15)
    b[1] = np.array([[1.0], [0.0]])
    assert kernel.alignment(a, b) == pytest.approx(h**2 / (1 + h**2), rel=1e-14)
    assert kernel.distance(a, b) == pytest.approx(1, rel=1e-15)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    rank=st.integers(1, 5),
    depth=st.integers(1, 6),
    seed=st.integers(0, 10**6),
)
def test_balanced_layers_of_any_rank_have_the_balanced_operator(shape, rank, depth, seed):
    rng = np.random.default_rng(seed)
    s = np.sort(rng.uniform(0.1, 3, min(rank, *shape)))[::-1]
    F = rng.standard_normal(shape)
    if depth == 1:
        assert_allclose(kernel.balanced_operator(rng.standard_normal(shape), F, 1), F, atol=1e-14)
        return
    layers = balanced(s, shape, depth, rng)
    expected = kernel.apply(layers, F)
    result = kernel.balanced_operator(product(layers), F, depth)
    assert_allclose(result, expected, atol=1e-12 * max(1, np.abs(expected).max()))


def test_two_balanced_layers_have_the_square_roots_of_the_gram_matrices():
    rng = np.random.default_rng(9)
    W, F = rng.standard_normal((2, 3, 3))
    expected = scipy.linalg.sqrtm(W @ W.T) @ F + F @ scipy.linalg.sqrtm(W.T @ W)
    assert_allclose(kernel.balanced_operator(W, F, 2), expected, atol=1e-13)


def test_the_operator_multiplies_aligned_directions_by_sums_of_powers():
    w, depth = np.array([2.0, 0.5, 0.0]), 3
    for i, j in np.ndindex(3, 3):
        F = np.zeros((3, 3))
        F[i, j] = 1
        gain = w[i] ** (4 / 3) + w[i] ** (2 / 3) * w[j] ** (2 / 3) + w[j] ** (4 / 3)
        assert_allclose(kernel.balanced_operator(np.diag(w), F, depth), gain * F, atol=1e-14)
    assert_array_equal(kernel.balanced_operator(np.zeros((2, 3)), np.ones((2, 3)), 2), np.zeros((2, 3)))
    assert_array_equal(kernel.balanced_operator(np.zeros((2, 3)), np.ones((2, 3)), 1), np.ones((2, 3)))


def test_reading_the_zero_power_as_a_projector_is_wrong_by_tens_of_per_cent_at_low_rank_only():
    rng = np.random.default_rng(10)
    for rank, wrong in ((4, False), (2, True)):
        layers, F = balanced(np.linspace(2, 1, rank), (4, 4), 3, rng), rng.standard_normal((4, 4))
        W, exact = product(layers), kernel.apply(layers, F)
        U, s, Vt = np.linalg.svd(W)
        left, right = U[:, :rank] @ U[:, :rank].T, Vt[:rank].T @ Vt[:rank]
        full = kernel.balanced_operator(W, F, 3)
        outer = U @ np.diag(s ** (4 / 3)) @ U.T @ F, F @ Vt.T @ np.diag(s ** (4 / 3)) @ Vt
        projected = full - outer[0] @ (np.eye(4) - right) - (np.eye(4) - left) @ outer[1]
        error = np.linalg.norm(projected - exact) / np.linalg.norm(exact)
        assert (0.1 < error < 1) if wrong else error < 1e-13


def test_powers_of_eigenvalues_lose_the_digits_that_the_threshold_keeps():
    rng, L = np.random.default_rng(11), 5
    layers, F = balanced(np.array([2.0, 1.0]), (5, 5), L, rng), rng.standard_normal((5, 5))
    W, exact = product(layers), kernel.apply(layers, F)

    def power(gram, exponent):
        values, vectors = np.linalg.eigh(gram)
        return vectors @ np.diag(np.abs(values) ** exponent) @ vectors.T

    plain = sum(power(W @ W.T, (L - k) / L) @ F @ power(W.T @ W, (k - 1) / L) for k in range(1, L + 1))
    assert 1e-6 < np.linalg.norm(plain - exact) / np.linalg.norm(exact) < 1e-2
    thresholded = kernel.balanced_operator(W, F, L)
    assert np.linalg.norm(thresholded - exact) / np.linalg.norm(exact) < 1e-13


@pytest.mark.parametrize("dims", [(3, 3, 3), (3, 4, 3, 3)], ids=str)
def test_unbalanced_layers_leave_a_residual_of_tens_of_per_cent(dims):
    rng = np.random.default_rng(12)
    layers, F = random_layers(dims, rng), rng.standard_normal((3, 3))
    exact = kernel.apply(layers, F)
    error = np.linalg.norm(kernel.balanced_operator(product(layers), F, len(layers)) - exact) / np.linalg.norm(exact)
    assert 0.1 < error < 1


PAIR = [np.ones((2, 3)), np.ones((4, 2))]
BAD = {
    "shapes that do not chain": (lambda: kernel.matrix([np.eye(2), np.eye(3)]), r"do not chain.*\(2, 2\).*\(3, 3\)"),
    "no layers": (lambda: kernel.spectrum([]), "at least one layer"),
    "NaN": (lambda: kernel.spectrum([[[np.nan]]]), r"W1\[0, 0\] = nan"),
    "F": (lambda: kernel.apply(PAIR, np.eye(2)), r"F has shape \(2, 2\).*\(4, 3\)"),
    "F NaN": (lambda: kernel.apply(PAIR, np.full((4, 3), np.nan)), "F must be finite"),
    "X": (lambda: kernel.matrix(PAIR, np.eye(4)), "X has 4 columns.*3 inputs"),
    "X NaN": (lambda: kernel.distance(PAIR, PAIR, np.full((2, 3), np.inf)), "X must be finite"),
    "maps": (lambda: kernel.distance(PAIR, [np.ones((4, 2))]), r"different shapes, \(4, 3\) and \(4, 2\)"),
    "zero kernel": (lambda: kernel.distance(PAIR, [0 * W for W in PAIR]), "kernel of others is zero"),
    "zero kernel first": (lambda: kernel.alignment([0 * W for W in PAIR], PAIR), "kernel of weights is zero"),
    "zero data": (lambda: kernel.distance(PAIR, PAIR, np.zeros((1, 3))), "kernel of weights is zero"),
    "balanced F": (lambda: kernel.balanced_operator(np.eye(2), np.eye(3), 2), r"F has shape \(3, 3\).*\(2, 2\)"),
    "balanced W": (lambda: kernel.balanced_operator([[np.inf]], [[1]], 2), "W must be finite"),
    "depth": (lambda: kernel.balanced_operator([[1]], [[1]], 0), "depth must be at least 1, got 0"),
    "half a layer": (lambda: kernel.balanced_operator([[1]], [[1]], 2.5), r"depth must be an integer, got 2\.5"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_raises_and_says_what_was_received(call, message):
    with pytest.raises(ValueError, match=message):
        call()
