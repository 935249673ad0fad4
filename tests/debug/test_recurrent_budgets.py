"""Budgets of recurrent layers in bf16: the roundings of an engine are predicted, so that small faults are found.

The values that a candidate shows are computed here, by the formulas of the specification with the roundings of
OpenVINO: data, weights and hidden states are bf16, gates and cell states f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.debug import compare
from irrun.debug.budget import InEffect, Judge
from irrun.debug.budget.shown import Shown
from irrun.debug.metrics import Budget
from irrun.debug.shelf import Shelf
from irrun.engines import Place

GATES: Final = {"RNN": 1, "GRU": 3, "GRU linear": 3, "LSTM": 4}
BATCH, TIME, INPUT, HIDDEN = 2, 9, 40, 32


def _bf16(array: np.ndarray) -> np.ndarray:
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


def _as_openvino(array: np.ndarray) -> np.ndarray:
    """Round weights as OpenVINO does: away from 0 if the last bit that stays and the first that goes are 1."""
    mantissa, exponent = np.frexp(array.astype(np.float64))
    scaled = np.abs(mantissa) * 2**8
    whole = np.floor(scaled)
    whole += (whole % 2 == 1) & (scaled - whole >= 0.5)
    return np.copysign(np.ldexp(whole, exponent - 8), array).astype(np.float32)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _one_way(
    kind: str, x: np.ndarray, h: np.ndarray, c: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the hidden states [batch, time, hidden] and the last two states of a layer in bf16."""
    x, h, w, r = _bf16(x), _bf16(h), _as_openvino(w), _as_openvino(r)
    states, n = [], HIDDEN
    for t in range(x.shape[1]):
        data = x[:, t] @ w.T + bias[: len(w)]
        before = h @ r.T
        if kind == "RNN":
            h = np.tanh(data + before)
        elif kind == "LSTM":
            forget, new, candidate, output = np.split(data + before, 4, axis=1)
            c = _sigmoid(forget) * c + _sigmoid(new) * np.tanh(candidate)
            h = _sigmoid(output) * np.tanh(c)
        else:
            update, reset = np.split(_sigmoid(data[:, : 2 * n] + before[:, : 2 * n]), 2, axis=1)
            if kind == "GRU":
                hidden = data[:, 2 * n :] + _bf16(reset * h) @ r[2 * n :].T
            else:
                hidden = data[:, 2 * n :] + reset * (before[:, 2 * n :] + bias[3 * n :])
            h = (1 - update) * np.tanh(hidden) + update * h
        h = _bf16(h)
        states.append(h)
    return np.stack(states, axis=1), h, c


