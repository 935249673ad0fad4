"""GatherTree: whole beams from the steps of a beam search.  Spec: movement/gather-tree-1."""

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports
from irrun.ops._indices import from_front


@op("GatherTree", since=1, spec="movement/gather-tree-1")
class GatherTree(Op):
    """Follow each beam from its last step to its first through ``parent_ids``. A beam ends after ``end_token``.

    C1  ``step_ids`` and ``parent_ids`` have the same shape, ``[time, batch, beam]``.
    C2  ``max_seq_len`` is 1D, with one entry for each batch element.
    C3  ``end_token`` is a scalar.
    C4  Each entry of ``parent_ids`` on the path of a beam is the index of a beam.
    C5  All entries are whole numbers.
    """

    inputs = ports(step_ids="T", parent_ids="T", max_seq_len="T", end_token="T")
    types = {"T": "numeric"}

    def infer(self, at: Site, step_ids: Value, parent_ids: Value, max_seq_len: Value, end_token: Value) -> Value:
        for name, value in (("step_ids", step_ids), ("parent_ids", parent_ids)):
            at.require(value.rank in (None, 3), "C1", f"{name} is {value.shape}, not 3D")
        shape = step_ids.shape.meet(parent_ids.shape)
        at.require(shape is not None, "C1", f"step_ids is {step_ids.shape}, but parent_ids is {parent_ids.shape}")
        at.require(max_seq_len.rank in (None, 1), "C2", f"max_seq_len is {max_seq_len.shape}, not 1D")
        at.require(end_token.rank in (None, 0), "C3", f"end_token is {end_token.shape}, not a scalar")
        assert shape is not None
        if shape.dims is None:
            return step_ids.reshaped(shape)
        batch = shape[1].meet(max_seq_len.shape[0])
        at.require(
            batch is not None,
            "C2",
            f"max_seq_len {max_seq_len.shape} and step_ids {step_ids.shape} differ in the batch size",
        )
        assert batch is not None
        return step_ids.reshaped(shape.replace(1, batch))

    def run(
        self, step_ids: np.ndarray, parent_ids: np.ndarray, max_seq_len: np.ndarray, end_token: np.ndarray
    ) -> np.ndarray:
        for name, numbers in (("step_ids", step_ids), ("parent_ids", parent_ids), ("max_seq_len", max_seq_len)):
            if numbers.dtype.kind not in "iu" and not (np.isfinite(numbers) & (np.trunc(numbers) == numbers)).all():
                Site().refuse("C5", f"{name} has an entry that is no integer")
        times, batches, beams = step_ids.shape
        lengths = np.minimum(max_seq_len.astype(np.int64), times)
        tokens = np.full(step_ids.shape, end_token)
        at = np.broadcast_to(np.arange(beams), (batches, beams)).copy()
        for time in reversed(range(times)):
            running = time < lengths  # a shorter sequence starts at its own last step
            beam = from_front(at[running], beams, "C4", negative=False)
            tokens[time, running] = np.take_along_axis(step_ids[time, running], beam, 1)
            at[running] = np.take_along_axis(parent_ids[time, running], beam, 1).astype(np.int64)
        ended = np.logical_or.accumulate(tokens == end_token, axis=0)
        return np.where(ended, end_token, tokens)
