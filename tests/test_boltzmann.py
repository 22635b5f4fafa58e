"""Stationary laws against 30-digit integrals, recursions, closed forms and Laplace limits."""

import itertools
import json
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad, solve_ivp

from lindyn_lite.boltzmann import (
    NoStationaryLawError,
    boltzmann_density,
    box_partition_function,
    log_partition_function,
    mean_passage_time,
    partition_function,
    product_density,
    quadratic_variance,
    weight_density,
    well_occupation,
)

pytestmark = pytest.mark.filterwarnings("error")
REFERENCE = json.loads((Path(__file__).parent / "values" / "exercises.json").read_text(encoding="utf-8"))
EDGE = -0.231555009966  # the barrier top of unequal(1)


def reference(name, **inputs):
    found = [e for e in REFERENCE if e["name"].startswith(name) and inputs.items() <= e["inputs"].items()]
    assert found
    return [({key: float(value) for key, value in e["inputs"].items()}, float(e["value"])) for e in found]


def double_well(x):
    return (x**2 - 1) ** 2 / 4


def unequal(b):
    return lambda x: (x**2 - 1) ** 2 * ((x - b) ** 2 + 1) / 8


def parabola(x):
    return 5 * x**2 / 2


def slope(x):
    return 2 * np.abs(x)


# -- one quadratic ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("h", "eta", "sigma"), [(5, 0.1, 2), (1, 1.5, 1), (0.3, 6.5, 0.2), (2, 1e-3, 10)])
def test_the_variance_is_where_the_recursion_of_the_covariance_ends(h, eta, sigma):
    variance = 0.0
    for _ in range(200000):
        last, variance = variance, (1 - eta * h) ** 2 * variance + eta**2 * sigma**2
        if last == variance:
            break
    assert_allclose(quadratic_variance(h, eta, sigma), variance, rtol=1e-12)
    boltzmann = eta * sigma**2 / (2 * h)
    assert_allclose(boltzmann / quadratic_variance(h, eta, sigma), 1 - eta * h / 2, rtol=1e-14)


def test_the_variance_has_the_published_values():
    for inputs, value in reference("AR(1)"):
        assert_allclose(quadratic_variance(inputs["h"], inputs["eta"], inputs["sigma"]), value, rtol=1e-14)
    assert_allclose(quadratic_variance(5, 0.1, 2), 0.0533333, rtol=1e-6)


def test_the_variance_broadcasts():
    assert quadratic_variance([[1], [2]], [0.1, 0.2, 0.3], 1).shape == (2, 3)
    assert isinstance(quadratic_variance(1, 1, 0), np.float64)
    assert quadratic_variance(1, 1, 0) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.1, 1), "curvature must be positive, got 0"),
        (([1, -2], 0.1, 1), "curvature must be positive, got -2"),
        ((1, 0, 1), "eta must be positive, got 0"),
        ((5, 0.4, 1), r"eta \* curvature must be below 2, got 2, 0 too much: .*1 - eta \* curvature = -1"),
        (([1, 5], 0.5, 1), r"got 2\.5, 0\.5 too much"),
    ],
)
def test_no_variance_without_a_stationary_law(arguments, message):
    with pytest.raises(NoStationaryLawError, match=message):
        quadratic_variance(*arguments)
    assert issubclass(NoStationaryLawError, ValueError)


# -- two weights --------------------------------------------------------------------------------------------------


def exact_log(s, beta, kappa):
    """ln Z from the integral over θ at 25 digits, in pieces around its peak; checked against K_0 below."""
    s, beta, kappa = mp.mpf(abs(s)), mp.mpf(beta), mp.mpf(kappa)

    def height(theta):
        return kappa**2 * mp.sinh(theta) ** 2 + s**2 / mp.cosh(theta) ** 2

    peak = mp.acosh(mp.sqrt(s / kappa)) if s > kappa else mp.mpf(0)
    width = 1 / (1 + mp.sqrt(4 * beta * kappa * abs(s - kappa)) + mp.sqrt(mp.sqrt(beta) * kappa))
    end = peak + 2 + mp.asinh(mp.sqrt(4000 / beta) / kappa)
    offsets = [width * 2**i for i in range(-2, 60) if width * 2**i < 0.6] + [mp.mpf(i) for i in range(1, 45)]
    inner = {p for o in offsets for p in (peak - o, peak + o) if 0 < p < end}
    points = sorted(inner | {mp.mpf(0), peak, end})
    integral = mp.quad(
        lambda x: mp.exp(-beta * (height(x) - height(peak)) / 2), points, maxdegree=5, method="gauss-legendre"
    )
    return mp.log(2 * mp.pi / beta) / 2 - beta * height(peak) / 2 + mp.log(2 * integral)


