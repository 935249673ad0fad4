"""ConvolutionBackpropData: a transposed convolution.  Spec: convolution/convolution-backprop-data-1."""

from collections.abc import Sequence

import numpy as np

from irrun.kernels.convolution.transposed import spread
from irrun.opdef import Site, op
from irrun.ops._backprop import BackpropBase
from irrun.ops._convolution import ungrouped
from irrun.types import Dim


@op("ConvolutionBackpropData", since=1, spec="convolution/convolution-backprop-data-1")
class ConvolutionBackpropData(BackpropBase):
    """Compute a transposed convolution of ``data`` with ``filters`` (in, out, spatial axes).

    Each element of ``data`` adds its products with the filters to the elements of the output that its window covers.

    C1  ``data`` and ``filters`` have the same rank: 3, 4 or 5.
    C2  ``strides``, ``dilations``, ``output_padding`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the dims of the kernel are positive, pads and ``output_padding`` not negative.
    C4  The pads are not larger than the output from which they are cropped.
    C5  ``data`` has as many channels as there are filters.
    C6  ``output_shape`` is 1D with one entry for each spatial axis, none negative.
    """

    def channels(self, at: Site, data: Dim, filters: Sequence[Dim]) -> Dim:
        ins, outs = filters
        return ungrouped(at, data, ins, outs)

    def run(self, data: np.ndarray, filters: np.ndarray, output_shape: np.ndarray | None = None) -> np.ndarray:
        sizes = None if output_shape is None else output_shape.tolist()
        axes = self.axes_to(data.shape[2:], filters.shape[2:], sizes)
        return spread(data, filters[np.newaxis], axes)
