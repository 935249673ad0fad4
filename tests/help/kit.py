"""How an operation is tested: tables of values, shapes and refusals, and the same models run by OpenVINO.

A test file of an operation begins with ``from kit import *`` and holds tables of rows: ``VALUES``, ``SHAPES``,
``REFUSALS`` and ``CASES``. ``tests/ops/conftest.py`` makes one test of each table, which runs all of its rows.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.conformance.judging import difference
from irrun.conformance.suite import tensor_record
from irrun.diagnostics import Refused
from irrun.engines.values import read_tensor
from irrun.inference.layer import infer
from irrun.opdef import Index, Kernel, Op, Site, Value, resolve
from irrun.planning import requests
from irrun.types import ELEMENT_TYPES, Dim, ElementType, PartialShape
from oracle import Oracle
from recorded import answer, case_of, is_recorded

__all__ = [
    "NUMERIC", "Case", "FakeBody", "Refusal", "Shapes", "Values", "arange", "describe", "f32", "filled", "i64",
    "kernel_of", "operation", "random", "same_as_openvino", "tensor",
]  # fmt: skip
"""What test files of operations use; other tests import the rest by name."""

# ---------------------------------------------------------------------------------------------
# rows


def tensor(text: str) -> Value:
    """A value as the tables write it.

    ``"f32[2,?,1..8]"``, ``"f32[...]"``; with contents ``"i64{1,16,?,50}"`` (1D), ``"i64[]{3}"`` (scalar),
    ``"f32{0.5,1.0}"``.
    """
    match = re.fullmatch(r"(\w+)(?:\[(.*?)\])?(?:\{(.*)\})?", text)
    assert match, text
    element_type = ELEMENT_TYPES[match[1]]
    if match[3] is None:
        shape = PartialShape.parse(match[2])
        assert shape is not None, text
        return Value(element_type, shape)
    if re.search(r"\d\.\d", match[3]):
        numbers = Value.of(np.array([float(n) for n in match[3].split(",")], element_type.dtype))
        shape = PartialShape.of([numbers.shape[0]]) if match[2] is None else PartialShape.parse(match[2])
        assert shape is not None
        assert numbers.data is not None
        return Value(element_type, shape, numbers.data.reshape(shape.static or ()))
    items = [_dim(n) for n in match[3].split(",")] if match[3] else []
    value = Value.of_dims(items, element_type)
    if match[2] is None:
        return value
    shape = PartialShape.parse(match[2])
    assert shape is not None
    assert shape.static is not None
    assert value.data is not None
    return Value(element_type, shape, value.data.reshape(shape.static))


def _dim(text: str) -> Dim:
    if re.fullmatch(r"-?\d+", text.strip()):
        return Dim(int(text))
    shape = PartialShape.parse(text)
    assert shape is not None, text
    return shape[0]


def operation(name: str, attributes: dict[str, Any] | None = None) -> Op:
    """``operation("Broadcast-3", {"mode": "explicit"})``: attributes as the texts of an IR file."""
    type, since = name.split("-")
    cls = resolve(type, int(since))
    assert cls is not None, name
    spellings = {s: (key, a) for key, a in cls.attributes.items() for s in (a.name, *a.aliases)}
    parsed = {}
    for spelling, value in (attributes or {}).items():
        key, attribute = spellings[spelling]
        parsed[key] = attribute.parse(attribute_text(value))
    return cls(**parsed)


def attribute_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Values:
    """One call of a kernel with its expected output (or outputs): from the specification or by hand."""

    id: str
    op: str
    inputs: Sequence[Any]
    expected: Any
    attributes: dict[str, Any] = field(default_factory=dict)
    rtol: float = 1e-6


@dataclass(frozen=True)
class Shapes:
    """What a shape rule gives: inputs and outputs as ``tensor`` writes them."""

    id: str
    op: str
    inputs: Sequence[str | None]
    expected: str | Sequence[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1


@dataclass(frozen=True)
class Refusal:
    """Inputs that an operation refuses. The id begins with the clause (``c3-inner-dim``) or code (``ir301-…``)."""

    id: str
    op: str
    inputs: Sequence[str | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1


@dataclass(frozen=True)
class Case:
    """A model of one operation, built and run by OpenVINO.

    ``op`` names the opset to build with: ``Broadcast-3`` is made by opset3's factory. ``shapes`` are the positions
    of inputs that are constants in one half of the models and Parameters in the other; ``constants`` are the
    positions of inputs that are always constants. ``how`` asks the CPU plugin or the ``core`` reference kernels.
    ``expected`` comes from numpy or by hand, where OpenVINO crashes, is wrong, or gives other numbers on another
    processor (say why).
    """

    id: str
    op: str
    inputs: Sequence[np.ndarray]
    attributes: dict[str, Any] = field(default_factory=dict)
    shapes: Sequence[int] = ()
    constants: Sequence[int] = ()
    how: str = "cpu"
    expected: Any = None
    rtol: float | None = None
    atol: float | None = None
    outputs: int = 1

    @property
    def form(self) -> str:
        """What decides how inputs can be declared: the operation, its attributes, input shapes and constants."""
        return repr(
            (self.op, sorted(self.attributes.items()), [np.shape(i) for i in self.inputs], self.shapes, self.constants)
        )


# ---------------------------------------------------------------------------------------------
# tables -> tests


def check_values(row: Values) -> None:
    """Require that the kernel gives the expected outputs, and keeps the laws that hold for all."""
    op = operation(row.op, row.attributes)
    arrays = [None if i is None else np.asarray(i) for i in row.inputs]
    expected = row.expected if isinstance(row.expected, tuple) else (row.expected,)
    outputs = check_laws(op, arrays, len(expected))
    for got, want in zip(outputs, expected, strict=True):
        want = np.asarray(want)
        assert got.shape == want.shape
        _assert_close(got, want, row.rtol, 0)


def check_shapes(row: Shapes) -> None:
    """Require that the shape rule gives the expected element types, shapes and contents."""
    op = operation(row.op, row.attributes)
    inputs = [None if t is None else tensor(t) for t in row.inputs]
    inferred = infer(op, Site(row.outputs), inputs, {})
    expected = [row.expected] if isinstance(row.expected, str) else list(row.expected)
    assert [describe(v, "{" in e) for v, e in zip(inferred, expected, strict=True)] == expected


def check_refusal(row: Refusal) -> None:
    """Require that the inputs are refused, and for the reason that the id names."""
    op = operation(row.op, row.attributes)
    inputs = [None if t is None else tensor(t) for t in row.inputs]
    with pytest.raises(Refused) as caught:
        infer(op, Site(row.outputs), inputs, {})
    reason = row.id.split("-")[0].upper()
    assert reason in (caught.value.label, caught.value.code), str(caught.value)


@dataclass(frozen=True)
class Declared:
    """A case of OpenVINO with one of ``DECLARATIONS``."""

    case: Case
    declaration: str

    @property
    def id(self) -> str:
        return f"{self.case.id}-{self.declaration}"


def declared_cases(cases: Sequence[Case]) -> dict[str, list[Declared]]:
    """Return how the cases of a table are tested against OpenVINO, by the lane that does so.

    Each model is built and serialised by OpenVINO, must check clean, and must give the outputs that OpenVINO gives
    for static declarations. Cases that differ only in their element types or contents share the dynamic
    declarations: the first of them is built with all three; the lane ``slow`` builds the others with the dynamic ones.

    The lane ``spec`` runs the models that are stored in the conformance suite. Here, it only holds the inputs and
    outputs of known cases against those in the suite. The lane ``openvino`` runs new and changed cases.
    """
    lanes: dict[str, list[Declared]] = {"spec": [], "openvino": [], "slow": []}
    seen = set[str]()
    for case in cases:
        tested = 1 if case.form in seen else len(DECLARATIONS)
        seen.add(case.form)
        lanes["spec" if is_recorded(case) else "openvino"] += [Declared(case, d) for d in DECLARATIONS[:tested]]
        lanes["slow"] += [Declared(case, d) for d in DECLARATIONS[tested:]]
    return lanes


def check_recorded(row: Declared) -> None:
    """Require that the suite has the case with this declaration, with its inputs, and its outputs or what was seen."""
    case = row.case
    stored_case = case_of(case, row.declaration)
    assert stored_case is not None, f"{case.op} {row.id}: `python -m tools export_suite` stores it"
    fed = [array for n, array in enumerate(case.inputs) if n not in {*case.constants, *case.shapes}]
    (step,) = stored_case.steps
    for record, array in zip(step.inputs, fed, strict=True):
        assert record == tensor_record(array), row.id
    assert stored_case.verdict in ("values", "open")
    assert stored_case.declaration in (row.declaration, "rank")  # of a tensor whose rank OpenVINO does not infer
    outputs = [read_tensor(record) for record in step.outputs or step.seen]
    for stored, named in zip(outputs, _named(case) or outputs, strict=True):
        wrong = difference(stored, named, stored_case.rtol, stored_case.atol)
        assert not wrong, f"{case.op} {row.id}: {wrong}; `python -m tools export_suite` stores it"


def check_against_openvino(row: Declared, oracle: Oracle) -> None:
    """Build, check and run a case as it is declared: irrun must give the outputs of OpenVINO."""
    _run_as_declared(row.case, row.declaration, _expected(row.case, oracle))


def _run_as_declared(case: Case, declared: str, expected: Sequence[np.ndarray]) -> None:
    """Build, check and run a case with its inputs declared in this way, as Parameters and as constants."""
    for as_parameters in (False, True) if case.shapes else (False,):
        # not tmp_path: pytest looks through the folders of all tests of this name before it makes one
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "case.xml")
            feeds = build(case, path, declared, as_parameters)
            report = irrun.check(path)
            assert not report.diagnostics, f"{case.id}, {declared}: {report.diagnostics}"
            outputs = irrun.run(path, feeds, strict=True).arrays
        assert len(outputs) == len(expected), case.id
        for got, want in zip(outputs, expected):
            compare(got, want, case)


def _expected(case: Case, oracle: Oracle) -> Sequence[np.ndarray]:
    """The outputs that the case names, otherwise those of OpenVINO: stored ones where there are any."""
    return _named(case) or answer(case) or ask(case, oracle)


def _named(case: Case) -> list[np.ndarray]:
    """The outputs that the case names, or none."""
    if case.expected is None:
        return []
    return [np.asarray(e) for e in (case.expected if isinstance(case.expected, tuple) else (case.expected,))]


def ask(case: Case, oracle: Oracle) -> list[np.ndarray]:
    """Let OpenVINO compute the outputs of a case, with every input that may vary declared static."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.xml")
        return oracle(path, build(case, path), case.how)


