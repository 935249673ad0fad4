"""Text from text: the tokenizer, the model and the detokenizer of a folder."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from irrun.api import compile as compiled
from irrun.genai.decoder import Decoder
from irrun.genai.prompts import Prompt, Prompts
from irrun.genai.sampling import Sampling
from irrun.genai.streaming import Generation, Text

__all__ = ["Pipeline", "Stream"]


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


class Pipeline(Prompts):
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
        limits: dict[str, Any] = {"max_memory": max_memory, "exact": exact, "timeout": timeout}
        super().__init__(folder, **limits)
        self._decoder = Decoder(compiled(self._model, **limits), self._tokens)

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
        return Stream(self._pieces(self._text(prompt, sampling, settings)))

    def _pieces(self, text: Text) -> Generator[str, None, Generation]:
        """Yield the pieces of a text, and return its result."""
        self._decoder.reset()
        fed = 0
        while text.ended_by is None:
            new = text.tokens[fed:]
            fed = len(text.tokens)
            if piece := text.add(self._decoder(new)):
                yield piece
        return text.result
