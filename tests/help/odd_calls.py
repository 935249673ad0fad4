"""Calls of kernels with inputs in other memory, and with special numbers: what a row of ``VALUES`` gives, and no more."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from irrun.diagnostics import Refused
from irrun.growing.layouts import LAYOUTS, repeated
from irrun.inference.layer import infer
from irrun.opdef import Op, Site, Value
from irrun.types import ElementType
from kit import Values, kernel_of, operation

__all__ = ["check_odd_calls", "in_layouts"]

_LAYOUTS: Final = tuple(name for name, place in LAYOUTS.items() if place is not repeated)
_LAYOUTS_OF_ROW: Final = 3
"""How many layouts each row is called in. Among the thousands of rows, each kernel meets all of them."""
_SPECIAL: Final = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e30, -1e30)
_NUMBERS_OF_INPUT: Final = 2
_MAX_ELEMENTS: Final = 1 << 20
"""The most elements of a result: with a huge number, it may be too large for the memory."""
_ERRORS: Final = {"f16": 2e-3, "bf16": 2e-2}
_ERROR: Final = 1e-5
"""How far results may be apart, relative to the largest one."""
_Arrays = Sequence[np.ndarray | None]


def check_odd_calls(row: Values) -> None:
    """Require that the kernels of a row give the same in any memory, and for special numbers the same as ``run``."""
    op = operation(row.op, row.attributes)
    if not op.pure:
        return
    arrays = [None if array is None else np.asarray(array) for array in row.inputs]
    outputs = len(row.expected) if isinstance(row.expected, tuple) else 1
    with np.errstate(all="ignore"):
        expected = _run(op, arrays)
        for layout, placed in in_layouts(row.id, arrays):
            for call in (op.run, _kernel(op, arrays, outputs)):
                before = [None if array is None else array.copy() for array in placed]
                _require_same(_tuple(call(*placed)), expected, layout)
                for array, copy in zip(placed, before):
                    assert array is None or copy is None or array.tobytes() == copy.tobytes(), "an input was changed"
        for changed in _with_special_numbers(row.id, arrays):
            if _is_accepted(op, changed, outputs):
                kernel = _kernel(op, changed, outputs)
                _require_same(_tuple(kernel(*changed)), _run(op, changed), "special numbers")


def in_layouts(id: str, arrays: _Arrays) -> Iterator[tuple[str, _Arrays]]:
    """Yield names of layouts, which ``id`` decides, and the arrays in them."""
    for name in random.Random(id).sample(_LAYOUTS, _LAYOUTS_OF_ROW):
        yield name, [None if array is None else LAYOUTS[name](array) for array in arrays]


def _with_special_numbers(id: str, arrays: _Arrays) -> Iterator[_Arrays]:
    """Yield inputs of which one, of floats, holds a special number somewhere."""
    dice = random.Random(id)
    for position, array in enumerate(arrays):
        type = None if array is None else ElementType.of(array.dtype)
        if array is None or type is None or type.kind != "float" or not array.size or array.ndim == 0:
            continue
        for number in dice.sample(_SPECIAL, _NUMBERS_OF_INPUT):
            changed = array.copy()
            changed.flat[dice.randrange(array.size)] = number
            yield [*arrays[:position], changed, *arrays[position + 1 :]]


def _is_accepted(op: Op, arrays: _Arrays, outputs: int) -> bool:
    """Return whether the shape rule accepts the contents, and the kernel does, which looks at some of them alone."""
    try:
        values = infer(op, Site(outputs), [None if array is None else Value.of(array) for array in arrays], {})
        if any(value.shape.count().lo > _MAX_ELEMENTS for value in values):
            return False
        _run(op, arrays)
    except Refused:
        return False
    return True


def _kernel(op: Op, arrays: _Arrays, outputs: int) -> Callable[..., Any]:
    """Return the kernel for inputs of known shapes. Lists of integers are constants."""
    values = [None if array is None else Value.of(array) for array in arrays]
    known = [
        value
        if value is None or (value.type.kind != "float" and (value.rank or 0) < 2)
        else Value(value.type, value.shape)
        for value in values
    ]
    return kernel_of(op, *known, outputs=outputs).call


def _run(op: Op, arrays: _Arrays) -> tuple[np.ndarray, ...]:
    return _tuple(op.run(*[None if array is None else array.copy() for array in arrays]))


def _tuple(results: Any) -> tuple[np.ndarray, ...]:
    return tuple(map(np.asarray, results if isinstance(results, tuple) else (results,)))


def _require_same(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], what: str) -> None:
    for a, c in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape) == (c.dtype, c.shape), what
        if a.dtype.kind in "OUSTiub":
            np.testing.assert_array_equal(a, c, what)
            continue
        type, a, c = ElementType.of(a.dtype), a.astype(np.float64), c.astype(np.float64)
        error = _ERRORS.get("" if type is None else type.name, _ERROR)
        largest = np.abs(c[np.isfinite(c)]).max(initial=0)
        np.testing.assert_allclose(a, c, error, error * largest, err_msg=what)
