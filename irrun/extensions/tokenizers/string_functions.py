"""EqualStr, StringToHashBucket, ContribStringJoin and ContribStringSplit: functions of string tensors."""

from __future__ import annotations

import numpy as np

from irrun.extensions.tokenizers._farmhash import farmhash64
from irrun.extensions.tokenizers._strings import I32, STRINGS, check_strings, packed, pieces, string_outputs
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, Dim, PartialShape

_I64 = ELEMENT_TYPES["i64"]


@op("EqualStr")
class EqualStr(Op):
    """Return 1 for each string that equals its partner in the other tensor, and 0 for others.

    The first string of the shorter tensor stands for those that it lacks; without any string, the result is empty.

    C1  The begins and ends of each tensor have one shape, and each string lies within its chars, which are 1D.
    """

    inputs = ports(**STRINGS, other_begins="i32", other_ends="i32", other_chars="u8")
    checked = False

    def infer(self, at: Site, *ports: Value) -> Value:
        first = check_strings(at, *ports[:3]).count()
        second = check_strings(at, *ports[3:], what="other_").count()
        most = Dim(0) if 0 in (first, second) else first.max(second)
        is_known = first.lo > 0 and second.lo > 0
        return Value(I32, PartialShape.of([most if is_known or most == 0 else Dim.unknown()]))

    def run(self, *arrays: np.ndarray) -> np.ndarray:
        first, second = pieces(*arrays[:3]), pieces(*arrays[3:], what="other_")
        if not first or not second:
            return np.zeros(0, np.int32)
        count = max(len(first), len(second))
        first += first[:1] * (count - len(first))
        second += second[:1] * (count - len(second))
        return np.array([a == b for a, b in zip(first, second)], np.int32)


@op("StringToHashBucket")
class StringToHashBucket(Op):
    """Return the bucket of each string: its FarmHash64 modulo ``num_buckets``.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  ``num_buckets`` is positive.
    """

    num_buckets = attr.int()
    inputs = ports(**STRINGS)
    checked = False

    def infer(self, at: Site, begins: Value, ends: Value, chars: Value) -> Value:
        at.require(self.num_buckets > 0, "C2", f"num_buckets is {self.num_buckets}")
        return Value(_I64, check_strings(at, begins, ends, chars))

    def run(self, begins: np.ndarray, ends: np.ndarray, chars: np.ndarray) -> np.ndarray:
        buckets = [farmhash64(text) % self.num_buckets for text in pieces(begins, ends, chars)]
        return np.array(buckets, np.int64).reshape(begins.shape)


@op("ContribStringJoin")
class ContribStringJoin(Op):
    """Join the strings along an axis, with ``separator`` between them.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  ``separator`` is 1D.
    C3  ``axis`` is one number, an axis of the strings.
    """

    inputs = ports(**STRINGS, separator="u8", axis="i32 i64")
    outputs = 3
    checked = False

    def infer(self, at: Site, *ports: Value) -> tuple[Value, ...]:
        shape = check_strings(at, *ports[:3])
        at.require(ports[3].rank in (None, 1), "C2", f"separator is {ports[3].shape}, not 1D")
        count = ports[4].shape.count()
        at.require(count.lo <= 1 <= count.hi, "C3", f"axis is {ports[4].shape}, not one number")
        axis = ports[4].scalar()
        if shape.dims is None or axis is None:
            return string_outputs(
                UNKNOWN_RANK if shape.dims is None else PartialShape.of_rank(max(len(shape.dims) - 1, 0))
            )
        axis = at.axis(axis, len(shape.dims), "C3")
        return string_outputs(PartialShape.of([*shape.dims[:axis], *shape.dims[axis + 1 :]]))

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        begins, separator = arrays[0], arrays[3].tobytes()
        axis = Site().axis(int(arrays[4].ravel()[0]), begins.ndim, "C3")
        order = np.moveaxis(np.arange(begins.size).reshape(begins.shape), axis, -1)
        strings, rows = pieces(*arrays[:3]), order.reshape(-1, begins.shape[axis]).tolist()
        return packed((separator.join([strings[index] for index in row]) for row in rows), order.shape[:-1])


@op("ContribStringSplit")
class ContribStringSplit(Op):
    """Cut each string at ``delimiter`` and return the parts as a sparse tensor: indices, strings and dense shape.

    The last index of a part counts the parts before it, those that ``skip_empty`` leaves out as well. An empty
    delimiter cuts between all bytes.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  ``delimiter`` is 1D.
    C3  ``skip_empty`` is one boolean.
    """

    inputs = ports(**STRINGS, delimiter="u8", skip_empty="boolean")
    outputs = 5
    checked = False

    def infer(self, at: Site, *ports: Value) -> tuple[Value, ...]:
        shape = check_strings(at, *ports[:3])
        at.require(ports[3].rank in (None, 1), "C2", f"delimiter is {ports[3].shape}, not 1D")
        count = ports[4].shape.count()
        at.require(count.lo <= 1 <= count.hi, "C3", f"skip_empty is {ports[4].shape}, not one value")
        width = Dim.unknown() if shape.dims is None else Dim(len(shape.dims) + 1)
        parts = PartialShape.of([Dim.unknown()])
        indices, dense = PartialShape.of([Dim.unknown(), width]), PartialShape.of([width])
        return Value(_I64, indices), *string_outputs(parts), Value(_I64, dense)

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        begins, delimiter, skips = arrays[0], arrays[3].tobytes(), bool(arrays[4].ravel()[0])
        indices: list[tuple[int, ...]] = []
        found: list[bytes] = []
        widest = 0
        for place, text in zip(np.ndindex(begins.shape), pieces(*arrays[:3])):
            parts = text.split(delimiter) if delimiter else [text[n : n + 1] for n in range(len(text))]
            for column, part in enumerate(parts):
                if part or not skips:
                    indices.append((*place, column))
                    found.append(part)
                    widest = max(widest, column + 1)
        table = np.array(indices, np.int64).reshape(-1, begins.ndim + 1)
        return table, *packed(found, [len(found)]), np.array([*begins.shape, widest], np.int64)
