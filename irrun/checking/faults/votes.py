"""Let the consumers of an output vote: for its inferred or its declared value, or for one end of an edge.

A consumer votes for the value that its input port declares. If the input ports do not decide, a consumer votes for the
value from which its own declared outputs follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, TypeVar

from irrun.checking.faults.evidence import Consumer, Election, Evidence, Key
from irrun.checking.faults.suggest import declarable
from irrun.inference.layer import infer
from irrun.inference.propagate import declared, needed, site
from irrun.model import Layer, Port
from irrun.opdef import Value
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, ElementType, PartialShape

__all__ = [
    "agrees",
    "choose_believed",
    "elect",
    "is_declaring",
    "is_uniform",
    "leads_to_declared",
    "outputs_without_inference",
]

Candidate = TypeVar("Candidate", bound=Hashable)


def agrees(port: Port, value: Value) -> bool:
    """Return whether a value can have the type and shape that a port declares."""
    same_type = port.type is None or value.type.kind == "dynamic" or port.type is value.type
    return same_type and (port.shape is None or port.shape.meet(value.shape) is not None)


def leads_to_declared(evidence: Evidence, layer: Layer, position: int, value: Value) -> bool:
    """Return whether a layer would produce its declared outputs if it read ``value`` at ``position``.

    Return True if irrun does not know the operation of the layer, or if the votes of this model have already inferred
    ``_MAX_INFERRED_INPUTS`` inputs.
    """
    op, feeds = evidence.ops[layer.id], evidence.model.feeds[layer.id]
    evidence.inputs_voted += len(feeds)
    if op is None or evidence.inputs_voted > _MAX_INFERRED_INPUTS:
        return True
    try:
        inputs = [value if feed == feeds[position] else _value_of(evidence, feed) if feed else None for feed in feeds]
        outputs = infer(op, site(layer), inputs, needed(op, evidence.model, layer))
    except Exception:  # refused or failed: the layer does not produce its declared outputs
        return False
    return all(agrees(port, output) for port, output in zip(layer.outputs, outputs))


_MAX_INFERRED_INPUTS: Final = 100_000
"""The most inputs of layers that the votes of one model infer, so that many wrong inputs of one layer, each of which
infers all the others, do not take quadratic time. A consumer beyond this limit does not vote."""
_MAX_LAYERS_AHEAD: Final = 16
"""The longest chain of layers that a vote infers ahead of propagation. It covers the usual arithmetic on shapes."""


def _value_of(evidence: Evidence, feed: Key, ahead: int = _MAX_LAYERS_AHEAD) -> Value:
    """Return what is known of the output ``feed``.

    If propagation has not reached its layer yet, infer the layer here, and its producers up to ``ahead`` layers back.
    Beyond these, return the declared output.
    """
    if feed in evidence.values:
        return evidence.values[feed]
    if feed not in evidence.inferred_ahead:
        layer, op = evidence.model.layers[feed[0]], evidence.ops[feed[0]]
        outputs = declared(layer)
        if op is not None and (ahead or not layer.inputs):
            feeds = evidence.model.feeds[layer.id]
            inputs = [_value_of(evidence, feed, ahead - 1) if feed else None for feed in feeds]
            try:
                inferred = infer(op, site(layer), inputs, needed(op, evidence.model, layer))
                outputs = (*inferred, *outputs[len(inferred) :])
            except Exception:  # refused or failed, which is reported when propagation reaches the layer
                pass
        evidence.inferred_ahead.update({(layer.id, position): value for position, value in enumerate(outputs)})
    return evidence.inferred_ahead[feed]


# ---------------------------------------------------------------------------------------------
# the inferred value or the declared one


def choose_believed(evidence: Evidence, key: Key, inferred: Value, claim: Value) -> Value:
    """Choose between the inferred value of an output and its declared value, the ``claim``: the majority decides.

    The input ports of the consumers vote first. Without a majority, the declared outputs of the consumers vote.
    Without a majority there, return the inferred value, and record the output in ``contested`` if there were votes.
    """

    def input_port_agrees(consumer: Consumer, value: Value) -> bool:
        return agrees(consumer[0].inputs[consumer[1]], value)

    def outputs_follow(consumer: Consumer, value: Value) -> bool:
        return leads_to_declared(evidence, *consumer, value)

    consumers, is_contested = evidence.consumers.get(key, ()), False
    for accepts in (input_port_agrees, outputs_follow):
        votes = _votes(consumers, (inferred, claim), accepts)
        if (winner := _leader(votes)) is not None:
            return winner
        is_contested |= bool(votes)
    if is_contested:
        evidence.contested.add(key)
    return inferred


# ---------------------------------------------------------------------------------------------
# one end of an edge or the other


def outputs_without_inference(evidence: Evidence, layer: Layer, first: int = 0) -> tuple[Value, ...]:
    """Return the outputs of a layer that cannot be inferred, from position ``first`` on: as declared, or as elected.

    The elections are recorded, so that the checks of the edges and of the consumers agree about each output.
    """
    values = list(declared(layer))
    for position in range(first, len(values)):
        key, port = (layer.id, position), layer.outputs[position]
        if not is_uniform(evidence, key) and is_declaring(evidence, port):
            election = evidence.elections[key] = elect(evidence, key)
            shape = UNKNOWN_RANK if port.shape is None or election.shape is None else election.shape
            values[position] = Value(election.type or ELEMENT_TYPES["dynamic"], shape)
    return tuple(values[first:])


def elect(evidence: Evidence, key: Key) -> Election:
    """Return the type and shape of an output on which its port and the input ports of its consumers agree.

    The inferred type and shape decide if one of the ports declares them. Otherwise the majority of the ports decides;
    the output port has one vote. If several shapes have the most votes, the declared outputs of the consumers choose
    between them. Without a majority, return what the output port declares. If the consumers then contradict each
    other, the output is recorded in ``contested``.
    """
    if key in evidence.elections:
        return evidence.elections[key]
    port = evidence.model.layers[key[0]].outputs[key[1]]
    consumers = [(l, p) for l, p in evidence.consumers.get(key, ()) if is_declaring(evidence, l.inputs[p])]
    type, is_type_contested = _elect_type(evidence.inferred.get(key), port, [l.inputs[p].type for l, p in consumers])
    shape, is_shape_contested = _elect_shape(evidence, key, evidence.inferred.get(key), port, consumers)
    if is_type_contested or is_shape_contested:
        evidence.contested.add(key)
    return Election(type, shape)


def _elect_type(
    inferred: Value | None, port: Port, claims: Sequence[ElementType | None]
) -> tuple[ElementType | None, bool]:
    """Return the elected type of an output port whose consumers declare ``claims``, and whether it is contested."""
    if port.type is None or (inferred is not None and inferred.type.kind != "dynamic"):
        return port.type, False
    if inferred is not None and inferred.type in claims:
        return inferred.type, False
    types = [claim for claim in claims if claim is not None]
    winner = _leader(Counter([port.type, *types]))
    return (winner, False) if winner is not None else (port.type, len(set(types)) > 1)


def _elect_shape(
    evidence: Evidence, key: Key, inferred: Value | None, port: Port, consumers: Sequence[Consumer]
) -> tuple[PartialShape | None, bool]:
    """Return the elected shape of an output port, and whether it is contested.

    The shape is None if most consumers declare no dims.
    """
    claims = [layer.inputs[position].shape for layer, position in consumers]
    if inferred is not None and inferred.rank is not None:
        due = declarable(inferred.shape)
        if due == port.shape or due in claims:
            return due, False
    ballots = Counter(claims if port.shape is None else [port.shape, *claims])
    leaders = _leaders(ballots)
    if len(leaders) == 1:
        return leaders[0], False
    candidates = [shape for shape in leaders if shape is not None][:_MAX_SHAPES]
    if len(candidates) == 1:
        return candidates[0], False
    type = inferred.type if inferred else ELEMENT_TYPES["dynamic"]
    votes = _votes(consumers, candidates, lambda c, shape: leads_to_declared(evidence, *c, Value(type, shape)))
    winner = _leader(votes)
    if winner is None and evidence.model.weights is None and evidence.model.constants:
        evidence.undecided.add(key)
    return (winner, False) if winner is not None else (port.shape, len({*claims} - {None}) > 1)


def is_declaring(evidence: Evidence, port: Port) -> bool:
    """Return whether a port declares a type or dims, and both can be parsed."""
    return (port.type is not None or port.shape is not None) and port.node not in evidence.unparsable


def is_uniform(evidence: Evidence, key: Key) -> bool:
    """Return whether the consumers of an output declare its own type and shape objects, as in most files."""
    port = evidence.model.layers[key[0]].outputs[key[1]]
    for layer, position in evidence.consumers.get(key, ()):
        claim = layer.inputs[position]
        if claim.shape is not port.shape or claim.type is not port.type:
            return False
    return True


# ---------------------------------------------------------------------------------------------
# counting

_MAX_SHAPES: Final = 4
"""The most shapes between which the declared outputs of consumers choose. It bounds the time for a hostile file."""


def _votes(
    consumers: Iterable[Consumer], candidates: Sequence[Candidate], accepts: Callable[[Consumer, Candidate], bool]
) -> Counter[Candidate]:
    """Count the votes for each candidate. A consumer that accepts several candidates, or none, does not vote."""
    votes: Counter[Candidate] = Counter()
    for consumer in consumers:
        accepted = [candidate for candidate in candidates if accepts(consumer, candidate)]
        if len(accepted) == 1:
            votes[accepted[0]] += 1
    return votes


def _leaders(votes: Counter[Candidate]) -> list[Candidate]:
    """Return the candidates that share the most votes."""
    most = max(votes.values(), default=0)
    return [candidate for candidate, count in votes.items() if count == most]


def _leader(votes: Counter[Candidate]) -> Candidate | None:
    """Return the candidate with more votes than any other, or None if there is none."""
    leaders = _leaders(votes)
    return leaders[0] if len(leaders) == 1 else None
