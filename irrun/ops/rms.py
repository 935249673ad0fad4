"""RMS: divide by the root mean square.  Internal to OpenVINO: models saved after a plugin's transformations hold it."""

import numpy as np

from irrun.kernels.blocks import whole_along
from irrun.kernels.cast import cast, plain
from irrun.kernels.elementwise import native
from irrun.kernels.matmul import row_sums
from irrun.kernels.normalization import mean
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, opt, ports
from irrun.ops._elementwise import reaches
from irrun.types import ELEMENT_TYPES, ElementType

_DYNAMIC = ELEMENT_TYPES["dynamic"]


@op("RMS", since=14, spec="normalization/rms-norm-14")
class RMS(Op):
    """Divide ``data`` by the root of ``epsilon`` plus its mean square along the last axis, and multiply by ``gamma``.

    C1  ``data`` has at least rank 1.
    C2  ``gamma`` can be broadcast to the shape of ``data`` by the rules of numpy.
    """

    per_element = 4
    epsilon = attr.float()
    output_type: ElementType = attr.element_type("dynamic")
    elementwise_affine = attr.bool(default=True)
    inputs = ports(data="T", gamma=opt("T_GAMMA"))
    types = {"T": "float", "T_GAMMA": "float"}

    def infer(self, at: Site, data: Value, gamma: Value | None = None) -> Value:
        at.require(data.rank != 0, "C1", "data is a scalar")
        if gamma is not None:
            at.require(
                reaches(data.shape, gamma.shape), "C2", f"gamma {gamma.shape} cannot be broadcast to data {data.shape}"
            )
        return data.typed(data.type if self.output_type.kind == "dynamic" else self.output_type)

    def prepare(self, request: Request) -> Kernel | None:
        data, gamma = request.first(2)
        if data is None or not native(data) or not data.rank or self.output_type not in (data.type, _DYNAMIC):
            return None
        weights = None if gamma is None else gamma.exact
        if gamma is not None and (not native(data, gamma) or weights is None or weights.size not in weights.shape[-1:]):
            return None

        if request.compiled and data.type.name == "f32":
            from irrun.fast import rows

            width = data.shape[-1].value
            factors = np.ones(1, np.float32) if weights is None else weights.reshape(-1)
            if width is not None and factors.size in (1, width):
                factors = np.ascontiguousarray(np.broadcast_to(factors, (width,)))
                by_rows = rows.OnRows(rows.root_mean_square, np.float32(self.epsilon), factors)
                return whole_along(by_rows.fill, (data.rank - 1,), by_rows.rows)

        def function(x: np.ndarray, out: np.ndarray) -> None:
            count = np.asarray(x.shape[-1], x.dtype)
            np.divide(x, np.sqrt(row_sums(x, x) / count + x.dtype.type(self.epsilon)), out)
            if weights is not None:
                np.multiply(out, weights, out)

        return whole_along(function, (data.rank - 1,))

    def run(self, data: np.ndarray, gamma: np.ndarray | None = None) -> np.ndarray:
        x = plain(data)
        with np.errstate(all="ignore"):
            result = x / np.sqrt(mean(x * x, (x.ndim - 1,)) + x.dtype.type(self.epsilon))
            if gamma is not None:
                result = result * plain(gamma)
        element_type = ElementType.of(data.dtype) if self.output_type.kind == "dynamic" else self.output_type
        assert element_type is not None
        return cast(result, element_type)
