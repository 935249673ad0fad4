"""Show the graph that an engine runs beside the file: which node computes each layer, and what was not fused, and why.

``runtime("model.xml", "openvino[precision=f32]")`` returns a ``Runtime``. ``difference(a, b)`` compares two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irrun.api import read_model
from irrun.debug.runtime.difference import RuntimeDifference, difference
from irrun.debug.runtime.layers import FileGraph
from irrun.debug.runtime.pattern import Runs
from irrun.debug.runtime.patterns import PATTERNS
from irrun.debug.runtime.placing import Inserted, LayerRun, inserted, placed
from irrun.debug.runtime.results import Fusion, Runtime
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import KINDS, Crash, Failure, Limits, Loaded, Refusal, RuntimeGraph, Side, open, parse_side
from irrun.engines.kinds import RUNTIME_GRAPH
from irrun.inference.trace import Trace
from irrun.model import Model
from irrun.running.generate import draw

__all__ = ["Fusion", "Inserted", "LayerRun", "Runtime", "RuntimeDifference", "beside", "difference", "runtime"]


def runtime(
    path: str | os.PathLike[str],
    side: str | Side = "openvino",
    feeds: Mapping[Any, np.ndarray] | None = None,
    *,
    runs: int = 5,
    seed: int = 0,
    weights: str | None = None,
    limits: Limits | None = None,
) -> Runtime:
    """Compile and run a model, and return the graph that the engine of ``side`` runs, beside the file.

    ``feeds`` are inputs by name or position; the others are random. Each node has the median of its times in ``runs``
    runs. Raises EngineError: IR701 for a side whose kind shows no runtime graph, IR702 if the engine does not start,
    IR704 if it refuses or fails. Raises the errors of ``irrun.read_model``.
    """
    parsed = parse_side(side, needs_path=False) if isinstance(side, str) else side
    kinds = [kind.name for kind in KINDS.values() if RUNTIME_GRAPH in kind.shows]
    if parsed.kind not in kinds:
        help = f"pass a side whose engine shows one: {', '.join(kinds)}"
        raise EngineError(diagnostic("IR701", f"{parsed.kind} shows no runtime graph", help=help))
    parsed = parsed.with_weights(weights)
    model = read_model(path, parsed.weights)
    given = dict(feeds or {})
    arrays = {**draw(model, seed, given=given), **{model.known_input(key): array for key, array in given.items()}}
    names = {position: model.input_names(parameter)[0] for position, parameter in enumerate(model.parameters)}
    with open(parsed, limits) as engine:
        loaded = engine.load(path)
        if not isinstance(loaded, Loaded):
            raise _failed(engine.name, loaded)
        graph = engine.runtime({names[position]: array for position, array in arrays.items()}, runs)
        if not isinstance(graph, RuntimeGraph):
            raise _failed(engine.name, graph)
        return beside(model, graph, str(parsed), engine.name)


def beside(model: Model, graph: RuntimeGraph, side: str, engine: str) -> Runtime:
    """Return a runtime graph beside the model from which the engine has compiled it."""
    trace = Trace(model)
    layers = placed(trace, graph)
    runs = Runs({layer.layer.id: layer for layer in layers}, {node.name: node for node in graph.nodes})
    return Runtime(side, engine, model, graph, layers, inserted(model, graph), tuple(_fusions(FileGraph(trace), runs)))


def _fusions(graph: FileGraph, runs: Runs) -> list[Fusion]:
    found: list[Fusion] = []
    for pattern in PATTERNS:
        for match in pattern.matches(graph):
            names = tuple(dict.fromkeys(graph.names[role.layer.id] for role in match.roles.values()))
            line = graph.trace.model.source.line_of(match.last.layer.node)
            is_fused = pattern.is_fused(match, runs)
            unmet = None if is_fused else pattern.unmet(graph, match)
            condition, instead = ("", "") if unmet is None else (unmet[0].text, unmet[1])
            name = graph.names[match.last.layer.id]
            found.append(Fusion(pattern.name, pattern.becomes, name, line, names, is_fused, condition, instead))
    return found


def _failed(engine: str, failure: Failure) -> EngineError:
    """Return the error for an engine that shows no runtime graph of a model, which it refuses or which ends it."""
    notes: Sequence[str] = ()
    if isinstance(failure, Refusal):
        *notes, why = failure.lines
    elif isinstance(failure, Crash):
        why, notes = failure.cause, failure.log.splitlines()[-3:]
    else:
        why = f"it did not answer within {failure.seconds:g} s"
    help = "compare the model with irrun to see whether the engine runs it: irrun compare MODEL.xml openvino:MODEL.xml"
    return EngineError(diagnostic("IR704", f"{engine} shows no runtime graph: {why}", notes=tuple(notes), help=help))
