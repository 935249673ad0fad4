"""TensorIterator: a body run over the slices of its inputs.  Spec: infrastructure/tensor-iterator-1."""

from collections.abc import Mapping

import numpy as np

from irrun.opdef import Body, Op, Site, Value, op, ports, variadic
from irrun.ops._iteration import BackEdges, Maps, Wiring, infer_iterations, run_iterations
from irrun.types import Dim


@op("TensorIterator", since=1, spec="infrastructure/tensor-iterator-1")
class TensorIterator(Op):
    """Run the body once for each slice of the sliced inputs.

    C2  The axis of each sliced input and each concatenated output is within the rank of that tensor.
    C3  All sliced inputs have the same number of slices.
    C4  The port map has an entry for each output.
    C5  ``stride`` is not 0, ``part_size`` is positive, and each slice lies within the sliced axis.
    """

    inputs = ports(inputs=variadic("any"))
    outputs = None
    needs = ("bodies", "maps", "back_edges")

    def infer(
        self, at: Site, *inputs: Value, bodies: Mapping[str, Body], maps: Maps, back_edges: BackEdges
    ) -> tuple[Value, ...]:
        wiring = Wiring.of(maps, back_edges)
        limit = None if wiring.sliced else Dim(1)
        return infer_iterations(at, wiring, inputs, bodies["body"], limit, first=True)

    def run(
        self, *inputs: np.ndarray, bodies: Mapping[str, Body], maps: Maps, back_edges: BackEdges
    ) -> tuple[np.ndarray, ...]:
        wiring = Wiring.of(maps, back_edges)
        return run_iterations(wiring, inputs, bodies["body"], None if wiring.sliced else 1, True)
