"""Truncate: shorten the rows of one or two ragged tensors."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.extensions.tokenizers._strings import I32, check_pieces, check_rows, known_bytes
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.types import Dim

_SIDES: Final = (b"right", b"left")
_MODES: Final = (b"longest_first", b"only_first", b"only_second")


@op("Truncate")
class Truncate(Op):
    """Shorten each row to at most ``max_length`` elements, the rows of two tensors together.

    ``side`` says which end of a row is cut, right or left. Of two tensors, ``mode`` says which is shortened:
    only_first, only_second, or longest_first, both to a half unless one needs less. The data stay as they are; only
    begins and ends change. ``m_num_inputs`` repeats the number of tensors.

    C1  The begins and ends of a tensor have one shape, and each row lies within its data.
    C2  The layer has 6 inputs for one tensor, or 9 for two whose begins have one shape.
    C3  ``max_length`` is one number that is not negative.
    C4  ``side`` is right or left, and ``mode`` longest_first, only_first or only_second, as texts of type u8.
    """

    m_num_inputs = attr.int(default=None)
    inputs = ports(
        begins="i32", ends="i32", data="any", second_begins="i32", second_ends="any", second_data="any",
        max_length=opt("i32"), side=opt("u8"), mode=opt("u8"),
    )  # fmt: skip
    outputs = None
    checked = False

    def infer(self, at: Site, *ports: Value) -> tuple[Value, ...]:
        at.require(len(ports) in (6, 9), "C2", f"the layer has {len(ports)} inputs, not 6 or 9")
        limit, side, mode = ports[-3:]
        outputs: list[Value] = []
        for number in range(0, len(ports) - 3, 3):
            begins, ends, data = ports[number : number + 3]
            shape = check_rows(at, begins, ends, data.shape[0] if data.rank else Dim.unknown(), "C1")
            outputs += (Value(I32, shape), Value(I32, shape), data)
        if len(outputs) == 6:
            first, second = outputs[0].shape, outputs[3].shape
            at.require(first.meet(second) is not None, "C2", f"begins is {first}, but second_begins is {second}")
        count, number = limit.shape.count(), limit.scalar()
        at.require(count.lo <= 1 <= count.hi, "C3", f"max_length is {limit.shape}, not one number")
        at.require(number is None or number >= 0, "C3", f"max_length is {number}")
        for name, value, allowed in (("side", side, _SIDES), ("mode", mode, _MODES)):
            text = known_bytes(value)
            at.require(value.type.name in ("u8", "dynamic"), "C4", f"{name} is {value.type}, not u8")
            at.require(text is None or text in allowed, "C4", f"{name} is {(text or b'').decode(errors='replace')!r}")
        return tuple(outputs)

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        limit, side, mode = int(arrays[-3].ravel()[0]), arrays[-2].tobytes(), arrays[-1].tobytes()
        Site().require(limit >= 0, "C3", f"max_length is {limit}")
        Site().require(side in _SIDES and mode in _MODES, "C4", f"side is {side!r} and mode is {mode!r}")
        tensors = [arrays[number : number + 3] for number in range(0, len(arrays) - 3, 3)]
        for begins, ends, data in tensors:
            check_pieces(Site(), begins, ends, len(data), "C1", "row_", "elements")
        lengths = [ends.astype(np.int64) - begins for begins, ends, _ in tensors]
        if len(tensors) == 1:
            lengths = [np.minimum(lengths[0], limit)]
        else:
            Site().require(lengths[0].shape == lengths[1].shape, "C2", "the two tensors have other numbers of rows")
            lengths = list(_shared(lengths[0], lengths[1], limit, mode))
        outputs: list[np.ndarray] = []
        for (begins, ends, data), length in zip(tensors, lengths):
            kept = length.astype(np.int32)
            outputs += (begins, begins + kept, data) if side == b"right" else (ends - kept, ends, data)
        return tuple(outputs)


def _shared(first: np.ndarray, second: np.ndarray, limit: int, mode: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return the lengths of the rows of two tensors that together have at most ``limit`` elements."""
    over = first + second > limit
    if mode == b"only_first":
        return np.where(over, np.minimum(first, limit), first), second
    if mode == b"only_second":
        return first, np.where(over, np.minimum(second, limit), second)
    half, rest = divmod(limit, 2)
    second_fits = (first >= half + rest) & (second <= half)
    first_fits = (first < half + rest) & (second > half)
    short_first = np.where(second_fits, limit - second, np.where(first_fits, first, half + rest * (first >= second)))
    short_second = np.where(second_fits, second, np.where(first_fits, limit - first, half + rest * (first < second)))
    return np.where(over, short_first, first), np.where(over, short_second, second)
