"""Search for few layers that restore the tolerances of the outputs when they are kept in full precision.

A value stays in full precision only if the layer that computes it and the layers that read it are kept. The layers are
taken in the order of their effects, each with the layers that read its value; a binary search finds how many are
needed. Then groups of layers, and at last single layers, are left out again as long as the outputs stay within their
tolerances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from irrun.debug.low_precision.losses import Loss
from irrun.debug.low_precision.outputs import Outputs
from irrun.debug.low_precision.simulation import Deployed, Style
from irrun.debug.low_precision.units import Unit
from irrun.debug.results import Layer

__all__ = ["restoring"]


def restoring(
    outputs: Outputs,
    style: Style,
    losses: Mapping[str, Loss],
    ranked: Sequence[str],
    runs: int,
    on_run: Callable[[], None],
) -> tuple[tuple[str, ...], tuple[Layer, ...], bool]:
    """Return the names of layers that restore the tolerances, in the order of a run, and the outputs with them.

    The last value says whether no single layer can be left out. ``ranked`` are the layers by effect, ``runs`` the most
    runs for leaving out layers. ``on_run`` is called before each run.
    """
    search = _Search(outputs, style, losses, on_run)
    kept = search.enough(ranked)
    kept, minimal = search.pruned(kept, ranked, runs)
    return tuple(name for name in outputs.simulation.units if name in kept), search.outputs_with(kept), minimal


class _Search:
    def __init__(self, outputs: Outputs, style: Style, losses: Mapping[str, Loss], on_run: Callable[[], None]) -> None:
        self.outputs, self.style, self.losses, self.on_run = outputs, style, losses, on_run
        self.readers = _readers(outputs.simulation.units)
        self.known: dict[frozenset[str], tuple[Layer, ...]] = {}

    def outputs_with(self, kept: frozenset[str]) -> tuple[Layer, ...]:
        """Return the outputs of the model with some layers kept."""
        if kept not in self.known:
            self.on_run()
            self.known[kept] = self.outputs.compare(Deployed(self.style, kept))
        return self.known[kept]

    def restores(self, kept: frozenset[str]) -> bool:
        """Return whether all outputs are within their tolerances with some layers kept."""
        return all(output.agrees for output in self.outputs_with(kept))

    def enough(self, ranked: Sequence[str]) -> frozenset[str]:
        """Return the first layers of the ranking that restore the tolerances, with those that read their values.

        First come the layers that overflow, and those that read values beyond the range. All layers restore them.
        """
        beyond = [name for name, loss in self.losses.items() if loss.overflows or loss.reads_beyond or loss.clamped]
        groups = [self.with_readers(beyond)] if beyond else []
        groups += [self.with_readers([name]) for name in ranked]
        low, high = 0, len(groups)  # the first ``low`` groups are too few; all of them are enough, or all layers are
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.restores(_union(groups[:middle])) else (middle, high)
        kept = _union(groups[:high])
        return kept if self.restores(kept) else frozenset(self.outputs.simulation.units)

    def with_readers(self, names: Sequence[str]) -> frozenset[str]:
        """Return layers and the layers that read their values, also through layers that only pass values on.

        int8 rounds a value where it is read, so that the readers do not matter.
        """
        if self.style.format.is_quantized:
            return self.style.together(names)
        found, waiting = set(names), list(names)
        for name in waiting:  # grows in the loop
            new = [reader for reader in self.readers.get(name, ()) if reader not in found]
            found.update(new)
            waiting += [reader for reader in new if (loss := self.losses.get(reader)) is not None and loss.passes]
        return frozenset(found)

    def pruned(self, kept: frozenset[str], ranked: Sequence[str], runs: int) -> tuple[frozenset[str], bool]:
        """Leave out layers that are not needed, the ones with the least effect first.

        Return what remains, and whether each single layer of it is needed.
        """
        position = {name: number for number, name in enumerate(ranked)}
        left = runs
        size = len(kept)
        while size and kept:
            order = sorted(kept, key=lambda name: (-position.get(name, len(position)), name))
            removed = False
            for start in range(0, len(order), size):
                group = kept & self.style.together(order[start : start + size])
                if not group:  # its layers have been left out together with others
                    continue
                if not left:
                    return kept, False
                left -= 1
                if self.restores(kept - group):
                    kept, removed = kept - group, True
            if size == 1 and not removed:
                return kept, True
            size = size if size == 1 else size // 2
        return kept, True


def _union(groups: Sequence[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*groups)


def _readers(units: Mapping[str, Unit]) -> dict[str, list[str]]:
    """Return the names of the layers that read a value of each layer."""
    readers: dict[str, list[str]] = {}
    for reader, producer in _edges(units):
        readers.setdefault(producer, []).append(reader)
    return readers


def _edges(units: Mapping[str, Unit]) -> Iterator[tuple[str, str]]:
    for unit in units.values():
        for producer in unit.producers:
            yield unit.name, producer
