"""Graphs of layers that can be built again with other shapes, without some of them, or as a single one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

import irrun.build as b
from irrun.diagnostics import IrrunError
from irrun.growing.drafts import Port, name_of, random_contents
from irrun.growing.layouts import repeated
from irrun.model import Model
from irrun.opdef import Op, is_custom
from irrun.types import ELEMENT_TYPES

__all__ = ["UNARY", "Graph", "Node", "Ref", "Stored"]

UNARY: Final = ("Tanh", "Sigmoid", "ReLU", "Abs", "Negative", "Gelu")
"""The layers of bodies."""


@dataclass(frozen=True, order=True)
class Ref:
    """An output of a node."""

    node: int
    port: int = 0


@dataclass(frozen=True)
class Stored:
    """How a constant is compressed: in integers of ``type``, with a scale for each index of ``axis``, and a zero point
    if ``offset``."""

    type: str
    axis: int
    offset: bool


@dataclass
class Node:
    """A node of a graph. ``kind`` is ``parameter``, ``constant``, ``layer``, ``If``, ``Loop``, ``TensorIterator`` or
    ``state``.

    ``type``, ``shape`` and ``data`` are those of a parameter or constant; a parameter with ``data`` is fed with it, and
    one without with numbers of its ``domain`` (see ``Port``), in ascending order if it is ``ascending``.
    ``plan`` names the layers of a body, or the version of ReadValue.
    """

    kind: str
    cls: type[Op] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    inputs: list[Ref] = field(default_factory=list)
    outputs: int = 1
    type: str = "f32"
    shape: tuple[int, ...] = ()
    data: np.ndarray | None = None
    stored: Stored | None = None
    plan: Sequence[str] = ()
    ascending: bool = False
    domain: str = ""
    bounds: Mapping[int, str] = field(default_factory=dict)
    """What a parameter declares for axes that are open: an interval such as ``1..4``, or ``?`` if there is none."""
    output: Any = field(default=None, init=False, repr=False, compare=False)
    """A constant that was built: a graph is built many times."""

    def __post_init__(self) -> None:
        if self.data is not None:
            self.data = np.asarray(self.data)  # numpy computes a scalar from an array without axes

    @property
    def is_input(self) -> bool:
        """Whether the node is a parameter or a constant."""
        return self.kind in ("parameter", "constant")

    @property
    def label(self) -> str:
        """What a signature calls the node: ``Tile-1``, or its kind."""
        if self.kind == "layer":
            assert self.cls is not None
            return name_of(self.cls)
        return f"{self.kind}{f' {self.stored.type}' if self.stored else ''}"


Shapes = Mapping[int, tuple[int, ...]]
"""The shapes of some parameters by node."""


@dataclass
class Graph:
    """A model as nodes in topological order, with the outputs that it shows.

    ``calls`` are the shapes of the parameters in one run after the other, ``open`` the dims of parameters that the
    dynamic form of the model leaves open, and ``unranked`` the parameters whose rank it leaves open.
    """

    seed: int
    nodes: list[Node] = field(default_factory=list)
    results: list[Ref] = field(default_factory=list)
    calls: list[dict[int, tuple[int, ...]]] = field(default_factory=list)
    open: dict[int, frozenset[int]] = field(default_factory=dict)
    unranked: frozenset[int] = frozenset()
    special: bool = False
    """Whether inputs hold a few special numbers: not finite, tiny or huge ones."""
    odd: bool = False
    """Whether equal Parameters may get the same array, some with stride 0. The fuzzer also changes the layouts."""
    valid: bool = False
    """Whether every layer is valid by construction, so that a refusal is a fault."""

    @property
    def parameters(self) -> list[int]:
        return [n for n, node in enumerate(self.nodes) if node.kind == "parameter"]

    def versions(self) -> set[str]:
        """Return the versions of operations that the graph consists of."""
        found = {"Result-1"}
        for node in self.nodes:
            found |= {"parameter": {"Parameter-1"}, "constant": {"Const-1"}, "If": {"If-8"}, "Loop": {"Loop-5"},
                      "TensorIterator": {"TensorIterator-1"}}.get(node.kind, set())  # fmt: skip
            if node.kind == "state":
                found |= {f"ReadValue-{node.plan[0]}", f"Assign-{node.plan[0]}"}
            elif node.kind == "layer":
                found.add(node.label)
        return found

    def is_dynamic(self) -> bool:
        return bool(self.unranked) or any(self.open.values())

    def is_stateful(self) -> bool:
        return any(node.kind == "state" for node in self.nodes)

    def signature(self) -> str:
        """Return what graphs with the same layers have in common."""
        kept = [node.label for node in self.nodes if node.kind not in ("parameter", "constant") or node.stored]
        types = sorted({node.type for node in self.nodes if node.kind == "parameter"})
        return f"{' '.join(sorted(kept))} of {', '.join(types) or 'constants'}{' dynamic' if self.is_dynamic() else ''}"

    # -- models

    def model(self, shapes: Shapes | None = None, *, dynamic: bool = False) -> Model:
        """Return the model with parameters of these shapes (by default, those of the first call) or its dynamic form.

        Raises ModelError if a layer does not accept the shapes.
        """
        tensors, parameters, sinks = self.built(shapes, dynamic=dynamic)
        results = {f"out{n}": tensors[ref] for n, ref in enumerate(self.results)}
        return b.model(results, inputs=parameters, sinks=sinks)

    def built(
        self, shapes: Shapes | None = None, *, dynamic: bool = False
    ) -> tuple[dict[Ref, Any], list[Any], list[Any]]:
        """Return the built outputs of all nodes, the Parameters and the Assigns."""
        tensors: dict[Ref, Any] = {}
        parameters: list[Any] = []
        sinks: list[Any] = []
        for number in range(len(self.nodes)):
            self._build(number, tensors, shapes or {}, parameters, sinks, dynamic=dynamic)
        return tensors, parameters, sinks

    def extend(self, tensors: dict[Ref, Any], first: int) -> None:
        """Build the nodes from ``first`` on, and add their outputs to those of the nodes before."""
        for number in range(first, len(self.nodes)):
            self._build(number, tensors, {}, [], [], dynamic=False)

    def _build(
        self,
        number: int,
        tensors: dict[Ref, Any],
        shapes: Shapes,
        parameters: list[Any],
        sinks: list[Any],
        *,
        dynamic: bool,
    ) -> None:
        node = self.nodes[number]
        inputs = [tensors[ref] for ref in node.inputs]
        made = self._built_node(number, node, inputs, shapes, parameters, sinks, dynamic=dynamic)
        outputs = made if isinstance(made, list) else [made[n] for n in range(len(made))]
        tensors |= {Ref(number, port): output for port, output in enumerate(outputs)}

    def _built_node(
        self,
        number: int,
        node: Node,
        inputs: list[Any],
        shapes: Shapes,
        parameters: list[Any],
        sinks: list[Any],
        *,
        dynamic: bool,
    ) -> Any:
        name = f"{node.label.replace(' ', '-')}_{number}"
        match node.kind:
            case "parameter":
                shape: Any = list(shapes.get(number, node.shape))
                if dynamic:
                    open = self.open.get(number, ())
                    shape = [node.bounds.get(n, "?") if n in open else dim for n, dim in enumerate(shape)]
                    shape = "..." if number in self.unranked else shape
                made = b.parameter(shape, node.type, name=f"in{number}")
                parameters.append(made)
                return [made.output]
            case "constant":
                if node.output is None:
                    node.output = _constant(node)
                return [node.output]
            case "layer":
                assert node.cls is not None
                opset = None if is_custom(node.cls) else node.cls.since
                function = getattr(b, node.cls.type)
                return function(*inputs, opset=opset, outputs=node.outputs, name=name, **node.attributes)
            case "If":
                return b.If(
                    *inputs, then=lambda x: _chain(node.plan[:1], x), otherwise=lambda x: _chain(node.plan[1:], x),
                    name=name,
                )  # fmt: skip
            case "state":
                return [_state(node, inputs, sinks, name)]
        return _iterated(node, inputs, name)

    def feeds(self, call: int = 0, *, shift: int = 0) -> list[np.ndarray]:
        """Return the inputs of a call, in the order of the parameters. ``shift`` chooses other numbers."""
        shapes = self.calls[call] if self.calls else {}
        arrays: list[np.ndarray] = []
        drawn: dict[Any, np.ndarray] = {}
        for number in self.parameters:
            node = self.nodes[number]
            numbers = np.random.default_rng((self.seed, number, shift, *shapes.get(number, ())))
            array = random_contents(
                Port(node.type, shapes.get(number, node.shape), node.data, domain=node.domain), numbers
            )
            if self.special and not node.domain and ELEMENT_TYPES[node.type].kind == "float" and array.size:
                array = array.copy()
                array.flat[int(numbers.integers(array.size))] = numbers.choice(self._special_numbers(node.type))
            array = np.sort(array) if node.ascending and array.ndim else array
            if self.odd and node.data is None:
                chance = numbers.random()
                array = repeated(array) if chance < _REPEATED_SHARE else array
                known = drawn.setdefault((node.type, array.shape, node.domain, node.ascending), array)
                array = known if chance > 1 - _SAME_SHARE else array
            arrays.append(array)
        return arrays

    def _special_numbers(self, type: str) -> Sequence[float]:
        """Return the numbers that inputs of a type hold: those of one kind, because huge ones hide errors of others."""
        spreads = any(node.cls is not None and "Convolution" in node.cls.type for node in self.nodes)
        huge = _NOT_FINITE if spreads else _HUGE.get(type, _NOT_FINITE)  # Winograd's method spreads errors over a tile
        kinds = (_NOT_FINITE, _NOT_FINITE, huge, _TINY.get(type, _NOT_FINITE))
        return kinds[(self.seed >> 1) % len(kinds)]

    def accepts(self, shapes: Shapes, max_elements: int = 1 << 13) -> bool:
        """Return whether all layers accept parameters of these shapes, as far as shape inference says, and no tensor
        has more than ``max_elements``."""
        try:
            tensors, _, _ = self.built(shapes)
        except (IrrunError, ValueError):
            return False
        return all(tensor.value.shape.count().lo <= max_elements for tensor in tensors.values())


_REPEATED_SHARE: Final = 0.1
_SAME_SHARE: Final = 0.5
_NOT_FINITE: Final = (np.nan, np.inf, -np.inf)
_HUGE: Final = {"f64": (1e30, -1e30), "f32": (1e30, -1e30), "bf16": (1e30, -1e30), "f16": (6e4, -6e4)}
_TINY: Final = {
    type: (0.0, -0.0, least, -9 * least)
    for type, least in (("f64", 5e-324), ("f32", 1e-45), ("f16", 6e-8), ("bf16", 1e-40))
}
"""Zeros and subnormal numbers."""


def _constant(node: Node) -> Any:
    assert node.data is not None
    if node.stored is None:
        return b.constant(node.data, node.type).output
    type, axis = ELEMENT_TYPES[node.stored.type], node.stored.axis
    low, high = (-(1 << type.bits - 1), (1 << type.bits - 1) - 1) if type.kind == "int" else (0, (1 << type.bits) - 1)
    sides = tuple(n for n in range(node.data.ndim) if n != axis)
    middle = (low + high) // 2 + 1 if node.stored.offset else 0
    largest = np.abs(node.data.astype(np.float64)).max(axis=sides, keepdims=True, initial=0.01)
    scale = largest / max(high - middle, 1)
    codes = np.clip(np.round(node.data / scale) + middle, low, high).astype(np.int64)
    output = b.Convert(b.constant(codes, type.name), destination_type=node.type)
    if node.stored.offset:
        zero = np.full(scale.shape, middle)
        output = b.Subtract(output, b.Convert(b.constant(zero, type.name), destination_type=node.type))
    return b.Multiply(output, b.constant(scale, node.type)).output


def _chain(plan: Sequence[str], x: Any) -> Any:
    for type in plan:
        x = getattr(b, type)(x)
    return x


def _state(node: Node, inputs: list[Any], sinks: list[Any], name: str) -> Any:
    """Return the sum of an input and of a variable, which the sum is assigned to."""
    (x,) = inputs
    shape = x.value.shape.static
    if shape is None:
        raise ValueError("a variable needs a static shape")
    start = b.constant(np.full(shape, 0.5), node.type)
    more = {} if node.plan[0] == "3" else {"variable_type": node.type, "variable_shape": ",".join(map(str, shape))}
    read = b.ReadValue(start, opset=int(node.plan[0]), variable_id=name, name=f"read_{name}", **more)
    mixed = b.Multiply(b.Add(b.Tanh(read), x), b.constant(np.array(0.5), node.type))
    sinks.append(b.Assign(mixed, opset=int(node.plan[0]), variable_id=name, name=f"assign_{name}"))
    return mixed.output


def _iterated(node: Node, inputs: list[Any], name: str) -> Any:
    """Return a Loop or a TensorIterator over the first axis: the value of the last iteration, and those of all."""
    (x,) = inputs
    shape = x.value.shape.static
    if not shape or not shape[0]:
        raise ValueError("a loop needs a static shape")
    start = b.constant(np.full((1, *shape[1:]), 0.25), node.type)

    def step(part: Any, total: Any) -> list[Any]:
        new = _chain(node.plan, part)
        sums = b.Multiply(b.Add(b.Tanh(total), new), b.constant(np.array(0.5), node.type))
        return [sums, b.concatenated(new)]

    if node.kind == "TensorIterator":
        return b.TensorIterator(b.sliced(x, axis=0), start, body=step, name=name)
    true = np.array(True)
    return b.Loop(
        b.constant(np.array(shape[0], np.int64)), b.constant(true), b.sliced(x, axis=0), start,
        body=lambda i, part, total: [b.constant(true), *step(part, total)], name=name,
    )  # fmt: skip
