"""BatchNormInference: normalise channels by given statistics.  Spec: normalization/batch-norm-inference-{1,5}."""

import numpy as np

from irrun.kernels.blocks import BLOCK_BYTES, SMALL_BLOCK_BYTES, each_block, reporting
from irrun.kernels.elementwise import native
from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Index, Kernel, OnTileReady, Op, Request, Site, Value, attr, ignore_tile, op, ports


@op("BatchNormInference", since=5, spec="normalization/batch-norm-inference-5")
class BatchNormInference5(Op):
    """Subtract ``mean`` from each channel, divide by the root of ``variance``, multiply by ``gamma``, add ``beta``.

    C1  ``data`` has at least rank 2 and at least one channel.
    C2  ``gamma``, ``beta``, ``mean`` and ``variance`` are 1D and have one element for each channel.
    C3  ``epsilon`` is not negative.
    """

    per_element = 2
    epsilon = attr.float()
    order = (0, 1, 2, 3, 4)
    """The positions of data, gamma, beta, mean and variance among the inputs."""
    inputs = ports(data="T", gamma="T", beta="T", mean="T", variance="T")
    types = {"T": "float"}
    channels_last = True

    def infer(self, at: Site, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value, /) -> Value:
        at.require(self.epsilon >= 0, "C3", f"epsilon {self.epsilon:g} is negative")
        at.require(data.rank is None or data.rank >= 2, "C1", f"data {data.shape} has rank {data.rank}, less than 2")
        channels = data.shape[1]
        at.require(channels.hi >= 1, "C1", f"data {data.shape} has no channels")
        for name, value in {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}.items():
            at.require(value.rank in (None, 1), "C2", f"{name} is {value.shape}, not 1D")
            met = channels.meet(value.shape[0])
            at.require(
                met is not None, "C2", f"{name} has {value.shape[0]} elements, but there are {channels} channels"
            )
            channels = met or channels
        return data if data.rank is None else data.reshaped(data.shape.replace(1, channels))

    def prepare(self, request: Request) -> Kernel | None:
        data, *statistics = (request.inputs[number] for number in self.order)
        axis = 1
        if request.channels_last and data is not None:
            data, axis = data.channels_last(), 3
        known = None if data is None else data.shape.static
        contents = [v.exact for v in statistics if v is not None and v.exact is not None]
        if data is None or known is None or len(contents) < 4 or not native(data, *statistics):
            return None
        gamma, beta, mean, variance = (array.reshape(-1, *(1,) * (len(known) - axis - 1)) for array in contents)
        with np.errstate(all="ignore"):
            scale = gamma / np.sqrt(variance + variance.dtype.type(self.epsilon))
            shift = beta - mean * scale
        if not (np.isfinite(scale).all() and np.isfinite(shift).all()):
            return None
        place = self.order[0]

        def call(
            *arrays: np.ndarray, out: np.ndarray | None = None, on_tile_ready: OnTileReady = ignore_tile
        ) -> np.ndarray:
            x = arrays[place]
            if out is None:
                out = np.empty(known, x.dtype)
            whole = out

            def fill(index: Index) -> None:
                part, channels = whole[index], index[axis]
                np.multiply(x[index], scale[channels], part)
                np.add(part, shift[channels], part)

            each_block(
                reporting(fill, whole, on_tile_ready),
                known,
                x.itemsize,
                SMALL_BLOCK_BYTES,
                work=x.nbytes,
                least=BLOCK_BYTES,
            )
            return whole

        return Kernel(call, out="tiles")

    def run(
        self, data: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray, /
    ) -> np.ndarray:
        work = wide(data.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = gamma.astype(work) / np.sqrt(variance.astype(work) + work.type(self.epsilon))
        by_channel = (-1, *(1,) * (data.ndim - 2))
        centred = data.astype(work, copy=False) - mean.astype(work).reshape(by_channel)
        return narrow(centred * scale.reshape(by_channel) + beta.astype(work).reshape(by_channel), data.dtype)


@op("BatchNormInference", since=1, spec="normalization/batch-norm-inference-1")
class BatchNormInference1(BatchNormInference5):
    """Compute the same as BatchNormInference-5, with ``gamma`` and ``beta`` before ``data``.

    C1  ``data`` has at least rank 2 and at least one channel.
    C2  ``gamma``, ``beta``, ``mean`` and ``variance`` are 1D and have one element for each channel.
    C3  ``epsilon`` is not negative.
    """

    # OpenVINO has the inputs in this order; the page of version 1 is a copy of the page of version 5
    order = (2, 0, 1, 3, 4)
    inputs = ports(gamma="T", beta="T", data="T", mean="T", variance="T")

    def infer(self, at: Site, gamma: Value, beta: Value, data: Value, mean: Value, variance: Value, /) -> Value:
        return super().infer(at, data, gamma, beta, mean, variance)

    def run(
        self, gamma: np.ndarray, beta: np.ndarray, data: np.ndarray, mean: np.ndarray, variance: np.ndarray, /
    ) -> np.ndarray:
        return super().run(data, gamma, beta, mean, variance)
