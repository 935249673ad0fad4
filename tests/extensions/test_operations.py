"""The operations of tokenizers, by hand: small strings, offsets that overlap, and what each operation refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.diagnostics import Refused
from irrun.inference.layer import infer
from irrun.opdef import Op, Site, Value, all_ops, is_custom, labels, resolve
from irrun.types import PartialShape

pytest.importorskip("regex", reason="patterns need the package regex")

OURS = [cls for cls in all_ops() if cls.__module__.startswith("irrun.extensions.tokenizers.")]


def u8(text: str | bytes) -> np.ndarray:
    return np.frombuffer(text if isinstance(text, bytes) else text.encode(), np.uint8)


def i32(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def strings(*texts: str | bytes) -> list[np.ndarray]:
    """Begins, ends and chars."""
    data = [text if isinstance(text, bytes) else text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in data], dtype=np.int32)
    return [ends - np.array([len(text) for text in data], np.int32), ends, u8(b"".join(data))]


def ragged(*rows: list[str]) -> list[np.ndarray]:
    ends = np.cumsum([len(row) for row in rows], dtype=np.int32)
    return [
        ends - np.array([len(row) for row in rows], np.int32),
        ends,
        *strings(*(text for row in rows for text in row)),
    ]


def made(type: str, **attributes: str) -> Op:
    cls = resolve(type, None, "extension")
    assert cls is not None
    return cls(**{name: cls.attributes[name].parse(text) for name, text in attributes.items()})


def texts_of(begins: np.ndarray, ends: np.ndarray, chars: np.ndarray) -> list[str]:
    data = chars.tobytes()
    return [data[b:e].decode("utf-8", "surrogateescape") for b, e in zip(begins.tolist(), ends.tolist())]


def rows_of(outputs: Any) -> list[list[str]]:
    found = texts_of(*outputs[2:5])
    return [found[b:e] for b, e in zip(outputs[0].tolist(), outputs[1].tolist())]


def held(op: Op, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The outputs of ``run``, which lie within what ``infer`` gives for exact and for unknown inputs."""
    before = [array.copy() for array in arrays]
    outputs = op.run(*arrays)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    assert all((a == b).all() for a, b in zip(arrays, before)), "an input was changed"
    exact = [Value.of(array) for array in arrays]
    ranks = [Value(v.type, PartialShape.of_rank(v.rank or 0)) for v in exact]
    unknown = [Value(v.type, PartialShape(None)) for v in exact]
    for inputs in (exact, ranks, unknown):
        inferred = infer(op, Site(len(outputs)), inputs, {}, contents=False)
        assert len(inferred) == len(outputs)
        for value, array in zip(inferred, outputs):
            assert value.shape.fits(array.shape), f"inferred {value.shape}, got {array.shape}"
            assert value.type.kind == "string" or value.type.dtype == array.dtype
    return outputs


SPLITS = [
    ("remove", "false", "a,,b,", ["a", "b"]),
    ("remove", "true", "a,,b,", [",", ",", ","]),
    ("isolate", "false", "a,,b,", ["a", ",", ",", "b", ","]),
    ("contiguous", "false", "a,,b,", ["a", ",,", "b", ","]),
    ("mergedwithprevious", "false", "a,b,c", ["a,", "b,", "c"]),
    ("mergedwithprevious", "false", "a,,b", ["a,", "a,,", "b"]),
    ("mergedwithnext", "false", "a,b,c", ["a", ",b", ",c"]),
    ("mergedwithnext", "false", ",a,", [",a", ","]),
    ("isolate", "false", "", []),
    ("remove", "false", ",", []),
    ("isolate", "false", "é,日本,\x00", ["é", ",", "日本", ",", "\x00"]),
]


@pytest.mark.parametrize(("behaviour", "invert", "text", "expected"), SPLITS)
def test_split(behaviour: str, invert: str, text: str, expected: list[str]) -> None:
    op = made("RegexSplit", behaviour=behaviour, invert=invert)
    assert rows_of(held(op, *ragged([text], [], ["x"]), u8(","))) == [expected, [], ["x"] if invert == "false" else []]


def test_split_keeps_what_is_skipped() -> None:
    outputs = held(
        made("RegexSplit"), *ragged(["a,b", "c,d"], ["", "e"]), np.array([True, False, True, False]), u8(",")
    )
    assert rows_of(outputs) == [["a,b", "c", "d"], ["", "e"]]
    assert outputs[5].tolist() == [True, False, False, True, False]


