"""Figures of layers as Model Explorer's node data, which colours the nodes of a graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal

from irrun.explorer.graphs import graph_id
from irrun.model import Model

__all__ = ["UNBOUNDED", "Colours", "node_data"]

UNBOUNDED: Final = 1e30
"""What stands for an error that is infinite or no number, because JSON has no such numbers."""

Colours = Literal["errors", "shares"]
"""How values become colours: relative errors by their powers of ten, shares of a whole from white to red."""

_COLOURS: Final[dict[str, dict[str, Any]]] = {
    "errors": {
        "thresholds": [
            {"value": 0, "bgColor": "#ffffff"},
            {"value": 1e-6, "bgColor": "#e8f5e9"},
            {"value": 1e-4, "bgColor": "#fff9c4"},
            {"value": 1e-2, "bgColor": "#ffcc80"},
            {"value": 1, "bgColor": "#ef9a9a"},
            {"value": UNBOUNDED, "bgColor": "#c62828", "textColor": "#ffffff"},
        ]
    },
    "shares": {"gradient": [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e53935"}]},
}


def node_data(model: Model, title: str, values: Mapping[str, float], colours: Colours) -> dict[str, Any]:
    """Return values of layers in the form of Model Explorer's JSON, by the ids of ``irrun.explorer.graphs``.

    ``values`` are by the names that comparisons use: the unique name of a layer, behind those of the layers whose
    bodies hold it (``loop/sum``). A name that is no layer of the model is left out. ``title`` names the data.
    Values are rounded to four digits, because Model Explorer shows all digits of a number.
    """
    places: dict[str, tuple[str, str]] = {}
    _collect(model, graph_id(model), "", places)
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name in places:
            graph, node = places[name]
            rounded = float(f"{value:.4g}") if math.isfinite(value) else UNBOUNDED
            found.setdefault(graph, {})[node] = {"value": rounded}
    return {graph: {"name": title, "results": results, **_COLOURS[colours]} for graph, results in found.items()}


def _collect(model: Model, graph: str, prefix: str, places: dict[str, tuple[str, str]]) -> None:
    """Add the graph and the node of each layer by its name. Of two bodies with the same name, the first counts."""
    for id, layer in model.layers.items():
        name = model.unique_names[id]
        places.setdefault(f"{prefix}{name}", (graph, name))
        for tag, body in layer.bodies.items():
            _collect(body, f"{graph}/{name}/{tag}", f"{prefix}{name}/", places)
