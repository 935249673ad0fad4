"""Find the layer that makes NaN or Inf in a run, and follow these values to the outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from irrun.debug.elements import Element, count, elements, not_finite
from irrun.model import Layer, MapEntry, Model, is_constant

if TYPE_CHECKING:
    from irrun.planning.steps import Step

__all__ = ["NonFinite", "Origin", "Report"]

_MAX_ELEMENTS: Final = 5
"""The most elements of an origin that are kept."""
_MAX_ORIGINS: Final = 100
"""The most origins that a report describes, so that a run in which every layer makes Inf gives a short report."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An output at which NaN or Inf begin: of a layer that makes them, or of a Parameter or Const that holds them.

    ``made_from`` says what a layer makes them from: ``finite`` inputs, or NaN from inputs with ``Inf``. It is empty for
    a Parameter or Const. ``loops`` are the names of the layers in whose bodies the layer is, outermost first, each with
    the number of the iteration, from 0 on. ``nan`` and ``inf`` count elements among ``size``.

    ``path`` are the layers from this one to the output ``reaches`` of the model, both included. If the values reach no
    output, ``path`` is empty and ``ends_at`` names the first layers that turn them into finite ones.
    """

    kind: Literal["layer", "input", "constant"]
    layer: str
    type: str
    port: int
    line: int | None
    loops: tuple[tuple[str, int], ...]
    made_from: Literal["finite", "Inf", ""]
    nan: int
    inf: int
    size: int
    elements: tuple[Element, ...]
    path: tuple[str, ...] = ()
    reaches: str | None = None
    ends_at: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The origins of NaN and Inf in a run, in the order of the run, and how many further ones were found."""

    origins: tuple[Origin, ...]
    further: int = 0

    @property
    def first(self) -> Origin | None:
        """The first layer that makes NaN or Inf that reach an output, or else the first layer that makes any."""
        layers = [origin for origin in self.origins if origin.kind == "layer"]
        return next((origin for origin in layers if origin.reaches is not None), layers[0] if layers else None)

    @property
    def verdict(self) -> Literal["finite", "vanishes", "passed on", "made"]:
        """How NaN or Inf come to an output: ``made`` by a layer, or ``passed on`` from inputs or constants.

        If none reaches an output, the verdict is ``vanishes``.
        """
        reaching = {origin.kind for origin in self.origins if origin.reaches is not None}
        if "layer" in reaching:
            return "made"
        return "passed on" if reaching else "vanishes" if self.origins else "finite"

    def record(self) -> dict[str, Any]:
        """Return the report as a dict for JSON, with NaN and Inf as strings."""
        first = self.first
        return {
            "verdict": self.verdict,
            "first": None if first is None else _record(first),
            "origins": [_record(origin) for origin in self.origins],
            "further": self.further,
        }


def _record(origin: Origin) -> dict[str, Any]:
    return {
        "kind": origin.kind,
        "layer": origin.layer,
        "type": origin.type,
        "port": origin.port,
        "line": origin.line,
        "loops": [{"layer": name, "iteration": iteration} for name, iteration in origin.loops],
        "made_from": origin.made_from,
        "nan": origin.nan,
        "inf": origin.inf,
        "size": origin.size,
        "elements": [
            {"index": list(e.index), "value": _json(e.value), "inputs": [_json(number) for number in e.inputs]}
            for e in origin.elements
        ],
        "path": list(origin.path),
        "reaches": origin.reaches,
        "ends_at": list(origin.ends_at),
    }