def exact_from_bessel(s, beta, kappa):
    """The integral over p = w1 w2 of exercise 7.1, at 20 digits."""
    s, beta, kappa = (mp.mpf(value) for value in (s, beta, kappa))

    def density(p):
        return mp.exp(-beta * (s - p) ** 2 / 2) * mp.besselk(0, beta * kappa * abs(p))

    width = 1 / mp.sqrt(beta)
    points = sorted({mp.mpf(0), s, *(x + sign * width * 2**i for i in range(4) for sign in (-1, 1) for x in (0, s))})
    return 2 * mp.quad(density, points, maxdegree=5)


@pytest.mark.parametrize(("s", "beta", "kappa"), [(0.3, 4, 1e-6)])
def test_the_partition_function_is_the_bessel_integral(s, beta, kappa):
    with mp.workdps(20):
        assert_allclose(partition_function(s, beta, kappa), float(exact_from_bessel(s, beta, kappa)), rtol=1e-13)
        assert abs(exact_from_bessel(s, beta, kappa) / mp.exp(exact_log(s, beta, kappa)) - 1) < mp.mpf("1e-14")


CORNERS = [(s, b, k) for b in (1e-2, 1e6) for k in (1e-8, 1e2) for s in (0, 1, 1e3)]
CORNERS += [
    (1.0001, 1e4, 1),
    (0.9999, 1e4, 1),
    (1, 1e4, 1),
    (30, 2, 1e-3),
    (99, 1e6, 100),
    (-7, 300, 1e-4),
    (1e-3, 10, 3),
]


@pytest.mark.parametrize(("s", "beta", "kappa"), CORNERS)
def test_the_partition_function_over_the_whole_range(s, beta, kappa):
    with mp.workdps(25):
        exact = exact_log(s, beta, kappa)
        got = log_partition_function(s, beta, kappa)
        assert abs(got - exact) < 1e-15 + 5e-16 * abs(exact)
        if abs(exact) < 700:
            assert abs(mp.mpf(float(partition_function(s, beta, kappa))) / mp.exp(exact) - 1) < 1e-12


def test_the_partition_function_without_a_teacher():
    with mp.workdps(30):
        for beta, kappa in [(10, 0.1), (0.01, 1e-8), (1e3, 1), (1e6, 1e2)]:
            a = mp.mpf(beta) * mp.mpf(kappa) ** 2 / 4
            exact = mp.log(mp.sqrt(2 * mp.pi / beta) * mp.besselk(0, a)) + a
            assert_allclose(log_partition_function(0, beta, kappa), float(exact), rtol=1e-14)


def test_published_partition_functions():
    for inputs, value in reference("partition function Z"):
        assert_allclose(partition_function(inputs["s"], inputs["beta"], inputs["kappa"]), value, rtol=1e-14)
    ((inputs, value),) = reference("closed form s=0")
    assert_allclose(partition_function(0, inputs["beta"], inputs["kappa"]), value, rtol=1e-14)
    for inputs, value in reference("box"):
        assert_allclose(box_partition_function(1, 10, inputs["R"]), value, rtol=1e-14)


positives = st.floats(1e-2, 1e2)


@settings(max_examples=60, deadline=None)
@given(st.floats(-20, 20), positives, positives, st.floats(1e-3, 1e3))
def test_the_partition_function_scales(s, beta, kappa, c):
    log = log_partition_function(s, beta, kappa)
    assert log_partition_function(-s, beta, kappa) == log
    # w → √c w: Z(cs, β/c², cκ) = c Z(s, β, κ)
    assert_allclose(log_partition_function(c * s, beta / c**2, c * kappa), log + np.log(c), rtol=1e-12, atol=1e-12)


