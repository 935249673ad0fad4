"""ReverseSequence: the beginning of each sequence of a batch in reverse order.  Spec: movement/reverse-sequence-1."""

import numpy as np

from irrun.opdef import Op, Refused, Site, Value, attr, op, ports


@op("ReverseSequence", since=1, spec="movement/reverse-sequence-1")
class ReverseSequence(Op):
    """Reverse the first ``seq_lengths[i]`` elements along ``seq_axis`` in slice ``i`` along ``batch_axis``.

    C1  The rank of ``data`` is at least 2.
    C2  ``batch_axis`` and ``seq_axis`` are at least -rank and less than the rank of ``data``.
    C3  ``seq_lengths`` is 1D, with one entry for each slice along ``batch_axis``.
    C4  Each entry of ``seq_lengths`` is a whole number from 0 to the dim of ``seq_axis``.
    """

    batch_axis = attr.int(0)
    seq_axis = attr.int(1)
    inputs = ports(data="T", seq_lengths="T_LENGTHS")
    types = {"T": "any", "T_LENGTHS": "numeric"}

    def infer(self, at: Site, data: Value, seq_lengths: Value) -> Value:
        at.require(seq_lengths.rank in (None, 1), "C3", f"seq_lengths is {seq_lengths.shape}, not 1D")
        if data.shape.dims is None:
            return data.reshaped(data.shape)
        at.require(len(data.shape) >= 2, "C1", f"data {data.shape} has rank {data.rank}, less than 2")
        batch, along = (at.axis(a, data.rank, "C2") for a in (self.batch_axis, self.seq_axis))
        count = data.shape[batch].meet(seq_lengths.shape.count())
        at.require(
            count is not None,
            "C3",
            f"seq_lengths {seq_lengths.shape} has no entry for each slice of data {data.shape} along {batch}",
        )
        assert count is not None
        for n in () if seq_lengths.exact is None else seq_lengths.exact.tolist():
            _check_length(n, data.shape[along].hi)
        return data.reshaped(data.shape.replace(batch, count))

    def run(self, data: np.ndarray, seq_lengths: np.ndarray) -> np.ndarray:
        batch, along = self.batch_axis % data.ndim, self.seq_axis % data.ndim
        for n in seq_lengths.tolist():
            _check_length(n, data.shape[along])
        lengths = seq_lengths.astype(np.int64).reshape([-1 if axis == batch else 1 for axis in range(data.ndim)])
        at = np.arange(data.shape[along]).reshape([-1 if axis == along else 1 for axis in range(data.ndim)])
        places = np.where(at < lengths, lengths - 1 - at, at)
        return np.take_along_axis(data, places, along)


def _check_length(length: float, steps: int) -> None:
    # OpenVINO treats a length of 0 as 1; in the specification, lengths begin at 1
    if not 0 <= length <= steps or length != int(length):
        raise Refused(f"seq_lengths has the entry {length}, but the sequences have {steps} elements", "C4")
