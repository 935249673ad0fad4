"""A stand-in for the part of the ``openvino`` package that reads, reshapes, compiles and runs models.

It runs models with irrun, for tests of code that uses openvino where no openvino wheel exists. ``install()`` makes
``import openvino`` return this module. ``python -m irrun.compat.openvino SCRIPT`` does so and runs a script. Other
parts of openvino raise NotCovered. Devices and properties are accepted and ignored. ``start_async`` returns after
the run is complete and the callback has been called.
"""

from __future__ import annotations

import importlib
import importlib.abc
import runpy
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

import irrun.api as api
import irrun.types as types
from irrun.diagnostics import Diagnostic, IrrunError
from irrun.inference.propagate import declared
from irrun.ir.parse import parse
from irrun.model import Layer
from irrun.model import Model as Graph
from irrun.running.executor import Executable
from irrun.source import Source
from irrun.types import ELEMENT_TYPES, INF, ElementType
from irrun.weights import Weights

__all__ = [
    "AsyncInferQueue", "CompiledModel", "ConstOutput", "Core", "Dimension", "InferRequest", "Model", "NotCovered",
    "OVDict", "Output", "PartialShape", "Shape", "Tensor", "Type", "compile_model", "get_version", "install",
]  # fmt: skip

__path__: list[str] = []  # makes this module a package, so that `import openvino.x` reaches _Finder


