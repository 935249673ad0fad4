"""Read the runtime graph of OpenVINO: part of its harness, which needs no irrun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["nodes", "times"]


def times(request: Any) -> dict[str, float]:
    """Return the microseconds of each node, by its name. A node that took less than one is missing."""
    found: dict[str, float] = {}
    for row in request.get_profiling_info():
        if row.status.name == "EXECUTED":
            found[row.node_name] = found.get(row.node_name, 0.0) + row.real_time.total_seconds() * 1e6
    return found


def nodes(compiled: Any, runs: Sequence[dict[str, float]]) -> list[dict[str, Any]]:
    """Return the nodes of the runtime graph of a compiled model, each with its microseconds in each run.

    Raises NotImplementedError if the device shows no runtime graph.
    """
    try:
        found = compiled.get_runtime_model().get_ordered_ops()
    except (AttributeError, RuntimeError) as error:
        reason = ([line for line in str(error).splitlines() if line] or [""])[-1]
        raise NotImplementedError(f"OpenVINO shows no runtime graph: {reason}") from None
    constant = _constant(found)
    timed = [{name: time for name, time in run.items() if name not in constant} for run in runs]
    return [_node(node, timed) for node in found]


def _info(node: Any) -> dict[str, str]:
    """Return what the ``rt_info`` of a node of a runtime graph says of it."""
    return {name: str(getattr(value, "value", value)) for name, value in dict(node.get_rt_info()).items()}


def _constant(nodes: Sequence[Any]) -> set[str]:
    """Return the names of the constants, and of the nodes that only a compilation runs, since they read these alone."""
    found: set[str] = set()
    for node in nodes:
        sources = [node.input_value(position).get_node() for position in range(node.get_input_size())]
        follows = bool(sources) and all(source.get_friendly_name() in found for source in sources)
        if follows or _info(node).get("layerType") == "Const":
            found.add(node.get_friendly_name())
    return found


def _node(node: Any, runs: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return a node of a runtime graph, with its time in each run."""
    info = _info(node)
    name = node.get_friendly_name()
    types, layouts = (info.get(key, "").split(",") for key in ("outputPrecisions", "outputLayouts"))
    layouts += layouts[-1:] * (len(types) - len(layouts))
    sources = [node.input_value(position) for position in range(node.get_input_size())]
    return {
        "name": name,
        "type": info.get("layerType") or node.get_type_name(),
        "layers": [layer for layer in info.get("originalLayersNames", "").split(",") if layer],
        "inputs": [[source.get_node().get_friendly_name(), source.get_index()] for source in sources],
        "outputs": [{"type": type, "layout": layout} for type, layout in zip(types, layouts)],
        "precision": info.get("runtimePrecision", ""),
        "primitive": info.get("primitiveType", ""),
        "order": int(info.get("execOrder") or -1),
        "microseconds": [run.get(name, 0.0) for run in runs] if any(name in run for run in runs) else [],
    }
