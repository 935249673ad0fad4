"""Products of compressed weights, and products in int8."""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.debug.runtime.layers import FileGraph, FileLayer
from irrun.debug.runtime.pattern import Condition, Match, Pattern, Runs

__all__ = ["COMPRESSED_WEIGHTS", "QUANTIZED_PRODUCT"]


_DECOMPRESSING: Final = ("Convert", "Multiply", "Subtract", "Reshape", "Transpose")
_CODES: Final = ("u8", "i8", "u4", "i4", "u2", "nf4", "f4e2m1", "f8e4m3", "f8e5m2")
"""The types of codes that the CPU plugin decompresses in its kernels."""


def _decompression(graph: FileGraph, last: FileLayer) -> Match | None:
    """Match a MatMul whose second input layers compute of a Const of integers or narrow floats.

    A MatMul whose first input is quantized is a quantized product instead.
    """
    if last.op.type != "MatMul" or graph.of(last.reads[1], *_DECOMPRESSING) is None or _quantizing(graph, last):
        return None
    codes = graph.of(graph.through(last.reads[1], *_DECOMPRESSING), "Const")
    is_wide = codes is None or graph.type(codes.writes[0]) in ("f32", "f16", "bf16", "f64")
    return None if codes is None or is_wide else Match(last, {"codes": codes, "last": last})


def _wide_codes(graph: FileGraph, match: Match) -> str:
    type = graph.type(match.roles["codes"].writes[0])
    return "" if type in _CODES else f"they are {type}"


def _weight_read_again(graph: FileGraph, match: Match) -> str:
    others = [reader for reader in graph.readers(match.last.reads[1]) if reader.op.type != "MatMul"]
    return f'"{graph.names[others[0].layer.id]}" reads them as well' if others else ""


def _with_codes(match: Match, runs: Runs) -> bool:
    """Return whether the node of the MatMul reads codes as its weights."""
    for node in runs.of(match.last):
        name, port = node.inputs[1] if len(node.inputs) > 1 else ("", 0)
        maker = runs.nodes.get(name)
        if maker is not None and port < len(maker.outputs) and maker.outputs[port].type in _CODES:
            return True
    return False


_MOVING: Final = ("Reshape", "Transpose", "Convert", "Squeeze", "Unsqueeze")
_PRODUCTS: Final = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul")


def _quantized(graph: FileGraph, last: FileLayer) -> Match | None:
    """Match a convolution or MatMul whose first input is quantized, and whose second one has integers or is, too."""
    if last.op.type not in _PRODUCTS:
        return None
    data = _quantizing(graph, last)
    weights = graph.of(graph.through(last.reads[1], *_MOVING), "FakeQuantize")
    codes = graph.of(graph.through(last.reads[1], *_DECOMPRESSING), "Const")
    if not data or (weights is None and (codes is None or graph.type(codes.writes[0]) not in _CODES)):
        return None
    roles = {f"data {number}": layer for number, layer in enumerate(data)} | {"last": last}
    return Match(last, roles | ({"weights": weights} if weights else {}))


def _quantizing(graph: FileGraph, last: FileLayer) -> list[FileLayer]:
    """Return the FakeQuantizes of the first input, several if a Concat joins them; none if a part is not quantized."""
    found: dict[int, FileLayer] = {}
    waiting = [last.reads[0]]
    while waiting:
        made = graph.of(graph.through(waiting.pop(), *_MOVING, "MaxPool"), "FakeQuantize", "Concat")
        if made is None:
            return []
        if made.op.type == "Concat" and made.layer.id not in found:
            waiting += made.reads[::-1]
        found[made.layer.id] = made
    return [layer for layer in found.values() if layer.op.type == "FakeQuantize"]


def _many_levels(graph: FileGraph, match: Match) -> str:
    found = [(layer, getattr(layer.op, "levels", 0)) for role, layer in match.roles.items() if role != "last"]
    return next((f"{graph.called(layer.writes[0])} has {levels}" for layer, levels in found if levels > 256), "")


def _by_channel(graph: FileGraph, match: Match) -> str:
    for layer in (layer for role, layer in match.roles.items() if role.startswith("data")):
        if any(graph.contents(slot) is None for slot in layer.reads[1:]):
            return f"the range of {graph.called(layer.writes[0])} is not constant"
        if any(graph.number(slot) is None for slot in layer.reads[1:]):
            return f"{graph.called(layer.writes[0])} has a range for each channel"
    return ""


def _asymmetric(graph: FileGraph, match: Match) -> str:
    weights = match.roles.get("weights")
    low, high = (None, None) if weights is None else (graph.contents(slot) for slot in weights.reads[3:5])
    if weights is None or low is None or high is None:
        return ""
    levels = getattr(weights.op, "levels", 255)
    zero = -low.astype(np.float64) / np.maximum(high.astype(np.float64) - low, 1e-30) * (levels - 1)
    if (np.abs(zero - levels // 2) < 1e-2).all():
        return ""
    return f"0 is level {float(zero.reshape(-1)[0]):.4g} of {levels}, and would have to be level {levels // 2}"


def _in_integers(match: Match, runs: Runs) -> bool:
    return any(node.computes_in in ("u8", "i8") for node in runs.of(match.last))


COMPRESSED_WEIGHTS: Final = Pattern(
    "compressed weights",
    "a product that reads the codes",
    _decompression,
    (
        Condition("the codes have 8 bits or less", _wide_codes),
        Condition("only products read the decompressed weights", _weight_read_again),
    ),
    _with_codes,
)

QUANTIZED_PRODUCT: Final = Pattern(
    "quantized product",
    "a node in int8",
    _quantized,
    (
        Condition("FakeQuantize has at most 256 levels", _many_levels),
        Condition("the data have one range for all channels", _by_channel),
        Condition("0 is the middle level of the weights", _asymmetric),
    ),
    _in_integers,
)