class OpenVINOError(IrrunError, RuntimeError):
    """An error that openvino raises as a RuntimeError."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        RuntimeError.__init__(self, message)
        self.diagnostics = diagnostics


class NotCovered(IrrunError, NotImplementedError):  # noqa: N818
    """The error for a part of openvino that this module does not cover.

    For a missing attribute it is also an AttributeError, and for a missing module an ImportError.
    """

    def __init__(self, what: str) -> None:
        Exception.__init__(self, f"irrun.compat.openvino does not cover {what}")
        self.diagnostics = ()


class NotCoveredAttribute(NotCovered, AttributeError):  # noqa: N818
    """The error for an attribute of a module or class that is not covered."""


class NotCoveredModule(NotCovered, ImportError):  # noqa: N818
    """The error for a module of openvino that is not covered."""


def __getattr__(name: str) -> Any:
    if name == "runtime":  # before version 2026, code used openvino.runtime
        return sys.modules[__name__]
    raise NotCoveredAttribute(f"openvino.{name}")


class _Covered:
    """Base of the classes here: an attribute that is not covered raises NotCoveredAttribute."""

    def __getattr__(self, name: str) -> NoReturn:
        raise NotCoveredAttribute(f"{type(self).__name__}.{name}")


def _error(error: IrrunError) -> OpenVINOError:
    return OpenVINOError(str(error), error.diagnostics)


# ---------------------------------------------------------------------------------------------
# types, dims and shapes


class Type(_Covered):
    """An element type: ``Type.f32``, or ``Type(np.float32)`` for that of a numpy type."""

    _all: ClassVar[dict[str, Type]] = {}
    _own: ElementType

    def __new__(cls, dtype: Any) -> Type:
        found = ElementType.of(np.dtype("U") if np.dtype(dtype).kind == "S" else np.dtype(dtype))
        if found is None:
            raise OpenVINOError(f"no element type has the numpy type {dtype!r}")
        return _type(found)

    def get_type_name(self) -> str:
        return self._own.name

    to_string = get_type_name
    type_name = property(get_type_name)

    def to_dtype(self) -> np.dtype:
        """Return the numpy dtype of a Tensor's data.

        Types that numpy lacks are shown as raw bits: bf16 as float16, smaller types as int8 or uint8. Raises
        IndexError for the dynamic type.
        """
        own = self._own
        if own.kind == "dynamic":
            raise IndexError("dynamic has no numpy type")
        if own.kind == "string":
            return np.dtype("S")
        if own.name == "bf16":
            return np.dtype(np.float16)
        if own.dtype.isbuiltin == 2 or own.name == "nf4":
            return np.dtype(np.int8 if own.kind == "int" else np.uint8)
        return own.dtype

    def get_bitwidth(self) -> int:
        return 256 if self._own.kind == "string" else self._own.bits

    def get_size(self) -> int:
        return (self.get_bitwidth() + 7) // 8

    bitwidth, size = property(get_bitwidth), property(get_size)

    def is_real(self) -> bool:
        return self._own.kind == "float" and self._own.name != "nf4"

    def is_integral(self) -> bool:
        return not self.is_real()

    def is_static(self) -> bool:
        return self._own.kind != "dynamic"

    def is_dynamic(self) -> bool:
        return not self.is_static()

    def __reduce__(self) -> str | tuple[Any, ...]:
        return getattr, (Type, self._own.name)

    def __repr__(self) -> str:
        own = self._own
        if own.name in ("nf4", "string", "dynamic", "boolean") or own.name.startswith(("f8", "f4")):
            name = {"nf4": "nfloat4", "boolean": "char"}.get(own.name, own.name)
        elif own.is_integer:
            name = f"{own.kind}{own.bits}_t"
        else:
            name = {"f64": "double64", "bf16": "bfloat16"}.get(own.name, f"float{own.bits}")
        return f"<Type: '{name}'>"


def _type(own: ElementType) -> Type:
    return Type._all[own.name]


for _own in ELEMENT_TYPES.values():
    _made = Type._all[_own.name] = object.__new__(Type)
    _made._own = _own
    setattr(Type, _own.name, _made)


class Dimension(_Covered):
    """A dim: ``Dimension()`` is any size, ``Dimension(2)`` is 2, ``Dimension(2, 5)`` is 2 to 5 (-1: no upper bound)."""

    def __init__(self, least: Any = None, most: int | None = None) -> None:
        if isinstance(least, Dimension):
            self._own = least._own
        elif isinstance(least, str):
            self._own = _parse(least)[0]._own
        elif least is None or (least == -1 and most is None):
            self._own = types.Dim.unknown()
        else:
            self._own = types.Dim(max(least, 0), INF if most == -1 else least if most is None else most)

    is_static = property(lambda self: self._own.is_static)
    is_dynamic = property(lambda self: not self._own.is_static)

    @staticmethod
    def dynamic() -> Dimension:
        return Dimension()

    def get_length(self) -> int:
        if not self._own.is_static:
            raise OpenVINOError(f"dimension {self} is dynamic and has no length")
        return self._own.lo

    def get_min_length(self) -> int:
        return self._own.lo

    def get_max_length(self) -> int:
        return -1 if self._own.hi == INF else self._own.hi

    min_length, max_length = property(get_min_length), property(get_max_length)

    def compatible(self, other: Any) -> bool:
        return self._own.meet(_dimension(other)._own) is not None

    def to_string(self) -> str:
        return str(self._own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (int, np.integer, Dimension)) and self._own == _dimension(other)._own

    __hash__ = None  # type: ignore[assignment]
    __str__ = to_string

    def __repr__(self) -> str:
        return f"<Dimension: {self}>"


def _dimension(given: Any) -> Dimension:
    if isinstance(given, Dimension):
        return given
    if isinstance(given, (tuple, list)):
        return Dimension(*given)
    return Dimension(given if isinstance(given, str) else int(given))


class Shape(list[int]):
    """A shape whose dims are all known, as a list of ints."""

    def __init__(self, dims: Iterable[int] | str = ()) -> None:
        if isinstance(dims, str):
            dims = PartialShape(dims).to_shape()
        super().__init__(int(d) for d in dims)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Shape(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartialShape):
            return other == self
        return isinstance(other, (list, tuple)) and list(self) == list(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def to_string(self) -> str:
        return f"[{','.join(map(str, self))}]"

    __str__ = to_string

    def __repr__(self) -> str:
        return f"<Shape: {self}>"


class PartialShape(_Covered):
    """A shape whose dims may be unknown.

    It is made from a list of ints, pairs and Dimensions, or from text such as ``"?,3,1..8"``.
    """

    _dims: list[Dimension] | None

    def __init__(self, dims: Any) -> None:
        if isinstance(dims, PartialShape):
            self._dims = None if dims._dims is None else list(dims._dims)
        elif isinstance(dims, str):
            self._dims = _parse(dims)._dims
        else:
            self._dims = [_dimension(d) for d in dims]

    @staticmethod
    def dynamic(rank: int | Dimension | None = None) -> PartialShape:
        rank = rank if rank is None else _dimension(rank).get_length()
        return _shape(types.UNKNOWN_RANK if rank is None else types.PartialShape.of_rank(rank))

    @property
    def _own(self) -> types.PartialShape:
        return types.UNKNOWN_RANK if self._dims is None else types.PartialShape.of(d._own for d in self._dims)

    is_static = property(lambda self: self._own.is_static)
    is_dynamic = property(lambda self: not self._own.is_static)
    rank = property(lambda self: Dimension() if self._dims is None else Dimension(len(self._dims)))

    def to_shape(self) -> Shape:
        static = self._own.static
        if static is None:
            raise OpenVINOError(f"shape {self} is dynamic, so it is no Shape")
        return Shape(static)

    get_shape = to_shape

    def get_min_shape(self) -> Shape:
        return Shape(d.get_min_length() for d in self)

    def get_max_shape(self) -> Shape:
        return Shape(sys.maxsize if d.get_max_length() == -1 else d.get_max_length() for d in self)

    def get_dimension(self, axis: int) -> Dimension:
        return self[axis]

    def compatible(self, other: Any) -> bool:
        return self._own.meet(PartialShape(other)._own) is not None

    def to_string(self) -> str:
        return str(self._own)

    def _known(self) -> list[Dimension]:
        if self._dims is None:
            raise OpenVINOError("the rank of the shape is dynamic")
        return self._dims

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._known())

    def __getitem__(self, key: Any) -> Any:
        try:
            found = self._known()[key]
        except IndexError as error:
            raise OpenVINOError(f"shape {self} has no axis {key}") from error
        return PartialShape(found) if isinstance(key, slice) else found

    def __setitem__(self, axis: int, dim: Any) -> None:
        self._known()[axis] = _dimension(dim)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (PartialShape, list, tuple)) and self._own == PartialShape(other)._own

    __hash__ = None  # type: ignore[assignment]
    __str__ = to_string

    def __repr__(self) -> str:
        return f"<PartialShape: {self}>"


def _shape(own: types.PartialShape) -> PartialShape:
    found = PartialShape([])
    found._dims = None if own.dims is None else [_dim(d) for d in own.dims]
    return found


def _dim(own: types.Dim) -> Dimension:
    found = Dimension()
    found._own = types.Dim(own.lo, own.hi)
    return found


def _parse(text: str) -> PartialShape:
    own = types.PartialShape.parse(text.strip().removeprefix("[").removesuffix("]"))
    if own is None:
        raise OpenVINOError(f"{text!r} is no shape")
    return _shape(own)


# ---------------------------------------------------------------------------------------------
# tensors


class Tensor(_Covered):
    """An array with an element type.

    It is made from an array (copied unless ``shared_memory``), from a list, or from a Type and a shape, which give
    zeros. With a shape and a Type, the bytes of an array are reinterpreted as that type.
    """

    def __init__(self, *args: Any, shared_memory: bool = False, **kwargs: Any) -> None:
        names = ("array", "shape", "type") if args and not _is_type(args[0]) else ("type", "shape")
        if "shared_memory" not in kwargs and len(args) == 2 and isinstance(args[1], bool):
            args, shared_memory = args[:1], args[1]
        given = dict(zip(names, args)) | {"type" if k == "element_type" else k: v for k, v in kwargs.items()}
        if unknown := given.keys() - {"array", "shape", "type"}:
            raise NotCovered(f"Tensor({', '.join(sorted(unknown))}=…)")
        element_type = given.get("type")
        if element_type is not None and not isinstance(element_type, Type):
            element_type = Type(element_type)
        array, shape = given.get("array"), given.get("shape")
        if array is None:
            assert element_type is not None
            self.element_type = _whole(element_type)
            words = self.element_type is _STRING
            self._data = np.zeros(tuple(shape or ()), np.dtype("U1") if words else self.element_type.to_dtype())
            return
        if isinstance(array, Tensor):
            self.element_type, self._data = array.element_type, array._data
            return
        if not isinstance(array, (np.ndarray, list)):
            raise TypeError(f"a Tensor is made of an array, a list or a Type, not of {type(array).__name__}")
        data = np.asarray(array)
        self.element_type = _whole(element_type or Type(data.dtype))
        if shared_memory and not data.flags.c_contiguous:
            raise OpenVINOError("only a C contiguous array can be shared")
        if self.element_type is _STRING:
            self._data = np.char.decode(data, "utf-8") if data.dtype.kind == "S" else data.astype(np.str_)
            return
        if not shared_memory or not isinstance(array, np.ndarray):
            data = np.array(data, order="C")
        dtype = self.element_type.to_dtype()
        if data.dtype != dtype:
            if element_type is None and data.dtype.isbuiltin != 2:
                raise OpenVINOError(f"{data.dtype} is in no byte order of this machine")
            data = data.reshape(-1).view(dtype).reshape(data.shape if shape is None else tuple(shape))
        self._data = data if shape is None else data.reshape(-1)[: int(np.prod(tuple(shape)))].reshape(tuple(shape))

    @property
    def data(self) -> np.ndarray:
        """The tensor's own memory. For strings, a new array of UTF-8 bytes."""
        return np.char.encode(self._data, "utf-8") if self.element_type is _STRING else self._data

    @property
    def str_data(self) -> np.ndarray:
        return self._text()

    @str_data.setter
    def str_data(self, words: Any) -> None:
        self._text()
        self._data = np.asarray(words, np.str_).reshape(self._data.shape)

    @property
    def bytes_data(self) -> np.ndarray:
        return np.char.encode(self._text(), "utf-8")

    def _text(self) -> np.ndarray:
        if self.element_type is not _STRING:
            raise OpenVINOError(f"the tensor holds {self.element_type.type_name}, not strings")
        return self._data

    def get_shape(self) -> Shape:
        return Shape(self._data.shape)

    def set_shape(self, shape: Iterable[int]) -> None:
        wanted = tuple(shape)
        if wanted != self._data.shape:
            self._data = np.resize(self._data, wanted) if self._data.size else np.zeros(wanted, self._data.dtype)

    shape = property(get_shape, set_shape)
    size = property(lambda self: self._data.size)
    byte_size = property(lambda self: self._data.nbytes)
    strides = property(lambda self: self._data.strides)

    def get_element_type(self) -> Type:
        return self.element_type

    def get_size(self) -> int:
        return self._data.size

    def get_byte_size(self) -> int:
        return self._data.nbytes

    def get_strides(self) -> tuple[int, ...]:
        return self._data.strides

    def is_continuous(self) -> bool:
        return self._data.flags.c_contiguous

    def copy_to(self, other: Tensor) -> None:
        other.set_shape(self._data.shape)
        other._write(self._data)

    def copy_from(self, other: Tensor) -> None:
        other.copy_to(self)

    def _array(self) -> np.ndarray:
        """Return the values in irrun's dtype: bf16 and f8 as views in their ml_dtypes types."""
        own = self.element_type._own
        return self._data.view(own.dtype) if own.dtype.isbuiltin == 2 else self._data

    def _write(self, array: np.ndarray) -> None:
        """Copy the values of an array into the tensor's memory, cast to its type. The tensor gets the array's shape."""
        self.set_shape(array.shape)
        if self.element_type is _STRING:
            self._data = array.astype(np.str_)
        elif array.dtype.isbuiltin == 2:  # bf16 and f8 are stored as raw bits
            self._data[...] = array.view(self._data.dtype)
        else:
            with np.errstate(all="ignore"):
                np.copyto(self._data, array, casting="unsafe")

    def __repr__(self) -> str:
        return f"<Tensor: shape{self.shape} type: {self.element_type.type_name}>"


