"""What releases are known to refuse, what devices document, and the installed OpenVINO as the witness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.api import load
from irrun.checking.checker import examine
from irrun.targets import RELEASES
from irrun.targets.facts import facts
from irrun.targets.releases import table
from irrun.targets.rules import Rule, excused, reasons
from layer_facts import by_layer
from nets import Net

SEVERAL, COMMON = "input 0 has several elements", "its inputs have common types of numbers"
EMPTIED = "an empty output depends on an input of the model"
NONE_EMPTY, RARE = "its inputs have known shapes, and none is empty", "an input is f8, f4, nf4 or u2"


def _abs(tmp_path: Path, precision: str, type: str, shape: str) -> Path:
    net = Net()
    x = net.parameter(type, shape, name="x")
    net.result(net.add("Abs", [x], [(precision, shape)], name="y"))
    return net.save(tmp_path)


def _codes(path: Path, *targets: str) -> list[str]:
    return [finding.code for finding in irrun.check(path, targets=targets)]


def test_an_ordinary_model_loads_everywhere(tmp_path: Path) -> None:
    assert _codes(_abs(tmp_path, "FP32", "f32", "1,3,8,8"), "openvino", "npu", "gpu") == []


def test_every_rule_names_known_releases() -> None:
    for rule in table()["refusals"]:
        assert 1 <= len(rule["facts"]) <= 6, rule
        assert rule["models"] > 0
        for first, last in rule["releases"]:
            assert RELEASES.index(first) <= RELEASES.index(last)


def test_a_finding_names_releases_reason_and_evidence(tmp_path: Path) -> None:
    """Readers know f8e4m3 since 2024.0. The plugin of the CPU takes no input of it before 2025.0."""
    report = irrun.check(_abs(tmp_path, "F8E4M3", "f8e4m3", "2"), targets=["openvino<2024"])
    (finding,) = report.errors
    assert (finding.code, finding.layer) == ("IR902", "x")
    assert finding.message.startswith(
        'Parameter "x": OpenVINO 2022.1 to 2023.3 does not load it on the CPU: an output is '
    )
    assert "measured" in finding.notes[0]


def test_one_finding_for_what_follows(tmp_path: Path) -> None:
    """An unknown rank is reported at the input, and not again at the layers behind it."""
    path = _abs(tmp_path, "FP32", "f32", "...")
    (finding,) = irrun.check(path, targets=["openvino==2024.6"]).errors
    assert (finding.code, finding.layer) == ("IR904", "x")


@pytest.mark.parametrize(
    ("shape", "target", "codes"),
    [
        ("-1", "npu", ["IR906"]),
        ("...", "npu", ["IR906"]),
        ("...", "gpu", ["IR906"]),
        ("-1", "gpu", []),
        ("2", "npu", []),
    ],
)
def test_documented_limits(tmp_path: Path, shape: str, target: str, codes: list[str]) -> None:
    path = _abs(tmp_path, "FP32", "f32", shape)
    report = irrun.check(path, targets=[target])
    assert [finding.code for finding in report] == codes
    for finding in report:
        assert finding.layer == "x"
        assert finding.notes[0].startswith("documented, not measured: docs/articles_en/")


def test_a_comment_suppresses_a_finding(tmp_path: Path) -> None:
    path = _abs(tmp_path, "FP32", "f32", "-1")
    text = path.read_text().replace(
        'type="Parameter" version="opset1">', 'type="Parameter" version="opset1"> <!-- irrun: ignore IR906 -->'
    )
    path.write_text(text)
    assert _codes(path, "npu") == []


def test_facts_about_contents(tmp_path: Path) -> None:
    """The axes of `fixed` follow from a shape that is known, those of `free` are an input."""
    net = Net()
    x, axes = net.parameter("f32", "2,3", name="x"), net.parameter("i64", "1", name="axes")
    rank = net.add("ShapeOf", [net.add("ShapeOf", [x], [("I64", "2")], opset="opset3")], [("I64", "1")], opset="opset3")
    for name, which in (("fixed", rank), ("free", axes)):
        net.result(net.add("ReduceSum", [x, which], [("FP32", "-1,-1")], name=name, keep_dims="true"))
    found = by_layer(net.save(tmp_path))
    assert "input 1 has unknown contents" not in found["fixed"].sentences
    assert "input 1 has unknown contents" in found["free"].sentences
    assert "its inputs have known shapes" in found["free"].sentences


def test_facts_about_axes_that_are_an_input(tmp_path: Path) -> None:
    """OpenVINO infers a rank if Squeeze has one axis, and none if a reduction has several: two may be the same."""
    net = Net()
    x, axis, axes = net.parameter("f32", "1,3"), net.parameter("i64", "1"), net.parameter("i64", "2")
    net.result(net.add("Squeeze", [x, axis], [("FP32", "...")], name="squeezed"))
    net.result(net.add("ReduceSum", [x, axes], [("FP32", "")], name="reduced", keep_dims="false"))
    net.result(net.add("ReduceSum", [x, axes], [("FP32", "-1,-1")], name="kept", keep_dims="true"))
    found = by_layer(net.save(tmp_path))
    assert "output 0 has rank 1" in found["squeezed"].sentences
    assert "an output has unknown rank" in found["reduced"].sentences
    assert "output 0 has rank 2" in found["kept"].sentences


def test_facts_about_inputs_together(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2,3,4")
    sizes = [net.const("i32", "2", bytes(8)), net.const("i32", "1", bytes(4))]
    net.result(net.add("Roll", [x, *sizes], [("FP32", "2,3,4")], name="roll", opset="opset7"))
    mask = net.parameter("f32", "1,4")
    attended = net.add(
        "ScaledDotProductAttention", [x, x, x, mask], [("FP32", "2,3,4")], name="seen", opset="opset13", causal="false"
    )
    net.result(attended)
    found = by_layer(net.save(tmp_path))
    assert "inputs 1 and 2 differ in size" in found["roll"].sentences
    assert "inputs 1 and 2 differ in type" not in found["roll"].sentences
    assert "its mask does not end with the numbers of queries and keys" in found["seen"].sentences


@pytest.mark.parametrize(
    ("type", "shape", "wanted"),
    [
        ("f32", "2,3", {SEVERAL, NONE_EMPTY, COMMON}),
        ("i16", "2,0", {"input 0 has a dim 1 of 0", COMMON}),
        ("bf16", "?,3", {COMMON}),
        ("boolean", "1", {NONE_EMPTY}),
        ("f8e5m2", "0,2", {"input 0 has a dim 0 of 0", RARE}),
        ("u2", "", {NONE_EMPTY, RARE}),
    ],
)
def test_facts_about_types_and_elements(tmp_path: Path, type: str, shape: str, wanted: set[str]) -> None:
    net = Net()
    net.result(net.add("Abs", [net.parameter(type, shape)], [("FP32", "...")], name="y"))
    parsed = load(net.save(tmp_path))
    (found,) = (f for f in facts(parsed, *examine(parsed)) if f.layer is not None and f.layer.name == "y")
    zeros = {f"input 0 has a dim {axis} of 0" for axis in range(3)}
    assert found.sentences & {SEVERAL, NONE_EMPTY, COMMON, RARE, *zeros} == wanted


@pytest.mark.parametrize(("stored", "differs"), [("2", False), ("?", False), ("3", True), ("2,2", True)])
def test_a_variable_of_another_shape(tmp_path: Path, stored: str, differs: bool) -> None:
    net = Net()
    options: dict[str, Any] = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2"}
    start = net.const("f32", "2", bytes(8))
    net.result(net.add("ReadValue", [start], [("FP32", "2")], name="read", opset="opset6", **options))
    net.add("Assign", [net.parameter("f32", stored)], [], name="write", opset="opset6", variable_id="v")
    parsed = load(net.save(tmp_path))
    (found,) = (f for f in facts(parsed, *examine(parsed)) if f.layer is not None and f.layer.name == "write")
    assert ("its variable has another shape than its input" in found.sentences) is differs


def test_facts_about_weights_of_few_bits(tmp_path: Path) -> None:
    net = Net()
    x, weights = net.parameter("f32", "1,2"), net.const("i4", "2,2", bytes(2))
    weights = net.add("Convert", [weights], [("FP32", "2,2")], destination_type="f32")
    net.result(
        net.add("MatMul", [x, weights], [("FP32", "1,2")], name="product", transpose_a="false", transpose_b="true")
    )
    assert "input 1 is decompressed from i4" in by_layer(net.save(tmp_path))["product"].sentences


def test_facts_about_zero_points_of_few_bits(tmp_path: Path) -> None:
    """The zero point of `plain` is a number of 32 bits, that of `low` is stored in 4 bits."""
    net = Net()
    x = net.parameter("f32", "1,2")
    low = net.add("Convert", [net.const("i4", "2,1", bytes(1))], [("FP32", "2,1")], name="zero", destination_type="f32")
    for name, zero in (("low", low), ("plain", net.const("f32", "2,1", bytes(8)))):
        weights = net.add("Convert", [net.const("i4", "2,2", bytes(2))], [("FP32", "2,2")], destination_type="f32")
        shifted = net.add("Subtract", [weights, zero], [("FP32", "2,2")], name=f"{name}_weights")
        net.result(net.add("MatMul", [x, shifted], [("FP32", "1,2")], name=name, transpose_b="true"))
    found = by_layer(net.save(tmp_path))
    sentence = "input 1 is decompressed from i4 with zero points"
    assert [sentence in found[name].sentences for name in ("low", "plain")] == [True, False]


def test_an_excuse_of_one_error_is_none_of_another() -> None:
    def rule(*sentences: str, releases: set[str]) -> Rule:
        return Rule("Range", frozenset(sentences), "", frozenset(), frozenset(releases), 1, loads=True)

    missing, wrong = "irrun reports IR202", "irrun reports IR403 C1"
    rules = [rule(missing, releases={"2022.1", "2023.3"}), rule(wrong, "input 0 is i8", releases={"2023.3", "2024.6"})]
    assert excused([missing, "irrun reports IR401"], rules) == {"2022.1", "2023.3"}  # a wrong port blocks nothing
    assert excused([missing, wrong], rules) == {"2023.3"}
    assert excused([missing, "irrun reports IR301"], rules) == set()


@pytest.mark.parametrize(
    ("type", "inputs", "attributes", "sentence", "holds"),
    [
        ("ReLU", ["0,2"], {}, EMPTIED, True),
        ("ReLU", ["2,2"], {}, EMPTIED, False),
        ("ShapeOf", [""], {}, EMPTIED, False),
        ("NonZero", [""], {}, EMPTIED, False),
        ("Slice", ["4", [4], "1", [1]], {}, EMPTIED, False),
        ("Slice", ["4", [4], [4], [1]], {}, EMPTIED, True),
        ("ReLU", ["2"], {}, "input 0 is a Parameter", True),
        ("ReLU", ["2"], {}, "a Result reads output 0", True),
        ("TopK", ["2", [1]], {"axis": "0", "mode": "max", "sort": "value"}, "no layer reads output 1", True),
        ("Broadcast", ["2", [3, 2], "1"], {}, 'mode="explicit"', True),
    ],
)
def test_facts_about_outputs_and_neighbours(
    tmp_path: Path, type: str, inputs: list[str | list[int]], attributes: dict[str, Any], sentence: str, holds: bool
) -> None:
    """Up to 2023.2, the plugin refuses an empty output unless OpenVINO computes it, or does not know that it is empty."""
    net = Net()
    feeds = [
        net.parameter("f32", i) if isinstance(i, str) else net.const("i64", str(len(i)), np.array(i, "<i8").tobytes())
        for i in inputs
    ]
    outputs = [("FP32", "...")] * (2 if type == "TopK" else 1)
    opset = {"Slice": "opset8", "NonZero": "opset3"}.get(type, "opset1")
    net.result(net.add(type, feeds, outputs, name="y", opset=opset, **attributes))
    assert (sentence in by_layer(net.save(tmp_path))["y"].sentences) is holds


def test_facts_about_where_inputs_are_from(tmp_path: Path) -> None:
    net = Net()
    halves = net.add(
        "Split", [net.parameter("f32", "4"), net.const("i64", "", bytes(8))], [("FP32", "2")] * 2, num_splits=2
    )
    net.result(net.add("Concat", [halves, halves], [("FP32", "4")], name="y", axis="0"))
    found = by_layer(net.save(tmp_path))["y"].sentences
    assert {"input 0 is of a layer with several outputs", "two inputs are one value"} <= found


@pytest.mark.parametrize(("type", "is_input"), [("f32", True), ("f64", False)])
def test_a_parameter_behind_converts_that_change_nothing(tmp_path: Path, type: str, *, is_input: bool) -> None:
    """A long chain: Python calls fewer functions within each other."""
    net = Net()
    x = net.parameter("f32", "2,0")
    for _ in range(1_100):
        x = net.add("Convert", [x], [("...", "2,0")], destination_type=type)
    net.result(net.add("ReLU", [x], [("...", "2,0")], name="y"))
    found = by_layer(net.save(tmp_path))["y"].sentences
    assert ("input 0 is a Parameter" in found) is is_input


def test_a_rule_may_be_about_processors_without_avx512(tmp_path: Path) -> None:
    """The plugin of 2022 has no kernel for bf16 without AVX-512."""
    path = _abs(tmp_path, "BF16", "bf16", "2")
    (finding,) = irrun.check(path, targets=["openvino==2022.3"]).errors
    assert finding.code == "IR902"
    assert finding.message.endswith("an input is bf16 outside of bodies, and the processor has no AVX-512")
    parsed = load(path)
    examined = examine(parsed)
    (without,) = reasons(parsed, *examined, frozenset({"the processor has no AVX-512"}))
    assert without.releases == ("2022.1", "2022.2", "2022.3")
    assert [*reasons(parsed, *examined, frozenset({"the processor has AVX-512"}))] == []


def test_facts_about_variables(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    read = net.add("ReadValue", [x], [("FP32", "2")], name="read", opset="opset3", variable_id="a")
    net.add("Assign", [read], [("FP32", "2")], name="behind", opset="opset3", variable_id="a")
    net.add("Assign", [x], [("FP32", "2")], name="beside", opset="opset3", variable_id="a")
    net.result(read)
    found = by_layer(net.save(tmp_path))
    assert "no ReadValue before it has its variable_id" not in found["behind"].sentences
    assert "no ReadValue before it has its variable_id" in found["beside"].sentences


MODELS = {
    "f32": ("FP32", "f32", "1,3,8,8", True),
    "any batch": ("FP32", "f32", "-1,3", True),
    "f16": ("FP16", "f16", "2", True),
    "i64": ("I64", "i64", "2", True),
    "unknown rank": ("FP32", "f32", "...", False),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_installed_release_agrees(name: str, tmp_path: Path, ov: Any) -> None:
    precision, type, shape, loads = MODELS[name]
    path = _abs(tmp_path, precision, type, shape)
    version = ".".join(ov.__version__.split("-")[0].split(".")[:2])
    if all(not release.startswith(version) for release in RELEASES):
        pytest.skip(f"OpenVINO {version} is not in the table")
    core = ov.Core()
    if loads:
        core.compile_model(core.read_model(path), "CPU")
    else:
        with pytest.raises(RuntimeError):
            core.compile_model(core.read_model(path), "CPU")
    target = [release for release in RELEASES if release.startswith(version)][-1]
    assert (_codes(path, f"openvino=={target}") == []) is loads


def test_an_operation_of_no_numbered_set(tmp_path: Path) -> None:
    """No wheel reads an operation of openvino_tokenizers without the library of its extension."""
    net = Net()
    x = net.parameter("string", "2", name="x")
    net.result(
        net.add("CaseFold", [x, x, x], [("I32", "2"), ("I32", "2"), ("U8", "-1")], name="fold", opset="extension")
    )
    found = [d for d in irrun.check(net.save(tmp_path), targets=["openvino==2026.4.1"]) if d.code == "IR901"]
    assert [d.layer for d in found] == ["fold"]
    assert found[0].help is not None
    assert "add_extension" in found[0].help
