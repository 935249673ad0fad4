"""Each departure of OpenVINO: what irrun gives, and what OpenVINO gives instead.

Where OpenVINO gives what irrun gives, or the right answer, it has been repaired: the departure has served its time, and
its files go.
"""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest

import irrun
from departure_calls import feeds, want
from departures_page import PAGE, page
from grouped import each
from irrun.base.processor import has_flag
from irrun.departures import FOLDER, Departure, Either, Expected, Outcome, Tensor, departures, parsed
from irrun.fuzz.predicting import Layer, last_layer
from irrun.opdef import find
from irrun.specification import wording
from irrun.specification.undefined import shown
from irrun.types import ELEMENT_TYPES
from oracle import Oracle, OracleError

ASKED = [departure for departure in departures() if departure.shown.openvino is not Outcome.UNDEFINED]


@each("departure", departures(), ids=lambda departure: departure.name)
def test_irrun(departure: Departure) -> None:
    if departure.shown.irrun is Outcome.REFUSES:
        with pytest.raises(irrun.IrrunError):
            irrun.run(departure.model, feeds(departure)[-1])
        return
    assert not irrun.check(departure.model).diagnostics
    executable = irrun.compile(departure.model, strict=True)
    for arrays, call in zip(feeds(departure), departure.calls, strict=True):
        _assert_is(executable(arrays)[0], call.irrun, departure)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="these are the numbers of the x86-64 kernels")
@pytest.mark.parametrize("departure", ASKED, ids=lambda departure: departure.name)
def test_openvino(departure: Departure, oracle: Oracle) -> None:
    calls, expected = feeds(departure), departure.shown.openvino
    if expected in (Outcome.REFUSES, Outcome.CRASHES):
        with pytest.raises(OracleError) as caught:
            oracle(departure.model, calls[-1], departure.kernels)
        assert (str(caught.value) == "OpenVINO crashed") is (expected is Outcome.CRASHES), caught.value
        return
    stateful = len(calls) > 1
    (got,) = oracle(departure.model, calls if stateful else calls[-1], "state" if stateful else departure.kernels)
    needs = departure.instructions
    is_right = expected is Outcome.SAME or (needs != "" and not has_flag(needs))
    _assert_is(got, departure.shown.irrun if is_right else expected, departure)


def _assert_is(got: np.ndarray, expected: Expected, departure: Departure) -> None:
    if isinstance(expected, Either):
        assert any(np.array_equal(got, want(tensor, departure)) for tensor in expected.outputs), got
        return
    assert isinstance(expected, Tensor)
    wanted = want(expected, departure)
    assert (got.dtype.kind in "OUT", got.shape) == (wanted.dtype.kind in "OUT", wanted.shape)
    if got.dtype.kind in "OUT":
        np.testing.assert_array_equal(got, wanted)
        return
    assert got.dtype == wanted.dtype
    rtol = 1e-6 if got.dtype.kind not in "iub" else 0
    np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=rtol)


PREDICTED = [departure for departure in departures() if departure.predicts is not None]


@each("departure", PREDICTED, ids=lambda departure: departure.name)
def test_a_prediction_is_what_openvino_gives(departure: Departure) -> None:
    """``NAME.py`` computes what ``NAME.toml`` records, and says nothing about a layer that the departure spares."""
    predicts, expected = departure.predicts, departure.shown.openvino
    assert predicts is not None
    model = irrun.read_model(departure.model)
    layer, source = last_layer(model, feeds(departure)), model.feeds[model.results[0].id][0]
    assert layer is not None
    assert source is not None
    outputs = predicts(layer)
    assert outputs is not None
    assert len(outputs) == len(layer.outputs)
    output = outputs[source[1]]
    if isinstance(expected, Tensor) and output is not None:
        wanted = want(expected, departure)
        assert output.shape == wanted.shape
        known = ~np.ma.getmaskarray(output)
        got = np.ma.getdata(output)[known]
        if got.dtype.kind in "OUT":
            np.testing.assert_array_equal(got, wanted[known])
        else:
            np.testing.assert_allclose(got, wanted[known], rtol=1e-5)
    x = np.array([1.5, -2], np.float32)
    assert predicts(Layer(find("Tanh")[1](), [x], [np.tanh(x)], [False], False)) is None


