"""Build models in Python, from the same operations that read and run them::

    from irrun import build as b

    x = b.parameter([1, 16], "f32", name="x")
    y = b.Broadcast(x, [4, 16])
    model = b.model({"y": y})

Each operation is a function named after its type. Pass inputs by position or by port name; numbers, lists and arrays
become constants. Pass attributes by keyword, under their name in the IR or in Python. ``opset`` chooses the version of
the operation (by default the newest), ``name`` is the name of the layer, and ``outputs`` the number of outputs where
the operation allows any number. Inputs or attributes that the operation refuses raise ModelError, with the line of the
call.
"""

from __future__ import annotations

import difflib
import itertools
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from irrun.diagnostics import ModelError, Refused, UnsupportedError
from irrun.inference.bind import bind
from irrun.inference.layer import infer, input_at
from irrun.inference.propagate import needed, refusal
from irrun.ir.parse import parse
from irrun.ir.write import to_xml
from irrun.model import VERSIONS, Edge, Layer, MapEntry, Model, Port
from irrun.opdef import Input, Op, Site, Value, all_ops, find, is_custom, resolve
from irrun.source import Source, Span
from irrun.types import INF, Dim, ElementType, PartialShape, type_set
from irrun.weights import Weights, pack

__all__ = [
    "If", "Loop", "Node", "Output", "TensorIterator", "concatenated", "constant", "invariant", "model", "parameter",
    "sliced",
]  # fmt: skip


# ---------------------------------------------------------------------------------------------
# nodes


@dataclass(frozen=True, eq=False)
class Output:
    """One output of a node. Pass it to other operations as an input."""

    node: Node
    index: int

    @property
    def value(self) -> Value:
        """What is known of the output: element type, shape and, if they can be inferred, contents."""
        return self.node.values[self.index]

    @property
    def type(self) -> ElementType:
        return self.value.type

    @property
    def shape(self) -> PartialShape:
        return self.value.shape

    def __repr__(self) -> str:
        return f"{self.node.layer.type}: {self.type}{self.shape}"


@dataclass(eq=False)
class Node(Sequence[Output]):
    """A layer that is being built: a sequence of its outputs. A node with one output can be used as this output."""

    layer: Layer
    """The layer without ports and id, and without a name if none was chosen: ``model`` adds them."""
    inputs: tuple[Output, ...]
    values: tuple[Value, ...] = ()
    data: np.ndarray | None = None
    """The contents of a constant; None for any other node."""
    bodies: Mapping[str, _Graph] = field(default_factory=dict)
    serial: int = field(default_factory=itertools.count().__next__)
    """A number that grows with each node. Inputs have smaller numbers than the nodes that read them."""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return [Output(self, i) for i in range(len(self))][index]

    @property
    def output(self) -> Output:
        """The only output. Raises TypeError if there are several."""
        if len(self) != 1:
            raise TypeError(f"{self.layer.type} has {len(self)} outputs; choose one by its index")
        return Output(self, 0)

    @property
    def type(self) -> ElementType:
        return self.output.type

    @property
    def shape(self) -> PartialShape:
        return self.output.shape

    def __repr__(self) -> str:
        return f"{self.layer.type}({', '.join(f'{v.type}{v.shape}' for v in self.values)})"


class _CallSite(Source):
    """The line of the script that called this module, as the place of a diagnostic."""

    def __init__(self) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        super().__init__(frame.f_code.co_filename, b"")
        self.number = frame.f_lineno

    def line(self, number: int) -> str:
        return linecache.getline(self.path, number).rstrip("\n")

    def span(self, node: int, attribute: str | None = None) -> Span:
        text = self.line(self.number)
        start = len(text) - len(text.lstrip())
        return Span(self.number, start + 1, max(len(text.rstrip()), start + 1) + 1)

    def children(self, node: int, tag: str) -> list[int]:
        return [node] if tag == "data" else []


