"""CTCGreedyDecoderSeqLen: the classes on the best path, with lengths.  Spec: sequence/ctc-greedy-decoder-seq-len-6."""

import numpy as np

from irrun.opdef import Op, Refused, Site, Value, attr, op, opt, ports
from irrun.ops._ctc import decode, same_dim


@op("CTCGreedyDecoderSeqLen", since=6, spec="sequence/ctc-greedy-decoder-seq-len-6")
class CTCGreedyDecoderSeqLen(Op):
    """Return the most probable class of each step without blanks, filled up with -1, and the number of these classes.

    With ``merge_repeated``, repetitions of a class are left out as well.

    C1  ``data`` is 3D [N, T, C], ``sequence_length`` is 1D [N], ``blank_index`` has one element.
    C2  N is the same in ``data`` and ``sequence_length``.
    C3  ``classes_index_type`` and ``sequence_length_type`` are i32 or i64.
    C4  Each entry of ``sequence_length`` is at least 0 and at most T.
    """

    merge_repeated = attr.bool(True)
    classes_index_type = attr.element_type("i32")
    sequence_length_type = attr.element_type("i32")
    inputs = ports(data="T_F", sequence_length="T_LEN", blank_index=opt("T_BLANK"))
    # OpenVINO takes two different types
    types = {"T_F": "float", "T_LEN": "i32 i64", "T_BLANK": "i32 i64"}
    outputs = 2

    def infer(
        self, at: Site, data: Value, sequence_length: Value, blank_index: Value | None = None
    ) -> tuple[Value, Value]:
        at.require(data.rank in (None, 3), "C1", f"data is {data.shape}, not 3D")
        at.require(sequence_length.rank in (None, 1), "C1", f"sequence_length is {sequence_length.shape}, not 1D")
        if blank_index is not None:
            single = blank_index.rank in (None, 0, 1) and blank_index.shape.count().fits(1)
            at.require(single, "C1", f"blank_index is {blank_index.shape}, not a single element")
        for name in ("classes_index_type", "sequence_length_type"):
            element_type = getattr(self, name)
            at.require(element_type.name in ("i32", "i64"), "C3", f"{name} is {element_type}, not i32 or i64")
        batch = same_dim(at, "C2", data=(data, 0), sequence_length=(sequence_length, 0))
        time = data.shape[1]
        for length in sequence_length.ints() or ():
            message = f"sequence_length has the entry {length}, but data {data.shape} has {time} steps"
            at.require(0 <= length <= time.hi, "C4", message)
        return (
            data.reshaped([batch, time]).typed(self.classes_index_type),
            data.reshaped([batch]).typed(self.sequence_length_type),
        )

    def run(
        self, data: np.ndarray, sequence_length: np.ndarray, blank_index: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        time, count = data.shape[1:]
        outside = sequence_length[(sequence_length < 0) | (sequence_length > time)]
        if outside.size:
            raise Refused(
                f"sequence_length has the entry {outside[0]}, but data {list(data.shape)} has {time} steps", "C4"
            )
        blank = count - 1 if blank_index is None else int(blank_index.item())
        inside = np.arange(time) < sequence_length[:, None]
        best = data.argmax(axis=2) if data.size else np.zeros(inside.shape, np.int64)
        classes, lengths = decode(best, inside, blank, self.merge_repeated)
        return classes.astype(self.classes_index_type.dtype), lengths.astype(self.sequence_length_type.dtype)
