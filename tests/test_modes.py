"""Scalar modes against 50-digit closed forms, an independent integrator, limits with their rates, and symmetries."""

import inspect
import json
from functools import partial
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from lindyn_lite.modes import (
    crossing_time,
    deep_passage_time,
    half_time,
    lambda_balanced,
    linearised,
    logistic,
    mixed,
    passage_time,
    progress,
)

pytestmark = pytest.mark.filterwarnings("error")
VALUES = Path(__file__).parent / "values"
EXERCISES = json.loads((VALUES / "exercises.json").read_text(encoding="utf-8"))
THEOREMS = json.loads((VALUES / "lambda_balanced.json").read_text(encoding="utf-8"))
PUBLIC = [
    logistic,
    linearised,
    mixed,
    progress,
    lambda_balanced,
    passage_time,
    half_time,
    crossing_time,
    deep_passage_time,
]


def reference(name, **inputs):
    """Values of the entries whose name starts like this, with their inputs as numbers."""
    found = [e for e in EXERCISES if e["name"].startswith(name) and inputs.items() <= e["inputs"].items()]
    assert found
    return [({key: float(value) for key, value in e["inputs"].items()}, float(e["value"])) for e in found]


def exact_mode(t, s, w0, tau):
    """The mixed mode by its tangent form (6.1), and the logistic with its sign cases where tau = 0."""
    t, s, w0, tau = (mp.mpf(value) for value in (t, s, w0, tau))
    if tau == 0:
        if w0 == 0 or s == 0:
            return w0 / (1 + 2 * abs(w0) * t)
        sign = mp.sign(w0)  # for w > 0 the equation is ẇ = 2w(s − w) with s of any sign
        s, w0 = sign * s, sign * w0
        return sign * s / (1 + (s / w0 - 1) * mp.exp(-2 * s * t))
    target, start = mp.atan(s / tau), mp.atan(w0 / tau)
    decay = mp.exp(-2 * mp.sqrt(s**2 + tau**2) * t)
    return tau * mp.tan(target + 2 * mp.atan(mp.tan((start - target) / 2) * decay))


def exact_passage(s, w0, wf, tau):
    """The time by the same form; mpmath.inf where the mode never arrives."""
    s, w0, wf, tau = (mp.mpf(value) for value in (s, w0, wf, tau))
    if w0 == wf:
        return mp.mpf(0)
    if wf == s or (wf - w0) / (s - wf) < 0 or (tau == 0 and w0 * wf <= 0):
        return mp.inf
    if tau == 0:
        sign = mp.sign(w0)
        return abs(1 / wf - 1 / w0) / 2 if s == 0 else mp.log(wf * (s - w0) / (w0 * (s - wf))) / (2 * sign * s)
    angle, r = (lambda w: mp.tan((mp.atan(w / tau) - mp.atan(s / tau)) / 2)), mp.sqrt(s**2 + tau**2)
    return mp.log(angle(w0) / angle(wf)) / (2 * r)


def log_grid(count, seed, zeros=True):
    """Random s, w0 and tau with ratios to tau from 1e-8 to 1e8 and every sign; some zero, some equal, some close."""
    rng = np.random.default_rng(seed)
    tau = np.where(rng.random(count) < 0.15, 0, 10 ** rng.uniform(-3, 3, count))
    scale = np.where(tau == 0, 1, tau)
    s, w0 = (scale * 10 ** rng.uniform(-8, 8, count) * rng.choice([-1, 1], count) for _ in range(2))
    if zeros:
        s, w0 = (np.where(rng.random(count) < 0.06, 0, value) for value in (s, w0))
    close = rng.random(count) < 0.06
    w0 = np.where(close, s * (1 + rng.choice([0, 1e-12, -1e-6], count)), w0)
    return rng, s, w0, tau


def times_for(rng, s, w0, tau):
    """Times from far before to far after everything happens."""
    r = np.maximum(np.hypot(s, tau), 1e-9 * np.abs(w0) + 1e-300)
    early = 10 ** rng.uniform(-9, 2, s.size) / np.where(rng.random(s.size) < 0.5, r, r + np.abs(w0))
    return np.select([rng.random(s.size) < 0.5, rng.random(s.size) < 0.95], [early, rng.uniform(0, 60, s.size) / r], 0)


