"""The adapter that ``model-explorer --extensions=irrun.explorer`` loads. It needs the extra ``explorer``."""

from __future__ import annotations

from typing import Any

from model_explorer import (  # pyright: ignore[reportMissingImports]
    Adapter,
    AdapterMetadata,
    ModelExplorerGraphs,
    graph_builder,
)

from irrun.api import load
from irrun.explorer.graphs import graphs

__all__ = ["OpenVinoAdapter"]


class OpenVinoAdapter(Adapter):
    """Shows an OpenVINO IR, with inferred shapes. A model with errors is shown as well, and so is one without .bin."""

    metadata = AdapterMetadata(
        id="irrun",
        name="OpenVINO IR, by irrun",
        description="Layers, attributes and inferred shapes of model.xml; bodies of loops and branches as sub-graphs.",
        fileExts=["xml"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """Return the graphs of a model. Raises ReadError if the file holds no model."""
        return {"graphs": [_graph(record) for record in graphs(load(model_path).model)]}


def _graph(record: dict[str, Any]) -> graph_builder.Graph:
    """Return a graph in the classes of Model Explorer, whose fields have the names of its JSON."""
    nodes = [
        graph_builder.GraphNode(
            **node
            | {
                "attrs": [graph_builder.KeyValue(**pair) for pair in node["attrs"]],
                "incomingEdges": [graph_builder.IncomingEdge(**edge) for edge in node["incomingEdges"]],
            }
            | {side: [_metadata(item) for item in node[side]] for side in ("inputsMetadata", "outputsMetadata")}
        )
        for node in record["nodes"]
    ]
    return graph_builder.Graph(record["id"], nodes)


def _metadata(item: dict[str, Any]) -> graph_builder.MetadataItem:
    return graph_builder.MetadataItem(item["id"], [graph_builder.KeyValue(**pair) for pair in item["attrs"]])
