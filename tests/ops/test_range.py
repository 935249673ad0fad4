"""Range-1 and Range-4."""

import ml_dtypes
import numpy as np
import pytest

from irrun.inference.layer import infer
from irrun.opdef import Refused, Site, Value
from kit import *


def _scalars(*numbers: float, dtype: object = np.int64) -> list[np.ndarray]:
    return [np.array(n).astype(dtype) for n in numbers]  # type: ignore[arg-type]


_I32, _I64, _F32 = {"output_type": "i32"}, {"output_type": "i64"}, {"output_type": "f32"}
_SPEC = [((2, 23, 3), [2, 5, 8, 11, 14, 17, 20]), ((23, 2, -3), [23, 20, 17, 14, 11, 8, 5])]

VALUES = [
    *[Values(f"spec-4-{i}", "Range-4", _scalars(*numbers), np.array(expected, np.int32), _I32) for i, (numbers, expected) in enumerate(_SPEC, 1)],
    Values("spec-4-3", "Range-4", _scalars(1, 2.5, 0.5, dtype=np.float32), [1, 1.5, 2], _F32),
    *[Values(f"spec-1-{i}-{np.dtype(t).name}", "Range-1", _scalars(*numbers, dtype=t), np.array(expected).astype(t))
      for i, (numbers, expected) in enumerate(_SPEC, 1) for t in (np.int64, np.float32, np.float16, ml_dtypes.bfloat16)],
    Values("empty", "Range-4", _scalars(3, 0, 1), np.empty(0), _I64),
    Values("mixed-cut-first", "Range-4", [f32(0.9), np.array(4), np.array(1.9)], [0, 1, 2, 3], _I64),
    Values("negative-cut", "Range-4", [f32(-1.9), f32(1.9), f32(1.5)], [-1, 0], _I64),
    Values("ends-before-stop", "Range-4", _scalars(0, 1, 0.3, dtype=np.float64), [0, 0.3, 0.6, 0.9], {"output_type": "f64"}, rtol=1e-15),
    Values("does-not-drift", "Range-4", _scalars(0, 1000, 0.1, dtype=np.float32), np.arange(10_000) * float(np.float32(0.1)), _F32),
    Values("integers-as-f16", "Range-4", _scalars(0, 3, 1), [0, 1, 2], {"output_type": "f16"}),
    Values("i64-exact", "Range-1", _scalars(2**53 + 1, 2**53 + 4, 1), np.array([2**53 + 1, 2**53 + 2, 2**53 + 3]), rtol=0),
    Values("u64", "Range-1", _scalars(2**63 + 1, 2**63 + 3, 1, dtype=np.uint64), np.array([2**63 + 1, 2**63 + 2], np.uint64), rtol=0),
    Values("u8-down", "Range-4", _scalars(5, 0, -2), np.array([5, 3, 1], np.uint8), {"output_type": "u8"}),
]  # fmt: skip

SHAPES = [
    Shapes("known", "Range-4", ["i64[]{2}", "i64[]{23}", "i64[]{3}"], "f32[7]", _F32),
    Shapes("contents", "Range-4", ["i64[]{0}", "i64[]{3}", "i64[]{1}"], "i64{0,1,2}", _I64),
    Shapes("stop-unknown", "Range-4", ["i64[]{0}", "i64[]{?}", "i64[]{1}"], "i64[?]", _I64),
    Shapes("stop-interval", "Range-1", ["i64[]{1}", "i64[]{4..9}", "i64[]{2}"], "i64[2..4]"),
    Shapes("down", "Range-1", ["i64[]{4..9}", "i64[]{1}", "i64[]{-2}"], "i64[2..4]"),
    Shapes("never-below-none", "Range-1", ["i64[]{5}", "i64[]{1..7}", "i64[]{1}"], "i64[..2]"),
    Shapes("parameters", "Range-1", ["f32[]", "f32[]", "f32[]"], "f32[?]"),
    Shapes("unknown-rank", "Range-4", ["f32[...]", "i32[...]", "u8[...]"], "f16[?]", {"output_type": "f16"}),
]

REFUSALS = [
    *[Refusal(f"c1-{name}-1", "Range-1", [*["i64[]"] * i, "i64[1]", *["i64[]"] * (2 - i)]) for i, name in enumerate(("start", "stop", "step"))],
    *[Refusal(f"c1-{name}-4", "Range-4", [*["i64[]"] * i, "i64[1]", *["i64[]"] * (2 - i)], _I64) for i, name in enumerate(("start", "stop", "step"))],
    Refusal("c2-zero-1", "Range-1", ["i64[]", "i64[]", "i64[]{0}"]),
    Refusal("c2-zero-4", "Range-4", ["i64[]{1}", "i64[]{4}", "i64[]{0}"], _I64),
    Refusal("c4-boolean", "Range-4", ["i64[]{1}", "i64[]{4}", "i64[]{1}"], {"output_type": "boolean"}),
    Refusal("ir301-boolean", "Range-4", ["boolean[]", "i64[]", "i64[]"], _I64),
    Refusal("ir302-types", "Range-1", ["i64[]", "i64[]", "i32[]"]),
]  # fmt: skip

CASES = [
    *[Case(f"{t}-{numbers}", "Range-4", _scalars(*numbers), {"output_type": t}, shapes=[0, 1, 2], how="core")
      for t in ("i32", "i64", "u8", "f32", "f16") for numbers in ((0, 5, 1), (2, 23, 3), (7, 0, -2))],
    *[Case(f"opset1-{np.dtype(t).name}-{numbers}", "Range-1", _scalars(*numbers, dtype=t), shapes=[0, 1, 2], how="core")
      for t in (np.int32, np.int64, np.float32) for numbers in ((0, 5, 1), (7, 0, -2))],
    # OpenVINO: the CPU plugin computes integers by floats, sums up f32, and makes numbers where there are none
    Case("cut-first", "Range-4", _scalars(0, 10, 2.5, dtype=np.float32), _I32, shapes=[0, 1, 2], how="core"),
    Case("drift", "Range-4", _scalars(0, 1000, 0.1, dtype=np.float32), _F32, shapes=[0, 1, 2], how="core"),
    Case("empty", "Range-4", _scalars(3, 0, 1), _I64, shapes=[0, 1, 2], how="core"),
    Case("cpu", "Range-4", _scalars(0, 5, 1), _F32, shapes=[0, 1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("position", [0, 1, 2], ids=["c3-start", "c3-stop", "c3-step"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("op", ["Range-1", "Range-4"])
def test_not_finite(op: str, number: float, position: int) -> None:
    inputs = _scalars(1, 2, 3, dtype=np.float32)
    inputs[position] = f32(number)
    range_ = operation(op, _I64 if op == "Range-4" else {})
    with pytest.raises(Refused, match=r"is (nan|-?inf)") as caught:
        infer(range_, Site(), [Value.of(a) for a in inputs], {})
    assert caught.value.label == "C3"


@pytest.mark.parametrize("op", ["Range-1", "Range-4"])
def test_zero_step_at_run_time(op: str) -> None:
    range_ = operation(op, _I64 if op == "Range-4" else {})
    with pytest.raises(Refused, match="step"):
        range_.run(*_scalars(1, 2, 0))


def test_more_numbers_than_an_array_can_hold() -> None:
    inputs = _scalars(0, 1e300, 1e-300, dtype=np.float64)
    with pytest.raises(Refused, match="more numbers than any array can hold") as caught:
        infer(operation("Range-1"), Site(), [Value.of(a) for a in inputs], {})
    assert caught.value.code == "IR604"