def _layer(type: str, name: str | None, attributes: Mapping[str, str], since: int | None = 1, **more: Any) -> Layer:
    version = "extension" if since is None else f"opset{since}"
    return Layer(-1, name or "", type, version, attributes, (), (), -1, **more)


# ---------------------------------------------------------------------------------------------
# parameters and constants


def parameter(
    shape: str | PartialShape | Iterable[Any] = (), element_type: Any = "f32", *, name: str | None = None
) -> Node:
    """Return an input of the model (a Parameter).

    A dim is a number; None, -1 or ``"?"`` if it is unknown; ``"1..8"`` or ``(1, 8)`` for an interval. The shape may
    also be one text, as in a file: ``"1,3,?"``, or ``"..."`` for an unknown rank. Raises ValueError if the shape or the
    element type is invalid.
    """
    found = _shape(shape)
    known = _type(element_type)
    node = _parameter(Value(known, found), name)
    term = f"{name or 'parameter'}@{node.serial}"
    dims = found.dims and tuple(Dim(d.lo, d.hi, Dim.unknown(f"{term}[{i}]").term) for i, d in enumerate(found))
    node.values = (Value(known, PartialShape(dims)),)
    return node


def _parameter(value: Value, name: str | None = None) -> Node:
    attributes = {"shape": _shape_text(value.shape), "element_type": value.type.name}
    return Node(_layer("Parameter", name, attributes), (), (value,))


def constant(data: Any, element_type: Any = None, *, name: str | None = None) -> Node:
    """Return a constant (a Const) with the values ``data``.

    Without ``element_type``, an array keeps its own type, and Python values become i64, f32, boolean or string. Raises
    ValueError if a value does not fit ``element_type``, and TypeError if ``data`` has no matching element type.
    """
    if element_type is not None:
        return _constant(_cast(np.asarray(data), _type(element_type)), _type(element_type), name)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        known = ElementType.of(array.dtype)
        if known is None:
            raise TypeError(f"no element type is {array.dtype}")
        return _constant(array, known, name)
    array = np.asarray(data)
    return constant(array, _natural(array, _ANY), name=name)


def _constant(array: np.ndarray, element_type: ElementType, name: str | None) -> Node:
    node = Node(_layer("Const", name, {}), (), (Value.of(array, element_type),))
    node.data = array
    return node


_ANY: Final = type_set("any")
_PREFERRED: Final = {
    "i": ("i64", "i32", "f32", "f16", "bf16", "f64"), "u": ("i64", "u64", "i32"), "b": ("boolean", "u8"),
    "f": ("f32", "f16", "bf16", "f64"), "U": ("string",),
}  # fmt: skip
"""Element types for Python values, best first, by the kind of their numpy dtype."""


def _natural(array: np.ndarray, allowed: Iterable[ElementType]) -> ElementType:
    """Return the preferred element type among ``allowed`` for Python values. Raises TypeError if none can hold them."""
    kind = "i" if not array.size else array.dtype.kind
    names = {t.name: t for t in allowed}
    for name in (*_PREFERRED.get(kind, ()), *(sorted(names) if kind in "iu" else ())):
        if name in names:
            return names[name]
    raise TypeError(f"{array.tolist()!r} cannot be of type {', '.join(sorted(names))}")


def _cast(array: np.ndarray, wanted: ElementType) -> np.ndarray:
    """Return the array in another element type. Raises ValueError if an integer type cannot hold its values."""
    if wanted.kind == "string":
        return array.astype(np.str_)
    cast = array.astype(wanted.dtype)
    if wanted.is_integer and array.dtype.kind in "iuf":
        lowest, bits = (-1 << wanted.bits - 1, wanted.bits - 1) if wanted.kind == "int" else (0, wanted.bits)
        held = array.size == 0 or (array.min() >= lowest and array.max() < 1 << bits)
        if not held or (array.dtype.kind == "f" and (cast != array).any()):
            raise ValueError(f"{array.tolist()!r} does not fit {wanted}")
    return cast


