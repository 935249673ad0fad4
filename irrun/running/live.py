"""The bound of a run: count the bytes that are live, and stop a run that takes too many."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.model import Layer, Model
from irrun.planning.failures import too_much_memory
from irrun.planning.steps import Plan
from irrun.running.liveness import Peak, held_bytes, peak_of, root_of, works
from irrun.running.pool import Pool, lent_size

__all__ = ["Limits", "Live", "default_max_memory"]


def default_max_memory() -> int:
    """Return three quarters of the machine's memory in bytes, or 2 GiB where its size is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, ValueError, OSError):  # Windows, the browser
        return 2 << 30


@dataclass(frozen=True, slots=True)
class _Needs:
    """The memory that a plan needs: the bytes of its constants, its peak if that is known, and where constants are."""

    plan: Plan
    held: int
    peak: Peak | None
    constants: frozenset[int]
    """The ``id`` of the root of each constant."""
    works: bool
    """Whether an operation declares memory that it works in (``Op.working``)."""


class Limits:
    """The limit of all runs of a model, and what each of its plans needs."""

    def __init__(self, max_memory: int, pool: Pool) -> None:
        self.max_memory = max_memory
        self.pool = pool
        self._needs: dict[int, _Needs] = {}  # by id() of the plan

    def needs(self, plan: Plan) -> _Needs:
        """Return what a plan needs. It is computed once for each plan."""
        needs = self._needs.get(id(plan))
        if needs is None:
            constants = frozenset(id(root_of(array)) for array in plan.constants.values())
            peak = peak_of(plan, inputs=False)
            needs = _Needs(plan, held_bytes(plan), peak, constants, works=any(map(works, plan.steps)))
            self._needs[id(plan)] = needs
        return needs


class Live:
    """The bytes that are live in one run.

    If all shapes of a plan are known, its peak is compared with the limit before its first step. Otherwise the arrays
    are counted as steps return them. Freed arrays are subtracted lazily: when ``room`` runs out or the list grows long.
    Not counted are the inputs and the .bin, and views of them.
    """

    def __init__(self, limits: Limits, plan: Plan, others: int) -> None:
        """Prepare a run of ``plan``. ``others`` are bytes that are live throughout, beside those of its constants."""
        self.limits = limits
        self.held = limits.needs(plan).held + others
        self.pending = 0  # bytes that loops need in addition when they concatenate the pieces that they hold
        self._most, self._pool = limits.max_memory, limits.pool
        self._known: set[int] = set()  # id() of the roots that are not counted
        self._begun: set[int] = set()
        self._counted: list[tuple[weakref.ref[np.ndarray], int]] = []  # roots and their bytes
        self._longest = _LONGEST
        self.room = self._most - self.held - self._pool.retained
        """Bytes that are within the limit without another look at what is live."""

    def know(self, arrays: Iterable[np.ndarray]) -> None:
        """Do not count these arrays, nor views of them. They must live as long as the run."""
        self._known.update(id(root_of(array)) for array in arrays)

    def knows(self, array: np.ndarray) -> bool:
        """Return whether an array is not counted, as a constant or what ``know`` was told of."""
        return id(root_of(array)) in self._known

    def begin(self, plan: Plan) -> tuple[bool, bool]:
        """Return whether the arrays of a plan must be counted, because its peak is not known, and ``Op.working`` too.

        Raises ExecutionError (IR604) if the peak exceeds the limit.
        """
        needs = self.limits.needs(plan)
        if id(plan) not in self._begun:
            self._begun.add(id(plan))
            self._known |= needs.constants
        peak = needs.peak or Peak(0, None)
        self.require(plan.model, peak.layer, peak.bytes)
        return needs.peak is None, needs.works

    def require(self, model: Model, layer: Layer | None, size: int) -> None:
        """Raise ExecutionError (IR604) if ``size`` more bytes, at ``layer``, exceed the limit.

        Memory that the pool retains from other runs is released first.
        """
        if size <= self.room:
            return
        total = self.held + self.pending + self._count_again() + size
        if total > self._most:
            raise too_much_memory(model, layer, self.held, total - self.held, self._most)
        if size > self.room:
            self.room += self._pool.retained
            self._pool.trim()

    def pend(self, size: int) -> None:
        """Count ``size`` bytes, or discount ``-size``, that a loop will need when it concatenates its pieces."""
        self.pending += size
        self.room -= size

    def add(
        self, model: Model, layer: Layer, arrays: Iterable[np.ndarray | None], working: int = 0, least: int = 0
    ) -> None:
        """Count arrays that ``layer`` has returned. Raises ExecutionError (IR604) if they exceed the limit.

        ``working`` bytes (see ``Op.working``) belong to the first array. Arrays of less than ``least`` bytes are left
        out.
        """
        for array in arrays:
            if not isinstance(array, np.ndarray) or array.nbytes < least:
                continue
            root = array if array.base is None else root_of(array)
            if id(root) not in self._known:
                size = (root.nbytes if root.base is None else lent_size(root.nbytes)) + working
                self._counted.append((weakref.ref(root), size))
                self.room -= size
                working = 0
        if len(self._counted) > self._longest:
            self._count_again()
        if self.room < 0:
            self.require(model, layer, 0)

    def _count_again(self) -> int:
        """Return the bytes of the arrays that are still referenced, each counted once, and forget the others."""
        living: dict[int, tuple[weakref.ref[np.ndarray], int]] = {}
        for reference, size in self._counted:
            root = reference()
            if root is not None:
                living.setdefault(id(root), (reference, size))
        self._counted = list(living.values())
        self._longest = _LONGEST + 2 * len(self._counted)
        total = sum(size for _, size in self._counted)
        self.room = self._most - self.held - self.pending - total - self._pool.retained
        return total


_LONGEST: Final = 1 << 12
"""The most arrays that are counted, beside twice those that are live, before the freed ones are removed."""