def _json(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


# ---------------------------------------------------------------------------------------------
# the run

_Feed = tuple[int, int]
_Scope = tuple[tuple[int, str], ...]
"""A body: the ids of the layers around it, outermost first, each with the tag of its body. Empty for the model."""
_Node = tuple[_Scope, int, int]
"""An output: the body in which it is, the id of its layer, and its position."""


@dataclass(slots=True)
class _Frame:
    """The model, or one body of a layer, while it runs."""

    model: Model
    scope: _Scope = ()
    name: str = ""
    """The name of the layer whose body this is."""
    iteration: int = 0
    counts: dict[_Feed, tuple[int, int]] = field(default_factory=dict)
    """The numbers of NaN and Inf in each output that was examined in this iteration."""
    visited: set[int] = field(default_factory=set)


class NonFinite:
    """A hook that finds the origins of NaN and Inf in one run of ``model``. It keeps no array.

    Use it as ``executable(feeds, hooks=[nonfinite := NonFinite(executable.model)])``, then call ``nonfinite.report()``.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._frames = [_Frame(model)]
        self._models: dict[_Scope, Model] = {(): model}
        self._open: list[Step] = []  # the layers in whose bodies the run is
        self._origins: dict[_Node, Origin] = {}
        self._further = 0
        self._producers: dict[_Node, dict[_Node, None]] = {}
        """For each output that held NaN or Inf, the outputs that it has them from."""
        self._ends: dict[_Node, dict[str, None]] = {}
        """For such an output, the layers that read it and gave finite outputs."""

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        if len(self._frames) <= len(self._open):  # the first layer of a body
            outer = self._open[-1]
            bodies = {tag: plan.model for tag, plan in outer.bodies.items()}
            tag = next(tag for tag, body in bodies.items() if body.layers.get(step.layer.id) is step.layer)
            scope = (*self._frames[-1].scope, (outer.layer.id, tag))
            self._models[scope] = bodies[tag]
            self._frames.append(_Frame(bodies[tag], scope, _name(outer.layer)))
        frame = self._frames[-1]
        if step.layer.id in frame.visited:
            frame.iteration += 1
            frame.visited.clear()
            frame.counts.clear()
        frame.visited.add(step.layer.id)
        if step.bodies:
            self._open.append(step)

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        if step.bodies:
            del self._frames[len(self._open) :]
            self._open.pop()
        frame, layer = self._frames[-1], step.layer
        feeds = frame.model.feeds[layer.id]
        bad = {
            feed: counts
            for feed, array in zip(feeds, inputs)
            if feed is not None and array is not None and any(counts := self._counts(frame, feed, array))
        }
        from_inputs = [(frame.scope, *feed) for feed in bad]
        is_passing = False
        for position, array in enumerate(outputs[: len(layer.outputs)]):
            nan, inf = frame.counts[layer.id, position] = count(array)
            if not nan and not inf:
                continue
            node = (frame.scope, layer.id, position)
            inner = [n for n in self._inner(frame, step, position) if n in self._producers]
            producers = self._producers.setdefault(node, {})
            if inner:
                producers.update(dict.fromkeys(inner))
                is_passing = True
            elif self._is_passing(node, step, inputs, array, [*bad.values()]):
                producers.update(dict.fromkeys(from_inputs))
                is_passing = True
        if not is_passing:
            for node in from_inputs:
                self._ends.setdefault(node, {})[self._path_name(frame.scope, layer)] = None

    def _is_passing(
        self,
        node: _Node,
        step: Step,
        inputs: Sequence[np.ndarray | None],
        array: np.ndarray,
        bad_inputs: Sequence[tuple[int, int]],
    ) -> bool:
        """Return whether an output has NaN or Inf from inputs. Record an origin if the layer made some of them itself.

        ``bad_inputs`` are the numbers of NaN and Inf in the inputs that hold any.
        """
        nan, inf = count(array)
        if not bad_inputs:
            self._add(node, "layer", step.layer, "finite", array, elements(step, inputs, array))
            return False
        if nan and not any(counts[0] for counts in bad_inputs):
            made = [e for e in elements(step, inputs, array) if math.isnan(e.value)]
            self._add(node, "layer", step.layer, "Inf", array, made)
            return True
        made = [e for e in elements(step, inputs, array, only_made=True) if e.inputs]
        if made:
            self._add(node, "layer", step.layer, "finite", array, made)
        return len(made) < nan + inf

    def _add(
        self,
        node: _Node,
        kind: Literal["layer", "input", "constant"],
        layer: Layer,
        made_from: Literal["finite", "Inf", ""],
        array: np.ndarray,
        examples: Iterable[Element],
    ) -> None:
        if node in self._origins:  # in an earlier iteration
            return
        if len(self._origins) == _MAX_ORIGINS:
            self._further += 1
            return
        nan, inf = count(array)
        loops = tuple((frame.name, frame.iteration) for frame in self._frames[1:])
        source, port = self.model.source, layer.outputs[node[2]]
        line = source.span(layer.node).line if source.data and layer.node >= 0 else None
        self._origins[node] = Origin(
            kind,
            _name(layer),
            layer.type,
            port.id,
            line,
            loops,
            made_from,
            nan,
            inf,
            array.size,
            tuple(islice(examples, _MAX_ELEMENTS)),
        )

    def _counts(self, frame: _Frame, feed: _Feed, array: np.ndarray) -> tuple[int, int]:
        """Return the numbers of NaN and Inf in an output. One that no step computed is examined here, once."""
        if feed not in frame.counts:
            nan, inf = frame.counts[feed] = count(array)
            if nan or inf:
                self._record_source(frame, feed, array)
        return frame.counts[feed]

    def _record_source(self, frame: _Frame, feed: _Feed, array: np.ndarray) -> None:
        """Record a Parameter or Const that holds NaN or Inf. A Parameter of a body has them from outside the body."""
        node, layer = (frame.scope, *feed), frame.model.layers[feed[0]]
        producers = self._producers.setdefault(node, {})
        if is_constant(layer) or not frame.scope:
            kind = "constant" if is_constant(layer) else "input"
            self._add(node, kind, layer, "", array, (Element(*pair) for pair in not_finite(array)))
            return
        outer, step = self._frames[len(self._open) - 1], self._open[-1]
        outer_feeds = outer.model.feeds[step.layer.id]
        for entry in _map_of(step.layer, frame.scope[-1][1]):
            if entry.kind == "input" and entry.internal == layer.id and entry.external is not None:
                outer_feed = outer_feeds[entry.external]
                if outer_feed is not None and (outer.scope, *outer_feed) in self._producers:
                    producers[outer.scope, *outer_feed] = None
        for result, parameter in step.layer.back_edges:
            inner_feed = frame.model.feeds[result][0]
            if parameter == layer.id and inner_feed is not None and (frame.scope, *inner_feed) in self._producers:
                producers[frame.scope, *inner_feed] = None

    def _inner(self, frame: _Frame, step: Step, position: int) -> Iterator[_Node]:
        """Yield the outputs in the bodies of a layer that the Results of the layer's output read."""
        for tag, plan in step.bodies.items():
            for entry in _map_of(step.layer, tag):
                if entry.kind == "output" and entry.external == position:
                    feed = plan.model.feeds[entry.internal][0]
                    if feed is not None:
                        yield ((*frame.scope, (step.layer.id, tag)), *feed)

    # -- the report -------------------------------------------------------------------------------

    def report(self) -> Report:
        """Return the report of the run."""
        towards, outputs = self._towards_outputs()
        consumers: dict[_Node, list[_Node]] = {}
        for node, producers in self._producers.items():
            for producer in producers:
                consumers.setdefault(producer, []).append(node)
        origins: list[Origin] = []
        for node, origin in self._origins.items():
            path, ends, reaches = [node], (), None
            if node in towards:
                while (after := towards[path[-1]]) is not None:
                    path.append(after)
                reaches = outputs[path[-1]]
            else:
                ends = tuple(self._ends_of(node, consumers))[:_MAX_ELEMENTS]
            names = (
                tuple(self._path_name(n[0], self._models[n[0]].layers[n[1]]) for n in path)
                if reaches is not None
                else ()
            )
            origins.append(replace(origin, path=names, reaches=reaches, ends_at=ends))
        return Report(tuple(origins), self._further)

    def _towards_outputs(self) -> tuple[dict[_Node, _Node | None], dict[_Node, str]]:
        """Return, for each output on the way to an output of the model, the next one, and the names at the ends."""
        outputs: dict[_Node, str] = {}
        for result in self.model.results:
            feed = self.model.feeds[result.id][0]
            if feed is not None and ((), *feed) in self._producers:
                outputs.setdefault(((), *feed), self.model.result_name(result))
        towards: dict[_Node, _Node | None] = dict.fromkeys(outputs)
        waiting = list(outputs)
        for node in waiting:  # grows in the loop: a breadth-first search, which finds shortest paths
            for producer in self._producers[node]:
                if producer not in towards:
                    towards[producer] = node
                    waiting.append(producer)
        return towards, outputs

    def _ends_of(self, node: _Node, consumers: dict[_Node, list[_Node]]) -> dict[str, None]:
        """Return the names of the layers at which the NaN and Inf of an output become finite values."""
        ends: dict[str, None] = {}
        reached, waiting = {node}, [node]
        while waiting and len(ends) < _MAX_ELEMENTS:
            current = waiting.pop()
            ends |= self._ends.get(current, {})
            new = [consumer for consumer in consumers.get(current, ()) if consumer not in reached]
            reached.update(new)
            waiting += new
        return ends

    def _path_name(self, scope: _Scope, layer: Layer) -> str:
        """Return the name of a layer after the names of the layers around it: ``loop/exp``."""
        around = [_name(self._models[scope[:depth]].layers[scope[depth][0]]) for depth in range(len(scope))]
        return "/".join((*around, _name(layer)))


def _map_of(layer: Layer, tag: str) -> tuple[MapEntry, ...]:
    """Return the port map that belongs to a body: ``then_port_map`` to ``then_body``."""
    return layer.maps.get(tag.replace("body", "port_map"), ())


def _name(layer: Layer) -> str:
    return layer.name or f"{layer.type}#{layer.id}"
