"""GatherND: elements or slices of a tensor by tuples of indices.  Spec: movement/gather-nd-{5,8}."""

import math

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._indices import along, check_indices, from_front
from irrun.types import UNKNOWN_RANK, Dim, product


@op("GatherND", since=8, spec="movement/gather-nd-8")
class GatherND8(Op):
    """Take the slice of ``data`` at each tuple along the last axis of ``indices``, batch by batch.

    C1  ``data`` and ``indices`` have at least one axis.
    C2  ``batch_dims`` is at least 0 and less than the rank of each input.
    C3  The batch dims of ``data`` and ``indices`` are equal, or one of them is 1.
    C4  A tuple has at most as many indices as ``data`` has axes after its batch dims.
    C5  Each index is within its axis.
    """

    # OpenVINO's shape rule does not broadcast batch dims

    batch_dims = attr.int(0)
    inputs = ports(data="T", indices="T_IND")
    types = {"T": "any", "T_IND": "int"}

    def infer(self, at: Site, data: Value, indices: Value) -> Value:
        batch = self.batch_dims
        at.require(batch >= 0, "C2", f"batch_dims {batch} is negative")
        for name, value in (("data", data), ("indices", indices)):
            at.require(value.rank != 0, "C1", f"{name} is a scalar")
            at.require(
                value.rank is None or batch < value.rank,
                "C2",
                f"batch_dims {batch} is not less than the rank of {name} {value.shape}",
            )
        if data.shape.dims is None or indices.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK)
        batches: list[Dim] = []
        for a, b in zip(data.shape.dims[:batch], indices.shape.dims[:batch]):
            both = a.broadcast(b)
            at.require(
                both is not None, "C3", f"data {data.shape} and indices {indices.shape} have different batch dims"
            )
            assert both is not None
            batches.append(both)
        length = indices.shape[-1]
        most = len(data.shape) - batch
        at.require(
            length.lo <= most, "C4", f"tuples have {length} indices, but data {data.shape} has {most} axes for them"
        )
        count = length.value
        if count is None:
            return data.reshaped(UNKNOWN_RANK)
        for i in range(count):
            column = None if indices.exact is None else indices.exact[..., i]
            check_indices(at, "C5", column, data.shape[batch + i])
        sliced = data.shape.dims[batch + count :]
        return data.reshaped([*self._batches(batches), *indices.shape.dims[batch:-1], *sliced])

    def _batches(self, dims: list[Dim]) -> list[Dim]:
        """Return the batch dims of the output, from the batch dims of the broadcast inputs."""
        return dims

    def run(self, data: np.ndarray, indices: np.ndarray) -> np.ndarray:
        batch = self.batch_dims
        batches = np.broadcast_shapes(data.shape[:batch], indices.shape[:batch])
        data = np.broadcast_to(data, batches + data.shape[batch:])
        indices = np.broadcast_to(indices, batches + indices.shape[batch:])
        outer = indices.shape[:-1]
        columns = [from_front(indices[..., i], data.shape[batch + i], "C5") for i in range(indices.shape[-1])]
        # the added axis of length 1, indexed with zeros, makes tuples of no indices work
        return np.asarray(data[None][(np.zeros(outer, np.int64), *along(outer, batch), *columns)])


@op("GatherND", since=5, spec="movement/gather-nd-5")
class GatherND5(GatherND8):
    """Compute the same as GatherND-8, with all batch dims flattened into one.

    C1  ``data`` and ``indices`` have at least one axis.
    C2  ``batch_dims`` is at least 0 and less than the rank of each input.
    C3  The batch dims of ``data`` and ``indices`` are equal, or one of them is 1.
    C4  A tuple has at most as many indices as ``data`` has axes after its batch dims.
    C5  Each index is within its axis.
    """

    def _batches(self, dims: list[Dim]) -> list[Dim]:
        return [product(dims)] if dims else []

    def run(self, data: np.ndarray, indices: np.ndarray) -> np.ndarray:
        result = super().run(data, indices)
        batch = self.batch_dims
        return result.reshape(math.prod(result.shape[:batch]), *result.shape[batch:]) if batch else result
