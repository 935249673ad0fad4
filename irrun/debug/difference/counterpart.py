"""Say how a layer of a candidate differs from its counterpart in the file of the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from irrun.base.text import counted
from irrun.debug.difference.constants import Numbers, WeightsError, weights_error
from irrun.debug.difference.decompression import numbers, weights_of
from irrun.debug.difference.layers import attributes
from irrun.debug.subjects import Node, Subject
from irrun.diagnostics import ModelError
from irrun.engines import Place
from irrun.inference.unseeded import draws_anew
from irrun.ir.extract import constant_layers
from irrun.model import is_constant
from irrun.model.weights import Weights

__all__ = ["differences"]


def differences(reference: Subject, candidate: Subject, pairs: Mapping[Place, Place], place: Place) -> tuple[str, ...]:
    """Return how the layer that ``pairs`` has at ``place`` of the reference differs in the file of the candidate.

    A text says for each difference what the candidate has: type, operation set, attributes, the layers and constants
    that it reads, and the layers of its bodies. ``pairs`` are places in the candidate by places in the reference.
    Without an IR file on both sides, nothing is known. A layer that draws other random numbers in every run differs
    from itself.
    """
    theirs, ours = reference.nodes.get(place.layer), candidate.nodes.get(pairs[place].layer)
    if theirs is None or ours is None:
        return ()
    return tuple(_Files(reference, candidate, pairs).texts(theirs, ours))


@dataclass(frozen=True, slots=True)
class _Part:
    """A constant of a weight that differs: its role, its layers in both files, and the error of its values."""

    role: str
    theirs: Node
    ours: Node
    error: WeightsError


_ROLES: Final[Mapping[tuple[str, int], str]] = {
    ("Subtract", 1): "zero points",
    ("Multiply", 1): "scales",
    **{("FakeQuantize", position + 1): name for position, name in enumerate(
        ("input_low", "input_high", "output_low", "output_high")
    )},
}  # fmt: skip
"""What an input of a layer supplies to a weight. The first input of each layer is the weight itself."""


class _Files:
    """Compares layers of two files."""

    def __init__(self, reference: Subject, candidate: Subject, pairs: Mapping[Place, Place]) -> None:
        self.pairs, self.origins = pairs, {other: place for place, other in pairs.items()}
        models = reference.model, candidate.model
        self.weights = tuple(None if model is None else model.weights for model in models)

    def texts(self, theirs: Node, ours: Node) -> Iterator[str]:
        """Yield how two layers differ."""
        first, second = theirs.layer, ours.layer
        if draws_anew(ours.model, second):
            yield "it has no seed: it draws other random numbers in every run; give it one on both sides"
        if first.type != second.type:
            yield f"the type is {second.type}, in the reference {first.type}"
        elif first.version != second.version:
            yield f"the version is {second.version}, in the reference {first.version}"
        for change in attributes((theirs.model, first), (ours.model, second)):
            old, new = ("missing" if text is None else f'"{text}"' for text in (change.a, change.b))
            yield f"the attribute {change.what} is {new}, in the reference {old}"
        yield from self._inputs(theirs, ours)
        yield from self._bodies(theirs, ours)

    def _inputs(self, theirs: Node, ours: Node) -> Iterator[str]:
        """Yield the inputs that other layers feed, or constants with other values."""
        counts = [len(node.model.feeds[node.layer.id]) for node in (theirs, ours)]
        if counts[0] != counts[1]:
            yield f"it has {counted(counts[1], 'input')}, in the reference {counts[0]}"
        fixed = [constant_layers(node.model) for node in (theirs, ours)]
        for position in range(min(counts)):
            first, second = theirs.producer(position), ours.producer(position)
            if first is None or second is None:
                if first is not second:
                    texts = ["nothing" if fed is None else f'"{_label(*fed)}"' for fed in (second, first)]
                    yield f"input {position} reads {texts[0]}, in the reference {texts[1]}"
            elif first[0].layer.id in fixed[0] and second[0].layer.id in fixed[1]:
                yield from self._constant(position, first[0], second[0])
            elif self._is_other(first, second):
                yield f'input {position} reads "{_label(*second)}", in the reference "{_label(*first)}"'

    def _is_other(self, first: tuple[Node, int], second: tuple[Node, int]) -> bool:
        """Return whether two outputs are no pair. Without a pair, the names of their layers decide."""
        own, other = (Place(node.name, port) for node, port in (first, second))
        if own in self.pairs:
            return self.pairs[own] != other
        if other in self.origins:
            return True
        return own != other and _named(first[0], other.layer) is not None and _named(second[0], own.layer) is not None

    def _constant(self, position: int, first: Node, second: Node) -> Iterator[str]:
        """Yield how the constants, or weights, differ that two layers read."""
        parts = list(self._parts(first, second, ""))
        if not parts:
            return
        if self._is_exchanged(first, second):
            yield f'input {position} reads the constant "{second.name}", in the reference "{first.name}"'
        elif is_constant(second.layer):
            yield f'the constant "{second.name}" has other values: {_count(parts[0].error)}'
        else:
            yield f'the weight "{second.name}" has other values: {", ".join(map(self._told, parts))}'

    def _told(self, part: _Part) -> str:
        role = part.role or "values"
        if self._is_exchanged(part.theirs, part.ours):
            return f'its {role} are "{part.ours.name}", in the reference "{part.theirs.name}"'
        return f"{_count(part.error)} of its {role}"

    def _is_exchanged(self, first: Node, second: Node) -> bool:
        """Return whether the reference has a constant of the second name, too, with the same values."""
        twin = None if first.name == second.name else _named(first, second.name)
        return twin is not None and not any(self._parts(twin, second, ""))

    def _parts(self, first: Node, second: Node, role: str) -> Iterator[_Part]:
        """Yield the constants that differ of those from which two layers are computed.

        Where two files compute a weight by other layers, its values are compared.
        """
        inputs = first.model.feeds[first.layer.id], second.model.feeds[second.layer.id]
        is_alike = first.layer.type == second.layer.type and len(inputs[0]) == len(inputs[1]) != 0
        if is_alike and not any(attributes((first.model, first.layer), (second.model, second.layer))):
            for position in range(len(inputs[0])):
                one, other = first.producer(position), second.producer(position)
                if one is not None and other is not None:
                    own = role or ("codes" if position == 0 else "")
                    yield from self._parts(one[0], other[0], _ROLES.get((first.layer.type, position), own))
        elif (error := self._error(first, second)) is not None:
            yield _Part(role, first, second, error)

    def _error(self, first: Node, second: Node) -> WeightsError | None:
        """Return how the values of two constants, or weights, differ; None if they are equal or cannot be compared."""
        weights = self.weights
        if weights[0] is None or weights[1] is None:
            return None
        try:
            one, other = _numbers(first, weights[0]), _numbers(second, weights[1])
            if one is None or other is None or one.count != other.count:
                return None
            return weights_error(one, other) if (one.meaning is None) == (other.meaning is None) else None
        except ModelError:
            return None

    def _bodies(self, theirs: Node, ours: Node) -> Iterator[str]:
        """Yield how the bodies of two layers differ: the first layer of each that does."""
        for tag, body in ours.layer.bodies.items():
            other = theirs.layer.bodies.get(tag)
            if other is None:
                yield f"it has the {tag}, which it lacks in the reference"
                continue
            if len(body.layers) != len(other.layers):
                yield f"its {tag} has {counted(len(body.layers), 'layer')}, in the reference {len(other.layers)}"
            by_name = {name: id for id, name in other.unique_names.items()}
            for id in body.order:
                name = body.unique_names[id]
                if name not in by_name:
                    continue
                first = Node(f"{theirs.name}/{name}", other, other.layers[by_name[name]])
                second = Node(f"{ours.name}/{name}", body, body.layers[id])
                if (text := next(self.texts(first, second), None)) is not None:
                    yield f'in its {tag}, {second.layer.type} "{name}": {text}'
                    break


def _numbers(node: Node, weights: Weights) -> Numbers | None:
    """Return the values of a constant, or of a weight that layers decompress; None for another layer."""
    weight = weights_of(node.model).get(node.layer.id)
    return None if weight is None and not is_constant(node.layer) else numbers(node.model, node.layer, weight, weights)


def _named(beside: Node, name: str) -> Node | None:
    """Return the layer of a name in the model or body that holds another layer."""
    names = beside.model.unique_names
    prefix = beside.name.removesuffix(names[beside.layer.id])
    found = next((id for id, own in names.items() if prefix + own == name), None)
    return None if found is None else Node(name, beside.model, beside.model.layers[found])


def _label(node: Node, port: int) -> str:
    return node.name if port == 0 else f"{node.name}:{node.layer.outputs[port].id}"


def _count(error: WeightsError) -> str:
    return f"{error.different:,} of {error.elements:,} element{'' if error.elements == 1 else 's'}"
