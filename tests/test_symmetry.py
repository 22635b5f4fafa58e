"""The GL action, ranks of partial products, and dimensions of fibres and orbits by brute force."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite.symmetry import fibre_dimension, orbit_dimension, ranks, transform
from lindyn_lite.tasks import random_basis


def multiply(layers):
    return functools.reduce(lambda done, layer: layer @ done, layers)


def random_layers(dims, rng):
    return [rng.standard_normal(shape) for shape in itertools.pairwise(dims[::-1])][::-1]


def random_group(dims, rng):
    return [random_basis(d, rng) * rng.uniform(0.5, 2, d) @ random_basis(d, rng) for d in dims[1:-1]]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(dims=st.lists(st.integers(1, 5), min_size=2, max_size=5), seed=st.integers(0, 10**6))
def test_transform_is_a_group_action_that_leaves_the_product(dims, seed):
    rng = np.random.default_rng(seed)
    layers, g, f = random_layers(dims, rng), random_group(dims, rng), random_group(dims, rng)
    moved = transform(layers, g)
    assert [W.shape for W in moved] == [W.shape for W in layers]
    assert_allclose(multiply(moved), multiply(layers), atol=1e-11)
    cases = {
        "composition": (transform(moved, f), transform(layers, [b @ a for a, b in zip(g, f, strict=True)])),
        "identity": (transform(layers, [np.eye(d) for d in dims[1:-1]]), layers),
        "inverse": (transform(moved, [np.linalg.inv(a) for a in g]), layers),
    }
    for left, right in cases.values():
        for a, b in zip(left, right, strict=True):
            assert_allclose(a, b, atol=1e-11)


def test_transform_by_hand():
    W = transform([[[1, 2]], [[3], [4]], [[1, 1]]], [[[2]], [[1, 1], [0, 1]]])
    for found, expected in zip(W, ([[2, 4]], [[3.5], [2]], [[1, 0]]), strict=True):
        assert_allclose(found, expected, rtol=1e-15, atol=1e-15)
    assert_array_equal(transform([[[1, 2]]], [])[0], [[1, 2]])


def test_transform_does_not_write_into_its_arguments():
    layers, g = [np.eye(2), np.eye(2)], [np.diag([2.0, 3.0])]
    transform(layers, g)
    assert_array_equal(layers, [np.eye(2)] * 2)
    assert_array_equal(g[0], np.diag([2, 3]))


TWO, THREE = [np.ones((2, 3)), np.ones((3, 2))], [np.ones((2, 3)), np.ones((4, 2)), np.ones((1, 4))]
BAD_GROUPS = {
    "none for one hidden layer": (TWO, [], "1 hidden layers, got 0"),
    "one too many": (TWO, [np.eye(2)] * 2, "1 hidden layers, got 2"),
    "one for a single layer": (TWO[:1], [np.eye(2)], "0 hidden layers, got 1"),
    "of the wrong size": (THREE, [np.eye(2), np.eye(3)], r"g2.*\(3, 3\).*\(4, 4\)"),
    "not square": (THREE, [np.ones((2, 3)), np.eye(4)], r"g1.*\(2, 3\).*\(2, 2\)"),
    "singular": (THREE, [np.eye(2), np.diag([1, 2, 3, 0])], r"g2 is singular.*GL\(4\)"),
    "zero": (TWO, [np.zeros((2, 2))], "g1 is singular"),
    "singular up to rounding": (TWO, [[[0.1, 0.2], [0.3, 0.6]]], "g1 is singular"),
    "NaN": (TWO, [[[1, 0], [0, np.nan]]], r"g1\[1, 1\] = nan"),
    "complex": (TWO, [np.eye(2) * 1j], "g1.*complex"),
    "a scalar": (TWO, [2.0], r"g1.*\(\)"),
}


@pytest.mark.parametrize(("layers", "g", "message"), BAD_GROUPS.values(), ids=BAD_GROUPS.keys())
def test_what_is_not_a_group_element_raises(layers, g, message):
    with pytest.raises(ValueError, match=message):
        transform(layers, g)


@pytest.mark.parametrize("call", [ranks, fibre_dimension, orbit_dimension, lambda W: transform(W, [np.eye(2)])])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([np.ones((2, 2)), np.ones((2, 3))], r"W1.*\(2, 2\).*W2.*\(2, 3\)"),
        ([np.ones((2, 2)), [[1, np.inf]]], r"W2\[0, 1\] = inf"),
        ([], "at least one layer"),
    ],
)
def test_bad_layers_raise(call, weights, message):
    with pytest.raises(ValueError, match=message):
        call(weights)


# integer chains: exact products, exact derivatives, ranks that rounding cannot change


def integer_chain(dims, layer_ranks, rng):
    return [
        rng.integers(-2, 3, (after, r)) @ rng.integers(-2, 3, (r, before))
        for before, after, r in zip(dims[:-1], dims[1:], layer_ranks, strict=True)
    ]


chains = st.integers(1, 4).flatmap(
    lambda depth: st.tuples(
        st.lists(st.integers(1, 4), min_size=depth + 1, max_size=depth + 1),
        st.lists(st.integers(0, 3), min_size=depth, max_size=depth),
        st.lists(st.sampled_from([-3, 0, 3]), min_size=depth, max_size=depth),
        st.integers(0, 10**6),
    )
)


def product_rank(layers):
    """Rank of the derivative of the product, which is affine in every weight: differences are exact."""
    W, columns = multiply(layers), []
    for l, layer in enumerate(layers):
        for entry in np.ndindex(layer.shape):
            step = np.zeros_like(layer)
            step[entry] = 1
            columns.append((multiply([*layers[:l], layer + step, *layers[l + 1 :]]) - W).ravel())
    return np.linalg.matrix_rank(np.array(columns))


def action_rank(layers):
    """Rank of the infinitesimal action X ↦ (X_l W_l − W_l X_{l−1}), X_0 = X_L = 0."""
    images = []
    for l, layer in enumerate(layers[:-1]):
        size = len(layer)
        for entry in np.ndindex(size, size):
            X = np.zeros((size, size), dtype=int)
            X[entry] = 1
            image = [np.zeros_like(W) for W in layers]
            image[l], image[l + 1] = X @ layer, -layers[l + 1] @ X
            images.append(np.concatenate([part.ravel() for part in image]))
    return np.linalg.matrix_rank(np.array(images)) if images else 0


@settings(max_examples=250, deadline=None, derandomize=True)
@given(chains)
def test_ranks_and_dimensions_are_those_of_brute_force_at_any_scale(chain):
    dims, layer_ranks, exponents, seed = chain
    exact = integer_chain(dims, layer_ranks, np.random.default_rng(seed))
    scaled = [10.0**e * W for e, W in zip(exponents, exact, strict=True)]
    table = ranks(scaled)
    assert table.shape == (len(dims), len(dims))
    for i, j in np.ndindex(table.shape):
        expected = np.linalg.matrix_rank(multiply(exact[i:j])) if i < j else dims[i] if i == j else 0
        assert table[i, j] == expected
    assert fibre_dimension(scaled) == sum(W.size for W in exact) - product_rank(exact)
    assert orbit_dimension(scaled) == action_rank(exact)


TABLE = {  # exercise 2.4: parameters, rank of the Jacobian, fibre, orbit
    (2, 2, 2): (8, 4, 4, 4),
    (3, 2, 3): (12, 8, 4, 4),
    (2, 10, 2): (40, 4, 36, 36),
    (4, 3, 2): (18, 8, 10, 9),
    (6, 4, 2): (32, 12, 20, 16),
    (2, 10, 10, 2): (140, 4, 136, 136),
}


@pytest.mark.parametrize(("dims", "counts"), TABLE.items(), ids=str)
def test_generic_dimensions_are_those_of_exercise_2_4(dims, counts):
    layers = random_layers(dims, np.random.default_rng(0))
    parameters, rank, fibre, orbit = counts
    assert sum(W.size for W in layers) == parameters
    assert (fibre_dimension(layers), orbit_dimension(layers)) == (fibre, orbit)
    assert product_rank([np.rint(3 * W).astype(int) for W in layers]) == rank


@pytest.mark.parametrize(("r1", "r2"), list(itertools.product(range(4), range(3))))
def test_two_layer_orbits_have_the_dimension_of_exercise_2_4(r1, r2):
    h, rng = 5, np.random.default_rng(1)
    W1 = rng.standard_normal((h, r1)) @ rng.standard_normal((r1, 3))
    W2 = rng.standard_normal((2, r2)) @ rng.standard_normal((r2, h))
    assert orbit_dimension([W1, W2]) == h**2 - (h - r1) * (h - r2)
    assert fibre_dimension([W1, W2]) == 25 - (3 * r2 + 2 * r1 - r1 * r2)


@pytest.mark.parametrize("dims", [(2, 3), (2, 3, 2), (3, 4, 2, 5)], ids=str)
def test_at_zero_the_orbit_is_a_point_and_the_fibre_keeps_what_one_layer_can_do(dims):
    layers = [np.zeros(shape) for shape in zip(dims[1:], dims[:-1], strict=True)]
    size = sum(W.size for W in layers)
    assert orbit_dimension(layers) == 0
    assert fibre_dimension(layers) == (0 if len(layers) == 1 else size)
    assert_array_equal(ranks(layers), np.diag(dims))


@pytest.mark.parametrize("W", [np.zeros((2, 3)), np.ones((3, 2)), np.eye(4)])
def test_a_single_layer_has_no_symmetry_and_no_fibre(W):
    assert (fibre_dimension([W]), orbit_dimension([W])) == (0, 0)


def test_where_the_fibre_of_a_rank_deficient_teacher_is_singular_its_tangent_space_grows():
    E, one = np.diag([1, 0]), np.eye(2)  # M = diag(1, 0), h = 2: rank J is 3 or 4
    assert [fibre_dimension(W) for W in ([E, E], [one, E], [E, one])] == [5, 4, 4]
    assert [orbit_dimension(W) for W in ([E, E], [one, E], [E, one])] == [3, 4, 4]


def test_dimensions_are_constant_on_an_orbit():
    rng = np.random.default_rng(2)
    dims = (3, 4, 4, 2)
    layers = integer_chain(dims, (2, 3, 1), rng)
    expected = product_rank(layers), action_rank(layers)
    for _ in range(10):
        moved = transform(layers, random_group(dims, rng))
        assert (sum(W.size for W in moved) - fibre_dimension(moved), orbit_dimension(moved)) == expected


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_extreme_scales_do_not_change_the_dimensions(scale):
    layers = [np.diag([1.0, 2, 0]) * scale, np.ones((3, 3)) / scale, np.diag([0, 3.0, 1]) * scale]
    exact = [np.diag([1, 2, 0]), np.ones((3, 3), dtype=int), np.diag([0, 3, 1])]
    assert fibre_dimension(layers) == 27 - product_rank(exact)
    assert orbit_dimension(layers) == action_rank(exact)


def test_small_singular_values_above_rounding_count():
    layers = [np.diag([1, 1e-9]), np.diag([1, 1e-5]), np.diag([1.0, 1])]
    assert_array_equal(ranks(layers), 2 * np.triu(np.ones((4, 4))))
    assert fibre_dimension(layers) == orbit_dimension(layers) == 8