def test_weight_decay_that_vanishes_makes_it_diverge_logarithmically():
    kappa = np.array([1e-4, 1e-6, 1e-8])
    per_decade = np.diff(partition_function(1, 10, kappa)) / np.log(10)
    assert_allclose(per_decade, 2 * 2 * np.sqrt(2 * np.pi / 10), rtol=1e-3)  # R ~ κ^{−1/2}
    radius = np.array([1e2, 1e4, 1e6])
    assert_allclose(
        np.diff(box_partition_function(1, 10, radius)) / np.log(100), 4 * np.sqrt(2 * np.pi / 10), rtol=1e-3
    )
    assert_array_equal(partition_function(3, [1e4, 1e6], 1), 0)  # e^{−25000}: take the logarithm


def test_low_temperature_gives_the_curvatures_of_the_two_minima():
    s, kappa = 3, 1  # minima at w1 = w2 = ±√(s − κ), Hessian eigenvalues 2κ and 2(s − κ)
    beta = np.array([1e2, 1e3, 1e4])
    laplace = np.log(2 * 2 * np.pi / beta) - np.log(2 * kappa * 2 * (s - kappa)) / 2 - beta * (kappa * s - kappa**2 / 2)
    error = log_partition_function(s, beta, kappa) - laplace
    assert_allclose(error[:-1] / error[1:], 10, rtol=0.05)


@pytest.mark.parametrize(
    ("s", "beta", "kappa"), [(1, 10, 0.1), (-2, 3, 1), (0, 1, 0.01), (0.2, 50, 1), (1000, 1e6, 10)]
)
def test_the_marginals_are_densities_of_the_law(s, beta, kappa):
    width, ridge = 1 / np.sqrt(beta), np.sign(s) * max(abs(s) - kappa, 0)
    near = np.geomspace(1e-16, 40 * width, 120)  # p = 0 is a logarithmic singularity
    edges = np.unique(np.concatenate([-near, [0], near, ridge + width * np.linspace(-40, 40, 161)]))
    x, weights = np.polynomial.legendre.leggauss(16)
    p = edges[:-1, None] + np.diff(edges)[:, None] * (1 + x) / 2
    total = np.sum(product_density(p, s, beta, kappa) * np.diff(edges)[:, None] * weights / 2)
    assert_allclose(total, 1, rtol=1e-12)
    theta = np.arange(400000) * 1e-4  # w = √κ sinh θ, the trapezoidal rule; the narrowest peak is 5e-6 wide: skip it
    if beta < 1e5:
        w = np.sqrt(kappa) * np.sinh(theta[theta < 25])
        values = weight_density(w, s, beta, kappa) * np.sqrt(kappa + w**2)
        assert_allclose((2 * np.sum(values) - values[0]) * 1e-4, 1, rtol=1e-12)


def test_the_marginals_at_points():
    s, beta, kappa = 1.0, 10.0, 0.1
    Z = partition_function(s, beta, kappa)

    def joint(w1, w2):
        return np.exp(-beta * ((s - w1 * w2) ** 2 + kappa * (w1**2 + w2**2)) / 2) / Z

    for w in (0.0, 0.4, -1.3):
        assert_allclose(
            weight_density(w, s, beta, kappa), quad(lambda x, w=w: joint(w, x), -30, 30, limit=200)[0], rtol=1e-7
        )
    for p in (0.3, -0.2, 1.1):  # p = w1 w2 has ∫ joint(w, p/w) dw/|w|
        product = 2 * quad(lambda u, p=p: joint(np.exp(u), p * np.exp(-u)), -20, 10, limit=200)[0]
        assert_allclose(product_density(p, s, beta, kappa), product, rtol=1e-7)
    assert product_density(0, s, beta, kappa) == np.inf
    p = np.linspace(-1, 1, 7)
    assert_array_equal(product_density(p, -1, 10, 0.1), product_density(-p, 1, 10, 0.1))
    assert_array_equal(weight_density(p, -1, 10, 0.1), weight_density(-p, 1, 10, 0.1))
    assert product_density([[0.1], [0.2]], 1, [1, 2, 3], 1).shape == (2, 3)
    assert isinstance(weight_density(0, 1, 1, 1), np.float64)
    assert_array_equal(product_density([1e200, -1e9], 1, 10, 1), 0)
    assert_array_equal(weight_density([1e100, -1e9], 1, 10, 1), 0)


