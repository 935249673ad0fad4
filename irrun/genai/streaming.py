"""Text from tokens as they come: what is passed on does not change any more."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from irrun.genai.sampling import Sampler, Sampling

__all__ = ["End", "Generation", "Text", "TextStream"]

_WINDOW: Final = 128
"""Tokens after which the beginning of the text is decoded no more. Decoding takes time for each token."""
_CONTEXT: Final = 32
"""Tokens before new ones that are decoded with them, because a token may read otherwise at the beginning of a text."""

_REWRITTEN: Final = 8
"""Characters at the end of a text in which a detokenizer may remove a space when more text follows (`` n't``)."""
_SPACE: Final = re.compile(r"[\s#]")


class TextStream:
    """Turns tokens into pieces of text.

    ``decode`` gives the text of ids. A piece ends before bytes that may be the beginning of a character (which are
    decoded as U+FFFD), before text that may be the beginning of one of ``stop``, and, if the detokenizer ``rewrites``
    text (it may remove a space before what comes next), before a space near the end.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], stop: Sequence[str] = (), *, rewrites: bool = False
    ) -> None:
        self._decode = decode
        self._stop = stop
        self._rewrites = rewrites
        self._ids: list[int] = []
        self._first = 0
        """The first of the tokens that are decoded."""
        self._before = ""
        """The text that was passed on or held when the tokens before ``_first`` were last decoded, less its part in the
        text from ``_first`` on."""
        self._sent = 0
        self.text = ""
        """All text so far."""
        self.stopped = False
        """Whether one of ``stop`` was found. ``text`` ends before it."""

    def add(self, id: int) -> str:
        """Take one more token, and return the text that is certain since the last piece."""
        self._ids.append(id)
        window = self._decode(self._ids[self._first :])
        self.text = self._before + window
        if self._cut():
            return self._piece(len(self.text))
        piece = self._piece(self._certain())
        if len(self._ids) - self._first >= _WINDOW:
            self._move(window)
        return piece

    def finish(self) -> str:
        """Return the rest of the text."""
        return self._piece(len(self.text))

    def _piece(self, end: int) -> str:
        begin, self._sent = self._sent, max(self._sent, end)
        return self.text[begin : self._sent]

    def _cut(self) -> bool:
        """End the text before the first of ``stop`` that it holds; return whether there is one."""
        places = [place for stop in self._stop if (place := self.text.find(stop, max(0, self._sent - len(stop)))) >= 0]
        if places:
            self.text, self.stopped = self.text[: min(places)], True
        return self.stopped

    def _certain(self) -> int:
        """Return the length of the text that no further token changes."""
        text = self.text
        end = len(text.rstrip("\ufffd"))
        whole = end
        if self._rewrites and (match := _SPACE.search(text, max(0, end - _REWRITTEN), end)):
            end = match.start()
        for stop in self._stop:
            for length in range(min(len(stop) - 1, whole), 0, -1):
                if text.endswith(stop[:length], 0, whole):
                    end = min(end, whole - length)
                    break
        return end

    def _move(self, window: str) -> None:
        """Decode only the last tokens from now on, if they give the end of the text by themselves."""
        first = len(self._ids) - _CONTEXT
        context = self._decode(self._ids[first:])
        if context and window.endswith(context):
            self._before += window[: len(window) - len(context)]
            self._first = first


End = Literal["eos", "stop", "length"]
"""What ends a text: a token of ``eos``, a text of ``stop``, or the most tokens."""


@dataclass(frozen=True)
class Generation:
    """The result of a generation.

    ``text`` is the new text, without special tokens. ``ids`` are the new tokens, with the one that ended the
    generation. ``ended_by`` says what ended it: ``eos``, one of the texts ``stop``, or ``length``. ``first_seconds`` is
    the time until the first token, ``seconds`` the time of the whole generation.
    """

    text: str
    ids: tuple[int, ...]
    prompt_ids: tuple[int, ...]
    ended_by: End
    first_seconds: float = field(compare=False)
    seconds: float = field(compare=False)

    @property
    def tokens_per_second(self) -> float:
        """The tokens per second after the first one; 0 if there is only one."""
        rest = self.seconds - self.first_seconds
        return (len(self.ids) - 1) / rest if len(self.ids) > 1 and rest > 0 else 0.0


class Text:
    """A text that grows by a token at a time.

    ``prompt`` are the tokens before it, ``most`` is the largest number of new ones. ``stream`` turns tokens into
    pieces of text. ``tokens`` are all tokens so far, and ``ended_by`` says what has ended the text, or None.
    """

    def __init__(self, prompt: Sequence[int], sampling: Sampling, most: int, stream: TextStream) -> None:
        self.prompt, self.most = tuple(prompt), most
        self.tokens = list(prompt)
        self.ended_by: End | None = None
        self._sampling, self._sampler, self._stream = sampling, Sampler(sampling, prompt), stream
        self._begin = time.monotonic()
        self._first = self._end = 0.0

    def add(self, logits: np.ndarray) -> str:
        """Choose the next token from its logits, f32 [vocabulary], and return the text that is certain since then."""
        id = self._sampler(logits)
        self.tokens.append(id)
        self._end = time.monotonic() - self._begin
        self._first = self._first or self._end
        if id in self._sampling.eos:
            self.ended_by = "eos"
            return self._stream.finish()
        piece = self._stream.add(id)
        if self._stream.stopped:
            self.ended_by = "stop"
        elif len(self.tokens) - len(self.prompt) >= self.most:
            self.ended_by = "length"
        return piece if self.ended_by is None else piece + self._stream.finish()

    @property
    def result(self) -> Generation:
        """The result of a text that has ended."""
        assert self.ended_by is not None
        ids = tuple(self.tokens[len(self.prompt) :])
        return Generation(self._stream.text, ids, self.prompt, self.ended_by, self._first, self._end)
