"""irrun.testing: what its assertions say, and that what its strategies make is true.

`python -m tools random_models 10000` checks and runs so many generated models.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import irrun
from irrun import build as b
from irrun.opdef import Value
from irrun.opdef import find as find_operation
from irrun.testing import TOLERANCES, assert_matches, check_clean, difference
from irrun.testing import strategies as ir
from irrun.types import ELEMENT_TYPES, Dim, ElementType
from oracle import Oracle
from places import SAMPLES

IMAGE = np.load(SAMPLES / "image.npy")
CONVNET = SAMPLES / "convnet.xml"
EDGES = SAMPLES / "pytest_project" / "models" / "edges.xml"


# -- assertions


def test_matching_returns_the_outputs() -> None:
    expected = irrun.run(CONVNET, IMAGE)
    for form in (
        expected,
        {"out": expected[0]},
        {0: expected[0]},
        [expected[0]],
        expected[0],
        expected[0].tolist(),
        CONVNET,
    ):
        np.testing.assert_array_equal(assert_matches(CONVNET, IMAGE, form)["out"], expected["out"])
    assert_matches(irrun.compile(CONVNET), IMAGE, irrun.compile(CONVNET))
    assert_matches(irrun.read_model(CONVNET), IMAGE, irrun.read_model(CONVNET))


def _message(*arguments: Any, **keywords: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_matches(*arguments, **keywords)
    return str(caught.value)


def test_the_message_shows_the_worst_element() -> None:
    expected = irrun.run(CONVNET, IMAGE)["out"]
    true = float(expected[0, 7])
    expected[0, 2] += 0.25
    expected[0, 7] += 0.5
    assert _message(CONVNET, IMAGE, {"out": expected}).splitlines()[1:] == [
        "",
        'output "out" of SoftMax "probabilities"',
        "  2 of 10 elements differ (rtol 0.0001, atol 1e-05)",
        f"  worst at [0,7]: {true:.7g}, expected {expected[0, 7]:.7g} (off by 0.5)",
        "  f32 [1,10]",
    ]


@pytest.mark.parametrize(
    ("expected", "part"),
    [
        pytest.param(np.zeros((1, 10)), "element type f32, expected f64", id="type"),
        pytest.param(np.zeros((1, 9), np.float32), "shape [1,10], expected [1,9]", id="shape"),
        pytest.param({"nothing": 0}, "the model has no output 'nothing'; its outputs are 'out'", id="name"),
        pytest.param(["word"], "expected cannot become an array of f32", id="no-number"),
        pytest.param([[np.nan] * 10], "10 of 10 elements differ", id="nan"),
        pytest.param([[np.inf] * 10], "expected inf", id="inf"),
    ],
)
def test_other_messages(expected: Any, part: str) -> None:
    assert part in _message(CONVNET, IMAGE, expected)


def test_as_many_as_there_are() -> None:
    picture = np.ones((1, 1, 6, 6), np.float32)
    assert "2 outputs (edges, strongest), but expected holds 1; pass an array for each output" in _message(
        EDGES, picture, [picture]
    )
    assert "1 of 2 outputs not as expected" in _message(EDGES, picture, [picture, [2]])


def test_outputs_by_position() -> None:
    picture = np.ones((1, 1, 6, 6), np.float32)
    outputs = irrun.run(EDGES, picture)
    for position in (1, np.int64(1), np.uint8(1)):
        assert_matches(EDGES, picture, {position: outputs[1]})
        assert 'output "strongest"' in _message(EDGES, picture, {position: outputs[1] + 1})
    for wrong in (np.int64(2), -1, 1.0):
        assert f"the model has no output {wrong!r}; its outputs are" in _message(EDGES, picture, {wrong: outputs[1]})


def test_another_model_shows_where_they_part(tmp_path: Path) -> None:
    shutil.copy(CONVNET, tmp_path / "altered.xml")
    weights = bytearray(CONVNET.with_suffix(".bin").read_bytes())
    weights[291] ^= 0x04  # in block1/bias
    (tmp_path / "altered.bin").write_bytes(weights)
    message = _message(tmp_path / "altered.xml", IMAGE, CONVNET)
    assert 'first divergent layer: Const "block1/bias"\n  1 of 8 elements differs' in message


def test_another_model_shows_the_output_where_they_part() -> None:
    """The places of MaxPool-8 count from ``axis`` on: its second output differs, the first does not."""

    def places(axis: int) -> irrun.Model:
        window = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel": [2, 2]}
        pool = b.MaxPool(b.parameter([1, 2, 2, 2], "f32", name="x"), **window, axis=axis, name="pool")
        return b.model({"largest": pool[0], "places": pool[1]})

    message = _message(places(0), [np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)], places(2))
    assert 'output "places" of MaxPool "pool"' in message
    assert 'first divergent layer: "pool:2"\n  1 of 2 elements differs' in message


def _summed(scale: float, *, seed: int = 1) -> irrun.Model:
    """Return a model with state and random numbers, whose second layer scales."""
    x = b.parameter([2], "f32", name="x")
    past = b.ReadValue(b.constant(np.zeros(2, np.float32)), variable_id="v", variable_type="f32", variable_shape="2")
    noise = b.RandomUniform(np.array([2]), np.float32(0), np.float32(1), output_type="f32", op_seed=seed, name="noise")
    total = b.Add(b.Add(x, past, name="total"), noise, name="noisy")
    stored = b.Assign(total, variable_id="v", name="store")
    return b.model({"y": b.Multiply(total, np.float32(scale), name="scaled")}, sinks=[stored])


def test_a_model_with_state_shows_where_it_parts() -> None:
    """The second run, which is observed, starts where the first one did."""
    feeds = {"x": np.ones(2, np.float32)}
    assert_matches(_summed(2), feeds, _summed(2))
    message = _message(_summed(2), feeds, _summed(3))
    assert 'first divergent layer: Multiply "scaled"' in message or "first divergent layer: Const" in message
    assert "noise" not in message


def test_random_numbers_without_a_seed_are_named() -> None:
    feeds = {"x": np.ones(2, np.float32)}
    message = _message(_summed(2, seed=0), feeds, _summed(2, seed=0))
    assert 'RandomUniform "noise" has no seed: it draws other random numbers in every run' in message


DIFFERENCES = {
    "nan-equals-nan": (np.array([np.nan, np.inf, 1], np.float32), np.array([np.nan, np.inf, 1], np.float32), None),
    "signs-of-infinity": (np.array([np.inf], np.float32), np.array([-np.inf], np.float32), "worst at [0]: inf, expected -inf"),
    "an-infinity-is-not-near": (np.array([1e30], np.float32), np.array([np.inf], np.float32), "1 of 1 elements differs"),
    "within": (np.array([1.00005], np.float32), np.array([1], np.float32), None),
    "scalar": (np.array(1.5), np.array(2.5), "worst at []: 1.5, expected 2.5 (off by 1)"),
    "empty": (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), None),
    "f16": (np.array([1.005], np.float16), np.array([1], np.float16), None),
    "bf16": (np.array([1.02], np.float32).astype(ELEMENT_TYPES["bf16"].dtype), [1.0], None),
    "i64-is-exact": (np.array([2**53 + 1], np.int64), np.array([2**53], np.int64), "compared exactly"),
    "u8-does-not-wrap": (np.array([0, 255], np.uint8), np.array([255, 255], np.uint8), "off by 255"),
    "u64": (np.array([2**64 - 1], np.uint64), np.array([0], np.uint64), "expected 0"),
    "boolean": (np.array([True, False]), np.array([True, True]), "first at [1]: False, expected True"),
    "string": (np.array(["a", "b"]), np.array(["a", "c"]), "first at [1]: b, expected c"),
    "string-width": (np.array(["a"]), np.array(["a"], "U9"), None),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENCES)
def test_difference(case: str) -> None:
    actual, expected, part = DIFFERENCES[case]
    found = "\n".join(difference(actual, expected))
    assert part in found if part else not found


def test_tolerances() -> None:
    a, b = np.array([1.0], np.float32), np.array([1.1], np.float32)
    assert difference(a, b)
    assert not difference(a, b, rtol=0.2)
    assert not difference(a, b, atol={"f32": 0.2})
    assert difference(a, b, rtol={"f16": 0.2})
    assert not difference(np.array([3], np.int32), np.array([4], np.int32), atol=1)
    assert set(TOLERANCES) <= set(ELEMENT_TYPES)
    with pytest.raises(ValueError, match="'f31' is not an element type"):
        difference(a, b, rtol={"f31": 0.2})


def test_check_clean() -> None:
    check_clean(CONVNET)
    check_clean(irrun.read_model(CONVNET))
    check_clean(SAMPLES / "wrong_dim.xml", allow=["IR401"])
    with pytest.raises(AssertionError, match=r"IR401 dims-mismatch.*\n.*wrong_dim.xml:39:6"):
        check_clean(SAMPLES / "wrong_dim.xml")


# -- strategies

# a machine under load draws slowly, and large models now and then: neither says anything of the strategies
STEADY = settings(
    derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@STEADY
@given(st.data())
def test_shapes(data: st.DataObject) -> None:
    dims = data.draw(ir.shapes(1, 3, 2, 4))
    assert 1 <= len(dims) <= 3
    assert all(2 <= d <= 4 for d in dims)


@STEADY
@given(ir.broadcastable_shapes(min_rank=1))
def test_broadcastable_shapes(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert len(np.broadcast_shapes(*pair)) <= 4
    assert min(map(len, pair)) >= 1


@pytest.mark.parametrize("name", sorted(ELEMENT_TYPES.keys() - {"dynamic"}))
@settings(STEADY, max_examples=25)
@given(st.data())
def test_tensors(name: str, data: st.DataObject) -> None:
    own = ELEMENT_TYPES[name]
    array = data.draw(ir.tensors(name))
    assert array.dtype == own.dtype
    if own.kind == "float":
        assert np.isfinite(array.astype(np.float64)).all()
    if 0 < own.bits < 8 and own.is_integer:
        assert (array.astype(np.int64) < 1 << own.bits).all()


@STEADY
@given(ir.tensors(st.sampled_from(["f32", "bf16", "f8e5m2", "i8", "u4"]), (2, 3), -1, 2.5))
def test_tensors_within_bounds(array: np.ndarray) -> None:
    assert array.shape == (2, 3)
    assert (np.abs(array.astype(np.float64) - 0.75) <= 1.75).all()


@pytest.mark.parametrize("name", ["f32", "bf16", "f8e5m2"])
def test_special_values(name: str) -> None:
    find(ir.tensors(name, (1,), special=True), lambda a: bool(np.isnan(a.astype(np.float32))[0]))
    find(ir.tensors(name, (1,), special=True), lambda a: bool(np.isinf(a.astype(np.float32))[0]))


def _check(model: ir.GeneratedModel) -> None:
    """That it checks clean, runs strictly, and has the shapes and types that it was built to have.

    Inference finds as much as the rules do by which the model was put together.
    """
    read = model.read()
    check_clean(read)
    executable = irrun.compile(read, strict=True)
    inferred = [output.shape for output in executable.outputs if output.shape is not None]
    assert tuple(tuple(d.value for d in shape.dims or ()) for shape in inferred) == model.declared
    outputs = executable(dict(model.feeds))
    assert tuple(a.shape for a in outputs.arrays) == model.shapes
    assert tuple(str(ElementType.of(a.dtype)) for a in outputs.arrays) == model.types


@settings(STEADY, max_examples=300)
@given(ir.models())
def test_models_check_clean_and_run(model: ir.GeneratedModel) -> None:
    _check(model)


@settings(STEADY, max_examples=100)
@given(ir.models(dynamic=False))
def test_static_models_say_what_they_give(model: ir.GeneratedModel) -> None:
    assert model.declared == model.shapes


@pytest.mark.parametrize("type", ["SoftMax", "Convolution", "Concat"])
def test_a_failing_model_becomes_small(type: str) -> None:
    """One layer, its constants aside, behind an input of the least rank and of dims of 1."""
    model = find(ir.models(), lambda model: f'type="{type}"' in model.xml, settings=settings(STEADY, max_examples=1000))
    assert repr(model).count("_") == 1
    assert {dim for array in model.feeds.values() for dim in array.shape} == {1}


def test_a_wrong_rule_of_inference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    (tile,) = find_operation("Tile").values()
    rule = tile.infer

    def wrong(self: Any, at: Any, *values: Any) -> Any:
        value = rule(self, at, *values)
        assert isinstance(value, Value)
        assert value.shape.dims is not None
        return value.reshaped([*value.shape.dims[:-1], value.shape.dims[-1] + Dim(1)])

    monkeypatch.setattr(tile, "infer", wrong)
    steady = settings(STEADY, max_examples=200, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, irrun.IrrunError)):
        steady(given(ir.models())(_check))()


@settings(STEADY, max_examples=40)
@given(model=ir.models(max_layers=6))
def test_openvino_agrees(model: ir.GeneratedModel, oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> None:
    """In shapes, element types and, within what is usual for an element type, in values."""
    path = model.save(tmp_path_factory.getbasetemp())
    ours = irrun.run(path, list(model.feeds.values()), strict=True).arrays
    theirs = oracle(path, list(model.feeds.values()))
    assert [array.shape for array in theirs] == list(model.shapes)
    for got, expected in zip(ours, theirs, strict=True):
        within = TOLERANCES["f32"] if expected.dtype == np.float64 else (None, None)  # OpenVINO computes f64 as f32
        assert not (differs := difference(got, expected, *within)), "\n".join(differs)


def test_without_hypothesis() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import irrun.testing; import irrun.testing.strategies"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: irrun.testing.strategies needs hypothesis: pip install hypothesis" in done.stderr


if __name__ == "__main__":
    count, start, done = int(sys.argv[1]), time.perf_counter(), []

    @settings(STEADY, derandomize=False, max_examples=count, database=None)
    @given(ir.models())
    def run(model: ir.GeneratedModel) -> None:
        _check(model)
        done.append(model.xml.count("<layer "))

    run()
    print(f"{len(done):,} models of {sum(done):,} layers check clean and run, {time.perf_counter() - start:.0f} s")