@pytest.mark.parametrize(
    ("s", "beta", "radius"), [(0, 1, 1), (1, 10, 0.5), (3, 1e4, 2), (1, 0.01, 3), (1, 1e4, 1), (50, 20, 30)]
)
def test_the_box_against_30_digits(s, beta, radius):
    with mp.workdps(30):
        area, width = mp.mpf(radius) ** 2, 1 / mp.sqrt(beta)
        centre = min(mp.mpf(s), area)
        dyadic = [area / 2**i for i in range(12)]
        around = [centre + sign * width * 2**i for i in range(-2, 6) for sign in (-1, 1)]
        points = sorted({p for p in [*dyadic, *around, centre] if 0 < p <= area} | {mp.mpf(0)})

        def integrand(p):
            gauss = mp.exp(-beta * (s - p) ** 2 / 2) + mp.exp(-beta * (s + p) ** 2 / 2)
            return mp.log(area / p) * gauss if p else 0

        exact = 2 * mp.quad(integrand, points, maxdegree=7)
        assert_allclose(box_partition_function(s, beta, radius), float(exact), rtol=2e-13)
    assert_allclose(box_partition_function(-s, beta, radius), box_partition_function(s, beta, radius), rtol=0)


def test_the_flat_box():
    assert_allclose(box_partition_function(2, 1e-12, [0.1, 1, 3]), [0.04, 4, 36], rtol=1e-9)


