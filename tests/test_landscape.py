"""Hessian and inertia against exact differences, closed forms and the reference values."""

import functools
import itertools
import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite.landscape import (
    NotCriticalError,
    balanced_critical_point,
    critical_point,
    fibre_dimension,
    hessian,
    inertia,
    jacobian,
    orbit_dimension,
    transform,
)
from lindyn_lite.tasks import diagonal, low_rank, random_basis

REFERENCE = json.loads((Path(__file__).parent / "values" / "exercises.json").read_text(encoding="utf-8"))
MODES = range(1, 5)
SUBSETS = [(h, S) for h in (2, 3, 4, 6) for r in range(min(h, 4) + 1) for S in itertools.combinations(MODES, r)]


def reference(name, **inputs):
    (entry,) = [e for e in REFERENCE if e["name"].startswith(name) and inputs.items() <= e["inputs"].items()]
    return entry["value"]


def random_layers(dims, draw):
    return [draw(shape) for shape in zip(dims[1:], dims[:-1], strict=True)]


def multiply(layers):
    return functools.reduce(lambda done, layer: layer @ done, layers)


def expected_inertia(s, S, shape, hidden):
    """Exercise 2.3, and its counterpart for depth ≥ 3, of all s of the teacher in decreasing order, none zero."""
    learnt = [s[b - 1] for b in S]
    rest = [a for mode, a in enumerate(s, start=1) if mode not in S]
    r, extra, shallow = len(S), abs(shape[0] - shape[1]), len(hidden) == 1
    idle = len(rest) * (hidden[0] - r) if shallow else 0  # in deeper networks idle units have a flat Hessian
    negative = idle + sum(a > b for b in learnt for a in rest)
    positive = idle + sum(1 + (b > a) for b in learnt for a in rest) + r * extra + r * r
    sizes = (shape[1], *hidden, shape[0])
    return negative, int(np.dot(sizes[1:], sizes[:-1])) - negative - positive, positive


@pytest.mark.parametrize("dims", [(3, 2), (2, 3, 4), (3, 2, 4, 2), (2, 3, 1, 3, 2)], ids=str)
def test_the_hessian_is_the_complex_step_derivative_of_the_gradient(dims):
    rng, step = np.random.default_rng(0), 1e-30
    layers, M = random_layers(dims, rng.standard_normal), rng.standard_normal((dims[-1], dims[0]))

    def gradient(layers):
        error, parts = multiply(layers) - M, []
        for l in range(len(layers)):
            above, below = np.eye(dims[l + 1]), np.eye(dims[0])
            for layer in layers[l + 1 :]:
                above = layer @ above
            for layer in layers[:l]:
                below = layer @ below
            parts.append((above.T @ error @ below.T).ravel())
        return np.concatenate(parts)

    columns = []
    for l, layer in enumerate(layers):
        for entry in np.ndindex(layer.shape):
            moved = [W.astype(complex) for W in layers]
            moved[l][entry] += 1j * step
            columns.append(gradient(moved).imag / step)
    H = hessian(layers, M)
    assert_allclose(H, np.column_stack(columns), rtol=1e-12, atol=1e-12)
    assert_array_equal(H, H.T)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(dims=st.lists(st.integers(1, 3), min_size=2, max_size=5), seed=st.integers(0, 10**6))
def test_integer_hessians_and_jacobians_are_exact_differences(dims, seed):
    rng = np.random.default_rng(seed)  # the loss is quadratic, the product affine, in every single weight
    layers = random_layers(dims, lambda shape: rng.integers(-3, 4, shape))
    M = rng.integers(-9, 10, (dims[-1], dims[0]))
    ends = np.cumsum([layer.size for layer in layers])
    theta, steps = np.concatenate([layer.ravel() for layer in layers]), np.eye(ends[-1], dtype=int)

    def W(theta):
        parts = np.split(theta, ends[:-1])
        return multiply([part.reshape(layer.shape) for part, layer in zip(parts, layers, strict=True)])

    def twice_loss(theta):
        return int(np.sum((M - W(theta)) ** 2))

    H, J = hessian(layers, M), jacobian(layers)
    for k, a in enumerate(steps):
        assert_array_equal(J[:, k], (W(theta + a) - W(theta)).ravel())
        assert 2 * H[k, k] == twice_loss(theta + a) - 2 * twice_loss(theta) + twice_loss(theta - a)
        for m, b in enumerate(steps[:k]):
            corners = [i * j * twice_loss(theta + i * a + j * b) for i in (1, -1) for j in (1, -1)]
            assert 8 * H[k, m] == 8 * H[m, k] == sum(corners)


