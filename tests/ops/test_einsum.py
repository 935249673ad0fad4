"""Einsum-7."""

import ml_dtypes
import numpy as np

from kit import *

TWO = [[[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[2, 4, 6], [8, 10, 12], [14, 16, 18]]]


def _value(id: str, equation: str, inputs: list, expected: object) -> Values:
    return Values(id, "Einsum-7", inputs, expected, {"equation": equation})


VALUES = [
    _value("spec-1", "i,i->", [[1, 2, 3], [4, 5, 6]], 32),
    _value("spec-2", "ij,j->i", [[[1, 2, 3], [1, 2, 3]], [4, 5, 6]], [32, 32]),
    _value("spec-3", "kii->k", [TWO], [15, 30]),
    _value("spec-4", "kii->ki", [TWO], [[1, 5, 9], [2, 10, 18]]),
    _value("spec-5", "ijk->kij", [TWO[:1]], [[[1, 4, 7]], [[2, 5, 8]], [[3, 6, 9]]]),
    _value("spec-6", "a...->...", [TWO[0]], [12, 15, 18]),
    _value("spec-7", "a...,...->a...", [np.array(TWO[0], np.float32), np.array([0.5], np.float32)], [[0.5, 1, 1.5], [2, 2.5, 3], [3.5, 4, 4.5]]),
    _value("spec-8", "AbC", [[[[1, 2, 3], [4, 5, 6]]]], [[[1, 4], [2, 5], [3, 6]]]),
    # OpenVINO: gives the output of this a label twice, and fails
    _value("implicit-diagonal", "dbbc,ca", [[[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]], [[1], [1]]], [[18]]),
    _value("spaces", " i j , j k -> k i ", [[[1, 2]], [[1], [3]]], [[7]]),
    _value("scalars", ",->", [2, 3], 6),
    _value("a-scalar", "", [2], 2),
    _value("outer", "i,j->ji", [[1, 2], [3, 4]], [[3, 6], [4, 8]]),
    _value("elementwise", "ij,ij->ij", [[[1, 2]], [[3, 4], [5, 6]]], [[3, 8], [5, 12]]),
    _value("broadcast-sum", "i,i->", [[2], [1, 2, 3]], 12),
    _value("ellipsis-summed", "a...->a", [[[1, 2], [3, 4]]], [3, 7]),
    _value("ellipsis-of-nothing", "ij...->ij", [[[1, 2]]], [[1, 2]]),
    _value("ellipsis-in-the-output-only", "ij->...ij", [[[1, 2]]], [[1, 2]]),
    _value("no-elements", "ij,jk->ik", [np.empty((2, 0)), np.empty((0, 3))], np.zeros((2, 3))),
    _value("broadcast-no-elements", "ij,j->i", [np.empty((2, 0)), [1.0]], np.zeros(2)),
    _value("i8-wraps", "i,i->", [np.array([100, 29], np.int8), np.array([1, 1], np.int8)], np.array(-127, np.int8)),
    _value("i64-exact", "i,i->", [np.array([2**53, 1]), np.array([1, 1])], 2**53 + 1),
    _value("f16-rounded-once", "i->", [np.array([2048, 1, 1], np.float16)], np.array(2050, np.float16)),
    _value("bf16", "i,i->", [np.array([256, 1, 1], ml_dtypes.bfloat16)] * 2, np.array(65536, ml_dtypes.bfloat16)),
] + [
    _value(f"numpy-{equation}", equation, [random(*s, dtype=np.int64) for s in operands], np.einsum(equation, *(random(*s, dtype=np.int64) for s in operands)))
    for equation, operands in [
        ("ab,bcd,bc->ca", [(2, 5), (5, 3, 6), (5, 3)]),
        ("aac,abd,ddde->b", [(2, 2, 3), (2, 4, 3), (3, 3, 3, 1)]),
        ("a...b,b...->a...", [(9, 1, 4, 3), (3, 11, 7, 1)]),
        ("ab...,ac...,ade->...bc", [(2, 3, 4), (2, 7, 1), (2, 4, 7)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("bhqk,bkhd->bqhd", [(2, 3, 4, 5), (2, 5, 3, 6)]),
        ("bi,bi->b", [(3, 4), (3, 4)]),
        ("ijkj->ij", [(2, 4, 5, 4)]),
        ("i...i->...i", [(2, 3, 2)]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]),
    ]
]  # fmt: skip


def _shape(id: str, equation: str, inputs: list[str], expected: str) -> Shapes:
    return Shapes(id, "Einsum-7", inputs, expected, {"equation": equation})


SHAPES = [
    _shape("spec-1", "ij,ij->i", ["f32[2,64]", "f32[2,64]"], "f32[2]"),
    _shape("spec-2", "ab...,ac...,ade->...bc", ["f32[2,3,4]", "f32[2,7,1]", "f32[2,4,7]"], "f32[4,3,7]"),
    _shape("spec-ellipses", "a...b,b...->a...", ["f32[9,1,4,3]", "f32[3,11,7,1]"], "f32[9,11,7,4]"),
    _shape("dims", "ij,jk->ik", ["f32[?,3]", "f32[?,2..4]"], "f32[?,2..4]"),
    _shape("dims-meet", "kii->ki", ["f32[?,?,3]"], "f32[?,3]"),
    _shape("dims-broadcast", "ij,ij->ij", ["f32[1,?]", "f32[2..3,4]"], "f32[2..3,4]"),
    _shape("unknown-rank", "ij,jk->ik", ["f32[...]", "f32[3,4]"], "f32[?,4]"),
    _shape("unknown-rank-ellipsis", "...ij,jk->...ik", ["f32[...]", "f32[3,4]"], "f32[...]"),
    _shape("unknown-rank-ellipsis-summed", "...ij,jk->ik", ["f32[...]", "f32[3,4]"], "f32[?,4]"),
    _shape("of-nothing", "ij...,jk->i...k", ["f32[2,3]", "f32[3,4]"], "f32[2,4]"),
]


def _refusal(id: str, equation: str, *inputs: str) -> Refusal:
    return Refusal(id, "Einsum-7", inputs, {"equation": equation})


REFUSALS = [
    _refusal("c1-digit", "i1->i", "f32[2,3]"),
    _refusal("c1-dot", "i.j->i", "f32[2,3]"),
    _refusal("c1-two-ellipses", "i......->i", "f32[2,3]"),
    _refusal("c1-two-arrows", "ij->i->", "f32[2,3]"),
    _refusal("c2-too-few", "ij", "f32[2,3]", "f32[3,4]"),
    _refusal("c2-rank", "ijk->i", "f32[2,3]"),
    _refusal("c2-rank-ellipsis", "ijk...->i", "f32[2,3]"),
    _refusal("c2-rank-too-large", "i->i", "f32[2,3]"),
    _refusal("c3-diagonal", "ii->i", "f32[2,3]"),
    _refusal("c3-diagonal-of-one", "ii->i", "f32[1,3]"),
    _refusal("c4-label", "ij,kj->i", "f32[2,3]", "f32[3,4]"),
    _refusal("c4-ellipsis", "i...,...->", "f32[2,3]", "f32[3,4]"),
    _refusal("c5-unknown", "ij->ik", "f32[2,3]"),
    _refusal("c5-twice", "ij->iij", "f32[2,3]"),
    _refusal("ir301-boolean", "i->", "boolean[2]"),
    _refusal("ir302-types", "i,i->", "f32[2]", "f16[2]"),
]

CASES = [
    Case(f"{np.dtype(t).name}-{equation}", "Einsum-7", [random(*s, dtype=t) for s in operands], {"equation": equation})
    for equation, operands in [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ij->", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        (",->", [(), ()]),
        ("AbC", [(1, 2, 3)]),
        ("ab,bcd,bc->ca", [(2, 5), (5, 3, 6), (5, 3)]),
        ("aac,abd,ddde->b", [(2, 2, 3), (2, 4, 3), (3, 3, 3, 1)]),
        ("a...b,b...->a...", [(2, 1, 4, 3), (3, 3, 2, 1)]),
        ("ab...,ac...,ade->...bc", [(2, 3, 4), (2, 7, 1), (2, 4, 7)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("a...->a", [(2, 3)]),
        ("ij,ij->ij", [(1, 3), (2, 3)]),
    ]
    for t in (NUMERIC if equation in ("ij,jk->ik", "ij->", "ij,ij->ij", "a...->a") else (np.float32, np.int32))
] + [Case("no-elements", "Einsum-7", [random(2, 0), random(0, 3)], {"equation": "ij,jk->ik"})]  # fmt: skip
