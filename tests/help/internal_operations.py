"""Shared by the tests of internal operations: make an operation, run it, and hold its shape rule against its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import irrun
from irrun.diagnostics import Diagnostic
from irrun.inference.layer import infer
from irrun.opdef import Op, Request, Site, Value, resolve
from irrun.types import PartialShape
from nets import Net, Output

__all__ = ["found", "i32", "made", "ran", "written"]


def i32(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def made(type: str, inputs: int, attributes: dict[str, Any]) -> Op:
    """Return an operation as a layer with this number of inputs has it, with attributes as Python values."""
    cls = resolve(type, None, "extension")
    assert cls is not None
    return cls(cls.fitted(inputs, attributes), **attributes)


def ran(type: str, arrays: Sequence[np.ndarray], **attributes: Any) -> tuple[np.ndarray, ...]:
    """Return the outputs of a layer and the inputs that it updates.

    The outputs lie within what the shape rule gives for exact inputs, for shapes, for ranks and for nothing at all. The
    inputs stay as they are, and the new arrays of updated inputs have the types and shapes of the inputs.
    """
    op = made(type, len(arrays), attributes)
    before = [array.copy() for array in arrays]
    outputs = op.run(*arrays)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    assert all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(arrays, before)), "an input changed"
    exact = [Value.of(array) for array in arrays]
    shapes = [Value(v.type, v.shape) for v in exact]
    ranks = [Value(v.type, PartialShape.of_rank(v.rank or 0)) for v in exact]
    unknown = [Value(v.type, PartialShape(None)) for v in exact]
    count = len(outputs) - len(op.updates)
    for inputs in (exact, shapes, ranks, unknown):
        inferred = infer(op, Site(count), inputs, {}, contents=False)
        assert len(inferred) == count
        for value, array in zip(inferred, outputs):
            assert value.fits(array), f"inferred {value.type} {value.shape}, got {array.dtype} {array.shape}"
    changed = op.prepare(Request(tuple(shapes), outputs=count))
    if op.updates and changed is not None:  # a kernel may write into caches, and gives the same
        for array, expected in zip(changed.call(*before), outputs):
            np.testing.assert_array_equal(array, expected)
    names = [port.name for port in op.inputs]
    for name, array in zip(op.updates, outputs[count:]):
        own = arrays[names.index(name)]
        assert (array.dtype, array.shape) == (own.dtype, own.shape)
    return outputs


def written(
    folder: Path, type: str, inputs: Sequence[Value], attributes: Mapping[str, Any], outputs: Sequence[Value]
) -> Path:
    """Write a file with a layer "tested": known inputs are constants, the others Parameters of their shapes.

    ``attributes`` are Python values, or the text of the file. ``outputs`` are what the layer declares.
    """
    net = Net()
    refs = [
        net.parameter(value.type.name, ",".join(map(str, value.shape)))
        if value.exact is None
        else net.const(value.type.name, ",".join(map(str, value.shape)), value.exact.tobytes())
        for value in inputs
    ]
    texts: dict[str, Any] = {name: _text(value) for name, value in attributes.items()}
    ports = [_port(value) for value in outputs]
    net.result(net.add(type, refs, ports, name="tested", opset="extension", **texts))
    return net.save(folder)


def found(path: Path) -> list[Diagnostic]:
    """Return what a check finds in a file that ``written`` has made. Each finding names the layer and its line."""
    diagnostics = list(irrun.check(path).diagnostics)
    lines = path.read_text().splitlines()
    first = next(number for number, text in enumerate(lines, 1) if 'name="tested"' in text)
    last = next(number for number, text in enumerate(lines[first:], first + 1) if "</layer>" in text)
    for finding in diagnostics:
        assert finding.layer == "tested", finding
        assert finding.span is not None
        assert first <= finding.span.line <= last, finding
    return diagnostics


def _text(value: Any) -> str:
    """Return the value of an attribute as a file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _port(value: Value) -> Output:
    """Return a port that declares a value."""
    dims = ",".join(str(dim.value) if dim.value is not None else "-1" for dim in value.shape)
    names = {"f32": "FP32", "f16": "FP16", "f64": "FP64", "boolean": "BOOL"}
    return names.get(value.type.name, value.type.name.upper()), dims
