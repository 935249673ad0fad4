"""Run a stateful model and its paged form under schedules, and find the first token that differs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from irrun.api import compile as compiled
from irrun.debug.paged.calls import Plan, plans, recorded
from irrun.debug.paged.sides import ATTENTION, Paged, Stateful, replay, rows
from irrun.model import Layer

__all__ = ["Fault", "Schedule", "Serving", "serving"]

_RELATIVE: Final = 1e-4
"""The largest difference of a logit that is no fault, as a part of the largest logit."""


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


def serving(
    stateful: str, paged: str, *, tokens: int = 70, slots: int = 32, seed: int = 0, calls: str | None = None
) -> Serving:
    """Run two models under each schedule, and return how far their logits are apart.

    ``stateful`` is a decoder with variables, ``paged`` the same decoder with PagedAttentionExtension. Two random
    prompts have ``tokens`` tokens, at least two more than ``slots``, the tokens of a block. Both prompts begin with the
    same block. With ``calls``, the path of recorded calls, these calls are the only schedule. Raises FeedError (IR601)
    if one of the models has other inputs, and the errors of a run.
    """
    candidate, reference = Paged(compiled(paged)), Stateful(compiled(stateful))
    if calls is None:
        prompts = _prompts(reference.vocabulary, tokens, slots, seed)
        chosen = list(plans(prompts, slots, evicts=reference.masks and candidate.evicts))
    else:
        chosen = [recorded(calls)]
    longest = max((prompt for plan in chosen for prompt in plan.prompts), key=len)
    reference.run(longest)
    tables = [call.inputs[name] for plan in chosen for call in plan.calls for name in _TABLES if name in call.inputs]
    blocks = 1 + max(int(table.max(initial=0)) for table in tables)
    caches = candidate.caches(reference, len(longest), slots, blocks)
    both = _Both(reference, candidate, caches, slots)
    return Serving(stateful, paged, both.allowed(chosen[0]), tuple(both.run(plan) for plan in chosen))


_TABLES: Final = ("block_indices", "la.block_indices")
"""The inputs that name blocks of the caches."""


def _prompts(vocabulary: int, tokens: int, slots: int, seed: int) -> list[np.ndarray]:
    """Return two random prompts whose first ``slots`` tokens are the same."""
    first, second = np.random.default_rng(seed).integers(0, vocabulary, (2, tokens))
    second[:slots] = first[:slots]
    return [first, second]


class _Both:
    """Both models, and the caches before the first call."""

    def __init__(self, stateful: Stateful, paged: Paged, caches: dict[str, np.ndarray], slots: int) -> None:
        self.stateful, self.paged, self.caches, self.slots = stateful, paged, caches, slots

    def allowed(self, plan: Plan) -> float:
        """Return the largest difference of a logit that is no fault."""
        pieces = [(plan.prompts[piece.sequence], piece) for call in plan.calls for piece in call.pieces]
        return _RELATIVE * max(float(np.abs(self.stateful.logits(*piece)).max()) for piece in pieces)

    def run(self, plan: Plan) -> Schedule:
        """Run the calls of a schedule up to the first fault."""
        worst, tokens, passed, allowed = 0.0, 0, self.caches, self.allowed(plan)
        for number, call in enumerate(plan.calls):
            logits = rows(self.paged.run(call, passed)[0], call)
            passed = {}
            for piece, found in zip(call.pieces, logits):
                expected = self.stateful.logits(plan.prompts[piece.sequence], piece)
                differences = np.abs(found - expected).max(-1)
                worst, tokens = max(worst, float(differences.max())), tokens + piece.end - piece.begin
                wrong = np.flatnonzero(~(differences <= allowed))
                if wrong.size:
                    position = piece.begin + int(wrong[0])
                    fault = self._fault(plan, number, call.pieces.index(piece), position, float(differences[wrong[0]]))
                    return Schedule(plan.name, number + 1, tokens, worst, fault)
        return Schedule(plan.name, len(plan.calls), tokens, worst, None)

    def _fault(self, plan: Plan, number: int, piece: int, position: int, difference: float) -> Fault:
        """Return the fault of a token, with the first layer that differs: run all calls again, and look inside."""
        call = plan.calls[number]
        sequence = call.pieces[piece].sequence
        layer = self._layer(plan, number, piece, position)
        place = call.place(piece, position, self.slots)
        line = None if layer is None else self.paged.model.model.source.line_of(layer.node)
        return Fault(number, sequence, position, *place, difference, None if layer is None else layer.name, line)

    def _layer(self, plan: Plan, number: int, piece: int, position: int) -> Layer | None:
        """Return the first layer of the paged model whose value for a token is not that of the stateful model."""
        model, named = self.paged.model.model, {layer.name for layer in self.stateful.model.model.layers.values()}
        ordered = [model.layers[id] for id in model.order]
        layers = [layer for layer in ordered if layer.name in named or layer.type == ATTENTION]
        names = [layer.name for layer in layers if layer.name in named]
        call = plan.calls[number]
        prompt = plan.prompts[call.pieces[piece].sequence]
        inner = self.stateful.run(prompt[: position + 1], names)
        passed = replay(self.paged, plan.calls[:number], self.caches)
        taps = self.paged.run(call, passed, names).taps
        row = sum(p.end - p.begin for p in call.pieces[:piece]) + position - call.pieces[piece].begin
        total = sum(p.end - p.begin for p in call.pieces)
        suspect: Layer | None = None
        for layer in layers:
            if layer.type == ATTENTION:
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
