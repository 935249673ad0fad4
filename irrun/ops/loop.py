"""Loop: a body run a number of times or while a condition holds.  Spec: infrastructure/loop-5."""

from collections.abc import Mapping

import numpy as np

from irrun.opdef import Body, Op, Site, Value, op, ports, variadic
from irrun.ops._iteration import BackEdges, Maps, Wiring, infer_iterations, run_iterations
from irrun.types import INF, Dim


@op("Loop", since=5, spec="infrastructure/loop-5")
class Loop(Op):
    """Run the body at most ``trip_count`` times, as long as the condition is true. A ``trip_count`` of -1 is no limit.

    C1  ``trip_count`` and ``execution_condition`` have one element each.
    C2  The axis of each sliced input and each concatenated output is within the rank of that tensor.
    C3  All sliced inputs have the same number of slices.
    C4  The port map has an entry for each output.
    C5  ``stride`` is not 0, ``part_size`` is positive, and each slice lies within the sliced axis.
    """

    inputs = ports(trip_count="i32 i64", execution_condition="boolean", inputs=variadic("any", least=0))
    outputs = None
    needs = ("bodies", "maps", "back_edges")

    def infer(
        self,
        at: Site,
        trip_count: Value,
        execution_condition: Value,
        *inputs: Value,
        bodies: Mapping[str, Body],
        maps: Maps,
        back_edges: BackEdges,
    ) -> tuple[Value, ...]:
        for name, value in (("trip_count", trip_count), ("execution_condition", execution_condition)):
            at.require(value.shape.count().fits(1), "C1", f"{name} is {value.shape}, not a single element")
        trips, begins = trip_count.scalar(), execution_condition.exact
        limit = Dim(0, INF) if trips is None else Dim(trips) if trips >= 0 else None
        first = begins is not None and bool(begins.all())
        if not first:
            limit = Dim(0, 0 if begins is not None else limit.hi if limit else INF)
        layer_inputs = (trip_count, execution_condition, *inputs)
        return infer_iterations(at, Wiring.of(maps, back_edges), layer_inputs, bodies["body"], limit, first)

    def run(
        self,
        trip_count: np.ndarray,
        execution_condition: np.ndarray,
        *inputs: np.ndarray,
        bodies: Mapping[str, Body],
        maps: Maps,
        back_edges: BackEdges,
    ) -> tuple[np.ndarray, ...]:
        trips = int(trip_count.item())
        layer_inputs = (trip_count, execution_condition, *inputs)
        return run_iterations(
            Wiring.of(maps, back_edges), layer_inputs, bodies["body"], trips if trips >= 0 else None,
            bool(execution_condition.item()),
        )  # fmt: skip
