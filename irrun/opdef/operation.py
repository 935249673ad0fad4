"""The base class of operations: ports, attributes, a shape rule, a kernel, and the place of a layer in its model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, NoReturn, Protocol

import numpy as np

from irrun.diagnostics import Refused
from irrun.opdef.attributes import REQUIRED, Attribute
from irrun.opdef.inputs import Input
from irrun.opdef.kernel import AxisRole, Kernel, Operands, Request
from irrun.opdef.revisions import Revision
from irrun.opdef.values import Value
from irrun.types import Dim, ElementType

__all__ = ["SPECIFICATION", "Body", "Op", "Site", "Stream"]


SPECIFICATION: Final = (
    "https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs/{spec}.html"
)
"""The address of an operation's page, by ``Op.spec``."""


@dataclass(frozen=True, slots=True)
class Site:
    """The layer of an operation, as far as its shape rule may know it. A shape rule refuses the layer through it."""

    outputs: int = 1
    """The number of output ports that the file declares."""
    declared: tuple[ElementType | None, ...] = ()
    """The element types that the file declares for these ports; None for a port without a precision."""
    name: str = ""
    """The name of the layer. A Parameter names its unknown dims after it."""
    certain: bool = False
    """Whether the rule must not assume what files mean as a rule. Kernels are chosen by what it says then."""

    def require(
        self,
        condition: bool | np.bool_,
        label: str,
        message: str,
        help: str | None = None,
        *,
        dims: tuple[Dim, ...] = (),
    ) -> None:
        """Refuse the layer unless ``condition`` is true. The arguments are those of ``refuse``."""
        if not condition:
            self.refuse(label, message, help, dims=dims)

    def refuse(
        self,
        label: str,
        message: str,
        help: str | None = None,
        *,
        notes: tuple[str, ...] = (),
        dims: tuple[Dim, ...] = (),
    ) -> NoReturn:
        """Refuse the layer: raise Refused.

        ``label`` is the clause of the specification that the layer breaks (``C3``), ``help`` says what to do, ``notes``
        are lines that show why, and ``dims`` are the dims that contradict each other.
        """
        raise Refused(message, label, help, notes=notes, dims=dims)

    def axis(self, axis: int, rank: int | None, label: str, what: str = "axis") -> int:
        """Return ``axis`` counted from the front, or unchanged if ``rank`` is unknown (None).

        Refuse the layer if the axis is out of range. ``what`` names the axis in the message.
        """
        if rank is None:
            return axis
        self.require(-rank <= axis < rank, label, f"{what} {axis} is out of range for rank {rank}")
        return axis % rank if rank else 0