def test_split_of_2023_keeps_a_list_of_strings() -> None:
    outputs = held(made("RegexSplit"), *ragged(["a,b", "c,d"]), u8(","), *strings("c,d", "x"))
    assert rows_of(outputs) == [["a", "b", "c,d"]]


def test_the_last_piece_of_max_splits_reaches_the_end() -> None:
    outputs = held(made("RegexSplit", behaviour="isolate", max_splits="2"), *ragged(["a,b,c"]), u8(","))
    assert rows_of(outputs) == [["a", ",", "b,c"]]


def test_strings_may_overlap_and_leave_gaps() -> None:
    chars = u8("ab,cd,ef")
    outputs = made("RegexSplit").run(i32(0, 1), i32(2, 2), i32(0, 3), i32(5, 8), chars, u8(","))
    assert rows_of(outputs) == [["ab", "cd", "cd", "ef"], ["cd", "ef"]]
    assert outputs[4] is chars


@pytest.mark.parametrize("pattern", ["(a|b", "x*", "a)"])
def test_no_split(pattern: str) -> None:
    """A pattern that does not compile, or that matches nothing at once, cuts nothing."""
    outputs = held(made("RegexSplit", behaviour="isolate"), *ragged(["ax)b"]), u8(pattern))
    assert rows_of(outputs) == [["ax)b"]]


BYTES = [
    ("stray-letter", rb"\p{L}+", b"ab\xaacd!", [b"ab\xaacd", b"!"]),  # AA is the letter U+00AA
    ("stray-space", rb"\s", b"ab\xa0cd", [b"ab", b"\xa0", b"cd"]),
    ("stray-sign", rb"[\p{P}\p{S}]", b"a\xbfb", [b"a", b"\xbf", b"b"]),
    ("two-bytes", rb"\p{L}+", b"a\xc3 xb", [b"a\xc3 xb"]),  # C3 20 is the letter U+00E0
    ("three-bytes", rb"\p{L}+", b"a\xe2\x82bc", [b"a", b"\xe2\x82b", b"c"]),  # the sign U+20A2
    ("four-bytes", rb"\p{L}+", b"ok \xf0\x9f\x98 end", [b"ok", b" \xf0\x9f\x98 ", b"end"]),  # the emoji U+1F620
    ("four-of-letters", rb"\p{L}+", b"ok \xf0 end x", [b"ok", b" ", b"\xf0 end", b" ", b"x"]),  # U+2096E
    ("surrogate", rb".", b"\xed\xa0\x80a", [b"\xed\xa0\x80", b"a"]),
    ("longer-than-need-be", rb"\p{P}", b"\xc0\xafa", [b"\xc0\xaf", b"a"]),  # the slash
    ("broken-off-by-the-end", rb".", b"ab\xe2\x82", [b"a", b"b", b"\xe2\x82"]),
]


@pytest.mark.parametrize(("pattern", "data", "expected"), [row[1:] for row in BYTES], ids=[row[0] for row in BYTES])
def test_bytes_that_are_not_utf8(pattern: bytes, data: bytes, expected: list[bytes]) -> None:
    """The pieces are those of OpenVINO 2026.4.1."""
    outputs = held(made("RegexSplit", behaviour="isolate"), i32(0), i32(1), *strings(data), u8(pattern))
    assert [data[b:e] for b, e in zip(outputs[2], outputs[3])] == expected


def test_bytes_that_are_not_utf8_are_replaced_as_characters() -> None:
    inputs = strings(b"a\xe2\x82bc", b"\x80x\xc3", b"plain")
    outputs = held(made("RegexNormalization"), *inputs, u8(r"(\p{S})|x"), u8("<$0>"))
    assert texts_of(*outputs)[::2] == ["a<\udce2\udc82b>c", "plain"]
    outputs = held(made("RegexNormalization", global_replace="false"), *inputs, u8(r"[a-z]"), u8("."))
    assert texts_of(*outputs) == [".\udce2\udc82bc", "\udc80.\udcc3", ".lain"]
    outputs = held(made("SpecialTokensSplit"), i32(0), i32(1), *strings(b"\x80<s>\xc3"), u8("(<s>)"))
    assert outputs[5].tolist() == [False, True, False]


