"""How an operation is declared: attributes, ports, a shape rule and a kernel.

An operation is a class with the decorator ``op``; ``resolve`` finds it by the layer's type and opset.
``infer`` validates and infers over ``Value``s in one straight line; ``run`` is the kernel over numpy
arrays; ``prepare`` may choose a faster ``Kernel`` for one layer whose shapes and constants are known.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Final, Literal, NoReturn, Protocol, TypeVar

import numpy as np

from irrun.diagnostics import Refused, counted
from irrun.types import (
    ELEMENT_TYPES,
    INF,
    UNKNOWN_RANK,
    Dim,
    ElementType,
    PartialShape,
    UnknownDimError,
    as_dim,
    type_set,
)  # fmt: skip

__all__ = [
    "CHANNELS_LAST",
    "ORDER",
    "Body",
    "Finish",
    "Kernel",
    "Op",
    "Refused",
    "Site",
    "Value",
    "Variables",
    "attr",
    "find",
    "labels",
    "op",
    "opt",
    "ports",
    "resolve",
    "variadic",
]  # fmt: skip

# ---------------------------------------------------------------------------------------------
# values


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What is known of a tensor before the model runs.

    ``data`` is its contents where they are known: a numpy array, or for integers known only in part an
    object array of ``Dim``s (so that ``[?,3,224]`` is followed through ShapeOf, Gather and Concat).
    """

    type: ElementType
    shape: PartialShape
    data: np.ndarray | None = None

    @staticmethod
    def of(array: np.ndarray, element_type: ElementType | None = None) -> Value:
        """A fully known tensor."""
        found = element_type or ElementType.of(array.dtype)
        if found is None:
            raise TypeError(f"no element type has dtype {array.dtype}")
        return Value(found, PartialShape.of(array.shape), array)

    @staticmethod
    def of_dims(dims: Iterable[Dim | int], element_type: ElementType) -> Value:
        """A 1D tensor whose elements are ``dims``: exact where all are known."""
        items = [as_dim(d) for d in dims]
        return Value(element_type, PartialShape((Dim(len(items)),)), _pack(items, (len(items),), element_type))

    @property
    def rank(self) -> int | None:
        return self.shape.rank

    @property
    def exact(self) -> np.ndarray | None:
        """The contents, or None unless every element is known."""
        if self.data is None or self.data.dtype != object:
            return self.data
        if not all(isinstance(n, Dim) and n.is_static for n in self.data.flat):
            return None
        return np.array([n.lo for n in self.data.flat], dtype=self.type.dtype).reshape(self.data.shape)

    def reshaped(self, shape: PartialShape | Sequence[Dim | int]) -> Value:
        """The same element type, another shape; contents are not carried over."""
        return Value(self.type, shape if isinstance(shape, PartialShape) else PartialShape.of(shape))

    def typed(self, element_type: ElementType) -> Value:
        """The same shape, another element type; contents are not carried over."""
        return Value(element_type, self.shape)

    def ints(self) -> tuple[int, ...] | None:
        """The contents as a flat tuple of ints, or None unless all are known."""
        data = self.exact
        return None if data is None else tuple(int(n) for n in data.ravel())

    def scalar(self) -> int | None:
        """The one int that the tensor holds, or None where it is not known."""
        found = self.ints()
        return found[0] if found is not None and len(found) == 1 else None

    def dims(self) -> tuple[Dim, ...] | None:
        """The contents as Dims, each as far as it is known; None where not even their number is."""
        if self.data is not None:
            return tuple(as_dim(n) for n in self.data.ravel())
        count = self.shape.count().value
        return None if count is None or count > _CONTENTS_LIMIT else (Dim(-INF, INF),) * count

    def as_shape(self) -> PartialShape:
        """The contents as a shape, each entry as far as it is known."""
        dims = self.dims()
        if dims is None:
            return UNKNOWN_RANK
        return PartialShape(tuple(d if d.lo >= 0 or d.is_static else d.max(0) for d in dims))


_CONTENTS_LIMIT: Final = 1 << 12
"""Tensors of more elements than this are not followed by content."""


