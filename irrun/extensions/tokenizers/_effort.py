"""How much memory a pattern takes when it is compiled, and how many steps a search with it takes at most.

The package ``regex`` writes out the least number of repetitions: ``(?:a{100}){100}`` becomes 10,000 items of some
hundred bytes each, and counts within counts multiply.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["MOST_ITEMS", "Effort", "TooDeep", "effort"]

MOST_ITEMS: Final = 10_000
"""The items to which counts may expand a pattern, if the pattern itself has not as many characters."""
_MOST_DEPTH: Final = 250
"""The most groups within each other: the limit of PCRE2."""
_FEW: Final = 4
"""Up to this many possible counts, a repetition multiplies the steps of a search by a constant."""


class TooDeep(ValueError):  # noqa: N818  (a verdict on the pattern)
    """Groups are nested too deeply."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of a pattern, or of a part of it.

    A search through n characters takes at most about 2 ** ``bits`` * n ** (``degree`` + 1) / (``degree`` + 1)! steps.
    ``recursive`` is the text of a call that may call itself, or "".
    """

    items: float = 0
    degree: float = 0
    bits: float = 0
    recursive: str = ""

    def then(self, other: Effort) -> Effort:
        """Return the effort of this part followed by another one."""
        items, recursive = self.items + other.items, self.recursive or other.recursive
        return Effort(items, self.degree + other.degree, self.bits + other.bits, recursive)

    def otherwise(self, other: Effort) -> Effort:
        """Return the effort of two alternatives."""
        low, high = sorted((self.bits, other.bits))
        bits = high if high == math.inf else high + math.log2(1 + 2 ** (low - high))
        degree, recursive = max(self.degree, other.degree), self.recursive or other.recursive
        return Effort(self.items + other.items, degree, bits, recursive)

    def repeated(self, least: int, most: float, is_group: bool) -> Effort:
        """Return the effort of ``least`` to ``most`` repetitions."""
        items, choices = self.items * max(least, 1), most - least + 1
        if is_group and most > 1:
            few = most <= _FEW
            degree, bits = self.degree * most if few else math.inf, self.bits * most if few else math.inf
            bits += math.log2(choices) if few else 0
        else:
            is_few = choices <= _FEW
            degree, bits = self.degree + (not is_few), self.bits + (math.log2(choices) if is_few else 0)
        return Effort(items, degree, bits, self.recursive)

    def steps(self, length: int) -> float:
        """Return about how many steps a search through ``length`` characters takes at most."""
        if self.degree == math.inf:
            return math.inf
        power = self.degree + 1
        log = self.bits + power * math.log2(length + power) - math.lgamma(power + 1) / math.log(2)
        return 2.0**log if log < 1000 else math.inf


@dataclass(slots=True)
class _Group:
    """An open group. ``last`` is the item that a quantifier would repeat."""

    number: int = 0
    name: str = ""
    sequence: Effort = field(default_factory=Effort)
    alternatives: Effort | None = None
    last: Effort = field(default_factory=Effort)
    last_is_group: bool = False

    def add(self, item: Effort, is_group: bool = False) -> None:
        self.sequence = self.sequence.then(self.last)
        self.last, self.last_is_group = item, is_group

    def next_alternative(self) -> None:
        self.add(Effort())
        before = self.alternatives
        self.alternatives = self.sequence if before is None else before.otherwise(self.sequence)
        self.sequence = Effort()

    def whole(self) -> Effort:
        self.next_alternative()
        assert self.alternatives is not None
        return self.alternatives


_TOKEN: Final = re.compile(
    r"(?P<run>(?:\w|\\U[0-9a-f]{8}){2,}(?![*+?{]))|(?P<set>\[(?:[^\]\\]|\\.)+\])|(?P<call>\(\?(?:R|\d+|&\w+|P>\w+)\))|(?P<same>\(\?P=\w+\)|\\[1-9])"
    r"|(?P<open>\((?:\?(?:P?<(?P<name>\w+)>|[:|>=!]|<[=!]|[a-z]*(?:-[a-z]*)?:|\(<?\w+>?\)|(?=\()))?)"
    r"|(?P<close>\))|(?P<or>\|)|(?P<count>(?:[*+?]|\{(?P<least>\d+)(?P<comma>,?)(?P<most>\d*)\})[?+]?)"
    r"|\\(?:U[0-9a-f]{8}|[pP]\{[^}]*\}|.)|.",
    re.DOTALL,
)
_MEMBER: Final = re.compile(r"\\(?:U[0-9a-f]{8}|[pP]\{[^}]*\}|.)|.", re.DOTALL)


def effort(pattern: str) -> Effort:
    """Return the effort of a pattern that ``translate`` has written. Raises TooDeep."""
    groups = [_Group()]
    numbers, closed = 0, dict[str, Effort]()
    for match in _TOKEN.finditer(pattern):
        kind, top = match.lastgroup, groups[-1]
        if kind == "run":
            top.add(Effort(len(match[0]) - 9 * match[0].count("\\")))
            top.add(Effort())
        elif kind == "set":
            top.add(Effort(1 + sum(1 for _ in _MEMBER.finditer(match[0][1:-1]))))
        elif kind == "call":
            name = match[0].strip("(?)").removeprefix("P>").removeprefix("&")
            top.add(closed.get(name, Effort(recursive=match[0])), True)
        elif kind == "same":
            top.add(Effort(1, 1))
        elif match["open"]:
            captures = match[0] == "(" or match["name"] is not None
            numbers += captures
            groups.append(_Group(numbers if captures else 0, match["name"] or ""))
            if len(groups) > _MOST_DEPTH:
                raise TooDeep
        elif kind == "close" and len(groups) > 1:
            whole = groups.pop().whole().then(Effort(1))
            groups[-1].add(whole, True)
            closed |= {key: whole for key in (str(top.number), top.name) if key not in ("0", "")}
        elif kind == "or":
            top.next_alternative()
        elif match["count"]:
            least, most = _counts(match)
            top.last = top.last.repeated(least, most, top.last_is_group)
            top.last_is_group = True
        else:
            top.add(Effort(1))
    return groups[0].whole()


def _counts(match: re.Match[str]) -> tuple[int, float]:
    """Return the least and the most repetitions of a quantifier."""
    if match["least"] is None:
        return int(match[0][0] == "+"), 1 if match[0][0] == "?" else math.inf
    least = int(match["least"])
    return least, int(match["most"]) if match["most"] else math.inf if match["comma"] else least