BAD_LAWS = {
    "no weight decay": (
        (1, 10, 0),
        NoStationaryLawError,
        r"weight_decay must be positive, got 0: .*4 sqrt\(2 pi T\) ln R",
    ),
    "negative weight decay": ((1, 10, [1, -0.1]), NoStationaryLawError, r"weight_decay must be positive, got -0.1"),
    "no temperature": ((1, 0, 1), NoStationaryLawError, "beta must be positive, got 0"),
    "NaN": ((np.nan, 1, 1), ValueError, "s must be finite"),
    "infinite": ((1, np.inf, 1), ValueError, "beta must be finite"),
    "complex": ((1, 1, 1j), ValueError, "weight_decay must hold real"),
    "empty": (([], 1, 1), ValueError, "s must hold real"),
    "shapes": (([1, 2], [1, 2, 3], 1), ValueError, "broadcast"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_LAWS.values(), ids=BAD_LAWS.keys())
def test_laws_that_do_not_exist_raise(arguments, error, message):
    for law in (log_partition_function, partition_function):
        with pytest.raises(error, match=message):
            law(*arguments)
    for density in (product_density, weight_density):
        with pytest.raises(error, match=message):
            density(0.5, *arguments)


def test_bad_boxes_raise():
    for arguments, message in [
        ((1, 0, 1), "beta"),
        ((1, 1, -1), "radius must be positive, got -1"),
        ((np.nan, 1, 1), "s"),
    ]:
        with pytest.raises(ValueError, match=message):
            box_partition_function(*arguments)


# -- one dimension ------------------------------------------------------------------------------------------------


def test_published_occupations():
    for inputs, value in reference("two-well"):
        assert_allclose(well_occupation(unequal(inputs["b"]), inputs["T"], inputs["bar"]), value, rtol=1e-12)
    ((_, value),) = reference("double parabola")
    kink = 0.6  # where (x+1)²/2 = 16(x−1)²/2
    for T in (0.03, 1e-3):
        low = well_occupation(lambda x: np.minimum((x + 1) ** 2 / 2, 8 * (x - 1) ** 2), T, kink)
        below, above = (
            quad_mass(lambda x: (x + 1) ** 2 / 2, T, -9, kink),
            quad_mass(lambda x: 8 * (x - 1) ** 2, T, kink, 9),
        )
        assert_allclose(low, above / below, rtol=1e-10)
    assert_allclose(1 / low, value, rtol=1e-10)


def quad_mass(potential, T, a, b):
    pieces = itertools.pairwise(np.linspace(a, b, 80))
    return sum(quad(lambda x: np.exp(-potential(x) / T), *piece, epsabs=0, epsrel=1e-13)[0] for piece in pieces)


@pytest.mark.parametrize(("b", "T", "barrier"), [(1, 0.05, EDGE), (1, 2, 0.3), (2, 0.1, -0.2), (0, 0.02, 0)])
def test_occupations_have_ten_digits(b, T, barrier):
    expected = quad_mass(unequal(b), T, barrier, 6) / quad_mass(unequal(b), T, -6, barrier)
    assert_allclose(well_occupation(unequal(b), T, barrier), expected, rtol=1e-11)
    expected = quad_mass(unequal(b), T, barrier, 0.7) / quad_mass(unequal(b), T, -1.1, barrier)
    assert_allclose(well_occupation(unequal(b), T, barrier, -1.1, 0.7), expected, rtol=1e-11)


def test_equal_depths_tend_to_the_root_of_the_curvatures_at_first_order():
    T = np.array([1e-3, 5e-4, 2.5e-4, 1e-6])
    ratio = np.array([well_occupation(unequal(1), t, EDGE) for t in T])
    error = np.sqrt(5) - ratio
    assert_allclose(error[:2] / error[1:3], 2, rtol=0.02)
    assert_allclose(ratio[-1], np.sqrt(5), rtol=1e-5)
    assert_allclose([well_occupation(unequal(1), t, EDGE) for t in (0.1, 0.05)], [2.00556, 2.12545], rtol=3e-6)


def test_occupations_do_not_depend_on_units_or_on_the_zero_of_the_potential():
    plain = well_occupation(unequal(1), 0.05, EDGE)
    assert_allclose(well_occupation(lambda x: unequal(1)(x) + 3, 0.05, EDGE), plain, rtol=1e-11)
    for c in (1e-4, 1e5):
        assert_allclose(well_occupation(lambda x, c=c: c * unequal(1)(x / c), 0.05 * c, EDGE * c), plain, rtol=1e-10)
    assert_allclose(well_occupation(lambda x: unequal(1)(x - 1e3), 0.05, EDGE + 1e3), plain, rtol=1e-9)
    assert_allclose(well_occupation(lambda x: unequal(1)(-x), 0.05, -EDGE), 1 / plain, rtol=1e-11)


def test_walls_and_kinks():
    wall = well_occupation(lambda x: np.where(np.abs(x) < 1.5, 0.0, np.inf), 0.3, 0.5)
    assert_allclose(wall, 1 / 2, rtol=1e-10)
    assert_allclose(well_occupation(np.abs, 0.3, 0.6), 1 / (2 * np.exp(2) - 1), rtol=1e-11)
    assert_allclose(well_occupation(lambda x: 0, 1, 0.5, 0, 2), 3, rtol=1e-12)
    assert_allclose(well_occupation(lambda x: 0.3 * np.log1p(x**2), 0.1, 0), 1, rtol=1e-12)  # a heavy tail


def test_the_product_density_is_sharp_beside_its_peak():
    """At large β the exponent is β times the square of a small difference."""
    p, s, beta, kappa = 580.1959534024522, 580.2544276380945, 52335276.59589124, 0.058565620481373246
    with mp.workdps(25):

        def weight(x):  # over e^{-βκs}
            z = mp.mpf(beta) * kappa * x
            return (
                mp.exp(-beta * (mp.mpf(s) - x) ** 2 / 2 + beta * kappa * (mp.mpf(s) - x)) * mp.besselk(0, z) * mp.exp(z)
            )

        peak, width = mp.mpf(s) - kappa, 1 / mp.sqrt(beta)
        expected = weight(mp.mpf(p)) / mp.quad(weight, [peak + k * width for k in range(-12, 13, 6)])
    assert_allclose(product_density(p, s, beta, kappa), float(expected), rtol=1e-12)


def test_published_passage_time():
    ((_, value),) = reference("mean first passage")
    assert_allclose(mean_passage_time(double_well, 0.05, -1, 1), value, rtol=1e-12)


@pytest.mark.parametrize("force", [-1000.0, -3.0, 0.0, 0.7, 40.0])
def test_passage_times_of_a_constant_force(force):
    T, L = 0.5, 3.0  # V = −force x, reflected at 0
    got = mean_passage_time(lambda x: -force * x, T, 0, L, lower=0)
    with mp.workdps(40):
        f = mp.mpf(force)
        exact = L / f - T / f**2 * (1 - mp.exp(-f * L / T)) if force else mp.mpf(L) ** 2 / (2 * T)
    assert_allclose(got, float(exact) if exact < 1e308 else np.inf, rtol=1e-11)


@pytest.mark.parametrize(
    ("potential", "T", "start", "end"),
    [(double_well, 0.3, -1.2, 0.4), (unequal(1), 0.2, -0.9, 1.3), (parabola, 1, -2, 1)],
)
def test_passage_times_have_ten_digits(potential, T, start, end):
    def rates(x, masses):
        return np.exp(-potential(x) / T), np.exp(potential(x) / T) * masses[0] / T if x >= start else 0.0

    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-25}
    base = solve_ivp(rates, (-5, start), [0, 0], **options).y[0, -1]
    time = solve_ivp(rates, (start, end), [base, 0], **options).y[1, -1]
    assert_allclose(mean_passage_time(potential, T, start, end), time, rtol=1e-11)


