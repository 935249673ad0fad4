"""The rows of the tables of operations as cases of the conformance suite."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

import kit
import recorded
import tables
from conformance import carried
from conformance.one_layer import Writer, plain
from irrun.conformance.suite import Case, Step, tensor_record
from irrun.inference.layer import infer
from irrun.opdef import Op, Site, Value, resolve
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape, text_array
from oracle import Oracle

__all__ = ["carried_over", "cases", "declaration", "models", "name_of", "refused", "result_types"]

FORMULA = "computed in numpy or by hand in {file}, from the specification"
AGREE = "OpenVINO 2026.4.1 ({kernels}) and irrun give the same"

_MOST = 1 << 12
"""The most elements of an input of a model that is to refuse."""
_LEAST = {"f16": 2e-3, "bf16": 2e-2, "f8e4m3": 0.07, "f8e5m2": 0.13, "f32": 1e-5, "f64": 1e-6}
"""The least relative tolerance of a value from a formula: engines may add up in another order."""


def cases(path: Path) -> Iterator[tuple[tables.Row, Case]]:
    """Yield the cases of a test file of operations, each with its row."""
    file = f"tests/ops/{path.name}"
    rows = list(tables.rows(path))
    for row in rows:
        if isinstance(row, kit.Values):
            yield from ((row, case) for case in _calls(row, file))
        elif isinstance(row, kit.Refusal):
            yield from ((row, case) for case in refused(row))
    yield from models([row for row in rows if isinstance(row, kit.Case)], file)


def name_of(cls: type[Op]) -> str:
    return f"{cls.type}-{cls.since}"


def _class(op: str) -> type[Op]:
    type, opset = op.rsplit("-", 1)
    cls = resolve(type, int(opset))
    assert cls is not None
    return cls


def _tolerance(types: Iterable[str], rtol: float) -> float:
    return max([rtol, *(_LEAST[type] for type in types if type in _LEAST)])


# ---------------------------------------------------------------------------------------------
# calls of a kernel, from tables of kit.Values


def _calls(row: kit.Values, file: str) -> Iterator[Case]:
    cls = _class(row.op)
    given = list(row.inputs)
    while given and given[-1] is None:
        given.pop()
    if any(i is None for i in given):
        return  # an IR has no place for an input that is absent before another one
    expected = _outputs(row)
    op = kit.operation(row.op, row.attributes)
    writer, refs, values, feeds = Writer(), [], [], []
    for position, array in enumerate(map(np.asarray, given)):
        value = Value.of(array)
        if _is_setting(cls, position, array):
            refs.append(writer.constant(value))
            values.append(value)
        else:
            known = Value(value.type, value.shape)
            refs.append(writer.parameter(known, position, array))
            feeds.append(array)
            values.append(known)
    outputs = infer(op, Site(len(expected)), [*values, *[None] * (len(row.inputs) - len(given))], {})
    attributes = {key: kit.attribute_text(value) for key, value in row.attributes.items()}
    xml = writer.layer(cls, attributes, refs, outputs)
    wanted = [tensor_record(e, v.type.name) for e, v in zip(expected, outputs)]
    types = _types([*values, *outputs])
    yield Case(
        f"{name_of(cls)}/call/{row.id}", name_of(cls), "static", "values", FORMULA.format(file=file), xml,
        bytes(writer.net.bin), types=types, steps=[Step([tensor_record(a) for a in feeds], wanted)],
        rtol=_tolerance([v.type.name for v in outputs], row.rtol),
    )  # fmt: skip


def _is_setting(cls: type[Op], position: int, array: np.ndarray) -> bool:
    """Whether an input is a constant in most models: integers of another type variable than the first input."""
    if not position or array.dtype.kind not in "iu":
        return False
    ports = cls.inputs
    return ports[min(position, len(ports) - 1)].type != ports[0].type


def _types(values: Iterable[Value]) -> list[str]:
    return sorted({value.type.name for value in values})


# ---------------------------------------------------------------------------------------------
# models that OpenVINO builds, from tables of kit.Case


def models(rows: Sequence[kit.Case], file: str) -> Iterator[tuple[kit.Case, Case]]:
    """Yield each row with static declarations, and the first of each form with dynamic ones, as ``kit`` tests them."""
    seen: set[str] = set()
    for row in rows:
        declarations = kit.DECLARATIONS[:1] if row.form in seen else kit.DECLARATIONS
        seen.add(row.form)
        for declared in declarations:
            for fed in (False, True) if row.shapes else (False,):
                yield row, _model(row, file, declared, fed=fed)


@cache
def _oracle() -> Oracle:
    return Oracle()


def _model(row: kit.Case, file: str, declared: str, *, fed: bool) -> Case:
    cls = _class(row.op)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.xml")
        feeds = kit.build(row, path, declared, fed)
        xml, data = plain(path.read_text("utf-8")), path.with_suffix(".bin").read_bytes()
        kind = "rank" if _has_unknown_rank(path) else declared
    expected, source = _answers(row, file)
    outputs = [tensor_record(e, type) for e, type in zip(expected, result_types(xml), strict=True)]
    inputs = [tensor_record(feed) for feed in feeds]
    tolerances = [kit.TOLERANCE.get(record["type"], (0.0, 0.0)) for record in outputs]
    return Case(
        f"{name_of(cls)}/model/{row.id}/{declared}{'-fed' if fed else ''}", name_of(cls), kind, "values", source,
        xml, data, types=sorted({_type(i) for i in row.inputs} | {o["type"] for o in outputs}),
        steps=[Step(inputs, outputs)],
        rtol=max(t[0] for t in tolerances) if row.rtol is None else row.rtol,
        atol=max(t[1] for t in tolerances) if row.atol is None else row.atol,
    )  # fmt: skip


def _has_unknown_rank(path: Path) -> bool:
    """Return whether OpenVINO infers no rank for a tensor of a model."""
    import openvino as ov

    model = ov.Core().read_model(path)
    return any(output.partial_shape.rank.is_dynamic for op in model.get_ops() for output in op.outputs())


def _answers(row: kit.Case, file: str) -> tuple[list[np.ndarray], str]:
    """Return the outputs of a row, and where they come from."""
    if row.expected is None:
        kernels = "CPU" if row.how == "cpu" else "reference kernels"
        return recorded.answer(row) or kit.ask(row, _oracle()), AGREE.format(kernels=kernels)
    return _outputs(row), FORMULA.format(file=file)


def _outputs(row: kit.Case | kit.Values) -> list[np.ndarray]:
    return [np.asarray(e) for e in (row.expected if isinstance(row.expected, tuple) else (row.expected,))]


def _type(array: np.ndarray) -> str:
    element_type = ElementType.of(array.dtype)
    assert element_type is not None
    return element_type.name


def result_types(xml: str) -> list[str]:
    """Return the element types of the Results of an IR."""
    results = re.findall(r'<layer[^>]*type="Result".*?<port[^>]*precision="(\w+)"', xml, re.DOTALL)
    return [_PRECISIONS[precision] for precision in results]


_PRECISIONS = {type.port_name: name for name, type in ELEMENT_TYPES.items()}


# ---------------------------------------------------------------------------------------------
# rows in further element types


def carried_over(path: Path) -> Iterator[Case]:
    """Yield cases of the element types that no row of a test file of operations has."""
    found: list[carried.Row] = []
    covered: set[tuple[str, str, str]] = set()
    file = f"tests/ops/{path.name}"
    for row in tables.rows(path):
        if not isinstance(row, kit.Case | kit.Values):
            continue
        cls = _class(row.op)
        inputs = [None if i is None else np.asarray(i) for i in row.inputs]
        ports = cls.inputs or ()
        for position, array in enumerate(inputs):
            if array is not None:
                covered.add((name_of(cls), ports[min(position, len(ports) - 1)].type, _type(array)))
        try:
            op = kit.operation(row.op, row.attributes)
        except (KeyError, TypeError, ValueError):
            continue  # OpenVINO's Python API has other names for these attributes
        if isinstance(row, kit.Case):
            outputs, source = _answers(row, file)
            known = [kit.TOLERANCE.get(_type(array), (0.0, 0.0)) for array in outputs]
            atol = max(t[1] for t in known) if row.atol is None else row.atol
        else:
            outputs, source, atol = _outputs(row), FORMULA.format(file=file), 0.0
        rtol = _tolerance([_type(array) for array in outputs], row.rtol or 0.0)
        found.append(carried.Row(cls, op, row.id, row.attributes, inputs, outputs, source, rtol, atol))
    yield from carried.cases(found, covered)


# ---------------------------------------------------------------------------------------------
# models that an operation refuses, from tables of kit.Refusal


def refused(row: kit.Refusal) -> Iterator[Case]:
    cls = _class(row.op)
    given = list(row.inputs)
    while given and given[-1] is None:
        given.pop()
    if None in given:
        return
    writer, refs, values = Writer(), [], [kit.tensor(text or "") for text in given]
    for position, value in enumerate(values):
        if value.data is None or value.type.kind == "string":
            refs.append(writer.parameter(value, position, _filler(value)))
        elif value.data.dtype == object:
            refs.append(
                writer.partly(value, position) if value.rank == 1 else writer.parameter(value, position, _filler(value))
            )
        else:
            refs.append(writer.constant(value))
    nothing = Value(values[0].type if values else ELEMENT_TYPES["f32"], PartialShape(None))
    attributes = {key: kit.attribute_text(value) for key, value in row.attributes.items()}
    xml = writer.layer(cls, attributes, refs, [nothing] * row.outputs)
    yield Case(
        f"{name_of(cls)}/refusal/{row.id}", name_of(cls), declaration([value.shape for value in values]), "refuse", "the specification", xml,
        bytes(writer.net.bin), steps=_any_step(writer), clause=row.id.split("-")[0].upper(), types=_types(values),
    )  # fmt: skip


def _filler(value: Value) -> np.ndarray | None:
    """Return an array that fits a value, or None if its rank is unknown. The specification refuses any."""
    if value.shape.dims is None:
        return None
    shape = [max(dim.lo, min(1, dim.hi)) for dim in value.shape]
    return (
        text_array(["a"] * math.prod(shape), tuple(shape))
        if value.type.kind == "string"
        else np.ones(shape, value.type.dtype)
    )


def _any_step(writer: Writer) -> list[Step]:
    """Return an inference of a model that is to refuse, unless it has inputs of unknown rank, or arrays that are too large."""
    feeds = [feed for feed in writer.feeds if feed is not None and feed.size <= _MOST]
    if len(feeds) < len(writer.feeds):
        return []
    return [Step([tensor_record(feed, type) for feed, type in zip(feeds, writer.types)])]


def declaration(shapes: Sequence[PartialShape]) -> str:
    """Return how inputs of these shapes are declared."""
    if any(shape.rank is None for shape in shapes):
        return "rank"
    return "static" if all(shape.static is not None for shape in shapes) else "dims"