def _pack(items: Sequence[Dim], shape: tuple[int, ...], element_type: ElementType) -> np.ndarray:
    if all(d.lo == d.hi and d.term is None for d in items):
        return np.array([d.lo for d in items], dtype=element_type.dtype).reshape(shape)
    data = np.empty(len(items), dtype=object)
    data[:] = items
    return data.reshape(shape)


# ---------------------------------------------------------------------------------------------
# attributes


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: how its text becomes a value. ``parse`` raises ValueError."""

    parse: Callable[[str], Any]
    expects: str
    default: Any
    name: str = ""
    aliases: tuple[str, ...] = ()
    code: str = "IR203"
    """What a text that cannot be parsed is reported as."""

    @property
    def required(self) -> bool:
        return self.default is _REQUIRED


class _Required:
    def __repr__(self) -> str:
        return "required"


_REQUIRED: Final = _Required()
_T = TypeVar("_T")


def _int(text: str) -> int:
    return int(_plain(text))


def _float(text: str) -> float:
    return float(_plain(text))


def _plain(text: str) -> str:
    """Refuses what Python reads as a number and no other reader does: ``1_000``."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text


def _bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "1", "false", "0"):
        raise ValueError(text)
    return word in ("true", "1")


def _element_type(text: str) -> ElementType:
    found = ElementType.parse(text)
    if found is None:
        raise ValueError(text)
    return found


def _shape(text: str) -> PartialShape:
    found = PartialShape.parse(text)
    if found is None:
        raise ValueError(text)
    return found


def _list(item: Callable[[str], _T]) -> Callable[[str], tuple[_T, ...]]:
    return lambda text: tuple(item(part) for part in text.split(",")) if text.strip() else ()


class attr:  # noqa: N801  (a namespace that reads as a word in the declarations)
    """Declares attributes. Each returns the type that the operation will see.

    Without ``default`` the attribute is required. ``name`` is the spelling in the IR where it is no
    Python name (``exclude-pad``); ``aliases`` are other spellings met in files.
    """

    @staticmethod
    def _make(
        parse: Callable[[str], Any],
        expects: str,
        default: Any,
        name: str,
        aliases: tuple[str, ...],
        code: str = "IR203",
    ) -> Any:
        return Attribute(parse, expects, default, name, aliases, code)

    @staticmethod
    def int(default: int | _Required | None = _REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()) -> int:
        return attr._make(_int, "an integer", default, name, aliases)

    @staticmethod
    def float(default: float | _Required | None = _REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()) -> float:
        return attr._make(_float, "a number", default, name, aliases)

    @staticmethod
    def bool(default: bool | _Required = _REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()) -> bool:
        return attr._make(_bool, "true or false", default, name, aliases)

    @staticmethod
    def str(default: str | _Required | None = _REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()) -> str:
        return attr._make(lambda text: text, "text", default, name, aliases)

    @staticmethod
    def choice(
        *values: str, default: str | _Required = _REQUIRED, name: str = "", also: dict[str, str] | None = None,
        aliases: tuple[str, ...] = (),
    ) -> str:  # fmt: skip
        """One of ``values``, in any case of letters; ``also`` maps other accepted spellings."""
        known = {v.lower(): v for v in values} | {k.lower(): v for k, v in (also or {}).items()}

        def parse(text: str) -> str:
            word = text.strip().lower()
            if word not in known:
                raise ValueError(text)
            return known[word]

        return attr._make(parse, "one of " + ", ".join(values), default, name, aliases)

    @staticmethod
    def ints(
        default: tuple[int, ...] | _Required | None = _REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()
    ) -> tuple[int, ...]:
        return attr._make(_list(_int), "integers separated by commas", default, name, aliases)

    @staticmethod
    def floats(
        default: tuple[float, ...] | _Required | None = _REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()
    ) -> tuple[float, ...]:
        return attr._make(_list(_float), "numbers separated by commas", default, name, aliases)

    @staticmethod
    def element_type(
        default: str | _Required | None = _REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()
    ) -> ElementType:
        value = ELEMENT_TYPES[default] if isinstance(default, str) else default
        return attr._make(_element_type, "an element type such as f32 or i64", value, name, aliases, "IR305")

    @staticmethod
    def shape(default: PartialShape | _Required = _REQUIRED, *, name: str = "") -> PartialShape:
        return attr._make(_shape, "dims separated by commas, such as 1,3,?,8..16", default, name, (), "IR404")


