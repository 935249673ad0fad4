"""Run a stateful model and its paged form under schedules, and find the first token that differs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from irrun.api import compile as compiled
from irrun.debug.difference.content import Content
from irrun.debug.paged.calls import EVICTED, RECORDED, Call, Plan, plans, recorded
from irrun.debug.paged.causes import cause
from irrun.debug.paged.content import differing_constants
from irrun.debug.paged.inputs import wrong_input
from irrun.debug.paged.proof import Correction, allowed
from irrun.debug.paged.scene import Scene
from irrun.debug.paged.sides import ATTENTION, Paged, Stateful, not_evictable, replay, rows, too_short
from irrun.debug.paged.wires import wrong_wires
from irrun.diagnostics import Diagnostic, IrrunError

__all__ = ["Fault", "Schedule", "Serving", "serving"]


@dataclass(frozen=True, slots=True)
class Fault:
    """The first token whose logits differ: its place, the first layer whose values differ for it, and why.

    Layer and cause are known for the first schedule with a fault alone.
    """

    call: int
    sequence: int
    position: int
    block: int
    slot: int
    difference: float
    layer: str | None
    line: int | None
    cause: str | None
    """What is wrong with the inputs or with the layer, if an explanation fits all values."""


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
    """The results of all schedules.

    ``content`` says in which constants the files differ, if all tokens agree nevertheless.

    ``allowed`` is the largest difference of a logit that is no fault: ``proof.RELATIVE`` times the largest absolute
    logit of the stateful model for a token of the schedules. ``omitted`` says which schedules were not run, and why.
    """

    stateful: str
    paged: str
    allowed: float
    schedules: tuple[Schedule, ...]
    omitted: Mapping[str, str]
    content: Content | None = None

    @property
    def agrees(self) -> bool:
        return all(schedule.fault is None for schedule in self.schedules)

    def record(self) -> dict[str, Any]:
        """Return the results as a dict for JSON."""
        return {**_finite(asdict(self)), "agrees": self.agrees}


def _finite(value: Any) -> Any:
    """Return a record with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    omitted: dict[str, str] = {}
    if calls is None:
        prompts, reason = (
            _prompts(reference.vocabulary, tokens, slots, seed),
            not_evictable(reference, candidate, tokens, slots),
        )
        chosen = list(plans(prompts, slots, evicts=reason is None))
        omitted = {} if reason is None else {EVICTED: reason}
        if windowed := too_short(candidate, tokens):
            omitted["sliding window"] = windowed
    else:
        chosen = [recorded(calls)]
    longest = max((prompt for plan in chosen for prompt in plan.prompts), key=len)
    reference.run(longest)
    tables = [call.inputs[name] for plan in chosen for call in plan.calls for name in _TABLES if name in call.inputs]
    blocks = 1 + max(int(table.max(initial=0)) for table in tables)
    caches = candidate.caches(reference, len(longest), slots, blocks)
    both = _Both(reference, candidate, caches, slots, allowed(reference, chosen))
    schedules: list[Schedule] = []
    for plan in chosen:
        explains = all(schedule.fault is None for schedule in schedules)
        schedules.append(both.run(plan, explains=explains))
    agrees = all(schedule.fault is None for schedule in schedules)
    content = differing_constants(reference.model, candidate.model) if agrees else None
    return Serving(stateful, paged, both.allowed, tuple(schedules), omitted, content)


_TABLES: Final = ("block_indices", "la.block_indices")
"""The inputs that name blocks of the caches."""


def _prompts(vocabulary: int, tokens: int, slots: int, seed: int) -> list[np.ndarray]:
    """Return two random prompts whose first ``slots`` tokens are the same."""
    first, second = np.random.default_rng(seed).integers(0, vocabulary, (2, tokens))
    second[:slots] = first[:slots]
    return [first, second]