def test_special_tokens() -> None:
    pattern = u8(r"(?:\s*)(\<m\>)(?:\s*)|(\<s\>|\<\/s\>)")
    outputs = held(made("SpecialTokensSplit"), *ragged(["a  <m>  b<s>", ""], ["</s></s>c"]), pattern)
    assert rows_of(outputs) == [["a", "<m>", "b", "<s>"], ["</s>", "</s>", "c"]]
    assert outputs[5].tolist() == [False, True, False, True, True, True, False]


REPLACEMENTS = [
    ("o", "0", "foo bor", "f00 b0r"),
    (r"(\w)(\d)", r"\2$1", "a1 b2", "1a 2b"),
    (r"(a)|(b)", "$1", "ab", "ab"),  # group 1 takes no part in the second match
    (r"(a)", "$2", "ab", "ab"),
    (r"(a", "x", "(a", "(a"),
    ("a", "$", "a", "a"),
    ("a", "$$", "a", "$"),
    ("x*", "-", "abc", "-a-b-c-"),
    ("^", "▁", "abc", "▁abc"),
]


@pytest.mark.parametrize(("pattern", "replacement", "text", "expected"), REPLACEMENTS)
def test_replacements(pattern: str, replacement: str, text: str, expected: str) -> None:
    outputs = held(made("RegexNormalization"), *strings(text, ""), u8(pattern), u8(replacement))
    assert texts_of(*outputs)[0] == expected


@pytest.mark.parametrize("count", [6, 7])
def test_a_result_that_is_too_long_is_dropped(count: int) -> None:
    """Of n letters, each replaced by 10, the result has 10 n bytes; it may have 4 (n + 10) - 1: 63 of 60, 67 of 70."""
    outputs = held(made("RegexNormalization"), *strings("a" * count), u8("a"), u8("0123456789"))
    assert texts_of(*outputs) == ["0123456789" * 6 if count == 6 else "a" * 7]


def test_only_the_first_match() -> None:
    outputs = held(made("RegexNormalization", global_replace="false"), *strings("aa"), u8("a"), u8("b"))
    assert texts_of(*outputs) == ["ba"]


FORMS = [
    ({"normalization_form": "nfc"}, "e\u0301", "é"),
    ({"normalization_form": "nfd"}, "é", "e\u0301"),
    ({"normalization_form": "nfkc"}, "ﬁ½①", "fi1⁄21"),
    ({"normalization_form": "nfc"}, "q\u0307\u0323", "q\u0307\u0323"),  # marks are not reordered
    ({"normalization_form": "identity", "case_fold": "true"}, "ẞΣςİ", "ßσσİ"),
    ({"normalization_form": "nfc", "remove_extra_whitespaces": "true"}, "  a  b ", "a b"),
    ({"normalization_form": "nfc", "add_dummy_prefix": "true", "escape_whitespaces": "true"}, "a b", "▁a▁b"),
]


@pytest.mark.parametrize(("attributes", "text", "expected"), FORMS)
def test_forms(attributes: dict[str, str], text: str, expected: str) -> None:
    outputs = held(made("CharsMapNormalization", **attributes), *strings(text, b"\xff"))
    assert texts_of(*outputs) == [expected, "▁\ufffd" if "add_dummy_prefix" in attributes else "\ufffd"]


def test_bpe_merges_by_rank_and_then_from_the_left() -> None:
    vocabulary, left, right = strings("a", "b", "ab", "aa", "bb"), strings("a", "a", "b"), strings("b", "a", "b")
    begins, ends, ids = held(made("BPETokenizer"), *ragged(["aab", "abb"], ["aaa"]), *vocabulary, *left, *right)
    assert (begins.tolist(), ends.tolist()) == ([0, 4], [4, 6])
    assert ids.tolist() == [0, 2, 2, 1, 3, 0]  # a ab, ab b, aa a


def test_bpe_with_one_list_of_merges_and_unknown_bytes() -> None:
    tables = [*strings("a", "b", "ab", "?", "<0xC3>"), *strings("a b")]
    ids = made("BPETokenizer", unk_token="?", byte_fallback="true").run(*ragged(["abé"]), *tables)[2]
    assert ids.tolist() == [2, 4, 3]  # ab, the byte C3, and A9, which has no token


def test_bpe_adds_tokens_and_a_suffix() -> None:
    tables = [*strings("a", "</w>", "a</w>"), *strings("a"), *strings("</w>"), *strings("<x>", "a"), i32(9, 8)]
    ids = made("BPETokenizer", end_suffix="</w>").run(*ragged(["a", "<x>", ""]), *tables)[2]
    assert ids.tolist() == [2, 9, 1, 1]


