"""Convolution: cross-correlation with a set of filters.  Spec: convolution/convolution-1."""

from collections.abc import Sequence

import numpy as np

from irrun.kernels.convolution.planes import convolve
from irrun.opdef import Site, op
from irrun.ops._convolution import ConvolutionBase, ungrouped
from irrun.types import Dim


@op("Convolution", since=1, spec="convolution/convolution-1")
class Convolution(ConvolutionBase):
    """Correlate ``data`` (batch, in, 1 to 3 spatial axes) with each of ``filters`` (out, in, …).

    C1  ``data`` and ``filters`` have the same rank: 3, 4 or 5.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the dims of the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    C5  ``data`` has as many channels as each filter takes.
    """

    def channels(self, at: Site, data: Dim, filters: Sequence[Dim]) -> Dim:
        outs, ins = filters
        return ungrouped(at, data, ins, outs)

    def run(self, data: np.ndarray, filters: np.ndarray) -> np.ndarray:
        return convolve(data, filters[np.newaxis], self.axes(data.shape[2:], filters.shape[2:]))
