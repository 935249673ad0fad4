"""Find attributes, shapes and contents that an operation accepts, with nothing but its declaration.

A draft of a layer is put before the shape rule of its operation. The rule checks one condition after the other; the
conditions that hold are counted, and the message of the one that fails names ports, attributes and numbers. The draft
is changed there, and kept if as many conditions hold as before: a climb from condition to condition.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from irrun.diagnostics import IrrunError, Refused
from irrun.growing.author import Author, Hint
from irrun.growing.drafts import MAX_ELEMENTS, Draft, Port, Unparsable, add_host, failure, name_of
from irrun.growing.habits import usual_types, written
from irrun.inference.layer import infer
from irrun.opdef import Op, Site
from irrun.types import ELEMENT_TYPES, UnknownDimError, type_set

__all__ = ["Solver"]

_MAX_DRAFTS: Final = 12000
"""The most drafts of the first layer of an operation. Most operations take fewer than a hundred."""
_MAX_DRAFTS_AGAIN: Final = 300
"""The most drafts of a layer from nothing if a solution of its operation is known."""
_MAX_DRAFTS_NEAR: Final = 30
"""The most drafts of a climb that starts near a solution. Four of five such climbs take fewer."""
_MAX_HOST_DRAFTS: Final = 60
"""The most drafts of a layer that shall read a tensor of the graph."""
_MAX_HOST_FAILURES: Final = 2
"""After so many climbs in vain, an operation reads no tensors of an element type and rank any more."""
_MAX_DRAFTS_STUCK: Final = 1500
"""The number of drafts without progress after which the climb starts again."""
_MAX_REMEMBERED: Final = 6
"""The number of solutions that are kept of each operation, from which later climbs start."""
_SOLVED: Final = float("inf")
"""The score of a solution."""
_RUNS: Final = 1e6
"""The score of a draft that the shape rule accepts and the kernel refuses."""
_TOO_LARGE: Final = 1e5
"""The score of a draft whose outputs have too many elements."""


class _Probe(Site):
    """A layer that counts the conditions that hold."""

    def __init__(self, outputs: int, declared: tuple[Any, ...]) -> None:
        super().__init__(outputs, declared, "layer")
        object.__setattr__(self, "passed", 0)

    def require(self, condition: Any, *arguments: Any, **more: Any) -> None:
        if not condition:
            self.refuse(*arguments, **more)
        object.__setattr__(self, "passed", self.passed + 1)  # pyright: ignore[reportAttributeAccessIssue]


class Solver:
    """Solves one operation after the other, and remembers solutions."""

    def __init__(self, rng: random.Random) -> None:
        self.author = Author(rng)
        self.known: defaultdict[str, list[Draft]] = defaultdict(list)
        """Solutions, by the version of the operation: usual ones, from which all climbs start."""
        self.tried = 0
        """The drafts that were put before a shape rule."""
        self._unhosted: Counter[tuple[str, str, int]] = Counter()
        """The number of climbs in vain, by the operation and by the element type and rank of its first input."""

    @property
    def rng(self) -> random.Random:
        return self.author.rng

    @rng.setter
    def rng(self, rng: random.Random) -> None:
        self.author.rng = rng

    def solve(self, cls: type[Op], host: Port | None = None, *, usual: bool = True) -> Draft | None:
        """Return a layer that the operation accepts, or None if none was found.

        ``host`` is its first input, if the layer is to read a tensor that is there already. A ``usual`` layer is as
        networks have it; others have any element types, and leave attributes out.
        """
        self.author.usual = usual
        found = self._solve(cls, host)
        if found is None or not usual:
            return found
        neat = written(found)
        return neat if self._score(neat)[0] == _SOLVED else found

    def _solve(self, cls: type[Op], host: Port | None) -> Draft | None:
        name = name_of(cls)
        memory = self.known[name]
        place = (name, "", 0)
        if host is not None:
            place = (name, host.type, len(host.shape))
            reads = host.type in usual_types(cls, cls.inputs[0].type) if self.author.usual else _reads(cls, host.type)
            if self._unhosted[place] >= _MAX_HOST_FAILURES or not reads:
                return None
        for draft, steps in self._starts(cls, host, memory):
            if not steps:
                return draft
            found = self._climb(draft, host, steps)
            if found is not None:
                break
        else:
            self._unhosted[place] += host is not None
            return None
        if host is not None:
            self._unhosted[place] = -_MAX_REMEMBERED  # what was solved once is worth more climbs
        if not self.author.usual or any(0 in port.shape for port in found.ports):
            return found
        if len(memory) < _MAX_REMEMBERED:
            memory.append(found.copy())
        elif self.rng.random() < 0.05:
            memory[self.rng.randrange(_MAX_REMEMBERED)] = found.copy()
        return found

    def _starts(self, cls: type[Op], host: Port | None, memory: Sequence[Draft]) -> Iterator[tuple[Draft, int]]:
        """Yield where to start one climb after the other, each with the most drafts that it may take.

        A start with no drafts is a solution.
        """
        rng = self.rng
        if not memory:
            yield self.author.write(cls, host), _MAX_DRAFTS if host is None else _MAX_HOST_DRAFTS
            return
        if rng.random() < 0.03:
            yield self.author.write(cls, host), _MAX_DRAFTS_AGAIN if host is None else _MAX_HOST_DRAFTS
        for changes in (rng.choice((0, 1, 1, 2, 4)), 1):
            draft = add_host(rng.choice(memory).copy(), host)
            for _ in range(changes):
                self.author.change(draft, Hint())
            if host is not None:
                yield draft, _MAX_HOST_DRAFTS
                return
            yield draft, _MAX_DRAFTS_NEAR if changes else 0
        yield rng.choice(memory).copy(), 0

    def _climb(self, draft: Draft, host: Port | None, steps: int) -> Draft | None:
        score, hint = self._score(draft)
        best, stuck = score, 0
        for _ in range(steps):
            if score == _SOLVED:
                return draft
            stuck += 1
            if stuck > _MAX_DRAFTS_STUCK:
                draft, best, stuck = self.author.write(draft.cls, host), -1.0, 0
                score, hint = self._score(draft)
                continue
            new = draft.copy()
            for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
                self.author.change(new, hint)
            found = self._score(new)
            if found[0] >= score or self.rng.random() < 0.01:
                draft, (score, hint) = new, found
            if score > best:
                best, stuck = score, 0
        return draft if score == _SOLVED else None

    def _score(self, draft: Draft) -> tuple[float, Hint]:
        """Return how many conditions a draft fulfils, and what the message of the next one mentions."""
        self.tried += 1
        probe = _Probe(draft.outputs, tuple([None] * draft.outputs))
        needed = dict.fromkeys(draft.cls.needs)
        try:
            outputs = infer(draft.op(), probe, [port.value() for port in draft.ports], needed, contents=False)
        except Unparsable as unparsable:
            return -1, Hint(frozenset([str(unparsable)]))
        except Refused as refused:
            return _passed(probe), Hint.of(str(refused))
        except (UnknownDimError, IrrunError, MemoryError):
            return _passed(probe), Hint()
        draft.outputs = len(outputs)
        sizes = [value.shape.count().lo for value in outputs]
        if any(size > MAX_ELEMENTS for size in sizes):
            return _TOO_LARGE, Hint()
        if fault := failure(draft):
            return _RUNS, Hint.of(fault, contents=True)
        return _SOLVED, Hint()


def _passed(probe: _Probe) -> float:
    return float(probe.passed)  # pyright: ignore[reportAttributeAccessIssue]


@cache
def _reads(cls: type[Op], type: str) -> bool:
    """Return whether the first input of an operation may have an element type."""
    port = cls.inputs[0]
    return ELEMENT_TYPES[type] in type_set(cls.types.get(port.type, port.type))