def _type(given: Any) -> ElementType:
    if isinstance(given, ElementType):
        return given
    element_type = ElementType.parse(given) if isinstance(given, str) else ElementType.of(np.dtype(given))
    if element_type is None:
        raise ValueError(f"{given!r} is no element type; write it as f32 or i64")
    return element_type


def _shape(given: str | PartialShape | Iterable[Any]) -> PartialShape:
    if isinstance(given, PartialShape):
        return given
    text = given if isinstance(given, str) else ",".join(map(_dim_text, given))
    shape = PartialShape.parse(text)
    if shape is None:
        raise ValueError(f"{given!r} is no shape; write it as [1, 3, None] or '1,3,?'")
    return shape


def _dim_text(dim: Any) -> str:
    if isinstance(dim, (tuple, list)):
        return "..".join("" if n is None else str(n) for n in dim)
    return "?" if dim is None else str(dim)


def _shape_text(shape: PartialShape) -> str:
    return "..." if shape.dims is None else ",".join(map(str, shape.dims))


# ---------------------------------------------------------------------------------------------
# operations


def __getattr__(name: str) -> Callable[..., Node]:
    if name.startswith("_"):
        raise AttributeError(name)
    versions = find(name)
    if not versions or name.lower() in _ELSEWHERE:
        near = difflib.get_close_matches(name, {c.type for c in all_ops()} | set(__all__), 1)
        help = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"irrun knows no operation {_ELSEWHERE.get(name.lower(), name + help)}")
    found = partial(_operation, name)
    found.__doc__ = versions[max(versions)].__doc__
    return found


_ELSEWHERE: Final = {
    "parameter": "to build a Parameter with; write build.parameter(shape, element_type)",
    "const": "to build a Const with; write build.constant(data)",
    "result": "to build a Result with; write build.model(outputs)",
}
"""Layer types that are built by other functions of this module, with the end of the message for a wrong call."""


def __dir__() -> list[str]:
    return sorted({*__all__, *(c.type for c in all_ops() if c.type.lower() not in _ELSEWHERE)})


def _operation(
    type: str, *inputs: Any, opset: int | None = None, name: str | None = None, outputs: int | None = None, **more: Any
) -> Node:
    """Return the node of an operation. ``more`` holds attributes and inputs by name."""
    source = _CallSite()
    cls = resolve(type, opset)
    if cls is None:
        raise UnsupportedError(bind(_nowhere(source), _layer(type, name or type.lower(), {}, opset or 1))[1])
    attributes: dict[str, str] = {}
    spellings = {key: a.name for key, a in cls.attributes.items()}
    spellings |= {s: s for a in cls.attributes.values() for s in (a.name, *a.aliases)}
    given = list(inputs)
    for keyword, value in more.items():
        position = next((i for i, port in enumerate(cls.inputs) if port.name == keyword), None)
        if keyword in spellings or position is None:
            if value is not None:
                attributes[spellings.get(keyword, keyword)] = _text(value)
        elif cls.inputs[position].variadic:
            given[position:] = value
        elif position < len(inputs):
            raise TypeError(f"{cls.type} gets its input {keyword} twice")
        else:
            given += [None] * (position + 1 - len(given))
            given[position] = value
    layer = _layer(cls.type, name, attributes, None if is_custom(cls) else cls.since)
    return _node(cls, layer, _inputs(cls, given), source, outputs)


def _nowhere(source: Source) -> Model:
    """Return an empty model whose diagnostics point to ``source``."""
    return Model("", VERSIONS[-1], {}, (), {}, source)