# ---------------------------------------------------------------------------------------------
# ports


@dataclass(frozen=True, slots=True)
class Input:
    """One input of an operation; ``type`` is a variable of ``types`` (``T``) or a set of element types."""

    name: str
    type: str
    optional: bool = False
    variadic: bool = False


def ports(**declared: str | Input) -> tuple[Input, ...]:
    """The inputs in order: ``ports(data="T", axes=opt("i32 i64"))``."""
    return tuple(
        replace(port, name=name) if isinstance(port, Input) else Input(name, port) for name, port in declared.items()
    )


def opt(type: str) -> Input:
    """An input that may be left out, also in the middle."""
    return Input("", type, optional=True)


def variadic(type: str, *, least: int = 1) -> Input:
    """The last input, repeated: any number from ``least`` on (0 or 1)."""
    return Input("", type, optional=least == 0, variadic=True)


# ---------------------------------------------------------------------------------------------
# kernels


@dataclass(frozen=True, slots=True)
class Kernel:
    """How one layer is computed, chosen when its model is compiled.

    ``call`` takes the input arrays in port order (None for an absent optional one) and gives an array or a tuple.
    What it may be asked for beyond that, a kernel says here; it is then a single output of known shape.
    """

    call: Callable[..., Any]
    algorithm: str = ""
    """Which of several ways of computing this is: a word or two, as the profile shows them."""
    out: bool = False
    """Whether ``call`` takes ``out=``: a C-contiguous array of the output's type and shape, or None. It fills and
    returns it; it does not overlap with an input."""
    elementwise: bool = False
    """Whether each element of the output follows from the elements at its place in the inputs, which numpy
    broadcasts. ``out`` may then be one of the inputs, and ``call`` is given corresponding parts of all of them."""
    finish: bool = False
    """Whether ``call`` takes ``finish=``, too: a function that it calls once for each part of ``out`` as soon as that
    is computed, on any thread, as ``finish(out[index], index)`` with a slice for each axis. What follows is then done
    in place."""
    flops: int = 0
    """Multiplications and additions of a call, where they are what takes its time."""
    ignores: tuple[int, ...] = ()
    """The inputs, constant ones, whose contents ``call`` does not look at: it has them in another form."""
    pack: Callable[[], object] | None = None
    """Brings constant inputs into that form, where this is not done yet: the first ``call`` would do it otherwise."""


Finish = Callable[[np.ndarray, tuple[slice, ...]], None]
"""What a kernel is asked to call with each part of its output: see ``Kernel.finish``."""


CHANNELS_LAST: Final = {0: 0, 1: 3, 2: 1, 3: 2, -4: 0, -3: 3, -2: 1, -1: 2}
"""Where each axis of a value of rank 4 stands when its channels are last: see ``Op.prepare_channels_last``."""

ORDER: Final = (0, 2, 3, 1)
"""The axes of a value of rank 4 in the order in which its channels are last."""


# ---------------------------------------------------------------------------------------------
# operations


@dataclass(frozen=True, slots=True)
class Site:
    """Where an operation stands: what ``infer`` may know of its layer beyond the inputs."""

    outputs: int = 1
    """How many output ports the file gives the layer."""
    declared: tuple[ElementType | None, ...] = ()
    """The element types that the file declares for them."""
    name: str = ""
    """The layer's name: a Parameter names its unknown dims after it."""

    def require(
        self, condition: bool | np.bool_, label: str, message: str, help: str | None = None, *,
        dims: tuple[Dim, ...] = (),
    ) -> None:  # fmt: skip
        """Refuse the layer unless ``condition`` holds; ``label`` is the clause (``C3``) that it breaks."""
        if not condition:
            self.refuse(label, message, help, dims=dims)

    def refuse(
        self, label: str, message: str, help: str | None = None, *, notes: tuple[str, ...] = (),
        dims: tuple[Dim, ...] = (),
    ) -> NoReturn:  # fmt: skip
        """Refuse the layer. ``notes`` are lines that show why, ``dims`` those that do not go together."""
        raise Refused(message, label, help, notes=notes, dims=dims)

    def axis(self, axis: int, rank: int | None, label: str, what: str = "axis") -> int:
        """``axis`` counted from the front; refuses one outside ``rank``. With an unknown rank, as it is."""
        if rank is None:
            return axis
        self.require(-rank <= axis < rank, label, f"{what} {axis} is outside a rank of {rank}")
        return axis % rank if rank else 0


