"""What releases compare in layers of sequences: attentions, delta rules and recurrent layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from irrun.opdef import Op, Value
from irrun.targets.kernels import SPATIAL, differ, dims_of
from irrun.types import Dim

__all__ = ["of_attention", "of_cell", "of_delta", "of_sequence"]

_DELTA_RANKS: Final = [4, 4, 4, 4, 3, 3]  # the dims of queries, keys, values, states, gates and betas
_STATED: Final = 3  # the inputs of a recurrent layer that begin with its batch: the data and its states


def of_attention(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    query, key, mask = dims_of(values[0]), dims_of(values[1]), dims_of(values[3])
    if not query or not key or min(len(query), len(key)) < SPATIAL:
        return
    if any(a.value == 1 < (b.value or 0) for a, b in zip(query[:-SPATIAL], key)):
        yield "its queries have fewer batches than its keys"
    if mask is None:
        return
    wanted = (query[-2], key[-2])
    if len(mask) == 1 or any(map(differ, mask[-2:], wanted)):
        yield "its mask does not end with the numbers of queries and keys"


def of_delta(_: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield in what the inputs of GatedDeltaNet disagree that readers compare, and whether its keys are empty."""
    all_dims: list[Sequence[Dim]] = [dims_of(value) or () for value in values[: len(_DELTA_RANKS)]]
    if [*map(len, all_dims)] != _DELTA_RANKS:
        return
    (query, key, data, state), heads = all_dims[:4], [dims[2] for dims in all_dims[4:]]
    pairs = [(query[2], key[2]), (query[3], key[3]), (state[2], key[3]), (state[3], data[3])]
    pairs += [(data[2], of) for of in (*heads, state[1])]
    if any(differ(*pair) for pair in pairs):
        yield "its heads or their sizes differ"
    if query[2].value is not None and data[2].value is not None and data[2].value % max(query[2].value, 1):
        yield "its values have no multiple of the heads of its queries"
    if key[3].value == 0:
        yield "its keys have no numbers"


def of_cell(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    """Yield whether a recurrent layer is one for which the plugin has a primitive: the others are decomposed.

    A cell without gates may have any activation.
    """
    names = re.sub(r"\s", "", str(getattr(op, "activations", ""))).lower()
    is_usual = type(op).type.startswith("RNN") or names == type(op).attributes["activations"].default
    if is_usual and not getattr(op, "clip", 0):
        yield "it has the usual activations and does not clip"
    data, *states = (dims[0].value if (dims := dims_of(value)) else None for value in values[:_STATED])
    if data is None and any(states[: 2 if type(op).type.startswith("LSTM") else 1]):
        yield "it knows the batch of its states, but not of its data"


def of_sequence(op: Op, values: Sequence[Value | None]) -> Iterator[str]:
    yield from of_cell(op, values)
    batches = [dims[0].value for value in values[:_STATED] if (dims := dims_of(value))]
    if None in batches and {*batches} != {None}:
        yield "it knows the batch of one input, but not of another"
