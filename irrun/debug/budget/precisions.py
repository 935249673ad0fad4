"""The precision in effect: what an engine says of itself, and what follows from it for each layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irrun.debug.low_precision.formats import FORMATS, Format
from irrun.debug.low_precision.units import Unit
from irrun.model import is_constant

__all__ = ["InEffect", "is_kept", "reads_compressed"]


@dataclass(frozen=True, slots=True)
class InEffect:
    """The precision in which an engine computes, as far as its properties show it.

    ``type`` is f32, f16 or bf16. ``cache`` is the type in which attention keeps keys and values, ``group`` the size of
    the groups in which activations beside compressed weights are quantized, 0 for none. ``integers`` says whether
    layers between FakeQuantize may compute in integers.
    """

    type: str = "f32"
    cache: str = "f32"
    group: int = 0
    integers: bool = False

    @staticmethod
    def of(properties: Mapping[str, str]) -> InEffect:
        """Return what the properties of an engine say. An engine without properties computes in f32."""
        type = properties.get("INFERENCE_PRECISION_HINT", "f32")
        group = properties.get("DYNAMIC_QUANTIZATION_GROUP_SIZE", "0")
        cache = properties.get("KV_CACHE_PRECISION", "f32")
        groups = int(group) if group.isdecimal() else 0
        # OpenVINO does not show LP_TRANSFORMS_MODE; `precision=f32` turns integers and groups off
        integers = bool(properties) and (type != "f32" or groups > 0)
        return InEffect(type if type in FORMATS else "f32", cache, groups, integers)

    def of_layer(self, name: str) -> Format | None:
        """Return the format in which a layer may compute, beside f32; None for f32 alone.

        An engine that reports the precision of each layer belongs here.
        """
        return FORMATS.get(self.type)


def reads_compressed(unit: Unit) -> bool:
    """Return whether a layer is a MatMul whose weights are integers, beside which activations are quantized."""
    if unit.op.type != "MatMul" or not unit.constant[1]:
        return False
    feed = unit.model.feeds[unit.layer.id][1]
    while feed is not None:
        layer = unit.model.layers[feed[0]]
        if is_constant(layer):
            return layer.attributes.get("element_type", "") in ("u4", "i4", "u8", "i8")
        feed = next(iter(unit.model.feeds[feed[0]]), None)
    return False


def is_kept(unit: Unit) -> bool:
    """Return whether a variable keeps the output of a layer, as attention keeps keys and values."""
    readers = unit.model.readers.get((unit.layer.id, 0), ())
    return any(unit.model.layers[reader].type == "Assign" for reader, _ in readers)
