"""Teachers and whitening against singular values, statistics and least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite.tasks import diagonal, from_data, low_rank, random_basis


def singular(matrix):
    return np.linalg.svd(matrix, compute_uv=False)


@pytest.mark.parametrize("shape", [None, (3, 3), (3, 5), (6, 3), (4, 4)])
def test_a_diagonal_teacher_has_its_entries_and_zeros(shape):
    M = diagonal([3, -2, 1], shape)
    expected = np.zeros(shape or (3, 3))
    expected[range(3), range(3)] = 3, -2, 1
    assert_array_equal(M, expected)
    assert M.dtype == np.float64


BAD_DIAGONALS = {
    "empty": ([], None, "non-empty"),
    "NaN": ([1, np.nan], None, "finite"),
    "complex": ([1j], None, "real"),
    "a matrix": (np.ones((2, 2)), None, r"vector.*\(2, 2\)"),
    "too few outputs": ([3, 2, 1], (2, 5), r"3 singular values.*\(2, 5\)"),
    "too few inputs": ([3, 2, 1], (5, 2), r"3 singular values.*\(5, 2\)"),
}


@pytest.mark.parametrize(("s", "shape", "message"), BAD_DIAGONALS.values(), ids=BAD_DIAGONALS.keys())
def test_entries_that_do_not_fit_raise(s, shape, message):
    with pytest.raises(ValueError, match=message):
        diagonal(s, shape)
    with pytest.raises(ValueError, match=message):
        low_rank(s, shape or (2, 2), np.random.default_rng(0))


@pytest.mark.parametrize("noise", [-1e-3, np.nan, np.inf])
def test_an_impossible_noise_raises(noise):
    with pytest.raises(ValueError, match=f"noise.*{noise}"):
        low_rank([1], (2, 2), np.random.default_rng(0), noise=noise)


@pytest.mark.parametrize("shape", [(3, 3), (5, 4), (4, 7)])
def test_a_noiseless_teacher_has_the_singular_values_it_was_given(shape):
    M = low_rank([4, 1, 0.5], shape, np.random.default_rng(1))
    assert M.shape == shape
    assert_allclose(singular(M), np.pad([4, 1, 0.5], (0, min(shape) - 3)), atol=1e-14)


def test_the_singular_vectors_on_both_sides_are_random():
    rng = np.random.default_rng(2)  # for s = (1, 0, 0) the teacher is uvᵀ: both vectors are uniform on the sphere
    teachers = np.array([low_rank([1], (3, 3), rng) for _ in range(2000)])
    error = 4 / np.sqrt(2000)
    assert_allclose(teachers.mean(axis=0), 0, atol=error / 3)  # variance of u_i v_j is 1/9
    assert_allclose((teachers**2).sum(axis=2).mean(axis=0), 1 / 3, atol=error * np.sqrt(4 / 45))  # u_i² is Beta(½, 1)
    assert_allclose((teachers**2).sum(axis=1).mean(axis=0), 1 / 3, atol=error * np.sqrt(4 / 45))


@pytest.mark.parametrize("noise", [1e-3, 2.0])
def test_noise_has_its_standard_deviation(noise):
    Z = low_rank([0], (200, 300), np.random.default_rng(3), noise) / noise  # a signal of zero leaves the noise
    assert Z.mean() == pytest.approx(0, abs=4 / np.sqrt(Z.size))
    assert Z.var() == pytest.approx(1, abs=4 * np.sqrt(2 / Z.size))
    assert (Z**4).mean() == pytest.approx(3, abs=4 * np.sqrt(96 / Z.size))
    assert singular(Z)[0] == pytest.approx(np.sqrt(200) + np.sqrt(300), rel=0.02)  # independent: Marchenko–Pastur


def test_the_same_seed_gives_the_same_teacher_and_another_seed_another():
    first, again, other = (low_rank([2, 1], (3, 4), np.random.default_rng(seed), 0.1) for seed in (5, 5, 6))
    assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_a_random_basis_is_orthogonal(n):
    Q = random_basis(n, np.random.default_rng(4))
    assert_allclose(Q.T @ Q, np.eye(n), atol=1e-14)
    assert_allclose(Q @ Q.T, np.eye(n), atol=1e-14)


def test_a_random_basis_has_the_moments_of_the_haar_measure():
    rng, n, N = np.random.default_rng(5), 4, 5000
    Q = np.array([random_basis(n, rng) for _ in range(N)])
    error, trace, fourth = 4 / np.sqrt(N), np.trace(Q, axis1=1, axis2=2), 3 / (n * (n + 2))
    assert_allclose(Q.mean(axis=0), 0, atol=error / np.sqrt(n))  # a plain QR has entries of one sign on the diagonal
    assert_allclose((Q**4).mean(axis=0), fourth, atol=error * np.sqrt(105 / (n * (n + 2) * (n + 4) * (n + 6))))
    assert np.linalg.det(Q).mean() == pytest.approx(0, abs=error)
    assert trace.mean() == pytest.approx(0, abs=error)
    assert (trace**2).mean() == pytest.approx(1, abs=error * np.sqrt(2))  # E tr⁴ = 3


def half_mean_square(prediction, Y):
    return 0.5 * np.sum((Y - prediction) ** 2) / len(Y)


def deficient_inputs(samples, inputs, rank, rng):
    """Inputs of that rank, singular values of order one."""
    left, right = random_basis(samples, rng)[:, :rank], random_basis(inputs, rng)[:, :rank]
    return np.sqrt(samples) * left * rng.uniform(0.5, 2, rank) @ right.T


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(1, 25), st.integers(1, 8), st.integers(1, 8), st.integers(1, 4), st.booleans(), st.integers(0, 10**6)
)
def test_whitening_gives_unit_covariance_and_the_loss_identity(samples, inputs, rank, outputs, centre, seed):
    rng, rank = np.random.default_rng(seed), min(samples, inputs, rank)
    X = deficient_inputs(samples, inputs, rank, rng) + (10 * rng.standard_normal(inputs) if centre else 0)
    Y = rng.standard_normal((samples, outputs)) + 3
    centred_X, centred_Y = X - centre * X.mean(axis=0), Y - centre * Y.mean(axis=0)
    if np.linalg.matrix_rank(centred_X, tol=1e-8) == 0:  # one sample
        with pytest.raises(ValueError, match="zero after centring"):
            from_data(X, Y, centre)
        return
    task = from_data(X, Y, centre)
    Z = centred_X @ task.whitening.T
    assert task.whitening.shape == (np.linalg.matrix_rank(centred_X, tol=1e-8), inputs)
    assert_allclose(Z.T @ Z / samples, np.eye(Z.shape[1]), atol=1e-12)
    assert_allclose(Z @ np.linalg.pinv(Z) @ centred_X, centred_X, atol=1e-12)  # nothing of x is lost
    assert_allclose(task.teacher, centred_Y.T @ Z / samples, atol=1e-12)
    for size in (0.0, 1.0, 10.0):
        W = size * rng.standard_normal(task.teacher.shape)
        expected = half_mean_square(Z @ W.T, centred_Y)
        assert 0.5 * np.sum((task.teacher - W) ** 2) + task.floor == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_teacher_predicts_what_least_squares_predicts():
    rng = np.random.default_rng(6)
    X, Y = deficient_inputs(30, 6, 4, rng), rng.standard_normal((30, 2))
    task, solution = from_data(X, Y), np.linalg.lstsq(X, Y, rcond=1e-8)[0]
    assert_allclose(task.teacher @ task.whitening, solution.T, atol=1e-13)  # both of minimal norm
    assert task.floor == pytest.approx(half_mean_square(X @ solution, Y), rel=1e-13)


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e5])
@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e6])
def test_constant_and_repeated_columns_do_not_count(offset, scale):
    rng = np.random.default_rng(7)
    base = rng.standard_normal((40, 3))
    X = scale * np.column_stack([base, np.full(40, offset), base[:, 0], base @ [1, 2, 3], np.zeros(40)])
    Y = rng.standard_normal((40, 2))
    assert from_data(X, Y).whitening.shape == ((3 if offset == 0 else 4), 7)
    task, plain = from_data(X, Y, centre=True), from_data(base, Y, centre=True)
    assert task.whitening.shape == (3, 7)
    Z = (X - X.mean(axis=0)) @ task.whitening.T
    assert_allclose(Z.T @ Z / 40, np.eye(3), atol=1e-12 * max(1, offset))  # rounding of the mean
    assert_allclose(singular(task.teacher), singular(plain.teacher), atol=1e-12 * max(1, offset))
    assert task.floor == pytest.approx(plain.floor, rel=1e-12 * max(1, offset))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_rank_does_not_depend_on_extreme_units(scale):
    X = scale * np.outer(np.arange(1.0, 6), [1, 0.3, 0.7])
    assert from_data(X, np.ones((5, 1))).whitening.shape == (1, 3)


def test_weak_directions_count():
    X = np.random.default_rng(10).standard_normal((40, 2)) * [1, 1e-9]
    Z = X @ from_data(X, X).whitening.T
    assert_allclose(Z.T @ Z / 40, np.eye(2), atol=1e-6)  # the SVD knows the weak direction to ε / 1e-9


@pytest.mark.parametrize("centre", [False, True])
def test_one_hot_inputs_are_the_identity(centre):
    Y = np.random.default_rng(8).standard_normal((6, 3)) + 1
    short, long = from_data(None, Y, centre), from_data(np.eye(6), Y, centre)
    assert_allclose(singular(short.teacher), singular(long.teacher), atol=1e-14)
    assert_allclose(short.whitening @ short.whitening.T, 6 * np.eye(6), atol=1e-14)
    assert short.floor == 0
    assert long.floor == pytest.approx(0, abs=1e-28)
    W = np.random.default_rng(9).standard_normal((3, 6))
    expected = half_mean_square((W @ short.whitening).T, Y - centre * Y.mean(axis=0))
    assert 0.5 * np.sum((short.teacher - W) ** 2) + short.floor == pytest.approx(expected, rel=1e-13)


BAD_DATA = {
    "different numbers of samples": (np.ones((3, 2)), np.ones((4, 1)), False, "X has 3.*Y has 4"),
    "inputs of zero": (np.zeros((3, 2)), np.ones((3, 1)), False, "zero: nothing"),
    "constant inputs, centred": (np.full((3, 2), 0.1), np.ones((3, 1)), True, "zero after centring"),
    "NaN inputs": ([[np.nan], [1]], np.ones((2, 1)), False, r"X.*finite.*X\[0, 0\]"),
    "infinite targets": (np.ones((2, 1)), [[1], [np.inf]], False, r"Y.*finite.*Y\[1, 0\]"),
    "a vector of targets": (np.ones((2, 1)), [1, 2], False, r"Y.*\(2,\)"),
    "a vector of inputs": ([1, 2], np.ones((2, 1)), False, r"X.*\(2,\)"),
    "no samples": (None, np.ones((0, 2)), True, r"Y.*\(0, 2\)"),
    "strings": (None, [["cat"]], False, "Y.*real"),
}


@pytest.mark.parametrize(("X", "Y", "centre", "message"), BAD_DATA.values(), ids=BAD_DATA.keys())
def test_bad_data_raise_an_error_that_says_what_is_wrong(X, Y, centre, message):
    with pytest.raises(ValueError, match=message):
        from_data(X, Y, centre)


def test_negative_singular_values_raise():
    with pytest.raises(ValueError, match="must not be negative"):
        low_rank([2, -1], (3, 3), np.random.default_rng(0))
