"""GroupNormalization: normalise groups of channels.  Spec: normalization/group-normalization-12."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._normalization import standardised
from irrun.ops._unary import through_floats


@op("GroupNormalization", since=12, spec="normalization/group-normalization-12")
class GroupNormalization(Op):
    """Each group of channels less its mean, over its deviation; times ``scale``, plus ``bias`` of each channel.

    C1  ``data`` has at least rank 2.
    C2  ``scale`` and ``bias`` are 1D and have one element for each channel.
    C3  The channels can be divided into ``num_groups``.
    """

    num_groups = attr.int()
    epsilon = attr.float()
    inputs = ports(data="T", scale="T", bias="T")
    # OpenVINO: takes integers as well
    types = {"T": "numeric"}

    def infer(self, at: Site, data: Value, scale: Value, bias: Value) -> Value:
        at.require(data.rank is None or data.rank >= 2, "C1", f"data is {data.shape}")
        channels = data.shape[1]
        for name, value in {"scale": scale, "bias": bias}.items():
            at.require(value.rank in (None, 1), "C2", f"{name} is {value.shape}, not 1D")
            met = channels.meet(value.shape[0])
            at.require(met is not None, "C2", f"{name} is {value.shape}, but there are {channels} channels")
            channels = met or channels
        groups = self.num_groups
        at.require(groups >= 1, "C3", f"num_groups is {groups}")
        divided = channels.hi >= groups and (channels.value or 0) % groups == 0
        at.require(divided, "C3", f"{channels} channels cannot be divided into {groups} groups")
        return data if data.rank is None else data.reshaped(data.shape.replace(1, channels))

    def run(self, data: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
        batch, channels, *spatial = data.shape
        grouped = batch, self.num_groups, channels // self.num_groups, *spatial
        by_channel = channels, *(1,) * len(spatial)

        def kernel(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
            found = standardised(x.reshape(grouped), tuple(range(2, len(grouped))), self.epsilon)
            return found.reshape(x.shape) * scale.reshape(by_channel) + bias.reshape(by_channel)

        return through_floats(kernel, data, scale, bias)
