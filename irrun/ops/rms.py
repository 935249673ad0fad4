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
        factors = None if data is None else self.factors(data, gamma)
        if data is None or factors is None:
            return None

        def function(x: np.ndarray, out: np.ndarray) -> None:
            count = np.asarray(x.shape[-1], x.dtype)
            np.divide(x, np.sqrt(row_sums(x, x) / count + x.dtype.type(self.epsilon)), out)
            if gamma is not None:
                np.multiply(out, factors, out)

        return whole_along(function, ((data.rank or 1) - 1,))

    def factors(self, data: Value, gamma: Value | None) -> np.ndarray | None:
        """Return the numbers by which the elements of each row are multiplied, or one number for all of them.

        Return None if they are unknown or differ from row to row, or if the types are not all f32 or all f64.
        """
        if not native(data) or not data.rank or self.output_type not in (data.type, _DYNAMIC):
            return None
        if gamma is None:
            return np.ones(1, data.type.dtype)
        factors = gamma.exact
        known = native(data, gamma) and factors is not None and factors.size in factors.shape[-1:]
        return factors if known else None

    def run(self, data: np.ndarray, gamma: np.ndarray | None = None) -> np.ndarray:
        x = plain(data)
        with np.errstate(all="ignore"):
            result = x / np.sqrt(mean(x * x, (x.ndim - 1,)) + x.dtype.type(self.epsilon))
            if gamma is not None:
                result = result * plain(gamma)
        element_type = ElementType.of(data.dtype) if self.output_type.kind == "dynamic" else self.output_type
        assert element_type is not None
        return cast(result, element_type)
