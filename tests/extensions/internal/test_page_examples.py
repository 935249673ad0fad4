"""The ``<layer>`` examples of the pages of internal operations: each runs as printed, or is a finding for a known reason.

``EXAMPLES`` has what the examples say: attributes, precisions and dims. The layers are written in the form of the pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from internal_operations import i32
from irrun.api import load
from irrun.running.generate import draw


@dataclass(frozen=True)
class Example:
    """An example: the commit of its page, its attributes, and a port for each text ``dims`` or ``precision: dims``."""

    type: str
    commit: str
    attributes: str
    inputs: str
    outputs: str
    finding: str = ""
    """The code of the finding that the example is, or an empty text if it runs."""
    is_large: bool = False
    """Whether a run takes gigabytes, so that the example is only checked."""
    given: Mapping[str | int, Any] = field(default_factory=dict)
    """The inputs that a run needs: tables and plans, and the dims that the example leaves open."""

    @property
    def layer(self) -> str:
        """The example as a page prints it."""
        number, parts = 0, []
        for side, ports in (("input", self.inputs), ("output", self.outputs)):
            lines = [f"    <{side}>"]
            for port in ports.split(";"):
                precision, _, dims = port.rpartition(":")
                said = f' precision="{precision.strip()}"' if precision else ""
                inner = "".join(f"<dim>{dim}</dim>" for dim in dims.split())
                lines.append(f'        <port id="{number}"{said}>{inner}</port>')
                number += 1
            parts += [*lines, f"    </{side}>"]
        data = [f"    <data {self.attributes}/>"] if self.attributes else []
        return "\n".join([f'<layer ... type="{self.type}" ...>', *data, *parts, "</layer>"])


GATES = "1 16 8; 1 16 8"
SSM = "8; 1 16 8; 1 16 2 128; 1 16 8 64; 1 16 2 128; 1 8 64 128"
TWO_SEQUENCES = [i32(0, 3, 5), i32(0, 1, 3, 2, 4), i32(0, 3, 5), i32(0, 0), i32(2, 2)]
"""The tables that the pages name: blocks 0, 1, 3 and 2, 4. With the interval 1 of the page, a sequence of three tokens
has too few blocks, since it needs one more to read."""
SDPA = 'num_heads="{0}" num_kv_heads="{1}" h_sel="{2}" k_head_size="{3}" v_head_size="{3}"'
FLASH = SDPA.format(12, 12, 12, 128)
PLAN = np.broadcast_to(i32(0, 2, 3, -1), (1, 12, 4, 4))
QSA = 'block_topk="2" h_sel="1" indexer_head_dim="128" indexer_rotary_dim="128" compress_ratio="4" eps="1e-6" scale="0.088388"'
INDEXER = 'compress_ratio="4" token_budget="2048"'
ONES = 'dilations="{0}" pads_begin="{1}" pads_end="{1}" strides="{2}" auto_pad="{3}"'
ROWS = np.broadcast_to(np.arange(512, dtype=np.int32), (2, 1, 1, 512))


def bf16(*shape: int) -> np.ndarray:
    import ml_dtypes

    return np.ones(shape, ml_dtypes.bfloat16)


EXAMPLES = [
    Example("GatedDeltaNet", "0ebc99d", "", f"1 16 8 64; 1 16 8 64; 1 16 8 128; {GATES}; 1 8 64 128",
            "1 16 8 128; 1 8 64 64", "IR401"),
    Example("GatedDeltaNet", "c5ae02e", "", f"1 16 8 64; 1 16 8 64; 1 16 8 128; 1 8 64 128; {GATES}",
            "1 16 8 128; 1 8 64 128"),
    Example("PagedCausalConv1D", "27d7edc", "", "5 16; 5 16 4; 16 1 4; 16; 3; 5; 3; 2; 2", "5 16",
            given=dict(enumerate(TWO_SEQUENCES, 4))),
    Example("PagedCausalConv1D", "3c111d7", "", "5 16; 5 16 4; 16 1 4; 16; 3; 5; 3; 2; 2", "5 16",
            given=dict(enumerate(TWO_SEQUENCES, 4))),
    Example("SelectiveSSM", "0d21d5e", "", SSM, "1 16 8 64; 1 8 64 128"),
    Example("SelectiveSSM", "181e979", "", SSM, "1 16 8 64; 1 8 64 128"),
    Example("SSM", "2b151dc", "", SSM, "1 16 8 64; 1 8 64 128"),
    Example("Mamba2", "c342962", "", "1 8 16 1 1; 1 8 16 64 128; 1 8 16 128; 1 8 64 128", "1 8 16 64; 1 8 64 128"),
    Example("PagedSelectiveSSM", "a027dd2", "", "8; 6 8; 6 2 128; 6 8 64; 6 2 128; 5 8 64 128; 3; 5; 3; 2; 2", "6 8 64",
            given=dict(enumerate([i32(0, 3, 6), *TWO_SEQUENCES[1:3], i32(0, 0), i32(2, 3)], 6))),
    Example("GatedResidual", "19d6f7c", 'mode="0" hc_count="4" hidden_size="64" lowrank="32" epsilon="1e-6" '
            'norm_gain_plus_one="true" produce_write_gate="true" output_type="f16"',
            "1 2 256; 256; 32 256; 256 32; 4 256", "1 2 64; 1 2 4"),
    Example("ConvolutionBiased", "18f16f0", ONES.format("1", "0", "2", "valid"), "1 5 128; 16 5 4; FP32: 1 16 63",
            "FP32: 1 16 63"),
    Example("ConvolutionBiased", "18f16f0", ONES.format("1,1", "2,2", "1,1", "explicit"),
            "1 3 224 224; 64 3 5 5; FP32: 1 64 224 224", "FP32: 1 64 224 224"),
    Example("ConvolutionBiased", "18f16f0", ONES.format("2,2,2", "0,0,0", "3,3,3", "explicit"),
            "1 7 320 320 320; 32 7 3 3 3; FP32: 1 32 106 106 106", "FP32: 1 32 106 106 106", is_large=True),
    Example("Convolution", "40f94b5", ONES.format("1", "0", "2", "valid"), "1 5 128; 16 5 4; FP32: 1 16 63",
            "FP32: 1 16 63", "IR205"),
    Example("BlockSparseAttention", "91f21a3", 'compress_ratio="4"',
            "BF16: 1 24 -1 256; BF16: 1 2 -1 256; BF16: 1 2 -1 256; I32: 1 -1 512", "BF16: 1 24 -1 256",
            given={0: bf16(1, 24, 5, 256), 1: bf16(1, 2, 5, 256), 2: bf16(1, 2, 5, 256),
                   3: np.full((1, 5, 512), -1, np.int32)}),
    Example("BlockSparseAttention", "91f21a3", 'compress_ratio="4"',
            "FP32: 2 24 1 256; FP32: 2 2 10001 256; FP32: 2 2 10001 256; I32: 2 1 512; FP32:", "FP32: 2 24 1 256",
            given={3: ROWS[:, 0]}),
    Example("BlockSparseAttention", "dd073e3", 'compress_ratio="4"',
            "BF16: 1 24 -1 256; BF16: 1 2 -1 256; BF16: 1 2 -1 256; I32: 1 1 -1 512; I32: 1 1 -1", "BF16: 1 24 -1 256",
            given={0: bf16(1, 24, 5, 256), 1: bf16(1, 2, 5, 256), 2: bf16(1, 2, 5, 256),
                   3: np.full((1, 1, 5, 512), -1, np.int32), 4: np.zeros((1, 1, 5), np.int32)}),
    Example("BlockSparseAttention", "dd073e3", 'compress_ratio="4"',
            "FP32: 2 24 1 256; FP32: 2 2 10001 256; FP32: 2 2 10001 256; I32: 2 1 1 512; I32: 2 1 1; FP32:",
            "FP32: 2 24 1 256", given={3: ROWS, 4: np.full((2, 1, 1), 512, np.int32)}),
    Example("SparseAttentionIndexer", "0372594", INDEXER + ' index_element_type="i32"',
            "BF16: 1 4 -1 128; BF16: 1 -1 128; I64:", "I32: 1 -1 512; I32: 1 -1", "IR401"),
    Example("SparseAttentionIndexer", "0372594", INDEXER, "FP32: 2 4 1 128; FP32: 2 2500 128; I32:",
            "I32: 2 1 512; I32: 2 1", "IR401"),
    Example("SparseAttentionIndexer", "677f0e4", INDEXER + ' index_element_type="i32"',
            "BF16: 1 4 -1 128; BF16: 1 -1 128; I64:", "I32: 1 1 -1 512; I32: 1 1 -1",
            given={0: bf16(1, 4, 9, 128), 1: bf16(1, 2, 128), 2: np.array(9)}),
    Example("SparseAttentionIndexer", "677f0e4", INDEXER, "FP32: 2 4 1 128; FP32: 2 2500 128; I32:",
            "I32: 2 1 1 512; I32: 2 1 1", given={2: np.array(10001, np.int32)}),
    Example("SparseAttentionIndexer", "677f0e4", 'compress_ratio="1" token_budget="2048"',
            "BF16: 1 64 1 128; BF16: 1 10001 128; I32:; BF16: 1 1 64", "I32: 1 1 1 2048; I32: 1 1 1",
            given={2: np.array(10001, np.int32)}),
    Example("SparseSDPA", "4f0e4b2", SDPA.format(24, 2, 1, 256) + ' sel_block_size="4" q_block_size="1" causal="true"',
            "1 24 1 256; 1 2 10 256; 1 2 10 256; 1 1 1 3; 1 1 1", "1 24 1 256",
            given={3: i32(0, 1, 2).reshape(1, 1, 1, 3), 4: i32(3).reshape(1, 1, 1)}),
    Example("SparseSDPA", "4f0e4b2", FLASH + ' sel_block_size="128" q_block_size="128" causal="false"',
            "1 12 512 128; 1 12 512 128; 1 12 512 128; 1 12 4 4; 1 12 4", "1 12 512 128",
            given={3: PLAN, 4: np.full((1, 12, 4), 3, np.int32)}),
    Example("SparseSDPA", "4f0e4b2", FLASH + ' sel_block_size="128" q_block_size="128" causal="false"',
            "1 12 512 128; 1 12 512 128; 1 12 512 128; 1 12 512 512", "1 12 512 128",
            given={3: np.ones((1, 12, 512, 512), bool)}),
    Example("SparsePA", "d40a38a", SDPA.format(24, 2, 1, 256)
            + ' block_size="8" sel_block_size="4" q_block_size="1" scale="0.0625" causal="true"',
            "4 6144; 4 512; 4 512; 8 2 8 256; 8 2 8 256; 6; 3; 3; 2; 4 1 3; 4 1; 3", "4 6144",
            given={5: i32(5, 2, 7, 0, 1, 3), 6: i32(0, 3, 6), 7: i32(0, 2, 4), 8: i32(8, 4),
                   9: np.broadcast_to(i32(0, 1, 2), (4, 1, 3)), 10: i32(3, 3, 2, 2).reshape(4, 1), 11: i32(0, 2, 4)}),
    Example("SparsePA", "4f0e4b2", FLASH
            + ' block_size="128" sel_block_size="128" q_block_size="128" scale="0.088388" causal="false"',
            "512 1536; 512 1536; 512 1536; 4 12 128 128; 4 12 128 128; 4; 2; 2; 1; 4 12 4; 4 12; 2", "512 1536",
            given={5: i32(3, 0, 1, 2), 6: i32(0, 4), 7: i32(0, 512), 8: i32(0),
                   9: np.broadcast_to(i32(0, 2, 3, -1), (4, 12, 4)), 10: np.full((4, 12), 3, np.int32), 11: i32(0, 4)}),
    Example("SparsePA", "4f0e4b2", FLASH
            + ' block_size="128" sel_block_size="128" q_block_size="128" scale="0.088388" causal="false"',
            "512 1536; 512 1536; 512 1536; 4 12 128 128; 4 12 128 128; 4; 2; 2; 1; 4 12 4; 2", "512 1536",
            given={5: i32(3, 0, 1, 2), 6: i32(0, 4), 7: i32(0, 512), 8: i32(0), 9: np.ones((4, 12, 4), bool),
                   10: i32(0, 4)}),
    Example("QSAIndexer", "6af7730", QSA, "1 1 4 128; 1 1 1 128; 1 1 256; 1 1 2 128; 1 1 1 128; 1 256; 128",
            "I32: 1 1 1 3; I32: 1 1 1; 1 1 2 128; 1 1 2 128; 1 256"),
    Example("PagedQSAIndexer", "6af7730", QSA + ' page_size="16" ring_capacity="4"',
            "1 512; 1 128; 1 256; 1 1 4 128; 1 1 4 128; 1 1 256; 128; 1; 1; 2; 2; 1", "I32: 1 1 3; I32: 1 1",
            given={7: i32(0), 8: i32(0), 9: i32(0, 1), 10: i32(0, 1), 11: i32(9)}),
]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.type}-{e.commit}")
def test_example(example: Example, tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text(f"{example.type}\n\n{example.layer}\n")
    model = load(page).model
    codes = [d.code for d in irrun.check(page).diagnostics if d.severity == "error"]
    assert codes[:1] == ([example.finding] if example.finding else []), codes
    if example.finding or example.is_large:
        return
    outputs = irrun.run(model, {**draw(model, given=example.given), **example.given})
    if "Indexer" in example.type and "QSA" in example.type:
        assert outputs[0].ravel().tolist() == [0, 1, 2]
        assert outputs[1].ravel().tolist() == [3]