def test_passage_times_follow_kramers():
    T = np.array([4e-3, 2e-3, 1e-3])  # barrier ¼, curvatures 2 and 1
    kramers = 2 * np.pi / np.sqrt(2) * np.exp(0.25 / T)
    error = np.array([mean_passage_time(double_well, t, -1, 1) for t in T]) / kramers - 1
    assert_allclose(error[:-1] / error[1:], 2, rtol=0.05)
    assert mean_passage_time(double_well, 1e-4, -1, 1) == np.inf  # e^{2500}


@pytest.mark.parametrize("T", [1e-5, 5e-6, 1e-6, 1e-9])
def test_cold_passages_take_for_ever(T):
    assert mean_passage_time(double_well, T, -1, 1) == np.inf


@pytest.mark.parametrize("far", [1e15, 1e22, 1e50, 1.7e308])
def test_bounds_that_are_practically_infinite_count_as_such(far):
    assert_allclose(well_occupation(double_well, 0.1, 0.0, upper=far), 1, rtol=1e-12)
    assert_allclose(
        well_occupation(unequal(1), 0.1, EDGE, -far, far), well_occupation(unequal(1), 0.1, EDGE), rtol=1e-12
    )
    assert_allclose(well_occupation(double_well, 1e-12, 0.0, upper=far), 1, rtol=1e-9)
    whole = mean_passage_time(double_well, 0.1, -1, 1)
    assert_allclose(mean_passage_time(double_well, 0.1, -1, 1, lower=-far), whole, rtol=1e-12)
    for bounds in ((-1, far), (-far, 1), (-far, far)):
        expected = boltzmann_density(
            double_well, 0.1, *np.where(np.abs(bounds) == far, np.sign(bounds) * np.inf, bounds)
        )
        assert_allclose(boltzmann_density(double_well, 0.1, *bounds)(0.5), expected(0.5), rtol=1e-12)
    ramp = boltzmann_density(lambda x: x, 0.1, 2, far)
    assert_allclose(ramp(2.5), 10 * np.exp(-5), rtol=1e-12)


def test_wells_that_are_far_from_the_origin_are_found_between_close_bounds():
    density = boltzmann_density(lambda x: (x - 1e8) ** 2 / 2, 0.1, 1e8 - 10, 1e8 + 10)
    assert_allclose(density(1e8), 1 / np.sqrt(0.2 * np.pi), rtol=1e-9)


