"""CTCLoss-4."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from irrun.diagnostics import Refused
from kit import *

_OP = "CTCLoss-4"
_FLAGS: list[dict[str, Any]] = [
    {"preprocess_collapse_repeated": a, "ctc_merge_repeated": b, "unique": c}
    for a, b, c in itertools.product((False, True), repeat=3)
]


def _decoded(path: tuple[int, ...], blank: int, merge: bool) -> list[int]:
    if merge:
        path = tuple(c for c, _ in itertools.groupby(path))
    return [c for c in path if c != blank]


def _loss(logits: np.ndarray, target: list[int], blank: int, flags: dict[str, Any]) -> float:
    """The loss of one sequence by its definition: over every path there is."""
    if flags["unique"]:
        target = list(dict.fromkeys(target))
    elif flags["preprocess_collapse_repeated"]:
        target = [c for c, _ in itertools.groupby(target)]
    p = np.exp(logits.astype(np.float64))
    p /= p.sum(axis=1, keepdims=True)
    total = sum(
        math.prod(p[t, c] for t, c in enumerate(path))
        for path in itertools.product(range(p.shape[1]), repeat=len(p))
        if _decoded(path, blank, flags["ctc_merge_repeated"]) == target
    )
    return -math.log(total) if total else math.inf


def _all_paths(inputs: list[np.ndarray], flags: dict[str, Any]) -> np.ndarray:
    logits, logit_length, labels, label_length, *blank = inputs
    last = logits.shape[2] - 1
    return np.array(
        [
            _loss(x[:steps], row[:count].tolist(), blank[0].item() if blank else last, flags)
            for x, steps, row, count in zip(logits, logit_length.tolist(), labels, label_length.tolist())
        ],
        logits.dtype,
    )


# OpenVINO's reference tests
_LOGITS = f32([0, 1, 8, 5, 5, 2, 0, 7, 7, 10, 4, 5, 9, 0, 0, 5, 7, 0]).reshape(2, 3, 3)
_REFERENCE = [_LOGITS, i64(3, 3), i64(0, 1, 2, 1, 1, 1).reshape(2, 3), i64(2, 1), np.array(2)]
_LABELS = i64(0, 1, 1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 1, 0, 1, 1, 1, 1).reshape(3, 6)
_LONGER = [random(3, 6, 4), i64(6, 5, 6), _LABELS, i64(4, 2, 3)]
_REPEATED = [random(2, 5, 4), i64(5, 4), i64(2, 2, 0, 0, 9, 1, 1, 1, 9, 9).reshape(2, 5), i64(3, 2)]

VALUES = [
    *[
        Values(f"openvino-{list(flags.values())}", _OP, _REFERENCE, f32(expected), flags, 1e-4)
        for flags, expected in [
            (_FLAGS[0], [1.41223, 14.1359]), (_FLAGS[1], [1.41223, 14.1359]), (_FLAGS[2], [1.41156, 13.2745]),
            (_FLAGS[4], [1.41223, 14.1359]), (_FLAGS[3], [1.41156, 13.2745]),
        ]
    ],
    *[
        Values(f"all-paths-{name}-{list(flags.values())}", _OP, inputs, _all_paths(inputs, flags), flags, 1e-4)
        for flags in _FLAGS
        for name, inputs in [
            ("labels", _LONGER),
            ("repeated", _REPEATED),
            ("blank-0", [random(2, 4, 3), i64(4, 4), i64(1, 2, 2, 9, 1, 1, 1, 9).reshape(2, 4), i64(3, 2), np.array(0)]),
            ("no-labels", [random(2, 4, 3), i64(4, 0), i64(*[9] * 8).reshape(2, 4), i64(0, 0)]),
        ]
    ],
    # 1, 1 needs a blank between if repetitions are merged
    Values("impossible", _OP, [random(1, 2, 3), i64(2), i64(1, 1).reshape(1, 2), i64(2)], f32([math.inf])),
    Values("large", _OP, [f32([[[1000, 0], [1000, 0]]]), i64(2), i64(0, 0).reshape(1, 2), i64(1)], f32([0])),
    Values("f16", _OP, [_LOGITS.astype(np.float16), *_REFERENCE[1:]], np.array([1.411, 13.28], np.float16), {}, 1e-3),
    Values("f64", _OP, [random(3, 6, 4, dtype=np.float64), *_LONGER[1:]], _all_paths([random(3, 6, 4, dtype=np.float64), *_LONGER[1:]], _FLAGS[2])),
    Values("no-batch", _OP, [np.ones((0, 2, 3), np.float32), i64(), i64().reshape(0, 2), i64()], f32([])),
]  # fmt: skip

SHAPES = [
    Shapes("spec", _OP, ["f32[8,20,128]", "i32[8]", "i64[8,20]", "i32[8]", "i64[]{120}"], "f32[8]"),
    Shapes("label-length-tells", _OP, ["f16[?,20,128]", "i32[?]", "i32[?,20]", "i32[8]"], "f16[8]"),
    Shapes("interval", _OP, ["f32[2..8,20,128]", "i32[4..9]", "i32[...]", "i32[?]"], "f32[4..8]"),
    Shapes("unknown-rank", _OP, ["f32[...]", "i32[...]", "i32[...]", "i32[...]", "i32[...]"], "f32[?]"),
]

REFUSALS = [
    Refusal("c1-logits", _OP, ["f32[8,20]", "i32[8]", "i32[8,20]", "i32[8]"]),
    Refusal("c1-logit-length", _OP, ["f32[8,20,5]", "i32[8,1]", "i32[8,20]", "i32[8]"]),
    Refusal("c1-labels", _OP, ["f32[8,20,5]", "i32[8]", "i32[160]", "i32[8]"]),
    Refusal("c1-label-length", _OP, ["f32[8,20,5]", "i32[8]", "i32[8,20]", "i32[]"]),
    Refusal("c1-blank", _OP, ["f32[8,20,5]", "i32[8]", "i32[8,20]", "i32[8]", "i32[1]"]),
    Refusal("c2-logit-length", _OP, ["f32[8,20,5]", "i32[7]", "i32[8,20]", "i32[8]"]),
    Refusal("c2-labels", _OP, ["f32[8,20,5]", "i32[8]", "i32[9,20]", "i32[8]"]),
    Refusal("c2-time", _OP, ["f32[8,20,5]", "i32[8]", "i32[8,19]", "i32[8]"]),
    Refusal("c2-label-length", _OP, ["f32[8,20,5]", "i32[8]", "i32[8,20]", "i32[9]"]),
    Refusal("c3-negative", _OP, ["f32[2,20,5]", "i32{20,10}", "i32[2,20]", "i32{20,-1}"]),
    Refusal("c3-logit-length", _OP, ["f32[2,20,5]", "i32{20,21}", "i32[2,20]", "i32[2]"]),
    Refusal("c3-label-length", _OP, ["f32[2,20,5]", "i32{20,10}", "i32[2,20]", "i32{20,11}"]),
    Refusal("c4-blank", _OP, ["f32[8,20,5]", "i32[8]", "i32[8,20]", "i32[8]", "i32[]{5}"]),
    Refusal("ir301-integers", _OP, ["i32[8,20,5]", "i32[8]", "i32[8,20]", "i32[8]"]),
    Refusal("ir301-short", _OP, ["f32[8,20,5]", "i16[8]", "i32[8,20]", "i16[8]"]),
    Refusal("ir302-lengths", _OP, ["f32[8,20,5]", "i32[8]", "i32[8,20]", "i64[8]"]),
    Refusal("ir302-blank", _OP, ["f32[8,20,5]", "i32[8]", "i32[8,20]", "i32[8]", "i64[]"]),
]

CASES = [
    Case(f"{name}-{list(flags.values())}", _OP, inputs, flags)
    for flags in _FLAGS
    for name, inputs in [("reference", _REFERENCE), ("labels", _LONGER), ("repeated", _REPEATED)]
] + [
    Case("f16", _OP, [random(3, 6, 4, dtype=np.float16), *_LONGER[1:]], _FLAGS[0]),
    Case("i32", _OP, [_LONGER[0], *[a.astype(np.int32) for a in _LONGER[1:]]], _FLAGS[2]),
    Case("constants", _OP, _REFERENCE, _FLAGS[2], shapes=[1, 2, 3, 4]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "inputs"),
    [
        ("C3", [_LOGITS, i64(3, 4), *_REFERENCE[2:]]),
        ("C3", [_LOGITS, i64(3, 1), _REFERENCE[2], i64(2, 2)]),
        ("C4", [_LOGITS, i64(3, 3), i64(0, 1, 2, 3, 1, 1).reshape(2, 3), i64(2, 2)]),
    ],
)
def test_while_running(label: str, inputs: list[np.ndarray]) -> None:
    with pytest.raises(Refused) as caught:
        operation(_OP).run(*inputs)
    assert caught.value.label == label
