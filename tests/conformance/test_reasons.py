"""Messages of refusals with one root cause have the same words."""

from __future__ import annotations

import pytest

from irrun.conformance.reasons import reason

_CORE = "Exception from src/inference/src/cpp/core.cpp:117: Exception from src/inference/src/dev/plugin.cpp:54: "

REASONS = [
    ("a node that is validated", "Col2Im", "Exception from src/inference/src/cpp/core.cpp:84: Check 'x > 0' failed at src/core/shape_inference/include/pooling_shape_inference_util.hpp:281: While validating node 'opset1::MaxPool MaxPool_604467 (opset1::Parameter data[0]:f32[0,1,1]) -> ()' with friendly_name 'MaxPool_604467': Batch size is zero.", "Batch size is zero"),
    ("a node that the message ends in", "MaxPool", "Check 'x > 0' failed at src/core/src/op/max_pool.cpp:281: While validating node 'opset1::MaxPool MaxPool_1 (opset1::Parameter da…", "Check 'x > 0' failed"),
    ("a check without words", "Einsum", "Exception from src/core/src/pass/graph_rewrite.cpp:298: [EinsumDecomposition] END: node: opset7::Einsum e (opset1::Split s[0]:f32[1]) -> (f32[1]) CALLBACK HAS THROWN: Check 'a == b' failed at src/core/src/graph_util.cpp:152", "EinsumDecomposition: Check 'a == b' failed"),
    ("an exception without a place in a transformation", "RNNSequence", "Exception from src/core/src/pass/graph_rewrite.cpp:298: [ToTensorIterator] END: node: opset5::RNNSequence r (X[0]:f32[1]) -> (f32[1]) CALLBACK HAS THROWN: no such gate", "ToTensorIterator: no such gate"),
    ("a kernel that does not take it", "Convolution", _CORE + "Check 'newNode' failed at src/plugins/intel_cpu/src/node.cpp:1626: Unsupported operation of type: Convolution name: convolution2 Details: Exception from src/plugins/intel_cpu/src/nodes/conv.cpp:195: Not Implemented: Doesn't support dynamic weights shape Exception from src/plugins/intel_cpu/src/nodes/reference.cpp:36: Not Implemented: Cannot fallback on ngraph reference implementation. Ngraph::Node::evaluate() is not implemented for op: opset1::Convolution convolution2 (in0[0]:f32[?]) -> (f32[?])", "Doesn't support dynamic weights shape"),
    ("no kernel", "Swish", _CORE + "Check 'newNode' failed at src/plugins/intel_cpu/src/node.cpp:1626: Unsupported operation of type: Swish name: layer Details: Exception from src/plugins/intel_cpu/src/nodes/reference.cpp:36: Not Implemented: Cannot fallback on ngraph reference implementation. Ngraph::Node::evaluate() is not implemented for op: opset4::Swish layer (in0[0]:bf16[5]) -> (bf16[5])", "Swish: Cannot fallback on ngraph reference implementation. Ngraph::Node::evaluate() is not implemented"),
    ("the name of a node", "NMSRotated", _CORE + "Check 'd[2] == 5' failed at src/plugins/intel_cpu/src/nodes/non_max_suppression.cpp:116: NMSRotated node with name 'nmsrotated5' has unsupported 'boxes' input 3rd dimension size: 18446744073709551615", "the node has unsupported 'boxes' input 3rd dimension size"),
    ("a name before a sentence", "LRN", "Exception from src/plugins/intel_cpu/src/node.cpp:823: [CPU] LRN node with name 'lrn2' Check 'execPtr' failed at src/plugins/intel_cpu/src/nodes/lrn.cpp:224: LRN node with name 'lrn2' Primitive descriptor was not found.", "Primitive descriptor was not found"),
    ("a place that many operations share", "CumSum", "Check 'i < m_inputs.size()' failed at src/core/src/node.cpp:480: index '1' out of range", "CumSum: index … out of range"),
    ("no place", "MatMul", "object is not initialized", "MatMul: object is not initialized"),
    ("a type", "Add", "Exception from src/plugins/intel_cpu/src/x.cpp:1: CPU plugin does not support i64 for use with oneDNN.", "Add: CPU plugin does not support … for use with oneDNN"),
    ("operations of no operation set", "Less", "Check 'ok' failed at src/core/shape_inference/include/eltwise_shape_inference.hpp:26: While validating node 'opset1::Less layer (opset1::Parameter in0[0]:f32[2,3], SnippetsOpset::RankNormalization RankNormalization_7[0]:f32[1,2]) -> (u8[2,3])' with friendly_name 'layer': Argument shapes are inconsistent.", "Argument shapes are inconsistent (SnippetsOpset::RankNormalization)"),
    ("limits are words", "SpaceToDepth", "Check 'b > 0' failed at src/core/src/op/space_to_depth.cpp:31: While validating node 's' with friendly_name 's': Attribute must be i32 or i64, at least 2. Got: dynamic", "Attribute must be i32 or i64, at least 2"),
    ("what the node has", "MaxPool", "Check 'k' failed at src/core/reference/include/openvino/reference/max_pool.hpp:21: One of the params does not match the 3D implementation. kernel=[1,2] pads_end=[0]", "One of the params does not match the 3D implementation"),
    ("nothing", "Add", "", "Add: no message"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "message", "words"), [row[1:] for row in REASONS], ids=[row[0] for row in REASONS]
)
def test_the_words_of_a_cause(operation: str, message: str, words: str) -> None:
    assert reason(operation, message) == words


def test_a_long_message_is_cut() -> None:
    assert reason("Add", "a " * 200) == ("Add: " + "a " * 100)[:159] + "…"