def _node(
    cls: type[Op], layer: Layer, inputs: Sequence[Output | None], source: Source, outputs: int | None,
    bodies: Mapping[str, _Graph] | None = None,
) -> Node:  # fmt: skip
    """Bind and infer a layer, and return its node. Raises ModelError if the operation refuses it."""
    named = replace(layer, name=layer.name or layer.type.lower())  # diagnostics need a name
    where = _nowhere(source)
    op, problems = bind(where, named)
    if op is None or problems:
        raise ModelError(problems)
    values = [None if i is None else i.value for i in inputs]
    if outputs is None:
        outputs = cls.outputs if cls.outputs is not None else _OUTPUTS.get(cls.type, lambda _: 1)(values)
    try:
        if None in values:
            message = f"input {values.index(None)} is missing; in a file only the last ones can be left out"
            raise Refused(message, code="IR205")
        found = infer(op, Site(outputs, name=named.name), values, needed(op, where, layer))
    except Refused as refused:
        raise ModelError(refusal(where, named, op, refused)) from None
    return Node(layer, tuple(i for i in inputs if i is not None), found, bodies=bodies or {})


def _parts(values: Sequence[Value | None]) -> int:
    """Return the number of outputs of VariadicSplit: the number of its split lengths, or 1 if that is unknown."""
    lengths = values[2] if len(values) > 2 else None
    return (lengths and lengths.shape.count().value) or 1


_OUTPUTS: Final[dict[str, Callable[[Sequence[Value | None]], int]]] = {"VariadicSplit": _parts}
"""Functions that compute the number of outputs from the inputs, for operations where the inputs determine it."""


def _inputs(cls: type[Op], given: Sequence[Any]) -> list[Output | None]:
    """Return the inputs of an operation as outputs of nodes; None for an omitted input.

    Python values become constants, with element types that the other inputs and the operation allow.
    """
    if cls.inputs and cls.inputs[-1].variadic:
        first = len(cls.inputs) - 1
        if len(given) == first + 1 and isinstance(given[-1], (list, tuple)) and any(map(_is_output, given[-1])):
            given = [*given[:first], *given[-1]]  # accept Concat([a, b]) for Concat(a, b)
    found = [_output(item) if item is None or not _is_literal(item) else None for item in given]
    bound: dict[str, ElementType] = {}
    for position, output in enumerate(found):
        port = input_at(cls.inputs, position)
        if output is not None and port is not None and output.type.kind != "dynamic":
            bound.setdefault(port.type, output.type)
    for position, item in enumerate(given):
        if item is not None and found[position] is None:
            found[position] = _literal(cls, input_at(cls.inputs, position), item, bound)
    while found and found[-1] is None:
        found.pop()
    return found


def _literal(cls: type[Op], port: Input | None, item: Any, bound: dict[str, ElementType]) -> Output:
    """Return a Python value as a constant of the type that its port requires.

    ``bound`` holds the element types of type variables such as T, and may gain one here.
    """
    array = np.asarray(item)
    if array.dtype == object:
        raise TypeError(f"{item!r} is no input of {cls.type}")
    if port is None:  # one input too many: inference refuses it later
        return constant(array).output
    wanted = bound.get(port.type) if port.type in cls.types else None
    if wanted is None:
        wanted = _natural(array, type_set(cls.types.get(port.type, port.type)))
        bound[port.type] = wanted
    return _constant(_cast(array, wanted), wanted, None).output


def _is_output(item: Any) -> bool:
    return isinstance(item, (Node, Output))


def _is_literal(item: Any) -> bool:
    """Return whether an input is a Python value, which has no element type of its own."""
    return not isinstance(item, (Node, Output, np.ndarray, np.generic))


def _output(item: Any) -> Output | None:
    """Return a node, output, array or Python value as an output; None stays None."""
    if item is None or isinstance(item, Output):
        return item
    return (item if isinstance(item, Node) else constant(item)).output


def _some(item: Any) -> Output:
    """Return a node, output, array or Python value as an output. Raises TypeError for None."""
    output = _output(item)
    if output is None:
        raise TypeError("None is no tensor")
    return output


