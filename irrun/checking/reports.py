"""Render whole reports in the formats of other tools: JSON, SARIF, GitHub, GitLab and JUnit.

Each function takes the diagnostics of each file and returns text. All formats are plain ASCII except GitHub's, whose
text is shown to people.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote
from xml.etree import ElementTree

from irrun.base.edits import Fix
from irrun.base.text import printable
from irrun.checking.render import record, text
from irrun.codes import CODES
from irrun.diagnostics import Diagnostic

__all__ = ["FORMATS", "Findings", "records"]

Findings = Mapping[str, Sequence[Diagnostic]]
"""The diagnostics of each file, by its path, in the order of the report."""
Models = Sequence[Mapping[str, Any]]
"""A row for each file, if asked for: its status, time and memory."""


def _json(findings: Findings, models: Models = ()) -> str:
    """Return one JSON object with a list of all diagnostics, and one of the models if there are rows."""
    return _dumped(records(findings, models))


def records(findings: Findings, models: Models = ()) -> dict[str, Any]:
    """Return a list of all diagnostics, and one of the models if there are rows, as a dict for JSON."""
    return {"diagnostics": [record(d) for d in _all(findings)], **({"models": list(models)} if models else {})}


def _json_lines(findings: Findings, models: Models = ()) -> str:
    """Return one line of JSON for each diagnostic."""
    return "".join(json.dumps(record(d), allow_nan=False) + "\n" for d in _all(findings))


def _sarif(findings: Findings, models: Models = ()) -> str:
    """Return a SARIF 2.1.0 log, as GitHub code scanning reads it, with rows of models as properties of the run."""
    rules = [
        {
            "id": code.id,
            "name": code.name,
            "shortDescription": {"text": code.name.replace("-", " ")},
            "fullDescription": {"text": (doc := code.doc)},
            "help": {"text": doc},
            "defaultConfiguration": {"level": code.kind.severity},
        }
        for code in CODES.values()
    ]
    index = {code: position for position, code in enumerate(CODES)}
    results = [
        {
            "ruleId": d.code,
            "ruleIndex": index[d.code],
            "level": d.severity,
            "message": {"text": _sentence(d)},
            "locations": [_sarif_location(d)],
            "partialFingerprints": {"irrun/v1": fingerprint},
        }
        | ({"fixes": [_sarif_fix(d, d.fix)]} if d.fix else {})
        for d, fingerprint in _fingerprints(findings)
    ]
    run = {
        "tool": {"driver": {"name": "irrun", "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    } | ({"properties": {"models": list(models)}} if models else {})
    return _dumped({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]})


def _sarif_artifact(diagnostic: Diagnostic) -> dict[str, str]:
    """Return the file of a diagnostic as a URI, relative to the current folder if the file lies there."""
    path = Path(_path(diagnostic))
    return {"uri": path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))}


def _sarif_fix(diagnostic: Diagnostic, fix: Fix) -> dict[str, Any]:
    replacements = [
        {
            "deletedRegion": {
                "startLine": edit.line,
                "startColumn": edit.column,
                "endLine": edit.end_line,
                "endColumn": edit.end_column,
            },
            "insertedContent": {"text": edit.text},
        }
        for edit in fix.edits
    ]
    title = fix.title if fix.safe else f"{fix.title} (changes what the model means)"
    changes = [{"artifactLocation": _sarif_artifact(diagnostic), "replacements": replacements}]
    return {"description": {"text": printable(title)}, "artifactChanges": changes}


def _sarif_location(diagnostic: Diagnostic) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _sarif_artifact(diagnostic)}
    if diagnostic.span:
        span = diagnostic.span
        place["region"] = {"startLine": span.line, "startColumn": span.column, "endColumn": span.end}
    location: dict[str, Any] = {"physicalLocation": place}
    if diagnostic.layer is not None:
        location["logicalLocations"] = [{"name": diagnostic.layer, "kind": "element"}]
    return location


def _github(findings: Findings, models: Models = ()) -> str:
    """Return workflow commands, which GitHub Actions shows beside the lines of a pull request."""
    return "".join(_github_command(d) + "\n" for d in _all(findings))


def _github_command(diagnostic: Diagnostic) -> str:
    properties: dict[str, object] = {"file": _path(diagnostic)}
    if diagnostic.span:
        properties |= {"line": diagnostic.span.line, "col": diagnostic.span.column, "endColumn": diagnostic.span.end}
    properties["title"] = f"{diagnostic.code} {diagnostic.name}"
    text = ",".join(f"{key}={_github_escaped(printable(str(value)), ':,')}" for key, value in properties.items())
    return f"::{diagnostic.severity} {text}::{_github_escaped(_sentence(diagnostic))}"


def _github_escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" + more else c for c in text)


def _gitlab(findings: Findings, models: Models = ()) -> str:
    """Return a code quality report of GitLab."""
    return _dumped(
        [
            {
                "description": _sentence(d),
                "check_name": d.code,
                "fingerprint": fingerprint,
                "severity": "major" if d.severity == "error" else "minor",
                "location": {"path": _path(d), "lines": {"begin": d.line or 1}},
            }
            for d, fingerprint in _fingerprints(findings)
        ]
    )


def _junit(findings: Findings, models: Models = ()) -> str:
    """Return JUnit XML: a suite for each file and a case for each diagnostic. A warning is a case that passes.

    The rows of models give the times of suites, and properties.
    """
    root = ElementTree.Element("testsuites", name="irrun")
    rows = {row["file"]: row for row in models}
    for file, diagnostics in findings.items():
        errors = [d for d in diagnostics if d.severity == "error"]
        tests, failures = str(len(diagnostics) or 1), str(len(errors))
        suite = ElementTree.SubElement(root, "testsuite", name=printable(file), tests=tests, failures=failures)
        suite.set("errors", "0")
        if file in rows:
            suite.set("time", f"{rows[file]['seconds']:.6f}")
            properties = ElementTree.SubElement(suite, "properties")
            for name in ("status", "peak_memory", "cached"):
                ElementTree.SubElement(properties, "property", name=name, value=str(rows[file][name]))
        if not diagnostics:
            ElementTree.SubElement(suite, "testcase", name="irrun check", classname=printable(file))
        for d in diagnostics:
            name = f"{d.code} {d.name}" + (f" at line {d.line}" if d.line else "")
            case = ElementTree.SubElement(suite, "testcase", name=name, classname=printable(file))
            if d.severity == "error":
                details = ElementTree.SubElement(case, "failure", message=printable(d.message), type=d.code)
            else:
                details = ElementTree.SubElement(case, "system-out")
            details.text = text(d).plain
    ElementTree.indent(root)
    return ElementTree.tostring(root, "us-ascii").decode("ascii") + "\n"


class _Form(Protocol):
    def __call__(self, findings: Findings, models: Models = ()) -> str: ...


FORMATS: Final[dict[str, _Form]] = {
    "json": _json,
    "json-lines": _json_lines,
    "sarif": _sarif,
    "github": _github,
    "gitlab": _gitlab,
    "junit": _junit,
}
"""The function that renders a report, by the name of the format. JSON, SARIF and JUnit show the rows of models."""


def _all(findings: Findings) -> Iterator[Diagnostic]:
    for diagnostics in findings.values():
        yield from diagnostics


def _dumped(data: Any) -> str:
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _sentence(diagnostic: Diagnostic) -> str:
    """Return the message of a diagnostic and its help, separated by a semicolon."""
    return printable(f"{diagnostic.message}; {diagnostic.help}" if diagnostic.help else diagnostic.message)


def _path(diagnostic: Diagnostic) -> str:
    """Return the path of the file, relative to the current folder if it lies there, as the other tools expect."""
    path = Path(diagnostic.file or "")
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_posix()


def _fingerprints(findings: Findings) -> Iterator[tuple[Diagnostic, str]]:
    """Yield each diagnostic with a hash that identifies it in later versions of the file, even if its line moves.

    Diagnostics that differ only in their line are numbered, so that each has its own hash.
    """
    seen: Counter[tuple[object, ...]] = Counter()
    for d in _all(findings):
        key = (d.code, _path(d), d.layer, d.port, d.message)
        yield d, hashlib.sha256(repr((*key, seen[key])).encode("utf-8", "backslashreplace")).hexdigest()
        seen[key] += 1
