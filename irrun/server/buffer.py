"""The text of a document while an editor changes it, and how its offsets move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Buffer", "Changes"]


class Buffer:
    """A text in UTF-8 with the offsets of its lines. An edit moves bytes, and no line is decoded but its own.

    Offsets are bytes. Positions are lines from 0 and characters in the unit of the editor: UTF-8, UTF-16 or UTF-32.
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        """``encoding`` is that of positions: utf-8, utf-16 or utf-32."""
        self.data = bytearray(text.encode("utf-8", "replace"))
        self._codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding]
        self._unit = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
        self._starts = np.concatenate([np.zeros(1, np.int64), _after_ends(self.data)])

    @property
    def lines(self) -> int:
        """The number of lines. A text that ends with a line end has an empty last line."""
        return len(self._starts)

    def offset(self, line: int, character: int) -> int:
        """Return the byte at a position. A position beyond the end of its line means this end."""
        if line >= self.lines:
            return len(self.data)
        start = int(self._starts[line])
        text = self._line(line)
        if text.isascii():
            return start + min(character, len(text))
        before = text.decode().encode(self._codec)[: character * self._unit]
        return start + len(before.decode(self._codec, "ignore").encode())

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and character of a byte."""
        line = int(np.searchsorted(self._starts, offset, "right")) - 1
        before = self.data[int(self._starts[line]) : offset]
        if before.isascii():
            return line, len(before)
        return line, len(before.decode("utf-8", "ignore").encode(self._codec)) // self._unit

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and column of a byte. Both count from 1, columns in characters, as in ``Source.place``."""
        line = int(np.searchsorted(self._starts, offset, "right")) - 1
        return line + 1, len(self.data[int(self._starts[line]) : offset].decode("utf-8", "ignore")) + 1

    def byte(self, line: int, column: int) -> int:
        """Return the byte at a line and column, the reverse of ``place``."""
        return int(self._starts[line - 1]) + len(self.line(line)[: column - 1].encode())

    def line(self, number: int) -> str:
        """Return the text of a line, which counts from 1, without its end; empty if there is no such line."""
        return self._line(number - 1).decode() if 1 <= number <= self.lines else ""

    def replace(self, start: int, end: int, text: str) -> int:
        """Replace bytes ``start`` to ``end`` (exclusive) by ``text``, and return the length of ``text`` in bytes."""
        new = text.encode("utf-8", "replace")
        starts, delta = self._starts, len(new) - (end - start)
        # a line end may be cut or joined at the edit: find the lines again from the line before it to the line after it
        first = max(int(np.searchsorted(starts, start, "right")) - 2, 0)
        last = int(np.searchsorted(starts, end, "right"))
        self.data[start:end] = new
        begin = int(starts[first])
        stop = int(starts[last]) + delta if last < len(starts) else len(self.data)
        found = _after_ends(self.data[begin:stop]) + begin
        if last < len(starts) and len(found) == last - first:  # as many lines as before: allocate nothing
            starts[first + 1 : last + 1] = found
            starts[last + 1 :] += delta
        else:
            self._starts = np.concatenate([starts[: first + 1], found, starts[last + 1 :] + delta])
        return len(new)

    def _line(self, line: int) -> bytearray:
        end = int(self._starts[line + 1]) if line + 1 < self.lines else len(self.data)
        return self.data[int(self._starts[line]) : end].rstrip(b"\r\n")


def _after_ends(data: bytearray) -> np.ndarray:
    """Return the offset after each line end, which is CR LF, LF or CR, as int64 [n]."""
    view = np.frombuffer(data, np.uint8)
    ends = view == ord("\n")
    if b"\r" in data:
        ends |= (view == ord("\r")) & (np.append(view[1:], 0) != ord("\n"))
    return np.flatnonzero(ends) + 1


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a text that was replaced: its bytes in the old text, and in the new one."""

    old_start: int
    old_end: int
    start: int
    end: int

    @property
    def shift(self) -> int:
        return self.end - self.old_end


class Changes:
    """Where the bytes of an old text are in the new one, after edits. ``parts`` are replaced, in order and disjoint."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []

    def add(self, start: int, end: int, length: int) -> None:
        """Record that bytes ``start`` to ``end`` (exclusive) of the new text were replaced by ``length`` bytes."""
        before = [part for part in self.parts if part.end < start]
        after = [part for part in self.parts if part.start > end]
        touched = self.parts[len(before) : len(self.parts) - len(after)]
        shift, delta = before[-1].shift if before else 0, length - (end - start)
        merged = _Part(start - shift, end - shift, start, end + delta)
        if touched:
            first, last = touched[0], touched[-1]
            old_end = last.old_end + max(end - last.end, 0)
            old_start = first.old_start - max(first.start - start, 0)
            merged = _Part(old_start, old_end, min(first.start, start), max(last.end, end) + delta)
        after = [replace(part, start=part.start + delta, end=part.end + delta) for part in after]
        self.parts = [*before, merged, *after]

    def new(self, old: int) -> int | None:
        """Return where a byte of the old text is now, or None if it was replaced."""
        shift = 0
        for part in self.parts:
            if old < part.old_start:
                break
            if old < part.old_end:
                return None
            shift = part.shift
        return old + shift

    def old(self, new: int) -> int:
        """Return where a byte of the new text was, or where the replaced bytes began if it is in their place."""
        shift = 0
        for part in self.parts:
            if new < part.start:
                break
            if new < part.end:
                return part.old_start
            shift = part.shift
        return new - shift
