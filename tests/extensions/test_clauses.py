"""Each clause of each operation of tokenizers is broken by a layer that is right but for one input or attribute.

A row holds for shape inference, which knows all inputs here, and for the kernel, for which they may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import pytest

from extensions.test_operations import OURS, i32, made, ragged, strings, u8
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.opdef import Op, Site, Value, labels

pytest.importorskip("regex", reason="patterns need the package regex")

WORDS: Final = strings("ab", "c", "ab c")
ROWS: Final = ragged(["ab", "c"], ["a"])
VOCABULARY: Final = strings("a", "b", "ab", "c")
FLAGS: Final = np.array([False, True, False])
SPAN: Final = [i32(0, 2), i32(2, 3), i32(7, 8, 9)]
ONE: Final = np.array(1, np.int32)
MODEL: Final = u8("a model")
SPECIAL: Final = [*strings("ab"), i32(9)]

LAYERS: Final[dict[str, tuple[list[np.ndarray], dict[str, str]]]] = {
    "BPETokenizer": ([*ROWS, *VOCABULARY, *strings("a"), *strings("b"), *strings("x"), i32(7)], {}),
    "ByteFallback": (WORDS, {}),
    "BytesToChars": ([*ROWS, FLAGS], {}),
    "CaseFold": ([*WORDS, FLAGS], {}),
    "CharsMapNormalization": ([*WORDS, FLAGS], {"normalization_form": "nfc"}),
    "CharsToBytes": (ROWS, {}),
    "CombineSegments": ([*SPAN, *SPAN, i32(0, 1)], {}),
    "ContribStringJoin": ([*WORDS, u8("-"), i32(0)], {}),
    "ContribStringSplit": ([*WORDS, u8(" "), np.array([True])], {}),
    "EqualStr": ([*WORDS, *strings("c")], {}),
    "FuzeRagged": (ROWS[:4], {}),
    "NormalizeUnicode": ([*WORDS, FLAGS], {"normalization_form": "NFC"}),
    "RaggedTensorPack": (SPAN, {}),
    "RaggedToDense": ([*SPAN, np.array(4, np.int32), ONE, np.array(True)], {}),
    "RaggedToRagged": ([i32(0, 0, 2), i32(4)], {}),
    "RaggedToSparse": (SPAN[:2], {}),
    "RegexNormalization": ([*WORDS, FLAGS, u8("a"), u8("b")], {}),
    "RegexSplit": ([*ROWS, FLAGS, u8("b")], {}),
    "SentencepieceDetokenizer": ([MODEL, np.zeros((1, 2), np.int32)], {}),
    "SentencepieceStreamDetokenizer": ([MODEL, np.zeros((1, 2), np.int32)], {}),
    "SentencepieceTokenizer": ([MODEL, *WORDS, *SPECIAL], {}),
    "SpecialTokensSplit": ([*ROWS, FLAGS, u8("(b)")], {}),
    "StringTensorPack": (WORDS, {}),
    "StringTensorUnpack": ([u8(np.array([1, 0, 2], "<i4").tobytes() + b"ab")], {}),
    "StringToHashBucket": (WORDS, {"num_buckets": "3"}),
    "TrieTokenizer": ([*ROWS, *VOCABULARY, i32(1, 2, 3, 4)], {}),
    "Truncate": ([*SPAN, *SPAN, ONE, u8("right"), u8("longest_first")], {}),
    "UTF8Validate": (WORDS, {}),
    "UnigramTokenizer": ([*ROWS, *VOCABULARY, np.zeros(4, np.float32)], {}),
    "VocabDecoder": ([np.zeros((1, 2), np.int32), *VOCABULARY, i32(1)], {}),
    "VocabEncoder": ([*WORDS, *VOCABULARY, i32(1, 2, 3, 4), ONE], {}),
    "WordpieceTokenizer": ([*ROWS, *VOCABULARY, ONE], {}),
}
"""Inputs and attributes that each operation takes. NumericToString has no clause."""


@dataclass(frozen=True)
class Broken:
    """Inputs and attributes that replace those of ``LAYERS``; None is for an input that the layer does not have.

    ``by`` says what notices it: ``both``, or ``infer`` where a kernel cannot (it gets what inference let through), or
    ``run`` where inference looks at no contents, or ``doubts`` for a warning.
    """

    type: str
    clause: str
    id: str
    inputs: Mapping[int, np.ndarray | None] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    by: str = "both"

    @property
    def layer(self) -> tuple[Op, list[np.ndarray]]:
        """The operation and its inputs."""
        inputs, attributes = LAYERS[self.type]
        given = [self.inputs.get(number, own) for number, own in enumerate(inputs)]
        return made(self.type, **(attributes | dict(self.attributes))), [own for own in given if own is not None]


def spans(type: str, clause: str, first: int, *, dims: bool = True) -> Iterator[Broken]:
    """Yield faults of the begins and ends that are the inputs ``first`` and ``first + 1``."""
    begins, ends = LAYERS[type][0][first : first + 2]
    flat = begins.ravel()
    yield Broken(type, clause, f"{first}-shapes", {first: begins[:-1]})
    yield Broken(type, clause, f"{first}-backwards", {first: (flat + 900).astype(np.int32).reshape(begins.shape)})
    yield Broken(type, clause, f"{first}-negative", {first: (flat - 1).astype(np.int32).reshape(begins.shape)})
    if dims:
        yield Broken(type, clause, f"{first}-beyond", {first + 1: (ends + 900).astype(np.int32)})


def texts(type: str, clause: str, first: int) -> Iterator[Broken]:
    """Yield faults of the string tensor whose begins are the input ``first``."""
    yield from spans(type, clause, first)
    yield Broken(type, clause, f"{first}-chars-2d", {first + 2: LAYERS[type][0][first + 2][None]}, by="infer")


ON_STRINGS: Final = (
    "ByteFallback", "CaseFold", "CharsMapNormalization", "ContribStringJoin", "ContribStringSplit", "EqualStr",
    "NormalizeUnicode", "RegexNormalization", "StringTensorPack", "StringToHashBucket", "UTF8Validate", "VocabEncoder",
)  # fmt: skip
ON_ROWS: Final = (
    "BPETokenizer", "BytesToChars", "CharsToBytes", "RegexSplit", "SpecialTokensSplit", "TrieTokenizer",
    "UnigramTokenizer", "WordpieceTokenizer",
)  # fmt: skip
TWO_FLAGS: Final = np.array([True, False])
TWO: Final = i32(1, 2)
SQUARE: Final = np.zeros((2, 2), np.int32)

BROKEN = [
    *(row for type in ON_STRINGS for row in texts(type, "C1", 0)),
    *(row for type in ON_ROWS for row in (*texts(type, "C1", 2), *spans(type, "C2", 0))),
    *(row for type in ("BPETokenizer", "TrieTokenizer", "UnigramTokenizer", "WordpieceTokenizer")
      for row in texts(type, "C3", 5)),
    *(Broken(type, clause, "flags", {number: TWO_FLAGS})
      for type, clause, number in [
          ("BytesToChars", "C3", 5), ("CaseFold", "C2", 3), ("CharsMapNormalization", "C2", 3),
          ("NormalizeUnicode", "C2", 3), ("RegexNormalization", "C2", 3), ("RegexSplit", "C3", 5),
          ("SpecialTokensSplit", "C3", 5),
      ]),
    *texts("BPETokenizer", "C4", 8),
    *texts("BPETokenizer", "C4", 11),
    Broken("BPETokenizer", "C4", "counts", dict(enumerate(strings("b", "a"), 11))),
    Broken("BPETokenizer", "C4", "unknown-left", dict(enumerate(strings("z"), 8))),
    Broken("BPETokenizer", "C4", "unknown-joint", {**dict(enumerate(strings("b"), 8)), **dict(enumerate(strings("c"), 11))}),
    *texts("BPETokenizer", "C5", 14),
    Broken("BPETokenizer", "C5", "ids", {17: TWO}),
    Broken("BPETokenizer", "C6", "inputs", {17: None}, by="infer"),
    Broken("CaseFold", "C3", "upper", attributes={"lower": "false"}, by="infer"),
    Broken("CharsMapNormalization", "C2", "type", {3: u8(b"\0\0\0")}, by="infer"),
    Broken("CharsMapNormalization", "C3", "no-map", {3: u8("no map")}, {"normalization_form": ""}),
    Broken("CharsMapNormalization", "C3", "type", {3: FLAGS}, {"normalization_form": ""}, by="infer"),
    Broken("CharsMapNormalization", "C4", "identity", attributes={"normalization_form": "identity"}),
    *spans("CombineSegments", "C1", 0),
    *spans("CombineSegments", "C1", 3),
    Broken("CombineSegments", "C2", "inputs", {5: None}, by="infer"),
    Broken("CombineSegments", "C2", "ids", {6: i32(0)}),
    Broken("CombineSegments", "C2", "type", {6: np.array([0, 1], np.int64)}, by="infer"),
    Broken("CombineSegments", "C3", "rows", {0: i32(0, 1, 2), 1: i32(1, 2, 3)}),
    Broken("CombineSegments", "C4", "types", {5: np.zeros(3, np.float32)}, by="infer"),
    Broken("CombineSegments", "C4", "2d", {2: np.zeros((3, 1), np.int32)}, by="infer"),
    Broken("ContribStringJoin", "C2", "2d", {3: u8("-")[None]}, by="infer"),
    Broken("ContribStringJoin", "C3", "beyond", {4: i32(1)}),
    Broken("ContribStringJoin", "C3", "two", {4: TWO}, by="infer"),
    Broken("ContribStringSplit", "C2", "2d", {3: u8("-")[None]}, by="infer"),
    Broken("ContribStringSplit", "C3", "two", {4: TWO_FLAGS}, by="infer"),
    *texts("EqualStr", "C1", 3),
    *spans("FuzeRagged", "C1", 0),
    Broken("FuzeRagged", "C2", "shapes", {2: i32(0)}),
    Broken("RaggedTensorPack", "C1", "shapes", {0: i32(0)}),
    *spans("RaggedToDense", "C1", 0),
    Broken("RaggedToDense", "C1", "scalar", {2: ONE}, by="infer"),
    Broken("RaggedToDense", "C2", "negative", {3: i32(-1)}),
    Broken("RaggedToDense", "C2", "two", {3: TWO}),
    Broken("RaggedToDense", "C3", "two", {4: TWO}),
    Broken("RaggedToDense", "C4", "two", {5: TWO_FLAGS}),
    Broken("RaggedToDense", "C5", "maximum", attributes={"m_pad_max_length": "true"}, by="infer"),
    Broken("RaggedToRagged", "C1", "descends", {0: i32(0, 2, 1)}),
    Broken("RaggedToRagged", "C1", "negative", {0: i32(-1, 0)}),
    Broken("RaggedToRagged", "C1", "2d", {0: SQUARE}, by="infer"),
    Broken("RaggedToRagged", "C2", "negative", {1: i32(-1)}, by="infer"),
    Broken("RaggedToRagged", "C2", "two", {1: TWO}, by="infer"),
    *spans("RaggedToSparse", "C1", 0, dims=False),
    Broken("RaggedToSparse", "C1", "2d", {0: SQUARE, 1: SQUARE}, by="infer"),
    Broken("RegexNormalization", "C3", "inputs", {3: None, 4: None}),
    Broken("RegexNormalization", "C3", "2d", {4: u8("a")[None]}, by="infer"),
    Broken("RegexNormalization", "C3", "type", {3: FLAGS, 4: u8("a"), 5: None}, by="infer"),
    Broken("RegexNormalization", "C4", "pattern", {4: u8("(a")}, by="doubts"),
    Broken("RegexSplit", "C4", "2d", {6: u8("b")[None]}, by="infer"),
    Broken("RegexSplit", "C4", "type", {6: i32(1)}, by="infer"),
    Broken("RegexSplit", "C4", "none", {5: None, 6: None}),
    Broken("RegexSplit", "C5", "none", attributes={"max_splits": "0"}, by="infer"),
    Broken("RegexSplit", "C6", "pattern", {6: u8("a)")}, by="doubts"),
    *(Broken(type, "C1", "2d", {0: MODEL[None]}, by="infer") for type in LAYERS if type.startswith("Sentence")),
    *(Broken(type, "C1", "empty", {0: MODEL[:0]}, by="infer") for type in LAYERS if type.startswith("Sentence")),
    *(Broken(type, "C1", "no-model", by="run") for type in LAYERS if type.startswith("Sentence")),
    Broken("SentencepieceDetokenizer", "C2", "1d", {1: i32(1)}, by="infer"),
    Broken("SentencepieceStreamDetokenizer", "C2", "1d", {1: i32(1)}, by="infer"),
    *(Broken(row.type, row.clause, row.id, row.inputs, by="infer") for row in texts("SentencepieceTokenizer", "C2", 1)),
    *(Broken(row.type, row.clause, row.id, row.inputs, by="infer") for row in texts("SentencepieceTokenizer", "C3", 4)),
    Broken("SentencepieceTokenizer", "C3", "ids", {7: TWO}, by="infer"),
    Broken("SentencepieceTokenizer", "C4", "inputs", {7: None}),
    Broken("SentencepieceTokenizer", "C5", "samples", attributes={"nbest_size": "2"}, by="infer"),
    Broken("SpecialTokensSplit", "C4", "none", {5: None, 6: None}, by="infer"),
    Broken("SpecialTokensSplit", "C4", "2d", {6: u8("b")[None]}, by="infer"),
    Broken("SpecialTokensSplit", "C4", "type", {5: FLAGS, 6: None}, by="infer"),
    Broken("SpecialTokensSplit", "C5", "pattern", {6: u8("[a")}, by="doubts"),
    Broken("StringTensorPack", "C2", "mode", attributes={"mode": "offsets"}, by="infer"),
    Broken("StringTensorUnpack", "C1", "mode", attributes={"mode": "offsets"}, by="infer"),
    Broken("StringTensorUnpack", "C2", "short", {0: u8(b"\2\0\0\0")}),
    Broken("StringTensorUnpack", "C2", "beyond", {0: u8(np.array([1, 0, 3], "<i4").tobytes() + b"ab")}),
    Broken("StringTensorUnpack", "C2", "2d", {0: u8(b"\0" * 8)[None]}, by="infer"),
    Broken("StringToHashBucket", "C2", "none", attributes={"num_buckets": "0"}, by="infer"),
    Broken("TrieTokenizer", "C4", "ids", {8: TWO}),
    Broken("TrieTokenizer", "C5", "no-token", dict(enumerate(ragged(["z", "c"], ["a"]))), by="run"),
    *spans("Truncate", "C1", 0),
    *spans("Truncate", "C1", 3),
    Broken("Truncate", "C2", "inputs", {8: None}, by="infer"),
    Broken("Truncate", "C2", "rows", {3: i32(0), 4: i32(1)}),
    Broken("Truncate", "C3", "negative", {6: i32(-1)}),
    Broken("Truncate", "C3", "two", {6: TWO}, by="infer"),
    Broken("Truncate", "C4", "side", {7: u8("rigth")}),
    Broken("Truncate", "C4", "mode", {8: u8("longest")}),
    Broken(
        "Truncate", "C4", "type", {3: ONE, 4: TWO, 5: u8("longest_first"), 6: None, 7: None, 8: None}, by="infer"
    ),
    Broken("UnigramTokenizer", "C4", "scores", {8: np.zeros(3, np.float32)}),
    Broken("UnigramTokenizer", "C5", "unknown", attributes={"unk_token_id": "4"}, by="infer"),
    Broken("VocabDecoder", "C1", "1d", {0: i32(1)}, by="infer"),
    *texts("VocabDecoder", "C2", 1),
    Broken("VocabDecoder", "C3", "2d", {4: SQUARE}, by="infer"),
    *texts("VocabEncoder", "C2", 3),
    Broken("VocabEncoder", "C3", "values", {6: TWO}),
    Broken("VocabEncoder", "C4", "two", {7: TWO}),
    Broken("WordpieceTokenizer", "C4", "beyond", {8: i32(4)}, by="infer"),
    Broken("WordpieceTokenizer", "C4", "two", {8: TWO}, by="infer"),
]  # fmt: skip


def _sites(op: Op, inputs: list[np.ndarray]) -> tuple[Site, list[Value]]:
    return Site(op.outputs or 1), [Value.of(array) for array in inputs]


@pytest.mark.parametrize("type", LAYERS)
def test_the_layers_are_right_before(type: str) -> None:
    op, inputs = Broken(type, "", "").layer
    site, values = _sites(op, inputs)
    infer(op, site, values, {})
    assert not list(op.doubts(site, *values))
    if not type.startswith("Sentence"):
        op.run(*inputs)


@pytest.mark.parametrize("row", BROKEN, ids=lambda row: f"{row.type}-{row.clause}-{row.id}")
def test_a_clause_is_named(row: Broken) -> None:
    op, inputs = row.layer
    site, values = _sites(op, inputs)
    if row.by in ("both", "infer"):
        with pytest.raises(Refused) as caught:
            infer(op, site, values, {})
        assert caught.value.label == row.clause, caught.value
    if row.by == "doubts":
        assert [(doubt.label, doubt.code) for doubt in op.doubts(site, *values)] == [(row.clause, "IR406")]
    if row.by in ("both", "run"):
        if row.type.startswith("Sentence") and find_spec("sentencepiece") is None:
            pytest.skip("the package sentencepiece is not installed")
        with pytest.raises(Refused) as caught:
            op.run(*inputs)
        assert caught.value.label == row.clause, caught.value


OF_CONTENTS: Final = (
    "backwards", "negative", "beyond", "unknown-left", "unknown-joint", "no-map", "descends", "short", "side", "mode",
)  # fmt: skip
"""What the ids of rows end with whose inputs have right types and shapes."""


@pytest.mark.parametrize("type", LAYERS)
def test_a_clause_of_shapes_is_named_without_contents(type: str) -> None:
    for row in (row for row in BROKEN if row.type == type and row.by in ("both", "infer")):
        op, inputs = row.layer
        site, values = _sites(op, inputs)
        found = ""
        try:
            infer(op, site, [Value(value.type, value.shape) for value in values], {})
        except Refused as refused:
            found = refused.label
        assert found == ("" if row.inputs and row.id.endswith(OF_CONTENTS) else row.clause), row


@pytest.mark.parametrize("cls", [cls for cls in OURS if labels(cls)], ids=lambda cls: cls.type)
def test_every_clause_has_a_row(cls: type[Op]) -> None:
    assert labels(cls).keys() == {row.clause for row in BROKEN if row.type == cls.type}


def test_no_row_is_there_twice() -> None:
    names: list[Any] = [(row.type, row.clause, row.id) for row in BROKEN]
    assert len(names) == len(set(names))
