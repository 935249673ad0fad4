"""RandomUniform-8."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irrun.opdef import Refused, Stream
from kit import *

SEEDS = {"global_seed": 150, "op_seed": 10}


def _attributes(output_type: str, alignment: str = "tensorflow", **seeds: int) -> dict[str, object]:
    return {"output_type": output_type, "alignment": alignment, **(seeds or SEEDS)}


_TORCH_F32 = [
    [0.597486734, 0.544582009, 0.0407406688],
    [0.581056178, 0.679717064, 0.390765309],
    [0.1751616, 0.364669561, 0.70758903],
]
_TORCH_F64 = [[9.067076401353173, 5.073877446908415], [7.533241863666989, 4.710951987980897]]

VALUES = [
    Values(
        "spec-f32", "RandomUniform-8", [i64(3, 3), f32(0), f32(1)],
        f32([[0.7011236, 0.30539632, 0.93931055], [0.9456035, 0.11694777, 0.50770056], [0.5197197, 0.22727466, 0.991374]]),
        _attributes("f32"), rtol=1e-7,
    ),
    Values(
        "spec-f64", "RandomUniform-8", [i64(2, 2), np.array(2.0), np.array(10.0)],
        [[5.65927959, 4.23122376], [2.67008206, 2.36423758]], _attributes("f64", global_seed=80, op_seed=100), rtol=1e-8,
    ),
    Values(
        "spec-i32", "RandomUniform-8", [i64(2, 3), np.array(50, np.int32), np.array(100, np.int32)],
        np.array([[65, 70, 56], [59, 82, 92]], np.int32), _attributes("i32", global_seed=80, op_seed=100),
    ),
    # of torch.manual_seed and torch.rand; the page prints other numbers, which torch does not give
    Values("torch-f32", "RandomUniform-8", [i64(3, 3), f32(0), f32(1)], f32(_TORCH_F32), _attributes("f32", "pytorch", global_seed=150), rtol=1e-7),
    Values("torch-f64", "RandomUniform-8", [i64(2, 2), np.array(2.0), np.array(10.0)], _TORCH_F64, _attributes("f64", "pytorch", global_seed=80), rtol=1e-12),
    Values("scalar", "RandomUniform-8", [i64(), f32([0]), f32([1])], f32(0.7011236), _attributes("f32"), rtol=1e-7),
    Values("empty", "RandomUniform-8", [i64(2, 0), f32(0), f32(1)], np.empty((2, 0)), _attributes("f32")),
]  # fmt: skip

SHAPES = [
    Shapes("spec", "RandomUniform-8", ["i32{2,3,10}", "f32[]", "f32[]"], "f32[2,3,10]", _attributes("f32")),
    Shapes("partial", "RandomUniform-8", ["i64{2,?}", "f32[1]", "f32[?]"], "f32[2,?]", _attributes("f32")),
    Shapes("known-length", "RandomUniform-8", ["i64[2]", "f32[]", "f32[]"], "f32[?,?]", _attributes("f32")),
    Shapes("unknown-length", "RandomUniform-8", ["i64[...]", "f32[...]", "f32[...]"], "f32[...]", _attributes("f32")),
    Shapes("no-contents", "RandomUniform-8", ["i64{2}", "i64[]{0}", "i64[]{9}"], "i64{unknown}", _attributes("i64")),
]

REFUSALS = [
    Refusal("c1-2d", "RandomUniform-8", ["i64[1,2]", "f32[]", "f32[]"], _attributes("f32")),
    Refusal("c1-negative", "RandomUniform-8", ["i64{-2}", "f32[]", "f32[]"], _attributes("f32")),
    Refusal("c2-minval", "RandomUniform-8", ["i64{2}", "f32[2]", "f32[]"], _attributes("f32")),
    Refusal("c2-maxval", "RandomUniform-8", ["i64{2}", "f32[]", "f32[1,1]"], _attributes("f32")),
    Refusal("c3-minval", "RandomUniform-8", ["i64{2}", "f16[]", "f16[]"], _attributes("f32")),
    Refusal("c4-u8", "RandomUniform-8", ["i64{2}", "i32[]", "i32[]"], _attributes("u8")),
    Refusal("ir301-u8", "RandomUniform-8", ["i64{2}", "u8[]", "u8[]"], _attributes("i32")),
    Refusal("c5-equal", "RandomUniform-8", ["i64{2}", "i64[]{3}", "i64[]{3}"], _attributes("i64")),
    Refusal("ir302-types", "RandomUniform-8", ["i64{2}", "f32[]", "f16[]"], _attributes("f32")),
    Refusal("ir301-shape", "RandomUniform-8", ["u8{2}", "f32[]", "f32[]"], _attributes("f32")),
]

_DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i64": np.int64,
}
# OpenVINO: the CPU plugin makes f64 of f32 numbers and i64 of i32 ones; f16, where it computes in f32
_RANGES = [
    ("f32", 0, 1, "cpu"), ("f32", 0, 1, "core"), ("f32", -650, 450, "core"), ("f16", 0, 1, "core"), ("f16", -1.5, -1, "core"),
    ("bf16", 0, 1, "core"), ("f64", 2, 10, "core"), ("i32", -100, 50, "cpu"), ("i32", -(2**31), 2**31 - 1, "core"),
    ("i64", -2600, 3700, "core"), ("i64", -5, 2**40, "core"),
]  # fmt: skip


def _atol(type: str, low: float, high: float) -> float | None:
    """The error that rounding may make in ``x * (high - low) + low``; None stands for that of the type at 1."""
    return 1e-6 * max(abs(low), abs(high)) if type == "f32" else None


CASES = [
    *[
        Case(
            f"{alignment}-{t}-{low}-{high}-{how}", "RandomUniform-8",
            [i64(7, 3, 40), np.array(low, _DTYPES[t]), np.array(high, _DTYPES[t])],
            _attributes(t, alignment), shapes=[0, 1, 2], how=how, atol=_atol(t, low, high),
        )
        for alignment in ("tensorflow", "pytorch") for t, low, high, how in _RANGES
    ],
    *[
        Case(f"rank-{len(s)}", "RandomUniform-8", [np.array(s, np.int32), f32(0), f32(1)], _attributes("f32"), shapes=[0], constants=[1, 2])
        for s in ((1,), (2, 3), (2, 1, 3), (1, 2, 1, 3), (1, 1, 2, 3, 1))
    ],
]  # fmt: skip


def test_later_runs_go_on_in_the_stream(ov: Any) -> None:
    inputs = [i64(5, 3), f32(0), f32(1)]
    node = ov.opset8.random_uniform(*map(ov.opset1.constant, inputs), "f32", **SEEDS)
    model = ov.Model([node.output(0)], [], "model")
    request = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    op, stream = operation("RandomUniform-8", _attributes("f32")), Stream()
    runs = [op.run(*inputs, stream=stream) for _ in range(3)]
    assert not np.array_equal(runs[0], runs[1])
    for run in runs:
        np.testing.assert_array_equal(run, next(iter(request.infer().values())))


@pytest.mark.parametrize("alignment", ["tensorflow", "pytorch"])
def test_no_seeds_give_other_numbers_every_time(alignment: str) -> None:
    op = operation("RandomUniform-8", _attributes("f32", alignment, global_seed=0, op_seed=0))
    first, second = (op.run(i64(20), f32(3), f32(5)) for _ in range(2))
    assert not np.array_equal(first, second)
    assert first.min() >= 3
    assert first.max() < 5


def test_range_at_run_time() -> None:
    with pytest.raises(Refused, match="not less") as caught:
        operation("RandomUniform-8", _attributes("i32")).run(i64(2), np.array(5, np.int32), np.array(3, np.int32))
    assert caught.value.label == "C5"
