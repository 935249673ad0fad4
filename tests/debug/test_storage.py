"""Constants that the candidate's file stores in another type: what the rounding explains, and faults beside it."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug import compare, record
from irrun.surgery import store

RNG = np.random.default_rng(5)
FIRST = RNG.standard_normal((16, 16)).astype(np.float32)
SECOND = RNG.standard_normal((16, 8)).astype(np.float32)
X = RNG.standard_normal((4, 16)).astype(np.float32)


def _saved(path: Path, type: str = "f32", first: np.ndarray = FIRST) -> str:
    x = b.parameter([4, 16], "f32", name="x")
    turned = b.Transpose(b.constant(SECOND.T.copy(), name="second"), np.array([1, 0]), name="turned")
    hidden = b.Relu(b.MatMul(x, b.constant(first, name="first"), name="one"), name="relu")
    model = b.model({"y": b.MatMul(hidden, turned, name="two")})
    irrun.save_model(store(model, type), path)
    return str(path)


def _moved(type: type) -> float:
    """Return how far the rounding moves an element of the output, relative to the output's root mean square."""
    first, second = (array.astype(type).astype(np.float64) for array in (FIRST, SECOND))
    true = np.maximum(X.astype(np.float64) @ FIRST, 0) @ SECOND
    return float(np.abs(np.maximum(X @ first, 0) @ second - true).max() / np.sqrt(np.mean(true**2)))


@pytest.mark.parametrize(("type", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_rounded_constants_agree(type: str, dtype: type, tmp_path: Path) -> None:
    comparison = compare(_saved(tmp_path / "a.xml"), _saved(tmp_path / "b.xml", type), {"x": X})
    assert comparison.agrees
    assert comparison.storage is not None
    assert (comparison.storage.constants, comparison.storage.type, comparison.storage.reference) == (2, type, "f32")
    assert comparison.storage.explained == pytest.approx(_moved(dtype), rel=1e-2)
    assert record(comparison)["storage"]["constants"] == 2


def test_a_reference_with_rounded_constants_agrees(tmp_path: Path) -> None:
    comparison = compare(_saved(tmp_path / "a.xml", "f16"), _saved(tmp_path / "b.xml"), {"x": X})
    assert comparison.agrees
    assert comparison.storage is not None
    assert (comparison.storage.type, comparison.storage.reference) == ("f32", "f16")


@pytest.mark.parametrize("types", [("f32", "f16"), ("f16", "f32")])
def test_a_row_that_is_larger_is_named(types: tuple[str, str], tmp_path: Path) -> None:
    wrong = FIRST.copy()
    wrong[3] *= 1.05
    comparison = compare(_saved(tmp_path / "a.xml", types[0]), _saved(tmp_path / "b.xml", types[1], wrong), {"x": X})
    assert comparison.first is not None
    assert comparison.first.layer.name == "one"
    assert {layer.name for layer in comparison.layers if not layer.agrees} == {"one"}
    assert comparison.storage is not None
    assert comparison.storage.constants == 1


def test_a_number_that_overflows_is_no_rounding(tmp_path: Path) -> None:
    """f16 ends at 65504: 70000 is stored as 65504 here, which is not 70000 rounded to nearest."""
    large = FIRST.copy()
    large[2, 2] = 70000
    clipped = np.clip(large, -65504, 65504)
    comparison = compare(_saved(tmp_path / "a.xml", first=large), _saved(tmp_path / "b.xml", "f16", clipped), {"x": X})
    assert comparison.first is not None
    assert comparison.first.layer.name == "one"


def test_equal_types_store_nothing(tmp_path: Path) -> None:
    comparison = compare(_saved(tmp_path / "a.xml"), _saved(tmp_path / "b.xml"), {"x": X})
    assert comparison.agrees
    assert comparison.storage is None
