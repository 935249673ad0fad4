"""GroupConvolution: a convolution for each group of channels.  Spec: convolution/group-convolution-1."""

from collections.abc import Sequence

import numpy as np

from irrun.kernels.convolution.planes import convolve
from irrun.opdef import Site, op
from irrun.ops._convolution import ConvolutionBase, grouped
from irrun.types import Dim


@op("GroupConvolution", since=1, spec="convolution/group-convolution-1")
class GroupConvolution(ConvolutionBase):
    """Split the channels of ``data`` into groups and correlate each with its own ``filters`` (groups, out, in, …).

    C1  ``data`` has rank 3, 4 or 5, ``filters`` one axis more.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the dims of the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    C5  ``data`` has as many channels as the filters of all groups take.
    """

    leading = 3

    def channels(self, at: Site, data: Dim, filters: Sequence[Dim]) -> Dim:
        groups, outs, ins = filters
        return grouped(at, data, groups, ins, outs)

    def run(self, data: np.ndarray, filters: np.ndarray) -> np.ndarray:
        return convolve(data, filters, self.axes(data.shape[2:], filters.shape[3:]))
