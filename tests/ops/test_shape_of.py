"""ShapeOf-1 and ShapeOf-3."""

import numpy as np

from kit import *

VALUES = [
    Values("spec", "ShapeOf-3", [arange(2, 3, 4)], i64(2, 3, 4), {"output_type": "i64"}),
    Values("i32", "ShapeOf-3", [arange(2, 0)], np.array([2, 0], np.int32), {"output_type": "i32"}),
    Values("scalar", "ShapeOf-3", [7], i64()),
    Values("opset1", "ShapeOf-1", [arange(2, 3)], i64(2, 3)),
]

SHAPES = [
    Shapes("spec", "ShapeOf-3", ["f32[2,3,224,224]"], "i64{2,3,224,224}"),
    Shapes("dims", "ShapeOf-3", ["f32[?,3,1..8]"], "i32{?,3,1..8}", {"output_type": "i32"}),
    Shapes("scalar", "ShapeOf-1", ["f32[]"], "i64{}"),
    Shapes("unknown-rank", "ShapeOf-3", ["boolean[...]"], "i64[?]"),
    Shapes("string", "ShapeOf-1", ["string[2]"], "i64{2}"),
]

REFUSALS = [
    Refusal("c1-float", "ShapeOf-3", ["f32[2]"], {"output_type": "f32"}),
]

CASES = [
    Case(f"{version}-{np.dtype(t).name}-{list(shape)}", version, [random(*shape, dtype=t)], attributes)
    for version, attributes in (("ShapeOf-1", {}), ("ShapeOf-3", {"output_type": "i32"}))
    for shape in ((), (3,), (2, 0), (1, 2, 3, 4, 5))
    for t in (*NUMERIC, np.bool_)
] + [Case("i64", "ShapeOf-3", [arange(2, 3)], {"output_type": "i64"})]
