"""Put layers behind each other. The dims of their outputs come from the rules of numpy, not from inference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from irrun.growing.choices import Choices
from irrun.growing.drafts import Draft, Port, random_contents, versions
from irrun.growing.graphs import Graph, Node, Ref, Stored
from irrun.growing.habits import text_of, written
from irrun.opdef import Op
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["ANY_TYPE", "COMMON_TYPES", "FLOATS", "INTEGERS", "Axes", "Axis", "Chain", "Tensor", "fixed", "merge"]

FLOATS: Final = ("f32", "f16", "bf16", "f64")
INTEGERS: Final = ("i64", "i32", "u8")
COMMON_TYPES: Final = (*(("f32",) * 3), "f16", "f64", "i32", "i64", "u8", "boolean")
"""Element types of inputs that every engine takes."""
ANY_TYPE: Final = (*(("f32",) * 5), "f16", "bf16", "f64", "i64", "i32", "u8", "boolean", "string")
"""Element types of inputs that irrun takes."""
_MAX_READ_ELEMENTS: Final = 1 << 12
"""The most elements of a tensor that later layers may read, so that a model runs within milliseconds."""
_MAX_READ_RANK: Final = 6
"""The most axes of a tensor that later layers may read: engines have kernels for few more."""


class Axis(NamedTuple):
    """A dim of a tensor: its size for the first inputs, and whether the model leaves it open."""

    size: int
    open: bool = False


Axes = tuple[Axis, ...]


def fixed(*dims: int) -> Axes:
    """Return the axes of dims that the model declares."""
    return tuple(Axis(dim) for dim in dims)


def merge(axes: Sequence[Axis]) -> Axis:
    """Return the axis of a Reshape that merges several."""
    return Axis(math.prod(axis.size for axis in axes), any(axis.open for axis in axes))


@dataclass(frozen=True)
class Tensor:
    """An output of a layer, or a constant."""

    ref: Ref
    type: str
    axes: Axes

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dims for the first inputs."""
        return tuple(axis.size for axis in self.axes)

    @property
    def declared(self) -> tuple[int | None, ...]:
        """The dims that inference must find; None for open ones."""
        return tuple(None if axis.open else axis.size for axis in self.axes)

    @property
    def is_fixed(self) -> bool:
        return not any(axis.open for axis in self.axes)

    def axes_of(self, fits: Callable[[Axis], bool]) -> list[int]:
        """Return the positions of the axes that fit."""
        return [position for position, axis in enumerate(self.axes) if fits(axis)]