def test_the_two_by_two_hessian_is_that_of_exercise_2_2():
    s, w1, w2 = 3.0, 0.7, -1.9
    assert_allclose(hessian([[[w1]], [[w2]]], [[s]]), [[w2**2, 2 * w1 * w2 - s], [2 * w1 * w2 - s, w1**2]], rtol=1e-15)
    point = critical_point([[[0]], [[0]]], [[s]])
    assert_array_equal(point.eigenvalues, reference("Hessian eigenvalues at origin", s=3))
    assert (point.loss, point.gradient, point.inertia) == (4.5, 0, (1, 0, 1))
    minimum = critical_point([[[2]], [[s / 2]]], [[s]])
    assert_allclose(minimum.eigenvalues, [0, 4 + s**2 / 4], atol=1e-15)
    assert minimum.inertia == (0, 1, 1)


@pytest.mark.parametrize(("h", "S"), SUBSETS)
def test_the_inertia_of_all_58_saddles_is_the_closed_form(h, S):
    assert len(SUBSETS) == 58
    s = [5, 3, 2, 1]
    expected = expected_inertia(s, S, (4, 4), [h])
    for M in (diagonal(s), low_rank(s, (4, 4), np.random.default_rng(h))):
        point = critical_point(balanced_critical_point(M, S, [h]), M)
        assert point.inertia == expected
        assert point.loss == pytest.approx(0.5 * sum(s[a - 1] ** 2 for a in MODES if a not in S), rel=1e-13)
        assert np.abs(point.eigenvalues[np.abs(point.eigenvalues) > point.tolerance]).min(initial=1) > 0.99


@pytest.mark.parametrize("shape", [(2, 5), (4, 3), (3, 3)])
@pytest.mark.parametrize("hidden", [[2], [3], [5], [3, 3], [2, 4], [3, 2, 4]], ids=str)
def test_the_inertia_of_rectangular_and_deep_saddles_is_the_closed_form(shape, hidden):
    s = [3, 2, 1][: min(shape)]
    M = low_rank(s, shape, np.random.default_rng(3))
    for r in range(min(len(s), *hidden) + 1):
        for S in itertools.combinations(range(1, len(s) + 1), r):
            assert inertia(balanced_critical_point(M, S, hidden), M) == expected_inertia(s, S, shape, hidden)


@pytest.mark.parametrize(
    ("name", "h", "S"),
    [("Hessian index (neg,zero,pos)", 4, [1]), ("same, S={2}", 4, [2]), ("same h=2,S={1,3}", 2, [1, 3])],
)
def test_two_layer_inertia_is_the_reference_value(name, h, S):
    M = diagonal([5, 3, 2, 1])
    point = critical_point(balanced_critical_point(M, S, [h]), M)
    assert list(point.inertia) == reference(name)
    if h == 2:
        assert point.eigenvalues[0] == pytest.approx(-1, rel=1e-13)  # s3 − s2


def test_three_layers_have_saddles_that_are_not_strict():
    M = diagonal([3, 2, 1])
    first = inertia(balanced_critical_point(M, [1], [3, 3]), M)
    assert list(first) == reference("Hessian index at balanced P_{1}M, L=3") == [0, 22, 5]
    assert inertia(balanced_critical_point(M, [2], [3, 3]), M) == (1, 22, 4)
    assert inertia([np.zeros((3, 3))] * 3, M) == (0, 27, 0)
    assert inertia([np.zeros((3, 3))] * 4, M) == (0, 36, 0)


def test_a_bottleneck_with_the_top_modes_is_not_a_saddle():
    M = diagonal([5, 3, 2, 1])
    point = critical_point(balanced_critical_point(M, [1, 2], [2]), M)
    assert point.inertia == (0, 4, 12)
    assert point.loss == pytest.approx(2.5, rel=1e-14)


