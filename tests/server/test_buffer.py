"""The text of a document after random edits, compared with the same edits of a Python string."""

import random
import re

import pytest

from irrun.server.buffer import Buffer, Changes

LETTERS = [*"ab\n\r<>é😀", "\r\n"]
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@pytest.mark.parametrize("encoding", CODECS)
def test_random_edits(encoding: str) -> None:
    draw = random.Random(7)
    codec, unit = CODECS[encoding]
    for _ in range(150):
        text = "".join(draw.choices(LETTERS, k=draw.randrange(30)))
        buffer, changes = Buffer(text, encoding), Changes()
        old = len(text.encode())
        origins: list[int | None] = [*range(old)]  # of each byte of the text, its byte in the first text
        for _ in range(draw.randrange(6)):
            first = draw.randrange(len(text) + 1)
            last = min(len(text), first + draw.randrange(5))
            new = "".join(draw.choices(LETTERS, k=draw.randrange(5)))
            start, end = len(text[:first].encode()), len(text[:last].encode())
            length = buffer.replace(start, end, new)
            changes.add(start, end, length)
            origins[start:end] = [None] * length
            text = text[:first] + new + text[last:]
        assert buffer.data == text.encode()
        lines = re.split(r"\r\n|\r|\n", text)
        assert buffer.lines == len(lines)
        for number, line in enumerate(lines):
            assert buffer.line(number + 1) == line
            for column in range(len(line) + 1):
                character = len(line[:column].encode(codec)) // unit
                offset = buffer.offset(number, character)
                assert buffer.position(offset) == (number, character)
                assert buffer.place(offset) == (number + 1, column + 1)
                assert buffer.byte(number + 1, column + 1) == offset
        now = {origin: byte for byte, origin in enumerate(origins) if origin is not None}
        assert {byte: changes.old(new) for byte, new in now.items()} == {byte: byte for byte in now}
        assert [changes.new(byte) for byte in now] == list(now.values())
        assert all(changes.new(byte) is None for byte in range(old) if byte not in now and byte > min(now, default=old))


def test_a_position_beyond_the_end() -> None:
    buffer = Buffer("ab\ncd")
    assert [buffer.offset(0, 9), buffer.offset(1, 9), buffer.offset(7, 0)] == [2, 5, 5]
