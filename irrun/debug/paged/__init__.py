"""Compare a stateful model with its paged form, under the schedules of a server.

OpenVINO rewrites a stateful model to paged attention before a server runs it. Both forms must give the same logits for
a token, whichever blocks hold its sequence, and in whichever call it is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from irrun.api import compile as compiled
from irrun.diagnostics import FeedError, diagnostic
from irrun.model import Layer, Model
from irrun.running.executor import Executable

__all__ = ["Fault", "Schedule", "Serving", "serving"]

_PAGED: Final = "PagedAttentionExtension"
_TABLES: Final = ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins")

Piece = tuple[int, int, int]
"""New tokens of a call: the number of their sequence, and the first and the last position, exclusive."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The first token whose logits differ: its place, and the first layer whose values differ for it."""

    call: int
    sequence: int
    position: int
    block: int
    slot: int
    difference: float
    layer: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """The result of one schedule: the largest difference of a logit, and the first fault if one is too large."""

    name: str
    calls: int
    tokens: int
    difference: float
    fault: Fault | None


@dataclass(frozen=True, slots=True)
class Serving:
    """The results of all schedules. ``allowed`` is the largest difference that is no fault."""

    stateful: str
    paged: str
    allowed: float
    schedules: tuple[Schedule, ...]

    @property
    def agrees(self) -> bool:
        return all(schedule.fault is None for schedule in self.schedules)

    def record(self) -> dict[str, Any]:
        """Return the results as a dict for JSON."""
        return {**asdict(self), "agrees": self.agrees}


@dataclass(frozen=True, slots=True)
class _Plan:
    """The calls of a schedule, and the blocks of each sequence. ``done`` tokens of a sequence are another's prefix."""

    name: str
    calls: Sequence[Sequence[Piece]]
    tables: Sequence[Sequence[int]]


