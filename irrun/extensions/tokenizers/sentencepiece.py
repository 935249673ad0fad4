"""SentencepieceTokenizer, -Detokenizer and -StreamDetokenizer: a whole SentencePiece model in a constant.

The package ``sentencepiece`` reads the model and does the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from irrun.base.deadline import in_time
from irrun.extensions.tokenizers._packages import package
from irrun.extensions.tokenizers._patterns import Pattern, try_compile
from irrun.extensions.tokenizers._search import byte_parts
from irrun.extensions.tokenizers._strings import I32, check_strings, packed, pieces, string_outputs
from irrun.extensions.tokenizers._vocabulary import cached
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.types import ELEMENT_TYPES, Dim, PartialShape, encoded

_I64: Final = ELEMENT_TYPES["i64"]
_BYTE: Final = re.compile(r"<0x([0-9A-F]{2})>")


def _processor(model: np.ndarray, label: str) -> Any:
    """Return the model. Raises Refused: with the clause ``label`` if it is none, IR201 without ``sentencepiece``."""
    sentencepiece = package("sentencepiece")

    def build() -> Any:
        try:
            return sentencepiece.SentencePieceProcessor(model_proto=model.tobytes())
        except (RuntimeError, OSError) as error:
            Site().refuse(label, f"the constant is no model of SentencePiece: {error}")

    return cached(build, "sentencepiece", [model])


def _check_model(at: Site, model: Value) -> None:
    at.require(model.rank in (None, 1), "C1", f"model is {model.shape}, not 1D")
    at.require(model.shape.count().hi > 0, "C1", "model is empty")


@op("SentencepieceTokenizer")
class SentencepieceTokenizer(Op):
    """Return the ids of each string by a SentencePiece model, as a sparse tensor: indices, values and dense shape.

    The strings are a string tensor, or its begins, ends and chars. Special tokens are cut out of the strings first and
    become the ids that belong to them; those of ASCII letters alone are found only where a word begins or ends with
    them. The parts between them are encoded one by one, each with the id of the beginning if ``add_bos`` is true.

    C1  ``model`` is 1D and a serialised SentencePiece model.
    C2  The begins and ends of the strings have one shape, and each string lies within its chars.
    C3  The special tokens are a string tensor, with one id for each of them.
    C4  The layer has 2, 4, 6 or 8 inputs.
    C5  ``nbest_size`` is 0 or 1: irrun does not sample.
    """

    nbest_size = attr.int(default=0)
    alpha = attr.float(default=1.0)
    add_bos = attr.bool(default=False)
    add_eos = attr.bool(default=False)
    reverse = attr.bool(default=False)
    inputs = ports(
        model="u8", strings="string i32", ends=opt("i32"), chars=opt("u8 i32"), more=opt("i32 u8"), ids=opt("i32 u8"),
        special_chars=opt("u8"), special_ids=opt("i32"),
    )  # fmt: skip
    outputs = 3
    checked = False

    def infer(self, at: Site, *ports: Value | None) -> tuple[Value, ...]:
        given = [port for port in ports if port is not None]
        model, strings, special = self._roles(at, given)
        _check_model(at, model)
        at.require(self.nbest_size in (0, 1), "C5", f"nbest_size is {self.nbest_size}")
        if len(strings) == 3:
            check_strings(at, strings[0], strings[1], strings[2], label="C2")
        if special:
            tokens = check_strings(at, special[0], special[1], special[2], label="C3", what="special_")
            fits = tokens.meet(special[3].shape) is not None
            at.require(fits, "C3", f"there are {tokens} special tokens and {special[3].shape} ids")
        some = Dim.unknown()
        sparse = Value(_I64, PartialShape.of([some, 2])), Value(I32, PartialShape.of([some]))
        return *sparse, Value(_I64, PartialShape.of([2]))

    def _roles(self, at: Site, given: Sequence[Any]) -> tuple[Any, Sequence[Any], Sequence[Any]]:
        """Return the model, the strings (1 or 3 ports) and the special tokens with their ids (0 or 4 ports)."""
        at.require(len(given) in (2, 4, 6, 8), "C4", f"the layer has {len(given)} inputs")
        count = 1 if len(given) in (2, 6) else 3
        return given[0], given[1 : 1 + count], given[1 + count :]

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        given = [array for array in arrays if array is not None]
        model, strings, special = self._roles(Site(), given)
        processor = _processor(model, "C1")
        texts = pieces(*strings, label="C2") if len(strings) == 3 else [encoded(s) for s in strings[0].ravel().tolist()]
        known = dict(zip(pieces(*special[:3], label="C3"), special[3].ravel().tolist())) if special else None
        pattern = try_compile(_special_pattern(known)) if known else None
        rows = [self._ids(processor, pattern, known, text) for text in in_time(texts)]
        lengths = np.array([len(row) for row in rows], np.int64)
        index = np.stack((np.repeat(np.arange(len(rows)), lengths), _columns(lengths)), 1)
        values = np.array([id for row in rows for id in row], np.int32)
        return index.astype(np.int64), values, np.array([len(rows), lengths.max(initial=0)], np.int64)

    def _ids(self, processor: Any, pattern: Pattern | None, known: dict[bytes, int] | None, text: bytes) -> list[int]:
        if known is None:
            ids = processor.encode(text, add_bos=self.add_bos)
        else:
            ids = []
            for number, part in enumerate([text] if pattern is None else byte_parts(pattern, text)):
                if number % 2:
                    ids.append(known[part])
                elif part:
                    ids += processor.encode(part, add_bos=self.add_bos)
        if self.add_eos:
            ids.append(processor.eos_id())
        return ids[::-1] if self.reverse else ids


def _columns(lengths: np.ndarray) -> np.ndarray:
    """Return the column of each element of rows of these lengths."""
    total = int(lengths.sum())
    return np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)


_META: Final = re.compile(rb"[.^$*+?()\[\]{}|\\]")


def _special_pattern(tokens: Iterable[bytes]) -> bytes:
    """Return a pattern of PCRE2 that matches special tokens; those of ASCII letters only at the edge of a word."""
    quoted = ((token.isalpha(), _META.sub(rb"\\\g<0>", token)) for token in tokens)
    return b"|".join(rb"\b" + token + b"|" + token + rb"\b" if is_word else token for is_word, token in quoted)


class _Detokenizer(Op):
    """The ports and the shape rule of both detokenizers."""

    inputs = ports(model="u8", ids="i32 i64")
    outputs = 3
    checked = False

    def infer(self, at: Site, model: Value, ids: Value) -> tuple[Value, ...]:
        _check_model(at, model)
        at.require(ids.rank in (None, 2), "C2", f"ids is {ids.shape}, not 2D")
        return string_outputs(PartialShape.of([ids.shape[0] if ids.rank == 2 else Dim.unknown()]))


@op("SentencepieceDetokenizer")
class SentencepieceDetokenizer(_Detokenizer):
    """Return the text of each row of ids by a SentencePiece model. Ids that the model lacks are left out.

    C1  ``model`` is 1D and a serialised SentencePiece model.
    C2  ``ids`` is 2D.
    """

    def run(self, model: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, ...]:
        processor = _processor(model, "C1")
        size = processor.vocab_size()
        rows = [[id for id in row if 0 <= id < size] for row in ids.tolist()]
        return packed([processor.decode(row).encode() if row else b"" for row in rows], [len(rows)])


@op("SentencepieceStreamDetokenizer")
class SentencepieceStreamDetokenizer(_Detokenizer):
    """Return the joined pieces of each row of ids by a SentencePiece model, with ``<0xNN>`` as the byte that it names.

    C1  ``model`` is 1D and a serialised SentencePiece model.
    C2  ``ids`` is 2D.
    """

    def run(self, model: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, ...]:
        processor = _processor(model, "C1")
        size = processor.vocab_size()
        rows = [b"".join(_piece(processor, id) for id in row if 0 <= id < size) for row in ids.tolist()]
        return packed(rows, [len(rows)])


def _piece(processor: Any, id: int) -> bytes:
    text = processor.id_to_piece(id)
    match = _BYTE.fullmatch(text)
    return bytes((int(match[1], 16),)) if match else text.encode()
