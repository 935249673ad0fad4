"""The two sides of a comparison: what they load, and the IR file that places in messages refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from irrun.api import read_model
from irrun.build import model as build_model
from irrun.build import parameter
from irrun.diagnostics import ModelError, ReadError, Refused
from irrun.engines import KINDS, Engine, Loaded, Place, Side, computing_layers
from irrun.engines.kinds import IR
from irrun.inference.bind import bind
from irrun.inference.layer import infer
from irrun.inference.propagate import needed, site
from irrun.ir.parse import require_file, unreadable
from irrun.model import Layer, Model, is_constant

__all__ = ["Node", "Subject", "constant", "model_of", "stand_in"]


@dataclass(frozen=True, slots=True)
class Node:
    """A layer that computes a value: its name in a ``Place``, and the model, or body, that contains it."""

    name: str
    model: Model
    layer: Layer

    @property
    def line(self) -> int:
        """The line of the layer in its file."""
        return self.model.source.span(self.layer.node).line

    def producer(self, position: int) -> tuple[Node, int] | None:
        """Return the layer that feeds an input, and the position of its output; None if no edge feeds the input."""
        feed = self.model.feeds[self.layer.id][position]
        if feed is None:
            return None
        prefix = self.name.removesuffix(self.model.unique_names[self.layer.id])
        return Node(prefix + self.model.unique_names[feed[0]], self.model, self.model.layers[feed[0]]), feed[1]


@dataclass(frozen=True)
class Subject:
    """A side whose model is loaded. ``model`` is its IR, or None if it has none that irrun can read."""

    side: Side
    engine: Engine
    loaded: Loaded
    model: Model | None

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """The inputs of the model, and the layers that compute values, also those of bodies, by name."""
        if self.model is None:
            return {}
        model, names = self.model, self.model.unique_names
        inputs = {names[layer.id]: Node(names[layer.id], model, layer) for layer in model.parameters}
        return inputs | {name: Node(name, own, layer) for name, own, layer in computing_layers(model)}

    @cached_property
    def inputs(self) -> Mapping[Place, int]:
        """The position of each input of the engine, by place. An IR file names its inputs as it names layers."""
        model = self.model
        names = (
            {}
            if model is None
            else {n: model.unique_names[p.id] for p in model.parameters for n in model.input_names(p)}
        )
        places: dict[Place, int] = {}
        for position, input in enumerate(self.loaded.inputs):
            own = next((names[name] for name in input.names if name in names), None)
            places[Place(own or (input.names[0] if input.names else f"input {position}"))] = position
        return places

    def shown(self, place: Place) -> str:
        """Return the name by which users refer to a place: the layer, with the id of any port but the first."""
        node = self.nodes.get(place.layer)
        if node is None or not place.port:
            return str(place)
        return f"{place.layer}:{node.layer.outputs[place.port].id}"

    def port(self, place: Place) -> int:
        """Return the id of the port of a place or, without an IR file, its position."""
        node = self.nodes.get(place.layer)
        return place.port if node is None else node.layer.outputs[place.port].id


def model_of(side: Side) -> Model | None:
    """Return the IR of a side, or None if the side has none or only its engine can read it.

    Raises ReadError if the file of a side cannot be opened, or if irrun is to run a file that holds no model.
    """
    kind = KINDS[side.kind]
    if side.path is None or kind.is_recording:
        return None
    try:
        require_file(side.path)
        with side.path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise unreadable(side.path, error) from None
    if IR not in kind.reads or (kind.reads_more_than_ir and side.path.suffix.lower() != ".xml"):
        return None
    try:
        return read_model(side.path, side.weights)
    except ReadError:
        if kind.reads_more_than_ir:
            return None
        raise
    except ModelError:
        return None


def stand_in(loaded: Loaded) -> Model:
    """Return a model that has the inputs of a loaded one, for which inputs can be generated."""
    inputs = [
        parameter(input.shape.strip("[]"), input.type, name=input.names[0] if input.names else f"input{position}")
        for position, input in enumerate(loaded.inputs)
    ]
    return build_model(inputs, inputs=inputs, name="inputs")


def constant(model: Model, layer: Layer) -> np.ndarray | None:
    """Return the contents of a Const, or None if the layer is none or its contents cannot be read."""
    if not is_constant(layer):
        return None
    op, _ = bind(model, layer)
    if op is None:
        return None
    try:
        (value,) = infer(op, site(layer), [], needed(op, model, layer))
    except Refused:
        return None
    return value.data