def same_as_openvino(oracle: Oracle, model: Any, *feeds: Sequence[np.ndarray]) -> None:
    """Serialise an ``openvino.Model``; it must check clean and give OpenVINO's outputs for each of ``feeds``."""
    import openvino as ov

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        ov.serialize(model, path)
        report = irrun.check(path)
        assert not report.diagnostics, report.diagnostics
        executable = irrun.compile(path, strict=True)
        for arrays in feeds:
            expected = oracle(path, arrays)
            for got, want in zip(executable(arrays).arrays, expected, strict=True):
                compare(got, want, Case("", "", ()))


@dataclass(frozen=True)
class FakeBody:
    """A body that infers the same Results from anything."""

    results: dict[int, Value]

    def declared(self, id: int) -> Value:
        return self.results[id]

    def __call__(self, inputs: Any) -> dict[int, Value]:
        return self.results


DECLARATIONS = ("static", "dims", "rank")
"""How a Parameter declares its shape: exactly, each dim as -1, or with unknown rank."""


def build(case: Case, path: Path, declared: str = "static", as_parameters: bool = False) -> list[np.ndarray]:
    """Let OpenVINO build the case's model and serialise it to ``path``; return the arrays for its Parameters.

    ``declared`` is one of ``DECLARATIONS``; ``as_parameters`` makes Parameters of shape inputs, too.
    """
    import openvino
    from openvino.utils.node_factory import NodeFactory

    ov: Any = openvino  # whose stubs do not accept the nodes that its own builders make
    ops = ov.opset1
    type, opset = case.op.split("-")
    factory = NodeFactory(f"opset{opset}")
    constants = set(case.constants) | (set() if as_parameters else set(case.shapes))
    nodes, parameters, feeds = [], [], []
    for position, array in enumerate(case.inputs):
        if position in constants:
            nodes.append(_constant(array).output(0))
            continue
        # a shape input keeps its length: it is the data whose shape is unknown
        exact = declared == "static" or position in case.shapes
        shape = ov.PartialShape(list(array.shape) if exact else [-1] * array.ndim)
        if declared == "rank" and not exact:
            shape = ov.PartialShape.dynamic()
        parameter = ops.parameter(shape, _type(array), name=f"in{position}")
        parameters.append(parameter)
        nodes.append(parameter.output(0))
        feeds.append(array)
    node = factory.create(type, nodes, case.attributes)
    results = [ops.result(node.output(i)) for i in range(node.get_output_size())]
    ov.serialize(ov.Model(results, parameters, "case"), path)
    return feeds


