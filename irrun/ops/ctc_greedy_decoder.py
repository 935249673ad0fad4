"""CTCGreedyDecoder: the classes on the best path, with a mask of lengths.  Spec: sequence/ctc-greedy-decoder-1."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._ctc import decode, same_dim
from irrun.types import Dim


@op("CTCGreedyDecoder", since=1, spec="sequence/ctc-greedy-decoder-1")
class CTCGreedyDecoder(Op):
    """Return the most probable class of each step. Blanks (the last class) are left out, and -1 fills the rest.

    With ``ctc_merge_repeated``, repetitions of a class are left out as well.

    C1  ``data`` is 3D [T, N, C], ``sequence_mask`` is 2D [T, N].
    C2  T and N are the same in both.
    """

    ctc_merge_repeated = attr.bool(True)
    inputs = ports(data="T", sequence_mask="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, sequence_mask: Value) -> Value:
        at.require(data.rank in (None, 3), "C1", f"data is {data.shape}, not 3D")
        at.require(sequence_mask.rank in (None, 2), "C1", f"sequence_mask is {sequence_mask.shape}, not 2D")
        time, batch = (same_dim(at, "C2", data=(data, axis), sequence_mask=(sequence_mask, axis)) for axis in (0, 1))
        return data.reshaped([batch, time, Dim(1), Dim(1)])

    def run(self, data: np.ndarray, sequence_mask: np.ndarray) -> np.ndarray:
        inside = np.logical_and.accumulate(sequence_mask.T != 0, axis=1)  # a sequence ends at its first 0
        best = data.argmax(axis=2).T if data.size else np.zeros(inside.shape, np.int64)
        classes, _ = decode(best, inside, data.shape[2] - 1, self.ctc_merge_repeated)
        return classes.astype(data.dtype)[:, :, None, None]
