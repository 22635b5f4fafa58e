"""Product, loss and gradients against numpy, hand computation and complex steps."""

import functools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lindyn_lite.networks import gradients, loss, product, widths

CHAINS = [(3, 2), (2, 3, 4), (4, 1, 3), (3, 2, 5, 2), (2, 4, 1, 3, 2)]
nets = pytest.mark.parametrize("dims", CHAINS, ids=str)


def random_layers(dims, rng):
    return [rng.standard_normal(shape) for shape in zip(dims[1:], dims[:-1], strict=True)]


def plain_loss(layers, M):
    """The loss without absolute values, so that it is analytic and takes complex steps."""
    return 0.5 * np.sum((M - functools.reduce(lambda done, layer: layer @ done, layers)) ** 2)


@nets
def test_the_product_is_numpys_multi_dot(dims):
    layers = random_layers(dims, np.random.default_rng(0))
    expected = np.linalg.multi_dot(layers[::-1]) if len(layers) > 1 else layers[0]
    assert_allclose(product(layers), expected, rtol=1e-13, atol=1e-13)
    assert widths(layers) == dims


def test_product_loss_and_gradients_agree_with_hand_computation():
    W1, W2, M = [[1, 2], [0, 1]], [[3, -1]], [[5, 4]]  # W = (3, 5), M − W = (2, −1)
    assert_array_equal(product([W1, W2]), [[3, 5]])
    assert loss([W1, W2], M) == 2.5
    first, second = gradients([W1, W2], M)
    assert_array_equal(first, [[-6, 3], [2, -1]])  # −W2ᵀ(M − W)
    assert_array_equal(second, [[0, 1]])  # −(M − W)W1ᵀ


def test_the_product_does_not_depend_on_how_numbers_are_given():
    floats = [np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[3.0, -1.0]])]
    integers = [layer.astype(np.int8) for layer in floats]
    for weights in (integers, [layer.tolist() for layer in integers], tuple(floats)):
        assert product(weights).dtype == np.float64
        assert_array_equal(product(weights), [[3, 5]])
    assert_array_equal(product([np.array([[True, False]])]), [[1, 0]])
    assert_array_equal(product(np.full((3, 2, 2), 1)), np.full((2, 2), 4))  # a stack of layers is a list of layers
    assert_array_equal(product([np.full((1, 1), 100, np.int8), np.full((1, 1), 100, np.int8)]), [[10_000]])


def test_nothing_is_written_into_the_arguments():
    layers, M = random_layers((2, 3, 2), np.random.default_rng(1)), np.eye(2)
    before = [layer.copy() for layer in layers]
    product(layers)[:] = 7
    for gradient in gradients(layers, M):
        gradient[:] = 7
    product(layers[:1])[:] = 7
    assert all(np.array_equal(a, b) for a, b in zip(layers, before, strict=True))
    assert_array_equal(M, np.eye(2))


