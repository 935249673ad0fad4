"""FakeConvert: round to a float of 8 bits and back.  Spec: quantization/fake-convert-13."""

import ml_dtypes
import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.ops._elementwise import reaches
from irrun.types import ELEMENT_TYPES


@op("FakeConvert", since=13, spec="quantization/fake-convert-13")
class FakeConvert(Op):
    """Round ``data * scale - shift`` to ``destination_type``, then shift and scale it back.

    C1  ``scale`` can be broadcast to the shape of ``data`` by the rules of numpy.
    C2  ``shift`` has the shape of ``scale``.
    """

    destination_type = attr.choice("f8e4m3", "f8e5m2")
    inputs = ports(data="T", scale="T", shift=opt("T"))
    types = {"T": "f16 bf16 f32"}

    def infer(self, at: Site, data: Value, scale: Value, shift: Value | None = None) -> Value:
        at.require(
            reaches(data.shape, scale.shape), "C1", f"scale {scale.shape} cannot be broadcast to data {data.shape}"
        )
        if shift is not None:
            both = scale.shape.meet(shift.shape)
            at.require(both is not None, "C2", f"scale is {scale.shape}, but shift is {shift.shape}")
            at.require(
                reaches(data.shape, shift.shape), "C1", f"shift {shift.shape} cannot be broadcast to data {data.shape}"
            )
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, scale: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        x, factor = plain(data), plain(scale)
        offset = np.float32(0) if shift is None else plain(shift)
        narrow = ELEMENT_TYPES[self.destination_type].dtype
        most = np.float32(ml_dtypes.finfo(narrow).max)
        with np.errstate(all="ignore"):
            # OpenVINO clips numbers beyond the range of the type to its limits
            rounded = np.clip(x * factor - offset, -most, most).astype(narrow).astype(np.float32)
            return np.asarray((rounded + offset) / factor).astype(data.dtype)