def test_passage_times_add_up_and_reflect():
    whole = mean_passage_time(double_well, 0.05, -1, 1)
    parts = mean_passage_time(double_well, 0.05, -1, 0.2) + mean_passage_time(double_well, 0.05, 0.2, 1)
    assert_allclose(parts, whole, rtol=1e-12)
    assert_allclose(mean_passage_time(double_well, 0.05, -1, 1, lower=-9), whole, rtol=1e-12)
    assert mean_passage_time(double_well, 0.05, -1, 1, lower=-1) < 0.6 * whole


@pytest.mark.parametrize(("potential", "T"), [(double_well, 0.1), (unequal(2), 0.03), (parabola, 1e-4), (slope, 2)])
def test_the_density_is_normalised(potential, T):
    density = boltzmann_density(potential, T)
    x = np.linspace(-1.5, 1.5, 13)
    assert_allclose(density(x) / density(0), np.exp((potential(0 * x) - potential(x)) / T), rtol=1e-12)
    points = np.unique(np.concatenate([np.linspace(-3, 3, 41), np.linspace(-0.1, 0.1, 21), [-40, 40]]))
    total = sum(quad(density, a, b, epsabs=1e-13, limit=200)[0] for a, b in itertools.pairwise(points))
    assert_allclose(total, 1, rtol=1e-10)
    part = boltzmann_density(potential, T, -0.5, 0.8)
    assert_array_equal(part([-0.51, 0.81, 1e9]), 0)
    points = np.unique(np.concatenate([np.linspace(-0.5, 0.8, 20), np.linspace(-0.1, 0.1, 21)]))
    total = sum(quad(part, a, b, epsabs=1e-13, limit=200)[0] for a, b in itertools.pairwise(points))
    assert_allclose(total, 1, rtol=1e-10)


def test_densities_in_closed_form():
    assert_allclose(
        boltzmann_density(parabola, 0.2)([0, 1]), np.sqrt(25 / (2 * np.pi)) * np.exp([0, -12.5]), rtol=1e-12
    )
    assert_allclose(boltzmann_density(slope, 2)([0, -3, 2]), np.exp([0, -3, -2]) / 2, rtol=1e-12)
    assert_allclose(boltzmann_density(lambda x: x, 1, lower=2)([1, 2, 3]), [0, 1, np.exp(-1)], rtol=1e-12)
    assert_allclose(boltzmann_density(lambda x: -np.log(x), 1, 0, 1)(0.5), 1, rtol=1e-8)
    far = boltzmann_density(lambda x: (x - 1e5) ** 2 / 2, 1e-3)
    assert_allclose(far(1e5), np.sqrt(1e3 / (2 * np.pi)), rtol=1e-9)
    assert isinstance(far(0), np.float64)
    assert far(1e160) == 0


def test_the_chain_is_at_a_distance_of_first_order_from_its_law():
    x, weights = np.polynomial.legendre.leggauss(400)
    x, weights, T = 2.6 * x, 2.6 * weights, 0.1
    law = boltzmann_density(double_well, T, -2.6, 2.6)(x)
    distances = []
    for eta in (0.4, 0.2, 0.1, 0.05):
        mean = x - eta * x * (x**2 - 1)
        kernel = np.exp(-((x[:, None] - mean) ** 2) / (4 * T * eta)) / np.sqrt(4 * np.pi * T * eta) * weights
        chain = np.linalg.matrix_power(kernel, 2**14) @ law
        chain /= weights @ chain
        distances.append(weights @ np.abs(chain - law) / 2)
    assert_allclose(distances, [0.1776, 0.0694, 0.0314, 0.0152], atol=6e-5)


