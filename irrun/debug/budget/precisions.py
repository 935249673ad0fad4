"""The precision in effect: what an engine says of itself, and what follows from it for each layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.base.processor import adds_bytes_exactly
from irrun.debug.low_precision.formats import FORMATS, Format
from irrun.debug.low_precision.units import Unit
from irrun.model import Layer, is_constant

__all__ = ["InEffect", "cache_step", "decompressed_in_f16", "is_kept", "reads_compressed"]

_INTEGERS: Final = ("u4", "i4", "u8", "i8")
_STEPS: Final = {"u8": 255, "i8": 255, "u4": 15, "i4": 15}
"""The steps of the range of a token, by the type in which attention keeps keys and values."""


@dataclass(frozen=True, slots=True)
class InEffect:
    """The precision in which an engine computes, as far as its properties show it.

    ``type`` is f32, f16 or bf16. ``cache`` is the type in which attention keeps keys and values, ``group`` the size of
    the groups in which activations beside compressed weights are quantized, 0 for none. ``integers`` says whether
    layers between FakeQuantize may compute in integers, and ``saturates`` whether the processor adds pairs of their
    products in 16 bits.
    """

    type: str = "f32"
    cache: str = "f32"
    group: int = 0
    integers: bool = False
    saturates: bool = False

    @staticmethod
    def of(properties: Mapping[str, str]) -> InEffect:
        """Return what the properties of an engine say. An engine without properties computes in f32."""
        type = properties.get("INFERENCE_PRECISION_HINT", "f32")
        group = properties.get("DYNAMIC_QUANTIZATION_GROUP_SIZE", "0")
        cache = properties.get("KV_CACHE_PRECISION", "f32")
        groups = int(group) if group.isdecimal() else 0
        # OpenVINO does not show LP_TRANSFORMS_MODE; `precision=f32` turns integers and groups off
        integers = bool(properties) and (type != "f32" or groups > 0)
        saturates = integers and not adds_bytes_exactly()
        return InEffect(type if type in FORMATS else "f32", cache, groups, integers, saturates)

    def __str__(self) -> str:
        return self.grouped if self.group and self.type == "f32" else self.type

    @property
    def grouped(self) -> str:
        """What the form is called in which activations beside compressed weights are quantized."""
        return f"i8 in groups of {self.group}"

    @property
    def steps(self) -> int:
        """The steps into which the cache divides the range of each token in each head; 0 for a cache of floats."""
        return _STEPS.get(self.cache, 0)

    def of_layer(self, name: str) -> Format | None:
        """Return the format in which a layer may compute, beside f32; None for f32 alone.

        An engine that reports the precision of each layer belongs here.
        """
        return FORMATS.get(self.type)


def cache_step(value: np.ndarray, steps: int) -> np.ndarray:
    """Return how far keys or values, [..., head size], may move when they are quantized in ``steps``."""
    return np.ptp(value, axis=-1, keepdims=True) / steps if value.ndim and value.size else np.zeros(value.shape)


def reads_compressed(unit: Unit) -> bool:
    """Return whether a layer is a MatMul whose weights are integers, beside which activations are quantized."""
    return unit.op.type == "MatMul" and any(_is_compressed(chain) for chain in _constant_chains(unit, 1))


def decompressed_in_f16(unit: Unit) -> list[int]:
    """Return the positions of the inputs that are integers which the file decompresses in f16.

    An engine may compute them in f32: rounded to f16, they are the same.
    """
    chains = enumerate(_constant_chains(unit, *range(len(unit.constant))))
    return [at for at, chain in chains if _is_compressed(chain) and any(map(_scales_in_f16, chain))]


def _scales_in_f16(layer: Layer) -> bool:
    return layer.type == "Multiply" and str(layer.outputs[0].type) == "f16"


def _constant_chains(unit: Unit, *inputs: int) -> Iterator[list[Layer]]:
    """Yield, for each of some inputs that is constant, the layers that feed it up to the constant."""
    for at in inputs:
        feed = unit.model.feeds[unit.layer.id][at] if unit.constant[at] else None
        chain: list[Layer] = []
        while feed is not None:
            chain.append(unit.model.layers[feed[0]])
            feed = next(iter(unit.model.feeds[feed[0]]), None)
        yield chain


def _is_compressed(chain: Sequence[Layer]) -> bool:
    return bool(chain) and is_constant(chain[-1]) and chain[-1].attributes.get("element_type", "") in _INTEGERS


def is_kept(unit: Unit) -> bool:
    """Return whether a variable keeps the output of a layer, as attention keeps keys and values."""
    readers = unit.model.readers.get((unit.layer.id, 0), ())
    return any(unit.model.layers[reader].type == "Assign" for reader, _ in readers)
