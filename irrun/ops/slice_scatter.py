"""SliceScatter: put a tensor into a strided region of another.  Spec: movement/slice-scatter-15."""

import numpy as np

from irrun.opdef import Op, Refused, Site, Value, op, opt, ports
from irrun.ops._indices import scatter
from irrun.ops._slicing import region, slice_shape


@op("SliceScatter", since=15, spec="movement/slice-scatter-15")
class SliceScatter(Op):
    """Replace ``data[start:stop:step]``, as Python does, along ``axes`` (by default the first axes), by ``updates``.

    C1  ``data`` has at least one axis.
    C2  ``start``, ``stop``, ``step`` and ``axes`` are 1D and have the same length, at most the rank of ``data``.
    C3  No entry of ``step`` is 0.
    C4  Each entry of ``axes`` is at least -rank and less than the rank of ``data``, and none occurs twice.
    C5  ``updates`` has the shape of the slice.
    """

    # OpenVINO allows different types for data and updates, and for start, stop and step
    inputs = ports(data="T", updates="T_UPDATES", start="T_START", stop="T_STOP", step="T_STEP", axes=opt("T_AXIS"))
    types = {
        "T": "numeric boolean", "T_UPDATES": "numeric boolean",
        "T_START": "int", "T_STOP": "int", "T_STEP": "int", "T_AXIS": "int",
    }  # fmt: skip
    carries = True

    def infer(
        self, at: Site, data: Value, updates: Value, start: Value, stop: Value, step: Value, axes: Value | None = None
    ) -> Value:
        slice_of_data = slice_shape(at, data, start, stop, step, axes)
        at.require(
            updates.shape.meet(slice_of_data) is not None,
            "C5",
            f"updates is {updates.shape}, but the slice is {slice_of_data}",
        )
        return data.reshaped(data.shape)

    def run(
        self,
        data: np.ndarray,
        updates: np.ndarray,
        start: np.ndarray,
        stop: np.ndarray,
        step: np.ndarray,
        axes: np.ndarray | None = None,
    ) -> np.ndarray:
        place = region(data.ndim, start, stop, step, axes)
        slice_of_data = data[place].shape
        if updates.shape != slice_of_data:
            raise Refused(f"updates is {list(updates.shape)}, but the slice is {list(slice_of_data)}", "C5")
        return scatter(data, place, updates, "none")
