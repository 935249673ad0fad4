"""The whole model: from the outputs that the caller wants to a Model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from irrun.base.source import Source
from irrun.build._arguments import listed, output_of
from irrun.build._assembly import Blob, assemble
from irrun.build._nodes import Graph, Node
from irrun.ir.parse import parse
from irrun.ir.write import to_xml
from irrun.model import Model
from irrun.model.weights import Weights

__all__ = ["model"]

_PATH: Final = "<built>"
"""The path of a built model in diagnostics."""


def model(
    outputs: Any, *, inputs: Sequence[Node] | None = None, sinks: Sequence[Node] = (), name: str = "model"
) -> Model:
    """Return the model that computes ``outputs``: one output, a sequence of them, or a mapping from names to outputs.

    ``inputs`` are the parameters of the model in order; by default, all that it uses, in the order of their creation.
    ``sinks`` are nodes that must be computed although no output depends on them (Assign). Raises BuildError if the
    outputs depend on a parameter that ``inputs`` leaves out, or if two layers have the same name.
    """
    names = list(outputs) if isinstance(outputs, Mapping) else None
    items = outputs.values() if isinstance(outputs, Mapping) else listed(outputs)
    graph = Graph.of(inputs, [output_of(item) for item in items], None, sinks)
    blob = Blob()
    assembled = assemble(graph, blob, Source(_PATH, b""), names)
    # parse the text of the model, so that its diagnostics show lines of the file that save_model would write
    text = to_xml(replace(assembled, name=name))
    parsed = parse(Source(_PATH, text), Weights(data=bytes(blob.data)))
    return parsed.runnable()
