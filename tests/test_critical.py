"""Balanced critical points and their spectrum in closed form."""

import functools
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite.critical import balanced_critical_point, two_layer_spectrum
from lindyn_lite.landscape import hessian
from lindyn_lite.networks import gradients
from lindyn_lite.tasks import diagonal, low_rank


def multiply(layers):
    return functools.reduce(lambda done, layer: layer @ done, layers)


def subsets(modes, largest):
    return [S for r in range(largest + 1) for S in itertools.combinations(range(1, modes + 1), r)]


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (4, 3)], ids=str)
@pytest.mark.parametrize("hidden", [[3], [2], [5], [3, 3], [2, 4], [5, 1, 3]], ids=str)
def test_balanced_critical_points_are_critical_and_balanced_and_compute_the_learnt_modes(shape, hidden):
    M = low_rank([3, 2, 1], shape, np.random.default_rng(0))
    U, s, _ = np.linalg.svd(M)
    for S in subsets(3, min(3, *hidden)):
        layers = balanced_critical_point(M, S, hidden)
        assert [W.shape for W in layers] == list(zip([*hidden, shape[0]], [shape[1], *hidden], strict=True))
        learnt = [a - 1 for a in S]
        P = U[:, learnt] @ U[:, learnt].T
        assert_allclose(multiply(layers), P @ M, atol=1e-14)
        for gradient in gradients(layers, M):
            assert_allclose(gradient, 0, atol=1e-14)
        for below, above in itertools.pairwise(layers):
            assert_allclose(above.T @ above, below @ below.T, atol=1e-14)
        depth = len(layers)
        for W in layers:
            values = np.linalg.svd(W, compute_uv=False)
            assert_allclose(values[: len(S)], s[learnt] ** (1 / depth), rtol=1e-14)
            assert_allclose(values[len(S) :], 0, atol=1e-15)


def test_modes_count_from_the_largest_singular_value_in_any_order_of_naming():
    M = np.diag([1, 7, 3])
    assert_allclose(multiply(balanced_critical_point(M, [1], [2])), np.diag([0, 7, 0]), atol=1e-15)
    assert_allclose(multiply(balanced_critical_point(M, (3, 1), [2])), np.diag([1, 7, 0]), atol=1e-15)
    assert_allclose(multiply(balanced_critical_point(M, {np.int64(2)}, (4, 4))), np.diag([0, 0, 3]), atol=1e-15)
    assert_allclose(multiply(balanced_critical_point(M, range(1, 4), [3])), M, atol=1e-14)
    assert_array_equal(multiply(balanced_critical_point(M, [], [3])), 0)


BAD_POINTS = {
    "mode 0": ([0], [3], "mode must be at least 1, got 0"),
    "a negative mode": ([-1], [3], "mode must be at least 1, got -1"),
    "a mode that the teacher lacks": ([1, 3], [3], r"from 1 to 2.*\[1, 3\]"),
    "a repeated mode": ([2, 2], [3], r"different.*\[2, 2\]"),
    "more modes than units": ([1, 2], [1], "2 modes.*width 1"),
    "more modes than units of a deep layer": ([1, 2], [4, 1, 4], "2 modes.*width 1"),
    "a mode that is no integer": ([1.0], [3], "mode must be an integer, got 1.0"),
    "one mode, not in a list": (1, [3], "modes must be a collection of integers.*got 1"),
    "one width, not in a list": ([1], 3, "hidden must be the widths of one or more hidden layers.*got 3"),
    "a width that is no integer": ([1], [2.5], "width must be an integer, got 2.5"),
    "no hidden layer": ([1], [], "one or more hidden layers"),
    "an empty hidden layer": ([], [2, 0], "width must be at least 1, got 0"),
}


@pytest.mark.parametrize(("modes", "hidden", "message"), BAD_POINTS.values(), ids=BAD_POINTS.keys())
def test_impossible_modes_and_widths_raise(modes, hidden, message):
    with pytest.raises(ValueError, match=message):
        balanced_critical_point(diagonal([2, 1], (2, 3)), modes, hidden)


@pytest.mark.parametrize("M", [[1, 2], [[np.nan]], [[1j]], [["a"]]], ids=str)
def test_a_teacher_that_is_not_a_real_matrix_raises(M):
    with pytest.raises(ValueError, match="teacher M"):
        balanced_critical_point(M, [1], [2])


@pytest.mark.parametrize("call", [lambda S: balanced_critical_point(np.eye(2), S, [2]), lambda S: spectrum([1, 1], S)])
@pytest.mark.parametrize("modes", [[1.0], [1.5], ["1"], [None]], ids=str)
def test_modes_that_are_not_integers_raise(call, modes):
    with pytest.raises((TypeError, ValueError), match="integer"):
        call(modes)


def spectrum(s, S, h=3, shape=None):
    return two_layer_spectrum(s, S, h, shape)


