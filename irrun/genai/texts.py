"""The tokens of a text, and the text of tokens, by the tokenizer and the detokenizer of a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irrun.api import compile as compiled
from irrun.api import read_model
from irrun.genai.folder import Folder
from irrun.genai.vocabulary import Detokenizer, Tokenizer, rt_info
from irrun.types import encoded, text_array

__all__ = ["Texts"]


class Texts:
    """Converts texts to tokens and back.

    ``limits`` are those of ``irrun.compile``. ``tokens`` describes the tokenizer, ``info`` is its ``rt_info``, and
    ``rewrites`` says whether the detokenizer may change the text of a token when the next one comes. Raises the errors
    of ``irrun.compile``.
    """

    def __init__(self, folder: Folder, **limits: Any) -> None:
        tokenizer, detokenizer = read_model(folder.tokenizer), read_model(folder.detokenizer)
        self._encoder, self._decoder = compiled(tokenizer, **limits), compiled(detokenizer, **limits)
        self.tokens = Tokenizer.of(tokenizer)
        self.info: Mapping[str, str] = rt_info(tokenizer)
        self.rewrites = Detokenizer.of(detokenizer).rewrites
        type = detokenizer.parameters[0].outputs[0].type if detokenizer.parameters else None
        self._id_type = np.dtype(np.int64) if type is None else type.dtype

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return the token ids of a text. Without ``add_special_tokens``, those around the text are left out."""
        outputs = self._encoder([text_array([text], [1])])
        ids = outputs["input_ids" if "input_ids" in outputs else 0].ravel().tolist()
        return ids if add_special_tokens else ids[self.tokens.before : len(ids) - self.tokens.after]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, without special tokens. Bytes that are not UTF-8 are U+FFFD."""
        if not ids:
            return ""
        text = self._decoder([np.array([ids], self._id_type)])[0].item()
        return encoded(text).decode("utf-8", "replace")