def test_wordpiece() -> None:
    tables = [*strings("un", "##aff", "##able", "[UNK]", "##a"), np.array(3, np.int64)]
    op = made("WordpieceTokenizer", max_bytes_per_word="9")
    assert held(op, *ragged(["unaffable", "una", "ux", "unaffaffable"]), *tables)[2].tolist() == [0, 1, 2, 0, 4, 3, 3]


def test_unigram() -> None:
    tables = [*strings("<unk>", "a", "b", "ab", "▁"), np.array([0, -1, -1, -1.5, -3], np.float32)]
    ids = held(made("UnigramTokenizer"), *ragged(["abb", "xya", "▁ab▁b"]), *tables)[2]
    assert ids.tolist() == [3, 2, 0, 1, 4, 3, 4, 2]


def test_trie_and_encoder() -> None:
    tables = [*strings("a", "ab", "c"), i32(10, 20, 30)]
    assert held(made("TrieTokenizer"), *ragged(["abc"], ["a"]), *tables)[2].tolist() == [20, 30, 10]
    with pytest.raises(Refused, match="no token begins at byte 1"):
        made("TrieTokenizer").run(*ragged(["ax"]), *tables)
    values = held(made("VocabEncoder"), *strings("c", "x", "a"), *strings("a", "c", "a"), i32(1, 2, 3), i32(-7))
    assert values[0].tolist() == [2, -7, 1]


def test_truncation_of_two() -> None:
    """With 6 in all, 5 and 4 become 3 and 3, 5 and 1 become 5 and 1, 2 and 9 become 2 and 4."""
    lengths, others = [5, 5, 2], [4, 1, 9]
    ends, more = np.cumsum(lengths, dtype=np.int32), np.cumsum(others, dtype=np.int32)
    first, second = (
        [ends - i32(*lengths), ends, np.zeros(12, np.int32)],
        [more - i32(*others), more, np.zeros(14, np.int32)],
    )
    outputs = held(made("Truncate"), *first, *second, np.array(6, np.int32), u8("right"), u8("longest_first"))
    assert (outputs[1] - outputs[0]).tolist() == [3, 5, 2]
    assert (outputs[4] - outputs[3]).tolist() == [3, 1, 4]


def test_segments_and_dense() -> None:
    start, row = [np.array(0, np.int32), np.array(1, np.int32), i32(101)], [i32(0, 2), i32(2, 3), i32(5, 6, 7)]
    outputs = held(made("CombineSegments"), *start, *row, *start, i32(0, 1, 2))
    assert outputs[2].tolist() == [101, 5, 6, 101, 101, 7, 101]
    assert outputs[5].tolist() == [0, 1, 1, 2, 0, 1, 2]
    dense, mask = held(made("RaggedToDense"), *outputs[:3], np.array(4, np.int32), np.array(0, np.int32))
    assert dense.tolist() == [[101, 5, 6, 101], [101, 7, 101, 0]]
    assert mask.tolist() == [[True] * 4, [True] * 3 + [False]]
    left = made("RaggedToDense", pad_right="false").run(*outputs[:3], i32(4), i32(0))[0]
    assert left.tolist() == [[101, 5, 6, 101], [0, 101, 7, 101]]


def test_decoding() -> None:
    outputs = held(made("VocabDecoder"), np.array([[0, 5, 1], [2, -1, 0]], np.int32), *strings("a", "b", "é"), i32(0))
    assert rows_of(outputs) == [["", "", "b"], ["é", "", ""]]
    begins, ends = held(made("FuzeRagged"), *outputs[:4])
    assert texts_of(begins, ends, outputs[4]) == ["b", "é"]
    assert texts_of(*held(made("ByteFallback"), *strings("<0xC3>", "<0xc3>", "<0xGG>", "x"))) == [
        "\udcc3", "<0xc3>", "<0xGG>", "x",
    ]  # fmt: skip


UTF8 = [
    (b"ok \xe6\x97\xa5", "ok 日"), (b"\xff", "\ufffd"), (b"a\xe2\x82b", "a\ufffdb"), (b"\xc0\xaf", "\ufffd\ufffd"),
    (b"\xf0\x9f\x98", "\ufffd"), (b"\xe2A", "\ufffdA"), (b"\xed\xa0\x80", "\udced\udca0\udc80"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), UTF8)