OTHER_VALUES = [
    departure
    for departure in departures()
    if departure.kernels == "cpu"
    and isinstance(departure.shown.openvino, Tensor)
    and isinstance(departure.shown.irrun, Tensor)
    and departure.name not in ("v10_f64_output", "v10_i64_output", "read_value_input")
]
"""The fuzzer writes IR of version 11, and a layer does not know which Assign writes its variable."""


@each("departure", OTHER_VALUES, ids=lambda departure: departure.name)
def test_other_values_are_computed_or_left_open(departure: Departure) -> None:
    """No pattern explains values: a prediction gives them, or the page leaves the elements open."""
    model = irrun.read_model(departure.model)
    layer, source = last_layer(model, feeds(departure)), model.feeds[model.results[0].id][0]
    assert layer is not None
    assert source is not None
    assert isinstance(departure.shown.openvino, Tensor)
    wanted, number = want(departure.shown.openvino, departure), source[1]
    predictions = (other.predicts(layer) for other in PREDICTED if other.predicts is not None)
    if any(found is not None and _gives(found[number], wanted) for found in predictions):
        return
    page = wording(layer.name)
    assert page is not None
    is_open: np.ndarray = np.array(False)
    for name in page.undefined:
        is_open = is_open | shown(layer.op, layer.inputs, name, len(layer.outputs))[number]
    expected = layer.outputs[number]
    assert is_open.all() or _gives(np.ma.array(expected, mask=np.broadcast_to(is_open, expected.shape)), wanted)


def _gives(predicted: np.ndarray | None, wanted: np.ndarray) -> bool:
    """Return whether the elements that are not masked are as wanted."""
    if predicted is None or predicted.shape != wanted.shape:
        return predicted is None
    known = ~np.ma.getmaskarray(predicted)
    got, wanted = np.ma.getdata(predicted)[known], wanted[known]
    if got.dtype.kind in "OUT":
        return np.array_equal(got, wanted)
    return bool(np.allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-5, atol=0, equal_nan=True))


_FEW = np.array([[[0.5, 0.25]]], np.float32)
_UNUSUAL = [
    ("ReduceSum", 1, {}, [np.array(2, np.uint8), np.array([], np.int64)]),
    ("ReduceL2", 4, {}, [np.array(2, np.int8), np.array([], np.int64)]),
    ("ReduceMean", 1, {}, [np.array(2, np.int32), np.array([0])]),
    ("ReduceMin", 1, {}, [np.array(2, np.float32), np.array([0])]),
    ("NonMaxSuppression", 9, {}, [np.zeros((1, 2, 4), np.float32), _FEW]),
    ("Greater", 1, {"auto_broadcast": "pdpd"}, [np.ones((3, 2)), np.ones(2)]),
    ("SquaredDifference", 1, {"auto_broadcast": "pdpd", "axis": 0}, [np.ones((2, 3), np.uint8), np.ones(2, np.uint8)]),
    ("RegionYolo", 1, {"axis": 1, "end_axis": 3, "coords": 1, "classes": 1, "num": 1, "mask": (0, 1)}, [np.ones((1, 3, 1, 1), np.float32)]),
]  # fmt: skip
"""Layers of scalars, without optional inputs, and with shapes that only one axis fits."""


@each("departure", PREDICTED, ids=lambda departure: departure.name)
def test_a_prediction_takes_unusual_layers(departure: Departure) -> None:
    """A campaign asks every departure about every layer that disagrees."""
    assert departure.predicts is not None
    for type, version, attributes, inputs in _UNUSUAL:
        op = find(type)[version](**attributes)
        outputs = op.run(*inputs)
        outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        with np.errstate(all="ignore"):
            predicted = departure.predicts(Layer(op, inputs, outputs, [False] * len(inputs), False))
        assert predicted is None or len(predicted) == len(outputs)


