"""Assertions about models, in the style of numpy.testing: ``assert_matches`` and ``check_clean``.

Both raise AssertionError with a message that explains the failure. Strategies for hypothesis are in
``irrun.testing.strategies``.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, SupportsIndex

import numpy as np

from irrun.api import PathLike, check, compile
from irrun.checking.render import text
from irrun.debug.tolerances import TOLERANCES as TYPE_TOLERANCES
from irrun.inference.unseeded import unseeded_behind
from irrun.model import Model
from irrun.model.weights import strings_of
from irrun.running.executor import Executable, Feeds, Outputs
from irrun.types import ELEMENT_TYPES, ElementType, array_from, as_text

__all__ = ["TOLERANCES", "Tolerance", "assert_matches", "check_clean", "difference"]

Tolerance = float | Mapping[str, float] | None
"""A number for all element types, or numbers for some (``{"f16": 1e-2}``). A type without a number has its default."""

TOLERANCES: Final = TYPE_TOLERANCES
"""Default (rtol, atol) by element type. Every other type is compared exactly."""


def assert_matches(
    model: Executable | Model | PathLike,
    feeds: Feeds,
    expected: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
) -> Outputs:
    """Run a model and compare its outputs with ``expected``: element type, shape and every element.

    ``expected`` is one of these:

    - a mapping from output names or positions to arrays (an output without an entry is not compared),
    - a sequence of the arrays of all outputs, or the array of the only output,
    - another model (a path, Model or Executable). It is run on the same feeds, and a failure also names the first
      layer whose output differs between the two models.

    An element fails if it differs by more than ``atol + rtol * abs(expected)``. NaN equals NaN. Expected lists and
    numbers are converted to the element type of the output.

    Returns the outputs. Raises AssertionError.
    """
    __tracebackhide__ = True
    actual = _executable(model)
    reference = _executable(expected) if isinstance(expected, (str, os.PathLike, Model, Executable)) else None
    is_first = not actual.state and not (reference and reference.state)
    outputs = actual(feeds)
    wanted = _by_position(actual, outputs, reference(feeds) if reference else expected)
    if not wanted:
        raise AssertionError(f"{actual.model.source.path}: no output is expected, so that nothing was compared")
    failures: list[str] = []
    for position, array in wanted.items():
        lines = difference(outputs[position], array, rtol, atol)
        if lines:
            failures.append(f"{_title(actual.model, position)}\n" + "".join(f"  {line}\n" for line in lines))
    if failures:
        count = len(failures)
        failures += _unseeded(actual.model, wanted)
        if reference and is_first:
            failures.append(_first_divergent(actual, reference, feeds, rtol, atol))
        of = f"{count} of {len(wanted)} outputs " if len(wanted) > 1 else ""
        raise AssertionError(f"{actual.model.source.path}: {of}not as expected\n\n{''.join(failures)}".rstrip())
    return outputs


def check_clean(path: Model | PathLike, allow: Sequence[str] = ()) -> None:
    """Check a model. Raises AssertionError that lists the errors and warnings whose codes are not in ``allow``."""
    __tracebackhide__ = True
    findings = [d for d in check(path) if d.code not in allow]
    if findings:
        raise AssertionError("\n" + "\n".join(text(d).plain for d in findings).rstrip())


def difference(actual: np.ndarray, expected: Any, rtol: Tolerance = None, atol: Tolerance = None) -> tuple[str, ...]:
    """Return lines of text that describe how an array differs from ``expected``; none if it does not."""
    own = ElementType.of(actual.dtype)
    assert own is not None
    if own.kind == "string":
        expected = _strings(expected, actual.shape)
    if not isinstance(expected, (np.ndarray, np.generic)):
        try:
            expected = np.asarray(expected).astype(actual.dtype)
        except (TypeError, ValueError) as error:
            return (f"expected cannot become an array of {own}: {error}",)
    expected = np.asarray(expected)
    if _bare(expected.dtype, actual.dtype):
        expected = expected.view(actual.dtype)
    other = ElementType.of(expected.dtype)
    if other is not own:
        return (f"element type {own}, expected {other or expected.dtype}",)
    if actual.shape != expected.shape:
        return (f"shape {_dims(actual.shape)}, expected {_dims(expected.shape)}",)
    relative, absolute = tolerance(own, rtol, atol)
    far, distance = _compare(own, actual, expected, relative, absolute)
    count = int(np.count_nonzero(far))
    if not count:
        return ()
    limits = f"rtol {relative:g}, atol {absolute:g}" if relative or absolute else "compared exactly"
    lines = [f"{count:,} of {far.size:,} elements {'differs' if count == 1 else 'differ'} ({limits})"]
    if distance is None:
        at = tuple(int(i) for i in np.argwhere(far)[0])
        lines.append(f"first at {_dims(at)}: {actual[at]!s}, expected {expected[at]!s}")
    else:
        distance = np.where(far, distance, -1)
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(distance)), far.shape))
        off = f" (off by {distance[at]:.6g})" if np.isfinite(distance[at]) else ""
        lines.append(f"worst at {_dims(at)}: {_number(actual[at])}, expected {_number(expected[at])}{off}")
    lines.append(f"{own} {_dims(actual.shape)}")
    return tuple(lines)


def tolerance(element_type: ElementType, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """Return (rtol, atol) for an element type. Raises ValueError if a mapping names an unknown element type."""
    defaults = TOLERANCES.get(element_type.name, (0.0, 0.0))
    limits = []
    for limit, default in zip((rtol, atol), defaults):
        if isinstance(limit, Mapping):
            unknown = [name for name in limit if name not in ELEMENT_TYPES]
            if unknown:
                raise ValueError(f"{unknown[0]!r} is not an element type; write it as f32 or i64")
            limit = limit.get(element_type.name)
        limits.append(default if limit is None else float(limit))
    return limits[0], limits[1]


def like(array: np.ndarray, dtype: np.dtype | None) -> np.ndarray:
    """Return an array from an ``.npz`` in the dtype that it had when it was saved.

    Numpy saves bf16, f8 and 4-bit types as opaque bytes; such an array is viewed as ``dtype``. Strings that it cannot
    hold are saved as the bytes of a string constant; they come back as an array of rank 1. Any other array is returned
    as it is.
    """
    if dtype is not None and dtype.hasobject and array.dtype.kind == "u":
        return strings_of(array)
    return array.view(dtype) if dtype is not None and _bare(array.dtype, dtype) else array


# ---------------------------------------------------------------------------------------------


def _strings(expected: Any, shape: tuple[int, ...]) -> Any:
    """Return expected strings as a string tensor. What holds no strings is returned as it is.

    Those that ``storable`` has packed get the ``shape`` of the actual ones.
    """
    array = array_from(expected)
    if array.dtype == np.uint8 and array.ndim == 1:
        strings = strings_of(array)
        return strings.reshape(shape) if strings.size == math.prod(shape) else strings
    text = as_text(array)
    return expected if text is None else text


def _bare(dtype: np.dtype, wanted: np.dtype) -> bool:
    """Return whether ``dtype`` is what numpy saves in place of the ml_dtypes type ``wanted``: opaque bytes."""
    return dtype.kind == "V" and dtype.names is None and wanted.isbuiltin == 2 and dtype.itemsize == wanted.itemsize


def _executable(model: Executable | Model | PathLike) -> Executable:
    return model if isinstance(model, Executable) else compile(model)


def _by_position(actual: Executable, outputs: Outputs, expected: Any) -> dict[int, Any]:
    """Return the expected arrays by output position. Raises AssertionError if they do not fit the outputs."""
    count = len(actual.model.results)
    if isinstance(expected, Outputs):
        arrays = list(expected.arrays)
    elif isinstance(expected, Mapping):
        return {_position(actual.model, outputs, key): array for key, array in expected.items()}
    elif not isinstance(expected, (list, tuple)):
        arrays = [expected]
    elif count == 1:  # either [array], or the elements of the only output
        is_wrapped = len(expected) == 1 and isinstance(expected[0], np.ndarray)
        arrays = list(expected) if is_wrapped else [expected]
    else:
        arrays = list(expected)
    if len(arrays) != count:
        raise AssertionError(
            f"{actual.model.source.path}: {count} outputs ({', '.join(outputs)}), but expected holds {len(arrays)}; "
            "pass an array for each output, or a mapping by name"
        )
    return dict(enumerate(arrays))


def _position(model: Model, outputs: Outputs, key: Any) -> int:
    """Return the position of the output with this name or position. Raises AssertionError if there is none."""
    names = [model.result_names(result) for result in model.results]
    if isinstance(key, str):
        position = next((i for i, own in enumerate(names) if key in own), None)
    else:
        position = operator.index(key) if isinstance(key, SupportsIndex) else None
    if position is None or not 0 <= position < len(names):
        known = ", ".join(map(repr, outputs)) or "none"
        raise AssertionError(f"{model.source.path}: the model has no output {key!r}; its outputs are {known}")
    return position


def _compare(
    element_type: ElementType, actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a mask of the elements that differ too much, and all distances (None for types without distances)."""
    if element_type.kind in ("string", "boolean", "dynamic"):
        return np.asarray(actual != expected), None
    if element_type.is_integer:  # exact beyond 2**53, and without overflow
        a, b = (x.astype(np.int64 if x.dtype.itemsize < 8 else object) for x in (actual, expected))
        distance = np.asarray(abs(a - b)).astype(np.float64)
        return np.asarray(a != b) & (distance > atol + rtol * np.abs(b.astype(np.float64))), distance
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        distance = np.abs(a - b)
        near = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(b) & (distance <= atol + rtol * np.abs(b)))
    return ~near, np.where(np.isnan(distance), np.inf, distance)


