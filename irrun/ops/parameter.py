"""Parameter: an input of the model.  Spec: infrastructure/parameter-1."""

from irrun.opdef import Op, Site, Value, attr, op
from irrun.types import Dim, PartialShape


@op("Parameter", since=1, spec="infrastructure/parameter-1")
class Parameter(Op):
    """Stand for a tensor that the caller passes. It has no inputs and no kernel."""

    element_type = attr.element_type()
    shape = attr.shape()

    def infer(self, at: Site) -> Value:
        if self.shape.dims is None:
            return Value(self.element_type, self.shape)
        # each unknown dim is named after the layer and the axis, so that it can be traced through the model
        named = [Dim(d.lo, d.hi, Dim.unknown(f"{at.name}[{axis}]").term) for axis, d in enumerate(self.shape)]
        return Value(self.element_type, PartialShape(tuple(named)))
