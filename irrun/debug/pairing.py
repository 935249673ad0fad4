"""Pair the inner values, the inputs and the outputs of two sides.

``compare`` takes any function from two ``Subject``s to pairs of places. ``by_name_or_structure`` is its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from irrun.debug.difference import Matching, match
from irrun.debug.difference.decompression import weights_of
from irrun.debug.subjects import Subject
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import Input, Loaded, Place
from irrun.model import Model
from irrun.model.lookup import nearest
from irrun.types import ELEMENT_TYPES, PartialShape

__all__ = [
    "InputPair",
    "Pairing",
    "Renames",
    "by_name",
    "by_name_or_structure",
    "in_common",
    "pair_by_readers",
    "pair_inputs",
    "pair_outputs",
    "renamed",
]

Pairing = Callable[[Subject, Subject], Mapping[Place, Place]]
"""A function that returns the place in the candidate (the second argument) for places in the reference."""


_MIN_SHARE_OF_EQUAL_NAMES: Final = 0.9
"""The share of the inner values that must have the same name and type on both sides, so that names are trusted. A copy
of a model shares nearly all; a model that was converted again has other names, or counts up names differently."""


def by_name_or_structure(reference: Subject, candidate: Subject) -> dict[Place, Place]:
    """Return the pairs of places by name or, for two IR files whose names differ, by the structure of the models.

    ``irrun.debug.match`` pairs layers by structure; a layer that it leaves alone is still paired by name. The
    layers inside a weight are not paired if the two sides store the weight in different forms: only its values
    correspond.
    """
    pairs = _by_name_or_structure(reference, candidate)
    if reference.model is None or candidate.model is None:
        return pairs
    mine, its = dict(_forms(reference.model, "")), dict(_forms(candidate.model, ""))
    return {place: other for place, other in pairs.items() if mine.get(place.layer) == its.get(other.layer)}


def _forms(model: Model, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the layers inside weights, by the names of their places, with the form of the weight."""
    for weight in weights_of(model).values():
        for id in weight.hidden:
            yield prefix + model.unique_names[id], weight.form
    for id, layer in model.layers.items():
        for body in layer.bodies.values():
            yield from _forms(body, f"{prefix}{model.unique_names[id]}/")


def _by_name_or_structure(reference: Subject, candidate: Subject) -> dict[Place, Place]:
    """Return the pairs of places by name or by structure, also those inside weights."""
    named = by_name(reference, candidate)
    origins, others = reference.loaded.places, candidate.loaded.places
    same = sum(origins[place].type == others[other].type for place, other in named.items())
    if (
        reference.model is None
        or candidate.model is None
        or same >= _MIN_SHARE_OF_EQUAL_NAMES * min(len(origins), len(others))
    ):
        return named
    matched = _matched(match(reference.model, candidate.model), "", "")
    pairs = {place: other for place, other in matched if place in origins and other in others}
    taken = set(pairs.values())
    pairs |= {place: other for place, other in named.items() if place not in pairs and other not in taken}
    return {place: pairs[place] for place in origins if place in pairs}


def _matched(matching: Matching, prefix: str, other: str) -> Iterator[tuple[Place, Place]]:
    """Yield the places of the values that correspond to each other, also those in bodies."""
    a, b = matching.a.unique_names, matching.b.unique_names
    for (id, position), (other_id, other_position) in matching.values():
        yield Place(prefix + a[id], position), Place(other + b[other_id], other_position)
    for pair in matching.pairs:
        for inner in pair.bodies.values():
            yield from _matched(inner, f"{prefix}{a[pair.a.id]}/", f"{other}{b[pair.b.id]}/")


def by_name(reference: Subject, candidate: Subject) -> dict[Place, Place]:
    """Return the pairs of places whose layers have the same name or whose values share another name.

    A name that belongs to several values of one side pairs none.
    """
    pairs = {place: place for place in reference.loaded.places if place in candidate.loaded.places}
    taken = set(pairs.values())
    named = _unambiguous(candidate.loaded)
    for name, place in _unambiguous(reference.loaded).items():
        other = named.get(name)
        if place not in pairs and other is not None and other not in taken:
            pairs[place] = other
            taken.add(other)
    return {place: pairs[place] for place in reference.loaded.places if place in pairs}


def _unambiguous(loaded: Loaded) -> dict[str, Place]:
    """Return the places by each name that only one of them has: that of the first output's layer, or of the value."""
    by_name: dict[str, set[Place]] = {}
    for place, origin in loaded.places.items():
        for name in (*origin.names, *([place.layer] if place.port == 0 else [])):
            by_name.setdefault(name, set()).add(place)
    return {name: next(iter(places)) for name, places in by_name.items() if len(places) == 1}


