"""ShapeOf: the shape of a tensor as a tensor.  Spec: shape/shape-of-{1,3}."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape


@op("ShapeOf", since=3, spec="shape/shape-of-3")
class ShapeOf3(Op):
    """Return the dims of ``data`` as a 1D tensor of ``output_type``.

    C1  ``output_type`` is i32 or i64.
    """

    output_type = attr.element_type("i64")
    checked = False
    inputs = ports(data="T")

    def infer(self, at: Site, data: Value) -> Value:
        at.require(self.output_type.name in ("i32", "i64"), "C1", f"output_type is {self.output_type}, not i32 or i64")
        if data.shape.dims is None:
            return Value(self.output_type, PartialShape.of_rank(1))
        return Value.of_dims(data.shape.dims, self.output_type)

    def run(self, data: np.ndarray) -> np.ndarray:
        return np.array(data.shape, self.output_type.dtype)


@op("ShapeOf", since=1, spec="shape/shape-of-1")
class ShapeOf1(ShapeOf3):
    """Compute the same as ShapeOf-3, always in i64."""

    attributes = {}
    output_type: ElementType = ELEMENT_TYPES["i64"]