def serving(stateful: str, paged: str, *, tokens: int = 70, slots: int = 32, seed: int = 0) -> Serving:
    """Run two models on two random prompts under each schedule, and return how far their logits are apart.

    ``stateful`` is a decoder with variables, ``paged`` the same decoder with PagedAttentionExtension. ``tokens`` is the
    length of a prompt, at least two more than ``slots``, the tokens of a block. Both prompts begin with the same block.
    Raises FeedError (IR601) if one of the models has other inputs, and the errors of a run.
    """
    reference, candidate = compiled(stateful), compiled(paged)
    _require(candidate.model, {"input_ids", *_TABLES})
    _require(reference.model, {"input_ids"})
    if not any(layer.type == _PAGED for layer in candidate.model.layers.values()):
        raise _unfit(candidate.model, f"the model has no layer {_PAGED}")
    prompts = _prompts(reference, tokens, slots, seed)
    expected = [_stateful(reference, prompt) for prompt in prompts]
    caches = _caches(reference, candidate, slots, 2 * -(-tokens // slots) + 3)
    allowed = _RELATIVE * max(float(np.abs(logits).max()) for logits in expected)
    both = _Both(reference, candidate, prompts, expected, caches, slots, allowed)
    return Serving(stateful, paged, allowed, tuple(both.run(plan) for plan in _plans(tokens, slots)))


_RELATIVE: Final = 1e-4
"""The largest difference of a logit that is no fault, as a part of the largest logit."""


def _plans(tokens: int, slots: int) -> Iterator[_Plan]:
    """Yield the schedules: prompts whole, in other blocks, in pieces, in calls of both, with a shared prefix."""
    count = -(-tokens // slots)
    last = tokens - 2
    decode = [(last, last + 1), (last + 1, tokens)]
    in_order = [list(range(count)), list(range(count, 2 * count))]
    mixed = [[(7 * n + 3) % (2 * count + 3) for n in table] for table in in_order]
    if len({block for table in mixed for block in table}) < 2 * count:  # 7 divides the number of blocks
        mixed = [table[::-1] for table in in_order[::-1]]
    whole = [[(s, 0, last)] for s in (0, 1)] + [[(s, *piece)] for piece in decode for s in (0, 1)]
    yield _Plan("whole prompts", whole, in_order)
    yield _Plan("permuted blocks", whole, mixed)
    cuts = [0, 1, slots - 1, slots, slots + 2, last]
    pieces = [(begin, end) for begin, end in pairwise(cuts) if begin < end] + decode
    yield _Plan("pieces", [[(s, *piece)] for s in (0, 1) for piece in pieces], mixed)
    apart = [[(0, *pieces[0])], *([(1, *b), (0, *a)] for a, b in zip(pieces[1:], pieces)), [(1, *pieces[-1])]]
    yield _Plan("interleaved", apart, mixed)
    shared = [mixed[0], [mixed[0][0], *mixed[1][1:]]]
    yield _Plan("shared prefix", [[(0, 0, last)], [(1, slots, last), (0, *decode[0])], [(1, *decode[0])]], shared)


class _Both:
    """Both models, with their prompts and the logits that the stateful one gives for each."""

    def __init__(
        self,
        reference: Executable,
        candidate: Executable,
        prompts: Sequence[np.ndarray],
        expected: Sequence[np.ndarray],
        caches: dict[str, np.ndarray],
        slots: int,
        allowed: float,
    ) -> None:
        self.reference, self.candidate, self.prompts, self.expected = reference, candidate, prompts, expected
        self.caches, self.slots, self.allowed = caches, slots, allowed

    def run(self, plan: _Plan) -> Schedule:
        """Run the calls of a schedule up to the first fault."""
        worst, tokens, passed = 0.0, 0, self.caches
        for number, call in enumerate(plan.calls):
            logits = self._rows(self.candidate(self._feeds(plan, call) | passed)[0], call)
            passed = {}
            for (sequence, begin, end), rows in zip(call, logits):
                differences = np.abs(rows - self.expected[sequence][begin:end]).max(-1)
                worst, tokens = max(worst, float(differences.max())), tokens + end - begin
                wrong = np.flatnonzero(~(differences <= self.allowed))
                if wrong.size:
                    position = begin + int(wrong[0])
                    fault = self._fault(plan, number, sequence, position, float(differences[wrong[0]]))
                    return Schedule(plan.name, number + 1, tokens, worst, fault)
        return Schedule(plan.name, len(plan.calls), tokens, worst, None)

    def _rows(self, array: np.ndarray, call: Sequence[Piece]) -> list[np.ndarray]:
        """Return the rows of the new tokens of each piece of a call: [tokens, …] as [tokens, n]."""
        ends = np.cumsum([end - begin for _, begin, end in call])
        return np.split(array.reshape(ends[-1], -1), ends[:-1])

    def _feeds(self, plan: _Plan, call: Sequence[Piece]) -> dict[str, Any]:
        """Return the inputs of a call, without the caches."""
        counts = [end - begin for _, begin, end in call]
        tables = [plan.tables[sequence] for sequence, _, _ in call]
        inputs = {
            "input_ids": np.concatenate([self.prompts[s][begin:end] for s, begin, end in call]),
            "position_ids": np.concatenate([np.arange(begin, end) for _, begin, end in call]),
            "max_context_len": np.array(max(end for _, _, end in call), np.int32),
            "past_lens": np.array([begin for _, begin, _ in call], np.int32),
            "subsequence_begins": np.cumsum([0, *counts], dtype=np.int32),
            "block_indices": np.concatenate([np.array(table, np.int32) for table in tables]),
            "block_indices_begins": np.cumsum([0, *map(len, tables)], dtype=np.int32),
        }
        return {name: array for name, array in inputs.items() if name in _names(self.candidate.model)}

    def _fault(self, plan: _Plan, number: int, sequence: int, position: int, difference: float) -> Fault:
        """Return the fault of a token, with the first layer that differs: run all calls again, and look inside."""
        block, slot = divmod(position, self.slots)
        layer = self._layer(plan, number, sequence, position)
        source = self.candidate.model.source
        return Fault(
            number,
            sequence,
            position,
            plan.tables[sequence][block],
            slot,
            difference,
            None if layer is None else layer.name,
            None if layer is None else source.line_of(layer.node),
        )

    def _layer(self, plan: _Plan, number: int, sequence: int, position: int) -> Layer | None:
        """Return the first layer of the paged model whose value for a token is not that of the stateful model."""
        model, named = self.candidate.model, {layer.name for layer in self.reference.model.layers.values()}
        layers = [
            model.layers[id] for id in model.order if model.layers[id].name in named or model.layers[id].type == _PAGED
        ]
        names = [layer.name for layer in layers if layer.name in named]
        inner = _stateful_taps(self.reference, self.prompts[sequence][: position + 1], names)
        passed = self.caches
        for call in plan.calls[:number]:
            self.candidate(self._feeds(plan, call) | passed)
            passed = {}
        call = plan.calls[number]
        taps = self.candidate(self._feeds(plan, call) | passed, taps=names).taps
        place = next(n for n, piece in enumerate(call) if piece[0] == sequence)
        row = sum(end - begin for _, begin, end in call[:place]) + position - call[place][1]
        total = sum(end - begin for _, begin, end in call)
        suspect: Layer | None = None
        for layer in layers:
            if layer.type == _PAGED:
                suspect = layer
                continue
            mine, theirs = taps.get(layer.name), inner.get(layer.name)
            if mine is None or theirs is None or mine.dtype.kind != "f" or not mine.ndim or mine.shape[0] != total:
                continue
            if theirs.ndim < 2 or theirs.shape[:2] != (1, position + 1) or theirs[0, -1].size != mine[row].size:
                continue
            expected = theirs[0, -1].ravel()
            allowed = _RELATIVE * max(np.abs(expected).max(initial=0), 1e-6)
            if not np.abs(mine[row].ravel() - expected).max(initial=0) <= allowed:
                return suspect or layer
            suspect = None
        return None


def _stateful(model: Executable, prompt: np.ndarray) -> np.ndarray:
    """Return the logits [tokens, vocabulary] of a prompt in one call of the stateful model."""
    model.reset_state()
    return model(_prompt_feeds(model, prompt))[0].reshape(len(prompt), -1)


def _stateful_taps(model: Executable, prompt: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the values of layers in one call of the stateful model, by name."""
    model.reset_state()
    return dict(model(_prompt_feeds(model, prompt), taps=names).taps)


def _prompt_feeds(model: Executable, prompt: np.ndarray) -> dict[str, np.ndarray]:
    inputs = {
        "input_ids": prompt[None],
        "attention_mask": np.ones((1, len(prompt)), np.int64),
        "position_ids": np.arange(len(prompt))[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    return {name: array for name, array in inputs.items() if name in _names(model.model)}


def _prompts(model: Executable, tokens: int, slots: int, seed: int) -> list[np.ndarray]:
    """Return two random prompts whose first ``slots`` tokens are the same."""
    shape = model.outputs[0].shape
    vocabulary = (shape[-1].value if shape and shape.rank else None) or 2  # each vocabulary has two tokens
    first, second = np.random.default_rng(seed).integers(0, vocabulary, (2, tokens))
    second[:slots] = first[:slots]
    return [first, second]


def _caches(reference: Executable, candidate: Executable, slots: int, blocks: int) -> dict[str, np.ndarray]:
    """Return caches of zeros for the paged model, whose file leaves their shapes open.

    The variables of the stateful model, [1, heads, tokens, width], say how the width of a key divides into heads.
    """
    held = [array.shape for array in reference.state.values() if array.ndim == 4]
    shapes = {heads * width: (heads, width) for _, heads, _, width in held}
    model, values = candidate.model, candidate.plan.values
    caches: dict[str, np.ndarray] = {}
    for layer in model.layers.values():
        if layer.type != _PAGED:
            continue
        feeds = model.feeds[layer.id]
        for rows, cache in ((1, 3), (2, 4)):
            source, feed = feeds[cache], feeds[rows]
            shape = None if feed is None else values[feed].shape
            size = shapes.get(shape[1].value or 0) if shape and shape.rank == 2 else None
            if source is None or size is None:
                raise _unfit(model, f'no variable of the stateful model has the width of the caches of "{layer.name}"')
            caches[model.layers[source[0]].name] = np.zeros((blocks, size[0], slots, size[1]), np.float32)
    return caches


def _names(model: Model) -> set[str]:
    return {name for parameter in model.parameters for name in model.input_names(parameter)}


def _require(model: Model, names: set[str]) -> None:
    """Raise FeedError (IR601) if a model lacks one of these inputs."""
    if missing := sorted(names - _names(model)):
        raise _unfit(model, f"the model has no input {', '.join(missing)}")


def _unfit(model: Model, message: str) -> FeedError:
    help = "pass a stateful decoder, and the same decoder after openvino's paged_attention_transformation"
    return FeedError(diagnostic("IR601", message, file=model.source.path, help=help))
