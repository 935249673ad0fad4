"""What releases compare between inputs, axes and attributes of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
import irrun.build as b
from irrun.api import load
from irrun.checking.checker import examine
from irrun.targets.facts import facts
from layer_facts import sentences
from nets import Net

ALIGNED = "input 1 is not aligned with the last dims of input 0"
PLACED, BEYOND = "axis places the fewer dims of input 1", "axis places input 1 beyond the last dim of input 0"
LONG = "an axis to remove is longer than 1"
LENGTHS, TWICE = "a label has two lengths", "a subscript has a label twice"
BATCH = "inputs 0 and 1 differ in dim 0"
UPDATES = "its updates have another rank than its data and indices ask for"
NORM = "its axes are neither the channels nor all spatial axes"
COLUMNS = "input 1 has fewer than 5 columns"
CELL = "it has the usual activations and does not clip"
MASK = "its mask does not end with the numbers of queries and keys"
CHOSEN = "axis places the fewer dims of input 2"
RESIZED, MOVED = "it resizes axis 0 of 4, or axis 0 or 1 of 5", "it resizes axis 1 of 4, or axis 0 or 1 of 3"
MASKS = "a mask has neither the length of begin_mask nor 0"
FRAME = "its window is empty or longer than a frame"
KEPT, LAST = "it keeps an axis of a scalar", "it reduces axis -1 of a scalar"
NEITHER = "it reduces an axis of a scalar that is neither 0 nor -1"
ALONE = "it has width or height alone"
WIDE = "each channel has a window of 15 rows and columns or more, and no Sigmoid or Tanh behind it"
WINDOW = "a window fits into its padding"
LABELS, ETA = "background_label_id is not its default", "nms_eta is not its default"
APART = "input 1 does not broadcast to input 0 from the axis on"
AXIS, AXES = "an input names the axis that it removes", "an input names the axes that it removes"
ROWS = "input 0 has fewer than 5 rows"

INNER = "input 1 has a dim 1 that is not at its end, to broadcast to input 0"
JOINED, RANGES = "an axis before that of joining is longer than 1", "the range of its input varies along axis 2 alone"
REMOVED = "an axis to remove begins outside of input 0"
MIXED, BEGINS = "inputs that must have one type differ", "it begins along more axes than input 0 and new axes are"
GROUP, IDLE = "it has one group of several channels", "its equation changes nothing"
ELLIPSIS = "a subscript has an ellipsis"

BLOCKS, CHANNELS = "its data has another number of blocks than it counts", "it has several channels"
REVERSED, LEVELS = "the range of its input is reversed", "it has at most two levels, which are not 0 and 1"
IMAGE, OTHER = "it makes bits of an image", "it makes bits of another rank"
BEYOND_EMPTY, REPEATED = "an index lies outside of an empty input", "it repeats an empty input"
SLICED = "it slices data of more than 2 dims, not by constants alone"
OTHER_PADS = "its unused pads are neither empty nor one for each spatial axis"
WRITTEN, EMPTY_RANGE = "auto_pad pads an axis of 0", "a constant range is empty"
PADS = "it has more pads than axes"
FEW, OTHER_INDICES = "it has fewer than 2 levels", "its indices differ in length from its data"
OTHER_SIZE = "hidden_size is not the length of its state"
SCALAR, BEHIND = "axis places a scalar at axis 1", "axis places a scalar behind axis 1"
FEWER, LAST_DIM = "its queries have fewer batches than its keys", "axis places a scalar behind the last dim"
INFERRED, TOO_LARGE = "its shape has a dim 0, and one to infer", "it makes boxes for an image that is too large"
NO_WINDOW = "no window fits into output_shape along an unknown dim"
PADDED, HALF = "a step of its kernel lies in the padding", "it knows the batch of one input, but not of another"

STATES, UNEQUAL = "it knows the batch of its states, but not of its data", "its batches differ in length"
SHORT, SUMS = "the axis of joining is 1 long in input 0", "an axis behind that of its sums is longer than 1"

PDPD = {"auto_broadcast": "pdpd"}
RESIZE = {"mode": "nearest", "axes": "1"}
POOL = {"kernel": "2,2", "strides": "1,1", "pads_begin": "0,2", "pads_end": "0,0", "dilations": "1,1"}
CONVOLVE: dict[str, Any] = {"strides": "1,1", "pads_begin": "7,7", "pads_end": "7,7", "dilations": "1,1"}
DECONVOLVE = {**CONVOLVE, "pads_begin": "0,0", "pads_end": "0,0"}
BITS = {**CONVOLVE, "mode": "xnor-popcount", "pad_value": "0"}
SEQUENCE = {"hidden_size": "2", "direction": "forward", "activations": "tanh"}
DETECT = {"keep_top_k": "1", "nms_threshold": "0.5", "decrease_label_id": "true"}
GENERATE = {"min_size": "1", "nms_threshold": "0.5", "pre_nms_count": "9", "post_nms_count": "9"}
PROPOSAL = {"base_size": "16", "feat_stride": "8", "min_size": "16", "nms_thresh": "1.0", "post_nms_topn": "1", "pre_nms_topn": "1", "ratio": "1", "scale": "1"}  # fmt: skip
CASES = [
    ("Add", ["2,3,4", "3"], {**PDPD, "auto_broadcast.auto_broadcast_axis": "1"}, {ALIGNED, PLACED}),
    ("Add", ["2,3,4", "3,4"], {**PDPD, "auto_broadcast.auto_broadcast_axis": "1"}, {PLACED}),
    ("Add", ["3", "1,3"], PDPD, set()),
    ("Add", ["2,3,4", "4"], PDPD, {APART}),
    ("Add", ["2,3,4", "2"], PDPD, set()),
    ("Add", ["2,3,4", "3"], {**PDPD, "auto_broadcast.auto_broadcast_axis": "-1"}, {APART}),
    ("Add", ["2,3", "2,3"], {**PDPD, "auto_broadcast.auto_broadcast_axis": "1"}, {BEYOND, APART}),
    ("Add", ["2,3", "1,3"], PDPD, {INNER}),
    ("Select", ["3,4", "2,3,4,5", "3,4"], {**PDPD, "auto_broadcast.auto_broadcast_axis": "1"}, {CHOSEN}),
    ("Select", ["4,5", "2,3,4,5", "4,5"], PDPD, set()),
    ("Squeeze", ["2,1", [0]], {}, {LONG}),
    ("Squeeze", ["2,1", [-1]], {}, set()),
    ("Squeeze", ["2..,1", [0]], {}, {LONG}),
    ("Gather", ["1,0", [1], [0]], {"batch_dims": "0"}, {BEYOND_EMPTY}),
    ("Gather", ["1,0", [-1], [0]], {"batch_dims": "0"}, set()),
    ("Gather", ["1,2", [1], [0]], {"batch_dims": "0"}, set()),
    ("Broadcast", ["1,0", [2, 0]], {"mode": "bidirectional"}, {REPEATED}),
    ("Broadcast", ["2,0", [2, 1]], {"mode": "bidirectional"}, set()),
    ("Broadcast", ["1,3", [2, 3]], {"mode": "bidirectional"}, set()),
    ("SliceScatter", ["2,3,4", "2,1,4", [0], [1], "1", [1]], {}, {SLICED}),
    ("SliceScatter", ["2,3,4", "2,1,4", [0], [1], [1], [1]], {}, set()),
    ("SliceScatter", ["3,4", "3,1", [0], [1], "1", [1]], {}, set()),
    ("Convolution", ["1,1,8,8", "1,1,3,3"], {**CONVOLVE, "auto_pad": "valid", "pads_begin": "0"}, {OTHER_PADS}),
    ("Convolution", ["1,1,8,8", "1,1,3,3"], {**CONVOLVE, "auto_pad": "valid"}, set()),
    ("Convolution", ["1,1,8,0", "1,1,3,3"], {**CONVOLVE, "auto_pad": "same_lower"}, {WRITTEN}),
    ("Convolution", ["1,1,8,0", "1,1,3,1"], {**CONVOLVE, "auto_pad": "same_lower"}, set()),
    ("Convolution", ["0,1,8,8", "1,1,3,3"], {**CONVOLVE, "auto_pad": "same_lower"}, set()),
    ("Pad", ["2,3", "3", [1]], {"pad_mode": "constant"}, {PADS}),
    ("Pad", ["?,3", [1, 1], "3"], {"pad_mode": "constant"}, {PADS}),
    ("Pad", ["2,3", "?", [1]], {"pad_mode": "constant"}, set()),
    ("GatherElements", ["2,3", "2,4"], {"axis": "0"}, {OTHER_INDICES}),
    ("GatherElements", ["2,3", "2,4"], {"axis": "-1"}, set()),
    ("Equal", ["2,3", ""], {**PDPD, "auto_broadcast.auto_broadcast_axis": "1"}, {SCALAR, PLACED, ALIGNED}),
    ("Equal", ["2,3", ""], {**PDPD, "auto_broadcast.auto_broadcast_axis": "2"}, {BEHIND, LAST_DIM, PLACED}),
    ("Reshape", ["4,?", [2, 0, -1]], {"special_zero": "false"}, {INFERRED}),
    ("Reshape", ["4,?", [4, 0, -1]], {"special_zero": "true"}, set()),
    ("Reshape", ["4,0", [2, 0, -1]], {"special_zero": "false"}, set()),
    ("PriorBoxClustered", [[1 << 20, 1 << 20], [32, 32]], {"width": "1", "height": "1"}, {TOO_LARGE}),
    ("PriorBoxClustered", [[-1, 4], [32, 32]], {"width": "1", "height": "1"}, {TOO_LARGE}),
    ("Einsum", ["3", "1"], {"equation": "a,a->a"}, {LENGTHS}),
    ("Einsum", ["3,3"], {"equation": "aa->a"}, {TWICE}),
    ("Einsum", ["2,3", "3,4"], {"equation": "ab,bc->ac"}, set()),
    *(("Einsum", ["2,3"], {"equation": text}, {wanted}) for text, wanted in (("a...->...a", ELLIPSIS), ("ab", IDLE))),
    ("Concat", ["2,3", "2,3"], {"axis": "-1"}, {JOINED}),
    ("Concat", ["2,1", "2,3"], {"axis": "-1"}, {JOINED, SHORT}),
    ("SoftMax", ["2,3"], {"axis": "0"}, {SUMS}),
    ("SoftMax", ["2,1"], {"axis": "0"}, set()),
    ("SoftMax", ["2,3"], {"axis": "1"}, set()),
    ("GatherND", ["1,4", "2,1"], {"batch_dims": "1"}, {UNEQUAL}),
    ("GatherND", ["2,4", "2,1"], {"batch_dims": "1"}, set()),
    ("FakeQuantize", ["2,3,4", *[[1, 2, 3, 4]] * 4], {"levels": "2"}, {RANGES, MIXED}),
    ("FakeQuantize", ["2,3,4,2,2", [1], [2], *[[0, 1, 2, 3]] * 2], {"levels": "2"}, {LEVELS, MIXED}),
    ("FakeQuantize", ["2,2", [1, 0], [0, 1], [0], [1]], {"levels": "3"}, {REVERSED, MIXED}),
    ("FakeQuantize", ["?,2", [1, 0], [0, 1], [0], [1]], {"levels": "3"}, {MIXED}),
    ("FakeQuantize", ["2,2", [1, 0], [0, 1], [0], [1]], {"levels": "2"}, {LEVELS, MIXED}),
    ("FakeQuantize", ["2,2", [1, 2], [1, 2], [0], [2]], {"levels": "2"}, {LEVELS, MIXED}),
    ("FakeQuantize", ["2,2", [1, 2], [1, 2], [0], [1]], {"levels": "2"}, {OTHER, MIXED}),
    ("FakeQuantize", ["1,2,4,4", [1], [1], [0], [1]], {"levels": "2"}, {IMAGE, MIXED}),
    ("FakeQuantize", ["2,2", [1], [1], [0], [1]], {"levels": "1"}, {FEW, LEVELS, MIXED}),
    ("FakeQuantize", ["2,2", [1], [0], [0], [1]], {}, {FEW, REVERSED, LEVELS, MIXED}),
    ("FakeQuantize", ["2,2", [1], [0], [0], [1]], {"levels": "-1"}, {REVERSED, MIXED}),
    ("FakeQuantize", ["2,0", [0], [1], [], [1]], {"levels": "3"}, {EMPTY_RANGE, MIXED}),
    ("FakeQuantize", ["2,0", [0], [1], [], [1]], {"levels": "2"}, {MIXED}),
    ("FakeQuantize", ["2,3,0", [0], [1], [], [1]], {"levels": "3"}, {MIXED}),
    ("ConvolutionBackpropData", ["1,1,?,8", "1,1,3,3", [1, 9]], DECONVOLVE, {NO_WINDOW}),
    ("ConvolutionBackpropData", ["1,1,?,8", "1,1,3,3", [2, 9]], DECONVOLVE, set()),
    ("ConvolutionBackpropData", ["1,1,?,8", "1,1,3,3", [2, 9]], {**DECONVOLVE, "strides": "2,2"}, {NO_WINDOW}),
    ("ConvolutionBackpropData", ["1,1,8,8", "1,1,3,3", [1, 9]], DECONVOLVE, set()),
    ("GroupConvolutionBackpropData", ["1,2,?,8", "2,1,1,3,3", [1, 9]], DECONVOLVE, {NO_WINDOW}),
    ("GroupConvolutionBackpropData", ["1,2,8,8", "1,2,3,3,3"], CONVOLVE, {GROUP}),
    ("Proposal", ["7,4,2,2", "6,8,2,2", "3"], PROPOSAL, {BATCH}),
    ("Proposal", ["7,4,2,2", "7,8,2,2", "3"], PROPOSAL, set()),
    ("ScatterUpdate", ["4,2", "3", "", [0]], {}, {UPDATES}),
    ("ScatterUpdate", ["4,2", "3", "3,2", [0]], {}, set()),
    ("ScatterNDUpdate", ["4,2", "3,1", "3"], {}, {UPDATES, BATCH}),
    ("ScatterNDUpdate", ["4,2", "3,2", "3"], {}, {BATCH}),
    ("LRN", ["2,3,4,4", [0]], {"alpha": "1", "beta": "1", "bias": "1", "size": "1"}, {NORM}),
    ("LRN", ["2,3,4,4", [2, 3]], {"alpha": "1", "beta": "1", "bias": "1", "size": "1"}, set()),
    ("LRN", ["2,3,4,4", [-3]], {"alpha": "1", "beta": "1", "bias": "1", "size": "1"}, {NORM}),
    ("LRN", ["2,3,4,4", [1, 2, 3]], {"alpha": "1", "beta": "1", "bias": "1", "size": "1"}, set()),
    ("Interpolate", ["2,3,4,4", [2, 5, 4, 4]], {**RESIZE, "axes": "0,1,2,3"}, {MOVED}),
    ("Interpolate", ["2,3,4,4", [5, 3, 4, 4]], {**RESIZE, "axes": "0,1,2,3"}, {RESIZED}),
    ("Interpolate", ["2,3,4,4", [2, 3, 9, 9]], {**RESIZE, "axes": "0,1,2,3"}, set()),
    ("Interpolate", ["2,3,4,4", [5, 5]], {**RESIZE, "axes": "0,1"}, set()),
    ("Interpolate", ["1,2,3,4,4", [1, 5, 3, 4]], {**RESIZE, "axes": "0,1,2,3"}, {RESIZED}),
    ("Interpolate", ["1,2,3,4,4", [1, 5, 3, 4]], {**RESIZE, "mode": "cubic", "axes": "0,1,2,3"}, set()),
    ("Interpolate", ["2,3,4", [5]], RESIZE, set()),
    ("Interpolate", ["2,3,4", [5, 4]], {**RESIZE, "axes": "1,2"}, {MOVED}),
    ("Interpolate", ["2,3,4", [3, 5]], {**RESIZE, "axes": "1,2"}, set()),
    ("StridedSlice", ["1", [0], [1]], {"begin_mask": "0", "end_mask": "0,0"}, {MASKS}),
    ("StridedSlice", ["1", [0], [1]], {"begin_mask": "", "end_mask": "0"}, {MASKS}),
    ("StridedSlice", ["1", [0], [1]], {"begin_mask": "0", "end_mask": "", "new_axis_mask": "0"}, set()),
    ("StridedSlice", ["", [0], [1], [1]], {"begin_mask": "0", "end_mask": "0", "ellipsis_mask": "1"}, {BEGINS}),
    *(
        (
            "StridedSlice",
            ["2,3", [at], [9]],
            {"begin_mask": f"{mask}", "end_mask": "0", "shrink_axis_mask": "1"},
            wanted,
        )
        for at, mask, wanted in ((2, 1, {REMOVED}), (-3, 1, {REMOVED}), (-2, 1, set()), (2, 0, set()))
    ),
    ("STFT", ["2,32", "9", [8], [4]], {"transpose_frames": "true"}, {FRAME}),
    ("STFT", ["2,32", "0", [8], [4]], {"transpose_frames": "true"}, {FRAME}),
    ("STFT", ["2,32", "8", [8], [4]], {"transpose_frames": "true"}, set()),
    ("ReduceMax", ["", [0]], {"keep_dims": "true"}, {KEPT}),
    ("ReduceMax", ["", [-1]], {"keep_dims": "false"}, {LAST}),
    ("ReduceMax", ["", [1, 1]], {"keep_dims": "false"}, {NEITHER}),
    ("ReduceMax", ["", [0]], {"keep_dims": "false"}, set()),
    ("ReduceMax", ["2", [-1]], {"keep_dims": "true"}, set()),
    ("PriorBoxClustered", [[4, 4], [32, 32]], {"offset": "0.5", "width": "1.0"}, {ALONE}),
    ("PriorBoxClustered", [[4, 4], [32, 32]], {"offset": "0.5", "width": "1.0", "height": "1.0"}, set()),
    ("GroupConvolution", ["1,3,32,32", "3,1,1,15,15"], CONVOLVE, {WIDE}),
    ("GroupConvolution", ["1,3,32,32", "3,1,1,15,14"], CONVOLVE, set()),
    ("GroupConvolution", ["1,3,32,32", "3,2,1,15,15"], CONVOLVE, set()),
    ("GroupConvolution", ["1,3,32,32", "3,1,1,15,15"], {**CONVOLVE, "strides": "2,2"}, set()),
    ("AvgPool", ["1,1,4,4"], {**POOL, "exclude-pad": "true"}, {WINDOW}),
    ("AvgPool", ["1,1,4,4"], {**POOL, "exclude-pad": "true", "dilations": "1,2"}, set()),
    ("AvgPool", ["1,1,4,4"], {**POOL, "exclude-pad": "false"}, set()),
    ("AvgPool", ["1,1,4,4"], {**POOL, "exclude-pad": "true", "pads_end": ""}, {WINDOW}),
    ("DetectionOutput", ["1,12", "1,9", "1,2,12"], {**DETECT, "background_label_id": "3"}, {LABELS}),
    ("DetectionOutput", ["1,12", "1,9", "1,2,12"], DETECT, set()),
    ("GenerateProposals", ["1,3", "5,6,2,4", "1,8,5,6", "1,2,5,6"], {**GENERATE, "nms_eta": "0.5"}, {ETA}),
    ("GenerateProposals", ["1,3", "5,6,2,4", "1,8,5,6", "1,2,5,6"], GENERATE, set()),
    ("ReduceMax", ["2,3", "1"], {"keep_dims": "false"}, {AXIS}),
    ("ReduceMax", ["2,3", "2"], {}, {AXES}),
    ("MatMul", ["2,3", "3,4"], {}, {COLUMNS, ROWS}),
    ("MatMul", ["2,2,3", "3,5"], {}, {ROWS}),
    ("RNNCell", ["1,2", "1,3", "3,2", "3,3", "3"], {"hidden_size": "3"}, {CELL}),
    ("RNNCell", ["1,2", "1,3", "3,2", "3,3", "3"], {"hidden_size": "3", "clip": "1"}, set()),
    ("RNNCell", ["?,2", "1,3", "3,2", "3,3", "3"], {"hidden_size": "3"}, {CELL, STATES}),
    ("RNNCell", ["1,2", "1,3", "3,2", "3,3", "3"], {"hidden_size": "4"}, {CELL, OTHER_SIZE}),
    ("RNNCell", ["1,2", "?,3", "3,2", "3,3", "3"], {"hidden_size": "3"}, {CELL}),
    ("GRUCell", ["1,2", "1,3", "9,2", "9,3", "9"], {"hidden_size": "3", "activations": "Sigmoid, tanh"}, {CELL}),
    ("BinaryConvolution", ["1,2,4,4", "1,2,3,3"], BITS, {CHANNELS, PADDED}),
    ("BinaryConvolution", ["1,1,4,4", "1,1,3,3"], BITS, {PADDED}),
    ("BinaryConvolution", ["1,1,4,4", "1,1,3,3"], {**BITS, "pads_begin": "0,0", "pads_end": "0,4"}, set()),
    ("BinaryConvolution", ["1,1,4,2", "1,1,1,4"], {**BITS, "pads_begin": "0,0", "pads_end": "0,2"}, {PADDED}),
    ("Col2Im", ["4,0", [1, 4], [2, 2]], {}, set()),
    ("Col2Im", ["6,0", [1, 4], [3, 2]], {}, {BLOCKS}),
    ("Col2Im", ["4,3", [2, 4], [2, 2]], {}, set()),
    ("RNNSequence", ["?,4,3", "2,1,2", "2", "1,2,3", "1,2,2", "1,2"], SEQUENCE, {CELL, HALF, STATES}),
    ("RNNSequence", ["?,4,3", "?,1,2", "?", "1,2,3", "1,2,2", "1,2"], SEQUENCE, {CELL}),
    ("ScaledDotProductAttention", ["1,3,2", "1,4,2", "1,4,2", "4,3"], {"causal": "false"}, {MASK}),
    ("ScaledDotProductAttention", ["1,3,2", "1,4,2", "1,4,2", "3,4"], {"causal": "false"}, set()),
    ("ScaledDotProductAttention", ["1,3,2", "5,4,2", "5,4,2", "3,4"], {"causal": "false"}, {FEWER, BATCH}),
]
ASKED = {ALIGNED, BEYOND, PLACED, LONG, LENGTHS, TWICE, BATCH, UPDATES, NORM, COLUMNS, CELL, STATES, MASK, CHOSEN, RESIZED, MOVED, WINDOW, LABELS, ETA, APART, MASKS, FRAME, KEPT, LAST, NEITHER, ALONE, WIDE, AXIS, AXES, ROWS, INNER, ELLIPSIS, IDLE, JOINED, RANGES, MIXED, GROUP, BEGINS, BLOCKS, CHANNELS, HALF, PADDED, REVERSED, UNEQUAL, SHORT, SUMS, LEVELS, IMAGE, OTHER, NO_WINDOW, REMOVED, INFERRED, TOO_LARGE, BEYOND_EMPTY, REPEATED, SLICED, OTHER_PADS, OTHER_SIZE, SCALAR, BEHIND, FEWER, LAST_DIM, WRITTEN, EMPTY_RANGE, FEW, OTHER_INDICES, PADS}  # fmt: skip
OPSETS = {"AvgPool": 16, "GatherElements": 6, "Gather": 8, "Broadcast": 3, "SliceScatter": 15, "DetectionOutput": 8, "GatherND": 8, "GenerateProposals": 9, "Einsum": 7, "ScatterUpdate": 3, "ScatterNDUpdate": 4, "RNNCell": 1, "GRUCell": 3, "ScaledDotProductAttention": 13, "STFT": 15, "Col2Im": 15, "RNNSequence": 5}  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "attributes", "wanted"), CASES)
def test_relations(
    tmp_path: Path, type: str, inputs: list[str | list[int]], attributes: dict[str, Any], wanted: set[str]
) -> None:
    """A list of inputs has the shape of each, or the numbers of one that is constant."""
    net = Net()
    feeds = [
        net.parameter("f32", i) if isinstance(i, str) else net.const("i64", str(len(i)), np.array(i, "<i8").tobytes())
        for i in inputs
    ]
    opset = f"opset{OPSETS.get(type, 1)}"
    net.result(net.add(type, feeds, [("FP32", "...")], name="layer", opset=opset, **attributes))
    assert sentences(net.save(tmp_path)) & ASKED == wanted


@pytest.mark.parametrize(
    ("at", "shape", "wanted"),
    [
        *((0, "2,3,2,4", set()), (0, "2,3,1,4", {"heads"}), (0, "?,?,?,?", set()), (0, "2,2,4", set())),
        *((1, "2,3,2,5", {"heads"}), (1, "2,3,2,0", {"heads", "keys"}), (2, "2,3,4,6", {"heads"})),
        *((2, "2,3,3,5", {"heads", "values"}), (3, "2,4,4,?", set()), (3, "2,1,4,5", {"heads"})),
        *((4, "2,3,3", {"heads"}), (5, "2,3,3", {"heads"}), (5, "1,1,4", set())),
    ],
)
def test_what_readers_compare_in_a_delta_rule(tmp_path: Path, at: int, shape: str, wanted: set[str]) -> None:
    """Two heads of 4 numbers for queries and keys, four of 5 for values: one input differs."""
    shapes = ["2,3,2,4", "2,3,2,4", "2,3,4,5", "2,4,4,5", "2,3,4", "2,3,4"]
    net = Net()
    feeds = [net.parameter("f32", shape if n == at else usual) for n, usual in enumerate(shapes)]
    net.result(net.add("GatedDeltaNet", feeds, [("FP32", "...")] * 2, name="layer", opset="extension"))
    asked = {
        "heads": "its heads or their sizes differ", "keys": "its keys have no numbers",
        "values": "its values have no multiple of the heads of its queries",
    }  # fmt: skip
    found = sentences(net.save(tmp_path))
    assert {name for name, sentence in asked.items() if sentence in found} == wanted


def test_integers_of_one_channel(tmp_path: Path) -> None:
    """To 2026.0, no kernel averages them."""
    for type, channels, is_found in (("i32", 1, True), ("u16", 1, True), ("i32", 2, False), ("i8", 1, False)):
        y = b.AvgPool(
            b.parameter([2, channels, 6], type, name="x"), kernel=(2,), strides=(1,), pads_begin=(0,), pads_end=(0,),
            exclude_pad=True, name="layer",
        )  # fmt: skip
        irrun.save_model(b.model({"y": y}), path := tmp_path / "model.xml")
        assert ("it averages integers of one channel, longer than a byte" in sentences(path)) is is_found


@pytest.mark.parametrize(
    ("axes", "pads", "is_moved"),
    [([0], (0, 3), True), ([0, 1], (0, 3), True), ([2], (0, 3), False), ([0, 1, 2], (0, 3), False), ([0], (0,), False)],
)
@pytest.mark.parametrize("since", [1, 11])
def test_pads_of_interpolate(
    tmp_path: Path, axes: list[int], pads: tuple[int, ...], is_moved: bool, since: int
) -> None:
    """The plugin moves few axes to the end, without their pads. The first version has none when it is read."""
    sizes, place = [7] * len(axes), {"pads_begin": ",".join(map(str, pads)), "pads_end": "0"}
    dims = [7 if axis in axes else dim + (pads + (0,) * 4)[axis] for axis, dim in enumerate((2, 3, 4, 5))]
    net = Net()
    feeds = [net.parameter("f32", "2,3,4,5"), _numbers(net, sizes), *([_numbers(net, axes)] if since == 11 else [])]
    of_version: dict[str, Any] = (
        {"axes": ",".join(map(str, axes))} if since == 1 else {"shape_calculation_mode": "sizes"}
    )
    y = net.add("Interpolate", feeds, [("FP32", "...")], opset=f"opset{since}", mode="nearest", **place, **of_version)
    bias = net.const("f32", ",".join(map(str, dims)), bytes(4 * int(np.prod(dims))))
    net.result(net.add("Add", [y, bias], [("FP32", "...")], name="layer"))
    parsed = load(net.save(tmp_path))
    report, trace = examine(parsed)
    (found,) = (f for f in facts(parsed, report, trace) if f.layer is not None and f.layer.name == "layer")
    is_read = since == 11 or not any(pad for axis, pad in enumerate(pads) if axis not in axes)
    assert found.blocks is (is_moved or not is_read)
    assert not report


@pytest.mark.parametrize(("follower", "is_wide"), [("ReLU", True), ("Sigmoid", False)])
def test_what_follows_a_depthwise_convolution(tmp_path: Path, follower: str, is_wide: bool) -> None:
    net = Net()
    x, filters = net.parameter("f32", "1,3,32,32"), net.parameter("f32", "3,1,1,15,15")
    y = net.add("GroupConvolution", [x, filters], [("FP32", "...")], name="layer", **CONVOLVE)
    y = net.add("Add", [y, net.const("f32", "1,3,1,1", bytes(12))], [("FP32", "...")])
    net.result(net.add(follower, [y], [("FP32", "...")]))
    assert (WIDE in sentences(net.save(tmp_path))) is is_wide


def test_facts_of_a_long_chain_of_sums(tmp_path: Path) -> None:
    net = Net()
    y = x = net.parameter("f32", "1")
    for _ in range(2000):
        y = net.add("Add", [y, x], [("FP32", "1")])
    net.result(y)
    parsed = load(net.save(tmp_path))
    assert sum("Add" in found.operations[-1] for found in facts(parsed, *examine(parsed)) if found.operations) == 2000


def test_pillow_resizes_by_the_sizes_that_scales_give(tmp_path: Path) -> None:
    """1.1 times 3 channels are 3 channels; 1.4 times 3 are 4."""
    for scale, wanted in ((1.1, set[str]()), (1.4, {MOVED})):
        net = Net()
        x, scales = net.parameter("f32", "2,3,4,4"), net.const("f32", "1", np.array([scale], "<f4").tobytes())
        feeds = [x, scales, net.const("i64", "1", np.array([1], "<i8").tobytes())]
        options: dict[str, Any] = {"mode": "bilinear_pillow", "shape_calculation_mode": "scales"}
        net.result(net.add("Interpolate", feeds, [("FP32", "...")], name="layer", opset="opset11", **options))
        assert sentences(net.save(tmp_path)) & ASKED == wanted


def _numbers(net: Net, numbers: Sequence[int]) -> Any:
    return net.const("i64", str(len(numbers)), np.array(numbers, "<i8").tobytes())
