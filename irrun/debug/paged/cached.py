"""What caches hold: rows of tokens, rows that no call has written, and states after a number of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from irrun.debug.paged.calls import Call
from irrun.debug.paged.constants import spans
from irrun.debug.paged.scene import Scene, near
from irrun.debug.paged.sides import ATTENTION, STATES
from irrun.model import Layer, Model

__all__ = ["Held", "held", "shared_slots", "wrong_rows", "wrong_state"]

_KINDS: Final = ("key", "value")
_FEW: Final = 3
"""The most owners of the rows of a block that are named."""
_SAME: Final = 1e-3
"""The largest difference of equal rows, as a part of the largest element: states add up the errors of all tokens."""


@dataclass(frozen=True, slots=True)
class Held:
    """A variable of keys or of values in the stateful model: the Concat that appends to it, and what is appended."""

    concat: Layer
    appended: Layer


@dataclass(frozen=True, slots=True)
class _Row:
    """The token that a row of a cache belongs to. ``sequence`` is -1 for a row that no call has written."""

    kind: str
    layer: int
    sequence: int
    position: int


def held(model: Model) -> list[list[Held]]:
    """Return the variables of keys and those of values that attentions read, each in the order of the graph."""
    attentions = [model.layers[id] for id in model.order if model.layers[id].type == "ScaledDotProductAttention"]
    found = [[_held(model, layer, position) for layer in attentions] for position in (1, 2)]
    return [[one for one in kind if one is not None] for kind in found]


def _held(model: Model, attention: Layer, position: int) -> Held | None:
    """Return the variable from which an attention reads its keys or values, behind a Concat with the new ones."""
    feed, seen = model.feeds[attention.id][position], set[int]()
    while feed is not None and feed[0] not in seen:
        seen.add(feed[0])
        layer, feeds = model.layers[feed[0]], model.feeds[feed[0]]
        if layer.type == "Concat" and len(feeds) == 2 and feeds[1] and _is_variable(model, feeds[0]):
            return Held(layer, model.layers[feeds[1][0]])
        feed = feeds[0] if feeds else None
    return None


def _is_variable(model: Model, feed: tuple[int, int] | None) -> bool:
    """Return whether an output is a variable, perhaps behind a Gather."""
    while feed is not None and model.layers[feed[0]].type in ("Gather", "Transpose"):
        feed = model.feeds[feed[0]][0]
    return feed is not None and model.layers[feed[0]].type == "ReadValue"


def wrong_rows(scene: Scene, layer: Layer) -> str | None:
    """Return which keys or values of the past an attention layer reads that are not the expected ones."""
    book, number = _Book(scene), [other.id for other in scene.paged.layers(ATTENTION)].index(layer.id)
    for kind, position in (("key", 3), ("value", 4)):
        cache = scene.caches.get(scene.paged.source(layer, position).name)
        wanted = book.rows(kind, number, scene.piece.sequence)
        if cache is None or wanted is None or cache.dtype.kind != "f":
            continue
        said = _wrong_rows(scene, book, cache, wanted, _Row(kind, number, scene.piece.sequence, 0))
        if said is not None:
            return said
    return None


def _wrong_rows(scene: Scene, book: _Book, cache: np.ndarray, wanted: np.ndarray, own: _Row) -> str | None:
    """Return the first block whose rows are wrong, and what they are."""
    piece, slots = scene.piece, cache.shape[2]
    first, last, _ = piece.evicted
    positions = [p for p in range(piece.begin) if not first <= p < last]
    places = [scene.call.place(scene.part, p, slots) for p in positions]
    wrong = [
        (block, slot, p)
        for (block, slot), p in zip(places, positions)
        if not (0 <= block < len(cache) and near(cache[block, :, slot], wanted[p], _SAME))
    ]
    for block, group in groupby(wrong, lambda place: place[0]):
        rows = list(group)
        taken = spans([slot for _, slot, _ in rows])
        if not 0 <= block < len(cache):
            return (
                f"the table has no block for the tokens {spans([p for _, _, p in rows])} of sequence {piece.sequence}"
            )
        what = f"the {own.kind}s of block {block}, slots {taken},"
        other = _block_of(cache, wanted, [(slot, p) for _, slot, p in rows])
        tokens = f"tokens {spans([p for _, _, p in rows])} of sequence {piece.sequence}"
        found = cache[block, :, [slot for _, slot, _ in rows]]
        labels = book.labels(found.reshape(len(found), -1), [slot for _, slot, _ in rows], own)
        held = _labelled(labels, own) or _changed(found, wanted, rows)
        at = f"; block {other} holds those of {tokens}" if other is not None else f", not those of {tokens}"
        return f"{what} are {held}{at}" if held else f"{what} are not those of {tokens}"
    return None


def _block_of(cache: np.ndarray, wanted: np.ndarray, rows: Sequence[tuple[int, int]]) -> int | None:
    """Return the block that holds the wanted rows in the same slots."""
    return next(
        (b for b in range(len(cache)) if all(near(cache[b, :, slot], wanted[p], _SAME) for slot, p in rows)), None
    )


def _labelled(labels: Sequence[_Row | None], own: _Row) -> str | None:
    """Return whose rows these are, if that is known of all and few sequences own them."""
    rows = [row for row in labels if row is not None]
    groups = [(key, list(group)) for key, group in groupby(rows, lambda row: (row.sequence, row.kind, row.layer))]
    if len(rows) < len(labels) or len(groups) > _FEW:
        return None
    parts: list[str] = []
    for (sequence, kind, layer), group in groups:
        where = "" if layer == own.layer else f" in attention {layer}"
        what = "those" if kind == own.kind else f"the {kind}s"
        tokens = f"{what} of tokens {spans([row.position for row in group])} of sequence {sequence}{where}"
        parts.append(tokens if sequence >= 0 else "zeros, which no call has written")
    return " and ".join(parts)


def _changed(found: np.ndarray, wanted: np.ndarray, rows: Sequence[tuple[int, int, int]]) -> str | None:
    """Return how rows [rows, heads, width] are computed from the wanted ones: times a number, or rotated."""
    expected = wanted[[p for _, _, p in rows]].reshape(found.shape)
    with np.errstate(all="ignore"):
        factor = float(np.median(found / expected))
    if np.isfinite(factor) and np.allclose(found, factor * expected, rtol=1e-3, atol=1e-5):
        return f"{factor:.4g} times the right ones"
    wrong = [head for head in range(found.shape[1]) if not near(found[:, head], expected[:, head], _SAME)]
    if len(wrong) < found.shape[1]:
        return f"wrong in head {spans(wrong)} alone"
    half = found.shape[2] // 2
    turned, before = (array[..., :half] + 1j * array[..., half : 2 * half] for array in (found, expected))
    angles = np.angle((turned * before.conj()).sum((0, 1)))
    rest = slice(2 * half, None)
    error = np.abs(turned - before * np.exp(1j * angles)).max(initial=0)
    if half and near(found[..., rest], expected[..., rest], _SAME) and error <= _SAME * np.abs(before).max():
        return f"the right ones, rotated by {angles[0]:.4g} rad in the first pair of elements"
    return None


class _Book:
    """The rows of all tokens: of each sequence, in each attention layer, keys and values."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.held = scene, held(scene.stateful.model.model)
        self.names = scene.stateful.model.model.unique_names
        names = [self.names[one.concat.id] for kind in self.held for one in kind]
        self.taps = [scene.stateful.run(prompt, names) for prompt in scene.plan.prompts]

    def rows(self, kind: str, number: int, sequence: int) -> np.ndarray | None:
        """Return the rows of a sequence in an attention layer, [tokens, elements]."""
        layers = self.held[_KINDS.index(kind)]
        if number >= len(layers):
            return None
        array = self.taps[sequence][self.names[layers[number].concat.id]]
        return array[0].swapaxes(0, 1).reshape(array.shape[2], -1) if array.ndim == 4 else None

    def labels(self, found: np.ndarray, slots: Sequence[int], own: _Row) -> list[_Row | None]:
        """Return whose rows these are, [rows, elements], in slots of a block: those of consecutive tokens first."""
        single = [None if row.any() else _Row(own.kind, own.layer, -1, 0) for row in found]
        steps = np.array(slots) - slots[0]
        for entry, rows in self._all(own):
            if rows.shape[1] != found.shape[1]:
                continue
            allowed = _SAME * np.abs(found).max(1)
            same = np.abs(rows[None] - found[:, None]).max(2) <= allowed[:, None]
            for first in np.flatnonzero(same[0]):
                places = first + steps
                if places[-1] < len(rows) and same[np.arange(len(found)), places].all():
                    return [_Row(entry.kind, entry.layer, entry.sequence, int(place)) for place in places]
            for n, row in enumerate(same):
                if single[n] is None and row.any():
                    single[n] = _Row(entry.kind, entry.layer, entry.sequence, int(row.argmax()))
        return single

    def _all(self, own: _Row) -> Iterator[tuple[_Row, np.ndarray]]:
        sequences = range(len(self.scene.plan.prompts))
        layers = range(len(self.held[0]))
        entries = [_Row(kind, n, s, 0) for kind in _KINDS for n in layers for s in sequences]
        entries.sort(
            key=lambda entry: (entry.layer != own.layer, entry.kind != own.kind, entry.sequence != own.sequence)
        )
        for entry in entries:
            rows = self.rows(entry.kind, entry.layer, entry.sequence)
            if rows is not None:
                yield entry, rows


