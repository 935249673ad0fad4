"""Find the constant matrices that stay as the file has them: in f16, or as integers with scales and zero points.

Folding the layers of compressed weights (``irrun.inference.compressed``) would make an array of f32 with up to eight
times the bytes, which each product reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Final

import numpy as np

from irrun.inference.compressed import Compressed, compressed_weights
from irrun.inference.propagate import Values
from irrun.kernels.cast import plain
from irrun.model import Model
from irrun.opdef import Op, Stored

__all__ = ["stored_constants"]

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
        readers = model.readers.get(weights.output, ())
        if readers and all(_accepts(model, ops, values, id, position) for id, position in readers):
            may_be_filters = filters and all(ops[id].stored_filters for id, _ in readers)
            stored = _stored(model, ops, values, weights, may_be_filters)
            if stored is not None:
                found[weights.output] = stored
                left.update(weights.layers)
    return found, frozenset(left)


def _accepts(model: Model, ops: Mapping[int, Op], values: Values, id: int, position: int) -> bool:
    """Return whether a layer accepts a constant as the file has it at an input, and is not constant itself."""
    feeds = model.feeds[id]
    others = (feed for feed in feeds if feed is not None and feed != feeds[position])
    is_constant = all(ops[feed[0]].type == "Const" or values[feed].data is not None for feed in others)
    return ops[id].takes_stored == position and not is_constant


def _stored(
    model: Model, ops: Mapping[int, Op], values: Values, weights: Compressed, may_be_filters: bool
) -> Stored | None:
    """Return the matrix of compressed weights, or None if ``Stored`` cannot describe it, or would be no smaller.

    Filters may have more than two axes. They are in f16 or bf16, without scales.
    """
    codes, value = values[weights.codes, 0], values[weights.output]
    shape, counts = value.shape.static, codes.shape.static
    if value.type.name != "f32" or value.data is not None or shape is None or len(shape) < 2 or 0 in shape:
        return None
    numbers = [id for id in (weights.zeros, weights.scales) if id is not None]
    is_half = codes.type.name in _HALVES and not numbers
    if (len(shape) > 2 and not (may_be_filters and is_half)) or not (is_half or codes.type.name in _INTEGERS):
        return None
    if counts is None or model.weights is None:
        return None
    matrix = (shape[0], prod(shape[1:]))
    held = {id: _blocks(_read(model, ops, values, id), counts, matrix) for id in numbers}
    if any(block is None or block.size * _MIN_CODES_PER_SCALE > prod(matrix) for block in held.values()):
        return None
    zeros, scales = (None if id is None else held[id] for id in (weights.zeros, weights.scales))
    offset, size, type = _place(ops, values, weights.codes)
    origins = (
        None if id is None else (*_place(ops, values, id), values[id, 0].shape.static)
        for id in (weights.zeros, weights.scales)
    )
    raw = model.weights.require(offset, size, codes.type, counts)
    return Stored(raw, codes.type, matrix, zeros, scales, origin=(offset, size, type, counts, matrix, *origins))


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


def _blocks(numbers: np.ndarray, counts: tuple[int, ...], shape: tuple[int, int]) -> np.ndarray | None:
    """Return zeros or scales as ``Stored`` has them, or None if they are not of this kind.

    ``numbers`` are broadcast to codes of the shape ``counts``, which are then reshaped to ``shape``. Groups are in the
    second axis of three: [rows, groups, columns of a group], or, along the rows, [groups, rows of a group, columns].
    """
    rows, columns = shape
    if numbers.size == 1:
        return numbers.reshape(1, 1)
    numbers = numbers.reshape((1,) * (len(counts) - numbers.ndim) + numbers.shape)
    if numbers.ndim != len(counts) or any(n not in (1, of) for n, of in zip(numbers.shape, counts)):
        return None
    if counts == shape:
        return numbers
    if len(counts) == 3 and counts[0] == rows and numbers.shape[2] == 1:
        return numbers[:, :, 0]
    if len(counts) == 3 and counts[2] == columns and numbers.shape[1] == 1:
        return numbers[:, 0, :]
    return None