_STRING = Type._all["string"]


def _is_type(given: Any) -> bool:
    return isinstance(given, (Type, type, np.dtype))


def _whole(element_type: Type) -> Type:
    """Return the element type. Raises NotCovered for types of less than 8 bits."""
    if 0 < element_type._own.bits < 8:
        raise NotCovered(f"tensors of {element_type.type_name}")
    return element_type


# ---------------------------------------------------------------------------------------------
# models


class _Node(_Covered):
    """The layer of a port, which offers only its name and type."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    def get_friendly_name(self) -> str:
        return self._layer.name

    def get_type_name(self) -> str:
        return "Constant" if self._layer.type == "Const" else self._layer.type

    friendly_name, name = property(get_friendly_name), property(get_friendly_name)

    def __repr__(self) -> str:
        return f"<{self.get_type_name()}: '{self._layer.name}'>"


class _Port(_Covered):
    """An input or output of a model. Ports are equal if they are the same port of the same Executable."""

    def __init__(
        self, executable: Executable, layer: Layer, position: int, names: Iterable[str], inside: tuple[int, int]
    ) -> None:
        value = executable.plan.values[inside]
        self._executable, self._layer, self._position = executable, layer, position
        self._names, self._shape = frozenset(names), value.shape
        self._inside = value.type
        self._type = _type(
            _at_boundary(value.type, bool(layer.inputs)) if executable.model.version == 10 else value.type
        )

    index = property(lambda self: 0)
    names = property(lambda self: set(self._names))
    element_type = property(lambda self: self._type)
    partial_shape = property(lambda self: _shape(self._shape))
    shape = property(lambda self: self.partial_shape.to_shape())
    any_name = property(lambda self: self.get_any_name())
    node = property(lambda self: _Node(self._layer))

    def get_any_name(self) -> str:
        if not self._names:
            raise OpenVINOError(f'the port of "{self._layer.name}" has no name')
        return min(self._names)

    def get_names(self) -> set[str]:
        return self.names

    def get_element_type(self) -> Type:
        return self._type

    def get_partial_shape(self) -> PartialShape:
        return self.partial_shape

    def get_shape(self) -> Shape:
        return self.shape

    def get_index(self) -> int:
        return 0

    def get_node(self) -> _Node:
        return self.node

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == cast(_Port, other)._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int]:
        return id(self._executable), self._layer.id

    def __repr__(self) -> str:
        names = ", ".join(sorted(self._names))
        return f"<{type(self).__name__}: names[{names}] shape{self._shape} type: {self._type.type_name}>"


def _at_boundary(own: ElementType, output: bool) -> ElementType:
    """Return the type that an input or output of an IR v10 model has for users; ``own`` is its type in the model."""
    if not output:
        return ELEMENT_TYPES["f32" if own.name == "f16" else own.name]
    return ELEMENT_TYPES["i32" if own.name in ("i32", "i64", "u32", "u64") else "f32"]


class Output(_Port):
    """A port of a Model."""


class ConstOutput(_Port):
    """A port of a CompiledModel. Its outputs are the keys of results."""


class _Ports(_Covered):
    """Base of Model and CompiledModel: access to inputs and outputs by position or name."""

    inputs: list[Any]
    outputs: list[Any]

    def input(self, key: int | str | None = None) -> Any:
        return _find(self.inputs, key, "input")

    def output(self, key: int | str | None = None) -> Any:
        return _find(self.outputs, key, "output")

    def __repr__(self) -> str:
        rows = [[f"{p!r}" for p in ports] for ports in (self.inputs, self.outputs)]
        inputs, outputs = (",\n".join(row) for row in rows)
        return f"<{type(self).__name__}:\ninputs[\n{inputs}\n]\noutputs[\n{outputs}\n]>"


def _find(ports: Sequence[_Port], key: Any, what: str) -> Any:
    """Return the port with this name or position; without a key, the only port."""
    if key is None:
        if len(ports) != 1:
            raise OpenVINOError(f"the model has {len(ports)} {what}s: say which")
        return ports[0]
    if isinstance(key, str):
        for port in ports:
            if key in port._names:
                return port
        known = ", ".join(sorted(name for port in ports for name in port._names))
        raise OpenVINOError(f"no {what} of the model is called {key!r}; there are {known}")
    if not 0 <= key < len(ports):
        raise IndexError(f"{what} {key} of {len(ports)}")
    return ports[key]


def _ports(executable: Executable, kind: type[_Port]) -> tuple[list[Any], list[Any]]:
    """Return the inputs and the outputs of a model, as ports of this class."""
    graph, compiled = executable.model, kind is ConstOutput

    def names(own: Iterable[str], layer: Layer, port: str = "") -> Iterable[str]:
        if graph.version == 10:  # in IR v10, the name of a layer is a name of its ports, too
            return (*own, layer.name + port)
        return own or ((layer.name,) if compiled else ())

    inputs = [kind(executable, p, i, names(p.outputs[0].names, p), (p.id, 0)) for i, p in enumerate(graph.parameters)]
    outputs = []
    for i, result in enumerate(graph.results):
        feed, fed = graph.feeds[result.id][0], graph.fed_by(result, 0)
        assert feed is not None
        assert fed is not None
        found = tuple(dict.fromkeys((*result.output_names, *fed[1].names)))
        known_by = fed[0] if graph.version == 10 else result
        port = f".{feed[1]}" if len(fed[0].outputs) > 1 else ""
        outputs.append(kind(executable, result, i, names(found, known_by, port), feed))
    return inputs, outputs


class Model(_Ports):
    """A model as it was read. ``reshape`` changes the shapes of its inputs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        graph = args[0] if args else None
        if not isinstance(graph, Graph):
            raise NotCovered("building a Model")
        self._name = self.friendly_name = graph.name
        self._take(graph)

    def _take(self, graph: Graph) -> None:
        try:
            self._executable = api.compile(graph)
        except IrrunError as error:
            raise _error(error) from error
        self.inputs, self.outputs = _ports(self._executable, Output)

    name = property(lambda self: self._name)
    dynamic = property(lambda self: self.is_dynamic())

    def get_name(self) -> str:
        return self._name

    def get_friendly_name(self) -> str:
        return self.friendly_name

    def set_friendly_name(self, name: str) -> None:
        self.friendly_name = name

    def is_dynamic(self) -> bool:
        return any(not v.shape.is_static for v in self._executable.plan.values.values())

    def get_ops(self) -> list[_Node]:
        return [_Node(layer) for layer in self._executable.model.layers.values()]

    def get_ordered_ops(self) -> list[_Node]:
        graph = self._executable.model
        return [_Node(graph.layers[id]) for id in graph.order]

    def get_parameters(self) -> list[_Node]:
        return [_Node(layer) for layer in self._executable.model.parameters]

    def get_results(self) -> list[_Node]:
        return [_Node(layer) for layer in self._executable.model.results]

    parameters, results = property(get_parameters), property(get_results)

    def clone(self) -> Model:
        copy = Model(self._executable.model)
        copy.friendly_name = self.friendly_name
        return copy

    def reshape(self, shapes: Any, variables_shapes: Any = None) -> None:
        """Change the shapes of inputs and infer the model again.

        ``shapes`` is the shape of the only input, or a mapping from names, positions or ports to shapes. Raises
        OpenVINOError if the model cannot take the shapes.
        """
        if variables_shapes:
            raise NotCovered("Model.reshape(variables_shapes=…)")
        if not isinstance(shapes, Mapping):
            self.input()  # raises unless there is exactly one
            shapes = {0: shapes}
        graph = self._executable.model
        layers = dict(graph.layers)
        for key, shape in shapes.items():
            port = key if isinstance(key, _Port) else self.input(key)
            own = PartialShape(shape)._own
            layer = layers[port._layer.id]
            text = str(own)[1:-1]
            output = replace(layer.outputs[0], shape=own)
            layers[layer.id] = replace(layer, attributes={**layer.attributes, "shape": text}, outputs=(output,))
        self._take(replace(graph, layers=layers))


