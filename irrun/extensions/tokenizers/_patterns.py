"""Compile the patterns of tokenizers, and bound the memory and the time that they take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from irrun.base.deadline import require_time, seconds_left
from irrun.diagnostics import Refused
from irrun.extensions.tokenizers._effort import MOST_ITEMS, Effort, TooDeep, effort
from irrun.extensions.tokenizers._packages import package
from irrun.extensions.tokenizers._translation import DoesNotCompile, shown, translate

__all__ = ["KEPT", "MOST_CHARACTERS", "MOST_SECONDS", "Pattern", "compiled", "try_compile"]

KEPT: Final = 64
"""The most compiled patterns that are kept. Kernels hold the source alone, so that no file decides on the memory."""


MOST_CHARACTERS: Final = 1_000_000
"""The most characters of a pattern."""
MOST_SECONDS: Final = 10.0
_SECONDS_PER_CHARACTER: Final = 2e-5
"""The time that a search may take: so many seconds, and so much for each character. Linear searches take a tenth of
it. PCRE2 has a limit of its own, after which it reports no match."""
_MOST_STEPS: Final = 2e9
_MOST_STEPS_OF_A_RUN_WITH_TIMEOUT: Final = 2e8
"""A search that takes at most so many steps is not timed. A step takes some nanoseconds."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. ``source`` is the text of the file, ``compiled`` an object of the package ``regex``."""

    source: str
    compiled: Any
    separating: Any
    """The pattern in a group, whose ``split`` returns gaps and matches in turn; None for a pattern with groups."""
    effort: Effort
    translated: str
    """The pattern as ``regex`` compiled it."""

    def patience(self, text: str) -> float | None:
        """Return the seconds that a search through ``text`` may take; None for a search that cannot take long.

        Looking at the clock takes four times as long as the search.
        """
        left = seconds_left()
        if self.effort.steps(len(text)) <= (_MOST_STEPS if left == math.inf else _MOST_STEPS_OF_A_RUN_WITH_TIMEOUT):
            return None
        return max(min(MOST_SECONDS + len(text) * _SECONDS_PER_CHARACTER, left), _LEAST_SECONDS)

    @contextmanager
    def searching(self, text: str) -> Iterator[None]:
        """Report a search through ``text`` that takes too long or too much memory: raise Refused or OutOfTime."""
        try:
            yield
        except TimeoutError:
            require_time()
            limit = f"{MOST_SECONDS + len(text) * _SECONDS_PER_CHARACTER:.0f} s"
        except MemoryError:
            limit = "1 GiB"
        else:
            return
        raise Refused(
            f"the pattern {shown(self.source)} takes more than {limit} on a string of {len(text):,} characters",
            help="repetitions within repetitions, such as (a+)+, backtrack exponentially: make them possessive (a++)+",
            code="IR605",
        )


_LEAST_SECONDS: Final = 1e-3
"""The least limit of a search. ``regex`` does not accept 0."""


def try_compile(source: bytes) -> Pattern | None:
    """Return a pattern, or None if PCRE2 does not compile it. Raises Refused (IR201) if irrun cannot express it."""
    try:
        return compiled(source)
    except DoesNotCompile:
        return None


@lru_cache(maxsize=KEPT)
def compiled(source: bytes) -> Pattern:
    """Compile a pattern of PCRE2.

    Raises DoesNotCompile if PCRE2 does not compile it, and Refused (IR201) if it is too large, if the package ``regex``
    cannot express it, or if the package is not installed.
    """
    regex = package("regex")
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DoesNotCompile("the pattern is not UTF-8", error.start) from None
    if len(text) > MOST_CHARACTERS:
        raise Refused(
            f"the pattern has {len(text):,} characters", help=f"use at most {MOST_CHARACTERS:,}", code="IR201"
        )
    translated = translate(text)
    own = _bounded(text, translated)
    try:
        pattern = regex.compile(translated, regex.V0, cache_pattern=False)
        separating = None if pattern.groups else regex.compile(f"({translated})", regex.V0, cache_pattern=False)
        return Pattern(text, pattern, separating, own, translated)
    except regex.error as error:
        position = min(getattr(error, "pos", 0) or 0, len(text)) if translated == text else 0
        raise DoesNotCompile(str(error.msg), position) from None
    except (RecursionError, OverflowError, MemoryError) as error:
        raise DoesNotCompile(f"{type(error).__name__}", 0) from None


def _bounded(text: str, translated: str) -> Effort:
    """Return the effort of a pattern. Raises Refused (IR201) for one that is too large or calls itself."""
    try:
        own = effort(translated)
    except TooDeep:
        raise DoesNotCompile("the parentheses are nested too deeply", 0) from None
    if own.items > max(MOST_ITEMS, 4 * len(translated)):
        raise Refused(
            f"the numbers of repetitions of the pattern {shown(text)} multiply to {own.items:.3g} items, more than "
            f"{MOST_ITEMS:,}",
            help="repeat less, or repeat without a number: a+ instead of a{1000}",
            code="IR201",
        )
    if own.recursive:
        raise Refused(
            f"irrun cannot express the recursion {own.recursive} of the pattern {shown(text)}",
            help="call only groups that are closed before the call",
            code="IR201",
        )
    return own
