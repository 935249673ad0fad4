"""GroupNormalization: normalise groups of channels.  Spec: normalization/group-normalization-12."""

import numpy as np

from irrun.kernels.blocks import SMALL_BLOCK_BYTES, blocks
from irrun.kernels.elementwise import native
from irrun.kernels.normalization import standardise, standardised
from irrun.opdef import Kernel, OnTileReady, Op, Request, Site, Value, attr, ignore_tile, op, ports
from irrun.ops._normalization import check_positive
from irrun.ops._unary import through_floats


@op("GroupNormalization", since=12, spec="normalization/group-normalization-12")
class GroupNormalization(Op):
    """Normalise each group of channels to mean 0 and deviation 1, then apply ``scale`` and ``bias`` per channel.

    C1  ``data`` has at least rank 2.
    C2  ``scale`` and ``bias`` are 1D and have one element for each channel.
    C3  ``num_groups`` is positive and divides the number of channels.
    C4  ``epsilon`` is positive.
    """

    per_element = 7
    num_groups = attr.int()
    epsilon = attr.float()
    inputs = ports(data="T", scale="T", bias="T")
    types = {"T": "float"}
    channels_last = True

    def infer(self, at: Site, data: Value, scale: Value, bias: Value) -> Value:
        at.require(data.rank is None or data.rank >= 2, "C1", f"data {data.shape} has rank {data.rank}, less than 2")
        channels = data.shape[1]
        for name, value in {"scale": scale, "bias": bias}.items():
            at.require(value.rank in (None, 1), "C2", f"{name} is {value.shape}, not 1D")
            met = channels.meet(value.shape[0])
            at.require(
                met is not None, "C2", f"{name} has {value.shape[0]} elements, but there are {channels} channels"
            )
            channels = met or channels
        groups = self.num_groups
        at.require(groups >= 1, "C3", f"num_groups is {groups}, not positive")
        divided = channels.hi >= groups and (channels.value or 0) % groups == 0
        at.require(divided, "C3", f"{channels} channels cannot be divided into {groups} groups")
        check_positive(at, "C4", "epsilon", self.epsilon)
        return data if data.rank is None else data.reshaped(data.shape.replace(1, channels))

    def prepare(self, request: Request) -> Kernel | None:
        data, scale, bias = request.inputs
        if data is None or not native(data, scale, bias) or data.shape.static is None:
            return None
        if request.channels_last:
            return self._prepare_channels_last(data.shape.static, data.type.dtype)
        batch, channels, *spatial = data.shape.static
        groups, size = self.num_groups, channels // self.num_groups
        along = tuple(range(2, len(spatial) + 3))
        function = standardise(along, len(spatial) + 3, self.epsilon)
        cuts = blocks((batch, groups, size, *spatial), data.type.dtype.itemsize, SMALL_BLOCK_BYTES, along)

        def call(
            x: np.ndarray,
            scale: np.ndarray,
            bias: np.ndarray,
            *,
            out: np.ndarray | None = None,
            on_tile_ready: OnTileReady = ignore_tile,
        ) -> np.ndarray:
            if out is None:
                out = np.empty(x.shape, x.dtype)
            grouped, into = (a.reshape(batch, groups, size, *spatial) for a in (x, out))
            weights, biases = (a.reshape(groups, size, *(1,) * len(spatial)) for a in (scale, bias))
            for index in cuts:
                part = into[index]
                function(grouped[index], part)
                np.multiply(part, weights[index[1]], part)
                np.add(part, biases[index[1]], part)
                of_group = index[1]
                on_tile_ready((index[0], slice(of_group.start * size, of_group.stop * size), *index[3:]))
            return out

        return Kernel(call, "in blocks", out="tiles")

    def _prepare_channels_last(self, shape: tuple[int, ...], dtype: np.dtype) -> Kernel | None:
        if not all(shape):
            return None
        batch, channels, high, broad = shape
        size, epsilon = channels // self.num_groups, dtype.type(self.epsilon)
        cuts = blocks((high,), broad * channels * dtype.itemsize, SMALL_BLOCK_BYTES)

        def along(row: np.ndarray) -> np.ndarray:
            """Repeat the values of the channels for each pixel of a row: numpy is slow on short rows."""
            return np.tile(row, broad)

        def mean(row: np.ndarray) -> np.ndarray:
            """Return the mean of each group, once per channel; ``row`` holds the sums over the rows of an image."""
            sums = np.add.reduce(row.reshape(broad, channels), 0).reshape(-1, size).sum(1)
            return np.repeat(sums / row.dtype.type(high * broad * size), size)

        def call(
            x: np.ndarray,
            scale: np.ndarray,
            bias: np.ndarray,
            *,
            out: np.ndarray | None = None,
            on_tile_ready: OnTileReady = ignore_tile,
        ) -> np.ndarray:
            if out is None:
                out = np.empty(x.shape, x.dtype)
            for image in range(batch):
                given, into = (a[image].reshape(high, broad * channels) for a in (x, out))
                middle, squares = along(mean(np.add.reduce(given, 0))), np.zeros(broad * channels, x.dtype)
                for (rows,) in cuts:
                    part = into[rows]
                    np.subtract(given[rows], middle, part)
                    squares += np.add.reduce(np.multiply(part, part), 0)
                weights, biases = along(scale / np.sqrt(mean(squares) + epsilon)), along(bias)
                for (rows,) in cuts:
                    part = into[rows]
                    np.multiply(part, weights, part)
                    np.add(part, biases, part)
                    on_tile_ready((slice(image, image + 1), rows, slice(0, broad), slice(0, channels)))
            return out

        return Kernel(call, "in blocks, channels last", out="tiles")

    def run(self, data: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
        batch, channels, *spatial = data.shape
        grouped = batch, self.num_groups, channels // self.num_groups, *spatial
        by_channel = channels, *(1,) * len(spatial)

        def kernel(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
            normalised = standardised(x.reshape(grouped), tuple(range(2, len(grouped))), self.epsilon)
            return normalised.reshape(x.shape) * scale.reshape(by_channel) + bias.reshape(by_channel)

        return through_floats(kernel, data, scale, bias)
