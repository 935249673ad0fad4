"""The strategy for models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from irrun.base.source import Source
from irrun.diagnostics import Diagnostic, ModelError
from irrun.files import write_pair
from irrun.growing import COMMON_TYPES, LAYERS, Chain, Graph, add_inputs, add_layers, unread
from irrun.ir.parse import parse
from irrun.model import Model
from irrun.model.weights import Weights
from irrun.testing.strategies._arrays import Dims
from irrun.testing.strategies._choices import Drawn

__all__ = ["GeneratedModel", "models"]


@dataclass(frozen=True, repr=False)
class GeneratedModel:
    """A generated IR as text and bytes, inputs for it, and the shapes and types that its outputs must have.

    ``declared`` holds the output shapes as the file declares them (None for an open dim). ``shapes`` holds the output
    shapes of a run on the inputs in ``feeds``, and ``types`` the element types of the outputs.
    """

    xml: str
    bin: bytes
    feeds: Mapping[str, np.ndarray]
    declared: tuple[tuple[int | None, ...], ...]
    shapes: tuple[Dims, ...]
    types: tuple[str, ...]

    def __repr__(self) -> str:
        layers = re.findall(r'<layer id="\d+" name="([^"]*)" type="(?!Const|Parameter|Result)', self.xml)
        feeds = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in self.feeds.items())
        return f"GeneratedModel({feeds}: {' '.join(layers)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print a model as ``repr`` does: hypothesis would print the whole file."""
        printer.text(repr(self))

    def read(self) -> Model:
        """Return the model, for irrun.check, irrun.compile and irrun.run."""
        parsed = parse(Source("generated.xml", self.xml.encode()), Weights(data=self.bin))
        errors: list[Diagnostic] = [p for p in parsed.problems if p.blocks]
        if errors:
            raise ModelError(errors)
        return parsed.model

    def save(self, folder: str | Path, name: str = "generated") -> Path:
        """Write ``name.xml`` and ``name.bin`` to ``folder``, and return the path of the ``.xml``."""
        path = Path(folder) / f"{name}.xml"
        write_pair(path, self.xml.encode(), self.bin)
        return path


@st.composite
def models(draw: st.DrawFn, min_layers: int = 1, max_layers: int = 8, dynamic: bool | None = None) -> GeneratedModel:
    """Return a strategy for small valid models of several layers, each with inputs for a run.

    ``dynamic`` leaves some dims of the inputs open; None does so in some of the models. All declared dims are correct.
    A failing model is reduced to few layers, the simplest that fail, and to small dims.
    """
    open = draw(st.booleans()) if dynamic is None else dynamic
    seed = draw(st.integers(0, 2**32 - 1))
    chain = Chain(Graph(seed), Drawn(draw), np.random.default_rng(seed), types=COMMON_TYPES, stores=False)
    add_inputs(chain, draw(st.integers(1, 2)), dynamic=open, bounded=True)
    add_layers(chain, LAYERS, draw(st.integers(min_layers, max_layers)))
    chain.graph.results = unread(chain.graph)
    tensors = {tensor.ref: tensor for tensor in chain.outputs}
    ends = [tensors[ref] for ref in chain.graph.results]
    model = chain.graph.model(dynamic=True)
    return GeneratedModel(
        xml=model.source.data.decode(),
        bin=b"" if model.weights is None else model.weights.data.tobytes(),
        feeds=dict(zip((f"in{number}" for number in chain.graph.parameters), chain.graph.feeds(), strict=True)),
        declared=tuple(t.declared for t in ends),
        shapes=tuple(t.dims for t in ends),
        types=tuple(t.type for t in ends),
    )
