"""Detection: NonMaxSuppression, ROIAlign, ROIPooling."""

from __future__ import annotations

import numpy as np

from irrun.export.call import Call
from irrun.export.registry import converts

__all__: list[str] = []


@converts("NonMaxSuppression", computes="f32")
def non_max_suppression(call: Call) -> list[str]:
    """NonMaxSuppression, with the scores of what it selects."""
    op = call.op
    room = call.outputs[0].shape[0].value
    call.require(op.since >= 5 or room is not None, "how many rows are filled up is not known")
    if call.given(5):
        sigma = call.known(5).ravel()
        call.require(not sigma.any(), "ONNX has no soft suppression")
    numbers: list[str | np.ndarray | None] = []
    for position, type in ((2, "i64"), (3, "f32"), (4, "f32")):
        if call.given(position):
            numbers.append(call("Reshape", call.cast(call.input(position), type), [1]))
        else:
            numbers.append(np.zeros(1, np.int64 if position == 2 else np.float32))
    boxes, scores = call.cast(call.input(0), "f32"), call.cast(call.input(1), "f32")
    selected = call("NonMaxSuppression", boxes, scores, *numbers, center_point_box=int(op.box_encoding == "center"))
    best = call("GatherND", scores, selected)
    if op.sort_result_descending:
        count = call("Shape", best)
        best, order = call.many("TopK", best, count, outputs=2, axis=0)
        selected = call("Gather", selected, order, axis=0)
    if op.since < 5:  # the output has room for all boxes that can be kept, filled up with -1
        filled = call("Concat", selected, np.full((room or 0, 3), -1, np.int64), axis=0)
        return [call.cast(call("Slice", filled, [0], [room or 0], [0]), call.outputs[0].type)]
    places = call("Slice", selected, [0], [2], [1])
    rows = call("Concat", call.cast(places, "f32"), call("Unsqueeze", best, [1]), axis=1)
    count = call("Shape", best)
    types = [value.type for value in call.outputs]
    return [call.cast(name, type) for name, type in zip((selected, rows, count), types)]


@converts("ROIAlign", computes="f32")
def roi_align(call: Call) -> str:
    """RoiAlign."""
    op = call.op
    aligned = getattr(op, "aligned_mode", "asymmetric")
    mode = "output_half_pixel" if aligned == "asymmetric" else "half_pixel"
    rois = call("Add", call.input(1), 0.5) if aligned == "half_pixel" else call.input(1)
    call.require(op.mode == "avg" or op.sampling_ratio == 1, "onnxruntime takes another maximum")
    indices = call.cast(call.input(2), "i64")
    return call(
        "RoiAlign", call.input(0), rois, indices, mode=op.mode, output_height=op.pooled_h,
        output_width=op.pooled_w, sampling_ratio=op.sampling_ratio, spatial_scale=op.spatial_scale,
        coordinate_transformation_mode=mode,
    )  # fmt: skip
