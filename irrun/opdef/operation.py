"""The base class of operations: ports, attributes, a shape rule, a kernel, and the place of a layer in its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NoReturn, Protocol

import numpy as np

from irrun.diagnostics import Refused
from irrun.opdef.attributes import REQUIRED, Attribute
from irrun.opdef.kernel import AxisRole, Kernel, Request
from irrun.opdef.values import Value
from irrun.types import Dim, ElementType

__all__ = ["Body", "Input", "Op", "Site", "Stream", "Variables", "opt", "ports", "variadic"]


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
    channels_last: ClassVar[bool | Mapping[str, AxisRole]] = False
    """Whether the operation has kernels for values of rank 4 in channels-last layout (NHWC).

    True: ``prepare`` answers such requests. Names of attributes and constant inputs, each with its role: only the axes
    change. irrun adapts these attributes and inputs, and then uses the kernel of the channels-first layout.
    """
    attributes: ClassVar[dict[str, Attribute]] = {}

    def __init_subclass__(cls) -> None:
        attributes = dict(cls.attributes)
        for name, value in list(vars(cls).items()):
            if isinstance(value, Attribute):
                attributes[name] = replace(value, name=value.name or name)
                delattr(cls, name)
        cls.attributes = attributes

    def __init__(self, **attributes: Any) -> None:
        for name, attribute in self.attributes.items():
            value = attributes.pop(name, attribute.default)
            if value is REQUIRED:
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

    def prepare(self, request: Request, /) -> Kernel | None:
        """Return a kernel that is faster than ``run`` for what is known of a layer, or None if there is none.

        The planner calls this once for a layer, when it compiles a model, but not with ``exact``.
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


class Stream:
    """Where a layer continues its sequence of random numbers in the next run."""

    def __init__(self) -> None:
        self.position = 0


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
