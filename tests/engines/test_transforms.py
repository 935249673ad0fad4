"""OpenVINO's offline transformations leave what a model computes: each is held against the model as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import engines
from irrun.engines import Loaded, Outputs
from language_models import decoder

pytestmark = pytest.mark.openvino

IDS = np.random.default_rng(5).integers(0, 50, (1, 9))


@pytest.fixture
def stateful(tmp_path: Path) -> Path:
    irrun.save_model(decoder(50), tmp_path / "decoder.xml")
    return tmp_path / "decoder.xml"


def _inputs(begin: int, end: int) -> dict[str, np.ndarray]:
    return {
        "input_ids": IDS[:, begin:end],
        "attention_mask": np.ones((1, end), np.int64),
        "position_ids": np.arange(begin, end)[None],
        "beam_idx": np.zeros(1, np.int32),
    }


def _run(path: Path, transform: str, calls: Sequence[Mapping[str, np.ndarray]]) -> list[np.ndarray]:
    """Return the first output of each call, with the outputs of a call as its inputs where the model has them."""
    asked = ",".join(["precision=f32", "KV_CACHE_PRECISION=f32", *([f"transform={transform}"] if transform else [])])
    found: list[np.ndarray] = []
    with engines.open(f"openvino[{asked}]:{path}") as engine:
        loaded = engine.load()
        assert isinstance(loaded, Loaded)
        names = {name for one in loaded.inputs for name in one.names}
        added = [one.names[0] for one in loaded.inputs if not set(one.names) & calls[0].keys()]
        blank = {name: np.zeros((1, 4, 0, 8), np.float32) for name in added}
        passed: dict[str, np.ndarray] = {}
        for call in calls:
            given = {name: array for name, array in call.items() if name in names}
            outputs = engine.infer({**blank, **passed, **given})
            assert isinstance(outputs, Outputs)
            found.append(outputs.outputs[0].array)
            passed = {name: output.array for name, output in zip(blank, outputs.outputs[1:])}
    return found


@pytest.mark.parametrize("transform", ["moc", "stateless"])
def test_a_decoder(stateful: Path, transform: str) -> None:
    """Three calls of a decoder. ``stateless`` makes inputs and outputs of its variables, in the same order."""
    calls = [_inputs(0, 6), _inputs(6, 7), _inputs(7, 9)]
    expected = _run(stateful, "", calls)
    found = _run(stateful, transform, calls)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)


def test_a_decoder_without_state_has_more_inputs(stateful: Path) -> None:
    with engines.open(f"openvino[transform=stateless]:{stateful}") as engine:
        loaded = engine.load()
    assert isinstance(loaded, Loaded)
    assert len(loaded.inputs) == 3 + 4  # without beam_idx, with two caches of two layers
    assert len(loaded.outputs) == 1 + 4


def test_low_latency(ov: Any, tmp_path: Path) -> None:
    """A loop of one step keeps its state from run to run: three runs are one run of three steps."""
    x = np.random.default_rng(2).standard_normal((1, 3, 4)).astype(np.float32)
    for steps in (1, 3):
        ov.save_model(_loop(ov, steps), tmp_path / f"loop{steps}.xml", compress_to_fp16=False)
    whole = _run(tmp_path / "loop3.xml", "", [{"x": x}])[0]
    steps = _run(tmp_path / "loop1.xml", "low-latency", [{"x": x[:, step : step + 1]} for step in range(3)])
    np.testing.assert_allclose(np.concatenate(steps, 1), whole, atol=1e-6)
    alone = _run(tmp_path / "loop1.xml", "", [{"x": x[:, step : step + 1]} for step in range(3)])
    assert np.abs(np.concatenate(alone, 1) - whole).max() > 0.01


def _loop(ov: Any, steps: int) -> Any:
    """Return a TensorIterator over ``steps`` rows that adds the tanh of each row to its state."""
    from openvino import opset13 as ops

    x = ops.parameter([1, steps, 4], np.float32, "x")
    x.output(0).get_tensor().set_names({"x"})
    row, state = ops.parameter([1, 1, 4], np.float32), ops.parameter([1, 1, 4], np.float32)
    after = ops.tanh(ops.add(row, ops.multiply(state, ops.constant(np.float32(0.9)))))
    loop = ops.tensor_iterator()
    loop.set_function(ov.Model([ops.result(after)], [row, state], "body"))
    loop.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 1)
    loop.set_merged_input(state, ops.constant(np.zeros((1, 1, 4), np.float32)).output(0), after.output(0))
    rows = loop.get_concatenated_slices(after.output(0), 0, 1, 1, -1, 1)
    return ov.Model([ops.result(rows)], [x], "loop")