class Op:
    """Base of every operation; an instance holds the typed attributes of one layer.

    Class attributes that a declaration sets: ``inputs``, ``types`` (type variables and their sets),
    attributes made by ``attr``, and where needed ``outputs``, ``carries``, ``needs``.
    """

    type: ClassVar[str]
    since: ClassVar[int]
    spec: ClassVar[str]
    inputs: ClassVar[tuple[Input, ...]] = ()
    types: ClassVar[dict[str, str]] = {"T": "any", "T_SHAPE": "int", "T_IND": "i32 i64"}
    outputs: ClassVar[int | None] = 1
    """How many outputs, or None where the file says (Split, If)."""
    carries: ClassVar[bool] = False
    """Whether ``run`` also works on object arrays of ``Dim``s: contents then pass through ``check``."""
    pure: ClassVar[bool] = True
    """Whether equal inputs always give equal outputs (not where numbers are drawn or state is read)."""
    checked: ClassVar[bool] = True
    """Whether a layer is checked again when a run brings shapes that were not known before. Not where ``run`` itself
    fails on all that ``infer`` refuses, and never needs more memory than its inputs take."""
    views: ClassVar[Literal["", "strided", "reshaped"]] = ""
    """Whether ``run`` gives views of its first input: in other strides, or (reshaped) if that has none of its own."""
    needs: ClassVar[tuple[str, ...]] = ()
    """What ``infer`` and ``run`` take as keywords beyond the inputs, such as ``weights``."""
    attributes: ClassVar[dict[str, Attribute]] = {}

    def __init_subclass__(cls) -> None:
        found = dict(cls.attributes)
        for name, value in list(vars(cls).items()):
            if isinstance(value, Attribute):
                found[name] = replace(value, name=value.name or name)
                delattr(cls, name)
        cls.attributes = found

    def __init__(self, **attributes: Any) -> None:
        for name, attribute in self.attributes.items():
            value = attributes.pop(name, attribute.default)
            if value is _REQUIRED:
                raise TypeError(f"{self.type} needs the attribute {attribute.name}")
            setattr(self, name, value)
        if attributes:
            raise TypeError(f"{self.type} has no attribute {', '.join(attributes)}")

    def infer(self, at: Site, /, *inputs: Any, **needed: Any) -> Value | tuple[Value, ...]:
        """The outputs that ``inputs`` (Values; None where absent) give. Refuses through ``at``."""
        raise TypeError(f"{self.type} has no shape rule")

    def run(self, *inputs: Any, **needed: Any) -> Any:
        """The outputs as arrays. Never mutates an input; may return a view of one."""
        raise TypeError(f"{self.type} has no kernel")

    def prepare(self, *inputs: Value | None) -> Kernel:
        """The kernel for inputs of which this is known; the ``data`` of constant ones are their arrays.

        Called once for a layer, when a model is compiled; with ``exact``, only where the operation is not ``pure``.
        """
        return Kernel(self.run)

    def prepare_channels_last(self, *inputs: Value | None) -> Kernel | None:
        """The kernel that takes and gives values of rank 4 with the second axis last: (batch, rows, columns, channels).

        For static shapes and outputs of rank 4; a kernel that takes ``out`` gives the first alone. ``inputs`` are in
        the order of the specification. Constant inputs that the kernel ``ignores`` stay in it, too. None where the
        operation has no such kernel.
        """
        return None

    def prepare_first(self, *inputs: Value | None) -> Kernel | None:
        """The kernel that gives the first output alone, for a layer of whose others nobody reads any.

        None where that is not less work.
        """
        return None


class Body(Protocol):
    """A sub-model as If, Loop and TensorIterator see it, while inferring (over Values) and running (arrays)."""

    def declared(self, id: int) -> Value:
        """What the body's Parameter or Result of this layer id declares."""
        ...

    def __call__(self, inputs: Mapping[int, Any]) -> Mapping[int, Any]:
        """The Results for these Parameters, both by layer id."""
        ...