@nets
def test_gradients_are_complex_step_derivatives_of_the_loss(dims):
    rng = np.random.default_rng(2)
    layers, M, step = random_layers(dims, rng), rng.standard_normal((dims[-1], dims[0])), 1e-30
    for l, gradient in enumerate(gradients(layers, M)):
        assert gradient.shape == layers[l].shape
        for entry in np.ndindex(gradient.shape):
            moved = [layer.astype(complex) for layer in layers]
            moved[l][entry] += 1j * step
            assert_allclose(gradient[entry], plain_loss(moved, M).imag / step, rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(dims=st.lists(st.integers(1, 4), min_size=2, max_size=5), seed=st.integers(0, 10**6))
def test_integer_gradients_are_exact_central_differences(dims, seed):
    rng = np.random.default_rng(seed)  # the loss is quadratic in every single weight: no truncation error at step 1
    layers = [rng.integers(-3, 4, shape) for shape in zip(dims[1:], dims[:-1], strict=True)]
    M = rng.integers(-9, 10, (dims[-1], dims[0]))
    assert loss(layers, M) == plain_loss(layers, M)
    for l, gradient in enumerate(gradients(layers, M)):
        for entry in np.ndindex(gradient.shape):
            up, down = ([layer.copy() for layer in layers] for _ in range(2))
            up[l][entry] += 1
            down[l][entry] -= 1
            assert gradient[entry] == (plain_loss(up, M) - plain_loss(down, M)) / 2


def test_aligned_diagonal_networks_decouple_into_scalar_problems():
    rng = np.random.default_rng(3)  # exercise 2.1
    w, s = rng.standard_normal((3, 4)), np.array([5.0, 3, 2, 1])
    layers, M = [np.diag(row) for row in w], np.diag(s)
    assert loss(layers, M) == pytest.approx(0.5 * np.sum((s - w.prod(axis=0)) ** 2), rel=1e-15)
    for l, gradient in enumerate(gradients(layers, M)):
        others = np.delete(w, l, axis=0).prod(axis=0)
        assert_allclose(gradient, np.diag(-others * (s - w.prod(axis=0))), rtol=1e-13, atol=1e-15)


EYE = np.eye(2)
BAD_WEIGHTS = {
    "no layer": ([], "at least one layer"),
    "a bare matrix": (EYE, "one matrix.*[W1]"),
    "a bare nested list": ([[1, 2], [3, 4]], r"W1.*\(2,\)"),
    "a vector": (np.ones(3), r"W1.*\(\)"),
    "a layer that is a vector": ([EYE, np.ones(2)], r"W2.*\(2,\)"),
    "a layer with three dimensions": ([EYE, np.ones((1, 2, 2))], r"W2.*\(1, 2, 2\)"),
    "shapes that do not chain": ([EYE, np.ones((3, 2)), np.ones((2, 4))], r"W2.*\(3, 2\).*W3.*\(2, 4\)"),
    "layers in the wrong order": ([np.ones((1, 3)), np.ones((3, 2))], r"W1.*\(1, 3\).*W2.*\(3, 2\)"),
    "NaN": ([EYE, [[1, 0], [np.nan, 1]]], r"W2.*finite.*W2\[1, 0\] = nan"),
    "infinity": ([[[1, -np.inf]], [[1]]], r"W1.*finite.*W1\[0, 1\] = -inf"),
    "complex numbers": ([EYE, EYE * 1j], "W2.*complex128"),
    "complex numbers without imaginary part": ([EYE + 0j], "W1.*complex128"),
    "strings": ([EYE, [["a", "b"]]], "W2.*<U1"),
    "None": ([[[None]]], "W1.*object"),
    "no rows": ([np.zeros((0, 2))], r"W1.*\(0, 2\)"),
    "no columns": ([EYE, [[], []]], r"W2.*\(2, 0\)"),
    "ragged rows": ([EYE, [[1, 2], [3]]], "W2.*different lengths"),
}


@pytest.mark.parametrize("call", [product, lambda w: loss(w, EYE), lambda w: gradients(w, EYE), widths])
@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS.keys())
def test_bad_weights_raise_an_error_that_names_the_layer(weights, message, call):
    with pytest.raises(ValueError, match=message.replace("[W1]", re.escape("[W1]"))):
        call(weights)


BAD_TEACHERS = {
    "transposed": (np.ones((2, 3)), r"teacher M.*\(2, 3\).*\(3, 2\)"),
    "a vector": (np.ones(3), r"teacher M.*\(3,\)"),
    "NaN": ([[1, 0], [0, np.nan], [0, 0]], r"teacher M.*finite.*\[1, 1\] = nan"),
    "complex": (np.ones((3, 2)) * 1j, "teacher M.*complex"),
    "strings": ([["a", "b"]] * 3, "teacher M.*<U1"),
    "ragged": ([[1, 0], [0], [0, 0]], "teacher M.*different lengths"),
    "empty": ([], r"teacher M.*\(0,\)"),
}


@pytest.mark.parametrize("call", [loss, gradients])
@pytest.mark.parametrize(("M", "message"), BAD_TEACHERS.values(), ids=BAD_TEACHERS.keys())
def test_a_bad_teacher_raises_an_error_that_says_what_is_needed(M, message, call):
    with pytest.raises(ValueError, match=message):
        call([np.ones((4, 2)), np.ones((3, 4))], M)


@pytest.mark.parametrize("weights", [3, None, np.array(3.0)], ids=str)
def test_weights_that_are_no_list_raise(weights):
    with pytest.raises(ValueError, match="must be a list of layers"):
        product(weights)
