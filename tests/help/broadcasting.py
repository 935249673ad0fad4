"""The worked examples of the broadcast rules, as rows for each operation that has ``auto_broadcast``."""

from __future__ import annotations

from typing import Any

from kit import Refusal, Shapes

Shape = tuple[int, ...]

NUMPY: list[tuple[Shape, Shape, Shape]] = [
    # the specification's
    ((), (), ()),
    ((2, 3), (1,), (2, 3)),
    ((3,), (2, 3), (2, 3)),
    ((2, 3, 5), (), (2, 3, 5)),
    ((2, 1, 5), (1, 4, 5), (2, 4, 5)),
    ((6, 5), (2, 1, 5), (2, 6, 5)),
    ((2, 1, 5), (4, 1), (2, 4, 5)),
    ((3, 2, 1, 4), (5, 4), (3, 2, 5, 4)),
    ((1, 5, 3), (5, 2, 1, 3), (5, 2, 5, 3)),
    # ONNX, multidirectional
    ((2, 3, 4, 5), (), (2, 3, 4, 5)),
    ((2, 3, 4, 5), (5,), (2, 3, 4, 5)),
    ((4, 5), (2, 3, 4, 5), (2, 3, 4, 5)),
    ((1, 4, 5), (2, 3, 1, 1), (2, 3, 4, 5)),
    ((3, 4, 5), (2, 1, 1, 1), (2, 3, 4, 5)),
    # ONNX, unidirectional
    ((2, 3, 4, 5), (2, 1, 1, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 5), (1, 3, 1, 5), (2, 3, 4, 5)),
]
"""Two shapes and what numpy mode makes of them."""

NUMPY_REFUSED: list[tuple[Shape, Shape]] = [((3,), (2,)), ((3, 1, 5), (4, 4, 5))]

PDPD: list[tuple[Shape, Shape, int, Shape]] = [
    ((2, 3, 4, 5), (3, 4), 1, (1, 3, 4, 1)),
    ((2, 3, 4, 5), (3, 1), 1, (1, 3, 1, 1)),
    ((2, 3, 4, 5), (4, 5), -1, (1, 1, 4, 5)),
    ((2, 3, 4, 5), (4, 5), 2, (1, 1, 4, 5)),
    ((2, 3, 4, 5), (1, 3), 0, (1, 3, 1, 1)),
    ((2, 3, 4, 5), (), -1, (1, 1, 1, 1)),
    ((2, 3, 4, 5), (5,), -1, (1, 1, 1, 5)),
    ((2, 3, 4, 5), (5,), 3, (1, 1, 1, 5)),
]
"""A, B, the axis, and B as numpy would have to see it; the result has the shape of A."""

PDPD_REFUSED: list[tuple[str, Shape, Shape, int]] = [
    ("only-b-to-a", (8, 1, 6, 1), (7, 1, 5), 1),
    ("rank-of-b", (3,), (1, 3), -1),
    ("beyond-a", (2, 3), (2, 3), 1),
    ("axis-beyond-a", (2, 3), (), 3),
    ("negative-axis", (2, 3), (3,), -2),
    ("dim", (2, 3), (2,), -1),
    ("a-is-1", (1, 3), (2,), 0),
]


def pdpd(axis: int) -> dict[str, Any]:
    return {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": axis}


def rule_shapes(op: str, type: str, out: str | None = None) -> list[Shapes]:
    """Every worked example, and what is not known yet, for an operation on two tensors of ``type``."""
    result = out or type

    def text(element_type: str, shape: Shape | str) -> str:
        return f"{element_type}[{shape if isinstance(shape, str) else ','.join(map(str, shape))}]"

    rows = [(a, b, r, {}) for a, b, r in NUMPY] + [(a, b, a, pdpd(axis)) for a, b, axis, _ in PDPD]
    blurred: list[tuple[str, str, str, dict[str, Any]]] = [
        ("...", "2,3", "...", {}),
        ("2,?", "2,3", "2,3", {}),
        ("?,3", "1,3", "?,3", {}),
        ("2..8,3", "3", "2..8,3", {}),
        ("1..4", "2..8", "2..8", {}),
        ("2..4", "3..8", "3..4", {}),
        ("1..4", "..8", "..8", {}),
        ("2,?", "?,3", "2,3", {"auto_broadcast": "none"}),
        ("...", "2,3", "2,3", {"auto_broadcast": "none"}),
        ("2..4", "3..8", "3..4", {"auto_broadcast": "none"}),
        ("...", "3", "...", pdpd(-1)),
        ("2,?", "...", "2,?", pdpd(-1)),
        ("?,?,4", "?,3", "?,3,4", pdpd(0)),
        ("?,4", "2..8,1", "2..8,4", pdpd(0)),
        ("3", "1..4", "3", pdpd(0)),
        ("2,3", "3,1", "2,3", {"auto_broadcast": "pdpd", "axis": 1}),
        ("2,3", "3,?", "2,3", pdpd(1)),
    ]
    return [
        Shapes(f"{op}-{a}-{b}-{'-'.join(map(str, attributes.values()))}", op, [text(type, a), text(type, b)],
               text(result, r), attributes)
        for a, b, r, attributes in [*rows, *blurred]
    ]  # fmt: skip


def rule_refusals(op: str, type: str) -> list[Refusal]:
    """Every worked example that is refused, and more, for an operation on two tensors of ``type``."""

    def row(id: str, a: Shape, b: Shape, attributes: dict[str, Any]) -> Refusal:
        return Refusal(f"{id}-{op}", op, [f"{type}[{','.join(map(str, s))}]" for s in (a, b)], attributes)

    return [
        row("c1-rank", (2, 3), (3,), {"auto_broadcast": "none"}),
        row("c1-dim", (2, 3), (1, 3), {"auto_broadcast": "none"}),
        *(row(f"c2-dim-{a}-{b}", a, b, {}) for a, b in NUMPY_REFUSED),
        *(row(f"c3-{why}", a, b, pdpd(axis)) for why, a, b, axis in PDPD_REFUSED),
    ]
