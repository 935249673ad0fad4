"""Text from text: the tokenizer, the model and the detokenizer of a folder."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from irrun.api import compile as compiled
from irrun.api import read_model
from irrun.diagnostics import FeedError, ModelError, diagnostic
from irrun.genai.causal import not_causal
from irrun.genai.decoder import Decoder, unfed
from irrun.genai.folder import Folder, bad_folder
from irrun.genai.sampling import Sampler, Sampling, settings_of
from irrun.genai.streaming import TextStream
from irrun.genai.templates import ChatTemplate, Message
from irrun.genai.texts import Texts

__all__ = ["Generation", "Pipeline", "Stream"]

Prompt = str | Sequence[Message]
"""A text, or the messages of a chat."""


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
    ended_by: Literal["eos", "stop", "length"]
    first_seconds: float = field(compare=False)
    seconds: float = field(compare=False)

    @property
    def tokens_per_second(self) -> float:
        """The tokens per second after the first one; 0 if there is only one."""
        rest = self.seconds - self.first_seconds
        return (len(self.ids) - 1) / rest if len(self.ids) > 1 and rest > 0 else 0.0


class Stream(Iterator[str]):
    """The pieces of a text as they are generated. Together, they are the text of ``result``."""

    def __init__(self, pieces: Generator[str, None, Generation]) -> None:
        self._pieces = pieces
        self._result: Generation | None = None

    def __next__(self) -> str:
        try:
            return next(self._pieces)
        except StopIteration as end:
            self._result = end.value or self._result
            raise StopIteration from None

    @property
    def result(self) -> Generation:
        """The result. Generates the rest first, if there is one."""
        for _ in self:
            pass
        if self._result is None:
            raise RuntimeError("the generation has failed, so that it has no result")
        return self._result


class Pipeline:
    """A language model in a folder, as optimum-intel writes it. It generates text.

    ``max_memory`` is that of ``irrun.compile``, ``timeout`` the most seconds that each token may take. ``sampling``
    holds the settings of the folder, ``template`` its chat template or None, and ``rewrites`` says whether the
    detokenizer may change the text of a token when the next one comes. A pipeline serves one generation at a time.

    Raises ReadError (IR801, IR802) if the folder is no language model, ModelError (IR805) if the model has inputs that
    a pipeline cannot feed or is no causal language model, and the errors of ``irrun.compile``.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        max_memory: int | None = None,
        exact: bool | None = None,
        timeout: float | None = None,
    ) -> None:
        self.folder = Folder.open(folder)
        self.folder.require_models()
        limits: dict[str, Any] = {"max_memory": max_memory, "exact": exact, "timeout": timeout}
        self._texts = texts = Texts(self.folder, **limits)
        self.rewrites = texts.rewrites
        end = texts.info.get("eos_token_id", "")
        self.sampling: Sampling = settings_of(self.folder, [int(end)] if end.isdecimal() else ())
        self._longest = _longest(self.folder)
        vocabulary = texts.tokens.vocabulary
        model, tokens = read_model(self.folder.model), None if vocabulary is None else vocabulary.size
        problems = unfed(model) or [fault for fault in [not_causal(model, self.folder, tokens)] if fault is not None]
        if problems:
            raise ModelError(problems)
        self._decoder = Decoder(compiled(model, **limits), tokens)

    @cached_property
    def template(self) -> ChatTemplate | None:
        """The chat template of the folder. Raises ReadError (IR806) if it is broken."""
        return ChatTemplate.of(self.folder, self._texts.info.get("chat_template"))

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return the token ids of a text. Without ``add_special_tokens``, those around the text are left out."""
        return self._texts.encode(text, add_special_tokens=add_special_tokens)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, without special tokens. Bytes that are not UTF-8 are U+FFFD."""
        return self._texts.decode(ids)

    def chat(self, messages: Sequence[Message], **variables: Any) -> str:
        """Return the prompt for messages, by the chat template of the folder.

        ``variables`` are passed to the template. Raises ReadError (IR801) if there is none, and FeedError (IR806) if it
        refuses the messages.
        """
        if self.template is None:
            message = (
                "the folder has no chat template: neither chat_template.jinja nor an entry of tokenizer_config.json"
            )
            raise bad_folder(self.folder.path, message, "pass the prompt as a text, without --chat")
        return self.template(messages, **variables)

    def generate(self, prompt: Prompt, sampling: Sampling | None = None, **settings: Any) -> Generation:
        """Generate text after a prompt, and return it.

        ``prompt`` is a text or the messages of a chat. ``sampling`` are the settings, by default those of the folder;
        ``settings`` change some of them: ``generate("Hello", max_new_tokens=20)``. Raises FeedError for bad settings
        (IR802), for messages that the template refuses (IR806) and for a prompt that is empty or too long (IR601), and
        ExecutionError if the model fails.
        """
        return self.stream(prompt, sampling, **settings).result

    def stream(self, prompt: Prompt, sampling: Sampling | None = None, **settings: Any) -> Stream:
        """Generate text after a prompt, and return an iterator of its pieces. Its ``result`` is the Generation.

        A piece is passed on as soon as no further token can change it. Arguments and errors are those of ``generate``.
        """
        chosen = (sampling or self.sampling).changed(**settings)
        ids = (
            self.encode(prompt) if isinstance(prompt, str) else self.encode(self.chat(prompt), add_special_tokens=False)
        )
        if not ids:
            raise FeedError(diagnostic("IR601", "the prompt has no tokens", help="pass a text that is not empty"))
        if self._longest is not None and len(ids) >= self._longest:
            message = f"the prompt has {len(ids)} tokens, the model takes {self._longest}"
            raise FeedError(diagnostic("IR601", message, help="pass a shorter prompt"))
        return Stream(self._pieces(ids, chosen))

    def _pieces(self, prompt: Sequence[int], sampling: Sampling) -> Generator[str, None, Generation]:
        """Yield the pieces of a generation, and return its result."""
        begin = time.monotonic()
        first = 0.0
        sampler = Sampler(sampling, prompt)
        texts = TextStream(self.decode, sampling.stop, rewrites=self.rewrites)
        most = sampling.max_new_tokens
        if self._longest is not None:
            most = min(most, self._longest - len(prompt))
        self._decoder.reset()
        ids: list[int] = []
        fed = prompt
        ended_by: Literal["eos", "stop", "length"] = "length"
        while len(ids) < most:
            id = sampler(self._decoder(fed))
            ids.append(id)
            first = first or time.monotonic() - begin
            if id in sampling.eos:
                ended_by = "eos"
                break
            piece = texts.add(id)
            if piece:
                yield piece
            if texts.stopped:
                ended_by = "stop"
                break
            fed = [id]
        if rest := texts.finish():
            yield rest
        seconds = time.monotonic() - begin
        return Generation(texts.text, tuple(ids), tuple(prompt), ended_by, first, seconds)


def _longest(folder: Folder) -> int | None:
    """Return the most tokens that the model takes, by its config.json. Raises ReadError (IR802)."""
    for name in ("max_position_embeddings", "n_positions"):
        number = folder.config.number(name, whole=True)
        if number is not None and number > 0:
            return int(number)
    return None
