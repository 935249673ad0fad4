"""The scoreboard counts rows by their worst finding, charges what an engine claims, and is written into a page."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from grouped import each
from irrun import build as b
from irrun.conformance import Case, Result, Run, Scoreboard, Suite, markdown, score, scoreboard
from irrun.conformance.claims import claims_of, parsed
from irrun.conformance.scoreboard import with_table
from irrun.conformance.suite import Step, tensor_record
from irrun.diagnostics import ReadError
from irrun.ir.write import to_xml

ENGINE = "OpenVINO 2024.6.0 CPU f32"

DID = {
    "Add-1/model/f32-a/static": ("values", "passed", "values", ""),
    "Add-1/model/i32-a/static": ("values", "failed", "refusal", "Exception from src/x.cpp:7: no kernel for [1,2] of Add_17"),
    "Add-1/model/f32-b/static": ("values", "passed", "values", ""),
    "Add-1/model/f32-b/dims": ("values", "failed", "timeout", "no answer within 60 s"),
    "Add-1/model/f32-b/rank": ("values", "failed", "crash", "it was ended by SIGSEGV"),
    "Add-1/model/f32-c/rank": ("values", "passed", "values", ""),
    "Add-1/model/f32-d/static": ("values", "failed", "values", "1 of 2 elements differ"),
    "Add-1/model/f32-e/static": ("values", "failed", "unstable", "1 of 2 elements differ, and other values in another run"),
    "Add-1/refusal/c1-x": ("refuse", "failed", "values", "accepted"),
    "Add-1/refusal/c1-y": ("refuse", "passed", "refusal", "no"),
    "Add-1/refusal/c1-z": ("refuse", "skipped", "refusal", "not here"),
    "Add-1/call/u4": ("values", "failed", "values", "2 of 2 elements differ"),
    "Abs-1/call/u4-x": ("values", "failed", "values", "2 of 2 elements differ"),
    "ISTFT-16/call/a": ("values", "failed", "refusal", "unsupported opset"),
    "Add-1/departure/seen": ("open", "recorded", "values", ""),
    "Add-1/call/not-run": ("values", "", "", ""),
}  # fmt: skip
"""What an engine did with cases by name: verdict, and status, outcome and detail of the result."""


def _case(name: str, verdict: str) -> Case:
    parts = name.split("/")
    declared = parts[-1] if parts[-1] in ("static", "dims", "rank") else "static"
    type = "u4" if "u4" in name else "i32" if "i32" in name else "f32"
    made = "OpenVINO and irrun give the same" if parts[1] == "model" else "by hand"
    return Case(
        name, parts[0], declared, verdict, made, f"<net>{name}</net>", types=[type],
        clause="C1" if verdict == "refuse" else "", basis="engine" if parts[1] == "model" else "page",
    )  # fmt: skip


CASES = [_case(name, verdict) for name, (verdict, *_) in DID.items()]
RUN = Run(
    ENGINE, "", "2026-01-02T23:00:00+00:00", len(CASES),
    {name: Result(name, status, outcome, detail) for name, (_, status, outcome, detail) in DID.items() if status},
    {"INFERENCE_PRECISION_HINT": "f32"},
)  # fmt: skip
SUITE = Suite({}, {}, CASES)


def test_a_row_has_the_worst_finding_of_its_cases() -> None:
    found = score(CASES, RUN)
    assert found.vendor == "OpenVINO's CPU plugin"
    assert found.properties == {"INFERENCE_PRECISION_HINT": "f32"}
    # a: right in f32, refused in i32; b: right with static dims, hangs with unknown ones; d and e: wrong
    assert found.rows["engine"] == {"crash": 1, "wrong": 2, "accepts": 0, "refuses": 1, "right": 0, "unclaimed": 0}
    # c1-z: a refusal for want of a kernel counts as one where the model is valid, too
    # u4, and opset16 in a release with opset15, are not charged; what was not run does not count
    assert found.rows["page"] == {"crash": 0, "wrong": 0, "accepts": 1, "refuses": 1, "right": 1, "unclaimed": 3}
    assert found.unknown_rank == 1


def test_cases_of_one_row_differ_in_types_and_declarations() -> None:
    carried = replace(_case("Add-1/carried/T-u8", "values"), source="by hand, carried over from f32-a")
    assert {carried.row, *(case.row for case in CASES[:2])} == {"Add-1/a"}


def test_root_causes() -> None:
    """Refusals with one message are one cause, and the smallest model stands for it."""
    causes = {(cause.finding, cause.words): cause for cause in score(CASES, RUN).causes}
    assert {key: (cause.rows, cause.smallest) for key, cause in causes.items()} == {
        ("wrong", "Add gives other values"): (1, "Add-1/model/f32-d/static"),
        ("wrong", "Add gives other values, which change from run to run"): (1, "Add-1/model/f32-e/static"),
        ("crash", "Add"): (1, "Add-1/model/f32-b/dims"),
        ("accepts", "Add C1 is accepted"): (1, "Add-1/refusal/c1-x"),
        ("refuses", "Add: no kernel for … of"): (1, "Add-1/model/i32-a/static"),
        ("refuses", "Add: not here"): (1, "Add-1/refusal/c1-z"),
    }


def test_the_tables() -> None:
    own = Run("irrun 0.1.0", "", "2026-02-03T01:00:00+00:00", len(CASES), RUN.results)
    text = markdown(SUITE, CASES, [RUN, own])
    assert text.startswith("16 cases, 3 February 2026, ")
    assert "\n4 rows whose values OpenVINO and irrun both give:\n" in text
    assert f"| {ENGINE} | 1 | 2 | 0 | 1 | 0 | 0 |\n" in text
    assert f"\n{ENGINE} ran with INFERENCE_PRECISION_HINT=f32.\n" in text
    assert "%" not in text
    assert "\nirrun 0.1.0, from whose tests the suite is made: 9 rows not right.\n" in text
    assert text.count("| irrun 0.1.0") == 0


def test_a_record_gives_the_same_tables() -> None:
    board = scoreboard(SUITE, CASES, [RUN])
    assert Scoreboard.from_record(asdict(board)) == board
    assert markdown(SUITE, CASES[:3], [RUN]).startswith("3 cases, a sample of 16, 2 January 2026")


def test_an_engine_without_claims_says_itself_what_it_does_not_have() -> None:
    found = score(CASES, replace(RUN, engine="another engine 1.0"))
    assert found.vendor == ""
    assert found.rows["page"] == {"crash": 0, "wrong": 2, "accepts": 1, "refuses": 1, "right": 1, "unclaimed": 1}


# ---------------------------------------------------------------------------------------------
# claims


@each(
    "engine, vendor",
    [
        ("OpenVINO 2026.4.1 CPU f32", "OpenVINO's CPU plugin"),
        ("OpenVINO 2026.4.1 evaluate", None),
        ("ONNXifier 2.0.3, onnxruntime 1.32.0 CPU", "ONNXifier"),
        ("pyopenvino", "pyopenvino"),
        ("irrun 0.1.0 exact", "irrun"),
        ("relu 1.0", None),
    ],
)
def test_claims_belong_to_a_vendor(engine: str, vendor: str | None) -> None:
    found = claims_of(engine)
    assert (None if found is None else found.vendor) == vendor
    for claim in () if found is None else found.claims:
        assert claim.says
        assert claim.page.startswith("https://") or claim.page == "README.md"


_FILE = """
vendor = "V"
names = "V (?P<version>.*)"
[[claim]]
says = "all"
page = "p"
operations = ["*"]
types = ["f32"]
[[claim]]
says = "but"
page = "p"
without = ["Loop-*"]
computed = { i64 = "i32", u64 = "i32", f64 = "f32" }
[[claim]]
says = "not yet"
page = "p"
without = ["Abs-*"]
releases = ["1.0"]
[opsets]
"1.0" = 4
"""


@each(
    "operation, types, engine, covers",
    [
        ("Add-1", ["f32"], "V 1.0", True),
        ("Add-1", ["f32", "u4"], "V 1.0", False),
        ("Loop-5", ["f32"], "V 2.0", False),
        ("Gelu-7", ["f32"], "V 1.0", False),
        ("Gelu-7", ["f32"], "V 1.0.3", False),
        ("Gelu-7", ["f32"], "V 1.05", True),
        ("Gelu-7", ["f32"], "V 2.0", True),
        ("Abs-1", ["f32"], "V 1.0.3", False),
        ("Abs-1", ["f32"], "V 1.05", True),
    ],
)
def test_what_claims_cover(operation: str, types: list[str], engine: str, covers: bool) -> None:
    case = replace(_case("Add-1/call/x", "values"), operation=operation, types=types)
    assert parsed("v", _FILE).covers(case, engine) == covers


@each(
    "operation, covers",
    [
        ("ErfInv-17", True),
        ("Atan2-17", False),  # newer than the release
        ("Bincount-17", False),
        ("AUGRUCell-5", False),  # in no operation set
        ("Xor-1", False),
        ("LogicalXor-1", True),
    ],
)
def test_what_openvino_claims(operation: str, covers: bool) -> None:
    claims = claims_of("OpenVINO 2026.4.1 CPU f32")
    assert claims is not None
    assert (
        claims.covers(replace(_case("Add-1/call/x", "values"), operation=operation), "OpenVINO 2026.4.1 CPU f32")
        == covers
    )


def test_claims_take_a_constant_that_ends_within_a_number() -> None:
    layer = '<layer type="Const"><data element_type="i64" shape="2" offset="0" size="16"/></layer>'
    case = replace(
        _case("Add-1/call/x", "refuse"), xml=f"<net>{layer}</net>", bin=(1 << 40).to_bytes(8, "little") + b"123"
    )
    assert not parsed("v", _FILE.replace('types = ["f32"]', "")).covers(case, "V 2.0")


@each(
    "array, covers",
    [
        (np.array([-(2**31), 2**31 - 1]), True),
        (np.array([2**31]), False),
        (np.array([-(2**31) - 1]), False),
        (np.array([2**64 - 1], np.uint64), False),
        (np.array([2**31], np.uint32), True),  # the file says nothing about u32
        (np.array([0, 3e38, -1.2e-38, np.inf, np.nan]), True),
        (np.array([-1e39]), False),
        (np.array([1e-40]), False),
        (np.zeros(0), True),
    ],
)
@pytest.mark.parametrize("field", ["inputs", "outputs"])
def test_what_a_narrower_type_cannot_hold_is_not_claimed(array: np.ndarray, covers: bool, field: str) -> None:
    records = [tensor_record(array)]
    step = Step(inputs=records) if field == "inputs" else Step(outputs=records)
    case = replace(_case("Add-1/call/x", "values"), steps=[Step(), step])
    assert parsed("v", _FILE).covers(case, "V 2.0") == covers


@each(
    "array, covers",
    [
        (np.array([2**31 - 1]), True),
        (np.array([2**31]), False),
        (np.zeros(2, np.float32), True),
        (np.zeros(2, np.float16), False),  # the file claims f32
    ],
)
def test_constants_count(array: np.ndarray, covers: bool) -> None:
    claims = parsed("v", _FILE.replace('types = ["f32"]', 'types = ["f32", "i64"]'))
    model = to_xml(b.model(b.Abs(b.constant(array)))).decode()
    case = replace(_case("Add-1/call/x", "values"), xml=model, bin=array.tobytes())
    assert claims.covers(case, "V 2.0") == covers


@each("old, new, said", [("says", "say", "say"), ("vendor", "vendors", "vendors"), ("[opsets]", "[opsets", "line")])
def test_a_wrong_file_is_named(old: str, new: str, said: str) -> None:
    with pytest.raises(ValueError, match=rf"^v\.toml: .*{said}"):
        parsed("v", _FILE.replace(old, new))


# ---------------------------------------------------------------------------------------------
# the page


def test_the_tables_replace_those_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("between `<!-- scoreboard -->` and\n<!-- scoreboard -->\nold\n<!-- end -->\nafter\n<!-- end -->\n")
    assert (
        with_table(page, "new\n")
        == b"between `<!-- scoreboard -->` and\n<!-- scoreboard -->\nnew\n<!-- end -->\nafter\n<!-- end -->\n"
    )


@pytest.mark.parametrize("text", ["", "<!-- scoreboard -->", "<!-- end -->\n<!-- scoreboard -->", None])
def test_a_page_without_a_place(text: str | None, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    if text is not None:
        page.write_text(text)
    with pytest.raises(ReadError, match=r"cannot use the page: (it has no line <!-- scoreboard -->|no such file)"):
        with_table(page, "")
