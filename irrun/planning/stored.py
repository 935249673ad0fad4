"""Find the constant matrices that stay as the file has them: in f16, or as integers with scales and zero points.

Folding the layers of compressed weights (``irrun.inference.compressed``) would make an array of f32 with up to eight
times the bytes, which each product reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from irrun.inference.compressed import Compressed, compressed_weights
from irrun.inference.propagate import Values
from irrun.kernels.cast import plain
from irrun.model import Model
from irrun.opdef import Op, Stored

__all__ = ["kept_packed", "stored_constants"]

_INTEGERS: Final = {"u8", "i8", "u4", "i4"}
_HALVES: Final = {"f16", "bf16"}
_MIN_CODES_PER_SCALE: Final = 8
"""The least codes per scale. With fewer, keeping a matrix packed saves nothing."""


def stored_constants(
    model: Model, ops: Mapping[int, Op], values: Values, *, filters: bool = False
) -> tuple[dict[tuple[int, int], Stored], frozenset[int]]:
    """Return the constants to leave as they are, by layer output, and the ids of the layers to leave out.

    All consumers of such an output accept it (``Op.takes_stored``) and are not constant themselves. ``filters`` allows
    filters of convolutions, too (``Op.stored_filters``).
    """
    found: dict[tuple[int, int], Stored] = {}
    left: set[int] = set()
    for weights in compressed_weights(model):
        layout = _layout(model, ops, values, weights, filters=filters)
        if layout is not None and model.weights is not None:
            found[weights.output] = _stored(model, ops, values, weights, layout)
            left.update(weights.layers)
    return found, frozenset(left)


def kept_packed(model: Model, ops: Mapping[int, Op], values: Values) -> frozenset[int]:
    """Return the ids of the Const layers whose codes a run keeps as the file has them. The ``.bin`` is not needed."""
    return frozenset(w.codes for w in compressed_weights(model) if _layout(model, ops, values, w) is not None)


def _accepts(model: Model, ops: Mapping[int, Op], values: Values, id: int, position: int) -> bool:
    """Return whether a layer accepts a constant as the file has it at an input, and is not constant itself."""
    op, feeds = ops.get(id), model.feeds[id]
    if op is None or op.takes_stored != position:
        return False
    others = [feed for feed in feeds if feed is not None and feed != feeds[position]]
    return not all(
        feed in values and (ops[feed[0]].type == "Const" or values[feed].data is not None) for feed in others
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The shapes of a matrix that stays packed: its own, and those of its zeros and scales, as ``Stored`` has them."""

    matrix: tuple[int, int]
    zeros: tuple[int, int] | None
    scales: tuple[int, int] | None


def _layout(
    model: Model, ops: Mapping[int, Op], values: Values, weights: Compressed, *, filters: bool = False
) -> _Layout | None:
    """Return how compressed weights stay packed.

    None if a consumer does not accept them, ``Stored`` cannot describe them, or they would be no smaller. Filters may
    have more than two axes. They are in f16 or bf16, without scales, or in i8.
    """
    readers = model.readers.get(weights.output, ())
    if not readers or not all(_accepts(model, ops, values, id, position) for id, position in readers):
        return None
    numbers = [id for id in (weights.zeros, weights.scales) if id is not None]
    if not all((id, 0) in values for id in (weights.codes, *numbers)) or weights.output not in values:
        return None
    codes, value = values[weights.codes, 0], values[weights.output]
    shape, counts = value.shape.static, codes.shape.static
    if value.type.name != "f32" or shape is None or len(shape) < 2 or 0 in shape:
        return None
    is_half = codes.type.name in _HALVES and not numbers
    if len(shape) > 2:
        is_filter = filters and all(ops[id].stored_filters for id, _ in readers)
        if not (is_filter and (is_half or codes.type.name == "i8")):
            return None
    elif value.data is not None or not (is_half or codes.type.name in _INTEGERS):
        return None
    if counts is None:
        return None
    matrix = (shape[0], prod(shape[1:]))
    blocks = {id: _blocks(values[id, 0].shape.static, counts, matrix) for id in numbers}
    if any(block is None or prod(block) * _MIN_CODES_PER_SCALE > prod(matrix) for block in blocks.values()):
        return None
    zeros, scales = (None if id is None else blocks[id] for id in (weights.zeros, weights.scales))
    return _Layout(matrix, zeros, scales)


def _stored(model: Model, ops: Mapping[int, Op], values: Values, weights: Compressed, layout: _Layout) -> Stored:
    """Return the matrix of compressed weights."""
    assert model.weights is not None
    codes = values[weights.codes, 0]
    counts = codes.shape.static or ()
    offset, size, type = _place(ops, values, weights.codes)
    numbers = (weights.zeros, weights.scales)
    zeros, scales = (
        None if id is None or block is None else _read(model, ops, values, id).reshape(block)
        for id, block in zip(numbers, (layout.zeros, layout.scales))
    )
    origins = (None if id is None else (*_place(ops, values, id), values[id, 0].shape.static) for id in numbers)
    raw = model.weights.require(offset, size, codes.type, counts)
    origin = (offset, size, type, counts, layout.matrix, *origins)
    return Stored(raw, codes.type, layout.matrix, zeros, scales, origin=origin)


def _read(model: Model, ops: Mapping[int, Op], values: Values, id: int) -> np.ndarray:
    """Return the contents of a Const in f32."""
    assert model.weights is not None
    offset, size, _ = _place(ops, values, id)
    value = values[id, 0]
    return plain(model.weights.tensor(offset, size, value.type, value.shape.static or ())).astype(np.float32)


def _place(ops: Mapping[int, Op], values: Values, id: int) -> tuple[int, int, str]:
    """Return offset, size and element type of a Const."""
    op: Any = ops[id]
    return op.offset, op.size, values[id, 0].type.name


def _blocks(numbers: tuple[int, ...] | None, counts: tuple[int, ...], shape: tuple[int, int]) -> tuple[int, int] | None:
    """Return the shape in which ``Stored`` has zeros or scales, or None if they are not of this kind.

    ``numbers`` is the shape that is broadcast to codes of the shape ``counts``, which are then reshaped to ``shape``.
    Groups are in the second axis of three: [rows, groups, columns of a group], or, along the rows, [groups, rows of a
    group, columns].
    """
    rows, columns = shape
    if numbers is None:
        return None
    if prod(numbers) == 1:
        return 1, 1
    numbers = (1,) * (len(counts) - len(numbers)) + numbers
    if len(numbers) != len(counts) or any(n not in (1, of) for n, of in zip(numbers, counts)):
        return None
    if counts == shape:
        return numbers[0], numbers[1]
    if len(counts) > 2 and counts[0] == rows and prod(numbers[2:]) == 1:
        return numbers[0], numbers[1]
    if len(counts) == 3 and counts[2] == columns and numbers[1] == 1:
        return numbers[0], numbers[2]
    return None