def test_utf8(data: bytes, expected: str) -> None:
    assert texts_of(*held(made("UTF8Validate", replace_mode="true"), *strings(data))) == [expected]
    assert texts_of(*held(made("UTF8Validate"), *strings(data))) == [expected.replace("\ufffd", "")]


def test_old_operations() -> None:
    outputs = held(made("BytesToChars"), *ragged(["a é", "\n"]))
    assert rows_of(outputs) == [["aĠÃ©", "Ċ"]]
    assert texts_of(*held(made("CharsToBytes"), *outputs)) == ["a é\n"]
    assert texts_of(*held(made("NormalizeUnicode", normalization_form="NFD"), *strings("é"))) == ["e\u0301"]
    assert texts_of(*held(made("CaseFold", encoding=""), *strings("ÀBc"))) == ["Àbc"]
    assert held(made("EqualStr"), *strings("a", "b"), *strings("a"))[0].tolist() == [1, 0]
    # the numbers are those of TensorFlow's tests of string_to_hash_bucket_fast
    assert held(made("StringToHashBucket", num_buckets="10"), *strings("a", "b", "c", "d"))[0].tolist() == [9, 2, 2, 5]
    begins, ends, chars = held(made("ContribStringJoin"), *strings("a", "b"), u8("-"), i32(0))
    assert texts_of(begins.reshape(1), ends.reshape(1), chars) == ["a-b"]
    indices, *parts, shape = held(made("ContribStringSplit"), *strings("a,,b", ""), u8(","), np.array([True]))
    assert (indices.tolist(), texts_of(*parts), shape.tolist()) == ([[0, 0], [0, 2]], ["a", "b"], [2, 3])
    assert held(made("RaggedToSparse"), i32(0, 2), i32(2, 3))[0].tolist() == [[0, 0], [0, 1], [1, 0]]
    begins, ends = held(made("RaggedToRagged"), i32(0, 0, 2), i32(4))
    assert (ends - begins).tolist() == [2, 0, 1, 0]
    assert made("NumericToString").run(np.array([1.5, 1e7, 3], np.float32)).tolist() == ["1.5", "1e+07", "3"]


def test_string_tensors_of_old_files() -> None:
    unpack, pack = made("StringTensorUnpack", mode="begins_ends"), made("StringTensorPack")
    stored = u8(np.array([2, 0, 1, 4], "<i4").tobytes() + "aé\x00".encode())
    assert texts_of(*held(unpack, stored)) == ["a", "é\x00"]
    assert pack.run(*unpack.run(np.array(["x", "", "yz"], object))).tolist() == ["x", "", "yz"]
    for broken in (stored[:10], u8(np.array([2, 0, 9, 4], "<i4").tobytes()), u8(b"")):
        with pytest.raises(Refused, match="offsets"):
            infer(unpack, Site(3), [Value.of(broken)], {})


@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.type)
def test_declarations(cls: type[Op]) -> None:
    assert is_custom(cls)
    assert (cls.__doc__ or "").strip().split("\n")[0].endswith((".", "…"))
    numbers = [int(label[1:]) for label in labels(cls)]
    assert numbers == [*range(1, len(numbers) + 1)]


def test_the_standard_operations_stay() -> None:
    assert resolve("StringTensorUnpack", 15, "opset15") is resolve("StringTensorUnpack", None)
    assert resolve("StringTensorUnpack", None, "extension") is not resolve("StringTensorUnpack", None)
    assert resolve("StringTensorUnpack", 14) is None


def test_a_catastrophic_pattern_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from irrun.extensions.tokenizers import _patterns

    monkeypatch.setattr(_patterns, "MOST_SECONDS", 0.2)
    with pytest.raises(Refused, match=re.escape("'(?:x|x)+[yz]' takes more than")):
        made("RegexSplit").run(*ragged(["x" * 60]), u8("(?:x|x)+[yz]"))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from irrun.extensions.tokenizers import _packages
    from irrun.extensions.tokenizers import sentencepiece as module

    def missing(name: str) -> Any:
        raise _packages.PackageMissing(f"this needs the Python package {name}", code="IR201")

    monkeypatch.setattr(module, "package", missing)
    b = irrun.build
    model = b.model(b.SentencepieceDetokenizer(np.zeros(4, np.uint8), b.parameter([1, 2], "i32", name="ids"))[0])
    with pytest.raises(irrun.IrrunError, match="sentencepiece"):
        irrun.run(model, {"ids": np.zeros((1, 2), np.int32)})
