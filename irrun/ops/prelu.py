"""PReLU: ReLU with a slope for negative elements.  Spec: activation/prelu-1."""

import numpy as np

from irrun.kernels.elementwise import elementwise, in_blocks, leaky, leaky_along, native
from irrun.opdef import Kernel, Op, Request, Site, Value, op, ports
from irrun.ops._elementwise import reaches
from irrun.types import PartialShape


@op("PReLU", since=1, spec="activation/prelu-1")
class PReLU(Op):
    """Compute ``data`` where it is not negative, and ``data * slope`` elsewhere.

    C1  ``slope`` is 1D with an entry for each channel (dim 1 of ``data``, or dim 0 if ``data`` is 1D), or it can be
        broadcast to the shape of ``data`` by the rules of numpy.
    """

    per_element = 1
    inputs = ports(data="T", slope="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, slope: Value) -> Value:
        at.require(
            _fits(data.shape, slope.shape),
            "C1",
            f"slope {slope.shape} is not one entry per channel of data {data.shape} and cannot be broadcast",
        )
        return (slope if data.type.kind == "dynamic" else data).reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        data, slope = request.inputs
        slopes = None if slope is None else slope.exact
        if data is None or not native(data, slope) or slopes is None or not np.isfinite(slopes).all():
            return None
        if slopes.size == 1:
            return elementwise(in_blocks(leaky(slopes.item())), data)
        rank = data.rank or 0
        by_channel = slopes.ndim == 1 and rank > 2 and data.shape[1].fits(len(slopes))
        return None if by_channel or slopes.ndim > rank else elementwise(leaky_along(slopes), data)

    def run(self, data: np.ndarray, slope: np.ndarray) -> np.ndarray:
        if slope.ndim == 1 and data.ndim > 1 and len(slope) == data.shape[1]:
            slope = slope.reshape(-1, *(1,) * (data.ndim - 2))
        elif slope.ndim > data.ndim:  # the surplus leading dims are all 1
            slope = slope.reshape(slope.shape[slope.ndim - data.ndim :])
        with np.errstate(all="ignore"):
            return np.where(data < 0, np.multiply(data, slope), data)


def _fits(data: PartialShape, slope: PartialShape) -> bool:
    """Return whether ``slope`` may be one number per channel of ``data``, or be broadcast to ``data``."""
    if data.rank is None or slope.dims is None:
        return True
    if slope.rank == 1 and data.rank > 1 and slope[0].meet(data[1]) is not None:
        return True
    beyond = max(len(slope) - data.rank, 0)
    return all(n.fits(1) for n in slope.dims[:beyond]) and reaches(data, PartialShape(slope.dims[beyond:]))