def worst(values, exact, scale):
    return max(
        float(abs(mp.mpf(float(v)) - e) / d) if v != e else 0 for v, e, d in zip(values, exact, scale, strict=True)
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_mixed_mode_has_13_digits_for_all_signs_and_sizes(seed):
    rng, s, w0, tau = log_grid(800, seed)
    t = times_for(rng, s, w0, tau)
    with mp.workdps(120):
        exact = [exact_mode(*point) for point in zip(t, s, w0, tau, strict=True)]
        # where w crosses zero: relative to |w| + min(|s|, τ, |w0|), else to |w|
        floor = np.where(s * w0 < 0, np.minimum(tau, np.minimum(np.abs(s), np.abs(w0))), 0)
        scale = [abs(e) + f + mp.mpf("1e-290") for e, f in zip(exact, floor, strict=True)]
        assert worst(mixed(t, s, w0, tau), exact, scale) < 1e-13
        assert worst(lambda_balanced(t, s, w0, -2 * tau), exact, scale) < 1e-13
        plain = tau == 0
        pick = [i for i in range(len(t)) if plain[i]]
        errors = worst(logistic(t, s, w0)[plain], [exact[i] for i in pick], [scale[i] for i in pick])
        assert len(pick) > 80 and errors < 1e-13


@pytest.mark.parametrize("seed", range(2))
def test_progress_has_13_digits_on_both_sides(seed):
    rng, s, w0, tau = log_grid(400, seed)
    t = times_for(rng, s, w0, tau)
    t = np.minimum(t, 300 / np.maximum(np.hypot(s, tau), 1e-300))
    with mp.workdps(350):
        exact = [exact_mode(*point) for point in zip(t, s, w0, tau, strict=True)]
        moving = [i for i in range(len(t)) if s[i] != w0[i]]
        done = [(exact[i] - mp.mpf(w0[i])) / (mp.mpf(s[i]) - mp.mpf(w0[i])) for i in moving]
        left = [(mp.mpf(s[i]) - exact[i]) / (mp.mpf(s[i]) - mp.mpf(w0[i])) for i in moving]
        for values, wanted in zip(progress(t, s, w0, 2 * tau), (done, left), strict=True):
            assert worst(values[moving], wanted, [abs(e) + mp.mpf("1e-300") for e in wanted]) < 1e-13


@pytest.mark.parametrize("seed", range(2))
def test_passage_times_have_13_digits_in_every_corner(seed):
    rng, s, w0, tau = log_grid(800, seed)
    part = np.where(rng.random(s.size) < 0.5, rng.random(s.size), 10 ** rng.uniform(-12, 0, s.size))
    wf = np.where(rng.random(s.size) < 0.5, w0 + (s - w0) * part, s - (s - w0) * part)
    wf = np.where(rng.random(s.size) < 0.05, rng.choice([-1, 1], s.size) * w0, wf)
    times = passage_time(s, w0, wf, tau)
    with mp.workdps(80):
        exact = [exact_passage(*point) for point in zip(s, w0, wf, tau, strict=True)]
        assert_array_equal(np.isinf(times), [mp.isinf(e) for e in exact])
        finite = [i for i in range(len(times)) if np.isfinite(times[i])]
        assert 300 < len(finite)
        wanted = [exact[i] for i in finite]
        assert worst(times[finite], wanted, [e + mp.mpf("1e-300") for e in wanted]) < 1e-14


def test_a_tiny_floor_still_lets_a_negative_mode_through():
    t = np.linspace(0, 720, 40)
    with mp.workdps(700):
        assert_allclose(passage_time(1, -1, 0.9, 1e-300), float(exact_passage(1, -1, 0.9, 1e-300)), rtol=1e-13)
        exact = [exact_mode(x, 1, -1, 1e-300) for x in t]
        assert worst(mixed(t, 1, -1, 1e-300), exact, [abs(e) for e in exact]) < 1e-12
    assert_allclose(mixed(np.inf, 1, [-1, 0, 1e-300], 1e-300), 1, rtol=1e-15)


def test_published_values():
    for inputs, value in reference("logistic_mode"):
        assert_allclose(logistic(**inputs), value, rtol=1e-14)
    for inputs, value in reference("mixed_mode"):
        assert_allclose(mixed(**inputs), value, rtol=1e-14)
    for inputs, value in reference("learning_time"):
        assert_allclose(passage_time(inputs["s"], inputs["w0"], inputs["wf"]), value, rtol=1e-14)
    for inputs, value in reference("crossing_time"):
        assert_allclose(crossing_time(**inputs), value, rtol=1e-14)
    for inputs, value in reference("half time"):
        assert_allclose(half_time(w0=0, **inputs), value, rtol=1e-14)
    for inputs, value in reference("depth_L"):
        time = deep_passage_time(inputs["s"], inputs["w0"], inputs["wf"], int(inputs["L"]))
        assert_allclose(time, value, rtol=1e-14)
    ((_, limit),) = reference("crossing time * 2s")
    assert_allclose(crossing_time(1, 1e-9) * 2, limit, rtol=1e-8)
    assert_allclose(deep_passage_time(1, 1e-4, 0.5, 3), 20.6930189, rtol=1e-8)
    ((_, ratio),) = reference("learning-time ratio")
    assert_allclose(half_time(1, 1e-3, 0) / half_time(10, 1e-3, 0), ratio, rtol=1e-14)
    ((inputs, value),) = reference("5.2 time to s(1+eps)")
    assert_allclose(passage_time(1, 100, 1.01), value, rtol=1e-13)
    ((_, peak),) = reference("s/w0 below which")
    slowest = minimize_scalar(lambda s: -half_time(s, 1, 0), bounds=(3, 8), method="bounded", options={"xatol": 1e-10})
    assert_allclose(slowest.x, peak, rtol=1e-6)
    assert_allclose(half_time(peak, 1, 0), -slowest.fun, rtol=1e-14)
    for entry in (e for e in THEOREMS if e["kind"] == "reversal"):
        i = entry["inputs"]
        time = passage_time(i["s_target"], i["s0"], i["level"] * i["s_target"], i["lam"] / 2)
        assert_allclose(time, float(entry["outputs"]["t"]), rtol=1e-14)


@pytest.mark.parametrize("entry", [e for e in THEOREMS if e["kind"] == "thm5.1"], ids=lambda e: e["id"])
def test_published_progress(entry):
    i, wanted = entry["inputs"], {key: float(value) for key, value in entry["outputs"].items()}
    gamma, left = progress(i["t"], i["s_target"], i["s0"], i["lam"])
    assert_allclose([gamma, left], [wanted["gamma"], wanted["one_minus_gamma"]], rtol=1e-14)
    assert_allclose(lambda_balanced(i["t"], i["s_target"], i["s0"], i["lam"]), wanted["s"], rtol=1e-14)


def test_theorem_5_1_as_printed_solves_the_mixed_equation():
    with mp.workdps(50):
        for s, w0, lam in [(1, 0.05, 3), (2, -1, 0.1), (0.3, 5, 20)]:
            s, w0, lam = mp.mpf(s), mp.mpf(w0), mp.mpf(lam)
            r, r0, k = mp.sqrt(s**2 + lam**2 / 4), mp.sqrt(w0**2 + lam**2 / 4), s * w0 + lam**2 / 4
            p, q = r * r0 + k, r * r0 - k

            def w(t, s=s, w0=w0, r=r, p=p, q=q):
                e = mp.exp(-2 * r * t)
                N = (1 - e) * (p + q * e)
                return w0 + N / (N + 2 * r**2 * e) * (s - w0)

            for t in (mp.mpf(1) / 64, mp.mpf(1) / 4, mp.mpf(1)):
                assert abs(mp.diff(w, t) - mp.sqrt(4 * w(t) ** 2 + lam**2) * (s - w(t))) < mp.mpf("1e-20")
                assert abs(w(t) - exact_mode(t, s, w0, lam / 2)) < mp.mpf("1e-45")
                assert_allclose(lambda_balanced(*(float(x) for x in (t, s, w0, lam))), float(w(t)), rtol=1e-13)


EQUATIONS = {
    "logistic": (logistic, (1.5, 0.02), lambda w, s, w0: 2 * abs(w) * (s - w)),
    "logistic, opposite signs": (logistic, (1.5, -0.4), lambda w, s, w0: 2 * abs(w) * (s - w)),
    "logistic, both negative": (logistic, (-1.5, -0.1), lambda w, s, w0: 2 * abs(w) * (s - w)),
    "logistic, no target": (logistic, (0, -0.7), lambda w, s, w0: 2 * abs(w) * (s - w)),
    "linearised": (linearised, (1, -2, 0.7), lambda w, s, w0, kernel: kernel * (s - w)),
    "mixed": (mixed, (-1.2, 0.9, 0.1), lambda w, s, w0, tau: 2 * np.hypot(w, tau) * (s - w)),
    "mixed, no target": (mixed, (0, -0.9, 0.3), lambda w, s, w0, tau: 2 * np.hypot(w, tau) * (s - w)),
    "lambda": (lambda_balanced, (1, 0.1, -4), lambda w, s, w0, lam: np.sqrt(4 * w**2 + lam**2) * (s - w)),
}


@pytest.mark.parametrize(("mode", "arguments", "rate"), EQUATIONS.values(), ids=EQUATIONS.keys())
def test_the_closed_forms_solve_their_equations(mode, arguments, rate):
    t = np.linspace(0, 4, 30)
    run = solve_ivp(
        lambda _, w: rate(w, *arguments), (0, 4), [arguments[1]], t_eval=t, method="DOP853", rtol=1e-12, atol=1e-14
    )
    assert_allclose(mode(t, *arguments), run.y[0], rtol=1e-9, atol=1e-11)


def test_deep_passage_times_follow_from_an_integrator():
    for depth, s, w0, t in [(3, 2, 0.1, 0.7), (5, 1, 3, 0.2), (4, -1, 0.8, 0.3), (3, 0, 1, 0.5), (6, -2, -0.3, 0.2)]:
        rate = partial(lambda _, w, s, L: L * np.abs(w) ** (2 - 2 / L) * (s - w), s=s, L=depth)
        run = solve_ivp(rate, (0, t), [w0], method="DOP853", rtol=1e-12, atol=1e-14)
        assert_allclose(deep_passage_time(s, w0, run.y[0, -1], depth), t, rtol=1e-10)


def exact_depth(s, w0, wf, L):
    """``x^{2−L}/(2−L) ± (x²/2) ₂F₁(1, 2/L; 1 + 2/L; ±x^L)`` with x^L = w/|s|, w0 > 0 and L > 2."""
    s, w0, wf = (mp.mpf(value) for value in (s, w0, wf))
    sign = mp.sign(s)

    def primitive(w):
        v = w / abs(s)
        x = v ** (mp.mpf(1) / L)
        tail = mp.hyp2f1(1, mp.mpf(2) / L, 1 + mp.mpf(2) / L, sign * v)
        return mp.re(sign * x ** (2 - L) / (2 - L) + x**2 / 2 * tail)

    return (primitive(wf) - primitive(w0)) / abs(s) ** (2 - mp.mpf(2) / L)


@pytest.mark.parametrize("depth", [2, 3, 4, 7, 50])
def test_deep_passage_times_have_12_digits(depth):
    rng = np.random.default_rng(depth)
    s = 10 ** rng.uniform(-3, 3, 60)
    w0 = s * 10 ** np.concatenate([rng.uniform(-12, 0, 30), rng.uniform(0, 8, 30)])
    part = np.where(rng.random(60) < 0.3, 10 ** rng.uniform(-12, 0, 60), rng.random(60))
    wf = np.where(rng.random(60) < 0.5, w0 * (s / w0) ** part, s - (s - w0) * 10 ** rng.uniform(-12, 0, 60))
    wf = np.where(wf == s, s * (1 + np.sign(w0 - s) * 1e-12), wf)
    with mp.workdps(60):
        form = partial(exact_depth, L=depth) if depth > 2 else lambda s, w0, wf: exact_passage(s, w0, wf, 0)
        exact = [form(*point) for point in zip(s, w0, wf, strict=True)]
        assert worst(deep_passage_time(s, w0, wf, depth), exact, exact) < 1e-12
        down = np.where(w0 < s, w0 * 0.3, wf)  # towards a target of the other sign
        exact = [form(*point) for point in zip(-s, w0, down, strict=True)]
        assert worst(deep_passage_time(-s, w0, down, depth), exact, exact) < 1e-12
        assert_allclose(deep_passage_time(s, -w0, -down, depth), [float(e) for e in exact], rtol=1e-12)


def test_deep_passage_times_at_the_edges():
    assert_array_equal(
        deep_passage_time([1, 1, 1, 1, 0, -1, 1], [1, 2, 2, 0, 1, 1, -1], [2, 3, 1, 1, 0, -1, 1], 3), np.inf
    )
    assert_array_equal(deep_passage_time([1, 0, 0], [0.3, 0, 2], [0.3, 0, 2], 5), 0)
    assert_allclose(deep_passage_time(0, [4, -4], [1, -1], 2), (1 - 1 / 4) / 2, rtol=1e-15)
    assert_allclose(deep_passage_time(0, 8, 1, 4), (1 - 8**-1.5) / 6, rtol=1e-15)
    assert deep_passage_time(1, 1e-300, 0.5, 2) == pytest.approx(np.log(1e300) / 2, rel=1e-12)
    assert 0 < deep_passage_time(1e300, 5e-324, 1e299, 2) < 1e-290
    assert isinstance(deep_passage_time(1, 0.1, 0.5, np.int64(3)), float)
    times = [deep_passage_time(1, 1e-2, 0.5, 10**k) for k in range(2, 6)]  # L → ∞: t L → ∫ dw/w²(1−w)
    whole = 1 / 0.01 - 2 + np.log(0.5 / 0.01 * 0.99 / 0.5)
    errors = [abs(time * 10**k / whole - 1) for k, time in enumerate(times, start=2)]
    assert_allclose(np.array(errors[1:]) / errors[:-1], 0.1, rtol=0.1)


def test_edges_of_the_modes():
    t = np.array([0, 1e-3, 1, 1e3, 1e300, np.inf])
    assert_array_equal(logistic(t, [[3], [-3], [0]], 0), np.zeros((3, 6)))
    assert_array_equal(mixed(t, 0, 0, [[0], [2]]), np.zeros((2, 6)))
    assert_allclose(mixed(t, -2.5, -2.5, [[0], [1e-8], [1], [1e8]]), -2.5, rtol=1e-15)
    assert_allclose(logistic(0, [1, -1, 0, 7], [-3, 3, 1e-9, 0]), [-3, 3, 1e-9, 0], rtol=1e-15)
    assert_array_equal(logistic(np.inf, [1, 1, -1, -1, 0, 0, 1], [-3, 3, 3, -3, 2, -2, 0]), [0, 1, 0, -1, 0, 0, 0])
    assert_allclose(mixed(np.inf, [1, 1, -1, 0], [-3, 0, 3, 2], 1e-9), [1, 1, -1, 0], rtol=1e-15)
    assert_array_equal(linearised([0, 1e9, np.inf], 1, 3, [[0], [2]]), [[3, 3, 3], [3, 1, 1]])
    assert_allclose(linearised(1e-17, 1, 2, 3), 2, rtol=1e-15)
    assert_allclose(np.subtract(1, linearised(1e-17, 1, 0, 3)), 1, rtol=1e-15)
    assert_allclose(linearised(1e-17, 1, 0, 3), 3e-17, rtol=1e-15)
    assert_array_equal(
        progress(np.inf, 1, [0.5, 0, -3], [[0], [1]]), [[[1, 0, 0.75], [1, 1, 1]], [[0, 1, 0.25], [0, 0, 0]]]
    )
    assert_array_equal(progress(0, [1, 0], [2, 0], 1), [[0, 0], [1, 1]])
    assert_array_equal(crossing_time([1, 1, 0, -1, 1], [1, 2, 1, 0.5, 0]), [np.inf, np.inf, np.inf, np.inf, 0])
    assert_array_equal(half_time(1, [0.5, 0.7, 0, -1], 0), [0, np.inf, np.inf, np.inf])
    for scale in (1e-300, 1e300):
        assert_allclose(mixed(0.3 / scale, scale, -2 * scale, scale / 2), mixed(0.3, 1, -2, 0.5) * scale, rtol=1e-14)
        assert_allclose(passage_time(scale, -scale, scale / 2, scale), passage_time(1, -1, 0.5, 1) / scale, rtol=1e-14)


def test_shapes_and_types():
    for value in (
        mixed(1, 2, 3, 4),
        logistic(1, 2, 3),
        linearised(1, 2, 3, 4),
        *progress(1, 2, 3, 4),
        crossing_time(2, 1),
    ):
        assert isinstance(value, np.float64)
    assert mixed([[1], [2]], [1, 2, 3], 0.1, np.float32(1)).shape == (2, 3)
    assert passage_time([[1], [2]], [0.1, 0.2, 0.3], 0.5).shape == (2, 3)
    assert logistic(np.arange(3), 2, 1).dtype == np.float64
    t = np.arange(3.0)
    before = t.copy()
    mixed(t, 2, 1, 1)
    assert_array_equal(t, before)


sizes = st.floats(1e-8, 1e8)
signed = st.builds(lambda size, sign: size * sign, sizes, st.sampled_from([-1, 1, 0]))
floors = st.one_of(sizes, st.just(0.0))
clocks = st.floats(0, 5)


@settings(max_examples=150, deadline=None)
@given(clocks, clocks, signed, signed, floors)
@example(1.0, 2.0, 1.0, -1.0, 0.0)
def test_flows_compose(first, second, s, w0, tau):
    unit = np.hypot(s, tau) + abs(w0) + 1e-300
    a, b = first / unit, second / unit
    stops = mixed(b, s, mixed(a, s, w0, tau), tau)
    assert abs(stops - mixed(a + b, s, w0, tau)) <= 1e-12 * (abs(stops) + min(abs(s), abs(w0)) * (s * w0 < 0))


@settings(max_examples=150, deadline=None)
@given(st.lists(clocks, min_size=2, max_size=20), signed, signed, floors)
def test_modes_move_monotonically_towards_their_target(times, s, w0, tau):
    w = mixed(np.sort(times) / (np.hypot(s, tau) + 1e-3 * abs(w0) + 1e-300), s, w0, tau)
    rounding = 1e-14 * (abs(s) + abs(w0))
    assert np.all(np.diff(w) * np.sign(s - w0) >= -rounding)
    assert np.all((w >= min(s, w0) - rounding) & (w <= max(s, w0) + rounding))


@settings(max_examples=150, deadline=None)
@given(clocks, signed, signed, floors, st.integers(-40, 40))
def test_symmetries(t, s, w0, tau, power):
    w, c = mixed(t, s, w0, tau), 2.0**power
    assert mixed(t, -s, -w0, tau) == -w
    assert mixed(t / c, c * s, c * w0, c * tau) == c * w
    half = s + (w0 - s) / 2
    assert passage_time(-s, -w0, -half, tau) == passage_time(s, w0, half, tau)
    assert passage_time(c * s, c * w0, c * half, c * tau) * c == passage_time(s, w0, half, tau)


@settings(max_examples=150, deadline=None)
@given(signed, signed, floors, st.floats(1e-6, 1 - 1e-6))
def test_a_passage_time_is_the_time_of_passage(s, w0, tau, part):
    wf = w0 + part * (s - w0)
    time = passage_time(s, w0, wf, tau)
    assume(np.isfinite(time))
    slope = 2 * np.hypot(wf, tau) * abs(s - wf) * time  # what an error of time does to w
    assert abs(mixed(time, s, w0, tau) - wf) <= 1e-13 * (slope + abs(s) + abs(w0))


def sup(curve, low, high):
    """The largest value on a log-grid of times, refined."""
    t = np.geomspace(low, high, 4000)
    k = int(np.argmax(curve(t)))
    best = minimize_scalar(lambda x: -curve(x), bounds=(t[k - 1], t[k + 1]), method="bounded", options={"xatol": 1e-12})
    return -best.fun


def test_limits_have_the_rates_of_the_text():
    def lazy_error(tau):
        return sup(lambda t: abs(mixed(t, 1, 0, tau) - linearised(t, 1, 0, 2 * tau)), 1e-3 / tau, 30 / tau) * tau**2

    ((_, limit),) = reference("lazy limit")
    errors = np.array([lazy_error(tau) for tau in (10, 20, 40, 80)]) / limit - 1
    assert np.all(np.abs(errors) < [2e-2, 5e-3, 2e-3, 1e-3])
    assert_allclose(errors[1:] / errors[:-1], 0.25, rtol=0.1)  # the next order is (s/τ)⁴
    ((_, limit),) = reference("5.2 sup_t")
    claimed = [
        sup(lambda t, w0=w0: abs(logistic(t, 1, w0) - linearised(t, 1, w0, 2 * w0)), 1e-3 / w0, 1e3 / w0) / w0
        for w0 in (1e4, 1e6)
    ]
    assert_allclose((limit - np.array(claimed)) / limit, [2.3e-4, 2.3e-6], rtol=0.05)  # first order in s/w0
    small = sup(lambda t: abs(logistic(t, 1, 1.001) - linearised(t, 1, 1.001, 2.002)), 1e-3, 30) / 1e-3**2
    assert_allclose(small, 0.1619, rtol=2e-3)  # remedy A
    centred = sup(lambda t: abs(logistic(t, 1e3 + 1, 1e3) - linearised(t, 1e3 + 1, 1e3, 2e3)), 1e-6, 3e-2) * 1e3
    assert_allclose(centred, 0.161903, rtol=2e-3)  # remedy B
    rich = [
        sup(lambda t, tau=tau: abs(mixed(t, 1, 0.05, tau) - logistic(t, 1, 0.05)), 1e-2, 20) for tau in (2e-4, 1e-4)
    ]
    assert_allclose(np.array(rich) / [4 * 4e-8, 4e-8], 6.844, rtol=1e-3)  # theorem 5.1: 6.844 λ², λ = 2τ
    far = sup(lambda t: abs(lambda_balanced(t, 1, 0.05, 400) - linearised(t, 1, 0.05, 400)), 1e-5, 0.1) * 400**2
    assert_allclose(far, 0.2062, rtol=1e-3)
    tau = np.array([1e-6, 1e-9])
    assert_allclose(half_time(1, 0, tau), np.log(2 / tau) / 2, rtol=1e-6)
    textbook = -np.log1p(-tau) / (2 * tau)
    assert_allclose(textbook / crossing_time(1, tau), 1.13459265710651, rtol=1e-5)
    assert_allclose(crossing_time(1, 1 / 1.0001), -np.log1p(-1 / 1.0001) * 1.0001 / 2 / 1.34, rtol=5e-3)


BAD = {
    "NaN": (np.nan, "{}.*NaN|{}.*finite"),
    "complex": (1j, "{} must hold real"),
    "text": ("a", "{} must hold real"),
    "None": (None, "{} must hold real"),
    "empty": ([], r"{} must hold real numbers, got dtype float64 and shape \(0,\)"),
    "ragged": ([[1], [1, 2]], "{} must be an array"),
    "minus infinity": (-np.inf, "{} must be"),
}


@pytest.mark.parametrize("function", PUBLIC, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("value", "message"), BAD.values(), ids=BAD.keys())
def test_bad_values_raise_with_their_name(function, value, message):
    good = {name: 0.5 for name in inspect.signature(function).parameters}
    if "depth" in good:
        good["depth"] = 3
    for name in good:
        if name != "depth":
            with pytest.raises(ValueError, match=message.replace("{}", name)):
                function(**{**good, name: value})
    for name in {"t", "tau", "kernel"} & set(good):
        with pytest.raises(ValueError, match=f"{name} must be at least 0, got -1e-09: 1e-09 too low"):
            function(**{**good, name: [1, -1e-9]})
    for name in set(good) - {"t", "depth"}:
        with pytest.raises(ValueError, match=f"{name} must be finite"):
            function(**{**good, name: np.inf})
    with pytest.raises(ValueError, match=r"do not broadcast: .*\(2,\).*\(3,\)"):
        function(**{**good, **dict(zip(good, ([1, 2], [1, 2, 3]), strict=False))})


@pytest.mark.parametrize("depth", [1, 0, -3, 2.5, 3.0, "3", None, True])
def test_an_impossible_depth_raises(depth):
    with pytest.raises(ValueError, match=f"depth must be.*got {depth!r}"):
        deep_passage_time(1, 0.1, 0.5, depth)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_deep_mode_never_reaches_its_target_and_its_neighbours_do_not_mind(depth):
    times = deep_passage_time([1, 1, -1], [0.1, 0.1, -0.1], [0.5, 1, -1], depth)
    assert np.isfinite(times[0]) and np.all(np.isinf(times[1:]))
