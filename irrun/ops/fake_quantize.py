"""FakeQuantize: round to a number of levels within a range.  Spec: quantization/fake-quantize-1."""

from collections.abc import Sequence

import numpy as np

from irrun.kernels.cast import cast, plain
from irrun.kernels.elementwise import elementwise, native
from irrun.opdef import Kernel, Request, Site, Value, attr, op, ports
from irrun.ops._elementwise import Elementwise, reaches
from irrun.types import ElementType, PartialShape


@op("FakeQuantize", since=1, spec="quantization/fake-quantize-1")
class FakeQuantize(Elementwise):
    """Clip to the input range, round to one of its ``levels`` steps, and map the steps to the output range.

    C1  auto_broadcast none: all five shapes are equal.
    C2  auto_broadcast numpy: each limit can be broadcast to ``data``, where leading 1s beyond its rank are ignored.
    C3  auto_broadcast pdpd: each dim of a limit, without trailing 1s, is 1 or equals the dim of ``data`` at the same
        place, counted from ``axis`` on.
    C4  ``levels`` is at least 2.
    """

    levels = attr.int()
    inputs = ports(data="T", input_low="T", input_high="T", output_low="T", output_high="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, *limits: Value) -> Value:
        at.require(self.levels >= 2, "C4", f"levels is {self.levels}, less than 2")
        shape = data.shape
        for port, limit in zip(self.inputs[1:], limits):
            if self.auto_broadcast == "numpy":
                fits = reaches(shape, _within(limit.shape, shape.rank))
                at.require(fits, "C2", f"{port.name} {limit.shape} cannot be broadcast to data {shape}")
            else:
                shape = self.broadcast(at, shape, limit.shape, ("data", port.name))
        return data.reshaped(shape)

    def prepare(self, request: Request) -> Kernel | None:
        values = [value for value in request.inputs if value is not None]
        return elementwise(self._quantized, *values) if self.is_usual(values) else None

    def is_usual(self, values: Sequence[Value]) -> bool:
        """Return whether the inputs are all f32 or all f64, and numpy broadcasts the limits to ``data``.

        The ranges are then known and finite, and the low ends of the input ranges below their high ends.
        """
        low, high, *out = (value.exact for value in values[1:])
        ranks = [value.rank or 0 for value in values]
        plain = native(*values) and self.as_numpy(*values) and max(ranks) == ranks[0]
        if not plain or low is None or high is None or any(end is None or not np.isfinite(end).all() for end in out):
            return False
        return bool(((low < high) & np.isfinite(high - low)).all())

    def _quantized(
        self,
        x: np.ndarray,
        in_low: np.ndarray,
        in_high: np.ndarray,
        out_low: np.ndarray,
        out_high: np.ndarray,
        *,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Compute the same as ``run``, for floats and finite input ranges whose low end is below the high end.

        The steps are the same to the bit. Only the map to the output range rounds once instead of twice.
        """
        steps = x.dtype.type(self.levels - 1)
        out = x.clip(in_low, in_high, out)
        if in_low.any():
            np.subtract(out, in_low, out)
        np.divide(out, in_high - in_low, out)
        np.multiply(out, steps, out)
        np.rint(out, out)
        np.multiply(out, (out_high - out_low) / steps, out)
        return np.add(out, out_low, out) if out_low.any() else out

    def run(self, data: np.ndarray, *limits: np.ndarray) -> np.ndarray:
        element_type = ElementType.of(data.dtype)
        assert element_type is not None
        x, *ranges = map(plain, (data, *limits))
        in_low, in_high, out_low, out_high = (self._onto(x, limit) for limit in ranges)
        steps = x.dtype.type(self.levels - 1)
        with np.errstate(all="ignore"):
            share = (x - in_low) / (in_high - in_low)
            result = np.rint(share * steps) / steps * (out_high - out_low) + out_low
        result = np.where(x > np.maximum(in_low, in_high), out_high, result)
        return cast(np.where(x <= np.minimum(in_low, in_high), out_low, result), element_type)

    def _onto(self, data: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """Return ``limit`` in a shape that numpy broadcasts to ``data``."""
        if self.auto_broadcast == "numpy" and limit.ndim > data.ndim:
            return limit.reshape(limit.shape[limit.ndim - data.ndim :])
        return self.aligned(data, limit)


def _within(limit: PartialShape, rank: int | None) -> PartialShape:
    """Return the shape without leading 1s beyond ``rank`` dims, or unchanged if one of these dims cannot be 1."""
    if limit.dims is None or rank is None or len(limit) <= rank:
        return limit
    beyond = len(limit) - rank
    return PartialShape(limit.dims[beyond:]) if all(n.fits(1) for n in limit.dims[:beyond]) else limit