class Variables:
    """The state of a model across runs: what ReadValue reads and Assign writes.

    What is assigned during a run is read from the next one on.
    """

    def __init__(self) -> None:
        self.values: dict[str, np.ndarray] = {}
        self._assigned: dict[str, np.ndarray] = {}

    def read(self, id: str) -> np.ndarray | None:
        """The value of a variable, None before anything was assigned."""
        return self.values.get(id)

    def assign(self, id: str, value: np.ndarray) -> None:
        self._assigned[id] = value

    def commit(self) -> None:
        """End a run: what was assigned becomes what is read."""
        self.values.update({id: np.array(value) for id, value in self._assigned.items()})
        self._assigned.clear()

    def discard(self) -> None:
        """End a run that failed: what was assigned in it is forgotten."""
        self._assigned.clear()

    def reset(self) -> None:
        """Forget everything, as before the first run."""
        self.values.clear()
        self._assigned.clear()


_registry: dict[str, dict[int, type[Op]]] = {}
_O = TypeVar("_O", bound=type[Op])


def op(type: str, *, since: int = 1, spec: str = "") -> Callable[[_O], _O]:
    """Register an operation: ``since`` is the opset that first holds this version, ``spec`` its page.

    One of your own stands under any ``version`` that a file gives it, numbered opsets from ``since`` on.
    """

    def register(cls: _O) -> _O:
        cls.type, cls.since, cls.spec = type, since, spec
        if is_custom(cls):
            _load(None)  # irrun's own come first
        versions = _registry.setdefault(type.lower(), {})
        if since in versions and _home(versions[since]) != _home(cls):
            raise TypeError(f"{type}-{since} is registered twice")
        versions[since] = cls
        return cls

    return register


def _home(cls: type[Op]) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


@cache
def _modules() -> dict[str, str]:
    """The files of operations: their names, and their sources in lower case (empty where there is none)."""
    package = importlib.import_module("irrun.ops")
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            spec = importlib.util.find_spec(f"irrun.ops.{module.name}")
            source = getattr(spec.loader, "get_source", None) if spec else None
            found[module.name] = ((source and source(f"irrun.ops.{module.name}")) or "").lower()
    return found


@cache
def _load(type: str | None) -> None:
    """Import the files that may hold a type: the one of its name and those that name it; all of them for None."""
    for name, source in _modules().items():
        if type is None or name.replace("_", "") == type or not source or f'"{type}"' in source:
            importlib.import_module(f"irrun.ops.{name}")


@cache
def _load_plugins() -> None:
    """Import what other packages offer under the entry point group ``irrun.ops``."""
    from importlib import metadata  # slow to import, and seldom needed

    for entry_point in metadata.entry_points(group="irrun.ops"):
        try:
            entry_point.load()
        except Exception as error:  # theirs; the model may well do without
            message = f"the operations of {entry_point.value} cannot be imported: {error!r}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def find(type: str) -> dict[int, type[Op]]:
    """All versions of the operations of one type, by ``since``; empty where there is none."""
    key = type.lower()
    if key not in _registry:
        _load(key)
    if key not in _registry:
        _load_plugins()
    return _registry.get(key, {})


def resolve(type: str, opset: int | None) -> type[Op] | None:
    """The newest version that opset ``opset`` holds (the newest of all for None), or None."""
    versions = [since for since in find(type) if opset is None or since <= opset]
    return find(type)[max(versions)] if versions else None


def is_custom(cls: type[Op]) -> bool:
    """Whether an operation was registered outside of irrun."""
    return not cls.__module__.startswith("irrun.ops.")


def all_ops() -> list[type[Op]]:
    """Every operation version, by type and version."""
    _load(None)
    return [versions[since] for _, versions in sorted(_registry.items()) for since in sorted(versions)]


def labels(cls: type[Op]) -> dict[str, str]:
    """The labelled clauses of an operation's docstring: ``{"C1": "…"}``."""
    found: dict[str, str] = {}
    for match in re.finditer(r"^(C\d+)  (.+(?:\n    +.+)*)", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE):
        found[match[1]] = re.sub(r"\s+", " ", match[2])
    return found


# ---------------------------------------------------------------------------------------------
# inference of one layer


