"""Convert: another element type.  Spec: type/convert-1."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._cast import cast
from irrun.types import ElementType


@op("Convert", since=1, spec="type/convert-1")
class Convert(Op):
    """Each element as ``destination_type``, converted as C does it.

    C1  ``destination_type`` is boolean or numeric.
    """

    destination_type: ElementType = attr.element_type()
    inputs = ports(data="T")
    types = {"T": "boolean numeric"}
    carries = True

    def infer(self, at: Site, data: Value) -> Value:
        fine = self.destination_type.kind not in ("string", "dynamic")
        at.require(fine, "C1", f"destination_type is {self.destination_type}; nothing can be converted to it")
        return data.typed(self.destination_type)

    def run(self, data: np.ndarray) -> np.ndarray:
        return cast(data, self.destination_type)
