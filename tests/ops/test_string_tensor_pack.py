"""StringTensorPack-15."""

import numpy as np
import pytest

from irrun.opdef import Refused
from kit import *


def utf8(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


VALUES = [
    Values("spec-1", "StringTensorPack-15", [i64(0, 5), i64(5, 13), utf8("IntelOpenVINO")], ["Intel", "OpenVINO"]),
    Values(
        "spec-2",
        "StringTensorPack-15",
        [i64(0, 3, 3, 8, 9), i64(3, 3, 8, 9, 13), utf8("OMZGenAI 2024")],
        ["OMZ", "", "GenAI", " ", "2024"],
    ),
    Values("spec-3", "StringTensorPack-15", [i64(0, 8), i64(1, 9), utf8("123456789")], ["1", "9"]),
    Values(
        "spec-4",
        "StringTensorPack-15",
        [[[0, 5], [13, 16]], [[5, 13], [16, 21]], utf8("IntelOpenVINOOMZGenAI")],
        [["Intel", "OpenVINO"], ["OMZ", "GenAI"]],
    ),
    Values("two-bytes-a-letter", "StringTensorPack-15", [i64(0, 2), i64(2, 3), utf8("éx")], ["é", "x"]),
    Values("scalar", "StringTensorPack-15", [0, 2, utf8("abc")], "ab"),
    Values("nothing", "StringTensorPack-15", [i64(), i64(), utf8("")], np.array([], np.str_)),
    Values("no-utf8", "StringTensorPack-15", [i64(0), i64(1), np.array([0xC3], np.uint8)], ["\udcc3"]),
]

SHAPES = [
    Shapes("spec-1", "StringTensorPack-15", ["i64[2]", "i64[2]", "u8[13]"], "string[2]"),
    Shapes("dims-meet", "StringTensorPack-15", ["i32[2,?]", "i32[...]", "u8[?]"], "string[2,?]"),
]

REFUSALS = [
    Refusal("c1-shapes", "StringTensorPack-15", ["i64[2]", "i64[1]", "u8[13]"]),
    Refusal("c2-symbols", "StringTensorPack-15", ["i64[2]", "i64[2]", "u8[1,13]"]),
    Refusal("c3-negative", "StringTensorPack-15", ["i64{-1}", "i64{5}", "u8[13]"]),
    Refusal("c3-after-its-end", "StringTensorPack-15", ["i64{0,5}", "i64{5,3}", "u8[13]"]),
    Refusal("c3-beyond", "StringTensorPack-15", ["i64{0,5}", "i64{5,14}", "u8[13]"]),
    Refusal("ir302-types", "StringTensorPack-15", ["i64[2]", "i32[2]", "u8[13]"]),
    Refusal("ir301-symbols", "StringTensorPack-15", ["i64[2]", "i64[2]", "i8[13]"]),
]

CASES = [
    Case(f"{np.dtype(t).name}-{id}", "StringTensorPack-15", [np.array(begins, t), np.array(ends, t), utf8(text)])
    for id, begins, ends, text in [
        ("two", [0, 5], [5, 13], "IntelOpenVINO"),
        ("with-empty", [0, 3, 3, 8, 9], [3, 3, 8, 9, 13], "OMZGenAI 2024"),
        ("2d", [[0, 8], [2, 2]], [[1, 9], [3, 5]], "123456789"),
        ("scalar", 0, 2, "éx"),
    ]
    for t in (np.int32, np.int64)
]


def test_a_place_seen_by_the_run_only():
    with pytest.raises(Refused) as caught:
        operation("StringTensorPack-15").run(i64(0), i64(4), utf8("abc"))
    assert caught.value.label == "C3"
