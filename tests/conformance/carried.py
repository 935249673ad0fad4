"""Rows of the tables in further element types, so that each type that an operation allows has a case.

Numbers that a type holds exactly are the same numbers in it: a row whose inputs a type holds is carried over to this type
with its outputs. Outputs that are floats are rounded, where no row has outputs that the type holds. Operations that move
elements and compute nothing take any elements: there, each number stands for an element of the type.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from conformance.one_layer import Writer
from irrun.conformance.suite import Case, Step, tensor_record
from irrun.diagnostics import IrrunError, Refused
from irrun.inference.layer import infer
from irrun.opdef import Op, Site, Value
from irrun.types import ELEMENT_TYPES, NF4, ElementType, PartialShape, text_array, type_set
from kit import attribute_text

__all__ = ["Row", "cases"]

MOVED = dict.fromkeys(
    (
        "BatchToSpace", "Broadcast", "Concat", "DepthToSpace", "ExtractImagePatches", "Gather", "GatherElements",
        "GatherND", "Identity", "Pad", "Reshape", "Reverse", "ReverseSequence", "Roll", "Select", "ShapeOf",
        "ShuffleChannels", "Slice", "SpaceToBatch", "SpaceToDepth", "Split", "Squeeze", "StridedSlice", "Tile",
        "Transpose", "Unsqueeze", "VariadicSplit",
    ),
    "T",
) | {"OneHot": "T2", "ReorgYolo": "any"}  # fmt: skip
"""The type variable of the elements that an operation moves."""

WHOLE = {
    "EmbeddingBagOffsetsSum", "EmbeddingBagPackedSum",
    "EmbeddingSegmentsSum", "MaxPool", "Maximum", "Minimum", "Multiply", "ScatterElementsUpdate", "SquaredDifference",
    "Subtract", "TopK",
}  # fmt: skip
"""Operations that give integers for integers, in types of floats too."""

_LARGEST = 2**24
"""The largest integer of a row that is carried over to floats: further ones may have wrapped."""
_MOST = 600
"""The most elements of an input of a row that is carried over."""
_ROUNDED = {"f16": (2e-3, 1e-3), "bf16": (2e-2, 1e-2), "f8e4m3": (0.07, 2**-9), "f8e5m2": (0.13, 2**-16)}
"""The tolerances of an output that is rounded to a type: two units in its last place."""


@dataclass(frozen=True)
class Row:
    """A row of a table: the inputs and the outputs of an operation. An input that is left out is None."""

    cls: type[Op]
    op: Op
    id: str
    attributes: dict[str, Any]
    inputs: Sequence[np.ndarray | None]
    outputs: Sequence[np.ndarray]
    source: str
    rtol: float
    atol: float

    def variable(self, position: int) -> str:
        """Return the type variable of an input, or the set of element types that it may have."""
        assert self.cls.inputs is not None
        return self.cls.inputs[min(position, len(self.cls.inputs) - 1)].type

    def positions(self, variable: str) -> list[int]:
        """Return the positions of the inputs of a type variable."""
        return [n for n, i in enumerate(self.inputs) if i is not None and self.variable(n) == variable]


Typed = tuple[ElementType, np.ndarray]
"""An array, whose dtype may be wider than its element type."""


def cases(rows: Iterable[Row], covered: Iterable[tuple[str, str, str]]) -> Iterator[Case]:
    """Yield a case of each element type that an operation allows and no row has.

    ``covered`` are operations, type variables and element types of which there are rows.
    """
    known, by_operation = set(covered), defaultdict[str, list[Row]](list)
    for row in rows:
        if all(i is None or i.size <= _MOST for i in row.inputs):
            by_operation[f"{row.cls.type}-{row.cls.since}"].append(row)
    for name, own in by_operation.items():
        cls = own[0].cls
        for variable in dict.fromkeys(port.type for port in cls.inputs or ()):
            allowed = type_set(cls.types.get(variable, variable))
            for type in ELEMENT_TYPES.values():
                if type in allowed and type.kind != "dynamic" and (name, variable, type.name) not in known:
                    yield from _best(name, own, variable, type)


def _best(name: str, rows: Sequence[Row], variable: str, type: ElementType) -> Iterator[Case]:
    """Yield the case of the row that says most in an element type, if there is one.

    That is one whose outputs the type holds, of integers for integers, and with the most different inputs.
    """
    best: tuple[Any, Case] | None = None
    for row in rows:
        for is_exact in (True, False):
            found = _carried(row, variable, type, is_exact=is_exact)
            if found is None:
                continue
            inputs, outputs = found
            first = inputs[row.positions(variable)[0]]
            assert first is not None
            is_kin = (row.inputs[row.positions(variable)[0]].dtype.kind in "iu") == type.is_integer  # type: ignore[union-attr]
            rank = is_exact, is_kin, min(len(set(first[1].reshape(-1).tolist())), 12), -first[1].size, row.id
            if best is None or rank > best[0]:
                made = _case(name, row, variable, type, inputs, outputs)
                best = (rank, made) if made is not None else best
            break
    if best is not None:
        yield best[1]


def _carried(
    row: Row, variable: str, type: ElementType, *, is_exact: bool
) -> tuple[list[Typed | None], list[Typed]] | None:
    """Return the inputs and outputs of a row in another element type, or None if the type cannot hold them."""
    positions = row.positions(variable)
    own = [row.inputs[n] for n in positions]
    if not own or not any(i.size for i in own if i is not None):
        return None
    old = ElementType.of(own[0].dtype)  # type: ignore[union-attr]
    if old is None or any(i is None or i.dtype != own[0].dtype for i in own):  # type: ignore[union-attr]
        return None
    moves = MOVED.get(row.cls.type) == variable
    if not moves and not _is_wide(old, type, is_whole=row.cls.type in WHOLE):
        return None
    elements = _elements(type, own, row.outputs) if moves else None  # type: ignore[arg-type]
    if moves and elements is None:
        return None
    inputs: list[Typed | None] = [None if i is None else _typed(i) for i in row.inputs]
    for n, array in zip(positions, own):
        assert array is not None
        changed = _mapped(array, elements, type) if elements is not None else _held(array, type)
        if changed is None:
            return None
        inputs[n] = type, changed
    before = _inferred(row, [None if i is None else _typed(i) for i in row.inputs])
    after = _inferred(row, inputs)
    if before is None or after is None or len(after) != len(row.outputs):
        return None
    outputs: list[Typed] = []
    for array, was, is_now in zip(row.outputs, before, after):
        changed: np.ndarray | None = array
        if is_now.type is type and (was.type is old or not moves):
            if elements is not None:
                changed = _mapped(array, elements, type)
            else:
                changed = _held(array, type) if is_exact else _rounded(array, type)
        elif is_now.type is not was.type:
            return None
        if changed is None:
            return None
        outputs.append((is_now.type, changed))
    return inputs, outputs


def _is_wide(old: ElementType, new: ElementType, *, is_whole: bool) -> bool:
    """Return whether results in a type are those in another one, as far as the latter holds them.

    Integers are rounded where floats are not, unless the operation gives integers for integers (``is_whole``). Narrow
    integers wrap where wide ones do not.
    """
    if old.is_integer:
        return (new.is_integer or is_whole) and old.bits >= min(new.bits, 32)
    return old.kind == "float" and old.bits >= 32


def _typed(array: np.ndarray) -> Typed:
    element_type = ElementType.of(array.dtype)
    assert element_type is not None
    return element_type, array


def _inferred(row: Row, inputs: Sequence[Typed | None]) -> Sequence[Value] | None:
    """Return what the operation gives for such inputs, or None if it refuses them."""
    values = [None if i is None else _value(*i, is_known=not _is_fed(row, n, i)) for n, i in enumerate(inputs)]
    try:
        return infer(row.op, Site(len(row.outputs)), values, {})
    except (Refused, IrrunError):
        return None


def _value(type: ElementType, array: np.ndarray, *, is_known: bool) -> Value:
    return Value(type, PartialShape.of(array.shape), array if is_known else None)


def _is_fed(row: Row, position: int, typed: Typed) -> bool:
    """Return whether an input is a Parameter. Integers of another type variable than the first are constants, as in
    most models, and so are types of stored weights."""
    if typed[0].is_storage:
        return False
    return not position or typed[1].dtype.kind not in "iu" or row.variable(position) == row.variable(0)


def _held(array: np.ndarray, type: ElementType) -> np.ndarray | None:
    """Return the numbers of an array in an element type, or None if the type does not hold them exactly."""
    if array.dtype.kind in "OUb" or type.kind in ("boolean", "string"):
        return None
    if array.dtype.kind in "iu" and type.kind == "float" and (np.abs(array) > _LARGEST).any():
        return None
    with np.errstate(all="ignore"):
        held = _wide(array).astype(type.dtype)  # ml_dtypes has no cast between some of its types
    if not _is_equal(_wide(held), _wide(array)) or (type.name == "nf4" and not np.isin(held, NF4).all()):
        return None
    return None if type.is_storage and type.is_integer and (held >= 2**type.bits).any() else held


def _is_equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether all numbers are equal. Those of Python are, unlike those of numpy, compared exactly."""
    return all(x == y or (x != x and y != y) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist()))