@pytest.mark.parametrize("widths", ["(2,10,2)", "(4,3,2)", "(3,2,3)"])
def test_dimensions_at_generic_points_are_the_reference_values(widths):
    dims = [int(d) for d in widths.strip("()").split(",")]
    layers = random_layers(dims, np.random.default_rng(4).standard_normal)
    J = jacobian(layers)
    found = [np.linalg.matrix_rank(J), fibre_dimension(layers), orbit_dimension(layers)]
    assert found == reference("generic", widths=widths)
    # at a minimum the positive directions are those in which the product moves, the flat ones are the fibre
    assert inertia(layers, multiply(layers)) == (0, found[1], found[0])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    hidden=st.lists(st.integers(2, 4), min_size=1, max_size=2),
    S=st.sets(st.integers(1, 3), max_size=2),
    condition=st.floats(1, 20),
    seed=st.integers(0, 10**6),
)
def test_the_inertia_is_the_same_along_the_orbit(hidden, S, condition, seed):
    rng = np.random.default_rng(seed)
    s, shape = [4.0, 2.5, 1.0], (3, 4)
    M = low_rank(s, shape, rng)
    g = [random_basis(h, rng) * np.geomspace(1, condition, h) @ random_basis(h, rng) for h in hidden]
    balanced = balanced_critical_point(M, S, hidden)
    point = critical_point(transform(balanced, g), M)
    assert point.inertia == expected_inertia(s, S, shape, hidden)
    assert point.loss == pytest.approx(critical_point(balanced, M).loss, rel=1e-12, abs=1e-24)


@pytest.mark.parametrize("c", [1e-6, 1e-3, 1e4, 1e8])
@pytest.mark.parametrize(("S", "hidden"), [([2], [4]), ([1, 3], [3]), ([2], [3, 3]), ([], [3, 3])], ids=str)
def test_the_inertia_does_not_depend_on_the_units_of_the_layers(S, hidden, c):
    M = low_rank([3, 2, 1], (3, 3), np.random.default_rng(15))
    g = [c ** (-l) * np.eye(h) for l, h in enumerate(hidden, start=1)]
    assert inertia(transform(balanced_critical_point(M, S, hidden), g), M) == expected_inertia(
        [3, 2, 1], S, (3, 3), hidden
    )


@pytest.mark.parametrize("depth", [2, 3])
def test_a_teacher_of_zero_has_minima_with_curvature(depth):
    weights = [np.zeros((2, 2)), *[np.eye(2)] * (depth - 1)]  # 𝓛 = ½‖W_1‖² to second order
    assert inertia(weights, np.zeros((2, 2))) == (0, 4 * (depth - 1), 4)


@pytest.mark.parametrize("c", [1e-9, 1e-6, 1])
def test_an_exact_critical_point_near_the_origin_is_not_the_origin(c):
    Z, M = np.zeros((3, 3)), diagonal([3, 2, 1])
    assert inertia([Z, c * np.eye(3), Z], M) == (9, 9, 9)
    assert inertia([Z, Z, Z], M) == (0, 27, 0)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize("hidden", [[4], [3, 3]])
def test_the_inertia_does_not_depend_on_the_unit_of_the_teacher(unit, hidden):
    M = unit * low_rank([3, 2, 1], (3, 3), np.random.default_rng(5))
    weights = balanced_critical_point(M, [2], hidden)
    assert inertia(weights, M) == expected_inertia([3, 2, 1], [2], (3, 3), hidden)
    with pytest.raises(NotCriticalError):
        inertia(not_quite(weights, 1e-5), M)


@pytest.mark.parametrize("unit", [1e-18, 1, 1e18])
@pytest.mark.parametrize("c", [1e-3, 1, 1e3, 1e6])
def test_the_inertia_where_one_layer_is_zero_and_the_other_is_not(unit, c):
    W2 = c * np.sqrt(unit) * np.diag([0.0, 1])  # [[w_k², −2], [−2, 0]] for both hidden units, and w_2² for W1[2, 2]
    assert inertia([np.zeros((2, 2)), W2], unit * np.diag([2.0, 0])) == (2, 3, 3)


@pytest.mark.parametrize("angle", [0, 0.3, np.pi / 4, 2])
def test_repeated_singular_values_have_a_continuous_family_of_equal_inertia(angle):
    M, v = diagonal([2, 2, 1]), np.array([np.cos(angle), np.sin(angle), 0])
    weights = [np.outer([np.sqrt(2), 0], v), np.outer(v, [np.sqrt(2), 0])]
    assert inertia(weights, M) == expected_inertia([2, 2, 1], [1], (3, 3), [2]) == (2, 4, 6)
    weights = [np.outer([np.cbrt(2), 0], v), np.diag([np.cbrt(2), 0]), np.outer(v, [np.cbrt(2), 0])]
    assert inertia(weights, M) == expected_inertia([2, 2, 1], [1], (3, 3), [2, 2]) == (0, 12, 4)


