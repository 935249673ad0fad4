"""Files with one fault in an internal operation that its declaration excludes: each has one finding on its line.

A wrong number of inputs is IR205, an element type that the layer does not take IR301, types that differ IR302, an
attribute that is missing IR202, and a value that an attribute cannot have IR203, or IR305 for an element type. ``test_refusals`` breaks clauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from internal_faults import LAYERS, Given, inferred
from internal_operations import found, written
from irrun.opdef import Value
from irrun.types import ELEMENT_TYPES, PartialShape


def of(type: str, *dims: int) -> Value:
    return Value(ELEMENT_TYPES[type], PartialShape.of(dims))


@dataclass(frozen=True)
class Fault:
    """Inputs by number and attributes in place of those of ``LAYERS``. Without an attribute if its text is None.

    ``inputs`` is the number of inputs that are left; more than the layer has repeat the last one.
    """

    type: str
    code: str
    said: str
    given: Mapping[int, Given] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: int | None = None


FAULTS = [
    Fault("PagedAttentionExtension", "IR205", "20 inputs", inputs=20),
    Fault("PagedAttentionExtension", "IR205", "26 inputs", inputs=26),
    Fault("PagedAttentionExtension", "IR205", "29 inputs", inputs=29),
    Fault("PagedAttentionExtension", "IR302", "f16", {2: of("f16", 6, 10)}),
    Fault("PagedAttentionExtension", "IR301", "i32", {0: of("i32", 6, 24), 1: of("i32", 6, 12), 2: of("i32", 6, 10)}),
    Fault("PagedAttentionExtension", "IR301", "i8", {3: of("i8", 12, 2, 4, 6)}),
    Fault("PagedAttentionExtension", "IR301", "i64", {5: of("i64", 2)}),
    Fault("PagedAttentionExtension", "IR203", "write_kv_cache", attributes={"write_kv_cache": "2"}),
    Fault("PaKVReorder", "IR205", "5 inputs", inputs=5),
    Fault("PaKVReorder", "IR205", "7 inputs", inputs=7),
    Fault("PaKVReorder", "IR301", "f64", {0: of("f64", 6, 2, 4, 3)}),
    Fault("PaKVReorder", "IR301", "i64", {2: of("i64", 3)}),
    Fault("GatedDeltaNet", "IR205", "4 inputs", inputs=4),
    Fault("GatedDeltaNet", "IR205", "7 inputs", inputs=7),
    Fault("GatedDeltaNet", "IR302", "f16", {4: of("f16", 2, 5, 4)}),
    Fault("GatedDeltaNet", "IR203", "use_qk_l2norm", attributes={"use_qk_l2norm": "maybe"}),
    Fault("GatedDeltaNet", "IR203", "q_l2_norm_eps", attributes={"q_l2_norm_eps": "small"}),
    Fault("PagedGatedDeltaNet", "IR205", "10 inputs", inputs=10),
    Fault("PagedGatedDeltaNet", "IR301", "f32", {6: of("f32", 3)}),
    Fault("PagedGatedDeltaNet", "IR203", "k_l2_norm_eps", attributes={"k_l2_norm_eps": "1,2"}),
    Fault("PagedCausalConv1D", "IR205", "8 inputs", inputs=8),
    Fault("PagedCausalConv1D", "IR205", "10 inputs", inputs=10),
    Fault("PagedCausalConv1D", "IR302", "f16", {2: of("f16", 6, 2, 3)}),
    Fault("PagedCausalConv1D", "IR301", "u8", {1: of("u8", 5, 6, 3)}),
    Fault("SelectiveSSM", "IR205", "5 inputs", inputs=5),
    Fault("SelectiveSSM", "IR302", "f16", {1: of("f16", 2, 5, 4)}),
    Fault("SSM", "IR205", "7 inputs", inputs=7),
    Fault("SSM", "IR301", "i32", {number: of("i32", *dims) for number, dims in enumerate(
        [(4,), (2, 5, 4), (2, 5, 2, 6), (2, 5, 4, 3), (2, 5, 2, 6), (2, 4, 3, 6)])}),
    Fault("Mamba2", "IR205", "3 inputs", inputs=3),
    Fault("Mamba2", "IR302", "f16", {1: of("f16", 2, 4, 5, 3, 6)}),
    Fault("PagedSelectiveSSM", "IR205", "12 inputs", inputs=12),
    Fault("PagedSelectiveSSM", "IR301", "f32", {9: of("f32", 2)}),
    Fault("MOE", "IR205", "3 inputs", inputs=3),
    Fault("MOE", "IR301", "f32", {2: of("f32", 3, 2)}),
    Fault("MOE", "IR203", "expert_type", attributes={"expert_type": "GEMM4"}),
    Fault("MOE", "IR202", "expert_type", attributes={"expert_type": None}),
    Fault("MOE", "IR203", "expert_alpha", attributes={"expert_alpha": "much"}),
    Fault("GatherMatmul", "IR205", "2 inputs", inputs=2),
    Fault("GatherMatmul", "IR302", "f16", {1: of("f16", 4, 5, 4)}),
    Fault("GatherMatmul", "IR301", "f32", {2: of("f32", 3, 2)}),
    Fault("GatherMatmulCompressed", "IR205", "4 inputs", inputs=4),
    Fault("GatherMatmulCompressed", "IR205", "7 inputs", inputs=7),
    Fault("GatedResidual", "IR205", "1 input", inputs=1),
    Fault("GatedResidual", "IR202", "hidden_size", attributes={"hidden_size": None}),
    Fault("GatedResidual", "IR203", "hc_count", attributes={"hc_count": "two"}),
    Fault("GatedResidual", "IR203", "produce_write_gate", attributes={"produce_write_gate": "7"}),
    Fault("ConvolutionBiased", "IR205", "1 input", inputs=1),
    Fault("ConvolutionBiased", "IR302", "f16", {2: of("f16", 1, 3, 6, 6)}),
    Fault("ConvolutionBiased", "IR203", "strides", attributes={"strides": "1,x"}),
    Fault("ConvolutionBiased", "IR202", "dilations", attributes={"dilations": None}),
    Fault("ConvolutionBiased", "IR203", "auto_pad", attributes={"auto_pad": "around"}),
    Fault("SparseAttentionIndexer", "IR205", "5 inputs", inputs=5),
    Fault("SparseAttentionIndexer", "IR203", "token_budget", attributes={"token_budget": "6.5"}),
    Fault("SparseAttentionIndexer", "IR305", "index_element_type", attributes={"index_element_type": "i31"}),
    Fault("BlockSparseAttention", "IR205", "3 inputs", inputs=3),
    Fault("BlockSparseAttention", "IR202", "compress_ratio", attributes={"compress_ratio": None}),
    Fault("BlockSparseAttention", "IR302", "f16", {1: of("f16", 1, 2, 6, 3)}),
    Fault("SparseSDPA", "IR205", "2 inputs", inputs=2),
    Fault("SparseSDPA", "IR202", "h_sel", attributes={"h_sel": None}),
    Fault("SparseSDPA", "IR203", "causal", attributes={"causal": "-1"}),
    Fault("SparsePA", "IR205", "8 inputs", inputs=8),
    Fault("SparsePA", "IR202", "block_size", attributes={"block_size": None}),
    Fault("SparsePA", "IR301", "f32", {5: of("f32", 3)}),
    Fault("SparsePA", "IR301", "i16", {9: of("i16", 2, 2, 3)}),
    Fault("QSAIndexer", "IR205", "6 inputs", inputs=6),
    Fault("QSAIndexer", "IR203", "scale", attributes={"scale": "root"}),
    Fault("PagedQSAIndexer", "IR205", "11 inputs", inputs=11),
    Fault("PagedQSAIndexer", "IR202", "ring_capacity", attributes={"ring_capacity": None}),
    Fault("PagedQSAIndexer", "IR301", "f32", {8: of("f32", 3)}),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.type}-{fault.code}-{fault.said.replace(' ', '-')}")
def test_one_finding(fault: Fault, tmp_path: Path) -> None:
    inputs, attributes = LAYERS[fault.type]
    given = [fault.given.get(number, own) or own for number, own in enumerate(inputs)]
    if fault.inputs is not None:
        given = [*given, *[given[-1]] * (fault.inputs - len(given))][: fault.inputs]
    texts = {name: text for name, text in {**attributes, **fault.attributes}.items() if text is not None}
    path = written(tmp_path, fault.type, given, texts, inferred(fault.type, inputs, attributes))
    findings = [finding for finding in found(path) if finding.severity == "error"]
    assert [finding.code for finding in findings] == [fault.code], [str(finding) for finding in findings]
    (finding,) = findings
    assert fault.said in " ".join([finding.message, *finding.notes])


def test_every_type_has_faults() -> None:
    assert {fault.type for fault in FAULTS} == {*LAYERS}
