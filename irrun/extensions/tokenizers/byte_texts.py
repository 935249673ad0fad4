"""ByteFallback, UTF8Validate, BytesToChars and CharsToBytes: bytes of texts, and texts of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from irrun.extensions.tokenizers._strings import (
    RAGGED,
    check_pieces,
    check_ragged,
    packed,
    pieces,
    rows_of,
    skip_flags,
    string_outputs,
)
from irrun.extensions.tokenizers.normalization import StringMap, changed, each
from irrun.opdef import Op, Site, Value, attr, op, opt, ports

_BYTE: Final = re.compile(rb"\A<0x([0-9A-F]{2})>\Z")


@op("ByteFallback")
class ByteFallback(StringMap):
    """Replace each string ``<0xNN>`` by the byte that it names. Other strings stay.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    """

    def change(self, strings: Sequence[bytes]) -> Sequence[bytes]:
        def byte(text: bytes) -> bytes:
            match = _BYTE.match(text)
            return bytes((int(match[1], 16),)) if match else text

        return each(byte)(strings)


@op("UTF8Validate")
class UTF8Validate(StringMap):
    """Drop bytes that are not UTF-8, or replace them by U+FFFD with ``replace_mode``.

    The length of a sequence follows from its first byte. A sequence that another byte or the end breaks off gives one
    U+FFFD; a complete one that a shorter sequence could say gives one for each of its bytes. Surrogates and values
    above 10FFFF pass, so that the result need not be UTF-8.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    """

    replace_mode = attr.bool(default=False)

    def change(self, strings: Sequence[bytes]) -> Sequence[bytes]:
        mark = "\ufffd".encode() if self.replace_mode else b""
        return each(lambda text: _validated(text, mark))(strings)


_RUNS: Final = re.compile(rb"[\x00-\x7f]+|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}"
                          rb"|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf7][\x80-\xbf]{0,2}|[\x80-\xff]", re.DOTALL)  # fmt: skip
"""ASCII, complete sequences, sequences that are broken off, and bytes that begin none."""
_LEAST: Final = {2: 0x80, 3: 0x800, 4: 0x10000}
"""The least value of a sequence of so many bytes."""


def _validated(text: bytes, mark: bytes) -> bytes:
    """Return a text with what is not UTF-8 replaced by ``mark``."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return _RUNS.sub(lambda match: _valid(match[0], mark), text)
    return text


def _valid(run: bytes, mark: bytes) -> bytes:
    lead, size = run[0], len(run)
    if lead < 0x80:
        return run
    if size == 1 or size != (4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2):
        return mark
    value = lead & (0x7F >> size)
    for byte in run[1:]:
        value = value << 6 | byte & 0x3F
    return run if value >= _LEAST[size] else mark * size


def _letters() -> tuple[dict[int, str], dict[str, int]]:
    """Return the printable character of each byte, as GPT-2 has them, and the byte of each such character."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in own]
    letters = {byte: chr(byte) for byte in own} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return letters, {letter: byte for byte, letter in letters.items()}


_LETTER, _BYTE_OF = _letters()
_ENCODED: Final = [_LETTER[byte].encode() for byte in range(256)]


@op("BytesToChars")
class BytesToChars(Op):
    """Replace each byte of the strings by a printable character of its own, as GPT-2 does.

    Strings whose flag in ``skips`` is true are copied. Files before 2024.5 hold this operation.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The row begins and row ends have one shape, and each row lies within the strings.
    C3  There is one skip flag for each string.
    """

    inputs = ports(**RAGGED, skips=opt("boolean"))
    outputs = None
    checked = False

    def infer(self, at: Site, *ports: Value | None) -> tuple[Value, ...]:
        given = [port for port in ports[:5] if port is not None]
        skips = ports[5] if len(ports) > 5 else None
        rows = check_ragged(at, given)
        skip_flags(at, skips, given[2].shape, "C3")
        begins, ends = given[0].reshaped(rows), given[1].reshaped(rows)
        outputs = (begins, ends, *string_outputs(given[2].shape))
        return outputs if skips is None else (*outputs, skips)

    def run(
        self,
        row_begins: np.ndarray,
        row_ends: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        chars: np.ndarray,
        skips: np.ndarray | None = None,
    ) -> tuple[np.ndarray, ...]:
        check_pieces(Site(), begins, ends, chars.size, "C1")
        count = begins.size if skips is None else skips.size
        Site().require(count == begins.size, "C3", f"there are {count} skip flags, but {begins.size} strings")
        rows_of(row_begins, row_ends, begins.size)

        def letters(text: bytes) -> bytes:
            return b"".join(map(_ENCODED.__getitem__, text))

        return row_begins, row_ends, *changed(begins, ends, chars, skips, each(letters))


@op("CharsToBytes")
class CharsToBytes(Op):
    """Join the strings of each row, and replace the printable characters of GPT-2 by the bytes that they stand for.

    Characters that stand for no byte stay. Files before 2024.5 hold this operation.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The row begins and row ends have one shape, and each row lies within the strings.
    """

    inputs = ports(**RAGGED)
    outputs = 3
    checked = False

    def infer(self, at: Site, *ports: Value) -> tuple[Value, ...]:
        return string_outputs(check_ragged(at, ports))

    def run(
        self, row_begins: np.ndarray, row_ends: np.ndarray, begins: np.ndarray, ends: np.ndarray, chars: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        strings = pieces(begins, ends, chars)
        rows = zip(*rows_of(row_begins, row_ends, len(strings)))
        return packed([_bytes(b"".join(strings[first:last])) for first, last in rows], row_begins.shape)


def _bytes(text: bytes) -> bytes:
    get: Callable[[str], int | None] = _BYTE_OF.get
    chars = text.decode("utf-8", "surrogateescape")
    found = [(char, get(char)) for char in chars]
    return b"".join(char.encode("utf-8", "surrogateescape") if byte is None else bytes((byte,)) for char, byte in found)
