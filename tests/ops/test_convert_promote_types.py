"""ConvertPromoteTypes-14."""

from dataclasses import replace

import numpy as np

from irrun.types import ELEMENT_TYPES
from kit import *

OP = "ConvertPromoteTypes-14"
UNSAFE = {"promote_unsafe": True}
TORCH = {"pytorch_scalar_promotion": True}


def _pair(a: str, b: str, common: str, **attributes: object) -> list[Shapes]:
    """Both orders: "Promotion rules does not depend on order of inputs"."""
    return [
        Shapes(f"{x}-{y}-{'-'.join(attributes)}", OP, [f"{x}[2,?]", f"{y}[3]"], [f"{common}[2,?]", f"{common}[3]"], attributes)
        for x, y in [(a, b), (b, a)]
    ]  # fmt: skip


def _torch(scalar: str, tensor: str, common: str, **attributes: object) -> list[Shapes]:
    return [
        Shapes(f"S({scalar})-D({tensor})", OP, [f"{scalar}[]", f"{tensor}[3]"], [f"{common}[]", f"{common}[3]"], TORCH | attributes),
        Shapes(f"D({tensor})-S({scalar})", OP, [f"{tensor}[3]", f"{scalar}[]"], [f"{common}[3]", f"{common}[]"], TORCH | attributes),
    ]  # fmt: skip


_SHAPES = [
    row
    for rows in [
        # the specification's
        _pair("i8", "f32", "f32"),
        _pair("i32", "u8", "i32"),
        _pair("f16", "i64", "f16", promote_unsafe=True),
        _pair("f64", "u64", "f64", promote_unsafe=True),
        _pair("i8", "u8", "i16", promote_unsafe=True),
        _pair("f16", "bf16", "f32", promote_unsafe=True),
        _pair("f8e4m3", "f8e5m2", "f16", promote_unsafe=True),
        _pair("u64", "i8", "f32", promote_unsafe=True),
        _pair("f16", "f32", "f32"),
        _pair("i16", "u32", "i64", promote_unsafe=True),
        _pair("u64", "i16", "i64", promote_unsafe=True, u64_integer_promotion_target="i64"),
        _torch("i64", "u8", "u8", promote_unsafe=True),
        _torch("f16", "i8", "f16"),
        # more
        _pair("boolean", "u8", "u8"),
        _pair("boolean", "f16", "f16"),
        _pair("boolean", "boolean", "boolean"),
        _pair("i4", "u4", "i8", promote_unsafe=True),
        _pair("f8e4m3", "bf16", "bf16"),
        _pair("u8", "u64", "u64"),
        _torch("i32", "i64", "i64"),
        _torch("u8", "i16", "i16"),
        _torch("u8", "i8", "i8", promote_unsafe=True),
        _torch("f64", "f16", "f16", promote_unsafe=True),
        _torch("f64", "i32", "f64"),
        _torch("boolean", "i32", "i32"),
    ]
    for row in rows
] + [
    Shapes("unknown-rank", OP, ["f16[...]", "f32[2]"], ["f32[...]", "f32[2]"]),
    Shapes("perhaps-a-scalar", OP, ["i64[...]", "i32[2]"], ["dynamic[...]", "dynamic[2]"], TORCH),
    Shapes("both-scalars", OP, ["i64[]", "i32[]"], ["i64[]", "i64[]"], TORCH),
    Shapes("exact-contents", OP, ["i32{1,2}", "i64{3}"], ["i64{1,2}", "i64{3}"]),
]

_REFUSALS = [
    Refusal("c1-f16-i64", OP, ["f16[2]", "i64[2]"]),
    Refusal("c1-f64-u64", OP, ["u64[2]", "f64[2]"]),
    Refusal("c1-f16-i16", OP, ["f16[2]", "i16[2]"]),
    Refusal("c2-narrower-tensor", OP, ["i64[]", "i32[3]"], TORCH),
    Refusal("c2-signed-to-unsigned", OP, ["u8[3]", "i8[]"], TORCH),
    Refusal("c2-unsigned-to-signed", OP, ["i8[3]", "u8[]"], TORCH),
    Refusal("c2-floats", OP, ["f16[3]", "f64[]"], TORCH),
    Refusal("c3-i8-u8", OP, ["i8[2]", "u8[2]"]),
    Refusal("c3-u64", OP, ["i64[2]", "u64[2]"]),
    Refusal("c4-f16-bf16", OP, ["f16[2]", "bf16[2]"]),
    Refusal("c4-f8", OP, ["f8e4m3[2]", "f8e5m2[2]"]),
    Refusal("ir301-string", OP, ["string[2]", "f32[2]"]),
    Refusal("ir301-nf4", OP, ["f32[2]", "nf4[2]"]),
]


def t(element_type: str, *numbers: float) -> np.ndarray:
    return np.array(numbers).astype(ELEMENT_TYPES[element_type].dtype)


VALUES = [
    Values("ints-to-float", OP, [t("i8", 1, -2), t("f32", 0.5)], (t("f32", 1, -2), t("f32", 0.5))),
    Values("boolean", OP, [t("boolean", 1, 0), t("f16", 2)], (t("f16", 1, 0), t("f16", 2))),
    Values("signed", OP, [t("u8", 255), t("i8", -1)], (t("i16", 255), t("i16", -1)), UNSAFE),
    Values("u64-target", OP, [t("u64", 2**63), t("i8", -1)], (t("f32", 2**63), t("f32", -1)), UNSAFE),
    Values("f16-bf16", OP, [t("f16", 1.5), t("bf16", 3)], (t("f32", 1.5), t("f32", 3)), UNSAFE),
    Values("overflow", OP, [t("f16", 1), t("i64", 2**40)], (t("f16", 1), t("f16", np.inf)), UNSAFE),
]

_TYPES = ["boolean", "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def _case(a: str, b: str, shape: tuple[int, ...], torch: bool) -> Case:
    operands = [arange(2, 3, dtype=ELEMENT_TYPES[a].dtype), arange(*shape, dtype=ELEMENT_TYPES[b].dtype)]
    attributes = UNSAFE | {"pytorch_scalar_promotion": torch, "u64_integer_promotion_target": "f32"}
    return Case(f"{a}-{b}-{list(shape)}", OP, operands, attributes, outputs=2)


CASES = [
    *(_case(a, b, (3,), False) for i, a in enumerate(_TYPES) for b in _TYPES[i:]),
    *(_case(a, b, (), True) for a in _TYPES for b in _TYPES[::3]),
]

SHAPES = [replace(row, outputs=2) for row in _SHAPES]
REFUSALS = [replace(row, outputs=2) for row in _REFUSALS]


def test_scalar_becomes_the_type_of_the_tensor():
    first, second = operation(OP, UNSAFE | TORCH).run(np.array(300, np.int64), t("u8", 1))
    assert (first.dtype, first.item()) == (np.uint8, 44)
    assert second.dtype == np.uint8
