"""Exchange the weights of a model for those of its compressed copy, and insert the layers that quantize its values.

A layer is in the precision of the copy when it reads the weights of the copy. Where the copy has layers between a
producer and a reader that the model has not, such as a FakeQuantize, the reader's input goes through these layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from irrun.debug.difference import match
from irrun.debug.difference.constants import Constant, constant
from irrun.debug.difference.decompression import weights_of
from irrun.debug.difference.matching import Matching
from irrun.debug.low_precision.formats import Format, is_float, widened
from irrun.debug.low_precision.outputs import Outputs
from irrun.debug.low_precision.results import Quantizer, Twin, WeightForm
from irrun.debug.low_precision.simulation import Arrays, Deployed, Simulation, Style, run_true
from irrun.debug.low_precision.units import Unit
from irrun.debug.metrics import measure
from irrun.diagnostics import EngineError, diagnostic
from irrun.inference.bind import bind
from irrun.model import Layer, Model, is_constant
from irrun.model.weights import Weights
from irrun.opdef import Op

__all__ = ["Chain", "Copy", "Exchanged", "Replaced"]

_FORMAT: Final = Format("compressed", None, math.inf, "f8e4m3")
_HELP: Final = "pass the model that was compressed as --twin"
_REST: Final = 0.1
_SMALL_REST: Final = 1e-3
"""The error of the outputs that weights and quantizers need not explain: ``_REST`` of the whole, and ``_SMALL_REST``
because the two models add up in other orders, and may decompress in f16."""
_MIN_SHARE: Final = 0.5
"""The share of the layers with weights that must have a counterpart with weights of the same shape in a copy."""


@dataclass(frozen=True)
class Replaced:
    """A weight of the copy, and how far it is from that of the model.

    ``form`` says how the copy stores the weight, ``bits`` is the size of an element there. ``error`` is the root mean
    square of the errors divided by that of the values, ``snr`` the same in decibels; None without an error.
    """

    model: Model
    feed: tuple[int, int]
    bin: Weights | None
    is_transposed: bool
    """Whether the layer of the model reads the transposed matrix."""
    form: str
    bits: int
    error: float
    snr: float | None

    @property
    def key(self) -> tuple[int, int, int]:
        """A value that is equal for two inputs that read the same weight."""
        return id(self.model), *self.feed

    def array(self) -> np.ndarray:
        """Return the values of the weight as f32."""
        array = _folded(self.model, self.feed, self.bin)
        assert array is not None  # it was folded when it was compared
        return array.swapaxes(-1, -2) if self.is_transposed else array


@dataclass
class Chain:
    """The layers through which an input of a layer goes in the copy alone, with figures of all samples so far.

    ``steps`` are the operations with their inputs, of which one is None: the value. ``name``, ``line`` and ``levels``
    are those of the last FakeQuantize, or of the last layer if there is none.
    """

    name: str
    type: str
    line: int | None
    levels: int | None
    steps: tuple[tuple[Op, tuple[np.ndarray | None, ...]], ...]
    reader: str
    size: int = 0
    """The elements that went through the chain."""
    saturated: int = 0
    """The elements beyond the input range of a FakeQuantize."""
    noise: float = 0.0
    signal: float = 0.0

    @property
    def text(self) -> str:
        """The type of the layer, with its levels."""
        return self.type if self.levels is None else f"{self.type} {self.levels}"

    @property
    def snr(self) -> float | None:
        """The ratio of signal and noise in decibels; None without noise or without a signal."""
        return 10 * math.log10(self.signal / self.noise) if self.noise > 0 and self.signal > 0 else None

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """Return an array after the layers of the chain."""
        for op, inputs in self.steps:
            array = _run(op, [array if other is None else other for other in inputs])
        return array

    def observe(self, array: np.ndarray) -> None:
        """Add the figures of an array."""
        before = array
        for op, inputs in self.steps:
            if op.type == "FakeQuantize":
                low, high = (np.asarray(limit) for limit in inputs[1:3])
                beyond = (array < np.minimum(low, high)) | (array > np.maximum(low, high))
                self.saturated += int(np.count_nonzero(beyond))
            array = _run(op, [array if other is None else other for other in inputs])
        self.size += before.size
        if before.shape == array.shape:
            finite = np.where(np.isfinite(before), before, 0).astype(np.float64)
            self.signal += float(np.square(finite).sum())
            self.noise += float(np.square(np.nan_to_num(array - before, posinf=0, neginf=0), dtype=np.float64).sum())


@dataclass(frozen=True)
class Exchanged(Style):
    """The style in which a layer has the weights of the copy, and reads values through the layers of the copy.

    ``weights`` and ``chains`` are those of each layer, by the position of the input. ``alike`` are the weights that
    the copy left as they are, by the name of the layer, with their form and bits.
    """

    weights: Mapping[str, Mapping[int, Replaced]] = field(default_factory=dict)
    chains: Mapping[str, Mapping[int, Chain]] = field(default_factory=dict)
    alike: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def of_weight(self, name: str) -> tuple[str, float | None]:
        """Return the form of the weights and quantizers of a layer, and the least ratio of signal and noise."""
        weights, chains = self.weights.get(name, {}).values(), self.chains.get(name, {}).values()
        texts = [*(weight.form for weight in weights), *(chain.text for chain in chains)]
        ratios = [weight.snr for weight in weights if weight.snr is not None]
        return ", ".join(dict.fromkeys(texts)), min(ratios, default=None)

    def lowers(self, unit: Unit) -> bool:
        return unit.name in self.weights or unit.name in self.chains

    def together(self, names: Sequence[str]) -> frozenset[str]:
        """Return layers with all others that read the same weights, which the copy holds once."""
        keys = {weight.key for name in names for weight in self.weights.get(name, {}).values()}
        sharing = (n for n, weights in self.weights.items() if any(w.key in keys for w in weights.values()))
        return frozenset(names).union(sharing)

    def observe(self, unit: Unit, inputs: Arrays) -> None:
        for position, chain in self.chains.get(unit.name, {}).items():
            array = inputs[position]
            if array is not None and is_float(array):
                chain.observe(array)

    def _inputs(self, unit: Unit, inputs: Arrays) -> list[np.ndarray | None]:
        arrays = list(inputs)
        for position, weight in self.weights.get(unit.name, {}).items():
            arrays[position] = weight.array()
        for position, chain in self.chains.get(unit.name, {}).items():
            array = arrays[position]
            arrays[position] = None if array is None else chain(array)
        return arrays


class Copy:
    """A compressed copy of a model, which takes and returns arrays in the order of the inputs and outputs of the model.

    ``style`` gives the layers of the model the weights of the copy. Raises EngineError (IR704) if the copy is a copy of
    another model, and ModelError for weights outside of a ``.bin``.
    """

    def __init__(self, simulation: Simulation, copy: Simulation) -> None:
        self.original, self.simulation = simulation, copy
        matching = match(simulation.model, copy.model)
        mine, its = simulation.model, copy.model
        self._parameters = _order(matching.to_a, its.parameters, mine.parameters, (its, mine), "input")
        self._results = _order(matching.to_b, mine.results, its.results, (mine, its), "output")
        builder = _Builder(simulation, copy, dict(_layers(matching)))
        for name, other in builder.names.items():
            if name in simulation.units and other in copy.units:
                builder.add(simulation.units[name], copy.units[other])
        builder.require_copy()
        self.style = Exchanged(_FORMAT, weights=builder.weights, chains=builder.chains, alike=builder.alike)

    def sample(self, sample: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Return the inputs of the model for inputs of the copy, by position."""
        return {self._parameters[position]: array for position, array in sample.items()}

    def outputs(self, sample: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        """Run the copy on inputs of the model, and return the outputs of the model."""
        given = {position: sample[mine] for position, mine in enumerate(self._parameters) if mine in sample}
        outputs = self.simulation(run_true, given)
        return [outputs[position] for position in self._results]

    def report(self, outputs: Outputs, error: float) -> Twin:
        """Return how the copy differs from the model. ``error`` is that of the outputs of the copy."""
        lowered = Deployed(self.style, frozenset())
        rest = 0.0
        for sample in outputs.samples:
            pairs = [*zip(self.original(lowered, sample), self.outputs(sample))]
            rest = max(rest, *(measure(*pairs[position], 0, 0).error for position in outputs.compared))
        by_name: dict[str, list[Chain]] = {}
        for chains in self.style.chains.values():
            for chain in chains.values():
                by_name.setdefault(chain.name, []).append(chain)
        quantizers = (
            Quantizer(
                name,
                c.type,
                c.line,
                c.levels,
                tuple(chain.reader for chain in found),
                c.saturated / max(c.size, 1),
                c.snr,
            )
            for name, found in by_name.items()
            for c in found[:1]
        )
        is_explained = rest <= _SMALL_REST + _REST * error
        return Twin(self.original.model.source.path, _forms(self.style), tuple(quantizers), rest, is_explained)


def _order(
    counterparts: Mapping[int, int],
    layers: Sequence[Layer],
    others: Sequence[Layer],
    models: tuple[Model, Model],
    what: str,
) -> list[int]:
    """Return the position among ``others`` of the counterpart of each of ``layers``. Raises EngineError (IR704)."""
    positions = {layer.id: position for position, layer in enumerate(others)}
    for layer in layers:
        if counterparts.get(layer.id) not in positions or len(layers) != len(others):
            message = (
                f'the {what} "{layer.name}" of {models[0].source.path} has no counterpart in {models[1].source.path}'
            )
            raise EngineError(diagnostic("IR704", message, help=_HELP))
    return [positions[counterparts[layer.id]] for layer in layers]


def _layers(matching: Matching, prefix: str = "", other: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names of the layers that correspond to each other, with the paths through the bodies."""
    a, b = matching.a.unique_names, matching.b.unique_names
    for pair in matching.pairs:
        yield prefix + a[pair.a.id], other + b[pair.b.id]
        for inner in pair.bodies.values():
            yield from _layers(inner, f"{prefix}{a[pair.a.id]}/", f"{other}{b[pair.b.id]}/")


def _forms(style: Exchanged) -> tuple[WeightForm, ...]:
    """Return the forms of all weights, the one with the fewest bits first."""
    groups: dict[tuple[int, str, bool], list[tuple[str, float | None]]] = {}
    for name, of_layer in style.weights.items():
        for weight in of_layer.values():
            groups.setdefault((weight.bits, weight.form, False), []).append((name, weight.snr))
    for name, (form, bits) in style.alike.items():
        groups.setdefault((bits, form, True), []).append((name, None))
    forms: list[WeightForm] = []
    for (bits, form, is_exact), found in sorted(groups.items(), key=lambda item: item[0]):
        worst, snr = min(found, key=lambda item: math.inf if item[1] is None else item[1])
        forms.append(WeightForm(form, bits, tuple(n for n, _ in found), is_exact, snr, "" if is_exact else worst))
    return tuple(forms)


class _Builder:
    def __init__(self, simulation: Simulation, copy: Simulation, names: Mapping[str, str]) -> None:
        self.simulation, self.copy, self.names = simulation, copy, names
        self.paired = set(names.values())
        self.weights: dict[str, dict[int, Replaced]] = {}
        self.chains: dict[str, dict[int, Chain]] = {}
        self.alike: dict[str, tuple[str, int]] = {}
        self.forms: dict[int, Mapping[int, str]] = {}
        self.weighted = sum(
            any(_is_weight(unit, p) for p in range(len(unit.inputs))) for unit in simulation.units.values()
        )
        self.found = 0

    def add(self, unit: Unit, other: Unit) -> None:
        """Record what the inputs of a layer are in the copy."""
        is_found = False
        for position in range(min(len(unit.inputs), len(other.inputs))):
            if unit.constant[position] and other.constant[position]:
                is_found |= self._add_weight(unit, other, position) and _is_weight(unit, position)
            elif unit.inputs[position] is not None and not other.constant[position]:
                chain = self._chain(unit, other, position)
                if chain is not None:
                    self.chains.setdefault(unit.name, {})[position] = chain
        self.found += is_found

    def _add_weight(self, unit: Unit, other: Unit, position: int) -> bool:
        """Record the weight of an input; return whether both models have one, of the same shape."""
        feeds = unit.model.feeds[unit.layer.id][position], other.model.feeds[other.layer.id][position]
        if feeds[0] is None or feeds[1] is None:
            return False
        mine = _folded(unit.model, feeds[0], self.simulation.model.weights)
        its = _folded(other.model, feeds[1], self.copy.model.weights)
        if mine is None or its is None or not is_float(mine) or not is_float(its):
            return False
        is_transposed = its.ndim > 1 and _transposes(unit.op, position) != _transposes(other.op, position)
        its = its.swapaxes(-1, -2) if is_transposed else its
        if mine.shape != its.shape:
            return False
        form, bits = self._form(other.model, feeds[1])
        measurement = measure(mine, its, 0, 0)
        if measurement.error:
            weight = Replaced(
                other.model,
                feeds[1],
                self.copy.model.weights,
                is_transposed,
                form,
                bits,
                measurement.error,
                measurement.snr,
            )
            self.weights.setdefault(unit.name, {})[position] = weight
        elif _is_weight(unit, position):
            self.alike[unit.name] = form, bits
        return True

    def _form(self, model: Model, feed: tuple[int, int]) -> tuple[str, int]:
        """Return how a model stores a weight, and the bits of an element."""
        if id(model) not in self.forms:
            self.forms[id(model)] = {output: weight.form for output, weight in weights_of(model).items()}
        at: tuple[int, int] | None = feed
        form = ""
        while at is not None and not is_constant(layer := model.layers[at[0]]):
            form = form or self.forms[id(model)].get(layer.id, "")
            at = model.feeds[layer.id][0] if model.feeds[layer.id] else None
        codes = None if at is None else _constant(model, model.layers[at[0]], self.copy.model.weights)
        if codes is None:
            return form or "computed", 32
        return form or str(codes.type), codes.type.bits

    def _chain(self, unit: Unit, other: Unit, position: int) -> Chain | None:
        """Return the layers that only the copy has between the producer of an input and its reader, or None."""
        model, feed = other.model, other.model.feeds[other.layer.id][position]
        prefix = other.name.removesuffix(model.unique_names[other.layer.id])
        steps: list[tuple[Op, tuple[np.ndarray | None, ...]]] = []
        named: Unit | None = None
        while feed is not None and (name := prefix + model.unique_names[feed[0]]) not in self.paired:
            layer = self.copy.units.get(name)
            if layer is None or feed[1] or sum(not constant for constant in layer.constant) != 1:
                return None
            feeds = model.feeds[feed[0]]
            value = layer.constant.index(False)
            bin = self.copy.model.weights
            arrays = [None if p == value or f is None else _folded(model, f, bin) for p, f in enumerate(feeds)]
            if any(array is None for p, array in enumerate(arrays) if p != value):
                return None
            steps.insert(0, (layer.op, tuple(arrays)))
            named = layer if named is None or (layer.layer.type == "FakeQuantize" != named.layer.type) else named
            feed = feeds[value]
        if named is None or feed is None or not self._corresponds(unit, position, prefix + model.unique_names[feed[0]]):
            return None
        levels = getattr(named.op, "levels", None)
        return Chain(named.name, named.layer.type, named.line, levels, tuple(steps), unit.name)

    def _corresponds(self, unit: Unit, position: int, producer: str) -> bool:
        """Return whether an input of a layer has the counterpart of ``producer``, a layer of the copy, as producer."""
        feed = unit.model.feeds[unit.layer.id][position]
        prefix = unit.name.removesuffix(unit.model.unique_names[unit.layer.id])
        return feed is not None and self.names.get(prefix + unit.model.unique_names[feed[0]]) == producer

    def require_copy(self) -> None:
        """Raise EngineError (IR704) unless most layers with weights have a counterpart."""
        if self.found >= _MIN_SHARE * self.weighted:
            return
        paths = self.copy.model.source.path, self.simulation.model.source.path
        message = (
            f"{paths[1]} is no twin of {paths[0]}: of {self.weighted} layers with weights, only {self.found} have a "
            "counterpart with weights of the same shape"
        )
        raise EngineError(diagnostic("IR704", message, help=_HELP))


def _transposes(op: Op, position: int) -> bool:
    """Return whether a MatMul transposes an input."""
    return bool(getattr(op, "transpose_b" if position else "transpose_a", False))


def _is_weight(unit: Unit, position: int) -> bool:
    """Return whether an input is a constant matrix that compression may store in other codes."""
    feed = unit.model.feeds[unit.layer.id][position] if position < len(unit.model.feeds[unit.layer.id]) else None
    if feed is None or not unit.constant[position]:
        return False
    output = unit.model.layers[feed[0]].outputs[feed[1]]
    return (
        output.type is not None
        and output.type.kind == "float"
        and output.shape is not None
        and (output.shape.rank or 0) > 1
        and unit.layer.type in _WEIGHTED
    )


_WEIGHTED: Final = (
    "MatMul", "Gather", "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData",
)  # fmt: skip
"""The operations whose constant matrices NNCF compresses."""


def _folded(model: Model, feed: tuple[int, int], bin: Weights | None) -> np.ndarray | None:
    """Return a value that follows from constants, f16 and bf16 as f32; None if it does not. Raises ModelError."""
    layer = model.layers[feed[0]]
    if is_constant(layer):
        held = _constant(model, layer, bin)
        return None if held is None else widened(held.elements(0, held.count).reshape(held.shape))
    op, _ = bind(model, layer)
    if op is None or not op.pure or op.needs or feed[1]:
        return None
    arrays = [None if f is None else _folded(model, f, bin) for f in model.feeds[layer.id]]
    if not arrays or any(array is None for array in arrays):
        return None
    return _run(op, arrays)


def _constant(model: Model, layer: Layer, bin: Weights | None) -> Constant | None:
    return None if bin is None else constant(model, layer, bin)


def _run(op: Op, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
    """Return the first output of an operation, f16 and bf16 as f32."""
    with np.errstate(all="ignore"):
        results = op.run(*arrays)
    return widened(np.asarray(results[0] if isinstance(results, tuple) else results))