class _Both:
    """Both models, the caches before the first call, and the largest difference of a logit that is no fault."""

    def __init__(
        self, stateful: Stateful, paged: Paged, caches: dict[str, np.ndarray], slots: int, allowed: float
    ) -> None:
        self.stateful, self.paged, self.caches, self.slots, self.allowed = stateful, paged, caches, slots, allowed

    def run(self, plan: Plan, *, explains: bool) -> Schedule:
        """Run the calls of a schedule up to the first fault, whose cause is looked for if it ``explains`` faults."""
        worst, tokens, passed = 0.0, 0, self.caches
        for number, call in enumerate(plan.calls):
            try:
                logits = rows(self.paged.run(call, passed)[0], call)
            except IrrunError as error:
                if plan.name == RECORDED or not error.diagnostics or error.diagnostics[0].layer is None:
                    raise
                fault = self._refused(plan, number, error.diagnostics[0], explains=explains)
                return Schedule(plan.name, number + 1, tokens, math.nan, fault)
            passed = {}
            for piece, found in zip(call.pieces, logits):
                expected = self.stateful.logits(plan.prompts[piece.sequence], piece)
                differences = np.abs(found - expected).max(-1)
                worst, tokens = float(np.maximum(worst, differences.max())), tokens + piece.end - piece.begin
                wrong = np.flatnonzero(~(differences <= self.allowed))
                if wrong.size:
                    position = piece.begin + int(wrong[0])
                    at, size = (number, call.pieces.index(piece), position), float(differences[wrong[0]])
                    fault = self._fault(plan, at, size, explains=explains)
                    return Schedule(plan.name, number + 1, tokens, worst, fault)
        return Schedule(plan.name, len(plan.calls), tokens, worst, None)

    def _fault(self, plan: Plan, at: tuple[int, int, int], difference: float, *, explains: bool) -> Fault:
        """Return the fault of a token. Its cause takes further runs of all calls.

        ``at`` is the number of the call, that of the piece in the call, and the position of the token.
        """
        number, part, position = at
        call, layer, text = plan.calls[number], None, None
        if explains:
            wrong = wrong_input(plan, number, lambda calls: self._agrees(plan, calls, part, position))
            if wrong is not None:
                text = f"call {wrong[0]}: {wrong[1]}; corrected, the token agrees"
            elif found := cause(Scene(self.stateful, self.paged, plan, self.caches, at, self.slots, self.allowed)):
                layer, text = found.layer, found.text
        place = call.place(part, position, self.slots)
        line = None if layer is None else self.paged.model.model.source.line_of(layer.node)
        name = None if layer is None else layer.name
        return Fault(number, call.pieces[part].sequence, position, *place, difference, name, line, text)

    def _refused(self, plan: Plan, number: int, why: Diagnostic, *, explains: bool) -> Fault:
        """Return the fault of a call that the paged model refuses, though its inputs are right."""
        call = plan.calls[number]
        text = f"the layer refuses a right call: {why.message}"
        for layer in self.paged.layers(ATTENTION) if explains else ():
            wires = wrong_wires(self.paged, layer) if layer.name == why.layer else None
            if wires is not None and self._corrected(wires[1], plan):
                text = f"{wires[0]}; corrected, all tokens of the schedule agree"
        piece = call.pieces[0]
        place = call.place(0, piece.begin, self.slots)
        return Fault(number, piece.sequence, piece.begin, *place, math.nan, why.layer, why.line, text)

    def _corrected(self, correct: Correction, plan: Plan) -> bool:
        """Return whether all tokens of a schedule agree after a correction."""
        try:
            both = _Both(self.stateful, correct(self.paged), self.caches, self.slots, self.allowed)
            return both.run(plan, explains=False).fault is None
        except IrrunError:
            return False

    def _agrees(self, plan: Plan, calls: Sequence[Call], part: int, position: int) -> bool:
        """Return whether a token of the last call has the logits of the stateful model."""
        try:
            passed = replay(self.paged, calls[:-1], self.caches)
            logits = rows(self.paged.run(calls[-1], passed)[0], calls[-1])[part]
        except IrrunError:  # a correction of one input alone may contradict another one
            return False
        piece = calls[-1].pieces[part]
        expected, row = self.stateful.logits(plan.prompts[piece.sequence], piece), position - piece.begin
        return bool(np.abs(logits[row] - expected[row]).max() <= self.allowed)