class Op:
    """The base class of operations. An instance holds the parsed attributes of one layer.

    The decorator ``op`` sets ``type``, ``since`` and ``spec``. A declaration sets ``inputs``, ``types`` (the set of
    element types of each type variable) and its attributes (with ``attr``), and the other class attributes if their
    default is wrong.
    """

    type: ClassVar[str]
    since: ClassVar[int]
    spec: ClassVar[str]
    inputs: ClassVar[tuple[Input, ...]] = ()
    types: ClassVar[dict[str, str]] = {"T": "any", "T_SHAPE": "int", "T_IND": "i32 i64"}
    outputs: ClassVar[int | None] = 1
    """The number of outputs, or None if it depends on the layer (Split, If)."""
    carries: ClassVar[bool] = False
    """Whether ``run`` also accepts object arrays of ``Dim``. Inference then follows contents that are partly known."""
    pure: ClassVar[bool] = True
    """Whether equal inputs always give equal outputs. False for random numbers and for operations with state."""
    rounds_values: ClassVar[bool] = False
    """Whether a lower precision rounds inputs that no constant feeds, and inner values: see ``run_rounding``."""
    rounds_added: ClassVar[bool] = False
    """Whether bf16 also rounds what is added to the output, if it has the same shape."""
    sums: ClassVar[bool] = False
    """Whether the output is the sum of two inputs."""
    checked: ClassVar[bool] = True
    """Whether ``infer`` runs again when a run provides shapes that were unknown before.

    False if ``run`` itself fails on every input that ``infer`` refuses, and never needs more memory than its inputs."""
    views: ClassVar[Literal["", "strided", "reshaped"]] = ""
    """Whether ``run`` returns a view of its first input: with other strides, or of another shape if contiguous."""
    gathers: ClassVar[bool] = False
    """Whether the output consists of the elements of the inputs, at places that depend on their shapes alone."""
    needs: ClassVar[tuple[str, ...]] = ()
    """The keyword arguments that ``infer`` and ``run`` take in addition to the inputs, such as ``weights``."""
    takes_stored: ClassVar[int | None] = None
    """The number of the input that may be a constant as the file has it (``Value.stored``). A kernel that ``prepare``
    returns for such an input lists it in ``Packing.inputs``; otherwise the planner unpacks the constant and asks
    again."""
    stored_filters: ClassVar[bool] = False
    """Whether that input may have more than two axes. It is then in f16 or bf16, without scales, or in i8."""
    channels_last: ClassVar[bool | Mapping[str, AxisRole]] = False
    """Whether the operation has kernels for values of rank 4 in channels-last layout (NHWC).

    True: ``prepare`` answers such requests. Names of attributes and constant inputs, each with its role: only the axes
    change. irrun adapts these attributes and inputs, and then uses the kernel of the channels-first layout.
    """
    per_element: ClassVar[int] = 0
    """FLOPs for each element of the first output, if their number does not depend on anything else: see ``flops``."""
    attributes: ClassVar[dict[str, Attribute]] = {}
    revisions: ClassVar[tuple[Revision, ...]] = ()
    """The revisions of an operation whose page changes without a version number, the oldest first. The class declares
    the inputs, attributes and defaults of the newest."""
    updates: ClassVar[tuple[str, ...]] = ()
    """The names of inputs that OpenVINO overwrites, such as caches, in the order of the inputs.

    Such an operation is not ``pure``. ``run`` returns the new arrays of these inputs behind the outputs. A kernel of
    ``prepare`` may instead write into an array that is writeable, and return it."""
    assumed: ClassVar[tuple[str, ...]] = ()
    """Attributes with a default although the specification requires them. ``doubts`` reports a layer without them, and
    a schema requires them."""

    def __init_subclass__(cls) -> None:
        attributes = dict(cls.attributes)
        for name, value in list(vars(cls).items()):
            if isinstance(value, Attribute):
                attributes[name] = replace(value, name=value.name or name)
                delattr(cls, name)
        cls.attributes = attributes

    def __init__(self, fitting: Sequence[Revision] = (), /, **attributes: Any) -> None:
        """Set the attributes. ``fitting`` are the revisions that the layer fits, the newest first."""
        self.fitting = fitting
        revision = next(iter(fitting or self.revisions[-1:]), None)
        if revision is not None and revision.inputs is not None:
            vars(self)["inputs"] = revision.inputs
        for name, attribute in self.attributes.items():
            default = attribute.default if revision is None else revision.default(name, attribute.default)
            value = attributes.pop(name, default)
            if value is REQUIRED:
                raise TypeError(f"{self.type} needs the attribute {attribute.name}")
            setattr(self, name, value)
        if attributes:
            raise TypeError(f"{self.type} has no attribute {', '.join(attributes)}")

    @classmethod
    def fitted(cls, inputs: int, attributes: Collection[str]) -> tuple[Revision, ...]:
        """Return the revisions that a layer fits, the newest first.

        ``inputs`` is its number of inputs, ``attributes`` are the names of the attributes that it writes.
        """
        return tuple(r for r in reversed(cls.revisions) if r.fits(cls.inputs, inputs, attributes))

    @property
    def unseeded(self) -> bool:
        """Whether the layer draws other random numbers in every run, because it has no seed."""
        return False

    def infer(self, at: Site, /, *inputs: Any, **needed: Any) -> Value | tuple[Value, ...]:
        """The shape rule: return the outputs for the ``inputs``, which are Values (None for an absent optional input).

        Refuse inputs that the operation does not accept with ``at.refuse`` or ``at.require``.
        """
        raise TypeError(f"{self.type} has no shape rule")

    def doubts(self, at: Site, /, *inputs: Any, **needed: Any) -> Iterable[Refused]:
        """Return what is doubtful in a layer that ``infer`` accepts. Each item has the code of a warning.

        The arguments are those of ``infer``. ``irrun check`` reports the warnings; the model runs all the same.
        """
        return ()

    def run(self, *inputs: Any, **needed: Any) -> Any:
        """The defining kernel: return the outputs as arrays. It never changes an input and may return a view of one."""
        raise TypeError(f"{self.type} has no kernel")

    @property
    def rounds_inside(self) -> bool:
        """Whether engines in bf16 or f16 compute the layer at once, and round values inside of it: ``run_rounding``."""
        return False

    def run_rounding(self, round: Callable[[np.ndarray], np.ndarray], /, *inputs: Any, **needed: Any) -> Any:
        """Return what ``run`` gives if ``round`` rounds the inner values that the operation multiplies by weights.

        Inputs are not rounded unless the operation ``rounds_values``; outputs are not.
        """
        raise TypeError(f"{self.type} rounds nothing inside")

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        """Return the arithmetic operations on elements that the layer needs, by the definition of the operation.

        A multiplication and an addition count one each, so that a multiply-add counts two, and so does any other
        function of an element. Moving, selecting and converting elements counts nothing.
        """
        return outputs[0].shape.count() * self.per_element if self.per_element else Dim(0)

    def rounded(self, inputs: Sequence[Value | None], precision: Operands, /) -> tuple[int, ...]:
        """Return the numbers of the inputs whose elements are multiplied, where ``precision`` may round these.

        Where the operation ``rounds_inside``, ``run_rounding`` then rounds its inner values.

        The planner rounds f32 if the last of these inputs is constant: both to bf16 if the file does not hold it as
        integers, and to i8 the other one, in groups along its last axis, if the file does. With tiles, the planner
        rounds both to bf16, whatever the file holds.
        """
        return ()

    def splits(self, inputs: Sequence[Value | None], /) -> bool:
        """Return whether the operands of products may be split in two numbers where ``rounded`` leaves them in f32."""
        return False

    def multiplied_rows(self, shape: Sequence[int], /) -> int:
        """Return how many rows the operation multiplies by a matrix, for the shape of its first input.

        The planner asks operations whose inputs are ``rounded`` beside codes.
        """
        raise TypeError(f"{self.type} multiplies no rows")

    def moves(self, inputs: Sequence[Value | None], /) -> bool:
        """Return whether each element of the output is one of the first input, of which ``run`` only takes the shape.

        The other inputs are constant.
        """
        return bool(self.views)

    def working(self, *inputs: Any) -> int:
        """Return the bytes that ``run`` allocates for these arrays beside those that the shapes of its outputs tell."""
        return 0

    def prepare(self, request: Request, /) -> Kernel | None:
        """Return a kernel that is faster than ``run`` for what is known of a layer, or None if there is none.

        The planner calls this once for a layer, when it compiles a model, but not with ``exact``.
        """
        return None


class Body(Protocol):
    """A body as If, Loop and TensorIterator see it. Its inputs and outputs are Values in inference, arrays in a run."""

    def declared(self, id: int) -> Value:
        """Return the type and shape that a Parameter or Result declares. ``id`` is its layer id in the body."""
        ...

    def __call__(self, inputs: Mapping[int, Any]) -> Mapping[int, Any]:
        """Run the body: take the values of its Parameters and return those of its Results, both by layer id."""
        ...


class Stream:
    """Where a layer continues its sequence of random numbers in the next run."""

    def __init__(self) -> None:
        self.position = 0