def _wide(array: np.ndarray) -> np.ndarray:
    """Return the same numbers in a wide type."""
    wide = {"float": np.float64, "int": np.int64, "uint": np.uint64}
    return array.astype(wide[_typed(array)[0].kind])


def _rounded(array: np.ndarray, type: ElementType) -> np.ndarray | None:
    """Return floats rounded to an element type, or None if they are not floats or beyond it."""
    if array.dtype.kind not in "fV" or type.name not in _ROUNDED or not np.isfinite(array).all():
        return None
    with np.errstate(all="ignore"):
        rounded = _wide(array).astype(type.dtype)
    return rounded if np.isfinite(rounded.astype(np.float64)).all() else None


@cache
def _alphabet(type: ElementType) -> Sequence[Any]:
    """Return different elements of a type, beginning with zero or what is empty."""
    if type.kind == "boolean":
        return False, True
    if type.kind == "string":
        return "", *(f"word {n}" for n in range(1, 100))
    if type.name == "nf4":
        return 0.0, *(number for number in NF4.tolist() if number)
    if type.kind == "float":
        numbers = {
            "f8e8m0": [2.0**n for n in range(-20, 20)],
            "f4e2m1": [0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -2, -3, -6],
        }
        return 0.0, *numbers.get(type.name, [*range(1, 9), *range(-8, 0)])
    low = -(2 ** (min(type.bits, 8) - 1)) if type.kind == "int" else 0
    return 0, *(number for number in range(low, low + 2 ** min(type.bits, 8)) if number)


