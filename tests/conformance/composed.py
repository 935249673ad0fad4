"""Cases of several layers: bodies, state, constants and inputs of each element type. Expected values are by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import irrun
from conformance.rows import declaration, refused
from irrun import build as b
from irrun.conformance.suite import Case, Step, tensor_record
from irrun.ir.write import to_xml
from irrun.model.weights import pack
from irrun.types import ELEMENT_TYPES, NF4, ElementType, text_array
from kit import Refusal
from nets import Net

__all__ = ["cases"]

SOURCE = "by hand in tests/conformance/composed.py, from the specification"
X = np.array([1, 2], np.float32)


def cases() -> Iterator[Case]:
    """Yield the cases of operations that have no tables of rows."""
    yield from _conditions()
    yield from _loops()
    yield from _iterators()
    yield from _state()
    yield from _passed_on()
    yield from _passed_on_by_bodies_and_variables()
    yield from _constants()
    yield from _compressed_weights()
    yield from _binary_convolutions()
    yield from _further_refusals()


def _step(inputs: Sequence[Any], outputs: Sequence[Any], *, reset: bool = False) -> Step:
    return Step([tensor_record(np.asarray(i)) for i in inputs], [tensor_record(np.asarray(o)) for o in outputs], reset)


def _of(
    operation: str, id: str, model: irrun.Model | Net, steps: Sequence[Step] = (), *, changes: Sequence[str] = (),
    declared: str = "static",
) -> Case:  # fmt: skip
    """Return the case of a model. With ``changes``, texts and their replacements in turn, it is one to refuse."""
    if isinstance(model, Net):
        xml, data = model.text, bytes(model.bin)
    else:
        xml, data = to_xml(model).decode(), b"" if model.weights is None else model.weights.data.tobytes()
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in xml, (id, old)
        xml = xml.replace(old, new)
    clause = id.split("-")[0].upper() if not steps else ""
    table = "refusal" if clause else "composed"
    types = {record["type"] for step in steps for record in [*step.inputs, *step.outputs]}
    return Case(
        f"{operation}/{table}/{id}", operation, declared, "refuse" if clause else "values", SOURCE, xml, data,
        clause=clause, types=sorted(types), steps=steps, rtol=0.0 if clause else 1e-6,
    )  # fmt: skip


def _conditions() -> Iterator[Case]:
    for dims in ([2], ["?"], "..."):
        cond, x = b.parameter([], "boolean", name="cond"), b.parameter(dims, name="x")
        node = b.If(cond, x, then=lambda a: b.Add(a, [1.0]), otherwise=lambda a: b.Multiply(a, [3.0]), name="if")
        steps = [_step([True, X], [X + 1]), _step([False, X], [X * 3])]
        declared = declaration([x.shape])
        yield _of("If-8", f"two-branches-{declared}", b.model(node), steps, declared=declared)
    cond, x = b.parameter([], "boolean", name="cond"), b.parameter([2], name="x")
    node = b.If(cond, x, then=lambda a: b.Concat(a, a, axis=0), otherwise=lambda a: b.ReLU(a), name="if")
    yield _of(
        "If-8", "branches-of-two-shapes", b.model(node),
        [_step([True, X], [np.array([1, 2, 1, 2], np.float32)]), _step([False, -X], [np.zeros(2, np.float32)])],
    )  # fmt: skip
    node = b.If(cond, x, then=lambda a: b.ReLU(a), otherwise=lambda a: b.Abs(a), name="if")
    model = b.model(node)
    parameter = '<data shape="" element_type="boolean" />'
    yield _of("If-8", "c1-two-conditions", model, changes=[parameter, parameter.replace('""', '"2"')])
    node = b.If(
        cond, x, then=lambda a: b.Convert(a, destination_type="f32"),
        otherwise=lambda a: b.Negative(b.Convert(a, destination_type="f32")), name="if",
    )  # fmt: skip
    text = to_xml(b.model(node)).decode()
    old = text[text.index('destination_type="f32"', text.index("<else_body>")) : text.index("</else_body>")]
    new = old.replace('"f32"', '"i32"').replace("FP32", "I32")
    yield _of("If-8", "c2-types-differ", b.model(node), changes=[old, new])


def _loop(trips: Any, condition: Any, *inputs: Any, body: Callable[..., Any]) -> irrun.Model:
    return b.model(b.Loop(trips, condition, *inputs, body=body, name="loop"))


def _loops() -> Iterator[Case]:
    for dims in ([2], ["?"], "..."):
        x = b.parameter(dims, name="x")
        model = _loop(3, True, x, body=lambda i, a: (True, b.Multiply(a, [2.0])))
        declared = declaration([x.shape])
        yield _of("Loop-5", f"counted-{declared}", model, [_step([X], [X * 8])], declared=declared)
    x, trips = b.parameter([2], name="x"), b.parameter([], "i64", name="trips")
    model = _loop(trips, True, x, body=lambda i, a: (True, b.Add(a, b.Convert(i, destination_type="f32"))))
    numbers = [(np.int64(4), 6), (np.int64(1), 0), (np.int64(0), 0)]
    yield _of("Loop-5", "trip-count-input", model, [_step([X, n], [X + s]) for n, s in numbers])
    model = _loop(
        -1, True, x, body=lambda i, a: (b.Less(b.ReduceMax(b.Add(a, [1.0]), [0], keep_dims=False), 5.0), b.Add(a, [1.0]))
    )  # fmt: skip
    yield _of("Loop-5", "until-condition", model, [_step([X], [X + 3]), _step([X + 9], [X + 10])])
    rows = b.parameter([3, 2], name="x")
    table = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    model = _loop(
        3, True, b.sliced(rows, axis=0), np.zeros((1, 2), np.float32),
        body=lambda i, row, total: (True, b.Add(row, total), b.concatenated(b.Add(row, total), axis=0)),
    )  # fmt: skip
    sums = np.cumsum(table, 0, dtype=np.float32)
    yield _of("Loop-5", "sliced-and-concatenated", model, [_step([table], [sums[2:], sums])])
    sliced = 'axis="0" start="0" end="-1" stride="1" part_size="1"'
    yield _of("Loop-5", "c1-two-trip-counts", _loop(trips, True, x, body=lambda i, a: (True, b.ReLU(a))),
              changes=['<data shape="" element_type="i64" />', '<data shape="2" element_type="i64" />'])  # fmt: skip
    yield _of("Loop-5", "c2-axis", model, changes=[sliced, sliced.replace('axis="0"', 'axis="2"')])
    longer = b.parameter([4, 2], name="y")
    two = _loop(
        -1, True, b.sliced(rows, axis=0), b.sliced(longer, axis=0, end=-2),
        body=lambda i, p, q: (True, b.concatenated(b.Add(p, q), axis=0)),
    )  # fmt: skip
    yield _of("Loop-5", "c3-slices-differ", two, changes=['end="-2"', 'end="-1"'])
    line = next(
        line
        for line in to_xml(model).decode().splitlines()
        if "<output external_port_id" in line and "purpose" not in line
    )
    yield _of("Loop-5", "c4-output-not-mapped", model, changes=[line, ""])
    yield _of("Loop-5", "c5-stride-0", model, changes=[sliced, sliced.replace('stride="1"', 'stride="0"')])


def _iterators() -> Iterator[Case]:
    for dims in ([6], ["?"], "..."):
        x = b.parameter(dims, name="x")
        declared = declaration([x.shape])
        node = b.TensorIterator(
            b.sliced(x, axis=0, part_size=2, stride=2), np.zeros(2, np.float32), name="ti",
            body=lambda part, total: [b.Add(part, total), b.concatenated(b.Add(part, total), axis=0)],
        )  # fmt: skip
        numbers = np.arange(6, dtype=np.float32)
        sums = np.cumsum(numbers.reshape(3, 2), 0, dtype=np.float32)
        steps = [_step([numbers], [sums[2], sums.reshape(-1)])]
        yield _of("TensorIterator-1", f"running-sum-{declared}", b.model(node), steps, declared=declared)
    x = b.parameter([6], name="x")
    node = b.TensorIterator(
        b.sliced(x, axis=0, start=-1, end=0, stride=-1), name="ti", body=lambda part: [b.concatenated(part, axis=0)]
    )
    numbers = np.arange(6, dtype=np.float32)
    yield _of("TensorIterator-1", "backwards", b.model(node), [_step([numbers], [numbers[::-1]])])
    y = b.parameter([8], name="y")
    two = b.model(
        b.TensorIterator(
            b.sliced(x, axis=0),
            b.sliced(y, axis=0, end=-3),
            name="ti",
            body=lambda p, q: [b.concatenated(b.Add(p, q), axis=0)],
        )
    )
    entry = 'axis="0" start="0" end="-3" stride="1" part_size="1"'
    line = next(line for line in to_xml(two).decode().splitlines() if "<output external_port_id" in line)
    for id, old, new in (
        ("c2-axis", entry, entry.replace('axis="0"', 'axis="1"')),
        ("c3-slices-differ", 'end="-3"', 'end="-1"'),
        ("c4-output-not-mapped", line, ""),
        ("c5-stride-0", entry, entry.replace('stride="1"', 'stride="0"')),
    ):
        yield _of("TensorIterator-1", id, two, changes=[old, new])


def _state() -> Iterator[Case]:
    """A variable that adds up the inputs, from 10 and 20 on."""
    steps = [
        _step([X], [np.array([11, 22], np.float32)]),
        _step([X], [np.array([12, 24], np.float32)]),
        _step([-X], [np.array([11, 22], np.float32)]),
        _step([X], [np.array([11, 22], np.float32)], reset=True),
    ]
    for version in (3, 6):
        for operation in ("ReadValue", "Assign"):
            yield _of(f"{operation}-{version}", "sum-in-a-variable", _sum(version), steps)
    declared = 'variable_type="f32" variable_shape="2"'
    yield _of("ReadValue-6", "c1-shape", _sum(6), changes=[declared, declared.replace('"2"', '"3"')])
    yield _of("ReadValue-6", "c1-type", _sum(6), changes=[declared, declared.replace("f32", "i64")])


def _sum(version: int) -> Net:
    net = Net()
    x, start = net.parameter("f32", "2", name="x"), net.const("f32", "2", np.array([10, 20], np.float32).tobytes())
    attributes: dict[str, Any] = {"variable_type": "f32", "variable_shape": "2"} if version == 6 else {}
    read = net.add("ReadValue", [start], [("FP32", "2")], opset=f"opset{version}", variable_id="sum", **attributes)
    total = net.add("Add", [x, read], [("FP32", "2")])
    net.add("Assign", [total], opset=f"opset{version}", variable_id="sum")
    net.result(total)
    return net


def _sample(name: str) -> np.ndarray:
    """Return four values of an element type, its extremes among them."""
    type = ELEMENT_TYPES[name]
    if name == "string":
        return text_array(["a", "", "übung", "line\nbreak"], (4,))
    if name == "boolean":
        return np.array([True, False, False, True])
    if name == "f8e8m0":
        return np.array([1.0, 2.0**-127, 0.5, 2.0**127]).astype(type.dtype)
    if name == "nf4":
        return NF4[[15, 0, 7, 3]]
    if type.kind == "float":
        return np.array([1.0, -0.5, 0.0, 2.0]).astype(type.dtype)
    bits = type.bits - (type.kind == "int")
    low = -(2**bits) if type.kind == "int" else 0
    return np.array([low, 2**bits - 1, 0, 1], object).astype(type.dtype)


def _passed_on() -> Iterator[Case]:
    """An input that is an output, of each element type that arrays have, however it is declared."""
    for name, type in ELEMENT_TYPES.items():
        if type.kind == "dynamic" or type.is_storage:
            continue
        for shape in ("2,2", "?,?", "..."):
            for contents in (_sample(name).reshape(2, 2), _sample(name)[:0].reshape(0, 3)):
                if shape == "2,2" and not contents.size:
                    continue
                net = Net()
                x = net.parameter(name, shape, name="x")
                net.result(x)
                declared = {"2,2": "static", "?,?": "dims", "...": "rank"}[shape]
                id, steps = f"{name}-{declared}{'' if contents.size else '-empty'}", [_step([contents], [contents])]
                for operation in ("Parameter-1", "Result-1") if shape == "2,2" else ("Parameter-1",):
                    yield _of(operation, id, net, steps, declared=declared)


def _passed_on_by_bodies_and_variables() -> Iterator[Case]:
    """Elements of each type through If, Loop, TensorIterator and a variable, none of which changes them."""
    for name, type in ELEMENT_TYPES.items():
        if type.kind == "dynamic" or type.is_storage:
            continue
        cond, x = b.parameter([], "boolean", name="cond"), b.parameter([4], name, name="x")
        sample = _sample(name)
        twice = np.concatenate([sample, sample])
        node = b.If(
            cond,
            x,
            then=lambda a: b.Concat(a, a, axis=0),
            otherwise=lambda a: b.Reshape(a, [4], special_zero=False),
            name="if",
        )
        steps = [_step([True, sample], [twice]), _step([False, sample], [sample])]
        yield _of("If-8", f"passes-on-{name}", b.model(node), steps)
        model = _loop(2, True, x, body=lambda i, a: (True, b.concatenated(a, axis=0)))
        yield _of("Loop-5", f"passes-on-{name}", model, [_step([sample], [twice])])
        node = b.TensorIterator(
            b.sliced(x, axis=0, start=-1, end=0, stride=-1), name="ti", body=lambda part: [b.concatenated(part, axis=0)]
        )
        yield _of("TensorIterator-1", f"passes-on-{name}", b.model(node), [_step([sample], [sample[::-1]])])
        for version in (3, 6):
            for operation in ("ReadValue", "Assign"):
                steps = [
                    _step([sample], [sample[::-1]]), _step([sample[:1].repeat(4)], [sample]),
                    _step([sample], [sample[::-1]], reset=True),
                ]  # fmt: skip
                yield _of(f"{operation}-{version}", f"passes-on-{name}", _delay(version, type), steps)


def _delay(version: int, type: ElementType) -> Net:
    """Return a model that gives the input of the run before, at first the sample in reverse."""
    net, name, port = Net(), type.name, (type.port_name, "4")
    x = net.parameter(name, "4", name="x")
    start = net.const(name, "4", pack(_sample(name)[::-1], type))
    attributes: dict[str, Any] = {"variable_type": name, "variable_shape": "4"} if version == 6 else {}
    read = net.add("ReadValue", [start], [port], opset=f"opset{version}", variable_id="last", **attributes)
    net.add("Assign", [x], opset=f"opset{version}", variable_id="last")
    net.result(read)
    return net


def _constants() -> Iterator[Case]:
    for name, type in ELEMENT_TYPES.items():
        if type.kind == "dynamic":
            continue
        net = Net()
        const = net.const(name, "2,2", pack(_sample(name), type))
        if not type.is_storage:
            net.result(const)
            yield _of("Const-1", name, net, [_step([], [_sample(name).reshape(2, 2)])])
            net = Net()
            const = net.const(name, "2,2", pack(_sample(name), type))
        if type.kind != "string":
            net.result(net.add("Convert", [const], [("FP64", "2,2")], destination_type="f64"))
            yield _of(
                "Const-1", f"{name}-converted", net, [_step([], [_sample(name).reshape(2, 2).astype(np.float64)])]
            )
    for id, old, new in (
        ("c1-beyond-the-bin", 'offset="0"', 'offset="8"'),
        ("c1-negative-offset", 'offset="0"', 'offset="-4"'),
        ("c2-size", 'size="16"', 'size="8"'),
        ("c4-unknown-dim", 'shape="2,2"', 'shape="2,?"'),
        ("c4-unknown-rank", 'shape="2,2"', 'shape="..."'),
    ):
        net = Net()
        net.result(net.const("f32", "2,2", np.ones(4, np.float32).tobytes()))
        yield _of("Const-1", id, net, changes=[old, new])
    net = Net()
    net.result(net.const("string", "2", np.array([2, 0, 3, 2], np.int32).tobytes() + b"abc"))
    yield _of("Const-1", "c3-descending-offsets", net, changes=["<net", "<net"])


_SCALES = np.array([0.5, 2, 0.25, 1], np.float32).reshape(4, 1)
"""Scales of four rows of weights: powers of two, which each type of scales holds."""


def _compressed_weights() -> Iterator[Case]:
    """Weights in a narrow type, which a model converts, shifts by a zero point, and scales, before it uses them.

    All numbers are sums of a few powers of two, so that f32 holds each of them and each sum.
    """
    x, rows = np.array([[1, -2, 0.5, 4, -1, 0.25, 8, 2]], np.float32), np.array([3, 0, 2], np.int64)
    for name, type in ELEMENT_TYPES.items():
        if type.kind not in ("float", "int", "uint") or type.bits > 8:
            continue
        codes = _codes(type)
        for scales in ("f32", "f16", "f8e8m0") if name in ("f4e2m1", "f8e4m3", "f8e5m2") else ("f32", "f16"):
            shifts = ("", "zero-point-") if type.is_integer and name != "u1" and scales == "f16" else ("",)
            for shift in shifts:
                zero = np.full((4, 1), 1).astype(type.dtype)
                weights = (codes.astype(np.float64) - (zero.astype(np.float64) if shift else 0)) * _SCALES
                for operation, expected in (("MatMul-1", x @ weights.T), ("Gather-8", weights[rows])):
                    net = Net()
                    port = (ELEMENT_TYPES[scales].port_name if scales != "f8e8m0" else "FP32", "4,8")
                    column = port[0], "4,1"
                    to = "f16" if scales == "f16" else "f32"
                    full = net.add("Convert", [net.const(name, "4,8", pack(codes, type))], [port], destination_type=to)
                    if shift:
                        point = net.const(name, "4,1", pack(zero, type))
                        full = net.add(
                            "Subtract", [full, net.add("Convert", [point], [column], destination_type=to)], [port]
                        )
                    scale = net.const(scales, "4,1", pack(_SCALES, ELEMENT_TYPES[scales]))
                    if scales == "f8e8m0":
                        scale = net.add("Convert", [scale], [column], destination_type=to)
                    full = net.add("Multiply", [full, scale], [port])
                    if to == "f16":
                        full = net.add("Convert", [full], [("FP32", "4,8")], destination_type="f32")
                    if operation == "MatMul-1":
                        last = net.add(
                            "MatMul", [net.parameter("f32", "1,8", name="x"), full], [("FP32", "1,4")],
                            transpose_a="false", transpose_b="true",
                        )  # fmt: skip
                    else:
                        axis = net.const("i64", "", np.int64(0).tobytes())
                        indices = net.parameter("i64", "3", name="rows")
                        last = net.add(
                            "Gather", [full, indices, axis], [("FP32", "3,8")], opset="opset8", batch_dims="0"
                        )
                    net.result(last)
                    feeds = [x] if operation == "MatMul-1" else [rows]
                    case = _of(
                        operation, f"weights-{shift}{name}-{scales}", net, [_step(feeds, [expected.astype(np.float32)])]
                    )
                    yield replace(case, types=sorted({*case.types, name, scales}))


def _codes(type: ElementType) -> np.ndarray:
    """Return weights [4,8] of a narrow type: numbers of few bits, of both signs where the type has them."""
    if type.name == "nf4":
        return NF4[[0, 7, 15]][np.arange(32) % 3].reshape(4, 8)
    if type.name == "f8e8m0":
        return (2.0 ** (np.arange(32) % 5 - 2)).astype(type.dtype).reshape(4, 8)
    numbers = np.arange(32) * 5 % min(2**type.bits, 16)
    if type.kind == "uint":
        return numbers.astype(type.dtype).reshape(4, 8)
    if type.kind == "int":
        return (numbers - 8).astype(type.dtype).reshape(4, 8)
    return (
        np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6, 0])[numbers]
        .astype(type.dtype)
        .reshape(4, 8)
    )


def _binary_convolutions() -> Iterator[Case]:
    """Filters of one byte that reads the same in either order of its bits."""
    data = np.array([1, 0, 0, 0, 0, 0, 0, 1], np.float32)
    attributes: dict[str, Any] = {
        "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1", "auto_pad": "explicit",
        "mode": "xnor-popcount", "pad_value": "0",
    }  # fmt: skip
    for shape in ("1,1,1,8", "?,?,?,?", "..."):
        net = Net()
        x = net.parameter("f32", shape, name="x")
        filters = net.const("u1", "1,1,1,8", b"\x81")
        static = shape == "1,1,1,8"
        port = ("FP32", "1,1,1,1" if static else "-1,1,-1,-1")
        net.result(net.add("BinaryConvolution", [x, filters], [port], **attributes))
        steps = [_step([n.reshape(1, 1, 1, 8)], [np.full((1, 1, 1, 1), agree, np.float32)])
                 for n, agree in ((data, 8), (1 - data, -8), (0 * data, 4))]  # fmt: skip
        declared = "static" if static else "rank" if shape == "..." else "dims"
        yield _of("BinaryConvolution-1", f"bits-{declared}", net, steps, declared=declared)
    for name in (
        "bf16",
        "f16",
        "f64",
        "f8e4m3",
        "f8e5m2",
        "i4",
        "i8",
        "i16",
        "i32",
        "i64",
        "u4",
        "u8",
        "u16",
        "u32",
        "u64",
    ):
        type = ELEMENT_TYPES[name]
        net = Net()
        filters = net.const("u1", "1,1,1,8", b"\x81")
        net.result(
            net.add(
                "BinaryConvolution", [net.parameter(name, "1,1,1,8", name="x"), filters], [(type.port_name, "1,1,1,1")],
                **attributes,
            )
        )  # fmt: skip
        held = [(n, agree) for n, agree in ((data, 8), (1 - data, -8), (0 * data, 4)) if _holds(type, agree)]
        steps = [_step([n.astype(type.dtype).reshape(1, 1, 1, 8)], [np.full((1, 1, 1, 1), agree).astype(type.dtype)])
                 for n, agree in held]  # fmt: skip
        yield _of("BinaryConvolution-1", f"bits-{name}", net, steps)


def _holds(type: ElementType, number: int) -> bool:
    """Return whether an element type holds an integer."""
    return int(np.array(number).astype(type.dtype)) == number


def _further_refusals() -> Iterator[Case]:
    """Clauses whose rows in the tables of operations have no IR: optional inputs are left out before others."""
    heads = ["f32[2,3,4]", "f32[2,5,4]", "f32[2,5,6]", "f32[3,5]"]
    attention = "ScaledDotProductAttention-13"
    yield from refused(Refusal("c5-two-scales", attention, [*heads, "f32[2]"], {"causal": False}))
    yield from refused(Refusal("c6-sink-rank", attention, [*heads, "f32[]", "f32[1,1]"], {"causal": False}))
    higher = ["f32[2,3,4]", "f32[1,2,5,4]", "f32[1,2,5,6]", "f32[3,5]", "f32[]", "f32[2,1,1]"]
    yield from refused(Refusal("c6-sink-rank-of-keys", attention, higher, {"causal": False}))
    versions: list[tuple[str, dict[str, Any]]] = [("1", {}), ("4", {"output_type": "f32"})]
    for version, attributes in versions:
        for position, name in enumerate(("start", "stop", "step")):
            net = Net()
            numbers = [np.float32(n) for n in (1, 2, 1)]
            numbers[position] = np.float32(np.inf)
            ports = [net.const("f32", "", number.tobytes()) for number in numbers]
            layer = net.add("Range", ports, [("FP32", "-1")], opset=f"opset{version}", **attributes)
            net.result(layer)
            yield _of(f"Range-{version}", f"c3-{name}", net, changes=["<net", "<net"])
