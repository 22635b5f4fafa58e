"""Inputs that float64 cannot carry: masks, endless counts, and numbers whose squares overflow."""

import warnings

import numpy as np
import pytest

from lindyn_lite import (
    balance,
    boltzmann,
    closed_flow,
    kernel,
    label_noise,
    landscape,
    modes,
    networks,
    starts,
    symmetry,
    tasks,
)
from lindyn_lite.inputs import as_integer, refuse_overflow

I = np.eye(2)
BIG = [1e200 * I, I]
OVERFLOWS = {
    "loss": lambda: networks.loss(BIG, I),
    "product": lambda: networks.product([1e200 * I, 1e200 * I, 0 * I]),
    "gradients": lambda: networks.gradients(BIG, I),
    "conserved": lambda: balance.conserved(BIG),
    "nearest_lambda": lambda: balance.nearest_lambda(BIG),
    "gradient_descent_change": lambda: balance.gradient_descent_change([I, I], I, 1e200),
    "sgd_change": lambda: balance.sgd_change([I, I], 1e200 * I, 1.0),
    "label_noise_drift": lambda: balance.label_noise_drift([I, I], 0.1, 1, 1e200),
    "decay_steps": lambda: label_noise.decay_steps(3, 1e-170, 1, 1.0),
    "apply": lambda: kernel.apply(BIG, 1e200 * I),
    "matrix": lambda: kernel.matrix(BIG),
    "spectrum": lambda: kernel.spectrum(BIG),
    "distance": lambda: kernel.distance([I, I], [I, I], 1e200 * I),
    "hessian": lambda: landscape.hessian(BIG, I),
    "transform": lambda: symmetry.transform([I, I], [5e-324 * I]),
    "from_data": lambda: tasks.from_data([[5e-324], [1e-323]], [[1.0], [2.0]]),
    "low_rank": lambda: tasks.low_rank([1.7e308, 1.7e308], (2, 2), np.random.default_rng(0), 1.7e308),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_what_overflows_on_the_way_is_an_error_and_not_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="leave the range of float64"):
            OVERFLOWS[name]()


def test_a_result_in_range_is_right_even_if_its_square_is_not():
    assert kernel.distance(BIG, [2 * W for W in BIG]) < 1e-30
    assert landscape.inertia([0 * I, 0 * I], 1e100 * I) == (4, 0, 4)


MODERATE = {
    "sigma": (lambda: boltzmann.quadratic_variance(1.0, 0.1, 1e200), "sigma must be from 0 to 1e40 in size"),
    "curvature": (lambda: boltzmann.quadratic_variance(5e-324, 0.1, 1.0), "curvature must be from 1e-40 to 1e40"),
    "weight decay": (lambda: boltzmann.log_partition_function(1.0, 10.0, 1e-200), "weight_decay must be from 1e-40"),
    "s": (lambda: boltzmann.weight_density(0.1, -1e200, 10.0, 0.1), r"s must be from 0 to 1e40 in size, got 1e\+200"),
    "beta": (lambda: boltzmann.product_density(0.1, 1.0, 1e300, 0.1), "beta must be from 1e-40 to 1e40"),
    "radius": (lambda: boltzmann.box_partition_function(1.0, 10.0, 1e200), "radius must be from 1e-40 to 1e40"),
    "tau": (lambda: closed_flow.mixed_flow([[0.0]], [[1.0]], 5e-324, [1.0]), "got 4.94e-324 for the larger of W0"),
    "W0": (lambda: closed_flow.mixed_flow([[1e200]], [[1.0]], 1.0, [1.0]), r"at most 1e100.*got 1e\+200"),
    "big tau": (lambda: closed_flow.mixed_flow([[0.0]], [[1.0]], 1e308, [1.0]), r"at most 1e100.*got 1e\+308"),
    "masked s": (
        lambda: modes.logistic(1.0, np.ma.masked_greater([1.0, 100.0], 10), 0.1),
        "s must not have masked entries, but 1 are: fill or drop them",
    ),
    "masked weights": (lambda: networks.loss([np.ma.masked_equal(I, 0)], I), "W1 must not have masked entries"),
    "masked number": (lambda: balance.sgd_change([I, I], I, np.ma.masked), "eta must not have masked entries"),
    "endless depth": (lambda: modes.deep_passage_time(1.0, 0.1, 0.5, 10**400), r"at most 2\*\*53, got.*1329 bits"),
    "endless width": (lambda: starts.balanced((2, 2**63, 2), 1.0, np.random.default_rng(0)), "got a number of 64 bits"),
    "ragged scale": (lambda: starts.balanced((2, 2, 2), [[1], [1, 2]], np.random.default_rng(0)), "different lengths"),
}


@pytest.mark.parametrize("case", MODERATE)
def test_numbers_out_of_range_are_named(case):
    call, message = MODERATE[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_mask_that_hides_nothing_is_welcome():
    assert networks.loss([np.ma.masked_array(I, mask=False)], I) == 0.0


def test_counts_end_where_floats_miss_integers():
    assert as_integer("n", 2**53, 0) == 2**53
    with pytest.raises(ValueError, match=r"n must be at most 2\*\*53"):
        as_integer("n", 2**53 + 1, 0)


def test_the_guard_keeps_name_signature_and_result():
    @refuse_overflow
    def double(x: float) -> float:
        """Twice x."""
        return 2 * x

    assert double(1.5) == 3.0 and double.__doc__ == "Twice x." and double.__name__ == "double"
    with pytest.raises(ValueError, match="double: numbers"):
        double(1.7e308)
