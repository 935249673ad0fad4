"""``irrun conformance``: run an engine through the suite, compare and report."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import irrun
from irrun.conformance import Suite, read_run, read_suite
from irrun.conformance.suite import write_suite
from recorded import suite

ROOT = Path(irrun.__file__).parent.parent


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a small suite: reading the whole one takes seconds."""
    whole = suite()
    kept = [
        c
        for c in whole.cases
        if re.match(r"(ReLU-1|Tile-1/refusal|ReadValue-\d/(refusal|composed/sum)|Sqrt-1/departure)", c.name)
    ]
    path = tmp_path_factory.mktemp("suite") / "suite"
    write_suite(Suite(whole.operations, whole.rules, kept), path)
    return path


def _relu(folder: Path) -> str:
    """Write the harness of docs/harness.md, and return its command."""
    page = (ROOT / "docs" / "harness.md").read_text("utf-8")
    match = re.search(r"```python\n(import re\n.*?)```", page, re.DOTALL)
    assert match is not None
    (folder / "relu.py").write_text(match[1])
    return f"{sys.executable} {ROOT / 'irrun' / 'engines' / 'harnesses' / 'serve.py'} {folder / 'relu.py'}"


def test_run_compare_and_report(small: Path, tmp_path: Path, call: Any) -> None:
    own, relu = tmp_path / "own.jsonl", tmp_path / "relu.jsonl"
    result = call("conformance", "run", "exact", "-o", str(own), "--suite", str(small))
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.fullmatch(r"irrun \S+ exact: (\d+) of \1 passed(, \d+ recorded)?\n", result.stdout)
    result = call("conformance", "run", "--harness", _relu(tmp_path), "-o", str(relu), "--suite", str(small), "-j", "2")
    assert result.exit_code == 1
    assert result.stdout.startswith("relu 1.0: ")
    run = read_run(relu)
    passed = {name.split("/")[0] for name, item in run.results.items() if item.outcome == "values"}
    assert passed == {"ReLU-1"}
    assert run.results["ReadValue-6/composed/sum-in-a-variable"].detail == "only ReLU is supported"

    result = call("conformance", "compare", str(own), str(relu))
    assert result.exit_code == 1
    assert "  ReadValue-6/composed/sum-in-a-variable: only ReLU is supported\n" in result.stdout
    assert "gained: 0 cases\n" in result.stdout
    result = call("conformance", "compare", str(relu), str(own), "--format", "json")
    assert result.exit_code == 0
    compared = json.loads(result.stdout)
    assert compared["lost"] == []
    assert "ReadValue-6/composed/sum-in-a-variable" in compared["gained"]

    result = call("conformance", "report", str(own), str(relu), "-o", str(tmp_path / "pages"), "--suite", str(small))
    assert result.exit_code == 0
    index = (tmp_path / "pages" / "index.html").read_text("utf-8")
    assert "<td class=\"few\"><a href='ReadValue-6.html'>2/3</a></td>" in index
    page = (tmp_path / "pages" / "ReadValue-6.html").read_text("utf-8")
    assert "only ReLU is supported" in page
    assert 'id="C1"' in page
    assert "expected 0 of inference 2: f32[2] [12.0, 24.0]" in page
    links = re.findall(r"href=.([\w.-]+\.html)(?:#(\w+))?", index)
    assert links
    for file, anchor in links:
        text = (tmp_path / "pages" / file).read_text("utf-8")
        assert not anchor or f'id="{anchor}"' in text
    badge = json.loads((tmp_path / "pages" / "badges" / "relu-1.0.json").read_text("utf-8"))
    assert badge["schemaVersion"] == 1
    assert badge["label"] == "relu 1.0"


def test_every_nth_case_is_a_sample(small: Path, tmp_path: Path, call: Any) -> None:
    cases = read_suite(small).cases
    result = call("conformance", "run", "exact", "-o", str(tmp_path / "r"), "--suite", str(small), "--every", "9")
    assert result.exit_code == 0
    assert read_run(tmp_path / "r").results.keys() == {case.name for case in cases[::9]}