def _text(value: Any) -> str:
    """Return the value of an attribute as text, as IR files write it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, PartialShape):
        return _shape_text(value)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return _type(value).name
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join("?" if item is None else _text(item) for item in value)
    if isinstance(value, np.generic):
        return str(value.item())
    return str(value)


# ---------------------------------------------------------------------------------------------
# bodies


@dataclass(frozen=True, eq=False)
class sliced:  # noqa: N801  (a word of the language)
    """An input of Loop or TensorIterator of which each iteration reads the next slice along ``axis``.

    A slice has ``part_size`` elements on that axis. ``stride`` is the distance between slices, by default
    ``part_size``. To go backwards, use ``start=-1, end=0, stride=-1``.
    """

    value: Any
    axis: int = 0
    start: int = 0
    end: int = -1
    stride: int | None = None
    part_size: int = 1


@dataclass(frozen=True, eq=False)
class invariant:  # noqa: N801
    """An input of Loop or TensorIterator that is the same in every iteration."""

    value: Any


@dataclass(frozen=True, eq=False)
class concatenated:  # noqa: N801
    """Mark an output of a body: the values of all its iterations are concatenated along ``axis``.

    ``part_size`` is the dim of one value on that axis, by default the inferred dim.
    """

    value: Any
    axis: int = 0
    start: int = 0
    end: int = -1
    stride: int | None = None
    part_size: int | None = None


def If(  # noqa: N802
    cond: Any, *inputs: Any, then: Callable[..., Any], otherwise: Callable[..., Any], name: str | None = None
) -> Node:
    """Return an If: ``then(*inputs)`` if ``cond`` is true, otherwise ``otherwise(*inputs)``.

    Raises ValueError if the two functions return different numbers of outputs.
    """
    source = _CallSite()
    given = [_some(cond), *map(_some, inputs)]
    graphs: dict[str, _Graph] = {}
    maps: dict[str, tuple[MapEntry, ...]] = {}
    counts: list[int] = []
    for branch, function in (("then", then), ("else", otherwise)):
        parameters = [_parameter(Value(i.type, i.shape)) for i in given[1:]]
        results = [_some(r) for r in _several(function(*parameters))]
        graph = graphs[f"{branch}_body"] = _Graph.of(parameters, results, "If")
        counts.append(len(results))
        maps[f"{branch}_port_map"] = (
            *(MapEntry("input", 1 + i, i) for i in range(len(parameters))),
            *(MapEntry("output", i, graph.result(i)) for i in range(len(results))),
        )
    if counts[0] != counts[1]:
        raise ValueError(f"then gives {counts[0]} outputs, otherwise {counts[1]}")
    return _with_bodies("If", name, given, graphs, maps, (), counts[0], source)


def Loop(  # noqa: N802
    trip_count: Any, condition: Any, *inputs: Any, body: Callable[..., Any], name: str | None = None
) -> Node:
    """Return a Loop that runs ``body(i, *inputs)`` at most ``trip_count`` times (-1: no limit) while a condition holds.

    ``condition`` is the condition of the first iteration. The body returns the condition of the next iteration, then
    the next value of each input that is neither ``sliced`` nor ``invariant``, then any further outputs. The outputs of
    the Loop are those of the body without the condition: the value of the last iteration, or the values of all
    iterations if the body returns it ``concatenated``.
    """
    source = _CallSite()
    counter = _parameter(Value(_type("i64"), PartialShape(())))
    head = [_some(trip_count), _some(condition)]
    return _iterate("Loop", name, head, inputs, lambda *p: _several(body(counter, *p)), counter, source)


def TensorIterator(*inputs: Any, body: Callable[..., Any], name: str | None = None) -> Node:  # noqa: N802
    """Return a TensorIterator that runs ``body(*inputs)`` once for each slice of the ``sliced`` inputs.

    The body returns the next value of each input that is neither ``sliced`` nor ``invariant``, then any further
    outputs. Each output is the value of the last iteration, or the values of all iterations if the body returns it
    ``concatenated``.
    """
    return _iterate("TensorIterator", name, [], inputs, lambda *p: _several(body(*p)), None, _CallSite())


def _iterate(
    type: str, name: str | None, head: list[Output], inputs: Sequence[Any], body: Callable[..., list[Any]],
    counter: Node | None, source: Source,
) -> Node:  # fmt: skip
    """Return a Loop or TensorIterator.

    ``head`` are the inputs before ``inputs`` that do not enter the body, and ``counter`` is the Parameter of a Loop
    for the number of the iteration.
    """
    outer = [_some(i.value if isinstance(i, (sliced, invariant)) else i) for i in inputs]
    shapes = [_slice(o.shape, i) if isinstance(i, sliced) else o.shape for i, o in zip(inputs, outer)]
    carried = [k for k, i in enumerate(inputs) if not isinstance(i, (sliced, invariant))]
    extra = 0 if counter is None else 1  # a Loop has one more parameter (counter) and result (condition)
    while True:  # until the shapes of the carried values no longer change
        parameters = [_parameter(Value(o.type, shape)) for o, shape in zip(outer, shapes)]
        found = body(*parameters)
        results = [_some(r.value if isinstance(r, concatenated) else r) for r in found]
        if len(results) < extra + len(carried):
            raise ValueError(f"the body gives {len(results)} values, {extra + len(carried)} are carried around")
        wider = list(shapes)
        for result, k in zip(results[extra:], carried):
            wider[k] = _widened(shapes[k], result.shape)
        if all(a is b for a, b in zip(wider, shapes)):
            break
        shapes = wider
    graph = _Graph.of([*([counter] if counter else []), *parameters], results, type)
    entries = [MapEntry("input", None, 0, purpose="current_iteration")] if counter else []
    for k, item in enumerate(inputs):
        entries.append(MapEntry("input", len(head) + k, extra + k, **_slicing(item)))
    for k, item in enumerate(found[extra:]):
        entries.append(MapEntry("output", k, graph.result(extra + k), **_slicing(item)))
    if counter:
        entries.append(MapEntry("output", None, graph.result(0), purpose="execution_condition"))
    back_edges = tuple((graph.result(extra + n), extra + k) for n, k in enumerate(carried))
    given = [*head, *outer]
    return _with_bodies(
        type, name, given, {"body": graph}, {"port_map": tuple(entries)}, back_edges, len(found) - extra, source
    )


def _slice(shape: PartialShape, item: sliced) -> PartialShape:
    """Return the shape of one slice."""
    return shape if shape.dims is None else shape.replace(item.axis, item.part_size)


def _slicing(item: Any) -> dict[str, Any]:
    """Return the fields of a MapEntry that describe slices; none for an item that is not cut into slices."""
    if not isinstance(item, (sliced, concatenated)):
        return {}
    size = item.part_size
    if size is None:
        shape = _some(item.value).shape
        size = (shape[item.axis].value if shape.dims else None) or 1
    stride = size if item.stride is None else item.stride
    return {"axis": item.axis, "start": item.start, "end": item.end, "stride": stride, "part_size": size}


def _widened(before: PartialShape, after: PartialShape) -> PartialShape:
    """Return a shape that includes ``before``, the shape in one iteration, and ``after``, the shape in the next.

    It is the object ``before`` if that includes ``after``.
    """
    if before.dims is None:
        return before
    if after.dims is None or len(after.dims) != len(before.dims):
        return PartialShape(None)
    fits = [a.same(b) or (a.lo <= b.lo and b.hi <= a.hi) for a, b in zip(before, after)]
    if all(fits):
        return before
    return PartialShape(tuple(a if fit else Dim(0, INF) for a, fit in zip(before, fits)))


def _with_bodies(
    type: str, name: str | None, given: Sequence[Output], graphs: Mapping[str, _Graph],
    maps: Mapping[str, tuple[MapEntry, ...]], back_edges: tuple[tuple[int, int], ...], outputs: int, source: Source,
) -> Node:  # fmt: skip
    """Return the node of an If, Loop or TensorIterator. Its bodies are assembled here only to infer the node."""
    cls = resolve(type, None)
    assert cls is not None
    blob = _Blob()
    bodies = {tag: graph.assemble(blob, source) for tag, graph in graphs.items()}
    weights = Weights(data=bytes(blob.data))
    bodies = {tag: _with_weights(body, weights) for tag, body in bodies.items()}
    layer = _layer(type, name, {}, cls.since, bodies=bodies, maps=maps, back_edges=back_edges)
    return _node(cls, layer, given, source, outputs, graphs)


def _with_weights(model: Model, weights: Weights) -> Model:
    layers = {
        id: replace(layer, bodies={tag: _with_weights(body, weights) for tag, body in layer.bodies.items()})
        for id, layer in model.layers.items()
    }
    return replace(model, layers=layers, weights=weights)


def _several(results: Any) -> list[Any]:
    """Return what a body returned as a list."""
    return list(results) if isinstance(results, (tuple, list, Node)) else [results]


# ---------------------------------------------------------------------------------------------
# models


def model(
    outputs: Any, *, inputs: Sequence[Node] | None = None, sinks: Sequence[Node] = (), name: str = "model"
) -> Model:
    """Return the model that computes ``outputs``: one output, a sequence of them, or a mapping from names to outputs.

    ``inputs`` are the parameters of the model in order; by default, all that it uses, in the order of their creation.
    ``sinks`` are nodes that must be computed although no output depends on them (Assign). Raises ValueError if the
    outputs depend on a parameter that ``inputs`` leaves out, or if two layers have the same name.
    """
    named: dict[str, Any] | None = dict(outputs) if isinstance(outputs, Mapping) else None
    results = [_some(o) for o in (named.values() if named is not None else _several(outputs))]
    parameters = list(inputs) if inputs is not None else None
    graph = _Graph.of(parameters, results, None, sinks)
    blob = _Blob()
    made = graph.assemble(blob, Source("<built>", b""), list(named) if named is not None else None)
    text = to_xml(replace(made, name=name))
    parsed = parse(Source("<built>", text), Weights(data=bytes(blob.data)))
    if errors := [p for p in parsed.problems if p.severity == "error"]:
        raise ModelError(errors)
    return parsed.model


class _Blob:
    """A .bin that grows in memory. Equal bytes are stored once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._offsets: dict[bytes, int] = {}

    def add(self, raw: bytes) -> int:
        """Store bytes and return their offset, a multiple of 64."""
        if raw not in self._offsets:
            self.data += bytes(-len(self.data) % 64)
            self._offsets[raw] = len(self.data)
            self.data += raw
        return self._offsets[raw]


