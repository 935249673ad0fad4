"""Write the layers of a generated model, and record what their outputs must be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from xml.sax.saxutils import quoteattr

import numpy as np
from hypothesis import strategies as st

from irrun.testing.strategies._arrays import Dims, shapes
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["FLOATS", "NUMBERS", "Builder", "Tensor"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Tensor:
    """An output of a layer: its dims for the generated inputs, and which of them the file leaves open."""

    layer: int
    port: int
    type: str
    dims: Dims
    open: tuple[bool, ...]

    @property
    def declared(self) -> tuple[int | None, ...]:
        return tuple(None if o else d for d, o in zip(self.dims, self.open))


_PRECISIONS: Final = {"f32": "FP32", "f16": "FP16", "f64": "FP64", "boolean": "BOOL"}
"""The precisions of ports whose names are not those of the element types in upper case."""
FLOATS: Final = ("f32", "f16", "f64")
NUMBERS: Final = (*FLOATS, "i32", "i64", "u8")
_LARGE: Final = 4096
"""The most elements of a tensor that later layers may read, so that a model runs within milliseconds."""


@dataclass
class Builder:
    """Writes the layers of one model, and records the dims of each output according to numpy's rules."""

    draw: st.DrawFn
    rng: np.random.Generator
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    bin: bytearray = field(default_factory=bytearray)
    tensors: list[Tensor] = field(default_factory=list)
    """The outputs that later layers may read. Large ones are left out, because their consumers may be larger still."""
    outputs: list[Tensor] = field(default_factory=list)
    """The outputs of all layers that ``add`` has written, large ones included."""
    feeds: dict[str, np.ndarray] = field(default_factory=dict)
    """An array for each Parameter, by the name of the layer."""
    read: set[tuple[int, int]] = field(default_factory=set)
    """The outputs that a layer reads, as (layer, port)."""

    def pick(self, options: Sequence[_T]) -> _T:
        return self.draw(st.sampled_from(options))

    def integer(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    # -- writing

    def layer(
        self,
        type: str,
        inputs: Sequence[Tensor],
        *outputs: tuple[str, Dims, tuple[bool, ...]],
        opset: int = 1,
        **attributes: Any,
    ) -> list[Tensor]:
        """Write a layer and its edges, and return its outputs. ``outputs`` are (type, dims, open) for each output."""
        id = len(self.layers)
        name = f"{type.lower()}{id}"
        written = [Tensor(id, len(inputs) + i, *output) for i, output in enumerate(outputs)]
        lines = [f'<layer id="{id}" name={quoteattr(name)} type={quoteattr(type)} version="opset{opset}">']
        if attributes:
            data = " ".join(f"{k.rstrip('_')}={quoteattr(_text(v))}" for k, v in attributes.items())
            lines.append(f"<data {data}/>")
        if inputs:
            lines += ["<input>", *(line for i, t in enumerate(inputs) for line in _port(i, t)), "</input>"]
        if written:
            lines += ["<output>", *(line for t in written for line in _port(t.port, t, name)), "</output>"]
        self.layers.append("\n".join([*lines, "</layer>"]))
        for number, tensor in enumerate(inputs):
            self.read.add((tensor.layer, tensor.port))
            self.edges.append(
                f'<edge from-layer="{tensor.layer}" from-port="{tensor.port}" to-layer="{id}" to-port="{number}"/>'
            )
        return written

    def add(self, type: str, inputs: Sequence[Tensor], *outputs: Any, opset: int = 1, **attributes: Any) -> None:
        """Write a layer whose outputs later layers may read."""
        written = self.layer(type, inputs, *outputs, opset=opset, **attributes)
        self.outputs += written
        self.tensors += [t for t in written if math.prod(t.dims) <= _LARGE and len(t.dims) <= 6]

    def const(self, array: np.ndarray) -> Tensor:
        """Write a Const, and its array to the .bin at a multiple of 8 bytes."""
        own = ElementType.of(array.dtype)
        assert own is not None
        raw = array.tobytes()
        output = (own.name, array.shape, (False,) * array.ndim)
        self.bin += b"\0" * (-len(self.bin) % 8)
        (tensor,) = self.layer(
            "Const", [], output, element_type=own.name, shape=array.shape, offset=len(self.bin), size=len(raw)
        )
        self.bin += raw
        return tensor

    def ints(self, *numbers: int) -> Tensor:
        return self.const(np.array(numbers, np.int64))

    def values(self, type: str, dims: Dims) -> np.ndarray:
        """Return random numbers of an element type, small enough that the layers do not overflow."""
        dtype = ELEMENT_TYPES[type].dtype
        if type == "boolean":
            return self.rng.random(dims) < 0.5
        if dtype.kind in "iu":
            return self.rng.integers(1, 5, dims).astype(dtype)
        return (self.rng.random(dims) * 2 - 1).astype(dtype)

    def parameter(self, dynamic: bool) -> None:
        """Write a Parameter and add an array for it to ``feeds``. Some of its dims are open if ``dynamic``."""
        type = self.pick(("f32", "f32", "f32", *NUMBERS, "boolean"))
        dims = self.draw(shapes(self.pick((3, 2, 0)), 4, min_dim=1))
        open = tuple(dynamic and self.flag() for _ in dims)
        shape = ",".join(self.dim(d) if o else str(d) for d, o in zip(dims, open))
        self.feeds[f"parameter{len(self.layers)}"] = self.values(type, dims)
        self.add("Parameter", [], (type, dims, open), element_type=type, shape=shape)

    def dim(self, actual: int) -> str:
        """Draw the text of an open dim that allows ``actual``: any size, or a range."""
        return self.pick(("?", f"{max(actual - 1, 0)}..{actual + 2}", f"..{actual}", f"{actual}.."))

    def document(self) -> str:
        """Return the text of the ``.xml`` with all layers and edges."""
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return (
            f'<?xml version="1.0"?>\n<net name="generated" version="11">\n<layers>\n{layers}\n</layers>\n'
            f"<edges>\n{edges}\n</edges>\n</net>\n"
        )

    # -- choosing

    def tensor(self, types: Sequence[str] = (), min_rank: int = 0, max_rank: int = 9) -> Tensor | None:
        """Draw an earlier output of these types and ranks; None if there is none. Without types, any type will do."""
        fit = [t for t in self.tensors if (not types or t.type in types) and min_rank <= len(t.dims) <= max_rank]
        return self.pick(fit) if fit else None

    def fixed(self, tensor: Tensor) -> bool:
        return not any(tensor.open)


def _port(number: int, tensor: Tensor, layer: str | None = None) -> list[str]:
    """Return the lines of a port. ``layer`` is the name of the layer that the port is an output of."""
    names = f' names="{layer}.{number}"' if layer else ""
    precision = _PRECISIONS.get(tensor.type, tensor.type.upper())
    dims = [f"<dim>{-1 if d is None else d}</dim>" for d in tensor.declared]
    return [f'<port id="{number}" precision="{precision}"{names}>', *dims, "</port>"]


def _text(value: Any) -> str:
    """Return the value of an attribute as IR files spell it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