@pytest.mark.parametrize(
    ("s", "shape"),
    [
        ([5, 3, 2, 1], (4, 4)),
        ([3, 2, 1], (3, 6)),
        ([3, 2], (4, 2)),
        ([2, 2, 1], (3, 3)),
        ([2, 2, 2], (3, 4)),
        ([3, 1, 0], (3, 3)),
        ([3, 0, 0], (5, 3)),
        ([0, 0], (2, 3)),
        ([2.5], (1, 1)),
        ([2.5], (1, 4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("h", [1, 2, 3, 5])
def test_the_closed_spectrum_is_that_of_the_hessian(s, shape, h):
    rng = np.random.default_rng(1)
    for M in (diagonal(s, shape), low_rank(s, shape, rng)):
        for S in subsets(len(s), min(h, len(s))):
            numerical = np.linalg.eigvalsh(hessian(balanced_critical_point(M, S, [h]), M))
            assert_allclose(spectrum(s, S, h, shape), numerical, rtol=0, atol=2e-13)


def test_the_closed_spectrum_of_exercise_2_3_by_hand():
    assert_array_equal(spectrum([3], [], 1), [-3, 3])  # exercise 2.2
    assert_array_equal(spectrum([3], [1], 1), [0, 6])
    # h = 2, S = {2}: idle ±3; s_β − s_α, s_β + s_α; 0 and 2 s_β; two more zeros
    assert_array_equal(spectrum([3, 2], [2], 2), [-3, -1, 0, 0, 0, 3, 4, 5])
    assert_array_equal(spectrum([3, 2], [2], 2), spectrum([3, 2], [2], 2, (2, 2)))
    # one more input: 0 for the idle unit, s_β for the learnt one
    assert_array_equal(spectrum([3, 2], [2], 2, (2, 3)), [-3, -1, 0, 0, 0, 0, 2, 3, 4, 5])


@pytest.mark.parametrize("depth", [3, 4])
def test_the_spectrum_of_deep_balanced_points_is_the_closed_form(depth):
    s, shape, rng = [3.0, 2.0, 0.5], (3, 4), np.random.default_rng(2)
    M, hidden = low_rank(s, shape, rng), [3] * (depth - 1)
    for S in subsets(3, 3):
        learnt, rest = [s[a - 1] for a in S], [a for mode, a in enumerate(s, start=1) if mode not in S]
        nonzero = [b ** (1 - 2 / depth) * (b + sign * a) for b in learnt for a in rest for sign in (1, -1)]
        nonzero += [b ** (2 - 2 / depth) for b in learnt]  # the fourth input has no partner
        nonzero += [sum(b ** (2 * l / depth) * c ** (2 - 2 * (l + 1) / depth) for l in range(depth))
                    for b in learnt for c in learnt]  # fmt: skip
        numerical = np.linalg.eigvalsh(hessian(balanced_critical_point(M, S, hidden), M))
        closed = np.sort(np.pad(nonzero, (0, len(numerical) - len(nonzero))))
        assert_allclose(closed, numerical, rtol=0, atol=1e-13)


BAD_SPECTRA = {
    "mode 0": ([2, 1], [0], 2, None, "mode must be at least 1, got 0"),
    "a mode too high": ([2, 1], [3], 2, None, r"from 1 to 2.*\[3\]"),
    "a repeated mode": ([2, 1], [1, 1], 2, None, r"different.*\[1, 1\]"),
    "more modes than units": ([2, 1], [1, 2], 1, None, "2 modes.*width 1"),
    "increasing s": ([1, 2], [1], 2, None, r"decreasing.*\[1. 2.\]"),
    "negative s": ([2, -1], [1], 2, None, r"non-negative.*-1"),
    "NaN in s": ([2, np.nan], [1], 2, None, "s must be finite"),
    "complex s": ([2j], [1], 2, None, "s must hold real"),
    "no s": ([], [], 2, None, "s must be"),
    "too few s for the shape": ([2, 1], [1], 2, (3, 4), r"\(3, 4\).*3 singular values, got 2"),
    "too many s for the shape": ([2, 1], [1], 2, (1, 4), r"\(1, 4\).*1 singular values, got 2"),
}


@pytest.mark.parametrize(("s", "S", "h", "shape", "message"), BAD_SPECTRA.values(), ids=BAD_SPECTRA.keys())
def test_impossible_spectra_raise(s, S, h, shape, message):
    with pytest.raises(ValueError, match=message):
        two_layer_spectrum(s, S, h, shape)


def test_a_matrix_of_singular_values_raises():
    with pytest.raises(ValueError, match="vector"):
        two_layer_spectrum([[3, 2], [1, 0]], [1], 2)


def test_a_hidden_width_of_zero_raises():
    with pytest.raises(ValueError, match="hidden"):
        two_layer_spectrum([3, 2], [], 0)
