"""ReadValue: the value that a variable holds.  Spec: infrastructure/read-value-{3,6}."""

from collections.abc import Iterator

import numpy as np

from irrun.diagnostics import Refused
from irrun.opdef import Op, Site, Value, Variables, attr, op, opt, ports
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, Dim, ElementType, PartialShape, blank


@op("ReadValue", since=6, spec="infrastructure/read-value-6")
class ReadValue6(Op):
    """Return the value that Assign stored in an earlier run. Before that, return ``init_value``, or zeros without it.

    Without ``variable_type`` or ``variable_shape``, the variable takes the type of ``init_value`` and has any shape.

    C1  The shape of ``init_value`` fits ``variable_shape``, and its type is ``variable_type``.
    """

    variable_id = attr.str()
    variable_type: ElementType | None = attr.element_type(default=None)
    variable_shape: PartialShape | None = attr.shape(default=None)
    assumed = ("variable_type", "variable_shape")
    inputs = ports(init_value=opt("any"))
    needs = ("variables",)
    pure = False

    def infer(self, at: Site, init_value: Value | None = None, *, variables: Variables | None) -> Value:
        if init_value is None:
            if missing := self._missing():
                help = f"write {missing[0]}, or connect init_value"
                raise Refused(f"the attribute {missing[0]} is missing", help=help, code="IR202")
            return Value(self._type, _named(at, self._shape))
        at.require(
            self._type.kind == "dynamic" or init_value.type is self._type,
            "C1",
            f"init_value is {init_value.type}, but variable_type is {self._type}",
        )
        at.require(
            self._shape.meet(init_value.shape) is not None,
            "C1",
            f"init_value is {init_value.shape}, but variable_shape is {self._shape}",
        )
        return Value(init_value.type if self._type.kind == "dynamic" else self._type, _named(at, self._shape))

    def doubts(self, at: Site, init_value: Value | None = None, *, variables: Variables | None) -> Iterator[Refused]:
        if missing := self._missing():
            are = "are" if len(missing) > 1 else "is"
            message = f"{' and '.join(missing)} {are} missing; the variable is what init_value is"
            yield Refused(message, help=f"write {' and '.join(missing)} in <data>", code="IR208")

    def _missing(self) -> list[str]:
        """Return the names of the attributes that say what the variable holds and are missing."""
        return [name for name in self.assumed if getattr(self, name) is None]

    @property
    def _type(self) -> ElementType:
        return self.variable_type or ELEMENT_TYPES["dynamic"]

    @property
    def _shape(self) -> PartialShape:
        return UNKNOWN_RANK if self.variable_shape is None else self.variable_shape

    def run(self, init_value: np.ndarray | None = None, *, variables: Variables) -> np.ndarray:
        held = variables.read(self.variable_id)
        if held is not None:
            return held
        return init_value if init_value is not None else _zeros(self._shape, self._type.dtype)


def _named(at: Site, shape: PartialShape) -> PartialShape:
    """Return a shape whose unknown dims are named after the layer and the axis, as those of a Parameter are."""
    if shape.dims is None:
        return shape
    return PartialShape(tuple(Dim(d.lo, d.hi, Dim.unknown(f"{at.name}[{axis}]").term) for axis, d in enumerate(shape)))


def _zeros(shape: PartialShape, dtype: np.dtype) -> np.ndarray:
    """Return the value of a variable without ``init_value``: zeros, with the least length along unknown dims."""
    return blank([d.lo for d in shape.dims or ()], np.empty(0, dtype))


@op("ReadValue", since=3, spec="infrastructure/read-value-3")
class ReadValue3(Op):
    """Return the value that Assign stored in an earlier run, and ``init_value`` before that."""

    variable_id = attr.str()
    inputs = ports(init_value="any")
    needs = ("variables",)
    pure = False

    def infer(self, at: Site, init_value: Value, *, variables: Variables | None) -> Value:
        return Value(init_value.type, init_value.shape)

    def run(self, init_value: np.ndarray, *, variables: Variables) -> np.ndarray:
        held = variables.read(self.variable_id)
        return init_value if held is None else held
