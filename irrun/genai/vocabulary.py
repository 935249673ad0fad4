"""What the graphs of a tokenizer and of a detokenizer say: their tokens, special tokens, and how they change text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from irrun.inference.settled import settled
from irrun.ir.rt_info import rt_infos
from irrun.model import Layer, Model
from irrun.opdef import Value

__all__ = ["Detokenizer", "Tokenizer", "Vocabulary", "rt_info"]

Values = Mapping[tuple[int, int], Value]

_VOCABULARIES: Final = {
    "BPETokenizer": 5, "WordpieceTokenizer": 5, "UnigramTokenizer": 5, "TrieTokenizer": 5, "VocabEncoder": 3,
    "VocabDecoder": 1,
}  # fmt: skip
"""The operations that have a vocabulary, and at which input it begins: begins, ends, chars."""
_IDS: Final = {"TrieTokenizer": 8, "VocabEncoder": 6}
"""The operations whose ids are an input of their own, and which."""
_WITH_ADDED: Final = (15, 18)
"""The numbers of inputs of a BPETokenizer with added tokens; their ids are its last input."""


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a file by id: their texts as bytes, and the layer that holds them."""

    layer: Layer
    tokens: Mapping[int, bytes]

    @property
    def size(self) -> int:
        """One more than the highest id."""
        return max(self.tokens, default=-1) + 1


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer: its vocabulary, if its graph has one, and how many special tokens it adds around a text."""

    vocabulary: Vocabulary | None
    before: int
    after: int

    @staticmethod
    def of(model: Model) -> Tokenizer:
        values = settled(model)
        return Tokenizer(_vocabulary(model, values), *_added(model, values))


@dataclass(frozen=True)
class Detokenizer:
    """A detokenizer: its vocabulary, if its graph has one, and whether it ``rewrites`` text.

    It does if the text of a token may change when the next one comes.
    """

    vocabulary: Vocabulary | None
    rewrites: bool

    @staticmethod
    def of(model: Model) -> Detokenizer:
        values = settled(model)
        whole = False  # whether the pieces are joined
        rewrites = False
        for id in model.order:
            layer = model.layers[id]
            whole = whole or layer.type in ("FuzeRagged", "CharsToBytes", "SentencepieceDetokenizer")
            if layer.type == "RegexNormalization" and whole:
                pattern = _array(model, values, id, -2)
                rewrites = rewrites or pattern is None or not pattern.tobytes().startswith(b"^")
        return Detokenizer(_vocabulary(model, values), rewrites)


def rt_info(model: Model) -> Mapping[str, str]:
    """Return the global ``rt_info`` of a model: values by name, such as ``eos_token_id`` and ``chat_template``."""
    found = rt_infos(model).get(0, {})
    return {path.removeprefix("rt_info/"): text for path, text in found.items() if path.startswith("rt_info/")}


def _array(model: Model, values: Values, id: int, place: int) -> np.ndarray | None:
    """Return the contents of an input of a layer, flat, or None if they are not known."""
    feeds: Sequence[tuple[int, int] | None] = model.feeds[id]
    feed = feeds[place] if -len(feeds) <= place < len(feeds) else None
    value = None if feed is None else values.get(feed)
    exact = None if value is None else value.exact
    return None if exact is None else exact.ravel()


def _vocabulary(model: Model, values: Values) -> Vocabulary | None:
    """Return the vocabulary of the first layer that has one."""
    for id in model.order:
        layer = model.layers[id]
        first = _VOCABULARIES.get(layer.type)
        if first is None:
            continue
        tokens = _tokens(model, values, id, first)
        if tokens is None:
            return None
        ids = _array(model, values, id, _IDS[layer.type]) if layer.type in _IDS else None
        by_id = dict(zip(range(len(tokens)) if ids is None else ids.tolist(), tokens))
        if layer.type == "BPETokenizer" and len(model.feeds[id]) in _WITH_ADDED:
            added, own = _tokens(model, values, id, -4), _array(model, values, id, -1)
            if added is None or own is None:
                return None
            for id, token in zip(own.tolist(), added):
                by_id.setdefault(id, token)
        return Vocabulary(layer, by_id)
    return None


def _tokens(model: Model, values: Values, id: int, first: int) -> list[bytes] | None:
    """Return the strings of three inputs of a layer: begins, ends, chars."""
    begins, ends, chars = (_array(model, values, id, first + place) for place in range(3))
    if begins is None or ends is None or chars is None:
        return None
    data = chars.tobytes()
    return [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist())]


def _added(model: Model, values: Values) -> tuple[int, int]:
    """Return how many special tokens the tokenizer adds before and after a single text."""
    for id in model.order:
        layer = model.layers[id]
        if layer.type == "CombineSegments":
            before = after = 0
            seen = False  # the text itself, whose begins are one for each row
            for place in range(0, len(model.feeds[id]) - 1, 3):
                begins, ends = (_array(model, values, id, place + k) for k in range(2))
                if begins is None or ends is None or begins.size != 1 or ends.size != 1:
                    if seen:
                        break  # a second text
                    seen = True
                    continue
                count = max(int(ends[0]) - int(begins[0]), 0)
                before, after = (before, after + count) if seen else (before + count, after)
            return before, after
        if layer.type == "SentencepieceTokenizer":
            flags = [layer.attributes.get(name, "false").lower() in ("true", "1") for name in ("add_bos", "add_eos")]
            return int(flags[0]), int(flags[1])
    return 0, 0
