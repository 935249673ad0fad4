"""Simplify a model: merge equal constants and layers, and drop layers that have no effect."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from irrun.api import PathLike, as_model
from irrun.inference.bind import bind_all
from irrun.inference.propagate import Bodies, Values, declared, propagate
from irrun.inference.trace import Trace
from irrun.ir.rt_info import rt_infos
from irrun.model import Layer, Model, Port, is_constant
from irrun.model.weights import Weights
from irrun.opdef import Value
from irrun.surgery._equivalences import CANCELLED, CHAINED, IDENTITY, Graph, Output
from irrun.surgery._models import rebuilt
from irrun.surgery._unused import drop_unused, used

__all__ = ["Simplified", "Step", "simplify"]

UNUSED: Final = "unused layers"
CONSTANTS: Final = "equal constants"
EQUAL: Final = "equal layers"
STEPS: Final = (UNUSED, CONSTANTS, EQUAL, CANCELLED, CHAINED, IDENTITY)


@dataclass(frozen=True, slots=True)
class Step:
    """What one kind of simplification has removed: layers, those of bodies included, and bytes of the ``.bin``."""

    name: str
    layers: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Simplified:
    """A simplified model, and the steps that removed something."""

    model: Model
    steps: tuple[Step, ...]


def simplify(model: Model | PathLike) -> Simplified:
    """Return the model with fewer layers and the same values, and what each step has removed, bodies included.

    - unused layers: no output and no variable depends on them
    - equal constants: they have the same type, shape and bytes; equal bytes are stored once
    - equal layers: they compute the same from the same inputs, without random numbers and state
    - layers that cancel: a second Transpose or Convert undoes the first, or a chain of Reshape, Squeeze and Unsqueeze
      ends with the shape with which it began
    - chains of Reshape: the last one reshapes the first value itself
    - layers without effect: such as a Convert to the same type, or a Reshape to the same shape

    A layer stays if an output is named after it and the value before it has a name of its own. Inputs, outputs and
    variables stay. The names of removed tensors go over to the tensors that replace them. A simplified model may
    accept inputs that the original refuses, such as those of a removed Reshape. Another call changes nothing.
    """
    model = as_model(model)
    layers: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    while True:
        simpler, reasons = _once(model)
        if simpler is None:
            steps = tuple(Step(name, layers[name], sizes[name]) for name in STEPS if layers[name] or sizes[name])
            return Simplified(model, steps)
        layers.update(reason for _, reason in reasons)
        sizes.update(_freed(model, simpler, dict(reasons)))
        model = simpler


Path = tuple[int | str, ...]
"""The way to a layer: for each body, the id of its layer and its tag; then the id of the layer."""


def _once(model: Model) -> tuple[Model | None, list[tuple[Path, str]]]:
    """Return the simplified model, or None if nothing changes; and the reason for each removed layer."""
    infos = rt_infos(model) if b"rt_info" in model.source.utf8 else {}
    offsets = _shared_bytes(model)
    net = _Net(_inferred(model), infos, is_body=False)
    if not (offsets or net.is_changed()):
        return None, []
    changed = replace(model, layers=net.layers(), edges=net.edges())
    simpler = drop_unused(rebuilt(model, _relocated(changed, offsets).layers, changed.edges))
    return simpler, list(net.reasons(simpler, ()))


def _inferred(model: Model) -> Trace:
    """Return the trace of a model in which shape rules assume nothing: its values hold for every input."""
    ops = {layer.id: op for layer, op, _ in bind_all(model)}

    def settle(layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
        claims = declared(layer)
        return claims if isinstance(inferred, Exception) else (*inferred, *claims[len(inferred) :])[: len(claims)]

    values: Values = {}
    propagate(model, ops, settle, values, {}, Bodies(certain=True))
    return Trace(model, ops, values)


@dataclass(slots=True)
class _Net:
    """A model or body, and what is known of its layers."""

    trace: Trace
    infos: Mapping[int, Mapping[str, str]]
    """The contents of rt_info, by the ordinal of the element around it."""
    is_body: bool
    graph: Graph = field(init=False)
    replaced: dict[Output, Output] = field(default_factory=dict)
    """The output that takes the place of another one, by the other one."""
    why: dict[int, str] = field(default_factory=dict)
    """The step that replaces or cuts a layer, by id."""
    shown: set[Output] = field(init=False)
    """The outputs after which outputs of the model are named."""
    bodies: dict[int, dict[str, _Net]] = field(init=False)

    def __post_init__(self) -> None:
        model = self.model
        self.graph = Graph(self.trace, {})
        self.shown = set() if self.is_body else {f for r in model.results for f in model.feeds[r.id] if f is not None}
        self.bodies = {
            id: {tag: _Net(body, self.infos, is_body=True) for tag, body in self.trace.bodies(id).items()}
            for id, layer in model.layers.items()
            if layer.bodies
        }
        known: dict[object, Layer] = {}
        repeated = _repeated_sizes(model)
        for id in model.order:
            layer = model.layers[id]
            feeds = tuple(f if f is None else self.replaced.get(f, f) for f in model.feeds[id])
            self.graph.feeds[id] = feeds
            key = self._key(layer, repeated)
            equal = known.setdefault(key, layer) if key is not None else layer
            if equal is not layer:
                outputs = [(equal.id, i) for i in range(len(layer.outputs))]
                step = CONSTANTS if is_constant(layer) else EQUAL
                self._replace(layer, [self.replaced.get(output, output) for output in outputs], step)
            elif key is not None and feeds and len(layer.outputs) == 1:
                self._simplify(layer)

    @property
    def model(self) -> Model:
        return self.trace.model

    def _key(self, layer: Layer, repeated: set[str]) -> object:
        """Return what two layers have in common that give the same outputs, or None for a layer that is unique."""
        op = self.trace.ops[layer.id]
        if op is None or not op.pure or layer.bodies or layer.type.lower() in ("parameter", "result"):
            return None
        attributes = dict(layer.attributes)
        contents = b""
        if is_constant(layer):
            offset, size = attributes.pop("offset", "0"), attributes.get("size", "0")
            if size not in repeated or self.model.weights is None:
                return None
            contents = _digest(self.model.weights, int(offset), int(size))
        ports = tuple((port.id, port.type) for port in layer.outputs)
        infos = [self.infos.get(node, {}) for node in (layer.node, *(port.node for port in layer.outputs))]
        info = tuple(tuple(sorted((k, v) for k, v in leaf.items() if "fused_names" not in k)) for leaf in infos)
        feeds = self.graph.feeds[layer.id]
        return layer.type.lower(), layer.version, tuple(sorted(attributes.items())), contents, ports, info, feeds

    def _simplify(self, layer: Layer) -> None:
        """Replace a layer with one output by an equal value, or let a Reshape read the value before a chain."""
        op = self.trace.ops[layer.id]
        assert op is not None
        found = self.graph.equal(layer, op)
        if found is not None:
            self._replace(layer, [found[0]], found[1])
        feed = self.graph.feeds[layer.id][0]
        if layer.id in self.why or layer.type.lower() != "reshape" or feed is None:
            return
        root, target = self.graph.root(layer), self.graph.contents(self.graph.feeds[layer.id][1])
        attributes: Any = op
        if root == feed or target is None or (attributes.special_zero and 0 in target) or self._is_shared(feed):
            return
        value, result = self.graph.value(root), self.graph.value((layer.id, 0))
        if (target >= 0).all() or (value and result and value.shape.static and result.shape.static):
            self.graph.feeds[layer.id] = (root, *self.graph.feeds[layer.id][1:])
            self.why[layer.id] = CHAINED

    def _is_shared(self, output: Output) -> bool:
        return len(self.model.readers.get(output, ())) > 1

    def _replace(self, layer: Layer, outputs: Sequence[Output], step: str) -> None:
        """Let the consumers of a layer read other ``outputs``, unless outputs of the model would lose their names."""
        pairs = [((layer.id, i), output) for i, output in enumerate(outputs)]
        if all(own not in self.shown or self._is_nameless(output) for own, output in pairs) and all(
            self._port(own).names or self.model.version > _NAMED_AFTER_LAYERS for own, _ in pairs if own in self.shown
        ):
            self.replaced.update(pairs)
            self.shown |= {output for own, output in pairs if own in self.shown}
            self.why[layer.id] = step

    def _is_nameless(self, output: Output) -> bool:
        """Return whether an output of the model may be named after an output of a layer that has been an inner one."""
        layer = self.model.layers[output[0]]
        is_inner = output not in self.shown and layer.type.lower() != "parameter"
        return is_inner and not self._port(output).names and self.model.version > _NAMED_AFTER_LAYERS

    def _port(self, output: Output) -> Port:
        return self.model.layers[output[0]].outputs[output[1]]

    # -- the result -----------------------------------------------------------------------------

    def is_changed(self) -> bool:
        """Return whether a layer is replaced, cut or unused, bodies included."""
        if self.why or len(used(self.model)) < len(self.model.layers):
            return True
        return any(net.is_changed() for nets in self.bodies.values() for net in nets.values())

    def layers(self) -> dict[int, Layer]:
        """Return the layers: their inputs declare what they read, and outputs have the names of those they replace."""
        names: dict[Output, list[str]] = {}
        for own, output in self.replaced.items():
            layer = self.model.layers[output[0]]
            if layer.type.lower() != "parameter" and (output not in self.shown or own in self.shown):
                names.setdefault(output, []).extend(self._port(own).names)
        layers: dict[int, Layer] = {}
        for id, layer in self.model.layers.items():
            feeds = zip(layer.inputs, self.graph.feeds.get(id, ()), self.model.feeds[id])
            inputs = [port if new == old else self._reading(port, new) for port, new, old in feeds]
            gained = [names.get((id, i), []) if id not in self.why else [] for i in range(len(layer.outputs))]
            outputs = [
                replace(port, names=tuple(dict.fromkeys((*port.names, *more)))) if more else port
                for port, more in zip(layer.outputs, gained)
            ]
            bodies = {
                tag: replace(net.model, layers=net.layers(), edges=net.edges())
                for tag, net in self.bodies.get(id, {}).items()
            }
            layers[id] = replace(
                layer, inputs=tuple(inputs) or layer.inputs, outputs=tuple(outputs), bodies=bodies or layer.bodies
            )
        return layers

    def _reading(self, port: Port, output: Output | None) -> Port:
        assert output is not None
        source = self._port(output)
        return replace(port, type=source.type, shape=source.shape)

    def edges(self) -> tuple:
        """Return the edges, which begin at the outputs that remain."""
        places = {(id, p.id): i for id, layer in self.model.layers.items() for i, p in enumerate(layer.inputs)}
        edges = []
        for edge in self.model.edges:
            position = places.get((edge.to_layer, edge.to_port))
            feed = None if position is None else self.graph.feeds.get(edge.to_layer, ())[position]
            if feed is not None:
                edge = replace(edge, from_layer=feed[0], from_port=self._port(feed).id)
            edges.append(edge)
        return tuple(edges)

    def reasons(self, simpler: Model, path: Path) -> Iterator[tuple[Path, str]]:
        """Yield each layer that the simpler model has no longer, and the step that has removed it."""
        model = self.model
        needed, readers = used(model), model.consumers
        steps: dict[int, str] = {}
        for id in reversed(model.order):
            if id in simpler.layers:
                continue
            later = [steps.get(reader) or self.why.get(reader) for reader in readers.get(id, ())]
            steps[id] = UNUSED if id not in needed else self.why.get(id) or next(filter(None, later), EQUAL)
        yield from (((*path, id), step) for id, step in steps.items())
        for id, nets in self.bodies.items():
            for tag, net in nets.items():
                if id in simpler.layers:
                    yield from net.reasons(simpler.layers[id].bodies[tag], (*path, id, tag))


_NAMED_AFTER_LAYERS: Final = 10
"""The IR version in which outputs are named after layers, and not after tensors."""


# ---------------------------------------------------------------------------------------------
# bytes


def _digest(weights: Weights, offset: int, size: int) -> bytes:
    return hashlib.blake2b(weights.bytes_at(offset, size).data).digest()


def _repeated_sizes(model: Model) -> set[str]:
    """Return the sizes, as text, that several constants have."""
    sizes = Counter(layer.attributes.get("size", "0") for layer in model.layers.values() if is_constant(layer))
    return {size for size, count in sizes.items() if count > 1}


Range = tuple[int, int]
"""The offset and the size of a constant."""


def _ranges(model: Model, path: Path = ()) -> Iterator[tuple[Path, Range]]:
    """Yield the range of each constant, bodies included."""
    for id, layer in model.layers.items():
        if is_constant(layer):
            yield (*path, id), (int(layer.attributes["offset"]), int(layer.attributes["size"]))
        for tag, body in layer.bodies.items():
            yield from _ranges(body, (*path, id, tag))


def _shared_bytes(model: Model) -> dict[Range, int]:
    """Return the first offset of the same bytes for each range of constants that repeats others."""
    if model.weights is None:
        return {}
    ranges = sorted({place for _, place in _ranges(model)})
    counts = Counter(size for _, size in ranges)
    known: dict[object, int] = {}
    offsets: dict[Range, int] = {}
    for offset, size in ranges:
        if counts[size] > 1:
            digest = _digest(model.weights, offset, size)
            first = known.setdefault((size, digest), offset)
            if first != offset:
                offsets[offset, size] = first
    return offsets


def _relocated(model: Model, offsets: Mapping[Range, int]) -> Model:
    """Return a model or body whose constants read equal bytes at one offset."""
    if not offsets:
        return model
    layers: dict[int, Layer] = {}
    for id, layer in model.layers.items():
        if is_constant(layer):
            place = int(layer.attributes["offset"]), int(layer.attributes["size"])
            attributes = {**layer.attributes, "offset": str(offsets.get(place, place[0]))}
            layer = replace(layer, attributes=attributes)
        bodies = {tag: _relocated(body, offsets) for tag, body in layer.bodies.items()}
        layers[id] = replace(layer, bodies=bodies)
    return replace(model, layers=layers)


def _freed(model: Model, simpler: Model, reasons: Mapping[Path, str]) -> Counter[str]:
    """Return the bytes that no constant reads any longer, by step."""
    kept = {place for _, place in _ranges(simpler)}
    gone: dict[Range, str] = {}
    for path, place in _ranges(model):
        step = reasons.get(path, CONSTANTS)
        if place not in kept and gone.get(place, CONSTANTS) == CONSTANTS:  # equal constants may have shared the range
            gone[place] = step
    return Counter({step: sum(size for (_, size), own in gone.items() if own == step) for step in STEPS})