BAD_POTENTIALS = {
    "falls on both sides": (lambda x: -(x**2), {}, NoStationaryLawError, "does not confine towards -?inf"),
    "falls on one side": (lambda x: x**3, {}, NoStationaryLawError, "does not confine towards -inf.*finite bound"),
    "flat": (lambda x: 0.0, {"lower": 0}, NoStationaryLawError, "does not confine towards inf"),
    "saturates": (lambda x: -np.exp(-(x**2)), {}, NoStationaryLawError, "does not confine"),
    "NaN": (lambda x: x * np.nan, {"lower": 0, "upper": 1}, ValueError, "NaN"),
    "bottomless": (lambda x: -np.inf * np.ones_like(x), {"lower": 0, "upper": 1}, ValueError, "-inf"),
    "noise": (
        lambda x: np.random.default_rng(0).random(np.shape(x)),
        {"lower": 0, "upper": 1},
        ValueError,
        "too rough",
    ),
    "NaN everywhere": (lambda x: x * np.nan, {}, ValueError, "NaN from x = "),
    "of one number": (lambda x: float(x) ** 2, {}, ValueError, r"take an array.*numpy\.vectorize.*it raised: "),
    "of one case": (lambda x: x if x > 0 else -x, {}, ValueError, "take an array of any shape.*ambiguous"),
    "masked": (lambda x: np.ma.masked_less(x**2, 0.5), {}, ValueError, "must not have masked entries"),
    "wrong order": (parabola, {"lower": 2, "upper": 1}, ValueError, "lower < .*upper, got 2.0, .*1"),
    "no bounds": (parabola, {"lower": np.nan}, ValueError, "lower must be a real number or infinity, got nan"),
}


@pytest.mark.parametrize(
    ("potential", "bounds", "error", "message"), BAD_POTENTIALS.values(), ids=BAD_POTENTIALS.keys()
)
def test_potentials_without_a_law_raise(potential, bounds, error, message):
    with pytest.raises(error, match=message):
        well_occupation(potential, 0.1, 0.5, **bounds)
    with pytest.raises(error, match=message):
        boltzmann_density(potential, 0.1, **bounds)


@pytest.mark.parametrize("temperature", [0, -1, np.nan, np.inf])
def test_impossible_temperatures_raise(temperature):
    calls = [(well_occupation, (0,)), (mean_passage_time, (-1, 1)), (boltzmann_density, ())]
    for function, arguments in calls:
        with pytest.raises(ValueError, match=f"temperature.*got {temperature}"):
            function(double_well, temperature, *arguments)


def test_the_coldest_temperature():
    with pytest.raises(ValueError, match="temperature must be at least 1e-250"):
        well_occupation(double_well, 1e-300, 0)


def test_impossible_passages_raise():
    for start, end, lower in [(1, -1, -np.inf), (0, np.inf, -1), (-2, 1, -1), (np.nan, 1, -1), (1, 1, 0)]:
        with pytest.raises(ValueError, match=r"lower <= start < end|must be a finite real number"):
            mean_passage_time(double_well, 0.1, start, end, lower)
    with pytest.raises(NoStationaryLawError, match="does not confine towards -inf"):
        mean_passage_time(lambda x: x, 0.1, 0, 1)
    with pytest.raises(ValueError, match="start must be a finite"):
        mean_passage_time(double_well, 0.1, -np.inf, 1)


@pytest.mark.parametrize("T", [2e-3, 1e-4, 1e-5])
def test_a_second_well_behind_a_high_barrier_counts(T):
    def wells(x):
        return x**2 * (x - 2) ** 2

    assert boltzmann_density(wells, T)(0.0) == pytest.approx(boltzmann_density(wells, T, -3, 5)(0.0), rel=1e-10)
    assert well_occupation(wells, T, 0.9) == pytest.approx(1, rel=1e-10)  # not the barrier's top


def test_a_well_far_away_counts():
    def remote(x):
        return np.minimum(x**2 / 2, 5000 * (x - 300) ** 2)

    assert well_occupation(remote, 1, 100) == pytest.approx(0.01, rel=1e-10)


def test_a_passage_counts_the_time_spent_in_the_well_behind_the_start():
    def wells(x):
        return (x**2 - 1) ** 2 / 4

    bounded = mean_passage_time(wells, 4e-4, 1, 1.2, lower=-3)
    assert mean_passage_time(wells, 4e-4, 1, 1.2) == pytest.approx(bounded, rel=1e-10)


@pytest.mark.parametrize("potential", [3, None, lambda x: None, lambda x: "high", lambda x: x[:2], lambda x: 1j * x])
def test_a_potential_that_is_no_real_function_raises(potential):
    with pytest.raises(ValueError, match="potential must"):
        boltzmann_density(potential, 1, -1, 1)