class CompiledModel(_Ports):
    """A model ready to run. All calls of the object use the same InferRequest."""

    def __init__(self, model: Model) -> None:
        self._executable, self._name = model._executable, model.friendly_name
        self.inputs, self.outputs = _ports(self._executable, ConstOutput)
        self._request: InferRequest | None = None

    def create_infer_request(self) -> InferRequest:
        return InferRequest(self)

    def infer_new_request(self, inputs: Any = None) -> OVDict:
        return self.create_infer_request().infer(inputs)

    def __call__(
        self, inputs: Any = None, share_inputs: bool = True, share_outputs: bool = False, *, decode_strings: bool = True
    ) -> OVDict:
        return self._kept().infer(inputs, share_inputs, share_outputs, decode_strings=decode_strings)

    def query_state(self) -> list[VariableState]:
        return self._kept().query_state()

    def reset_state(self) -> None:
        self._kept().reset_state()

    def release_memory(self) -> None:
        pass

    def get_property(self, name: str) -> Any:
        known = {"NETWORK_NAME": self._name, "OPTIMAL_NUMBER_OF_INFER_REQUESTS": 1, "EXECUTION_DEVICES": ["CPU"]}
        if name not in known:
            raise NotCovered(f"property {name}")
        return known[name]

    def _kept(self) -> InferRequest:
        if self._request is None:
            self._request = self.create_infer_request()
        return self._request

    def _own_executable(self) -> Executable:
        """Return the Executable for a request. If the model has state, each request gets its own."""
        if not any("variables" in step.needed for step in self._executable.plan.steps):
            return self._executable
        return api.compile(self._executable.model)


