"""Find the constant matrices that stay as the file has them: in f16, or as integers with scales and zero points.

Compressed weights are a few layers on a Const: ``Const (u4) - Convert - Subtract zero - Multiply scale - Reshape -
Convert``. Folding these layers would make an array of f32 with up to eight times the bytes, which each product reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Final

import numpy as np

from irrun.inference.propagate import Values
from irrun.kernels.cast import plain
from irrun.model import Model
from irrun.opdef import Op, Stored

__all__ = ["stored_constants"]

_INTEGERS: Final = {"u8", "i8", "u4", "i4"}
_HALVES: Final = {"f16", "bf16"}
_Number = tuple[np.ndarray, tuple[object, ...]]
"""A constant in f32, and the Const that it comes from."""
_FEWER: Final = 8
"""A matrix is left as it is if it has at least this many times as many codes as scales: else it would be no smaller."""


def stored_constants(
    model: Model, ops: Mapping[int, Op], values: Values, *, filters: bool = False
) -> tuple[dict[tuple[int, int], Stored], frozenset[int]]:
    """Return the constants to leave as they are, by layer output, and the ids of the layers to leave out.

    All consumers of such an output accept it (``Op.takes_stored``) and are not constant themselves, and nothing else
    reads the layers before it. ``filters`` allows filters of convolutions, too (``Op.stored_filters``).
    """
    readers: dict[int, set[int]] = {}
    accepted: dict[tuple[int, int], bool] = {}
    matrices: set[tuple[int, int]] = set()  # the outputs that are left only if they have two axes
    for id, feeds in model.feeds.items():
        for number, feed in enumerate(feeds):
            if feed is not None:
                readers.setdefault(feed[0], set()).add(id)
                others = (f for f in feeds if f is not None and f != feed)
                known = all(ops[f[0]].type == "Const" or values[f].data is not None for f in others)
                accepted[feed] = ops[id].takes_stored == number and not known and accepted.get(feed, True)
                if not (filters and ops[id].stored_filters):
                    matrices.add(feed)
    found: dict[tuple[int, int], Stored] = {}
    left: set[int] = set()
    for output, accepts in accepted.items():
        chain = _Chain(model, ops, values, filters=output not in matrices)
        stored = chain.read(output) if accepts else None
        if stored is not None and all(readers[id] <= chain.layers for id in chain.layers - {output[0]}):
            found[output] = stored
            left |= chain.layers
    return found, frozenset(left)


class _Chain:
    """The layers between a Const and the matrix that follows from it."""

    def __init__(self, model: Model, ops: Mapping[int, Op], values: Values, *, filters: bool) -> None:
        self.model, self.ops, self.values, self.filters = model, ops, values, filters
        self.layers: set[int] = set()

    def read(self, output: tuple[int, int]) -> Stored | None:
        """Return the matrix that a layer output holds, or None if its layers are not those of compressed weights."""
        value = self.values[output]
        shape = value.shape.static
        if value.type.name != "f32" or value.data is not None or shape is None or len(shape) < 2 or 0 in shape:
            return None
        if len(shape) > 2 and not self.filters:
            return None
        scales = zeros = None
        types = set[str]()
        id = output[0]
        while (op := self.ops[id]).type != "Const":
            self.layers.add(id)
            types.add(self.values[id, 0].type.name)
            number = 0
            if op.type == "Multiply" and scales is None and zeros is None:
                number = 0 if self.number(id, 1) else 1
                scales = self.number(id, 1 - number)
            elif op.type == "Subtract" and zeros is None:
                zeros = self.number(id, 1)
            elif op.type != "Convert" and (op.type != "Reshape" or scales or zeros):
                return None
            feed = self.model.feeds[id][number]
            if feed is None or (op.type == "Multiply" and not scales) or (op.type == "Subtract" and not zeros):
                return None
            id = feed[0]
        self.layers.add(id)
        if len(shape) > 2 and (scales or zeros or self.values[id, 0].type.name not in _HALVES):
            return None
        return self.matrix(id, (shape[0], prod(shape[1:])), types, zeros, scales)

    def matrix(
        self, id: int, shape: tuple[int, int], types: set[str], zeros: _Number | None, scales: _Number | None
    ) -> Stored | None:
        """Return the matrix whose codes a Const holds, or None if ``Stored`` cannot describe it.

        ``types`` are the element types in which the layers compute: no other rounding than that of f16 may be lost.
        """
        codes, origin, weights = self.values[id, 0], self.origin(id), self.model.weights
        counts = codes.shape.static
        if origin is None or counts is None or weights is None:
            return None
        numbers = [pair for pair in (zeros, scales) if pair is not None]
        exact = codes.type.name in _HALVES and not numbers and types <= {"f32", codes.type.name}
        if not exact and not (codes.type.name in _INTEGERS and types <= {"f16", "f32"}):
            return None
        blocks = [None if pair is None else _blocks(pair[0], counts, shape) for pair in (zeros, scales)]
        held = [block.size for block in blocks if block is not None]
        if len(held) < len(numbers) or max(held, default=0) * _FEWER > shape[0] * shape[1]:
            return None
        raw = weights.require(origin[0], origin[1], codes.type, counts)
        origins = (None if pair is None else pair[1] for pair in (zeros, scales))
        return Stored(raw, codes.type, shape, *blocks, origin=(*origin, counts, shape, *origins))

    def number(self, id: int, port: int) -> _Number | None:
        """Return the constant that a layer reads, directly or through Convert, in f32, and the Const it comes from."""
        feed = self.model.feeds[id][port]
        while feed is not None and self.ops[feed[0]].type == "Convert":
            if self.values[feed].type.name not in ("f16", "f32"):
                return None
            feed = self.model.feeds[feed[0]][0]
        origin = None if feed is None else self.origin(feed[0])
        if feed is None or origin is None or self.model.weights is None:
            return None
        value = self.values[feed]
        array = self.model.weights.tensor(origin[0], origin[1], value.type, value.shape.static or ())
        return plain(array).astype(np.float32), (*origin, value.shape.static)

    def origin(self, id: int) -> tuple[int, int, str] | None:
        """Return offset, size and element type of a Const, or None for another layer."""
        op: Any = self.ops[id]
        return (op.offset, op.size, self.values[id, 0].type.name) if op.type == "Const" else None


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