def _title(model: Model, position: int) -> str:
    """Return the name of an output and the layer that produces it."""
    result = model.results[position]
    fed = model.fed_by(result, 0)
    return f'output "{model.result_name(result)}"' + (f' of {fed[0].type} "{fed[0].name}"' if fed else "")


def _unseeded(model: Model, positions: Iterable[int]) -> list[str]:
    """Return text that names the layers without a seed on which outputs depend."""
    layers = [unseeded_behind(model, model.results[position].id) for position in positions]
    names = dict.fromkeys(f'{layer.type} "{layer.name}"' for layer in layers if layer is not None)
    return [f"{name} has no seed: it draws other random numbers in every run; give it one\n" for name in names]


def _first_divergent(actual: Executable, reference: Executable, feeds: Feeds, rtol: Tolerance, atol: Tolerance) -> str:
    """Return text that names the first layer of both models whose outputs differ, in the order of the first run."""
    actual.restart()
    reference.restart()
    ours, theirs = actual(feeds, taps=["*"]).taps, reference(feeds, taps=["*"]).taps
    types = {name: actual.model.layers[id].type for id, name in actual.model.unique_names.items()}
    for name, array in ours.items():
        lines = difference(array, theirs[name], rtol, atol) if name in theirs else ()
        if lines:
            what = f'{types[name]} "{name}"' if name in types else f'"{name}"'
            return f"first divergent layer: {what}\n" + "".join(f"  {line}\n" for line in lines)
    return "first divergent layer: none; the layers that both models have give equal outputs\n"


def _dims(index: Sequence[int]) -> str:
    """Return dims or an index as text, without spaces."""
    return f"[{','.join(map(str, index))}]"


def _number(value: Any) -> str:
    return str(value) if isinstance(value, (np.integer, int)) else f"{float(value):.7g}"
