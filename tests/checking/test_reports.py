"""Reports in the formats of other tools: what each format requires."""

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from irrun.base.source import Source, Span
from irrun.checking.reports import FORMATS, Findings
from irrun.codes import CODES
from irrun.diagnostics import Diagnostic

SOURCE = Source("a b/net.xml", b"<net>\n  <dim>48</dim>\n</net>\n")
WRONG = Diagnostic(
    "IR401", "error", "dim 0 is 48, inferred 50%", "sum", 2, SOURCE.path, Span(2, 3, 16), ("note",), "declare 50",
    source=SOURCE,
)  # fmt: skip
WARNING = Diagnostic("IR107", "warning", "the model has no Result", file=SOURCE.path, span=Span(1, 1, 6))
NOWHERE = Diagnostic("IR501", "error", "net.bin is missing", file="other.xml")
FOUND: Findings = {"a b/net.xml": [WARNING, WRONG], "other.xml": [NOWHERE], "good.xml": []}


def written(form: str, found: Findings = FOUND) -> str:
    return FORMATS[form](found)


def test_json_lines():
    lines = written("json-lines").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(written("json"))["diagnostics"]
    assert len(lines) == 3


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_found(form):
    shown = written(form, {})
    empty = {"json": {"diagnostics": []}, "gitlab": [], "github": None, "json-lines": None}
    if form in empty:
        assert (json.loads(shown) if shown else None) == empty[form]


@pytest.mark.parametrize("form", FORMATS)
def test_names_that_do_not_print(form):
    bad = Diagnostic("IR401", "error", "名 \udcff \x1b[31m\r\n::error::", "\udcff", file="\udcff.xml")
    shown = written(form, {"\udcff.xml": [bad]})
    assert "\x1b" not in shown
    if form == "github":
        assert shown.count("\n") == 1
    else:
        assert shown.isascii()
        ElementTree.fromstring(shown) if form == "junit" else json.loads(shown)


# ---------------------------------------------------------------------------------------------
# SARIF


@pytest.fixture(scope="module")
def run() -> dict:
    log = json.loads(written("sarif"))
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    return run


def test_sarif_rules(run):
    assert run.keys() == {"tool", "columnKind", "results"}
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    driver = run["tool"]["driver"]
    assert driver["name"] == "irrun"
    assert [rule["id"] for rule in driver["rules"]] == list(CODES)
    for rule in driver["rules"]:
        assert rule.keys() == {"id", "name", "shortDescription", "fullDescription", "help", "defaultConfiguration"}
        assert rule["help"] == rule["fullDescription"] == {"text": CODES[rule["id"]].doc}
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")


def test_sarif_results(run):
    rules = run["tool"]["driver"]["rules"]
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("IR107", "warning"), ("IR401", "error"), ("IR501", "error"),
    ]  # fmt: skip
    for result in run["results"]:
        assert result.keys() == {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"}
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        (location,) = result["locations"]
        assert location.keys() <= {"physicalLocation", "logicalLocations"}
        assert "artifactLocation" in location["physicalLocation"]


def test_sarif_places(run):
    warning, wrong, nowhere = (r["locations"][0] for r in run["results"])
    assert wrong["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/net.xml"},
        "region": {"startLine": 2, "startColumn": 3, "endColumn": 16},
    }
    assert wrong["logicalLocations"] == [{"name": "sum", "kind": "element"}]
    assert nowhere == {"physicalLocation": {"artifactLocation": {"uri": "other.xml"}}}
    assert "logicalLocations" not in warning


def test_sarif_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def uri(file: Path) -> str:
        found = Diagnostic("IR501", "error", "gone", file=str(file))
        (result,) = json.loads(written("sarif", {str(file): [found]}))["runs"][0]["results"]
        return result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]

    assert uri(tmp_path / "sub" / "net.xml") == "sub/net.xml"
    assert uri(Path("sub/100%.xml")) == "sub/100%25.xml"
    assert unquote(uri(tmp_path.parent / "net.xml")) == (tmp_path.parent / "net.xml").as_uri()


# ---------------------------------------------------------------------------------------------
# GitHub, GitLab, JUnit


def test_github():
    assert written("github").splitlines() == [
        "::warning file=a b/net.xml,line=1,col=1,endColumn=6,title=IR107 no-results::the model has no Result",
        "::error file=a b/net.xml,line=2,col=3,endColumn=16,title=IR401 dims-mismatch"
        "::dim 0 is 48, inferred 50%25; declare 50",
        "::error file=other.xml,title=IR501 weights-missing::net.bin is missing",
    ]


def test_github_escapes_what_would_end_a_property():
    found = Diagnostic("IR501", "error", "a,b: c", file="a,b:c%.xml")
    assert written("github", {"": [found]}) == (
        "::error file=a%2Cb%3Ac%25.xml,title=IR501 weights-missing::a,b: c\n"
    )  # fmt: skip


def test_gitlab():
    warning, wrong, nowhere = json.loads(written("gitlab"))
    assert wrong.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
    assert (wrong["check_name"], wrong["severity"], warning["severity"]) == ("IR401", "major", "minor")
    assert wrong["description"] == "dim 0 is 48, inferred 50%; declare 50"
    assert wrong["location"] == {"path": "a b/net.xml", "lines": {"begin": 2}}
    assert nowhere["location"] == {"path": "other.xml", "lines": {"begin": 1}}


def fingerprints(*found: Diagnostic) -> list[str]:
    return [entry["fingerprint"] for entry in json.loads(written("gitlab", {"x": found}))]


def test_a_fingerprint_stays_when_the_line_moves():
    moved = replace(WRONG, span=Span(70, 1, 9))
    assert fingerprints(WRONG) == fingerprints(moved)
    assert fingerprints(WRONG) != fingerprints(replace(WRONG, layer="product"))
    assert len(set(fingerprints(WRONG, moved, WRONG))) == 3


def test_junit():
    root = ElementTree.fromstring(written("junit"))
    assert root.tag == "testsuites"
    suites = [(s.get("name"), s.get("tests"), s.get("failures"), s.get("errors"), len(s)) for s in root]
    assert suites == [
        ("a b/net.xml", "2", "1", "0", 2),
        ("other.xml", "1", "1", "0", 1),
        ("good.xml", "1", "0", "0", 1),
    ]
    warning, wrong = root[0]
    assert wrong.attrib == {"name": "IR401 dims-mismatch at line 2", "classname": "a b/net.xml"}
    assert (wrong[0].tag, wrong[0].get("type"), wrong[0].get("message")) == ("failure", "IR401", WRONG.message)
    assert "  <dim>48</dim>" in (wrong[0].text or "")
    assert [child.tag for child in warning] == ["system-out"]
    assert len(root[2][0]) == 0
