"""Gather: slices of a tensor along one axis, by index.  Spec: movement/gather-{1,7,8}."""

import math
from functools import partial

import numpy as np

from irrun.kernels.elementwise import copied
from irrun.opdef import Kernel, Op, Packing, Request, Site, Stored, Value, attr, op, ports
from irrun.ops._indices import one_number
from irrun.types import UNKNOWN_RANK, Dim, blank

_FEW = 64
"""The most indices that are compared with 0, 1, 2, …: far fewer than the elements that a copy would move."""


@op("Gather", since=8, spec="movement/gather-8")
class Gather8(Op):
    """Take the slices of ``data`` at ``indices`` along ``axis``, batch by batch.

    Negative indices count from the end. An index outside the axis gives 0.

    C1  ``axis`` has one element.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    C3  ``batch_dims``, counted from the end of ``indices`` if negative, is at most the rank of both inputs and at most
        ``axis``.
    C4  The batch dims of ``data`` and ``indices`` are equal.
    """

    batch_dims = attr.int(0)
    inputs = ports(data="T", indices="T_IND", axis="T_AXIS")
    types = {"T": "any", "T_IND": "int", "T_AXIS": "int"}
    carries = True
    takes_stored = 0
    channels_last = {"axis": "axes", "batch_dims": "leading"}

    def infer(self, at: Site, data: Value, indices: Value, axis: Value) -> Value:
        one_number(at, "C1", axis)
        place = axis.scalar()
        if place is not None:
            place = at.axis(place, data.rank, "C2")
        batch = self.batch_dims
        if indices.rank is not None:
            batch = self._batch(indices.rank)
            at.require(
                0 <= batch <= indices.rank, "C3", f"batch_dims {self.batch_dims} is outside indices {indices.shape}"
            )
        at.require(
            data.rank is None or batch <= data.rank,
            "C3",
            f"batch_dims {batch} is more than the rank of data {data.shape}",
        )
        if place is not None and place >= 0:
            at.require(batch <= place, "C3", f"batch_dims {batch} is more than axis {place}")
        if data.shape.dims is None or indices.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK)
        batches: list[Dim] = []
        for of_data, of_indices in zip(data.shape.dims[:batch], indices.shape.dims[:batch]):
            both = of_data.meet(of_indices)
            at.require(
                both is not None, "C4", f"data {data.shape} and indices {indices.shape} have different batch dims"
            )
            assert both is not None
            batches.append(both)
        taken = indices.shape.dims[batch:]
        if place is None:
            return data.reshaped(batches + [Dim.unknown() for _ in range(len(data.shape) + len(taken) - 1 - batch)])
        return data.reshaped([*batches, *data.shape.dims[batch:place], *taken, *data.shape.dims[place + 1 :]])

    def _batch(self, rank: int) -> int:
        return self.batch_dims + rank if self.batch_dims < 0 else self.batch_dims

    def prepare(self, request: Request) -> Kernel | None:
        data, indices, axis = request.inputs
        place = None if axis is None else axis.scalar()
        if data is None or indices is None or place is None or not data.rank or indices.rank is None:
            return None
        if self._batch(indices.rank) != 0 or data.type.kind == "string":
            return None
        place %= data.rank
        if data.stored is not None:
            return Kernel(partial(self._rows, data.stored), "as stored", packing=Packing((0,))) if place == 0 else None
        count, at = data.shape[place].value, indices.exact
        if at is None or count is None or not ((at >= -count) & (at < count)).all():
            if indices.rank == 1 and not (data.shape.is_static and indices.shape.is_static):
                return Kernel(partial(self._taken_or_all, place))
            return Kernel(partial(self._taken, place), out="whole" if data.rank + indices.rank > 1 else "new")
        at = np.where(at < 0, at + count, at).astype(np.intp)
        if at.ndim == 0:
            before = (slice(None),) * place
            return Kernel(lambda data, *_: data[(*before, int(at), ...)], "view")

        def call(data: np.ndarray, *_: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            return np.take(data, at, place, out, "clip")  # "clip" needs no check and no buffer

        return Kernel(call, out="whole")

    def _rows(self, stored: Stored, data: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray:
        """Unpack the rows at ``indices``. A row of zeros is gathered outside the axis."""
        count = stored.shape[0]
        if indices.size == 1 and -count <= (row := indices.item()) < count:  # a token of a language model
            return stored.unpack_rows(slice(row % count, row % count + 1)).reshape(*indices.shape, stored.shape[1])
        at = indices.astype(np.int64).ravel()
        inside = (at >= -count) & (at < count)
        rows = stored.unpack_rows(np.where(inside, at % count, 0))
        rows[~inside] = 0
        return rows.reshape(*indices.shape, stored.shape[1])

    def _taken(
        self, place: int, data: np.ndarray, indices: np.ndarray, axis: np.ndarray, *, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Gather with indices known only at run time. Call ``run`` if an index is negative or outside the axis."""
        if not indices.size or indices.min() < 0 or indices.max() >= data.shape[place] or not data.size:
            return copied(self.run(data, indices, axis), out)
        return np.asarray(np.take(data, indices.astype(np.intp, copy=False), place, out, "clip"))

    def _taken_or_all(self, place: int, data: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray:
        """Return a view of ``data`` if the few ``indices`` are all of its own, in order; otherwise gather them.

        A language model chooses the rows of its cache by ``beam_idx``, which is [0] unless it searches by beams.
        """
        if 0 < indices.size == data.shape[place] <= _FEW and indices.tolist() == list(range(indices.size)):
            return data[...]
        return self._taken(place, data, indices, axis)

    def run(self, data: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray:
        place, batch = int(axis.item()) % data.ndim, self._batch(indices.ndim)
        count = data.shape[place]
        indices = indices.astype(np.int64)
        inside = (indices >= -count) & (indices < count)
        at = np.where(inside, indices % max(count, 1), 0)
        outer, taken, inner = data.shape[batch:place], indices.shape[batch:], data.shape[place + 1 :]
        shape = data.shape[:batch] + outer + taken + inner
        if count == 0:
            return blank(shape, data)
        if batch == 0:
            result = np.take(data, at, place)
        else:
            batches = np.arange(math.prod(data.shape[:batch]))[:, None, None]
            outers = np.arange(math.prod(outer))[:, None]
            rows = data.reshape(batches.size, outers.size, count, *inner)
            result = rows[batches, outers, at.reshape(batches.size, 1, math.prod(taken))].reshape(shape)
        if not inside.all():
            inside = inside.reshape(indices.shape[:batch] + (1,) * len(outer) + taken + (1,) * len(inner))
            result = np.where(inside, result, blank((), data))
        return np.asarray(result, data.dtype)


@op("Gather", since=7, spec="movement/gather-7")
class Gather7(Gather8):
    """Compute the same as Gather-8, for indices within the axis only.

    C1  ``axis`` has one element.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    C3  ``batch_dims``, counted from the end of ``indices`` if negative, is at most the rank of both inputs and at most
        ``axis``.
    C4  The batch dims of ``data`` and ``indices`` are equal.
    """

    # OpenVINO takes other indices as well; the core kernel as Gather-8 does, while the CPU plugin gives 0 for
    # negative ones


@op("Gather", since=1, spec="movement/gather-1")
class Gather1(Gather7):
    """Compute the same as Gather-7, without batch dims.

    C1  ``axis`` has one element.
    C2  ``axis`` is at least -rank and less than the rank of ``data``.
    """

    attributes = {}
    batch_dims = 0
