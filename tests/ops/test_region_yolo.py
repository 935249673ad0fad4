"""RegionYolo-1."""

from typing import Any

import numpy as np

from kit import *

_OP = "RegionYolo-1"
_V2 = {
    "anchors": [1.5, 2.5],
    "axis": 1,
    "end_axis": 3,
    "coords": 4,
    "classes": 3,
    "num": 2,
    "do_softmax": True,
    "mask": [],
}
_V3 = _V2 | {"do_softmax": False, "num": 6, "mask": [0, 1, 2]}


def _expected(data: np.ndarray, attributes: dict[str, Any]) -> np.ndarray:
    """Pixel by pixel."""
    softmax, coords, classes = attributes["do_softmax"], attributes["coords"], attributes["classes"]
    regions, size = attributes["num"] if softmax else len(attributes["mask"]), coords + classes + 1
    out = data.astype(np.float64)
    for n, r, y, x in np.ndindex(len(data), regions, *data.shape[2:]):
        entries = out[n, r * size : (r + 1) * size, y, x]
        raw = entries.copy()
        through = [0, 1, coords] + ([] if softmax else list(range(coords + 1, size)))
        entries[through] = 1 / (1 + np.exp(-raw[through]))
        if softmax:
            entries[coords + 1 :] = np.exp(raw[coords + 1 :]) / np.exp(raw[coords + 1 :]).sum()
    if not softmax:
        return out[:, : regions * size].astype(data.dtype)
    axis, end = attributes["axis"] % 4, attributes["end_axis"] % 4
    return out.reshape(*data.shape[:axis], -1, *data.shape[end + 1 :]).astype(data.dtype)


_ROWS: list[tuple[str, np.ndarray, dict[str, Any]]] = [
    ("softmax", random(2, 16, 3, 4), _V2),
    ("mask", random(2, 24, 3, 4), _V3),
    ("five-coords", random(1, 18, 2, 3), _V2 | {"coords": 5}),
    *((f"flat-{axis}-{end}", random(2, 16, 3, 4), _V2 | {"axis": axis, "end_axis": end}) for axis, end in [(0, 0), (1, 2), (2, 3), (0, 3), (-3, -1)]),
]  # fmt: skip

VALUES = [
    Values("by-hand", _OP, [np.log(f32([1, 3, 5, 7, 1, 2, 6])).reshape(1, 7, 1, 1)],
           f32([0.5, 0.75, np.log(5), np.log(7), 0.5, 0.25, 0.75]).reshape(1, 7), _V2 | {"num": 1, "classes": 2}),
    Values("no-rows", _OP, [np.ones((1, 7, 0, 2), np.float32)], np.ones((1, 7, 0, 2), np.float32),
           _V2 | {"num": 1, "classes": 2, "axis": 3, "end_axis": 3}),
    # the same with what is required only: softmax, of num regions
    Values("defaults", _OP, [np.log(f32([1, 3, 5, 7, 1, 2, 6])).reshape(1, 7, 1, 1)],
           f32([0.5, 0.75, np.log(5), np.log(7), 0.5, 0.25, 0.75]).reshape(1, 7), {"axis": 1, "end_axis": 3, "coords": 4, "classes": 2, "num": 1}),
    *[Values(id, _OP, [data], _expected(data, attributes), attributes) for id, data, attributes in _ROWS],
    # OpenVINO's reference tests
    Values("reference", _OP, [np.tile(np.arange(1, 9, dtype=np.float32) / 10, 4).reshape(1, 8, 2, 2)],
           f32([0.52497, 0.54983, 0.57444, 0.59868, 0.62245, 0.64565, 0.66818, 0.68997, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8,
                0.52497, 0.54983, 0.57444, 0.59868, 0.62245, 0.64565, 0.66818, 0.68997]).reshape(1, 6, 2, 2),
           _V3 | {"num": 1, "classes": 1, "mask": [0]}, 2e-5),
    # OpenVINO: where there are fewer than two coordinates, what stands in their place goes through a sigmoid as well
    Values("no-coords", _OP, [np.log(f32([3, 2, 6])).reshape(1, 3, 1, 1)], [[1 / (1 + np.exp(-0.75)), 0.25, 0.75]], _V2 | {"num": 1, "coords": 0, "classes": 2}),
    Values("f64", _OP, [random(2, 16, 3, 4, dtype=np.float64)], _expected(random(2, 16, 3, 4, dtype=np.float64), _V2), _V2),
    Values("f16", _OP, [random(2, 16, 3, 4, dtype=np.float16)], _expected(random(2, 16, 3, 4, dtype=np.float16), _V2), _V2, 1e-3),
    # what is left of the channels stays as it is, or is not there
    Values("more-channels", _OP, [random(2, 18, 3, 4)], _expected(random(2, 18, 3, 4), _V2), _V2),
    Values("more-channels-mask", _OP, [random(2, 25, 3, 4)], _expected(random(2, 25, 3, 4), _V3), _V3),
    Values("large", _OP, [np.full((1, 16, 1, 1), -1000, np.float32)], np.tile(f32([0, 0, -1000, -1000, 0, 1 / 3, 1 / 3, 1 / 3]), 2)[None], _V2),
    Values("no-batch", _OP, [np.ones((0, 24, 3, 4), np.float32)], np.ones((0, 24, 3, 4), np.float32), _V3),
]  # fmt: skip