# ---------------------------------------------------------------------------------------------
# the files


def test_the_page_is_made_from_the_files() -> None:
    """`python -m tools departures` writes it."""
    assert PAGE.read_text("utf-8") == page(PAGE.read_text("utf-8"))


def test_each_model_has_its_file() -> None:
    names = {departure.name for departure in departures()}
    assert names == {path.stem for path in FOLDER.glob("*.xml")}
    assert names >= {path.stem for path in FOLDER.glob("*.bin")}


@each("departure", departures(), ids=lambda departure: departure.name)
def test_what_a_file_names(departure: Departure) -> None:
    """Operations and a page that there are, and in ``case`` the operations that depart alike."""
    versions = find(departure.operation).values()
    assert departure.page in {cls.spec for cls in versions}
    types = {layer.type for layer in irrun.read_model(departure.model).layers.values()}
    assert departure.operation.lower() in {type.lower() for type in types}
    for type in departure.also:
        assert find(type)
        assert type in departure.case
    tensors = [e for call in departure.calls for e in (*call.feeds, call.irrun, call.openvino) if isinstance(e, Tensor)]
    assert all(tensor.type in ("", *ELEMENT_TYPES) for tensor in tensors)


REPORTED = [departure for departure in departures() if departure.report]


@each("departure", REPORTED, ids=lambda departure: departure.name)
def test_a_report_is_an_issue(departure: Departure) -> None:
    """Its first line is the title, and it has a program, which imports openvino, and what the program prints."""
    title, _, text = departure.report.strip().partition("\n")
    assert title.startswith(("[CPU] ", "[Core] "))
    fenced = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    program = fenced[1] if fenced else "\n".join(re.findall(r"^    (.*)$", text, re.MULTILINE))
    assert "openvino as ov" in program
    compile(program, departure.name, "exec")
    assert len(text.replace(program, "").split()) > 20


_WHOLE = """
operation = "Add"
page = "arithmetic/add-1"
case = "a"
openvino = "b"
irrun = "c"
issue = "https://github.com/openvinotoolkit/openvino/issues/1"
[[call]]
feeds = [{ shape = [0, 2] }, { shape = [2, 3], fill = nan }, ["a"]]
irrun = { type = "f32", values = [2] }
openvino = { either = [[1], [2]], why = "it depends" }
"""


def test_a_file_is_read() -> None:
    departure = parsed("x", _WHOLE)
    empty, repeated, text = (tensor.array() for tensor in departure.shown.feeds)
    assert (empty.shape, repeated.shape, text.tolist()) == ((0, 2), (2, 3), ["a"])
    assert np.isnan(repeated).all()
    assert departure.shown.irrun == Tensor([2], "f32")
    assert departure.shown.openvino == Either((Tensor([1]), Tensor([2])), "it depends")
    assert departure.status == ""


@each(
    "old, new, said",
    [
        ("operation =", "operations =", "operations"),
        ("openvino = {", "openvin = {", "openvin"),
        ('page = "arithmetic/add-1"', "", "page"),
        ("[[call]]", "[[calls]]", "call"),
        ("issue =", "no_issue = 'b'\nissue =", "it needs either issue or no_issue"),
        ("issue =", "sentence = 'b'\nissue =", "a sentence needs the commit"),
        ("fill", "fills", "a tensor has no fills"),
        ('irrun = { type = "f32", values = [2] }', 'irrun = "dies"', "dies"),
        ('irrun = "c"', 'irrun = "c"\nstatus = "shut"', "status may be open"),
        ('irrun = "c"', 'irrun = "c"\nrecognised = [{ pattern = "a", were = "b" }]', "were"),
        ("[0, 2]", "[0, 2", "array"),
    ],
)
def test_a_wrong_file_is_named(old: str, new: str, said: str) -> None:
    assert old in _WHOLE
    with pytest.raises(ValueError, match=rf"^x\.toml: .*{said}"):
        parsed("x", _WHOLE.replace(old, new))