def shared_slots(call: Call, part: int, slots: int) -> str | None:
    """Return where another sequence of a call writes to slots that hold tokens of a piece, before the call or new."""
    piece = call.pieces[part]
    first, last, _ = piece.evicted
    own = {call.place(part, position, slots) for position in range(piece.end) if not first <= position < last}
    for number, other in enumerate(call.pieces):
        places = [call.place(number, position, slots) for position in range(other.begin, other.end)]
        shared = [place for place in places if number != part and place in own]
        if shared:
            block = shared[0][0]
            taken = spans([slot for at, slot in shared if at == block])
            return f"sequence {other.sequence} writes to block {block}, slots {taken}, of sequence {piece.sequence}"
    return None


def wrong_state(scene: Scene, layer: Layer) -> str | None:
    """Return which state a layer with a table begins with, if it is not that after the tokens before the call."""
    table = scene.caches.get(scene.paged.source(layer, STATES[layer.type]).name)
    blocks, begins = scene.call.inputs.get("la.block_indices"), scene.call.inputs.get("la.block_indices_begins")
    if table is None or blocks is None or begins is None or scene.part + 1 >= len(begins):
        return None
    block = int(blocks[begins[scene.part]])
    histories = [_states(scene, prompt, table.shape[1:], layer) for prompt in scene.plan.prompts]
    tables = [other.id for other in scene.paged.layers(layer.type)]
    number, begin = tables.index(layer.id), scene.piece.begin
    if any(len(history) != len(tables) for history in histories) or not 0 <= block < len(table):
        return None
    own = histories[scene.piece.sequence][number][begin]
    if near(table[block], own, _SAME):
        return None
    wanted = f"that after {begin} tokens of sequence {scene.piece.sequence}" if begin else "that before any token"
    right = next((b for b in range(len(table)) if near(table[b], own, _SAME)), None)
    at = f"; block {right} holds {wanted}" if right is not None else f", not {wanted}"
    order = sorted(range(len(tables)), key=lambda n: n != number)
    for n, sequence in ((n, sequence) for n in order for sequence in range(len(histories))):
        for count, state in enumerate(histories[sequence][n]):
            if near(table[block], state, _SAME):
                what = f"after {count} tokens of sequence {sequence}" if count else "before any token"
                where = "" if n == number else f" in {layer.type} {n}"
                return f"the state in block {block} is the state {what}{where}{at}"
    return f"the state in block {block} is that of no token{at}"


def _states(scene: Scene, prompt: np.ndarray, shape: tuple[int, ...], layer: Layer) -> list[list[np.ndarray]]:
    """Return the states of all layers of a type before a prompt and after each of its tokens, as rows of the tables."""
    model, every = scene.stateful.model.model, scene.stateful.states(prompt)
    swaps = "Delta" in layer.type  # its table has the two last dims in the other order
    reads = (model.layers[id] for id in model.order if model.layers[id].type == "ReadValue")
    found: list[list[np.ndarray]] = []
    for name in (layer.attributes["variable_id"] for layer in reads):
        first, last = every[0][name].shape[1:], every[-1][name].shape[1:]
        if first == last == ((shape[0], shape[2], shape[1]) if swaps else shape):
            found.append([state[name][0].swapaxes(1, 2) if swaps else state[name][0] for state in every])
    return found