def _elements(type: ElementType, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> dict[Any, Any] | None:
    """Return which element of a type stands for each element of some inputs. Zero stands for zero.

    A type without a zero takes no part in rows with zeros. None if an output has an element that no input has.
    """
    zero = "" if inputs[0].dtype.kind == "O" else 0
    numbers = sorted({item for array in inputs for item in array.reshape(-1).tolist() if item != zero})
    given = {
        item for array in (*inputs, *outputs) if array.dtype == inputs[0].dtype for item in array.reshape(-1).tolist()
    }
    if any(item != item or (item != zero and item not in numbers) for item in given):
        return None
    if type.name == "f8e8m0" and zero in given:
        return None
    letters = _alphabet(type)
    start = 1 if type.name == "f8e8m0" else 0
    room = len(letters) - start
    return {zero: letters[0], **{item: letters[start + (1 - start + n) % room] for n, item in enumerate(numbers)}}


def _mapped(array: np.ndarray, elements: dict[Any, Any], type: ElementType) -> np.ndarray:
    items = [elements[item] for item in array.reshape(-1).tolist()]
    if type.kind == "string":
        return text_array(items, array.shape)
    return np.array(items).astype(type.dtype).reshape(array.shape)


def _case(
    name: str, row: Row, variable: str, type: ElementType, inputs: Sequence[Typed | None], outputs: Sequence[Typed],
) -> Case | None:  # fmt: skip
    """Return the case, or None if the row leaves an input out before another one: an IR has no place for that."""
    given = list(inputs)
    while given and given[-1] is None:
        given.pop()
    if any(i is None for i in given):
        return None
    writer, refs, feeds = Writer(), [], []
    for position, typed in enumerate(given):
        assert typed is not None
        if _is_fed(row, position, typed):
            refs.append(writer.parameter(_value(*typed, is_known=False), position, typed[1]))
            feeds.append(tensor_record(typed[1], typed[0].name))
        else:
            refs.append(writer.constant(_value(*typed, is_known=True)))
    declared = _inferred(row, inputs)
    assert declared is not None
    attributes = {key: attribute_text(value) for key, value in row.attributes.items()}
    xml = writer.layer(row.cls, attributes, refs, declared)
    tolerance = _ROUNDED.get(type.name, (0.0, 0.0)) if any(own is type for own, _ in outputs) else (0.0, 0.0)
    return Case(
        f"{name}/carried/{variable}-{type.name}" if variable in row.cls.types else f"{name}/carried/{type.name}",
        name, "static", "values", f"{row.source}, carried over from {row.id}", xml, bytes(writer.net.bin),
        types=sorted({typed[0].name for typed in (*given, *outputs) if typed is not None}),
        steps=[Step(feeds, [tensor_record(array, own.name) for own, array in outputs])],
        rtol=max(row.rtol, tolerance[0]), atol=max(row.atol, tolerance[1]),
    )  # fmt: skip