_SPEC_V3 = {"axis": 1, "classes": 80, "coords": 4, "do_softmax": 0, "end_axis": 3, "mask": [0, 1, 2], "num": 6}
_SPEC_V2 = {"axis": 1, "classes": 20, "coords": 4, "do_softmax": 1, "end_axis": 3, "num": 5}
SHAPES = [
    Shapes("spec-v3", _OP, ["f32[1,255,26,26]"], "f32[1,255,26,26]", _SPEC_V3),
    Shapes("spec-v2", _OP, ["f32[1,125,13,13]"], "f32[1,21125]", _SPEC_V2),
    Shapes("dynamic-v3", _OP, ["f16[?,?,?,2..4]"], "f16[?,255,?,2..4]", _SPEC_V3),
    Shapes("dynamic-v2", _OP, ["f32[?,125,13,2..4]"], "f32[?,3250..6500]", _SPEC_V2),
    Shapes("some-axes", _OP, ["f32[2,125,13,7]"], "f32[2,1625,7]", _SPEC_V2 | {"end_axis": -2}),
    Shapes("one-axis", _OP, ["f32[2,125,13,7]"], "f32[2,125,13,7]", _SPEC_V2 | {"end_axis": 1}),
    Shapes("unknown-rank-v3", _OP, ["f32[...]"], "f32[?,255,?,?]", _SPEC_V3),
    Shapes("unknown-rank-v2", _OP, ["f32[...]"], "f32[?,?]", _SPEC_V2),
]

REFUSALS = [
    Refusal("c1", _OP, ["f32[255,26,26]"], _SPEC_V3),
    Refusal("c2-v3", _OP, ["f32[1,254,26,26]"], _SPEC_V3),
    Refusal("c2-v2", _OP, ["f32[1,124,13,13]"], _SPEC_V2),
    Refusal("c3-axis", _OP, ["f32[1,125,13,13]"], _SPEC_V2 | {"axis": -5}),
    Refusal("c3-end-axis", _OP, ["f32[...]"], _SPEC_V2 | {"end_axis": 4}),
    Refusal("c3-order", _OP, ["f32[1,125,13,13]"], _SPEC_V2 | {"axis": 2, "end_axis": 1}),
    Refusal("ir301-integers", _OP, ["i32[1,125,13,13]"], _SPEC_V2),
    *[
        Refusal(f"c4-{name}", _OP, ["f32[1,125,13,13]"], _SPEC_V2 | {name: -(2**63)})
        for name in ("coords", "classes", "num")
    ],
    Refusal("c4-no-regions", _OP, ["f32[1,125,13,13]"], _SPEC_V2 | {"num": 0}),
]

CASES = [
    *[Case(id, _OP, [data], attributes) for id, data, attributes in _ROWS],
    *[Case(f"coords-{coords}", _OP, [random(2, 8 + 2 * coords, 3, 4)], _V2 | {"coords": coords}) for coords in (0, 1, 2)],
    *[Case(f"coords-{coords}-mask", _OP, [random(2, 12 + 3 * coords, 3, 4)], _V3 | {"coords": coords}) for coords in (0, 1, 2)],
    Case("one-class", _OP, [random(2, 12, 3, 4)], _V2 | {"classes": 1}),
    Case("f16", _OP, [random(2, 16, 3, 4, dtype=np.float16)], _V2),
    Case("f16-mask", _OP, [random(2, 24, 3, 4, dtype=np.float16)], _V3),
]  # fmt: skip
