"""Constants in other types: which ones, what OpenVINO sees of them, and the way back."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import surgery
from irrun.ir.rt_info import rt_infos
from oracle import Oracle
from places import SAMPLES

WEIGHTS = (np.arange(24, dtype=np.float32).reshape(4, 6) - 11) / 7


def _model(weights: np.ndarray = WEIGHTS) -> irrun.Model:
    x = b.parameter([2, 4], name="x")
    y = b.MatMul(x, b.constant(weights, name="w"), transpose_a=False, transpose_b=False)
    return b.model({"y": b.Add(y, b.constant(np.full(6, 0.1, np.float32), name="bias"))})


def _constants(model: irrun.Model) -> dict[str, str]:
    return {ly.name: ly.attributes["element_type"] for ly in model.layers.values() if ly.type == "Const"}


@pytest.mark.parametrize(("stored", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_compressed_constants(stored: str, dtype: type, tmp_path: Path, oracle: Oracle) -> None:
    """The small bias stays. What is computed follows from the rounded weights."""
    small = surgery.store(_model(), stored)
    assert _constants(small) == {"w_compressed": stored, "bias": "f32"}
    assert not irrun.check(small).diagnostics
    (convert,) = [layer for layer in small.layers.values() if layer.type == "Convert"]
    assert convert.name == "w"
    assert rt_infos(small)[convert.node] == {"rt_info/attribute[decompression]": 'version="0"'}
    irrun.save_model(small, tmp_path / "a.xml", compact=True)
    assert (tmp_path / "a.bin").stat().st_size == 64 + 24
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    expected = data @ WEIGHTS.astype(dtype).astype(np.float32) + np.float32(0.1)
    np.testing.assert_allclose(irrun.run(small, data)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(oracle(tmp_path / "a.xml", [data])[0], expected, rtol=1e-5)
    surgery.require_equal(surgery.original(_model()), small, limit=surgery.storage_limit(stored))


def test_the_way_back() -> None:
    """f32 from f16 has the rounded numbers, and the names of before."""
    small = surgery.store(_model(), "f16")
    back = surgery.store(small, "f32")
    assert _constants(back) == {"w": "f32", "bias": "f32"}
    surgery.require_equal(surgery.original(small), back)
    assert _constants(surgery.store(small, "bf16")) == {"w_compressed": "bf16", "bias": "f32"}
    assert _constants(surgery.store(small, "f16")) == {"w_compressed": "f16", "bias": "f32"}


def test_openvino_compresses_alike(tmp_path: Path, ov: object) -> None:
    """The file that OpenVINO writes with compress_to_fp16 has the same layers, types and marks."""
    irrun.save_model(_model(), tmp_path / "a.xml")
    core = ov.Core()  # type: ignore[attr-defined]
    ov.save_model(core.read_model(tmp_path / "a.xml"), tmp_path / "b.xml", compress_to_fp16=True)  # type: ignore[attr-defined]
    theirs, own = irrun.read_model(tmp_path / "b.xml"), surgery.store(_model(), "f16")
    for model in (theirs, own):
        (convert,) = [layer for layer in model.layers.values() if layer.name == "w"]
        (const,) = [layer for layer in model.layers.values() if layer.name == "w_compressed"]
        assert (convert.type, const.attributes["element_type"], const.attributes["size"]) == ("Convert", "f16", "48")
        assert "rt_info/attribute[decompression]" in rt_infos(model)[convert.node]


@pytest.mark.parametrize("number", [7e4, -1e30])
def test_numbers_that_become_infinite(number: float) -> None:
    weights = WEIGHTS.copy()
    weights[1, 2] = number
    assert _constants(surgery.store(_model(weights), "f16")) == {"w": "f32", "bias": "f32"}
    assert _constants(surgery.store(_model(weights), "bf16")) == {"w_compressed": "bf16", "bias": "f32"}


def test_bodies_states_and_ranges() -> None:
    """In a Loop, a constant is compressed; an initial value, the range of a FakeQuantize, strings and integers stay."""
    big = np.linspace(0, 1, 16, dtype=np.float32)
    x = b.parameter([16], name="x")
    loop = b.Loop(2, True, x, body=lambda i, a: (True, b.Add(a, b.constant(big, name="inner"))), name="loop")
    read = b.ReadValue(b.constant(big * 2), variable_id="v", variable_type="f32", variable_shape="16")
    sink = b.Assign(b.Add(read, x), variable_id="v")
    bounds = (b.constant(big - 1), b.constant(big + 1))
    quantised = b.FakeQuantize(b.Add(loop, read), *bounds, *bounds, levels=256)
    words = b.Concat(b.constant(np.array(["a"] * 16)), b.parameter([1], "string", name="s"), axis=0)
    model = b.model({"y": quantised, "z": words}, sinks=[sink])
    small = surgery.store(model, "f16")
    (layer,) = [layer for layer in small.layers.values() if layer.bodies]
    assert "f16" in _constants(layer.bodies["body"]).values()
    assert "f16" not in _constants(small).values()
    surgery.require_equal(surgery.original(model), small, limit=surgery.storage_limit("f16"))


def test_bytes_are_aligned_and_shared() -> None:
    x = b.parameter([5], name="x")
    y = b.Add(b.Multiply(x, b.constant(np.full(5, 3, np.float32))), b.constant(np.full(1, 3, np.float32)))
    model = b.model({"y": b.Multiply(y, b.constant(np.full((1, 5), 3, np.float32)))})
    small = surgery.store(model, "f32")
    offsets = [int(layer.attributes["offset"]) for layer in small.layers.values() if layer.type == "Const"]
    assert sorted(offsets) == [0, 0, 64]
    surgery.require_equal(surgery.original(model), small)


def test_a_network() -> None:
    model = irrun.read_model(SAMPLES / "convnet.xml")
    for stored in ("f16", "bf16"):
        small = surgery.store(model, stored)
        assert model.weights is not None
        assert small.weights is not None
        assert len(small.weights) < 0.51 * len(model.weights)
        surgery.require_equal(surgery.original(model), small, limit=surgery.storage_limit(stored))
        assert len(surgery.store(small, "f32").layers) == len(model.layers)
