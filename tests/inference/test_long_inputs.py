"""Inputs that list axes, dims or sizes, declared with millions of entries: inference takes no time and no memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import numpy as np
import pytest

from grouped import each
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.opdef import Site, Value
from irrun.types import ElementType, PartialShape
from kit import Case, Values, operation
from tables import FOLDER, rows

LONG = 1 << 24


def _operations() -> Iterator[tuple[Case | Values, list[np.ndarray | None]]]:
    """Yield an operation of each version with a list of small integers among its inputs, and these inputs."""
    seen: set[str] = set()
    for path in sorted(FOLDER.glob("test_*.py")):
        for row in rows(path):
            if isinstance(row, (Case, Values)) and row.op not in seen:
                arrays = [None if array is None else np.asarray(array) for array in row.inputs]
                if any(_is_list(array) for array in arrays):
                    seen.add(row.op)
                    yield row, arrays


def _is_list(array: np.ndarray | None) -> bool:
    return array is not None and array.ndim == 1 and array.dtype.kind in "iu"


OPERATIONS = list(_operations())


@pytest.mark.parametrize("others", ["shape", "rank", "nothing"])
@each("row, arrays", OPERATIONS, ids=[row.op for row, _ in OPERATIONS])
def test_long_lists(row: Case | Values, arrays: list[np.ndarray | None], others: str) -> None:
    """Every list of the row is long at once, of unknown contents; the shapes of the other inputs are known or not."""
    op = operation(row.op, row.attributes)
    inputs = [None if array is None else _value(array, others) for array in arrays]
    began = time.process_time()
    with contextlib.suppress(Refused):
        infer(op, Site(), inputs, {})
    assert time.process_time() - began < 1


def _value(array: np.ndarray, others: str) -> Value:
    element_type = ElementType.of(array.dtype)
    assert element_type is not None
    if _is_list(array):
        return Value(element_type, PartialShape.of([LONG]))
    shapes = {
        "shape": PartialShape.of(array.shape),
        "rank": PartialShape.of_rank(array.ndim),
        "nothing": PartialShape(None),
    }
    return Value(element_type, shapes[others])