def _constant(array: np.ndarray) -> Any:
    import openvino

    ov: Any = openvino
    if array.size and array.dtype.isbuiltin != 2:
        return ov.opset1.constant(array)
    # no elements, or bf16 and others that numpy has from ml_dtypes
    return ov.op.Constant(_type(array), ov.Shape(array.shape), array.astype(np.float64).ravel().tolist())


def _type(array: np.ndarray) -> Any:
    import openvino as ov

    element_type = ElementType.of(array.dtype)
    assert element_type is not None
    return getattr(ov.Type, element_type.name)


# ---------------------------------------------------------------------------------------------
# laws and comparison


def check_laws(op: Op, arrays: Sequence[np.ndarray | None], outputs: int = 1) -> tuple[np.ndarray, ...]:
    """Run a kernel and hold it against its own shape rule; the outputs.

    The result lies within what is inferred from exact and from blurred inputs; inputs are unchanged.
    """
    before = [None if a is None else a.copy() for a in arrays]
    results = op.run(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    for a, b in zip(arrays, before):
        if a is not None and b is not None:
            assert a.tobytes() == b.tobytes(), "an input was changed"
    site = Site(outputs)
    exact = [None if a is None else Value.of(a) for a in arrays]
    shape_only = [None if v is None else Value(v.type, v.shape) for v in exact]
    ranks = [None if v is None else Value(v.type, PartialShape.of_rank(v.rank or 0)) for v in exact]
    nothing = [None if v is None else Value(v.type, PartialShape(None)) for v in exact]
    for inputs in (exact, shape_only, ranks, nothing):
        inferred = infer(op, site, inputs, {})
        assert len(inferred) == len(results)
        for value, array in zip(inferred, results):
            assert isinstance(array, (np.ndarray, np.generic)), type(array)
            fits = value.type is ElementType.of(array.dtype) or value.type.dtype == array.dtype  # u1 travels in u8
            assert fits, f"inferred {value.type}, got {array.dtype}"
            assert value.shape.fits(array.shape), f"inferred {value.shape}, got {array.shape}"
    return tuple(np.asarray(r) for r in results)


def kernel_of(op: Op, *inputs: Value | None, outputs: int = 1) -> Kernel:
    """The kernel of an operation for what is known of its inputs; ``outputs`` are read."""
    return requests.kernel(op, inputs, outputs)


def filled(kernel: Kernel, shape: Sequence[int], dtype: Any, *arrays: np.ndarray) -> np.ndarray:
    """What a kernel writes to ``out``: the tiles that it reports are disjoint and cover it, and nothing is added."""
    out, times = np.full(shape, 99, dtype), np.zeros(shape, int)
    found = np.empty(shape, dtype)

    def on_tile_ready(index: Index) -> None:
        assert len(index) == out.ndim
        found[index] = out[index]
        times[index] += 1
        out[index] = 77

    assert kernel.out == "tiles"
    assert kernel.call(*arrays, out=out, on_tile_ready=on_tile_ready) is out
    assert (times == 1).all()
    assert (out == 77).all(), "a tile was computed again after it had been reported"
    assert kernel.call(*arrays, out=out) is out
    np.testing.assert_array_equal(out, found)
    return found


def describe(value: Value, contents: bool) -> str:
    """A value as ``tensor`` reads it."""
    if not contents:
        return f"{value.type}{value.shape}"
    dims = value.dims()
    listed = "{" + ",".join(map(str, dims or ())) + "}" if value.data is not None else "{unknown}"
    return f"{value.type}{listed}" if value.rank == 1 else f"{value.type}{value.shape}{listed}"


TOLERANCE = {"f16": (2e-3, 1e-3), "bf16": (2e-2, 1e-2), "f32": (1e-5, 1e-5), "f64": (1e-5, 1e-5)}


def compare(got: np.ndarray, want: np.ndarray, case: Case) -> None:
    """Equal element type, shape and, within the type's tolerance, values."""
    assert got.dtype == want.dtype or want.dtype.kind in "UO"
    assert got.shape == want.shape
    element_type = ElementType.of(got.dtype)
    rtol, atol = TOLERANCE.get(element_type.name if element_type else "", (0.0, 0.0))
    rtol = rtol if case.rtol is None else case.rtol
    atol = atol if case.atol is None else case.atol
    _assert_close(got, want, rtol, atol)


def _assert_close(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> None:
    if atol == 0 and got.dtype.kind in "iubUO" and want.dtype.kind in "iubUO":
        np.testing.assert_array_equal(got, want)  # i64 exactly, and strings
    else:
        np.testing.assert_allclose(_comparable(got), _comparable(want), rtol=rtol, atol=atol)


def _comparable(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "iub" and array.dtype.itemsize <= 8 and array.dtype.isbuiltin == 1:
        return array
    return array if array.dtype.kind in "USO" else array.astype(np.float64)


# ---------------------------------------------------------------------------------------------
# data for tables


def arange(*shape: int, dtype: Any = np.float32, start: float = 0, step: float = 1) -> np.ndarray:
    """Distinct small numbers in C order."""
    count = int(np.prod(shape))
    return (np.arange(count) * step + start).astype(dtype).reshape(shape)


def random(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Numbers of either sign within what the type holds: floats in [-2, 2), integers in [-9, 9] or [0, 9]."""
    rng = np.random.default_rng((seed, *shape))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind in "iu":
        return np.asarray(rng.integers(-9 if kind == "i" else 0, 10, shape)).astype(dtype)
    return np.asarray(rng.random(shape) * 4 - 2).astype(dtype)


def i64(*numbers: int) -> np.ndarray:
    """A 1D shape tensor."""
    return np.array(numbers, np.int64)


def f32(data: Any) -> np.ndarray:
    """A tensor of f32, of nested lists or a number."""
    return np.array(data, np.float32)


NUMERIC = (np.float32, np.float16, np.int32, np.int64, np.uint8)
"""The element types that every numeric operation is tried with."""
