"""The converters of operations, by the layer types that they convert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from irrun.export.call import Call
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["Converter", "converter_of", "converts"]

Function = Callable[[Call], "str | list[str]"]
"""Adds the nodes of a layer, and returns the names of the tensors that are its outputs."""


@dataclass(frozen=True, slots=True)
class Converter:
    """A converter. ``computes`` are the element types for which runtimes have kernels; empty if they have all.

    A layer of another type computes in the first of these types that holds its values. ``wraps`` says that integers
    wrap alike in a wider type, so that u64 computes in i64. ``carrier`` is the input that has the type.
    """

    function: Function
    computes: tuple[str, ...] = ()
    wraps: bool = False
    carrier: int = 0

    def computed_in(self, type: ElementType) -> ElementType | None:
        """Return the element type to compute in for a layer of ``type``; None if no type holds its values.

        f16 stays: runtimes without a kernel for f16 insert the conversions themselves.
        """
        if not self.computes or type.name in self.computes or type.kind not in ("int", "uint", "float", "boolean"):
            return type
        if type.name == "f16" and "f32" in self.computes:
            return type
        for name in self.computes:
            wide = ELEMENT_TYPES[name]
            same = wide.kind == type.kind or (wide.kind == "int" and type.kind in ("uint", "boolean"))
            if same and (wide.bits > type.bits or (self.wraps and wide.bits == type.bits)):
                return wide
        return None


_CONVERTERS: Final[dict[str, Converter]] = {}


def converts(*types: str, computes: str = "", wraps: bool = False, carrier: int = 0) -> Callable[[Function], Function]:
    """Register a function as the converter of the layer types ``types``. The other arguments are those of Converter."""

    def register(function: Function) -> Function:
        for type in types:
            assert type not in _CONVERTERS, type
            _CONVERTERS[type] = Converter(function, tuple(computes.split()), wraps, carrier)
        return function

    return register


def converter_of(type: str) -> Converter | None:
    """Return the converter of a layer type, or None."""
    return _CONVERTERS.get(type)