@dataclass(frozen=True, eq=False)
class _Graph:
    """The nodes on which some results depend.

    The id of a layer is its position in ``nodes``, where the parameters come first. The ids of the Results follow.
    """

    nodes: tuple[Node, ...]
    results: tuple[Output, ...]

    @staticmethod
    def of(
        parameters: Sequence[Node] | None, results: Sequence[Output], owner: str | None, sinks: Sequence[Node] = ()
    ) -> _Graph:
        """Return the graph of ``results`` and ``sinks``. ``owner`` is the layer type if it is the graph of a body.

        Raises ValueError if it depends on a parameter that is not among ``parameters``.
        """
        found: dict[int, Node] = {}
        stack = [*(r.node for r in results), *sinks]
        while stack:
            node = stack.pop()
            if id(node) not in found:
                found[id(node)] = node
                stack += (i.node for i in node.inputs)
        nodes = sorted(found.values(), key=lambda n: n.serial)
        own = [n for n in nodes if n.layer.type == "Parameter"]
        if parameters is not None:
            for node in own:
                if not any(node is p for p in parameters):
                    what = f'parameter "{node.layer.name}"' if node.layer.name else "a parameter"
                    if owner is None:
                        raise ValueError(f"the outputs follow from {what}, which is not among the inputs")
                    raise ValueError(f"the body of {owner} uses {what} of the model around it; hand it in as an input")
            own = list(parameters)
        return _Graph((*own, *(n for n in nodes if n.layer.type != "Parameter")), tuple(results))

    @cached_property
    def ids(self) -> dict[int, int]:
        return {id(node): number for number, node in enumerate(self.nodes)}

    def result(self, position: int) -> int:
        """Return the id of the Result at ``position``."""
        return len(self.nodes) + position

    def assemble(self, blob: _Blob, source: Source, names: Sequence[str] | None = None) -> Model:
        """Return the graph as a model, and add its constants to ``blob``. ``names`` are the names of the outputs."""
        layers: dict[int, Layer] = {}
        edges: list[Edge] = []
        feeds: dict[int, tuple[tuple[int, int] | None, ...]] = {}
        called = {id(r.node): {} for r in self.results}
        for name, result in zip(names or (), self.results):
            called[id(result.node)].setdefault(result.index, name)
        taken: set[str] = set()
        for node in self.nodes:
            if node.layer.name in taken:
                raise ValueError(f'two layers are called "{node.layer.name}"')
            taken |= {node.layer.name} - {""}
        for number, node in enumerate(self.nodes):
            own = node.layer.name or _free(f"{node.layer.type.lower()}_{number}", taken)
            ports = tuple(_port(i, o.value) for i, o in enumerate(node.inputs))
            tensors = called.get(id(node), {})
            outputs = tuple(
                _port(len(ports) + i, value, _tensor_names(node, i, tensors.get(i)))
                for i, value in enumerate(node.values)
            )
            bodies = {tag: graph.assemble(blob, source) for tag, graph in node.bodies.items()}
            layer = replace(node.layer, id=number, name=own, inputs=ports, outputs=outputs, bodies=bodies)
            if node.data is not None:
                layer = replace(layer, attributes=_stored(blob, node.data, node.values[0]))
            layers[number] = layer
            feeds[number] = tuple((self.ids[id(i.node)], i.index) for i in node.inputs)
            edges += self._edges(number, node.inputs)
        for position, result in enumerate(self.results):
            number = self.result(position)
            own = _free(f"{names[position]}/result" if names else f"result_{position}", taken)
            output_names = (names[position],) if names else ()
            layers[number] = Layer(
                number, own, "Result", "opset1", {}, (_port(0, result.value),), (), -1, output_names=output_names
            )
            feeds[number] = ((self.ids[id(result.node)], result.index),)
            edges += self._edges(number, [result])
        return Model("", VERSIONS[-1], layers, tuple(edges), feeds, source)

    def _edges(self, number: int, inputs: Sequence[Output]) -> Iterator[Edge]:
        """Yield the edges that lead to the layer with id ``number``."""
        for position, output in enumerate(inputs):
            yield Edge(self.ids[id(output.node)], len(output.node.inputs) + output.index, number, position, -1)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not ``taken``, with underscores appended if necessary, and add it to ``taken``."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _tensor_names(node: Node, index: int, called: str | None) -> tuple[str, ...]:
    """Return the tensor names of an output: ``called``, and the name of a layer that has only this output."""
    own = node.layer.name if len(node) == 1 else ""
    return tuple(dict.fromkeys(n for n in (called, own) if n))


def _port(id: int, value: Value, names: tuple[str, ...] = ()) -> Port:
    return Port(id, value.type, value.shape if value.shape.dims else None, names, -1)


def _stored(blob: _Blob, data: np.ndarray, value: Value) -> dict[str, str]:
    """Add the contents of a constant to ``blob``, and return the attributes of its layer."""
    raw = pack(data, value.type)
    return {
        "element_type": value.type.name,
        "shape": _shape_text(value.shape),
        "offset": str(blob.add(raw)),
        "size": str(len(raw)),
    }