def infer(
    cls_op: Op, at: Site, inputs: Sequence[Value | None], needed: dict[str, Any], *, contents: bool = True
) -> tuple[Value, ...]:
    """The outputs of one layer: arity and types first, then its own rule, then contents where they follow.

    Raises Refused.
    """
    _check_arity(cls_op, len(inputs), inputs)
    _check_types(cls_op, inputs)
    outputs = cls_op.infer(at, *inputs, **needed)
    values = outputs if isinstance(outputs, tuple) else (outputs,)
    return _contents(cls_op, inputs, values, needed) if contents else values


def input_at(declared: tuple[Input, ...], position: int) -> Input | None:
    """The declaration of the input at ``position``, the last one standing for all that it repeats."""
    if position < len(declared):
        return declared[position]
    return declared[-1] if declared and declared[-1].variadic else None


def input_name(of: Op, position: int) -> str:
    """What an operation calls its input at ``position``: ``data``, or ``data[2]`` where it is repeated."""
    port = input_at(of.inputs, position)
    if port is None:
        return f"input {position}"
    return f"{port.name}[{position - len(of.inputs) + 1}]" if port.variadic else port.name


def _check_arity(cls_op: Op, count: int, inputs: Sequence[Value | None]) -> None:
    declared = cls_op.inputs
    least = sum(not p.optional for p in declared)
    most = None if declared and declared[-1].variadic else len(declared)
    if count < least or (most is not None and count > most):
        wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        names = ", ".join(p.name + ("…" if p.variadic else "?" if p.optional else "") for p in declared)
        raise Refused(
            f"has {counted(count, 'input')}; {cls_op.type}-{cls_op.since} takes {wanted} ({names})", code="IR205"
        )
    for position, value in enumerate(inputs):
        port = input_at(declared, position)
        if value is None and port is not None and not port.optional:
            raise Refused(f"input {position} ({port.name}) is missing", code="IR205")


def _check_types(cls_op: Op, inputs: Sequence[Value | None]) -> None:
    bound: dict[str, tuple[ElementType, str]] = {}
    for position, value in enumerate(inputs):
        port = input_at(cls_op.inputs, position)
        if value is None or port is None or value.type.kind == "dynamic":
            continue
        allowed = _allowed(cls_op.types.get(port.type, port.type))
        if value.type not in allowed:
            raise Refused(
                f"input {position} ({port.name}) is {value.type}; "
                f"{cls_op.type}-{cls_op.since} takes {cls_op.types.get(port.type, port.type).replace(' ', ', ')}",
                code="IR301",
                help=f"put a Convert before it: {value.type} only holds weights" if value.type.is_storage else None,
            )
        if port.type in cls_op.types:
            own = input_name(cls_op, position)
            first, name = bound.setdefault(port.type, (value.type, own))
            if first is not value.type:
                raise Refused(f"{own} is {value.type} but {name} is {first}; {port.type} is one type", code="IR302")


_allowed = cache(type_set)


def _contents(
    cls_op: Op, inputs: Sequence[Value | None], values: tuple[Value, ...], needed: dict[str, Any]
) -> tuple[Value, ...]:
    """Fill in ``data`` where all inputs' contents are known: exact ones by ``run``, Dims if it ``carries``."""
    if not cls_op.pure or not inputs or not values or any(v is not None and v.data is None for v in inputs):
        return values
    if any(v.data is not None or v.shape.count().hi > _CONTENTS_LIMIT for v in values):
        return values
    arrays = [None if v is None else v.data if cls_op.carries else v.exact for v in inputs]
    if any(v is not None and a is None for v, a in zip(inputs, arrays)):
        return values
    if any(a is not None and a.size > _CONTENTS_LIMIT for a in arrays):
        return values
    try:
        with np.errstate(all="ignore"):
            results = cls_op.run(*arrays, **needed)
    except UnknownDimError:  # the kernel needs a number that is not known
        return values
    results = results if isinstance(results, tuple) else (results,)
    return tuple(_filled(v, np.asarray(r)) for v, r in zip(values, results))


def _filled(value: Value, result: np.ndarray) -> Value:
    shape = value.shape if value.shape.is_static else PartialShape.of(result.shape)
    return Value(value.type, shape, _carried(result, value.type))


def _carried(result: np.ndarray, element_type: ElementType) -> np.ndarray:
    if result.dtype != object:
        return result
    return _pack([as_dim(n) for n in result.flat], result.shape, element_type)