def pair_outputs(
    reference: Sequence[tuple[str, ...]], candidate: Sequence[tuple[str, ...]], renames: Renames
) -> dict[int, int]:
    """Return the position of the candidate's output for positions of outputs of the reference.

    Outputs are paired as the user says, then by a common name. If no two have one, and there are as many on both sides,
    they are paired in order.
    """
    pairs: dict[int, int] = {}
    for position, names in enumerate(reference):
        wanted = {renames[name] for name in names if name in renames}
        other = next(
            (at for at, others in enumerate(candidate) if at not in pairs.values() and wanted & set(others)), None
        )
        if other is not None:
            pairs[position] = other
    for position, names in enumerate(reference):
        if position in pairs:
            continue
        for other, others in enumerate(candidate):
            if other not in pairs.values() and set(names) & set(others):
                pairs[position] = other
                break
    if not pairs and len(reference) == len(candidate):
        return {position: position for position in range(len(reference))}
    return pairs


def in_common(
    reference: Subject, candidate: Subject, pairing: Pairing | None, renames: Renames
) -> tuple[dict[Place, Place], dict[int, int]]:
    """Return the pairs of inner values, if there is a ``pairing``, and of outputs.

    Raises EngineError: IR704 if the sides have nothing in common, IR707 for a name that a side does not have.
    """
    paired = {} if pairing is None else pairing(reference, candidate)
    chosen = renamed(paired, reference, candidate, renames)
    origins = reference.loaded.places
    # the inputs of bodies, which other uses of the engines need, err only where the layers before them do
    inner = {place: other for place, other in chosen.items() if origins[place].type != "Parameter"}
    outputs = pair_outputs(reference.loaded.outputs, candidate.loaded.outputs, renames)
    if not outputs and (not inner or pairing is None):
        help = "pass two forms of the same model; outputs and layers are matched by name"
        message = f"{reference.side} and {candidate.side} have no output and no layer in common"
        raise EngineError(diagnostic("IR704", message, help=help))
    return ({} if pairing is None else inner), outputs


# ---------------------------------------------------------------------------------------------
# names that the user pairs


Renames = Mapping[str, str]
"""The name in the candidate of inputs, outputs and layers of the reference."""


def renamed(
    pairs: Mapping[Place, Place], reference: Subject, candidate: Subject, renames: Renames
) -> dict[Place, Place]:
    """Return pairs of places in which the layers that the user has named are paired as the user says.

    Raises EngineError (IR707) for a name that a side does not have, and for a name that is paired twice.
    """
    for name, other in renames.items():
        _require_known(reference, candidate, name, other)
        if sum(value == other for value in renames.values()) > 1:
            raise _unpaired(f'"{other}" is paired with more than one name', "pair each name once")
    chosen = {
        place: Place(renames[place.layer], place.port)
        for place in reference.loaded.places
        if place.layer in renames and Place(renames[place.layer], place.port) in candidate.loaded.places
    }
    taken = set(chosen.values())
    kept = {place: other for place, other in pairs.items() if place.layer not in renames and other not in taken}
    return {place: {**kept, **chosen}[place] for place in reference.loaded.places if place in kept or place in chosen}


def _require_known(reference: Subject, candidate: Subject, name: str, other: str) -> None:
    """Raise EngineError (IR707) unless both names are those of inputs, of outputs or of layers."""
    names, others = _names(reference), _names(candidate)
    if any(name in first and other in second for first, second in zip(names, others)):
        return
    for side, wanted, groups in ((reference, name, names), (candidate, other, others)):
        known = [item for group in groups for item in group]
        if wanted not in known:
            near = nearest(wanted, known)
            help = f'did you mean "{near[0]}"?' if near else "pass the name of an input, an output or a layer"
            raise _unpaired(f'{side.side} has no input, output or layer "{wanted}"', help)
    message = f'"{name}" and "{other}" are not both inputs, both outputs or both layers'
    raise _unpaired(message, "pair names of the same kind")


def _names(subject: Subject) -> tuple[set[str], set[str], set[str]]:
    """Return the names of the inputs, of the outputs and of the layers."""
    inputs = {name for input in subject.loaded.inputs for name in input.names}
    outputs = {name for names in subject.loaded.outputs for name in names}
    return inputs, outputs, {place.layer for place in subject.loaded.places}


def _unpaired(message: str, help: str) -> EngineError:
    return EngineError(diagnostic("IR707", message, help=help))


# ---------------------------------------------------------------------------------------------
# inputs


@dataclass(frozen=True, slots=True)
class InputPair:
    """An input of the reference and the input of the candidate that get the same values.

    A side that has no such input has an empty name, and None for its position. ``by`` says why they are a pair.
    """

    reference: str
    candidate: str
    by: Literal["name", "map", "position", ""]
    positions: tuple[int | None, int | None]
    is_recorded: bool = False
    """Whether a dump holds the values."""