@dataclass
class Chain:
    """A graph, and the tensors that its next layer may read.

    ``numbers`` makes the elements of constants. ``types`` are the element types of inputs. ``stores`` allows weights
    that are stored in f16 or as integers.
    """

    graph: Graph
    choices: Choices
    numbers: np.random.Generator
    types: Sequence[str] = ANY_TYPE
    stores: bool = True
    sizes: range = range(7)
    """The sizes that open dims may have in other calls."""
    tensors: list[Tensor] = field(default_factory=list)
    """The outputs that later layers may read."""
    outputs: list[Tensor] = field(default_factory=list)
    """The outputs of all layers that ``add`` has put into the graph, large ones included."""

    # -- layers

    def add(self, type: str, inputs: Sequence[Tensor], *outputs: tuple[str, Axes], **attributes: Any) -> list[Tensor]:
        """Put a layer into the graph, and let later layers read its outputs. ``outputs`` are pairs of type and axes."""
        made = self.layer(type, inputs, *outputs, **attributes)
        self.offer(*made)
        return made

    def layer(self, type: str, inputs: Sequence[Tensor], *outputs: tuple[str, Axes], **attributes: Any) -> list[Tensor]:
        """Put a layer into the graph, of the newest version, or of the one that ``opset`` had. Return its outputs."""
        cls = _version(type, attributes.pop("opset", None))
        texts = {name: text_of(value) for name, value in attributes.items()}
        draft = Draft(cls, texts, [Port(x.type, x.dims) for x in inputs], len(outputs))
        return self.put(Node("layer", cls, written(draft).attributes, [x.ref for x in inputs], len(outputs)), *outputs)

    def put(self, node: Node, *outputs: tuple[str, Axes]) -> list[Tensor]:
        """Put a node into the graph, and return its outputs."""
        self.graph.nodes.append(node)
        number = len(self.graph.nodes) - 1
        return [Tensor(Ref(number, port), *output) for port, output in enumerate(outputs)]

    def compute(self, type: str, *inputs: Tensor, **attributes: Any) -> Tensor:
        """Put a layer into the graph whose output has the type and the axes of its first input. Return the output."""
        return self.layer(type, inputs, (inputs[0].type, inputs[0].axes), **attributes)[0]

    def offer(self, *tensors: Tensor) -> None:
        """Let later layers read outputs, unless they are large: what reads them may be larger still."""
        self.outputs += tensors
        self.tensors += [t for t in tensors if math.prod(t.dims) <= _MAX_READ_ELEMENTS and t.rank <= _MAX_READ_RANK]

    # -- inputs and constants

    def parameter(self, axes: Axes, type: str = "f32", **more: Any) -> Tensor:
        """Put a Parameter into the graph. ``more`` are fields of its node."""
        (tensor,) = self.put(Node("parameter", type=type, shape=tuple(a.size for a in axes), **more), (type, axes))
        self.graph.open[tensor.ref.node] = frozenset(tensor.axes_of(lambda axis: axis.open))
        self.offer(tensor)
        return tensor

    def array(self, array: np.ndarray, type: str | None = None) -> Tensor:
        """Put a constant into the graph."""
        if type is None:
            element_type = ElementType.of(array.dtype)
            assert element_type is not None
            type = element_type.name
        return self.put(Node("constant", type=type, shape=array.shape, data=array), (type, fixed(*array.shape)))[0]

    def ints(self, *numbers: int) -> Tensor:
        """Put a list of i64 into the graph."""
        return self.array(np.array(numbers, np.int64))

    def number(self, value: float, type: str) -> Tensor:
        """Put a scalar into the graph."""
        return self.array(np.array(value).astype(ELEMENT_TYPES[type].dtype), type)

    def constant(self, dims: Sequence[int], type: str, scale: float = 1.0) -> Tensor:
        """Put random numbers into the graph: floats in [-scale, scale), or small integers.

        If weights may be stored, some of f32 are stored in f16, and some as integers with scales.
        """
        array = random_contents(Port(type, tuple(dims)), self.numbers, scale)
        if self.stores and type == "f32" and len(dims) >= 2:
            if self.choices.chance(0.2):
                narrow = self.array(array.astype(np.float16))
                return self.layer("Convert", [narrow], (type, narrow.axes), destination_type=type)[0]
            if self.choices.chance(0.1):
                integers = self.choices.pick(("u8", "i8", "u4", "i4"))
                return self.store(
                    array, Stored(integers, self.choices.integer(0, len(dims) - 1), self.choices.chance())
                )
        return self.array(array, type)

    def store(self, array: np.ndarray, stored: Stored) -> Tensor:
        """Put numbers of f32 into the graph, stored as integers."""
        node = Node("constant", type="f32", shape=array.shape, data=array, stored=stored)
        return self.put(node, ("f32", fixed(*array.shape)))[0]

    # -- choosing

    def find(self, fits: Callable[[Tensor], bool]) -> Tensor | None:
        """Return a tensor that fits, most often a late one; None if there is none."""
        fitting = [tensor for tensor in self.tensors if fits(tensor)]
        return self.choices.pick_late(fitting) if fitting else None

    def find_axis(self, fits: Callable[[Axis], bool]) -> tuple[Tensor, int] | None:
        """Return a tensor with an axis that fits, and the position of the axis; None if there is none."""
        x = self.find(lambda tensor: any(map(fits, tensor.axes)))
        return None if x is None else (x, self.choices.pick(x.axes_of(fits)))

    def find_floats(self, least_rank: int = 0) -> Tensor | None:
        """Return a tensor of floats that has so many axes at least; None if there is none."""
        return self.find(lambda tensor: tensor.type in FLOATS and tensor.rank >= least_rank)

    def find_numbers(self, least_rank: int = 0) -> Tensor | None:
        """Return a tensor of numbers that has so many axes at least; None if there is none."""
        return self.find(lambda tensor: tensor.type in (*FLOATS, *INTEGERS) and tensor.rank >= least_rank)


@cache
def _version(name: str, opset: int | None) -> type[Op]:
    """Return the newest version of an operation, or the newest one in an operation set."""
    known = [cls for cls in versions().values() if cls.type == name and (opset is None or cls.since <= opset)]
    return max(known, key=lambda cls: cls.since)
