"""What every engine of IR has to do, for the tests of each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.engines import Engine, Loaded, Outputs, Place, Refusal, Value

X = np.arange(8, dtype=np.float32).reshape(2, 4) - 3

TENSORS = {
    "f32": X,
    "f16": X.astype(np.float16),
    "f64": X.astype(np.float64),
    "bf16": X.astype(ml_dtypes.bfloat16),
    "f8e4m3": X.astype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": X.astype(ml_dtypes.float8_e5m2),
    "i4": X.astype(ml_dtypes.int4),
    "u4": (X + 3).astype(ml_dtypes.uint4),
    "i8": X.astype(np.int8),
    "i64": X.astype(np.int64) << 40,
    "boolean": X > 0,
    "string": np.array([["a", ""], ["übung", "line\nbreak"], ["NULs\0\0", "\0\udcff\udcc3"]], object),
}


def run(engine: Engine, model: irrun.Model, folder: Path, *feeds: np.ndarray) -> Outputs:
    """Load a model and run it once."""
    path = folder / "model.xml"
    irrun.save_model(model, path)
    assert isinstance(engine.load(path), Loaded)
    outputs = engine.infer(dict(enumerate(feeds)))
    assert isinstance(outputs, Outputs), outputs
    return outputs


def keeps_every_bit(engine: Engine, type: str, folder: Path) -> None:
    """A tensor of the element type comes back as it was; also an odd number of elements, and none."""
    array = TENSORS[type]
    for shape in (array.shape, (3,), (0, 2), ()):
        part = array.reshape(-1)[: int(np.prod(shape))].reshape(shape)
        x = b.parameter(list(shape), type, name="x")
        (output,) = run(engine, b.model({"y": x}), folder, part).outputs
        assert (output.type, output.array.shape) == (type, shape)
        np.testing.assert_array_equal(output.array, part)
        assert output.array.dtype.kind == part.dtype.kind


def takes_any_dims(engine: Engine, folder: Path) -> None:
    model = b.model({"y": b.Add(b.parameter("?,?", name="x"), 1.0)})
    for shape in ((1, 2), (3, 1), (0, 4), (200, 50)):
        array = np.full(shape, 2, np.float32)
        np.testing.assert_array_equal(run(engine, model, folder, array)["y"], array + 1)


def counter() -> irrun.Model:
    """Return a model that adds up what it gets in a variable."""
    held = b.ReadValue(np.zeros((2, 4), np.float32), variable_id="sum", variable_type="f32", variable_shape=[2, 4])
    total = b.Add(held, b.parameter([2, 4], name="x"), name="total")
    return b.model({"y": b.Multiply(total, 2.0, name="twice")}, sinks=[b.Assign(total, variable_id="sum")])


def keeps_state(engine: Engine, folder: Path) -> None:
    """State is kept from run to run, whether inner values are observed or not, until it is reset."""
    irrun.save_model(counter(), folder / "model.xml")
    loaded = engine.load(folder / "model.xml", inner=True)
    assert isinstance(loaded, Loaded)
    ones = np.ones((2, 4), np.float32)
    for taps in ([], [Place("total")]):
        engine.reset()
        for number in (1, 2, 3):
            seen: list[float] = []
            outputs = engine.infer({"x": ones}, taps, lambda value, seen=seen: seen.append(value.array()[0, 0]))
            assert isinstance(outputs, Outputs)
            assert outputs["y"][0, 0] == 2 * number
            assert seen == [number] * len(taps)


def shows_inner_values(engine: Engine, folder: Path, *, in_bodies: bool) -> None:
    """Large and small values, further outputs of a layer, and values in the body of a loop for each iteration."""
    x = b.parameter([2, 4], name="x")
    left, right = b.Split(b.Add(x, [[1.0], [2.0]], name="sum"), 1, num_splits=2, name="split")
    loop = b.Loop(3, True, left, body=lambda i, a: (True, b.Multiply(a, [[2.0]], name="twice")), name="loop")
    large = b.Broadcast(right, [4000, 2, 2], mode="numpy", name="large")
    model = b.model({"y": b.Subtract(loop, right, name="difference"), "z": large})
    irrun.save_model(model, folder / "model.xml")
    loaded = engine.load(folder / "model.xml", inner=True)
    assert isinstance(loaded, Loaded)
    assert (Place("loop/twice") in loaded.places) == in_bodies
    assert loaded.places[Place("split", 1)].type == "Split"
    values: dict[tuple[str, int, int], np.ndarray] = {}

    def keep(value: Value) -> None:
        values[value.place.layer, value.place.port, value.iteration] = value.array()
        value.drop()

    outputs = engine.infer({"x": X}, list(loaded.places), keep)
    assert isinstance(outputs, Outputs)
    total = X + np.array([[1], [2]], np.float32)
    expected = {("sum", 0, 0): total, ("split", 0, 0): total[:, :2], ("split", 1, 0): total[:, 2:]}
    expected |= {("loop", 0, 0): 8 * total[:, :2], ("difference", 0, 0): 8 * total[:, :2] - total[:, 2:]}
    expected |= {("large", 0, 0): np.broadcast_to(total[:, 2:], (4000, 2, 2))}
    if in_bodies:
        expected |= {("loop/twice", 0, n): 2.0 ** (n + 1) * total[:, :2] for n in range(3)}
    for key, array in expected.items():
        np.testing.assert_array_equal(values[key], array)
    assert Counter(key[0] for key in values)["sum"] == 1
    np.testing.assert_array_equal(outputs["y"], expected["difference", 0, 0])
    np.testing.assert_array_equal(outputs["z"], expected["large", 0, 0])


def refuses(engine: Engine, folder: Path) -> None:
    """A model that cannot be, a missing input and an unknown one are refusals, after which the engine goes on."""
    (folder / "bad.xml").write_text("<net name='n' version='11'><layers/><edges/></net")
    assert isinstance(engine.load(folder / "bad.xml"), Refusal)
    outputs = engine.infer({})
    assert isinstance(outputs, Refusal)
    run(engine, b.model({"y": b.ReLU(b.parameter([2, 4], name="x"))}), folder, X)
    for feeds, said in (({}, '"x" is missing'), ({"z": X}, "no input 'z'"), ({1: X}, "no input 1")):
        outcome = engine.infer(feeds)
        assert isinstance(outcome, Refusal)
        assert said in outcome.message
    assert isinstance(engine.infer({"x": X[:1]}), Refusal)
    with pytest.raises(KeyError):
        run(engine, b.model({"y": b.ReLU(b.parameter([2, 4], name="x"))}), folder, X)["nothing"]
