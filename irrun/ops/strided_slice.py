"""StridedSlice: basic indexing as in numpy, written with masks.  Spec: movement/strided-slice-1."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irrun.opdef import Kernel, Op, Refused, Request, Site, Value, attr, few, op, opt, ports
from irrun.ops._slicing import constants, count_axes, sliced, view_channels_last
from irrun.types import INF, UNKNOWN_RANK, Dim


@op("StridedSlice", since=1, spec="movement/strided-slice-1")
class StridedSlice(Op):
    """Take ``data[begin:end:strides]``. Masks ignore bounds, insert axes, remove axes, or make an entry an ellipsis.

    Each entry of ``begin`` is for an axis of ``data``, for a new axis of length 1, or (ellipsis) for all axes that no
    other entry is for. If two masks are set for an entry, ellipsis takes precedence over new axis, and new axis over
    shrink.

    C1  ``begin``, ``end`` and ``strides`` are 1D and have the same length.
    C2  The stride of a sliced axis is not 0.
    C3  ``ellipsis_mask`` has at most one 1.
    C4  ``begin`` has at most as many entries for axes as ``data`` has axes.
    C5  If ``shrink_axis_mask`` is set for an entry, ``begin`` is an index within the axis that is removed.
    C6  Masks hold only 0 and 1.
    """

    # the specification requires the first two masks, but leaves them out in its first example
    begin_mask = attr.ints(())
    end_mask = attr.ints(())
    new_axis_mask = attr.ints(())
    shrink_axis_mask = attr.ints(())
    ellipsis_mask = attr.ints(())
    # OpenVINO allows different types for begin, end and strides
    views = "strided"
    inputs = ports(data="T", begin="T_BEGIN", end="T_END", strides=opt("T_STRIDES"))
    types = {"T": "any", "T_BEGIN": "int", "T_END": "int", "T_STRIDES": "int"}
    carries = True
    channels_last = True

    def infer(self, at: Site, data: Value, begin: Value, end: Value, strides: Value | None = None) -> Value:
        for name in self.attributes:
            mask = getattr(self, name)
            at.require(set(mask) <= {0, 1}, "C6", f"{name} {list(mask)} has an entry other than 0 and 1")
        count = few(count_axes(at, "C1", begin=begin, end=end, strides=strides))
        if count is None:
            keeps_rank = 1 not in (*self.new_axis_mask, *self.shrink_axis_mask)
            blurred = [Dim(0, d.hi) for d in data.shape.dims or ()]
            return data.reshaped(blurred if keeps_rank and data.rank is not None else UNKNOWN_RANK)
        kinds = self._kinds(count)
        at.require(
            kinds.count("ellipsis") <= 1, "C3", f"ellipsis_mask {list(self.ellipsis_mask)} is set more than once"
        )
        unknown = (Dim(-INF, INF),) * count
        begins, ends = begin.dims() or unknown, end.dims() or unknown
        steps = (Dim(1),) * count if strides is None else strides.dims() or unknown
        for i, kind in enumerate(kinds):
            at.require(kind != "slice" or steps[i] != 0, "C2", f"entry {i} of strides is 0")
        if data.shape.dims is None:
            return data.reshaped(data.shape)
        used = kinds.count("slice") + kinds.count("shrink")
        at.require(used <= len(data.shape), "C4", f"begin has entries for {used} axes, but data has rank {data.rank}")
        if "ellipsis" not in kinds:
            kinds.append("ellipsis")
        left = iter(data.shape)
        dims: list[Dim] = []
        for i, kind in enumerate(kinds):
            if kind == "new":
                dims.append(Dim(1))
            elif kind == "ellipsis":
                dims += [next(left) for _ in range(len(data.shape) - used)]
            elif kind == "shrink":
                first, dim = Dim(0) if _bit(self.begin_mask, i) else begins[i], next(left)
                at.require(
                    first.lo < dim.hi and first.hi >= -dim.hi,
                    "C5",
                    f"entry {i} of begin is {first}, outside an axis of {dim} elements",
                )
            else:
                start = None if _bit(self.begin_mask, i) else begins[i]
                stop = None if _bit(self.end_mask, i) else ends[i]
                dims.append(_length(next(left), start, stop, steps[i]))
        return data.reshaped(dims)

    def _kinds(self, count: int) -> list[str]:
        """Return the kind of each entry of ``begin``: slice, new, ellipsis or shrink."""
        masks = {"ellipsis": self.ellipsis_mask, "new": self.new_axis_mask, "shrink": self.shrink_axis_mask}
        return [next((kind for kind, mask in masks.items() if _bit(mask, i)), "slice") for i in range(count)]

    # OpenVINO slices as numpy does, and not as the text of the specification says: a slice with equal begin and end is
    # empty, and with end_mask, a backward slice includes element 0. As the text says, and unlike numpy, a backward
    # slice that begins before element 0 begins with it.

    def prepare(self, request: Request) -> Kernel | None:
        bounds = constants(request.inputs[1:])
        if not request.channels_last or bounds is None:
            return None
        begin, end, strides = (*bounds, None)[:3]
        assert begin is not None
        assert end is not None
        if strides is not None and ((strides < 0) & (begin < 0)).any():  # the dims decide where it begins
            return None
        index = self._index((INF,) * 4, begin, end, strides)
        slices = [at for at in index if isinstance(at, slice)]
        if len(slices) < len(index) - 1:
            return None
        place = index.index(...)
        return view_channels_last((*slices[:place], *(slice(None),) * (4 - len(slices)), *slices[place:]))

    def _index(self, dims: Sequence[int], begin: np.ndarray, end: np.ndarray, strides: np.ndarray | None) -> list[Any]:
        """Return the entries of the numpy index of data with these dims. Exactly one of them is an Ellipsis."""
        index: list[Any] = []
        kinds = self._kinds(len(begin))
        axis = 0
        for i, kind in enumerate(kinds):
            if kind == "new":
                index.append(None)
            elif kind == "ellipsis":
                index.append(...)
                axis = len(dims) - sum(later in ("slice", "shrink") for later in kinds[i + 1 :])
            elif kind == "shrink":  # OpenVINO's core kernel ignores begin_mask here, the CPU plugin does not
                index.append(0 if _bit(self.begin_mask, i) else int(begin[i]))
                axis += 1
            else:
                step = 1 if strides is None else int(strides[i])
                start = None if _bit(self.begin_mask, i) else int(begin[i])
                stop = None if _bit(self.end_mask, i) else int(end[i])
                index.append(slice(0 if start is not None and step < 0 and start < -dims[axis] else start, stop, step))
                axis += 1
        if "ellipsis" not in kinds:
            index.append(...)
        return index

    def run(
        self, data: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray | None = None
    ) -> np.ndarray:
        try:
            return data[tuple(self._index(data.shape, begin, end, strides))]
        except IndexError:
            raise Refused(
                f"begin {begin.tolist()} has an index outside an axis of data {list(data.shape)}", "C5"
            ) from None


def _length(dim: Dim, start: Dim | None, stop: Dim | None, step: Dim) -> Dim:
    """Return the length of a slice. A backward slice that begins before element 0 has this element at most."""
    if start is None or step.lo >= 0 or start.lo >= -dim.lo:
        return sliced(dim, start, stop, step)
    if start.hi < -dim.hi:
        return sliced(dim, Dim(0), stop, step)
    length = sliced(dim, start, stop, step)
    return Dim(length.lo, max(length.hi, 1))


def _bit(mask: tuple[int, ...], i: int) -> bool:
    """Return whether ``mask`` is set at ``i``. It may be shorter than ``begin`` (zeros follow) or longer."""
    return i < len(mask) and mask[i] == 1