def test_the_signs_of_the_learnt_modes_do_not_change_the_inertia():
    M = diagonal([3, 2, 1])
    W1, W2 = balanced_critical_point(M, [1, 3], [3])
    assert inertia([-W1, -W2], M) == expected_inertia([3, 2, 1], [1, 3], (3, 3), [3])


def test_rank_deficient_teachers():
    M = low_rank([2, 1], (4, 3), np.random.default_rng(6))
    minimum = critical_point(balanced_critical_point(M, [1, 2], [3]), M)  # |S| = rank M is already global
    assert minimum.loss == pytest.approx(0, abs=1e-28)
    assert minimum.inertia.negative == 0
    # by hand, from the spectrum of exercise 2.3 with s = (2, 1, 0) and one dimension without a partner:
    # idle units ±s_α of α ∉ S; s_β ± s_α and s_β; s_β + s_β'
    assert minimum.inertia == (0, 21 - 10, 2 * 2 + 2 + 4)
    assert inertia(balanced_critical_point(M, [2], [3]), M) == (2 * 1 + 1, 21 - 3 - 7, 2 * 1 + (1 + 2) + 1 + 1)
    assert inertia([np.zeros((3, 3)), np.zeros((4, 3))], M) == (6, 9, 6)
    assert inertia([np.zeros((3, 3)), np.zeros((4, 3))], np.zeros((4, 3))) == (0, 21, 0)


def test_the_fibre_of_a_rank_deficient_teacher_is_not_a_manifold():
    M, E = np.diag([1.0, 0]), np.diag([1.0, 0])
    assert inertia([E, E], M) == (0, 5, 3)
    assert inertia([E, np.eye(2)], M) == (0, 4, 4)


@pytest.mark.parametrize("dims", [(3, 2), (1, 1)])
def test_one_layer_is_a_convex_problem(dims):
    M = np.random.default_rng(7).standard_normal(dims)
    point = critical_point([M], M)
    assert point.inertia == (0, 0, M.size)
    assert_array_equal(point.eigenvalues, 1)


def not_quite(weights, relative, seed=0):
    rng = np.random.default_rng(seed)
    return [W + relative * np.abs(W).max() * rng.standard_normal(W.shape) for W in weights]


@pytest.mark.parametrize("relative", [1e-5, 1e-3])
@pytest.mark.parametrize("hidden", [[3], [6], [3, 3], [3, 3, 3]], ids=str)
@pytest.mark.parametrize("S", [[1], [2, 3], [1, 2, 3]], ids=str)
def test_points_beside_a_critical_point_are_refused_with_the_size_of_the_gradient(S, hidden, relative):
    M = low_rank([3, 2, 1], (3, 3), np.random.default_rng(8))
    weights = not_quite(balanced_critical_point(M, S, hidden), relative)
    largest = np.abs(jacobian(weights).T @ (M - multiply(weights)).ravel()).max()
    with pytest.raises(NotCriticalError, match="largest gradient entry is") as caught:
        inertia(weights, M)
    assert isinstance(caught.value, ValueError)
    reported = float(str(caught.value).split("gradient entry is ")[1].split(",")[0])
    assert reported == pytest.approx(largest, rel=0.01)  # three digits
    with pytest.raises(NotCriticalError):
        critical_point(weights, M)


def test_the_reported_gradient_is_exact():
    with pytest.raises(NotCriticalError, match=r"gradient entry is 1\.5,"):  # −w2(s − w1 w2) = −½ · 3
        inertia([[[0]], [[0.5]]], [[3]])


def test_the_tolerance_can_be_chosen():
    M = diagonal([3, 2])
    weights = not_quite(balanced_critical_point(M, [1], [2]), 1e-5)
    assert critical_point(weights, M, tolerance=1e-3).gradient > 1e-7
    with pytest.raises(NotCriticalError):
        critical_point(not_quite(balanced_critical_point(M, [1], [2]), 1e-9), M, tolerance=1e-13)


@pytest.mark.parametrize("relative", [1e-5, 1e-3])
@pytest.mark.parametrize("scales", [(1e3, 10**-1.5, 10**-1.5), (1e-2, 1e4, 1e-2)], ids=str)
def test_points_beside_an_unbalanced_critical_point_are_refused(scales, relative):
    M = diagonal([3, 2, 1])
    exact = [c * W for c, W in zip(scales, balanced_critical_point(M, [1], [3, 3]), strict=True)]
    assert inertia(exact, M) == (0, 22, 5)
    with pytest.raises(NotCriticalError):
        inertia(not_quite(exact, relative), M)


