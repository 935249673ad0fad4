"""The disagreements with OpenVINO that are explained: by a departure (``irrun.departures``), or by a reason.

A layer is described in one line (``described``): the kind of the disagreement, the operation with its inputs and
attributes, and what the engine gave or said. Departures and reasons have patterns of such lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from irrun.departures import Departure, departures
from irrun.fuzz.judging import Disagreement
from irrun.fuzz.reasons import FIRST, LAST, Reason
from irrun.growing.graphs import Graph

__all__ = ["CONDITIONS", "NOT_REPEATED", "Explanation", "described", "explained", "explanations", "ordered"]

NOT_REPEATED: Final = "a crash that a new process does not repeat"
"""The explanation of a crash after memory was written by an earlier model."""
_MAX_SHOWN_ELEMENTS: Final = 12
"""The most elements of a constant that a description shows."""
_MAX_ELEMENTS_IN_FULL: Final = 100
"""The most elements of an input of the operations in ``_IN_FULL``."""
_IN_FULL: Final = ("ExperimentalDetectronGenerateProposalsSingleImage",)
"""Operations of whose inputs a description shows floats, too, and more elements: explanations look at them."""


# ---------------------------------------------------------------------------------------------
# conditions


def _below_one_pixel(match: re.Match[str]) -> bool:
    """Return whether the height or the width in the first group is below 1, as far as they are shown."""
    return match[1] is None or min(_numbers(match[1])[:2]) < 1


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(", ") if number]


CONDITIONS: Final[Mapping[str, Callable[[re.Match[str]], bool]]] = {
    "below_one_pixel": _below_one_pixel,
}
"""The conditions on what the groups of a pattern hold, by the names under which patterns ask for them."""


# ---------------------------------------------------------------------------------------------
# explanations


@dataclass(frozen=True)
class Explanation:
    """The name of a departure or a reason, which has spaces, and a pattern of the descriptions that it explains.

    ``where`` names a condition on the groups of the pattern, or is empty.
    """

    name: str
    pattern: str
    where: str = ""

    def explains(self, line: str) -> bool:
        """Return whether a description has the pattern, and its groups meet the condition."""
        match = re.search(self.pattern, line)
        return match is not None and (not self.where or CONDITIONS[self.where](match))


@cache
def explanations() -> tuple[Explanation, ...]:
    """Return all explanations in the order in which they are tried: reasons and departures as ``ordered`` has them."""
    return tuple(ordered(departures()))


def ordered(
    known: Sequence[Departure], first: Sequence[Reason] = FIRST, last: Sequence[Reason] = LAST
) -> Iterator[Explanation]:
    """Yield the explanations of the first reasons, of departures by name, of general departures, and of the last
    reasons. A departure comes before those that it names in ``before``."""
    groups = [
        *((reason.name, [Explanation(*reason)]) for reason in first),
        *((d.name, [Explanation(d.name, p.pattern, p.where) for p in d.recognised])
          for d in sorted(known, key=lambda d: (d.general, d.name))),
        *((reason.name, [Explanation(*reason)]) for reason in last),
    ]  # fmt: skip
    earlier: dict[str, list[int]] = {}
    numbers = {name: number for number, (name, _) in enumerate(groups)}
    for departure in known:
        for name in departure.before:
            earlier.setdefault(name, []).append(numbers[departure.name])
    done: set[int] = set()

    def place(number: int) -> Iterator[Explanation]:
        if number not in done:
            done.add(number)
            name, found = groups[number]
            for other in sorted(earlier.get(name, ())):
                yield from place(other)
            yield from found

    for number in range(len(groups)):
        yield from place(number)


def explained(line: str) -> str:
    """Return the name of the first explanation of a description, or an empty text."""
    return next((explanation.name for explanation in explanations() if explanation.explains(line)), "")


# ---------------------------------------------------------------------------------------------
# descriptions


def described(graph: Graph, disagreement: Disagreement) -> str:
    """Return a line about a graph: ``values Add-1 (p:u8[2], c:u8[]=[7]) {} static | output 0 has 255 at [0], not 1``.

    ``p`` is a parameter, ``c`` a constant. ``nonfinite`` follows if inputs hold NaN or infinities, and ``empty`` if
    one has no elements.
    """
    parts = [*_layers(graph), "dynamic" if graph.is_dynamic() else "static"]
    arrays = [*graph.feeds(), *(node.data for node in graph.nodes if node.data is not None)]
    if any(array.dtype.kind not in "OUSTiub" and not np.isfinite(array.astype(np.float64)).all() for array in arrays):
        parts.append("nonfinite")
    if any(not array.size for array in arrays):
        parts.append("empty")
    return f"{disagreement.kind} {' '.join(parts)} | {disagreement.detail}"


def _layers(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        if node.kind in ("parameter", "constant"):
            continue
        inputs, in_full = [], node.cls is not None and node.cls.type in _IN_FULL
        for ref in node.inputs:
            source = graph.nodes[ref.node]
            if source.kind not in ("parameter", "constant"):
                inputs.append(source.label)
                continue
            text = f"{source.kind[0]}:{source.type}[{','.join(map(str, source.shape))}]"
            if source.stored is not None:
                text += f" as {source.stored.type}"
            elif source.data is not None and source.data.dtype.kind in "iub":
                if source.data.size <= (_MAX_ELEMENTS_IN_FULL if in_full else _MAX_SHOWN_ELEMENTS):
                    text += f"={source.data.ravel().tolist()}"
            elif (
                source.data is not None
                and in_full
                and source.data.ndim == 1
                and source.data.size <= _MAX_ELEMENTS_IN_FULL
            ):
                text += f"={source.data.astype(np.float64).tolist()}"
            inputs.append(text)
        attributes = ", ".join(f"{name}={text}" for name, text in node.attributes.items())
        yield f"{node.label} ({', '.join(inputs)}) {{{attributes}}} -> {node.outputs}"