def pair_inputs(reference: Subject, candidate: Subject, renames: Renames) -> tuple[InputPair, ...]:
    """Return the pairs of inputs: as the user says, then by a common name, then the rest by position.

    Raises EngineError (IR707) if the rest cannot be paired by position: if the candidate has inputs for which none is
    left, or if a pair has other element types or shapes.
    """
    sides = reference.loaded.inputs, candidate.loaded.inputs
    left = [dict(enumerate(side)) for side in sides]
    pairs: list[InputPair] = []

    def pair(first: int, second: int, by: Literal["name", "map", "position"]) -> None:
        pairs.append(InputPair(_first_name(sides[0], first), _first_name(sides[1], second), by, (first, second)))
        del left[0][first], left[1][second]

    def has(names: Iterable[str]) -> Callable[[int, int], bool]:
        wanted = set(names)
        return lambda side, at: bool(wanted & set(sides[side][at].names))

    for name, other in renames.items():
        first = next((at for at in left[0] if has([name])(0, at)), None)
        second = next((at for at in left[1] if has([other])(1, at)), None)
        if first is not None and second is not None:
            pair(first, second, "map")
    for at in list(left[0]):
        same = next((other for other in left[1] if has(sides[0][at].names)(1, other)), None)
        if same is not None:
            pair(at, same, "name")
    if len(left[0]) == len(left[1]):
        guessed = list(zip(left[0], left[1]))
        _require_alike(guessed, sides)
        for at, other in guessed:
            pair(at, other, "position")
    elif left[1] and sides[0]:
        lists = (", ".join(f'"{_first_name(side, at)}"' for at in rest) or "none" for side, rest in zip(sides, left))
        message = "the inputs {} of the reference cannot be paired with {} of the candidate".format(*lists)
        raise _unpaired(message, _how_to_pair(sides))
    pairs += [InputPair(_first_name(sides[0], at), "", "", (at, None)) for at in left[0]]
    pairs += [InputPair("", _first_name(sides[1], at), "", (None, at)) for at in left[1]]
    return tuple(sorted(pairs, key=lambda item: item.positions[0] or 0))


def pair_by_readers(reference: Subject, candidate: Subject, place: Place, pairs: Mapping[Place, Place]) -> Place | None:
    """Return the input of the candidate that feeds the layer which the input ``place`` feeds in the reference, or None.

    ``pairs`` are those of inner values. Both sides need an IR file.
    """
    node = reference.nodes.get(place.layer)
    if node is None:
        return None
    names = node.model.unique_names
    for reader, position in node.model.readers.get((node.layer.id, 0), ()):
        other = pairs.get(Place(names[reader]))
        paired = None if other is None else candidate.nodes.get(other.layer)
        if paired is None or position >= len(paired.layer.inputs):
            continue
        producer = paired.producer(position)
        if producer is not None and Place(producer[0].name) in candidate.inputs:
            return Place(producer[0].name)
    return None


def _first_name(inputs: Sequence[Input], position: int) -> str:
    names = inputs[position].names
    return names[0] if names else f"input {position}"


def _require_alike(guessed: Sequence[tuple[int, int]], sides: tuple[Sequence[Input], Sequence[Input]]) -> None:
    """Raise EngineError (IR707) if inputs that are paired by position cannot be the same."""
    texts, wrong = [], False
    for at, other in guessed:
        first, second = sides[0][at], sides[1][other]
        wrong |= not _is_alike(first, second)
        texts.append(
            f'"{_first_name(sides[0], at)}" ({first.type} {first.shape}) '
            f'with "{_first_name(sides[1], other)}" ({second.type} {second.shape})'
        )
    if wrong:
        message = f"the inputs have other names, and by position they do not fit: {', '.join(texts)}"
        raise _unpaired(message, _how_to_pair(sides))


def _how_to_pair(sides: Sequence[Sequence[Input]]) -> str:
    """Return what to do about inputs without partners. Only a model in paged form reads tables of blocks."""
    paged = [any("block_indices_begins" in input.names for input in side) for side in sides]
    if paged[0] != paged[1]:
        return "compare a model with its paged form, which reads other inputs, so: irrun paged MODEL.xml PAGED.xml"
    return "pair them with --map REFERENCE=CANDIDATE"


def _is_alike(first: Input, second: Input) -> bool:
    """Return whether two inputs may be the same: numbers with a point, integers or strings, and shapes that meet."""
    types = [ELEMENT_TYPES.get(input.type) for input in (first, second)]
    kinds = [None if type is None else "integer" if type.is_integer else type.kind for type in types]
    shapes = [PartialShape.parse(input.shape.strip("[]")) for input in (first, second)]
    if None not in kinds and "dynamic" not in kinds and kinds[0] != kinds[1]:
        return False
    return shapes[0] is None or shapes[1] is None or shapes[0].meet(shapes[1]) is not None
