"""Outcomes as JSON."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from irrun.engines import Crash, Output, Outputs, Refusal, Timeout, from_record, to_record


@pytest.mark.parametrize("outcome", [Refusal("no", "memory"), Crash("it ended", "log"), Timeout(1.5)])
def test_failures(outcome: Refusal | Crash | Timeout) -> None:
    record = json.loads(json.dumps(to_record(outcome)))
    assert record["version"] == 1
    assert from_record(record) == outcome


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, np.nan]], np.float32),
        np.arange(5).astype(ml_dtypes.uint4),
        np.arange(3).astype(ml_dtypes.bfloat16),
        np.array(["a", "ü\n"]),
        np.empty((2, 0), np.int64),
        np.array(True),
    ],
    ids=lambda array: str(array.dtype),
)
def test_outputs(array: np.ndarray) -> None:
    type = {"float32": "f32", "uint4": "u4", "bfloat16": "bf16", "int64": "i64", "bool": "boolean"}
    before = Outputs((Output(("y", "z"), type.get(array.dtype.name, "string"), array),), 0.5)
    after = from_record(json.loads(json.dumps(to_record(before))))
    assert isinstance(after, Outputs)
    assert after.seconds == 0.5
    assert (after.outputs[0].names, after.outputs[0].type) == (("y", "z"), before.outputs[0].type)
    np.testing.assert_array_equal(after["z"], array)
    assert after["y"].shape == array.shape


@pytest.mark.parametrize("record", [{}, {"version": 2, "outcome": "crash"}, {"version": 1, "outcome": "nothing"}])
def test_other_records(record: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"version|outcome"):
        from_record(record)