@pytest.mark.parametrize("depth", [3, 4])
def test_small_random_weights_are_not_critical(depth):
    rng = np.random.default_rng(9)
    with pytest.raises(NotCriticalError):
        inertia([1e-4 * rng.standard_normal((3, 3)) for _ in range(depth)], diagonal([3, 2, 1]))


@pytest.mark.parametrize("hidden", [[3, 3], [3, 3, 3]], ids=str)
def test_learning_a_mode_that_the_teacher_lacks_changes_nothing(hidden):
    M = low_rank([2, 1], (3, 3), np.random.default_rng(10))
    expected = inertia(balanced_critical_point(M, [1], hidden), M)
    assert inertia(balanced_critical_point(M, [1, 3], hidden), M) == expected


@pytest.mark.parametrize(
    ("hidden", "S", "shape"),
    [([4], [2], (3, 3)), ([2], [1, 3], (3, 4)), ([3, 3], [1, 2, 3], (3, 3)), ([3], [], (3, 3))],
)
def test_a_critical_point_found_numerically_has_the_right_inertia(hidden, S, shape):
    s = [3, 2, 1]
    M = low_rank(s, shape, np.random.default_rng(11))
    g = [np.diag(np.linspace(1, 2, h)) for h in hidden]
    weights = (
        not_quite(transform(balanced_critical_point(M, S, hidden), g), 1e-3)
        if S
        else [1e-3 * np.random.default_rng(12).standard_normal(dims) for dims in ((3, 3), (3, 3))]
    )
    ends = np.cumsum([W.size for W in weights])[:-1]
    for _ in range(20):  # Newton steps of nine tenths: the gradient falls tenfold in each
        J, residual = jacobian(weights), M - multiply(weights)
        gradient = -J.T @ residual.ravel()
        if np.abs(gradient).max() < 2e-10:
            break
        step = 0.9 * np.linalg.pinv(hessian(weights, M), rcond=0.02, hermitian=True) @ gradient
        weights = [W - d.reshape(W.shape) for W, d in zip(weights, np.split(step, ends), strict=True)]
    point = critical_point(weights, M)
    assert 1e-12 < point.gradient < 2e-10
    assert point.inertia == expected_inertia(s, S, shape, hidden)


def test_the_record_says_what_it_counted():
    M = low_rank([3, 2, 1], (3, 3), np.random.default_rng(13))
    weights = balanced_critical_point(M, [2], [3])
    point = critical_point(weights, M)
    assert_allclose(point.eigenvalues, np.linalg.eigvalsh(hessian(weights, M)), atol=1e-13)
    assert np.all(np.diff(point.eigenvalues) >= 0)
    assert point.inertia.negative == np.sum(point.eigenvalues < -point.tolerance)
    assert point.inertia.positive == np.sum(point.eigenvalues > point.tolerance)
    assert sum(point.inertia) == point.eigenvalues.size == 18
    assert 0 < point.tolerance < 1e-12
    with pytest.raises(AttributeError):
        point.loss = 0.0


def test_four_modes_with_six_hidden_units_take_less_than_a_second():
    M = low_rank([5, 3, 2, 1], (4, 4), np.random.default_rng(14))
    start = time.perf_counter()
    inertia(balanced_critical_point(M, [1, 2], [6]), M)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("call", [hessian, critical_point, inertia])
@pytest.mark.parametrize(
    ("weights", "M", "message"),
    [
        ([np.eye(2), np.ones((2, 3))], np.eye(2), r"W1.*\(2, 2\).*W2.*\(2, 3\)"),
        ([np.eye(2), [[1, np.nan], [0, 1]]], np.eye(2), r"W2\[0, 1\] = nan"),
        ([np.eye(2), np.eye(2)], np.eye(3), r"teacher M.*\(3, 3\).*\(2, 2\)"),
        ([np.eye(2), np.eye(2)], [[1, 0], [0, np.inf]], r"M\[1, 1\] = inf"),
        ([], np.eye(2), "at least one layer"),
        (np.eye(2), np.eye(2), "one matrix"),
    ],
)
def test_bad_input_raises(call, weights, M, message):
    with pytest.raises(ValueError, match=message):
        call(weights, M)


def test_the_jacobian_checks_its_layers():
    with pytest.raises(ValueError, match=r"W1.*\(2, 2\).*W2.*\(2, 3\)"):
        jacobian([np.eye(2), np.ones((2, 3))])
