"""Check constants and their bytes in the .bin: overlapping, unused or missing bytes, NaN, and wrong sizes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.base.text import counted
from irrun.checking.faults.evidence import Constant, Evidence
from irrun.checking.faults.suggest import items
from irrun.diagnostics import diagnostic
from irrun.inference.propagate import weights_missing
from irrun.model import Layer, Model
from irrun.opdef import Value
from irrun.types import ElementType, PartialShape

__all__ = ["check_bytes", "check_presence", "constant_fits_only", "corrected_size", "record_constant"]

_ALIGNMENT_BYTES: Final = 64
"""Fewer unused bytes than this at the end of a .bin are padding: constants are aligned to 64 bytes."""
_MAX_SEARCHED_ELEMENTS: Final = 1 << 14
"""The most elements of a constant that are searched for NaN and +inf, so that large constants stay cheap to check."""


def check_presence(evidence: Evidence) -> None:
    """Report a missing .bin (IR501) once, not once per constant."""
    model = evidence.model
    if model.weights is None and model.constants and not model.is_fragment:
        evidence.add(weights_missing(model))


def check_bytes(evidence: Evidence) -> None:
    """Report constants that share only some of their bytes (IR505), and unused bytes after the last one (IR506).

    Report nothing if a constant cannot be read, because its range is then unknown.
    """
    model = evidence.model
    diagnostics = (*evidence.problems, *evidence.findings)
    if model.weights is None or any(d.code in ("IR501", "IR502", "IR503", "IR201") for d in diagnostics):
        return
    if len(evidence.constants) < model.constants:
        return
    ranges: dict[tuple[int, int], Layer] = {}
    for offset, size, layer in evidence.constants:
        if size:
            ranges.setdefault((offset, size), layer)
    pairs: list[tuple[tuple[int, int], tuple[int, int]]] = []
    farthest = (0, 0)
    for place in sorted(ranges):
        if place[0] < sum(farthest):
            pairs.append((farthest, place))
        farthest = max(farthest, place, key=sum)
    _report_overlaps(evidence, ranges, pairs)
    _report_unused_bytes(evidence, len(model.weights.data) - sum(farthest))


def _report_overlaps(
    evidence: Evidence, ranges: dict[tuple[int, int], Layer], pairs: list[tuple[tuple[int, int], tuple[int, int]]]
) -> None:
    """Report the wrong constant of each pair of overlapping ranges (IR505). A range is an offset and a size in bytes.

    The wrong one overlaps with more constants, and fewer of its two ends touch the end of another constant.
    """
    model = evidence.model
    assert model.weights is not None
    starts, ends = {len(model.weights.data), *(offset for offset, _ in ranges)}, {0, *map(sum, ranges)}
    overlaps = Counter(place for pair in pairs for place in pair)
    for pair in pairs:
        wrong, other = sorted(pair, key=lambda p: (-overlaps[p], (p[0] in ends) + (sum(p) in starts), -p[0]))
        layer = ranges.pop(wrong, None)
        if layer is None or other not in ranges:
            continue
        message = (
            f'{layer.type} "{layer.name}": its bytes {wrong[0]} to {sum(wrong)} overlap the bytes '
            f'{other[0]} to {sum(other)} of "{ranges[other].name}"'
        )
        node = model.source.children(layer.node, "data")[0]
        evidence.report("IR505", message, layer, node, "offset", help="correct offset or size")


def _report_unused_bytes(evidence: Evidence, unused: int) -> None:
    """Report that no constant reads the last ``unused`` bytes of the .bin (IR506).

    A sub-model under another file name may use only some of the .bin of the whole model, so that only the .bin with
    the name of the model is checked.
    """
    model = evidence.model
    path = model.weights.path if model.weights else None
    if unused >= _ALIGNMENT_BYTES and path and path.with_suffix("") == Path(model.source.path).with_suffix(""):
        message = f"{path.name} has {counted(unused, 'unused byte')} after those of the last constant"
        help = "use the .bin that belongs to this model, or save the model again"
        evidence.add(diagnostic("IR506", message, source=model.source, help=help))


def record_constant(evidence: Evidence, layer: Layer, value: Value) -> None:
    """Record the bytes of a constant in the .bin, and report NaN, or +inf among ordinary numbers (IR507)."""
    op: Any = evidence.ops[layer.id]
    needed = value.type.nbytes(value.shape.least) if value.type.bits else op.size
    evidence.constants.append(Constant(op.offset, min(op.size, needed), layer))
    if value.type.kind != "float" or value.data is None or value.data.size < 2:
        return
    elements = value.data.reshape(-1)[:_MAX_SEARCHED_ELEMENTS]
    if np.isfinite(elements).all():
        return
    elements = elements.astype(np.float32)
    if np.isnan(elements).any():
        contents = "NaN"
    elif np.isposinf(elements).any() and len(np.unique(elements[np.isfinite(elements)])) > 2:
        contents = "+inf among ordinary numbers"
    else:
        return
    node = evidence.model.source.children(layer.node, "data")[0]
    message = f'{layer.type} "{layer.name}": the constant contains {contents}'
    help = "check whether training diverged, a conversion to f16 overflowed, or offset is wrong"
    evidence.report("IR507", message, layer, node, help=help)


def constant_fits_only(layer: Layer, value: Value, claim: Value) -> bool:
    """Return whether the ``size`` of a Const is what its attributes ``value`` need, and not what ``claim`` needs.

    Its ports are then wrong, however many of them agree.
    """
    size = layer.attributes.get("size", "")

    def fits(other: Value) -> bool:
        is_known = other.type.bits > 0 and other.shape.static is not None
        return is_known and str(other.type.nbytes(other.shape.least)) == size

    return fits(value) and not fits(claim)


def corrected_size(model: Model, layer: Layer) -> tuple[str, str] | None:
    """Return the attribute of a Const that contradicts its other attributes and its port, with the corrected text.

    The Const has an output and the attributes ``size`` and ``offset``. Return None if it is not certain which
    attribute is wrong.
    """
    port, attributes = layer.outputs[0], layer.attributes
    shape = PartialShape.parse(attributes.get("shape", "..."))
    type = ElementType.parse(attributes.get("element_type", ""))
    size, offset = int(attributes["size"]), int(attributes["offset"])
    available = len(model.weights.data) - offset if model.weights else 0
    if port.type is None or port.type.bits == 0 or type is None or shape is None or shape.static is None:
        return None
    port_shape = port.shape or PartialShape(())
    if port_shape == shape and port.type is type:
        needed = type.nbytes(shape.least)
        return ("size", str(needed)) if 0 <= needed <= available else None
    if port.type is type and port_shape.static is not None and type.nbytes(port_shape.least) == size:
        return "shape", items(port_shape)
    if port_shape == shape and port.type.nbytes(shape.least) == size:
        return "element_type", port.type.name
    return None
