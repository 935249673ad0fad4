"""Slice: a strided region of a tensor.  Spec: movement/slice-8."""

import numpy as np

from irrun.opdef import Kernel, Op, Request, Site, Value, op, opt, ports
from irrun.ops._slicing import constants, region, slice_shape, view_channels_last


@op("Slice", since=8, spec="movement/slice-8")
class Slice(Op):
    """Take ``data[start:stop:step]``, as Python does, along ``axes`` (by default the first axes).

    C1  ``data`` has at least one axis.
    C2  ``start``, ``stop``, ``step`` and ``axes`` are 1D and have the same length, at most the rank of ``data``.
    C3  No entry of ``step`` is 0.
    C4  Each entry of ``axes`` is at least -rank and less than the rank of ``data``, and none occurs twice.
    """

    # OpenVINO allows different types for start, stop and step
    views = "strided"
    inputs = ports(data="T", start="T_START", stop="T_STOP", step="T_STEP", axes=opt("T_AXIS"))
    types = {"T": "any", "T_START": "int", "T_STOP": "int", "T_STEP": "int", "T_AXIS": "int"}
    carries = True
    channels_last = True

    def infer(self, at: Site, data: Value, start: Value, stop: Value, step: Value, axes: Value | None = None) -> Value:
        return data.reshaped(slice_shape(at, data, start, stop, step, axes))

    def prepare(self, request: Request) -> Kernel | None:
        bounds = constants(request.inputs[1:])
        if not request.channels_last or bounds is None:
            return None
        start, stop, step, axes = (*bounds, None)[:4]
        assert start is not None
        assert stop is not None
        assert step is not None
        return view_channels_last(region(4, start, stop, step, axes))

    def run(
        self, data: np.ndarray, start: np.ndarray, stop: np.ndarray, step: np.ndarray, axes: np.ndarray | None = None
    ) -> np.ndarray:
        return data[region(data.ndim, start, stop, step, axes)]
