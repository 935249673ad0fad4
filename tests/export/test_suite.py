"""The exported models of the conformance suite in onnxruntime: one case of each operation that irrun converts."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="ONNX models need the extra `onnx`")
pytest.importorskip("onnxruntime", reason="ONNX models are run by onnxruntime, of the extra `onnx`")

import onnx_export
from irrun.conformance.suite import Case, read_suite
from irrun.export import NEWEST, OLDEST, OPSET
from irrun.export.registry import converter_of

_PLAIN = {"f32", "i64", "i32", "boolean"}
"""The element types of the cases: those for which runtimes of any version have kernels."""


def chosen() -> list[Case]:
    """Return, for each version of an operation that has a converter, its first case with values."""
    cases: dict[str, Case] = {}
    for case in read_suite().cases:
        usual = case.verdict == "values" and case.declaration == "static" and set(case.types) <= _PLAIN
        if usual and "/model/" in case.name and converter_of(case.operation.rpartition("-")[0]):
            cases.setdefault(case.operation, case)
    return list(cases.values())


@pytest.mark.parametrize("opset", sorted({OLDEST, OPSET, min(NEWEST, 22)}))
def test_no_value_is_wrong(opset: int, tmp_path: Path) -> None:
    outcomes = {case.name: onnx_export.outcome(case, opset, tmp_path) for case in chosen()}
    assert not [(name, why) for name, (status, why) in outcomes.items() if status == "wrong"]
    others = {name: why for name, (status, why) in outcomes.items() if status != "equal" and not onnx_export.limit(why)}
    assert len(others) <= len(outcomes) // 10, others


def test_reasons_are_limits_of_onnx() -> None:
    assert onnx_export.limit("ONNX has no element type u1") == "no such type"
    assert onnx_export.limit("input 1 is not constant, as ONNX wants it") == "not known before a run"
    assert onnx_export.limit("ONNX has no sink") == ""
