"""A file need not declare the last outputs of an operation where nobody reads them, as in OpenVINO."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from kit import Case, build, f32, i64
from oracle import Oracle

_NMS = {"box_encoding": "corner", "output_type": "i64"}
_POOL = {"strides": [1], "dilations": [1], "pads_begin": [0], "pads_end": [0], "kernel": [2]}
_SORT = {"axis": 0, "mode": "max", "sort": "value"}
_NMS_INPUTS = [f32([[[0, 0, 1, 1]]]), f32([[[0.5]]]), np.array(9), f32(0.5), f32(0)]
_ROWS: list[tuple[str, int, list[np.ndarray], dict[str, Any]]] = [
    ("TopK-11", 1, [f32([1, 5, 2]), np.array(2)], _SORT),
    ("MaxPool-8", 1, [f32([[[0, 3, 1]]])], _POOL),
    ("NonMaxSuppression-9", 1, _NMS_INPUTS, _NMS),
    ("NonMaxSuppression-9", 2, _NMS_INPUTS, _NMS),
    ("Unique-10", 3, [f32([1, 2, 0, 2])], {"sorted": True}),
    ("Split-1", 2, [f32([1, 2, 3]), np.array(0)], {"num_splits": 3}),
    ("VariadicSplit-1", 1, [f32([1, 2, 3]), np.array(0), i64(1, 2)], {}),
]


@pytest.mark.parametrize(
    ("op", "kept", "inputs", "attributes"), _ROWS, ids=lambda v: str(v) if len(str(v)) < 30 else ""
)
def test_last_outputs(
    tmp_path: Path, op: str, kept: int, inputs: list[np.ndarray], attributes: dict[str, Any], oracle: Oracle
) -> None:
    path = tmp_path / "model.xml"
    feeds = build(Case("", op, inputs, attributes, constants=range(1, len(inputs))), path)
    _declare(path, op.split("-")[0], kept)
    assert not irrun.check(path).diagnostics
    outputs = irrun.run(path, feeds, strict=True).arrays
    assert len(outputs) == kept
    for got, want in zip(outputs, oracle(path, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


def _declare(path: Path, type: str, kept: int) -> None:
    """Leave only the first ``kept`` outputs of the operation, and what reads them."""
    tree = ET.parse(path)
    layers, edges = tree.getroot().find("layers"), tree.getroot().find("edges")
    assert layers is not None
    assert edges is not None
    layer = next(layer for layer in layers if layer.get("type") == type)
    outputs = layer.find("output")
    assert outputs is not None
    for port in list(outputs)[kept:]:
        outputs.remove(port)
        for edge in edges.findall(f"edge[@from-layer='{layer.get('id')}'][@from-port='{port.get('id')}']"):
            edges.remove(edge)
            layers.remove(next(reader for reader in layers if reader.get("id") == edge.get("to-layer")))
    tree.write(path)
