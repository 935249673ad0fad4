"""Convert: another element type.  Spec: type/convert-1."""

import numpy as np

from irrun.kernels.cast import cast
from irrun.kernels.elementwise import converting, elementwise, out_of
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports
from irrun.types import ElementType


@op("Convert", since=1, spec="type/convert-1")
class Convert(Op):
    """Convert each element to ``destination_type``, as C does.

    C1  ``destination_type`` is boolean or numeric.
    """

    destination_type: ElementType = attr.element_type()
    checked = False
    inputs = ports(data="T")
    types = {"T": "boolean numeric u1 u3 u6 nf4"}
    carries = True

    def infer(self, at: Site, data: Value) -> Value:
        convertible = self.destination_type.kind not in ("string", "dynamic")
        at.require(convertible, "C1", f"destination_type is {self.destination_type}, not boolean or numeric")
        return data.typed(self.destination_type)

    def prepare(self, request: Request) -> Kernel | None:
        (data,) = request.inputs
        assert data is not None
        to = self.destination_type
        both = all(dtype.isbuiltin == 1 and dtype.kind in "fiub" for dtype in (data.type.dtype, to.dtype))
        plain = both and to.name not in ("u1", "u3", "u6", "nf4")
        if not plain or data.type.dtype == to.dtype:
            return None
        if to.kind == "boolean":
            return elementwise(lambda x, out=None: np.not_equal(x, 0, out), data)
        checked = data.type.dtype.kind == "f" and to.is_integer
        return elementwise(out_of(self.run) if checked else converting(to.dtype), data)

    def run(self, data: np.ndarray) -> np.ndarray:
        return cast(data, self.destination_type)
