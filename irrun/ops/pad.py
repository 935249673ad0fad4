"""Pad: grow or crop a tensor at its edges.  Spec: movement/pad-{1,12}."""

from collections.abc import Sequence

import numpy as np

from irrun.opdef import Kernel, Op, Request, Site, Value, attr, few, op, opt, ports
from irrun.types import INF, UNKNOWN_RANK, Dim, PartialShape, blank


@op("Pad", since=12, spec="movement/pad-12")
class Pad12(Op):
    """Add ``pads_begin`` and ``pads_end`` elements to each axis of ``data``. Negative pads remove elements.

    C1  ``pads_begin`` and ``pads_end`` are 1D, with one entry for each axis of ``data``.
    C2  In mode constant, ``pad_value`` is a scalar.
    C3  In mode reflect, each pad is less than its dim, in mode symmetric, it is at most its dim. In mode edge, a dim
        that is padded is not 0.
    C4  Strings are padded in constant mode only.
    """

    pad_mode = attr.choice("constant", "edge", "reflect", "symmetric")
    # OpenVINO allows different types for pads_begin and pads_end
    inputs = ports(data="T", pads_begin="T_BEGIN", pads_end="T_END", pad_value=opt("T"))
    types = {"T": "any", "T_BEGIN": "int", "T_END": "int"}
    channels_last = {"pads_begin": "entries", "pads_end": "entries"}
    carries = True

    def infer(self, at: Site, data: Value, pads_begin: Value, pads_end: Value, pad_value: Value | None = None) -> Value:
        if self.pad_mode == "constant":
            rank = None if pad_value is None else pad_value.rank
            at.require(rank in (None, 0), "C2", f"pad_value has rank {rank}, but must be a scalar")
        else:
            at.require(
                data.type.kind != "string", "C4", f"data is of strings, but pad_mode is {self.pad_mode}, not constant"
            )
        count = few(self._rank(at, data, pads_begin, pads_end))
        if count is None:
            return data.reshaped(UNKNOWN_RANK)
        unknown = (Dim(-INF, INF),) * count
        dims = []
        for axis, (dim, begin, end) in enumerate(
            zip(
                data.shape.dims or PartialShape.of_rank(count),
                pads_begin.dims() or unknown,
                pads_end.dims() or unknown,
            )
        ):
            self._check(at, axis, dim, begin, end)
            dims.append((dim + begin + end).max(0))
        return data.reshaped(dims)

    def _rank(self, at: Site, data: Value, pads_begin: Value, pads_end: Value) -> Dim:
        """Return the rank of ``data``, inferred from the pads where unknown. Refuses pads that do not fit (C1)."""
        rank = Dim.unknown() if data.rank is None else Dim(data.rank)
        for name, pads in (("pads_begin", pads_begin), ("pads_end", pads_end)):
            at.require(pads.rank in (None, 1), "C1", f"{name} is {pads.shape}, not 1D")
            both = rank.meet(pads.shape.count())
            at.require(both is not None, "C1", f"{name} has length {pads.shape.count()}, but data is {data.shape}")
            assert both is not None
            rank = both
        return rank

    def _check(self, at: Site, axis: int, dim: Dim, begin: Dim, end: Dim) -> None:
        """Refuse pads (C3) for which ``dim`` has too few elements to repeat or mirror. Pads of 0 or less need none."""
        most = {"constant": INF, "edge": INF if dim.hi > 0 else 0, "reflect": dim.hi - 1, "symmetric": dim.hi}
        for pad in (begin, end):
            enough = pad.lo <= max(most[self.pad_mode], 0)
            at.require(enough, "C3", f"axis {axis} of length {dim} cannot be padded by {pad} in mode {self.pad_mode}")

    def moves(self, inputs: Sequence[Value | None], /) -> bool:
        pads = [() if value is None else value.ints() or () for value in inputs[1:3]]
        return self.pad_mode != "constant" or all(pad <= 0 for pad in (*pads[0], *pads[1]))

    def prepare(self, request: Request) -> Kernel | None:
        data, begins, ends = request.inputs[:3]
        known = [None if value is None else value.ints() for value in (begins, ends)]
        plain = data is not None and data.type.kind not in ("string", "dynamic")
        if self.pad_mode != "constant" or not plain or known[0] is None or known[1] is None or not known[0]:
            return None
        pads = list(zip(*known))

        def call(
            data: np.ndarray,
            begins: np.ndarray,
            ends: np.ndarray,
            value: np.ndarray | None = None,
            *,
            out: np.ndarray | None = None,
        ) -> np.ndarray:
            return _filled(data, pads, blank((), data) if value is None else value, out)

        return Kernel(call, out="whole")

    def run(
        self, data: np.ndarray, pads_begin: np.ndarray, pads_end: np.ndarray, pad_value: np.ndarray | None = None
    ) -> np.ndarray:
        pads = [(int(begin), int(end)) for begin, end in zip(pads_begin, pads_end)]
        if self.pad_mode == "constant":
            return _filled(data, pads, blank((), data) if pad_value is None else pad_value)
        for axis, (begin, end) in enumerate(pads):
            dim = data.shape[axis]
            size = max(begin + dim + end, 0)
            # a negative pad only shifts the window: the pad at the other end may mirror the elements that it crops
            at = np.arange(size) - (begin if size else 0)
            if self.pad_mode == "edge":
                at = np.clip(at, 0, max(dim - 1, 0))
            else:
                twice = 1 if self.pad_mode == "symmetric" else 0  # whether the edge itself is mirrored
                at = np.where(at < 0, -at - twice, at)
                at = np.where(at >= dim, 2 * (dim - 1) + twice - at, at)
            if begin or end:
                data = np.take(data, at, axis)
        return data


def _filled(
    data: np.ndarray, pads: list[tuple[int, int]], value: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """Fill ``out``, or a new array, with ``data`` surrounded by ``value``. Negative pads crop ``data``."""
    if out is None:
        shape = [max(begin + n + end, 0) for n, (begin, end) in zip(data.shape, pads)]
        out = np.empty(shape, np.result_type(data, value))
    here, there = [], []  # the index of the same elements in out and in data
    for n, m, (begin, _) in zip(data.shape, out.shape, pads):
        first = min(max(begin, 0), m)
        last = max(min(begin + n, m), first)
        out[(*here, slice(0, first))] = value
        out[(*here, slice(last, m))] = value
        here.append(slice(first, last))
        there.append(slice(first - begin, last - begin))
    out[tuple(here)] = data[tuple(there)]
    return out


@op("Pad", since=1, spec="movement/pad-1")
class Pad1(Pad12):
    """Compute the same as Pad-12, without negative pads.

    C1  ``pads_begin`` and ``pads_end`` are 1D, with one entry for each axis of ``data``.
    C2  In mode constant, ``pad_value`` is a scalar.
    C3  In mode reflect, each pad is less than its dim, in mode symmetric, it is at most its dim. In mode edge, a dim
        that is padded is not 0.
    C4  Strings are padded in constant mode only.
    C5  No pad is negative.
    """

    # OpenVINO takes negative pads, too, and crops as Pad-12 does

    def _check(self, at: Site, axis: int, dim: Dim, begin: Dim, end: Dim) -> None:
        at.require(
            begin.hi >= 0 and end.hi >= 0, "C5", f"the pads {begin} and {end} of axis {axis} must not be negative"
        )
        super()._check(at, axis, dim, begin, end)
