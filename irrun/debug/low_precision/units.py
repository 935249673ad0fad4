"""The layers of a plan that can be simulated: which of their inputs they own, and which layers feed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from irrun.debug.low_precision.families import is_convolution
from irrun.model import Layer, Model, is_constant
from irrun.opdef import Op
from irrun.planning.steps import Plan, Step

__all__ = ["Origin", "Output", "Scope", "Unit"]

Kind = Literal["constant", "shape", "input", "value"]
Output = tuple[str, int]
"""The name of a simulated layer, and the position of one of its outputs."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a value follows from, and the outputs of layers that it may be.

    A ``constant`` follows from constants alone, a ``shape`` also from the shapes of values, and an ``input`` is one of
    the model. ``outputs`` are those of simulated layers; the outputs of a loop or If are outputs of layers in its body.
    """

    kind: Kind
    outputs: frozenset[Output] = frozenset()
    is_image: bool = False
    """Whether it has channels and places, because it follows from the output of a convolution."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A layer that computes values, with the path through the bodies that contain it as its name: ``loop/add``."""

    name: str
    model: Model
    layer: Layer
    op: Op
    inputs: tuple[Origin | None, ...]
    """The origin of each input; None for an absent one."""
    constant: tuple[bool, ...]
    """Whether each input is constant."""
    own: tuple[bool, ...]
    """Whether each input is constant or an input of the model, so that no layer has rounded it."""
    is_inner: bool
    """Whether the layer is in the body of a loop or If."""
    is_image: bool
    """Whether its outputs have channels and places: see ``Origin``."""

    @property
    def line(self) -> int | None:
        """The line of the layer in its file, or None for a model that was built."""
        source = self.model.source
        return source.span(self.layer.node).line if source.data and self.layer.node >= 0 else None

    @property
    def file(self) -> str | None:
        """The path of the file, or None for a model that was built."""
        return None if self.line is None else self.model.source.path

    @property
    def producers(self) -> frozenset[str]:
        """The names of the simulated layers that feed this one."""
        return frozenset(name for origin in self.inputs if origin is not None for name, _ in origin.outputs)


@dataclass
class Scope:
    """The values of the model, or of a body, as far as the steps of its plan have been visited in their order."""

    plan: Plan
    prefix: str = ""
    origins: dict[tuple[int, int], Origin] = field(default_factory=dict)

    @staticmethod
    def of(plan: Plan) -> Scope:
        """Return the scope of a whole model."""
        return Scope(plan, "", {(parameter.id, 0): Origin("input") for parameter in plan.model.parameters})

    def inputs(self, layer: Layer) -> tuple[Origin | None, ...]:
        """Return the origin of each input of a layer."""
        return tuple(None if feed is None else self.origin(feed) for feed in self.plan.model.feeds[layer.id])

    def origin(self, feed: tuple[int, int]) -> Origin:
        """Return the origin of a value."""
        known = self.origins.get(feed)
        if known is None:  # a constant has no step
            known = Origin("constant" if is_constant(self.plan.model.layers[feed[0]]) else "value")
        return known

    def visit(self, step: Step) -> Unit | None:
        """Record the outputs of a layer without bodies. Return its unit if it computes values of the model."""
        layer, inputs = step.layer, self.inputs(step.layer)
        present = [origin for origin in inputs if origin is not None]
        kinds = {origin.kind for origin in present}
        name = self.prefix + self.plan.model.unique_names[layer.id]
        kind: Kind = "value"
        follows = step.op.pure and not step.needed and bool(present)  # a variable holds values of earlier runs
        if follows and kinds == {"constant"}:
            kind = "constant"
        elif step.op.type in _SHAPES or (follows and "shape" in kinds and kinds <= {"constant", "shape"}):
            kind = "shape"
        is_simulated = kind == "value" and "stream" not in step.needed
        rank = self.plan.values[layer.id, 0].rank if layer.outputs else 0
        is_image = is_convolution(step.op) or (any(origin.is_image for origin in present) and (rank or 4) > 3)
        for position in range(len(layer.outputs)):
            outputs = frozenset([(name, position)] if is_simulated else ())
            self.origins[layer.id, position] = Origin(kind, outputs, is_image)
        if not is_simulated:
            return None
        constant = tuple(origin is not None and origin.kind == "constant" for origin in inputs)
        own = tuple(origin is not None and origin.kind in ("constant", "input") for origin in inputs)
        return Unit(name, self.plan.model, layer, step.op, inputs, constant, own, bool(self.prefix), is_image)

    def enter(self, step: Step, tag: str) -> Scope:
        """Return the scope of a body. The values of earlier iterations have the origins of the first one."""
        body, outer = step.bodies[tag], self.inputs(step.layer)
        entries = step.layer.maps.get(tag.replace("body", "port_map"), ())
        fed = {entry.internal: entry.external for entry in entries if entry.kind == "input"}
        repeated = {parameter for _, parameter in step.layer.back_edges}
        inner: dict[tuple[int, int], Origin] = {}
        for parameter in body.model.parameters:
            external = fed.get(parameter.id)
            origin = (outer[external] if external is not None else None) or Origin("value")
            if parameter.id in repeated:
                origin = replace(origin, kind="value")
            inner[parameter.id, 0] = origin
        return Scope(body, f"{self.prefix}{self.plan.model.unique_names[step.layer.id]}/", inner)

    def leave(self, step: Step, bodies: Mapping[str, Scope]) -> None:
        """Record the outputs of a layer, whose ``bodies`` have been visited."""
        found: dict[int, frozenset[Output]] = {}
        for tag, body in bodies.items():
            for entry in step.layer.maps.get(tag.replace("body", "port_map"), ()):
                if entry.kind == "output" and entry.external is not None:
                    known = found.get(entry.external, frozenset())
                    found[entry.external] = known | body.result(entry.internal)
        for position in range(len(step.layer.outputs)):
            self.origins[step.layer.id, position] = Origin("value", found.get(position, frozenset()))

    def fixed(self, steps: Set[int]) -> Iterator[str]:
        """Yield the layers that follow from constants and shapes. The plan has folded those without a step."""
        for id, layer in self.plan.model.layers.items():
            known = self.origins.get((id, 0))
            is_folded = known is None and id not in steps and layer.type not in ("Parameter", "Result")
            if is_folded or (known is not None and known.kind in ("constant", "shape")):
                yield self.prefix + self.plan.model.unique_names[id]

    def result(self, id: int) -> frozenset[Output]:
        """Return the outputs of layers that a Result reads."""
        feed = self.plan.model.feeds[id][0]
        return frozenset() if feed is None else self.origin(feed).outputs


_SHAPES: Final = ("ShapeOf",)
"""The operations that read nothing but the shapes of their inputs."""