class OVDict(Mapping[Any, np.ndarray]):
    """The results of a run: a mapping by port. Positions and names are also accepted as keys."""

    def __init__(self, arrays: dict[ConstOutput, np.ndarray]) -> None:
        self._arrays = arrays

    def __getitem__(self, key: Any) -> np.ndarray:
        if isinstance(key, ConstOutput):
            return self._arrays[key]
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise KeyError(key)
            return self.to_tuple()[key]
        if isinstance(key, str):
            for port, array in self._arrays.items():
                if key in port._names:
                    return array
            raise KeyError(key)
        raise TypeError(f"a result is known by port, position or name, not by {type(key)}")

    def __iter__(self) -> Iterator[ConstOutput]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return repr(self._arrays)

    def names(self) -> tuple[set[str], ...]:
        return tuple(port.names for port in self._arrays)

    def to_dict(self) -> dict[ConstOutput, np.ndarray]:
        return self._arrays

    def to_tuple(self) -> tuple[np.ndarray, ...]:
        return tuple(self._arrays.values())


class VariableState(_Covered):
    """A state variable of a request."""

    def __init__(self, executable: Executable, name: str, first: np.ndarray) -> None:
        self._values = cast("dict[str, np.ndarray]", executable.state)
        self._name, self._first = name, first

    name = property(lambda self: self._name)

    @property
    def state(self) -> Tensor:
        return _tensor(self._values.get(self._name, self._first))

    @state.setter
    def state(self, tensor: Tensor) -> None:
        self._values[self._name] = np.array(tensor._array())

    def reset(self) -> None:
        self._values.pop(self._name, None)

    def __repr__(self) -> str:
        return "<VariableState>"


