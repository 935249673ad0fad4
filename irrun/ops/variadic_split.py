"""VariadicSplit: a tensor cut into parts of given lengths.  Spec: movement/variadic-split-1."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports
from irrun.types import INF, Dim


@op("VariadicSplit", since=1, spec="movement/variadic-split-1")
class VariadicSplit(Op):
    """Cut ``data`` along ``axis`` into parts of the lengths ``split_lengths``, where -1 stands for the rest.

    C1  ``axis`` is a scalar or 1D with one element.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    C3  ``split_lengths`` is 1D, with one entry for each output.
    C4  No entry of ``split_lengths`` is below -1, and at most one is -1.
    C5  The sum of the lengths is the dim of ``axis``.
    """

    views = "strided"
    inputs = ports(data="T", axis="T_AXIS", split_lengths="T_LENGTHS")
    # OpenVINO takes axis and split_lengths of different types
    types = {"T": "any", "T_AXIS": "int", "T_LENGTHS": "int"}
    channels_last = {"axis": "axes"}
    outputs = None
    carries = True

    def infer(self, at: Site, data: Value, axis: Value, split_lengths: Value) -> tuple[Value, ...]:
        single = axis.rank in (None, 0, 1) and axis.shape.count().fits(1)
        at.require(single, "C1", f"axis is {axis.shape}, not a scalar or 1D of one element")
        at.require(split_lengths.rank in (None, 1), "C3", f"split_lengths is {split_lengths.shape}, not 1D")
        count = split_lengths.shape.count()
        message = f"split_lengths has length {count}, but the layer has {at.outputs} outputs"
        at.require(count.hi >= at.outputs, "C3", message)
        lengths = split_lengths.dims() or (Dim(-INF, INF),) * at.outputs
        listed = f"split_lengths [{','.join(map(str, lengths))}]"
        at.require(all(n.hi >= -1 for n in lengths), "C4", f"{listed} has an entry below -1")
        at.require(sum(n == -1 for n in lengths) <= 1, "C4", f"{listed} has more than one -1")
        if data.shape.dims is None:
            return (data.reshaped(data.shape),) * at.outputs
        place = 0 if data.rank == 1 and axis.scalar() is None else axis.scalar()
        if place is None:
            return (data.reshaped([Dim(0, d.hi) for d in data.shape]),) * at.outputs
        place = at.axis(place, data.rank, "C2")
        parts = _parts(data.shape[place], lengths)
        at.require(parts is not None, "C5", f"the sum of {listed} is not dim {place} of data {data.shape}")
        assert parts is not None
        return tuple(data.reshaped(data.shape.replace(place, n)) for n in parts)

    def run(self, data: np.ndarray, axis: np.ndarray, split_lengths: np.ndarray) -> tuple[np.ndarray, ...]:
        place = int(axis.item())
        lengths = [int(n) for n in split_lengths]
        if -1 in lengths:
            lengths[lengths.index(-1)] = data.shape[place] - (sum(lengths) + 1)
        return tuple(np.split(data, list(accumulate(lengths[:-1])), place))


def _parts(dim: Dim, lengths: Sequence[Dim]) -> list[Dim] | None:
    """Return each length, narrowed by what the other lengths leave of ``dim``, or None if they contradict ``dim``."""
    known = [n if n.lo >= 0 else Dim.unknown() for n in lengths]  # an entry that may be -1 may be any length
    before = list(accumulate(known, initial=Dim(0)))
    after = list(accumulate(reversed(known), initial=Dim(0)))[::-1]
    parts: list[Dim] = []
    for i, (length, n) in enumerate(zip(lengths, known)):
        left = dim - (before[i] + after[i + 1])
        part = n.meet(left) if length is n else left.meet(n)
        if part is None:
            return None
        parts.append(part)
    return parts
