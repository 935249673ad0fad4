"""LogicalAnd, LogicalOr, LogicalXor, Xor, LogicalNot."""

from typing import Any

import numpy as np

from broadcasting import PDPD, pdpd, rule_refusals, rule_shapes
from kit import *

BINARY = ("LogicalAnd-1", "LogicalOr-1", "LogicalXor-1", "LogicalXor-2", "Xor-1")

_A, _B = np.array([[False], [True]]), np.array([False, True])


def _bits(text: str) -> list[list[bool]]:
    return [[c == "1" for c in row] for row in text.split()]


VALUES = [
    Values("and", "LogicalAnd-1", [_A, _B], _bits("00 01")),
    Values("or", "LogicalOr-1", [_A, _B], _bits("01 11")),
    *(Values(f"xor-{op}", op, [_A, _B], _bits("01 10")) for op in ("LogicalXor-1", "LogicalXor-2", "LogicalXor-17", "Xor-1")),
    Values("pdpd", "LogicalAnd-1", [np.ones((2, 3), np.bool_), _B], _bits("000 111"), pdpd(0)),
    Values("not", "LogicalNot-1", [_B], [True, False]),
    Values("not-scalar", "LogicalNot-1", [True], False),
]  # fmt: skip

SHAPES = [row for op in BINARY for row in rule_shapes(op, "boolean")] + [
    Shapes("not", "LogicalNot-1", ["boolean[2,?]"], "boolean[2,?]"),
    Shapes("not-unknown-rank", "LogicalNot-1", ["boolean[...]"], "boolean[...]"),
    Shapes("carries-and", "LogicalAnd-1", ["boolean{..1,..1,1}", "boolean{0,1,1}"], "boolean{0,..1,1}"),
    Shapes("carries-or", "LogicalOr-1", ["boolean{..1,..1,0}", "boolean{0,1,0}"], "boolean{..1,1,0}"),
    Shapes("carries-not", "LogicalNot-1", ["boolean{..1,0,1}"], "boolean{..1,1,0}"),
    Shapes("carries-not-scalar", "LogicalNot-1", ["boolean[]{..1}"], "boolean[]{..1}"),
]

REFUSALS = [row for op in BINARY for row in rule_refusals(op, "boolean")] + [
    Refusal("ir301-f32", "LogicalAnd-1", ["f32[2]", "f32[2]"]),
    *(Refusal(f"ir301-not-{type}", "LogicalNot-1", [f"{type}[2]"]) for type in ("string", "i32", "f32")),
    Refusal("ir205-arity", "LogicalXor-2", ["boolean[2]"]),
]

_SHAPES = [
    ((), ()), ((), (2, 3)), ((3,), (2, 3)), ((2, 1), (3,)), ((0,), (1,)), ((2, 0, 3), (3,)), ((2, 1, 5), (1, 4, 5)),
    ((3, 2, 1, 4), (5, 4)), ((2, 1, 2, 1, 3), (3, 1, 2, 1)),
]  # fmt: skip


def _case(op: str, a: tuple[int, ...], b: tuple[int, ...], attributes: dict[str, Any], how: str = "cpu") -> Case:
    operands = [random(*a, dtype=np.bool_), random(*b, dtype=np.bool_, seed=1)]
    return Case("-".join(map(str, [op, list(a), list(b), *attributes.values()])), op, operands, attributes, how=how)


CASES = [
    *(_case(op, a, b, {}) for op in BINARY for a, b in _SHAPES),
    # OpenVINO: the CPU plugin has no pdpd broadcasting of its own
    *(_case(op, a, b, pdpd(axis), "core") for op in BINARY for a, b, axis, _ in PDPD),
    *(_case(op, a, a, {"auto_broadcast": "none"}) for op in BINARY for a in [(), (2, 0), (2, 3, 1, 2)]),
    *(
        Case(f"not-bool-{list(s)}", "LogicalNot-1", [random(*s, dtype=np.bool_)])
        for s in [(), (3,), (2, 0), (2, 3, 4), (1, 2, 3, 1), (2, 1, 3, 1, 2)]
    ),
]
