"""Checked inputs: what a user passes, as float64 arrays or plain numbers, or a `ValueError` that says what is wrong.

Every message names the argument, what was received and what was needed. `refuse_overflow` does the same for results.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
MOST = 2**53
"""The largest count: beyond it a float no longer holds every integer."""


def as_numpy(name: str, value: ArrayLike, kind: str = "array") -> np.ndarray:
    """``value`` as an array of whatever type; rows of different lengths and masked entries are a `ValueError`."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must not have masked entries, but {np.ma.count_masked(value)} are: fill or drop them")
    try:
        return np.asarray(value)
    except ValueError as error:
        article = "an" if kind == "array" else "a"
        raise ValueError(f"{name} must be {article} {kind}, but its rows have different lengths") from error


def as_array(name: str, value: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    """``value`` as a finite float64 array of one (vector) or two (matrix) dimensions.

    Parameters
    ----------
    name
        What to call the array in an error.
    value
        Anything numpy turns into a real array; integers and nested lists are welcome.
    dimensions
        1 or 2.

    Raises
    ------
    ValueError
        If it is not real, has another number of dimensions, is empty, or holds NaN or infinity.
    """
    kind = {1: "vector", 2: "matrix"}[dimensions]
    array = as_numpy(name, value, kind)
    if dimensions == 1 and array.ndim == 0:
        array = array[None]
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != dimensions or array.size == 0:
        plural = "dimension" if dimensions == 1 else "dimensions"
        raise ValueError(f"{name} must be a non-empty {kind} ({dimensions} {plural}), got shape {array.shape}")
    array = array.astype(np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = f"{name}[{', '.join(map(str, bad[0]))}]"
        raise ValueError(
            f"{name} must be finite, but {len(bad)} of its entries are not; the first is {place} = {array[*bad[0]]}"
        )
    return array


def as_matrix(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """``value`` as a finite, non-empty float64 matrix; see `as_array`."""
    return as_array(name, value, 2)


def as_vector(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """``value`` as a finite, non-empty float64 vector; a single number is one of length one. See `as_array`."""
    return as_array(name, value, 1)


def as_integer(name: str, value: int, least: int) -> int:
    """An integer from ``least`` to `MOST`.

    Raises
    ------
    ValueError
        If it is not an integer (numpy's count, floats and booleans do not), too small or too large.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    if value > MOST:
        raise ValueError(f"{name} must be at most 2**53, got a number of {int(value).bit_length()} bits")
    return int(value)


def as_flag(name: str, value: bool) -> bool:
    """``value`` as True or False; what merely counts as one of them is a `ValueError`."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def as_real(name: str, value: float) -> float:
    """``value`` as a finite float; what is not one real number is a `ValueError`."""
    number = as_numpy(name, value)
    if number.ndim or number.dtype.kind not in "iuf" or not np.isfinite(number):
        raise ValueError(f"{name} must be a finite real number, got {value!r}")
    return float(number)


def as_number(name: str, value: float, strict: bool = True) -> float:
    """``value`` as a finite float, positive or (if not ``strict``) at least 0; anything else is a `ValueError`."""
    number = as_numpy(name, value)
    if number.ndim or number.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a number, got {value!r}")
    kind = "positive" if strict else "at least 0"
    if not (number > 0 if strict else number >= 0) or number == np.inf:
        raise ValueError(f"{name} must be finite and {kind}, got {value}")
    return float(number)


def as_bound(name: str, value: float) -> float:
    """``value`` as a float that may be infinite but not NaN."""
    number = as_numpy(name, value)
    if number.ndim or number.dtype.kind not in "iuf" or np.isnan(number):
        raise ValueError(f"{name} must be a real number or infinity, got {value!r}")
    return float(number)


def as_shape(name: str, value: tuple[int, int]) -> tuple[int, int]:
    """``value`` as two positive integers."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} must be two integers (outputs, inputs), got {value!r}")
    return as_integer(f"{name}[0]", value[0], 1), as_integer(f"{name}[1]", value[1], 1)


def as_times(t: ArrayLike) -> NDArray[np.float64]:
    """Times as a vector of finite, non-negative numbers that do not decrease."""
    times = as_vector("t", t)
    if times[0] < 0:
        raise ValueError(f"t must not be negative, got t[0] = {times[0]:g}")
    if np.any(back := np.diff(times) < 0):
        k = int(np.argmax(back))
        raise ValueError(f"t must not decrease, got t[{k}] = {times[k]:g} before t[{k + 1}] = {times[k + 1]:g}")
    return times


def as_tolerance(rtol: float) -> float:
    """A relative tolerance that the solver can keep, or a `ValueError`."""
    least = 100 * np.finfo(float).eps
    if not least <= as_bound("rtol", rtol) < 1:
        raise ValueError(f"rtol must be at least {least:.3g} (what float64 allows) and below 1, got {rtol}")
    return float(rtol)


def real_arrays(least: dict[str, float] | None = None, infinite: str = "", **values: ArrayLike) -> list[Floats]:
    """The values as float64 arrays of one shape, not below ``least``, finite but for the one called ``infinite``."""
    arrays = {}
    for name, value in values.items():
        array = as_numpy(name, value)
        if array.dtype.kind not in "biuf" or array.size == 0:
            raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype} and shape {array.shape}")
        arrays[name] = array = array.astype(np.float64)
        bad = np.isnan(array) if name == infinite else ~np.isfinite(array)
        if bad.any():
            rule = "not be NaN" if name == infinite else "be finite"
            raise ValueError(f"{name} must {rule}: {bad.sum()} of {array.size} values fail, first {array[bad][0]}")
        low = (least or {}).get(name, -np.inf)
        if array.min() < low:
            raise ValueError(f"{name} must be at least {low:g}, got {array.min():g}: {low - array.min():g} too low")
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"the shapes do not broadcast: {shapes}") from error


def as_generator(rng: np.random.Generator) -> np.random.Generator:
    """A numpy random generator, and not a seed."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy.random.Generator such as numpy.random.default_rng(0), got {rng!r}")
    return rng


def is_finite(result: object) -> bool:
    """Whether all numbers in arrays, sequences and dataclasses are finite."""
    if dataclasses.is_dataclass(result):
        return all(is_finite(getattr(result, field.name)) for field in dataclasses.fields(result))
    if isinstance(result, list | tuple):
        return all(map(is_finite, result))
    array = np.asarray(result)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def refuse_overflow(function: Callable) -> Callable:
    """Decorate a function of finite numbers whose result is finite: where it is not, float64 was too small for it.

    The result is a `ValueError` then, in place of warnings with infinity or NaN.
    """

    @functools.wraps(function)
    def checked(*args, **kwargs):
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                result = function(*args, **kwargs)
            if is_finite(result):
                return result
        except (OverflowError, ZeroDivisionError):
            pass
        raise ValueError(
            f"{function.__name__}: numbers as large or small as these leave the range of float64 on the way, 1e-308 to "
            "1e308; rescale them"
        )

    return checked
