"""RegexNormalization: replace what a regular expression matches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from irrun.diagnostics import Refused
from irrun.extensions.tokenizers._patterns import KEPT, Pattern, try_compile
from irrun.extensions.tokenizers._search import characters, check_pattern, doubtful_pattern, is_utf8, joint
from irrun.extensions.tokenizers._strings import STRINGS, known_bytes
from irrun.extensions.tokenizers.normalization import Change, changed, changed_outputs, each
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, opt, ports

_OLD: Final = {
    rb" ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't)": rb"(?| ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't))",
    rb"(^)(.)": rb"(^)([\s\S])",
    rb"(^)(.+)": rb"(^)([\s\S])",
}
"""Patterns of older converters, and what OpenVINO takes them for."""


@op("RegexNormalization")
class RegexNormalization(Op):
    """Replace the matches of ``pattern`` in each string, or with ``global_replace`` false the first one.

    ``replacement`` may name groups: ``$1``, ``${1}`` or ``\\1``; ``$$`` is a dollar. As with PCRE2, the string stays as
    it is if a named group takes no part in a match or does not exist, if the replacement is malformed, if the result is
    much longer than the string, or if the pattern does not compile. Strings whose flag in ``skips`` is true are copied.
    The flags are an output if they are an input.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  There is one skip flag for each string.
    C3  ``pattern`` and ``replacement`` are the last two inputs; they are 1D, of type u8.
    C4  The pattern compiles.
    """

    global_replace = attr.bool(default=True)
    inputs = ports(**STRINGS, skips=opt("boolean u8"), pattern=opt("u8"), replacement=opt("u8"))
    outputs = None
    checked = False

    def infer(self, at: Site, begins: Value, ends: Value, chars: Value, *more: Value | None) -> tuple[Value, ...]:
        skips, pattern, replacement = self._roles(at, more)
        outputs = changed_outputs(at, begins, ends, chars, skips)
        for name, port in (("pattern", pattern), ("replacement", replacement)):
            at.require(port.rank in (None, 1), "C3", f"{name} is {port.shape}, not 1D")
            at.require(port.type.name in ("u8", "dynamic"), "C3", f"{name} is {port.type}, not u8")
        check_pattern(pattern)
        return outputs

    def _roles(self, at: Site, more: Any) -> tuple[Any, Any, Any]:
        """Return the skip flags, the pattern and the replacement, which depend on the number of inputs."""
        given = [port for port in more if port is not None]
        at.require(len(given) in (2, 3), "C3", f"the layer has {3 + len(given)} inputs, not 5 or 6")
        return (None, *given) if len(given) == 2 else (given[0], given[1], given[2])

    def doubts(self, at: Site, begins: Value, ends: Value, chars: Value, *more: Value | None) -> Iterator[Refused]:
        _, pattern, _ = self._roles(at, more)
        source = known_bytes(pattern)
        if source is None or source not in _OLD:
            yield from doubtful_pattern(pattern, "no string is changed", "C4")

    def prepare(self, request: Request) -> Kernel | None:
        source, replacement = (known_bytes(port) for port in request.inputs[-2:])
        if source is None or replacement is None:
            return None
        _substitution(source, replacement, self.global_replace)  # before the first run
        return Kernel(lambda *arrays: self._run(_substitution(source, replacement, self.global_replace), *arrays))

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        source, replacement = [array.tobytes() for array in arrays if array is not None][-2:]
        return self._run(_substitution(source, replacement, self.global_replace), *arrays)

    def _run(
        self, change: Change, begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, *more: Any
    ) -> tuple[np.ndarray, ...]:
        return changed(begins, ends, chars, self._roles(Site(), more)[0], change)


Template = list[str | int]
"""A replacement: texts, and the numbers of groups."""
_MOST_GROWTH: Final = 4
"""The result may have this many times the bytes of the string and of the replacements of its first match."""


def _template(replacement: str, groups: int) -> Template | None:
    """Return the parts of a replacement, or None if PCRE2 takes it for malformed."""
    text = re.sub(r"\\([1-9])", r"$\1", replacement)
    parts: Template = []
    for part in re.findall(r"\$\$|\$\d+|\$\{\d+\}|\$|[^$]+", text):
        if part == "$$":
            parts.append("$")
        elif part == "$":
            return None
        elif part.startswith("$"):
            parts.append(int(part.strip("${}")))
            if int(part.strip("${}")) > groups:
                return None
        else:
            parts.append(part)
    return parts


class _Unset(Exception):  # noqa: N818  (it ends a substitution, it is no error)
    """A group of the replacement takes no part in a match."""


@lru_cache(maxsize=KEPT)
def _substitution(source: bytes, replacement: bytes, everywhere: bool) -> Change:
    """Return the function that replaces in strings."""
    pattern = try_compile(_OLD.get(source, source))
    template = None
    if pattern is not None:
        template = _template(replacement.decode("utf-8", "surrogateescape"), pattern.compiled.groups)
    if pattern is None or template is None:
        return lambda strings: strings
    if everywhere and _PLAIN.fullmatch(source) and all(isinstance(part, str) for part in template):
        text = "".join(map(str, template)).encode("utf-8", "surrogateescape")
        return lambda strings: _literally(source, text, len(replacement), strings)
    count = 0 if everywhere and not _ANCHORED.match(source) else 1
    one_by_one = each(lambda data: _replaced(pattern, template, len(replacement), count, data))
    together = joint(pattern) if everywhere or _ANCHORED.match(source) else None
    if together is None:
        return one_by_one
    by = "".join(part.replace("\\", r"\\") if isinstance(part, str) else rf"\g<{part}>" for part in template)
    mark, size = together.mark, len(replacement) * (1 + pattern.compiled.groups)

    def change(strings: Sequence[bytes]) -> Sequence[bytes]:
        data = mark.encode().join(strings)
        if not is_utf8(data) or data.count(mark.encode()) != len(strings) - 1:
            return one_by_one(strings)
        joined = data.decode()
        result = together.compiled.sub(by, joined)
        if result == joined:
            return strings
        results = result.encode("utf-8", "surrogateescape").split(mark.encode())
        return list(map(_grown, strings, results, itertools.repeat(size)))

    return change


def _literally(source: bytes, text: bytes, size: int, strings: Sequence[bytes]) -> Sequence[bytes]:
    """Return the strings with one text replaced by another one. ``size`` are the bytes of the replacement."""
    joined = b"\0".join(strings)
    if source not in joined:
        return strings
    results = joined.replace(source, text).split(b"\0")
    if len(results) != len(strings):  # a string, or the text, holds NUL
        results = [data.replace(source, text) for data in strings]
    return list(map(_grown, strings, results, itertools.repeat(size)))


_PLAIN: Final = re.compile(rb"[\w `'#</>\x80-\xff]+")
"""A pattern that stands for itself."""
_ANCHORED: Final = re.compile(rb"(?:\^|\(\^\)|\(\?:\^\))[^|]*\Z")
"""A pattern that matches at most once: at the beginning."""


def _grown(data: bytes, changed: bytes, size: int) -> bytes:
    """Return ``changed``, or ``data`` if it is too long. ``size`` are the bytes of the replacements of a match."""
    return data if len(changed) > _MOST_GROWTH * (len(data) + size) - 1 else changed


def _replaced(pattern: Pattern, template: Template, size: int, count: int, data: bytes) -> bytes:
    """Return a string with its matches replaced. ``size`` are the bytes of the replacement."""
    if not is_utf8(data):
        return _spliced(pattern, template, size, count, data)
    text = data.decode()
    compiled, patience = pattern.compiled, pattern.patience(text)

    def value(match: Any) -> str:
        parts = [part if isinstance(part, str) else match[part] for part in template]
        if None in parts:
            raise _Unset
        return "".join(parts)

    try:
        with pattern.searching(text):
            first = compiled.search(text, timeout=patience)
            if first is None:
                return data
            if count and first.start() == 0:
                changed = (value(first) + text[first.end() :]).encode("utf-8", "surrogateescape")
                return _grown(data, changed, size * _groups(first))
            is_text = all(isinstance(part, str) for part in template)
            by = "".join(map(str, template)).replace("\\", r"\\") if is_text else value
            changed = compiled.sub(by, text, count, timeout=patience).encode("utf-8", "surrogateescape")
    except _Unset:
        return data
    return _grown(data, changed, size * _groups(first))


def _spliced(pattern: Pattern, template: Template, size: int, count: int, data: bytes) -> bytes:
    """Return what ``_replaced`` does of bytes that are not UTF-8, whose characters are no ``str``."""
    text, offsets = characters(data)
    parts: list[bytes] = []
    at, groups = 0, 0
    with pattern.searching(text):
        found = pattern.compiled.finditer(text, timeout=pattern.patience(text))
        for match in itertools.islice(found, count or None):
            groups = groups or _groups(match)
            parts.append(data[at : offsets[match.start()]])
            for part in template:
                if isinstance(part, int):
                    begin, end = match.span(part)
                    if begin < 0:  # the group takes no part in the match
                        return data
                    parts.append(data[offsets[begin] : offsets[end]])
                else:
                    parts.append(part.encode("utf-8", "surrogateescape"))
            at = offsets[match.end()]
    return _grown(data, b"".join([*parts, data[at:]]), size * groups) if parts else data


def _groups(match: Any) -> int:
    """Return 1 plus the number of the highest group that takes part in a match."""
    return 1 + max((number for number, span in enumerate(match.regs) if span[0] >= 0), default=0)
