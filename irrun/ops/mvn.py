"""MVN: subtract the mean, divide by the deviation.  Spec: normalization/mvn-{1,6}."""

import numpy as np

from irrun.kernels.blocks import whole_along
from irrun.kernels.elementwise import native
from irrun.kernels.normalization import mean, standardise, standardised
from irrun.opdef import CHANNELS_LAST, Kernel, Op, Request, Site, Value, attr, op, ports
from irrun.ops._normalization import check_axes, check_count, check_positive, places
from irrun.ops._unary import through_floats


@op("MVN", since=6, spec="normalization/mvn-6")
class MVN6(Op):
    """Subtract the mean of ``data`` along ``axes``. With ``normalize_variance``, also divide by the standard deviation.

    C1  ``axes`` is 1D.
    C2  Each entry of ``axes`` is at least -rank and less than the rank of ``data``.
    C3  ``axes`` has at most as many entries as ``data`` has axes.
    C4  ``eps`` is positive.
    """

    per_element = 5
    normalize_variance = attr.bool()
    eps = attr.float()
    eps_mode = attr.choice("inside_sqrt", "outside_sqrt")
    inputs = ports(data="T", axes="T_IND")
    types = {"T": "float", "T_IND": "i32 i64"}
    channels_last = {"axes": "axes"}

    def infer(self, at: Site, data: Value, axes: Value) -> Value:
        at.require(axes.rank in (None, 1), "C1", f"axes is {axes.shape}, not 1D")
        check_axes(at, data, axes)
        check_count(at, "C3", data, axes)
        check_positive(at, "C4", "eps", self.eps)
        return data.reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        data, axes = request.inputs
        numbers = None if axes is None else axes.exact
        if data is None or not native(data) or not data.rank or numbers is None or not numbers.size:
            return None
        along, inside = places(numbers, data.rank), self.eps_mode == "inside_sqrt"
        function = standardise(along, data.rank, self.eps, inside=inside, deviation=self.normalize_variance)
        return whole_along(function, along)

    def run(self, data: np.ndarray, axes: np.ndarray) -> np.ndarray:
        along = places(axes, data.ndim)
        if not self.normalize_variance:
            return through_floats(lambda x: x - mean(x, along), data)
        inside = self.eps_mode == "inside_sqrt"
        return through_floats(lambda x: standardised(x, along, self.eps, inside=inside), data)


@op("MVN", since=2, spec="normalization/mvn-1")
class MVN2(Op):
    """Compute the same as MVN-6 with ``eps`` inside the root, along ``reduction_axes``.

    Without ``reduction_axes``, the axes are all from 1 on with ``across_channels``, and all from 2 on otherwise.

    C1  Each entry of ``reduction_axes`` is at least -rank and less than the rank of ``data``.
    C2  ``eps`` is positive.
    """

    per_element = 5
    # OpenVINO writes across_channels beside reduction_axes, which take precedence; its CPU plugin uses across_channels
    across_channels = attr.bool(default=False)
    reduction_axes = attr.ints(default=())
    normalize_variance = attr.bool()
    eps = attr.float()
    inputs = ports(data="T")
    types = {"T": "float"}
    channels_last = True

    def infer(self, at: Site, data: Value) -> Value:
        for axis in self.reduction_axes:
            at.axis(axis, data.rank, "C1")
        check_positive(at, "C2", "eps", self.eps)
        return data.reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        (data,) = request.inputs
        if data is None or not native(data) or not data.rank or not self.along(data.rank):
            return None
        along = self.along(data.rank)
        if request.channels_last:
            along = tuple(CHANNELS_LAST[axis] for axis in along)
        function = standardise(along, data.rank, self.eps, deviation=self.normalize_variance)
        return whole_along(function, along)

    def along(self, rank: int) -> tuple[int, ...]:
        """Return the axes to normalise, counted from the front."""
        along = tuple({axis % rank for axis in self.reduction_axes})
        return along or tuple(range(1 if self.across_channels else 2, rank))

    def run(self, data: np.ndarray) -> np.ndarray:
        along = self.along(data.ndim)
        if not self.normalize_variance:
            return through_floats(lambda x: x - mean(x, along), data)
        return through_floats(lambda x: standardised(x, along, self.eps), data)
