"""Faults in layers that follow from constants and shapes alone, which engines fold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug import bisect, compare

FED = {"x": np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)}


def _saved(path: Path, fill: float, factor: float = 1.0) -> str:
    """Save a model with a matrix that has the shape of the input, transposed and filled with one number."""
    x = b.parameter([None, 4], "f32", name="x")
    filled = b.Broadcast(np.float32(fill), b.ShapeOf(x, name="shape"), name="filled")
    turned = b.Transpose(filled, np.array([1, 0]), name="turned")
    product = b.MatMul(x, turned, name="product")
    other = b.MatMul(x, factor * np.linspace(1, 2, 12, dtype=np.float32).reshape(4, 3), name="other")
    irrun.save_model(b.model({"y": b.Relu(product, name="relu"), "z": b.Relu(other, name="last")}), path)
    return str(path)


@pytest.mark.parametrize("fills", [(0.0, 0.1), (0.1, 0.2), (1.0, 1.001)])
def test_the_first_layer_that_reads_the_other_constant_is_named(fills: tuple[float, float], tmp_path: Path) -> None:
    reference, candidate = (_saved(tmp_path / f"{number}.xml", fill) for number, fill in enumerate(fills))
    comparison = compare(reference, candidate, FED)
    assert comparison.first is not None
    assert comparison.first.layer.name == "filled"
    assert [item.name for item in comparison.first.inputs if item.kind == "constant"] == ["const_2"]
    assert {layer.name for layer in comparison.layers if not layer.agrees} == {"filled"}


def test_a_second_fault_beside_it_differs_as_well(tmp_path: Path) -> None:
    comparison = compare(_saved(tmp_path / "a.xml", 0.5), _saved(tmp_path / "b.xml", 0.6, 1.05), FED)
    assert {layer.name for layer in comparison.layers if not layer.agrees} == {"filled", "other"}


def test_equal_constants_agree(tmp_path: Path) -> None:
    comparison = compare(_saved(tmp_path / "a.xml", 0.5), _saved(tmp_path / "b.xml", 0.5, 1.05), FED)
    assert {layer.name for layer in comparison.layers if not layer.agrees} == {"other"}


def test_bisect_names_the_same_layer(tmp_path: Path) -> None:
    found = bisect(_saved(tmp_path / "a.xml", 0.0), _saved(tmp_path / "b.xml", 0.1), FED)
    assert [layer.name for layer in found.layers] == ["filled"]