def _tensor(array: np.ndarray) -> Tensor:
    own = ElementType.of(array.dtype)
    assert own is not None
    made = Tensor(_type(own), array.shape)
    made._write(array)
    return made


class InferRequest(_Covered):
    """A way to run a CompiledModel, with input tensors, output tensors and a state of its own."""

    userdata: Any = None
    latency: float = 0.0

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self._executable = compiled._own_executable()
        self._callback: Callable[[Any], None] | None = None
        self._failure: Exception | None = None
        self.model_inputs, self.model_outputs = compiled.inputs, compiled.outputs
        self.input_tensors, self.output_tensors = (
            [Tensor(p.element_type, [d.lo for d in p._shape.dims or ()]) for p in ports]
            for ports in (self.model_inputs, self.model_outputs)
        )

    # -- tensors

    def get_input_tensor(self, index: int | None = None) -> Tensor:
        return self.input_tensors[self._index(self.model_inputs, index)]

    def get_output_tensor(self, index: int | None = None) -> Tensor:
        return self.output_tensors[self._index(self.model_outputs, index)]

    def set_input_tensor(self, *args: Any) -> None:
        self._set(self.model_inputs, self.input_tensors, *args)

    def set_output_tensor(self, *args: Any) -> None:
        self._set(self.model_outputs, self.output_tensors, *args)

    def set_input_tensors(self, tensors: Sequence[Tensor]) -> None:
        for index, tensor in enumerate(tensors):
            self.set_input_tensor(index, tensor)

    def set_output_tensors(self, tensors: Any) -> None:
        for index, tensor in tensors.items() if isinstance(tensors, Mapping) else enumerate(tensors):
            self.set_output_tensor(index, tensor)

    def get_tensor(self, key: str | ConstOutput) -> Tensor:
        tensors, index = self._place(key)
        return tensors[index]

    def set_tensor(self, key: str | ConstOutput, tensor: Tensor) -> None:
        tensors, index = self._place(key)
        ports = self.model_inputs if tensors is self.input_tensors else self.model_outputs
        self._set(ports, tensors, index, tensor)

    def set_tensors(self, tensors: Mapping[Any, Tensor]) -> None:
        for key, tensor in tensors.items():
            self.set_tensor(key, tensor)

    def _place(self, key: Any) -> tuple[list[Tensor], int]:
        """Return the list of tensors that holds the tensor of a port, and its position there."""
        for ports, tensors in ((self.model_inputs, self.input_tensors), (self.model_outputs, self.output_tensors)):
            for index, port in enumerate(ports):
                if key in port._names if isinstance(key, str) else key == port:
                    return tensors, index
        raise OpenVINOError(f"the model has no port {key!r}")

    def _index(self, ports: Sequence[_Port], index: int | None) -> int:
        """Return a valid position among ``ports``; without an index, that of the only port."""
        if index is None and len(ports) != 1:
            raise OpenVINOError(f"there are {len(ports)} tensors: say which")
        if not 0 <= (index or 0) < len(ports):
            raise OpenVINOError(f"tensor {index} of {len(ports)}")
        return index or 0

    def _set(self, ports: Sequence[_Port], tensors: list[Tensor], *args: Any) -> None:
        *which, tensor = args
        index = self._index(ports, which[0] if which else None)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"a Tensor is set, not a {type(tensor).__name__}")
        self._fits(ports[index], tensor._data.shape, tensor.element_type)
        tensors[index] = tensor

    def _fits(self, port: _Port, shape: Sequence[int], element_type: Type) -> None:
        if element_type is not port._type:
            raise OpenVINOError(f"{port!r} does not take {element_type.type_name}")
        if not port._shape.fits(tuple(shape)):
            raise OpenVINOError(f"{port!r} does not take shape {list(shape)}")

    # -- runs

    def infer(
        self,
        inputs: Any = None,
        share_inputs: bool = False,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
    ) -> OVDict:
        self._feed(inputs, share_inputs)
        self._run()
        return self._results(share_outputs, decode_strings)

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Run the model and call the callback. ``wait`` raises an exception of either."""
        self._feed(inputs, share_inputs)
        if userdata is not None:
            self.userdata = userdata
        self._failure = None
        try:
            self._run()
            if self._callback is not None:
                self._callback(self.userdata)
        except Exception as error:
            self._failure = error if isinstance(error, OpenVINOError) else OpenVINOError(f"{error!r} in the callback")

    def wait(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def wait_for(self, timeout: int) -> bool:
        self.wait()
        return True

    def cancel(self) -> None:
        pass

    def set_callback(self, callback: Callable[[Any], None], userdata: Any = None) -> None:
        self._callback, self.userdata = callback, userdata

    @property
    def results(self) -> OVDict:
        return self._results(share=True, decode=True)

    def get_compiled_model(self) -> CompiledModel:
        return self._compiled

    # -- state

    def query_state(self) -> list[VariableState]:
        return [VariableState(self._executable, *variable) for variable in _variables(self._executable).items()]

    def reset_state(self) -> None:
        self._executable.reset_state()

    # --

    def _run(self) -> None:
        start = time.perf_counter()
        try:
            feeds = {
                i: tensor._array() if port._inside is port._type._own else tensor._array().astype(port._inside.dtype)
                for i, (port, tensor) in enumerate(zip(self.model_inputs, self.input_tensors))
            }
            outputs = self._executable(feeds)
        except IrrunError as error:
            raise _error(error) from error
        for tensor, array in zip(self.output_tensors, outputs.arrays):
            tensor._write(array)
        self.latency = (time.perf_counter() - start) * 1000

    def _results(self, share: bool, decode: bool) -> OVDict:
        arrays: dict[ConstOutput, np.ndarray] = {}
        for port, tensor in zip(self.model_outputs, self.output_tensors):
            if tensor.element_type is _STRING:
                arrays[port] = tensor.str_data.copy() if decode else tensor.bytes_data
            else:
                arrays[port] = tensor.data if share else tensor.data.copy()
        return OVDict(arrays)

    def _feed(self, inputs: Any, share: bool) -> None:
        """Set the input tensors from arrays, in any form that openvino accepts. ``share`` avoids copies if possible."""
        if inputs is None:
            return
        if isinstance(inputs, OVDict):
            inputs = list(inputs.values())
        elif isinstance(inputs, list) and len(self.model_inputs) == 1 and _plain(inputs):
            inputs = [inputs]
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        elif isinstance(inputs, (list, tuple)):
            given = dict(enumerate(inputs))
        else:
            self._index(self.model_inputs, None)
            given = {0: inputs}
        for key, value in given.items():
            if isinstance(key, (str, ConstOutput)):
                tensors, index = self._place(key)
                if tensors is not self.input_tensors:
                    raise OpenVINOError(f"{key!r} is no input")
            elif isinstance(key, int):
                index = self._index(self.model_inputs, key)
            else:
                raise TypeError(f"an input is known by port, position or name, not by {key!r}")
            self._feed_one(index, value, share)

    def _feed_one(self, index: int, value: Any, share: bool) -> None:
        port = self.model_inputs[index]
        if isinstance(value, (Tensor, list)):  # used without conversion
            self.set_input_tensor(index, value if isinstance(value, Tensor) else Tensor(value))
            return
        if not isinstance(value, (np.ndarray, np.generic, int, float, str, bytes)) and not hasattr(value, "__array__"):
            raise TypeError(f"input {index} cannot be made of a {type(value).__name__}")
        array = np.asarray(value)
        if array.dtype.kind == "S" and port._type is _STRING:
            array = np.char.decode(array, "utf-8")
        self._fits(port, array.shape, port._type)
        same = array.dtype == port._type.to_dtype() and array.flags.writeable and array.flags.c_contiguous
        if share and same and array.ndim:
            self.input_tensors[index] = Tensor(array, shared_memory=True)
            return
        if share or not array.ndim:
            self.input_tensors[index] = Tensor(port._type, array.shape)
        self.input_tensors[index]._write(array)


def _plain(values: list[Any]) -> bool:
    """Return whether a list holds only numbers and strings, or lists of them."""
    flat = [e for v in values for e in (v if isinstance(v, list) else [v])]
    return all(isinstance(e, (int, float, str, bytes)) for e in flat)


def _variables(executable: Executable) -> dict[str, np.ndarray]:
    """Return the variables of a model by name, with their initial values, or zeros if these are not constant."""
    variables: dict[str, np.ndarray] = {}
    plan = executable.plan
    for step in plan.steps:
        if "variables" not in step.needed:
            continue
        name = cast(Any, step.op).variable_id
        value = plan.values.get((step.layer.id, 0)) or declared(step.layer)[0]
        first = plan.constants.get(step.reads[0]) if step.reads else None
        if first is None:
            first = np.zeros([d.lo for d in value.shape.dims or ()], value.type.dtype)
        variables.setdefault(name, first)
    return variables


class AsyncInferQueue(_Covered):
    """A pool of requests that take jobs in turn. Each job is complete when ``start_async`` returns."""

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        self._requests = [model.create_infer_request() for _ in range(max(jobs, 1))]
        self._callback: Callable[[InferRequest, Any], None] | None = None
        self._next = 0

    def set_callback(self, callback: Callable[[InferRequest, Any], None]) -> None:
        self._callback = callback

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        request = self._requests[self.get_idle_request_id()]
        self._next = (self._next + 1) % len(self)
        request.userdata = userdata
        request.set_callback(lambda data: self._callback and self._callback(request, data), userdata)
        request.start_async(inputs, userdata, share_inputs)

    def wait_all(self) -> None:
        for request in self._requests:
            request.wait()

    def is_ready(self) -> bool:
        return True

    def get_idle_request_id(self) -> int:
        return self._next

    userdata = property(lambda self: [request.userdata for request in self._requests])

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> InferRequest:
        return self._requests[index]


class Core(_Covered):
    """Reads and compiles models. All device names stand for the same device."""

    available_devices = property(lambda self: ["CPU"])

    def get_available_devices(self) -> list[str]:
        return ["CPU"]

    def read_model(self, model: Any, weights: Any = None, config: Mapping[str, Any] | None = None) -> Model:
        """Read an IR from its path, or from its text or bytes (with the weights as bytes or Tensor)."""
        try:
            return Model(_read(model, weights))
        except IrrunError as error:
            raise error if isinstance(error, (OpenVINOError, NotCovered)) else _error(error) from error

    def compile_model(
        self,
        model: Any,
        device_name: str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        weights: Any = None,
    ) -> CompiledModel:
        return CompiledModel(model if isinstance(model, Model) else self.read_model(model, weights))

    def set_property(self, *args: Any) -> None:
        pass

    def get_property(self, device_name: str, name: str) -> Any:
        if name != "FULL_DEVICE_NAME":
            raise NotCovered(f"property {name}")
        return "irrun"


def _read(model: Any, weights: Any) -> Graph:
    """Return the model in a path, file object, text or bytes. Raises NotCovered for formats other than IR."""
    if hasattr(model, "read"):
        model = model.read()
    if isinstance(model, str) and model.lstrip().startswith("<"):
        model = model.encode()
    if not isinstance(model, (bytes, bytearray)):
        if Path(model).suffix != ".xml":
            raise NotCovered(f"models other than IR ({model})")
        return api.read_model(model, weights or None)
    if isinstance(weights, Tensor):
        weights = weights.data.tobytes()
    parsed = parse(Source("model", bytes(model)), None if weights is None else Weights(data=bytes(weights)))
    if errors := [p for p in parsed.problems if p.severity == "error"]:
        raise IrrunError(errors)
    return parsed.model


def compile_model(model: Any, device_name: str = "AUTO", config: Mapping[str, Any] | None = None) -> CompiledModel:
    return Core().compile_model(model, device_name, config)


def get_version() -> str:
    return "irrun"


__version__ = "irrun"


# ---------------------------------------------------------------------------------------------
# installation in place of openvino


class _Finder(importlib.abc.MetaPathFinder):
    """An import hook that raises NotCoveredModule for the modules of openvino."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        for own in ("openvino.", f"{__name__}."):  # the second comes from `from openvino import x`
            if fullname.startswith(own):
                raise NotCoveredModule(f"openvino.{fullname.removeprefix(own)}")


def install() -> None:
    """Make ``import openvino`` and ``import openvino.runtime`` return this module, from now on in this process.

    Raises RuntimeError if openvino itself has been imported already.
    """
    module = sys.modules[__name__]
    if sys.modules.get("openvino", module) is not module:
        raise RuntimeError("openvino is imported already; install before anything imports it")
    if "openvino" not in sys.modules:
        sys.modules["openvino"] = sys.modules["openvino.runtime"] = module
        sys.meta_path.insert(0, _Finder())


if __name__ == "__main__":
    importlib.import_module("irrun.compat.openvino").install()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
