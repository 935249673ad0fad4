"""FakeQuantize and compressed weights, as QuantizeLinear and DequantizeLinear where these compute the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from irrun.export.call import Call
from irrun.export.graph import Constant
from irrun.export.registry import converts
from irrun.inference.bind import bind
from irrun.inference.compressed import Compressed
from irrun.model import Model
from irrun.opdef import Value
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape

__all__ = ["dequantized"]

_GRID: Final = 1e-5
"""How far the zero point of a FakeQuantize may be from an integer, in steps: within the rounding of f32."""


@converts("FakeQuantize", computes="f32 f64")
def fake_quantize(call: Call) -> str:
    """QuantizeLinear and DequantizeLinear, or arithmetic."""
    limits = [call.value(position).exact for position in range(1, 5)]
    known = [limit for limit in limits if limit is not None]
    if len(known) == 4 and call.op.auto_broadcast == "numpy" and call.type.name == "f32" and call.value(0).rank:
        linear = _linear(call, known)
        if linear is not None:
            return linear
    return _arithmetic(call)


def _linear(call: Call, limits: Sequence[np.ndarray]) -> str | None:
    """Return QuantizeLinear and DequantizeLinear if their 256 levels are those of a FakeQuantize, else None."""
    in_low, in_high, out_low, out_high = (limit.astype(np.float64) for limit in limits)
    if call.op.levels != 256 or not (np.array_equal(in_low, out_low) and np.array_equal(in_high, out_high)):
        return None
    low, high = np.broadcast_arrays(in_low, in_high)
    if not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
        return None
    scale = (high - low) / 255
    zero = -low / scale
    zeros = np.rint(zero)
    if (abs(zero - zeros) > _GRID).any() or (zeros < 0).any() or (zeros > 255).any():
        return None
    axes = [axis for axis, n in enumerate(scale.shape) if n > 1]
    if len(axes) > 1:
        return None
    attributes = {"axis": axes[0] + call.rank() - scale.ndim} if axes else {}
    shape = (-1,) if axes else ()
    scales, points = scale.astype(np.float32).reshape(shape), zeros.astype(np.uint8).reshape(shape)
    codes = call("QuantizeLinear", call.input(0), scales, points, **attributes)
    return call("DequantizeLinear", codes, scales, points, **attributes)


def _arithmetic(call: Call) -> str:
    """Clip, round to a level, and map the levels to the output range."""
    x, in_low, in_high, out_low, out_high = (call.input(position) for position in range(5))
    call.require(
        call.op.auto_broadcast != "pdpd" or all(v.shape.count().value == 1 for v in call.values[1:] if v),
        "pdpd broadcasting of its limits",
    )
    steps = call.op.levels - 1
    low, high = call("Min", in_low, in_high), call("Max", in_low, in_high)
    clipped = call("Max", call("Min", x, high), low)
    level = call("Round", call("Mul", call("Div", call("Sub", clipped, in_low), call("Sub", in_high, in_low)), steps))
    inside = call("Add", call("Mul", call("Div", level, steps), call("Sub", out_high, out_low)), out_low)
    above = call("Where", call("Greater", x, high), out_high, inside)
    return call("Where", call("LessOrEqual", x, low), out_low, above)


def dequantized(call: Call, weights: Compressed, model: Model) -> str | None:
    """Return compressed weights as DequantizeLinear, or None if ONNX cannot say how they are stored.

    ``call`` is the last layer of ``weights``. Codes stay as the .bin has them. Before operation set 21, codes of 4 bits
    take a byte each.
    """
    codes = _constant(model, weights.codes)
    scales = None if weights.scales is None else _constant(model, weights.scales)
    if codes.type.name not in ("u8", "i8", "u4", "i4") or scales is None or scales.exact is None:
        return None
    compute = _computed_in(model, weights)
    zeros = np.zeros((), np.int64) if weights.zeros is None else _constant(model, weights.zeros).exact
    placed = None if zeros is None else _placed(codes.shape.static or (), scales.exact, zeros, call.opset)
    stored = ELEMENT_TYPES[codes.type.name if call.opset >= 21 else codes.type.name[0] + "8"]
    if placed is None or compute is None:
        return None
    scale, zero, attributes = placed
    whole = np.rint(zero.astype(np.float64))
    low, high = (0, 2**codes.type.bits - 1) if codes.type.kind == "uint" else (-(2 ** (codes.type.bits - 1)), 127)
    if (whole != zero.astype(np.float64)).any() or (whole < low).any() or (whole > high).any():
        return None
    name = _codes(call, model, weights.codes, stored)
    point = call.graph.constant(whole.astype(np.int64).astype(stored.dtype), stored) if whole.any() else None
    scale_name = call.graph.constant(scale.astype(compute.dtype), compute)
    made = call("DequantizeLinear", name, scale_name, point, **attributes)
    start = next(n for n, id in enumerate(weights.layers) if model.layers[id].type == "Multiply")
    for id in weights.layers[start + 1 :]:
        layer = model.layers[id]
        if layer.type == "Reshape":
            made = call("Reshape", made, list(call.outputs[0].shape.static or ()))
        elif layer.type == "Convert":
            made = call.cast(made, call.outputs[0].type)
    return made


def _constant(model: Model, id: int) -> Value:
    """Return a Const with its contents."""
    op: Any = bind(model, model.layers[id])[0]
    type = op.element_type or model.layers[id].outputs[0].type
    assert isinstance(type, ElementType)
    array = op.run(weights=model.weights, element_type=type)
    return Value(type, PartialShape.of(array.shape), array)


def _computed_in(model: Model, weights: Compressed) -> ElementType | None:
    """Return the element type in which the layers multiply with the scales."""
    converts_to = [
        model.layers[id].attributes.get("destination_type", "")
        for id in weights.layers[: next(n for n, i in enumerate(weights.layers) if model.layers[i].type == "Multiply")]
        if model.layers[id].type == "Convert"
    ]
    return ELEMENT_TYPES.get(converts_to[-1]) if converts_to else None


def _placed(
    codes: Sequence[int], scale: np.ndarray, zero: np.ndarray, opset: int
) -> tuple[np.ndarray, np.ndarray, dict[str, int]] | None:
    """Return scales and zero points as DequantizeLinear takes them, and its attributes; None if it cannot."""
    both = np.broadcast_shapes(scale.shape, zero.shape)
    if len(both) > len(codes):
        return None
    shape = (*(1,) * (len(codes) - len(both)), *both)
    scale, zero = np.broadcast_to(scale, shape), np.broadcast_to(zero, shape)
    axes = [axis for axis, n in enumerate(shape) if n > 1]
    if not axes:
        return scale.reshape(()), zero.reshape(()), {}
    if len(axes) == 1 and shape[axes[0]] == codes[axes[0]]:
        return scale.reshape(-1), zero.reshape(-1), {"axis": axes[0]}
    blocked = [axis for axis, n in enumerate(shape) if n != codes[axis]]
    if opset < 21 or len(blocked) != 1 or codes[blocked[0]] % shape[blocked[0]]:
        return None
    return scale, zero, {"axis": blocked[0], "block_size": codes[blocked[0]] // shape[blocked[0]]}


def _codes(call: Call, model: Model, id: int, stored: ElementType) -> str:
    """Return the codes of a Const, unpacked if ``stored`` is another type than that of the .bin."""
    op: Any = bind(model, model.layers[id])[0]
    shape = op.shape.static or ()
    count = int(np.prod(shape, dtype=np.int64))
    own, weights = op.element_type, model.weights
    wish = model.unique_names[id]
    assert weights is not None
    assert isinstance(own, ElementType)
    if own is stored:
        raw = weights.require(op.offset, op.size, own, shape)
        return call.graph.lazy(Constant(stored, shape, stored.nbytes(count), lambda: raw), wish)

    def unpacked() -> bytes:
        return op.run(weights=weights, element_type=own).astype(stored.dtype).tobytes()

    return call.graph.lazy(Constant(stored, shape, stored.nbytes(count), unpacked), wish)


@converts("FakeConvert", computes="f32")
def fake_convert(call: Call) -> str:
    """Cast to an f8 and back."""
    call.since(19, "elements of 8 bits that are floats")
    names = [call.cast(call.input(n), "f32") if call.given(n) else None for n in range(3)]
    x, scale, shift = names
    x = call("Mul", x, scale)
    x = call("Sub", x, shift) if shift else x
    narrow = ELEMENT_TYPES[call.op.destination_type]
    most = float(ml_dtypes.finfo(narrow.dtype).max)
    low, high = call.scalar(-most, "f32"), call.scalar(most, "f32")
    x = call.cast(call.cast(call("Clip", x, low, high), narrow), "f32")
    x = call("Div", call("Add", x, shift) if shift else x, scale)
    return call.cast(x, call.type) if call.type.name != "f32" else x