def test_scoreboard(small: Path, tmp_path: Path, call: Any) -> None:
    """A second call runs nothing, and gives the same table."""
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- scoreboard -->\n<!-- end -->\n")
    arguments = ["exact", "--harness", _relu(tmp_path), "-o", str(tmp_path / "new" / "results"), "--suite", str(small)]
    (tmp_path / "new").mkdir()
    result = call("conformance", "scoreboard", *arguments, "--only", "*/c1-*", "--page", str(page))
    assert (result.exit_code, result.stderr) == (0, "")
    assert page.read_text() == f"# Page\n\n<!-- scoreboard -->\n{result.stdout}<!-- end -->\n"
    assert "relu 1.0 |" in result.stdout
    assert "exact, from whose tests the suite is made: 0 rows not right." in result.stdout
    files = {file.name: file.read_bytes() for file in (tmp_path / "new" / "results").iterdir()}
    assert "exact.jsonl" in files
    assert len(files) == 2
    result = call("conformance", "scoreboard", *arguments, "--only", "*/c1-*", "--format", "json")
    first, second = json.loads(result.stdout)["engines"]
    assert (first["vendor"], second["vendor"]) == ("irrun", "")
    assert second["rows"]["page"]["right"] > 0
    assert files == {file.name: file.read_bytes() for file in (tmp_path / "new" / "results").iterdir()}


def test_smoke(small: Path, tmp_path: Path, call: Any) -> None:
    result = call("conformance", "smoke", "--harness", _relu(tmp_path), "--suite", str(small))
    assert result.exit_code == 1
    assert "  failed  state, and its reset (ReadValue-6/composed/sum-in-a-variable): only ReLU is" in result.stdout


def test_show(small: Path, tmp_path: Path, call: Any) -> None:
    name = "ReadValue-6/refusal/c1-shape"
    result = call("conformance", "show", name, "--suite", str(small), "-o", str(tmp_path / "case"))
    assert result.exit_code == 0
    assert "\nverdict    refuse\n" in result.stdout
    assert "\ndemands    The shape of ``init_value`` fits ``variable_shape``" in result.stdout
    assert [finding.label for finding in irrun.check(tmp_path / "case" / "model.xml")] == ["C1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "-o", "x"], "pass an engine, such as openvino, or --harness"),
        (["run", "exact", "--harness", "x", "-o", "x"], "pass an engine, such as openvino, or --harness"),
        (["run", "--harness", "'", "-o", "x"], "No closing quotation"),
        (["run", "--harness", "", "-o", "x"], "the command is empty"),
        (["run", "exact", "-o", "/no/such/folder/x"], "there is no folder"),
        (["run", "exact", "-o", "x", "--only", "Nothing/*"], "no case has a name like 'Nothing/*'"),
        (["run", "exactly", "-o", "x"], "cannot read the suite"),
        (["compare", "none.jsonl", "none.jsonl"], "cannot use the results: no such file or directory"),
        (["report", "none.jsonl", "-o", "pages"], "cannot use the results"),
        (["scoreboard", "-o", "x"], "pass engines, such as irrun openvino"),
        (["scoreboard", "exact", "-o", __file__], "is a file; pass a folder"),
        (["scoreboard", "exact", "-o", "x", "--page", "none.md"], "cannot use the page: no such file"),
        (["show", "Tile-1/nothing"], "the suite has no case 'Tile-1/nothing'"),
    ],
)
def test_bad_usage(arguments: list[str], said: str, small: Path, call: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    takes_suite = arguments[0] != "compare"
    file = "none" if "exactly" in arguments else str(small)
    result = call("conformance", *arguments, *(["--suite", file] if takes_suite else []))
    assert result.exit_code == 2
    assert said in result.stderr
