"""GroupConvolutionBackpropData: transposed convolutions.  Spec: convolution/group-convolution-backprop-data-1."""

from collections.abc import Sequence

import numpy as np

from irrun.kernels.convolution.transposed import spread
from irrun.opdef import Site, op
from irrun.ops._backprop import BackpropBase
from irrun.ops._convolution import grouped
from irrun.types import Dim


@op("GroupConvolutionBackpropData", since=1, spec="convolution/group-convolution-backprop-data-1")
class GroupConvolutionBackpropData(BackpropBase):
    """Split the channels of ``data`` into groups and spread the elements of each through its own ``filters``.

    The filters are (groups, in, out, spatial axes).

    C1  ``data`` has rank 3, 4 or 5, ``filters`` one axis more.
    C2  ``strides``, ``dilations``, ``output_padding`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the dims of the kernel are positive, pads and ``output_padding`` not negative.
    C4  The pads are not larger than the output from which they are cropped.
    C5  ``data`` has as many channels as the filters of all groups take.
    C6  ``output_shape`` is 1D with one entry for each spatial axis, none negative.
    """

    leading = 3

    def channels(self, at: Site, data: Dim, filters: Sequence[Dim]) -> Dim:
        groups, ins, outs = filters
        return grouped(at, data, groups, ins, outs)

    def run(self, data: np.ndarray, filters: np.ndarray, output_shape: np.ndarray | None = None) -> np.ndarray:
        wanted = None if output_shape is None else output_shape.tolist()
        return spread(data, filters, self.axes_to(data.shape[2:], filters.shape[3:], wanted))
