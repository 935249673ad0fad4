"""What pipelines share: the files of a folder, and prompts as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from irrun.api import read_model
from irrun.diagnostics import FeedError, ModelError, diagnostic
from irrun.genai.causal import not_causal
from irrun.genai.decoder import unfed
from irrun.genai.folder import Folder, bad_folder
from irrun.genai.sampling import Sampling, settings_of
from irrun.genai.streaming import Text, TextStream
from irrun.genai.templates import ChatTemplate, Message
from irrun.genai.texts import Texts
from irrun.model import Model

__all__ = ["Prompt", "Prompts"]

Prompt = str | Sequence[Message]
"""A text, or the messages of a chat."""


class Prompts:
    """The language model of a folder, as optimum-intel writes it, with its tokenizer and its settings.

    ``limits`` are those of ``irrun.compile``, for the tokenizer and the detokenizer. ``sampling`` holds the settings of
    the folder, ``template`` its chat template or None, and ``rewrites`` says whether the detokenizer may change the
    text of a token when the next one comes. ``_model`` is the model as its file has it, and ``_tokens`` the number of
    tokens of the tokenizer, if it is known.

    Raises ReadError (IR801, IR802) if the folder is no language model, ModelError (IR805) if the model has inputs that
    a pipeline cannot feed or is no causal language model, and the errors of ``irrun.compile``.
    """

    def __init__(self, folder: str | Path, **limits: Any) -> None:
        self.folder = Folder.open(folder)
        self.folder.require_models()
        self._texts = texts = Texts(self.folder, **limits)
        self.rewrites = texts.rewrites
        end = texts.info.get("eos_token_id", "")
        self.sampling: Sampling = settings_of(self.folder, [int(end)] if end.isdecimal() else ())
        self._longest = _longest(self.folder)
        vocabulary = texts.tokens.vocabulary
        self._tokens = None if vocabulary is None else vocabulary.size
        self._model: Model = read_model(self.folder.model)
        found = [not_causal(self._model, self.folder, self._tokens)]
        problems = unfed(self._model) or [fault for fault in found if fault is not None]
        if problems:
            raise ModelError(problems)

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

    def _text(self, prompt: Prompt, sampling: Sampling | None, settings: dict[str, Any]) -> Text:
        """Return the text that is to follow a prompt. Raises FeedError: see ``Pipeline.generate``."""
        chosen = (sampling or self.sampling).changed(**settings)
        is_text = isinstance(prompt, str)
        ids = self.encode(prompt) if is_text else self.encode(self.chat(prompt), add_special_tokens=False)
        if not ids:
            raise FeedError(diagnostic("IR601", "the prompt has no tokens", help="pass a text that is not empty"))
        most = chosen.max_new_tokens
        if self._longest is not None:
            if len(ids) >= self._longest:
                message = f"the prompt has {len(ids)} tokens, the model takes {self._longest}"
                raise FeedError(diagnostic("IR601", message, help="pass a shorter prompt"))
            most = min(most, self._longest - len(ids))
        return Text(ids, chosen, most, TextStream(self.decode, chosen.stop, rewrites=self.rewrites))


def _longest(folder: Folder) -> int | None:
    """Return the most tokens that the model takes, by its config.json. Raises ReadError (IR802)."""
    for name in ("max_position_embeddings", "n_positions"):
        number = folder.config.number(name, whole=True)
        if number is not None and number > 0:
            return int(number)
    return None
