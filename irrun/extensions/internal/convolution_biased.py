"""ConvolutionBiased: a convolution that adds a bias.  Page: internal/convolution-biased."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.internal._layouts import widened
from irrun.opdef import Op, Revision, Site, Value, attr, op, opt, ports
from irrun.types import Dim, PartialShape, product


@op("ConvolutionBiased", spec="internal/convolution-biased")
class ConvolutionBiased(Op):
    """Correlate ``data`` (batch, in, 1 to 3 spatial axes) with each of ``filters`` (out, in, …), and add ``bias``.

    C1  ``data`` and ``filters`` have the same rank: 3, 4 or 5.
    C2  ``strides``, ``dilations`` and explicit pads have one entry for each spatial axis.
    C3  Strides, dilations and the dims of the kernel are positive, pads not negative.
    C4  The dilated kernel fits into the padded data. With same_upper and same_lower, it always does.
    C5  ``data`` has as many channels as each filter takes.
    C6  ``bias`` has the rank of the output, and can be broadcast to the output.
    """

    strides = attr.ints()
    pads_begin = attr.ints()
    pads_end = attr.ints()
    dilations = attr.ints()
    auto_pad = attr.choice("explicit", "same_upper", "same_lower", "valid", default="explicit")
    revisions = (Revision("", "18f16f0f9edec8213716e03a6225ac6b7a50c895", "the only page that is stored"),)
    inputs = ports(data="T", filters="T", bias=opt("T"))
    types = {"T": "numeric"}

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        filters = inputs[1]
        if filters is None or filters.shape.dims is None:
            return Dim.unknown()
        return outputs[0].shape.count() * product(filters.shape.dims[1:]) * 2

    def infer(self, at: Site, data: Value, filters: Value, bias: Value | None = None) -> Value:
        ranks = {rank for rank in (data.rank, filters.rank) if rank is not None}
        fits = len(ranks) < 2 and ranks <= {3, 4, 5}
        at.require(fits, "C1", f"data is {data.shape}, filters are {filters.shape}: not both of rank 3, 4 or 5")
        spatial = max(ranks, default=len(self.strides) + 2) - 2
        for name in ("strides", "dilations", *(("pads_begin", "pads_end") if self.auto_pad == "explicit" else ())):
            entries = getattr(self, name)
            at.require(len(entries) == spatial, "C2", f"{name} has {len(entries)} entries for {spatial} spatial axes")
            least = 0 if name.startswith("pads") else 1
            at.require(min(entries, default=least) >= least, "C3", f"{name} is {','.join(map(str, entries))}")
        batch, channels, *sizes = data.shape.dims or PartialShape.of_rank(spatial + 2)
        outs, ins, *kernel = filters.shape.dims or PartialShape.of_rank(spatial + 2)
        message = f"data has {channels} channels, but the filters take {ins}"
        at.require(channels.meet(ins) is not None, "C5", message, dims=(channels, ins))
        dims = [batch, outs]
        for axis, (size, width) in enumerate(zip(sizes, kernel)):
            at.require(width.hi > 0, "C3", f"the kernel has {width} elements along spatial axis {axis}")
            dims.append(self._slid(at, axis, size, width))
        output = data.reshaped(dims)
        if bias is not None:
            joint = output.shape.broadcast(bias.shape)
            grown = joint is None or (bias.rank is not None and (bias.rank != len(dims) or not _within(joint, dims)))
            at.require(not grown, "C6", f"bias {bias.shape} cannot be broadcast to the output {output.shape}")
        return output

    def _slid(self, at: Site, axis: int, size: Dim, width: Dim) -> Dim:
        """Return the dim of the output along a spatial axis."""
        stride = self.strides[axis]
        if self.auto_pad.startswith("same"):
            return size.ceil_div(stride)
        pads = self.pads_begin[axis] + self.pads_end[axis] if self.auto_pad == "explicit" else 0
        room = size + pads - ((width - 1) * self.dilations[axis] + 1)
        message = f"the kernel does not fit into {size} elements and {pads} of padding along spatial axis {axis}"
        at.require(room.hi >= 0, "C4", message)
        return room.max(0) // stride + 1

    def run(self, data: np.ndarray, filters: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        is_float = data.dtype.kind not in "iub" and data.dtype != np.float64
        x, weights = (widened(data), widened(filters)) if is_float else (data, filters)
        spatial = x.ndim - 2
        if self.auto_pad.startswith("same") and 0 in x.shape[2:]:
            sizes = [-(-size // stride) for size, stride in zip(x.shape[2:], self.strides)]
            return np.zeros((len(x), len(weights), *sizes), data.dtype)
        spans = [(width - 1) * dilation + 1 for width, dilation in zip(weights.shape[2:], self.dilations)]
        x = np.pad(x, [(0, 0), (0, 0), *(self._pads(axis, x.shape[axis + 2], spans[axis]) for axis in range(spatial))])
        windows = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, spatial + 2)))
        steps = (..., *(slice(None, None, s) for s in self.strides), *(slice(None, None, d) for d in self.dilations))
        letters = "xyz"[:spatial]
        with np.errstate(all="ignore"):
            output = np.einsum(
                f"nc{letters}{letters.upper()},oc{letters.upper()}->no{letters}", windows[steps], weights
            )
            if bias is not None:
                output = output + (widened(bias) if is_float else bias)
        return output.astype(data.dtype)

    def _pads(self, axis: int, size: int, span: int) -> tuple[int, int]:
        """Return the padding before and behind a spatial axis."""
        if self.auto_pad == "explicit":
            return self.pads_begin[axis], self.pads_end[axis]
        if self.auto_pad == "valid":
            return 0, 0
        stride = self.strides[axis]
        total = max((-(-size // stride) - 1) * stride + span - size, 0)
        return (total // 2, total - total // 2) if self.auto_pad == "same_upper" else (total - total // 2, total // 2)


def _within(joint: PartialShape, dims: Sequence[Dim]) -> bool:
    """Return whether broadcasting a bias may leave the shape of an output as it is."""
    return joint.dims is None or all(a.meet(b) is not None for a, b in zip(joint.dims, dims))
