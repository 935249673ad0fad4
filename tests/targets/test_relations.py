"""What releases compare between inputs, axes and attributes of a layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irrun.api import load
from irrun.checking.checker import examine
from irrun.targets.facts import facts
from nets import Net

ALIGNED = "input 1 is not aligned with the last dims of input 0"
PLACED = "axis places the fewer dims of input 1"
HIGHER = "input 1 has more dims than input 0"
LONG = "an axis to remove is longer than 1"
LENGTHS, TWICE = "a label has two lengths", "a subscript has a label twice"
CHANNELS, BATCH = "input 1 has not twice the channels of input 0", "inputs 0 and 1 differ in dim 0"
UPDATES = "its updates have another rank than its data and indices ask for"
NORM = "its axes are neither the channels nor all spatial axes"
COLUMNS = "input 1 has fewer than 5 columns"
SEVERAL = "its limits differ along several axes"
CELL = "it has the usual activations and does not clip"
MASK = "its mask does not end with the numbers of queries and keys"
CHOSEN = "axis places the fewer dims of input 2"
RESIZED, EMPTIED = "it resizes axis 0 or 1", "it resizes axis 0 or 1 to an empty output"
BATCHES = "its inputs differ in a batch dim"
WINDOW = "a window fits into its padding"
LABELS = "it decreases labels, and that of the background is not 0"
ETA = "nms_eta is not 1"

PDPD = {"auto_broadcast": "pdpd"}
RESIZE = {"mode": "nearest", "axes": "1"}
POOL = {"kernel": "2,2", "strides": "1,1", "pads_begin": "0,2", "pads_end": "0,0"}
DETECT = {"keep_top_k": "1", "nms_threshold": "0.5", "decrease_label_id": "true"}
GENERATE = {"min_size": "1", "nms_threshold": "0.5", "pre_nms_count": "9", "post_nms_count": "9"}
PROPOSAL = {"base_size": "16", "feat_stride": "8", "min_size": "16", "nms_thresh": "1.0", "post_nms_topn": "1", "pre_nms_topn": "1", "ratio": "1", "scale": "1"}  # fmt: skip
CASES = [
    ("Add", ["2,3,4", "3"], {**PDPD, "auto_broadcast.auto_broadcast_axis": "1"}, {ALIGNED, PLACED}),
    ("Add", ["2,3,4", "3,4"], {**PDPD, "auto_broadcast.auto_broadcast_axis": "1"}, {PLACED}),
    ("Add", ["3", "1,3"], PDPD, {HIGHER}),
    ("Select", ["3,4", "2,3,4,5", "3,4"], {**PDPD, "auto_broadcast.auto_broadcast_axis": "1"}, {CHOSEN}),
    ("Select", ["4,5", "2,3,4,5", "4,5"], PDPD, set()),
    ("Squeeze", ["2,1", [0]], {}, {LONG}),
    ("Squeeze", ["2,1", [-1]], {}, set()),
    ("Einsum", ["3", "1"], {"equation": "a,a->a"}, {LENGTHS}),
    ("Einsum", ["3,3"], {"equation": "aa->a"}, {TWICE}),
    ("Einsum", ["2,3", "3,4"], {"equation": "ab,bc->ac"}, set()),
    ("Proposal", ["7,4,2,2", "7,4,2,2", "3"], PROPOSAL, {CHANNELS}),
    ("Proposal", ["7,4,2,2", "6,8,2,2", "3"], PROPOSAL, {BATCH}),
    ("Proposal", ["7,4,2,2", "7,8,2,2", "3"], PROPOSAL, set()),
    ("FakeQuantize", ["2,3", "2,3", "", "", ""], {"levels": "2"}, {SEVERAL}),
    ("FakeQuantize", ["2,3", "3", "", "", ""], {"levels": "2"}, set()),
    ("ScatterUpdate", ["4,2", "3", "", [0]], {}, {UPDATES}),
    ("ScatterUpdate", ["4,2", "3", "3,2", [0]], {}, set()),
    ("ScatterNDUpdate", ["4,2", "3,1", "3"], {}, {UPDATES, BATCH}),
    ("ScatterNDUpdate", ["4,2", "3,2", "3"], {}, {BATCH}),
    ("LRN", ["2,3,4,4", [0]], {"alpha": "1", "beta": "1", "bias": "1", "size": "1"}, {NORM}),
    ("LRN", ["2,3,4,4", [2, 3]], {"alpha": "1", "beta": "1", "bias": "1", "size": "1"}, set()),
    ("LRN", ["2,3,4,4", [-3]], {"alpha": "1", "beta": "1", "bias": "1", "size": "1"}, set()),
    ("LRN", ["2,3,4,4", [1, 2, 3]], {"alpha": "1", "beta": "1", "bias": "1", "size": "1"}, set()),
    ("Interpolate", ["2,3,4,4", [5]], RESIZE, {RESIZED}),
    ("Interpolate", ["2,3,4,4", [0]], RESIZE, {EMPTIED}),
    ("Interpolate", ["2,3,4,4", [3]], RESIZE, set()),
    ("Interpolate", ["2,3,4,4", [5]], {**RESIZE, "axes": "2"}, set()),
    ("Interpolate", ["2,3,4,4", [5, 5]], {**RESIZE, "axes": "1,2"}, set()),
    ("GatherND", ["1,2", "2,1"], {"batch_dims": "1"}, {BATCHES}),
    ("GatherND", ["2,2", "2,1"], {"batch_dims": "1"}, set()),
    ("AvgPool", ["1,1,4,4"], {**POOL, "exclude-pad": "true"}, {WINDOW}),
    ("AvgPool", ["1,1,4,4"], {**POOL, "exclude-pad": "false"}, set()),
    ("DetectionOutput", ["1,12", "1,9", "1,2,12"], {**DETECT, "background_label_id": "3"}, {LABELS}),
    ("DetectionOutput", ["1,12", "1,9", "1,2,12"], DETECT, set()),
    ("GenerateProposals", ["1,3", "5,6,2,4", "1,8,5,6", "1,2,5,6"], {**GENERATE, "nms_eta": "0.5"}, {ETA}),
    ("GenerateProposals", ["1,3", "5,6,2,4", "1,8,5,6", "1,2,5,6"], GENERATE, set()),
    ("MatMul", ["2,3", "3,4"], {}, {COLUMNS}),
    ("MatMul", ["2,3", "3,5"], {}, set()),
    ("RNNCell", ["1,2", "1,3", "3,2", "3,3", "3"], {"hidden_size": "3"}, {CELL}),
    ("RNNCell", ["1,2", "1,3", "3,2", "3,3", "3"], {"hidden_size": "3", "clip": "1"}, set()),
    ("GRUCell", ["1,2", "1,3", "9,2", "9,3", "9"], {"hidden_size": "3", "activations": "Sigmoid, tanh"}, {CELL}),
    ("ScaledDotProductAttention", ["1,3,2", "1,4,2", "1,4,2", "4,3"], {"causal": "false"}, {MASK}),
    ("ScaledDotProductAttention", ["1,3,2", "1,4,2", "1,4,2", "3,4"], {"causal": "false"}, set()),
]
ASKED = {ALIGNED, PLACED, HIGHER, LONG, LENGTHS, TWICE, CHANNELS, BATCH, UPDATES, NORM, COLUMNS, SEVERAL, CELL, MASK, CHOSEN, RESIZED, EMPTIED, BATCHES, WINDOW, LABELS, ETA}  # fmt: skip
OPSETS = {"GatherND": 8, "DetectionOutput": 8, "GenerateProposals": 9, "Einsum": 7, "ScatterUpdate": 3, "ScatterNDUpdate": 4, "RNNCell": 1, "GRUCell": 3, "ScaledDotProductAttention": 13}  # fmt: skip


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
    parsed = load(net.save(tmp_path))
    (found,) = (f for f in facts(parsed, *examine(parsed)) if f.layer is not None and f.layer.name == "layer")
    assert found.sentences & ASKED == wanted