def _shown(kind: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of a bidirectional layer in bf16."""
    x, h, c, w, r, bias = arrays
    ways = []
    for way, order in enumerate((slice(None), slice(None, None, -1))):
        states, *last = _one_way(kind, x[:, order], h[:, way], c[:, way], w[way], r[way], bias[way])
        ways.append((states[:, order], *last))
    outputs = [np.stack(both, axis=1) for both in zip(*ways)]
    return outputs if kind == "LSTM" else outputs[:2]


def _arrays(kind: str, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    rows, biases = GATES[kind] * HIDDEN, (4 if "linear" in kind else GATES[kind]) * HIDDEN
    weights = [rng.uniform(-0.2, 0.2, shape) for shape in ((2, rows, INPUT), (2, rows, HIDDEN), (2, biases))]
    data = [rng.normal(size=shape) for shape in ((BATCH, TIME, INPUT), (BATCH, 2, HIDDEN), (BATCH, 2, HIDDEN))]
    return [array.astype(np.float32) for array in (*data, *weights)]


def _model(kind: str, arrays: Sequence[np.ndarray]) -> irrun.Model:
    x, h, c, w, r, bias = arrays
    states = [b.parameter(h.shape, name="h"), *([b.parameter(c.shape, name="c")] if kind == "LSTM" else [])]
    attributes: dict[str, Any] = {"linear_before_reset": True} if "linear" in kind else {}
    outputs = getattr(b, f"{kind.split()[0]}Sequence")(
        b.parameter(x.shape, name="x"), *states, np.full(BATCH, TIME), w, r, bias, hidden_size=HIDDEN,
        direction="bidirectional", name="layer", **attributes,
    )  # fmt: skip
    return b.model({f"out{n}": output for n, output in enumerate(outputs)})


def _judged(kind: str, arrays: Sequence[np.ndarray], shown: Sequence[np.ndarray], folder: Path) -> list[Budget]:
    """Judge the outputs that a candidate in bf16 has shown."""
    found, values = dict[Place, Budget](), Shown()
    model, named = _model(kind, arrays), dict(zip("xhc", arrays))
    judge = Judge(model, InEffect(), InEffect("bf16"), keep_state=False)
    with closing(Shelf(folder)) as shelf:
        for port, array in enumerate(shown):
            values.add(Place("layer", port), 0, 0, shelf.keep_array(array), port)
        inputs = {at: named[parameter.name] for at, parameter in enumerate(model.parameters)}
        judge.run(inputs, values, lambda place, iteration, own: found.__setitem__(place, own))
        values.drop()
    return [found[Place("layer", port)] for port in range(len(shown))]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", GATES)
def test_the_roundings_of_an_engine_are_predicted(kind: str, seed: int, tmp_path: Path) -> None:
    """The error of a healthy layer is explained, and little more is: half a unit in the last place of bf16."""
    arrays = _arrays(kind, seed)
    budgets = _judged(kind, arrays, _shown(kind, arrays), tmp_path)
    assert all(own.is_explained for own in budgets)
    assert all(own.allowed < 3 * own.error for own in budgets)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("of_data", [True, False])
@pytest.mark.parametrize("kind", GATES)
def test_a_row_of_weights_that_is_scaled_is_found(kind: str, of_data: bool, seed: int, tmp_path: Path) -> None:
    """One row of the weights of one gate is larger by 5 %."""
    arrays = _arrays(kind, seed)
    wrong = [array.copy() for array in arrays]
    wrong[3 if of_data else 4][seed % 2, -1 - 7 * seed] *= 1.05
    assert not all(own.is_explained for own in _judged(kind, arrays, _shown(kind, wrong), tmp_path))


@pytest.mark.parametrize("lengths", [(9, 9), (9, 4)], ids=["whole", "short"])
def test_openvino_in_bf16_agrees(ov: Any, lengths: tuple[int, int], tmp_path: Path) -> None:
    """OpenVINO computes shorter sequences in a loop of cells."""
    ops, feeds = ov.opset14, dict(zip("xhc", _arrays("LSTM", 1)))
    x, h, c = (ops.parameter(array.shape, np.float32, name=name) for name, array in feeds.items())
    outputs = []
    for kind in GATES:
        build, states = getattr(ops, f"{kind.split()[0].lower()}_sequence"), (h, c) if kind == "LSTM" else (h,)
        attributes = {"linear_before_reset": True} if "linear" in kind else {}
        weights = map(ops.constant, _arrays(kind, 1)[3:])
        length = ops.constant(np.array(lengths, np.int32))
        outputs += build(x, *states, length, *weights, HIDDEN, "bidirectional", **attributes).outputs()
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model(outputs, [x, h, c]), path, compress_to_fp16=False)
    comparison = compare(str(path), f"openvino[precision=bf16]:{path}", feeds)
    assert comparison.agrees
    assert len(comparison.layers) == len(outputs)


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "agree"), (1.5, "differ")])
def test_a_loop_whose_body_openvino_does_not_show(ov: Any, scale: float, verdict: str, tmp_path: Path) -> None:
    """In bf16, no tolerance holds for the outputs of a healthy loop. The budgets of the outputs find the fault."""
    ops, feeds = ov.opset14, dict(zip("xhc", _arrays("LSTM", 2)))
    w, r, bias = (array[0].copy() for array in _arrays("LSTM", 2)[3:])
    for name, factor in (("right", 1.0), ("other", scale)):
        wrong = w.copy()
        wrong[2 * HIDDEN : 2 * HIDDEN + 8] *= factor
        x, h, c = (ops.parameter(s, np.float32) for s in ([BATCH, 1, INPUT], [BATCH, HIDDEN], [BATCH, HIDDEN]))
        element = ops.squeeze(x, ops.constant([1]))
        cell = ops.lstm_cell(element, h, c, *map(ops.constant, (wrong, r, bias)), HIDDEN)
        last = [ops.result(state) for state in cell.outputs()]
        state = ops.result(ops.unsqueeze(cell.output(0), ops.constant([1])))
        loop = ops.tensor_iterator()
        loop.set_body(ov.Model([*last, state], [x, h, c]))
        shapes = {"x": [BATCH, TIME, INPUT], "h": [BATCH, HIDDEN], "c": [BATCH, HIDDEN]}
        outer = {key: ops.parameter(shape, np.float32, name=key) for key, shape in shapes.items()}
        loop.set_sliced_input(x, outer["x"].output(0), 0, 1, 1, -1, 1)
        for own, key, after in zip((h, c), "hc", last):
            loop.set_merged_input(own, outer[key].output(0), after.output(0))
        states = loop.get_concatenated_slices(state.output(0), 0, 1, 1, -1, 1)
        ov.save_model(ov.Model([states], list(outer.values())), tmp_path / f"{name}.xml", compress_to_fp16=False)
    inputs = {"x": feeds["x"], "h": feeds["h"][:, 0], "c": feeds["c"][:, 0]}
    paths = [str(tmp_path / f"{name}.xml") for name in ("right", "other")]
    comparison = compare(paths[0], f"openvino[precision=bf16]:{paths[1]}", inputs)
    assert comparison.verdict == verdict
    assert verdict == "agree" or (comparison.first is not None and comparison.first.layer.type == "TensorIterator")
