"""The strategy for models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from irrun.base.source import Source
from irrun.diagnostics import Diagnostic, ModelError
from irrun.files import write_pair
from irrun.ir.parse import parse
from irrun.model import Model
from irrun.model.weights import Weights
from irrun.testing.strategies._arrays import Dims
from irrun.testing.strategies._builder import Builder
from irrun.testing.strategies._layers import LAYERS

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
        layers = re.findall(r'<layer id="\d+" name="([^"]*)" type="(?!Const|Result)', self.xml)
        feeds = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in self.feeds.items())
        return f"GeneratedModel({feeds}: {' '.join(layers[len(self.feeds) :])})"

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
    """
    open = draw(st.booleans()) if dynamic is None else dynamic
    builder = Builder(draw, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    for _ in range(draw(st.integers(1, 2))):
        builder.parameter(open)
    for _ in range(draw(st.integers(min_layers, max_layers))):
        count, first = len(builder.outputs), draw(st.integers(0, len(LAYERS) - 1))
        # not every layer suits the tensors that there are: the first from a drawn one on that does is added
        for add in LAYERS[first:] + LAYERS[:first]:
            add(builder)
            if len(builder.outputs) > count:
                break
    ends = [t for t in builder.outputs if (t.layer, t.port) not in builder.read]
    for tensor in ends:
        builder.layer("Result", [tensor])
    return GeneratedModel(
        xml=builder.document(),
        bin=bytes(builder.bin),
        feeds=builder.feeds,
        declared=tuple(t.declared for t in ends),
        shapes=tuple(t.dims for t in ends),
        types=tuple(t.type for t in ends),
    )
