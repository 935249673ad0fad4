"""StringTensorUnpack-15."""

import numpy as np

from kit import *


def utf8(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


VALUES = [
    Values("spec-1", "StringTensorUnpack-15", [["Intel", "OpenVINO"]], ([0, 5], [5, 13], utf8("IntelOpenVINO"))),
    Values(
        "spec-2",
        "StringTensorUnpack-15",
        [["OMZ", "", "GenAI", " ", "2024"]],
        ([0, 3, 3, 8, 9], [3, 3, 8, 9, 13], utf8("OMZGenAI 2024")),
    ),
    Values(
        "spec-3",
        "StringTensorUnpack-15",
        [[["Intel", "OpenVINO"], ["OMZ", "GenAI"]]],
        ([[0, 5], [13, 16]], [[5, 13], [16, 21]], utf8("IntelOpenVINOOMZGenAI")),
    ),
    Values("two-bytes-a-letter", "StringTensorUnpack-15", [["é", "x"]], ([0, 2], [2, 3], utf8("éx"))),
    Values("scalar", "StringTensorUnpack-15", ["ab"], (0, 2, utf8("ab"))),
    Values("nothing", "StringTensorUnpack-15", [np.array([], np.str_)], ([], [], utf8(""))),
    Values("no-utf8", "StringTensorUnpack-15", [["\udcc3"]], ([0], [1], [0xC3])),
]

SHAPES = [
    Shapes("dims", "StringTensorUnpack-15", ["string[2,?]"], ["i32[2,?]", "i32[2,?]", "u8[?]"]),
    Shapes("unknown-rank", "StringTensorUnpack-15", ["string[...]"], ["i32[...]", "i32[...]", "u8[?]"]),
]

REFUSALS = [Refusal("ir301-bytes", "StringTensorUnpack-15", ["u8[3]"])]

CASES = [
    Case(id, "StringTensorUnpack-15", [np.array(data, np.str_)])
    for id, data in [
        ("two", ["Intel", "OpenVINO"]),
        ("with-empty", ["OMZ", "", "GenAI", " ", "2024"]),
        ("2d", [["é", "x"], ["", "yz"]]),
        ("scalar", "abc"),
        ("nothing", []),
    ]
]
