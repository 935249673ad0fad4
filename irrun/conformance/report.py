"""Static pages of what engines did with the suite, and badges."""

from __future__ import annotations

import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from irrun.base.text import printable
from irrun.conformance.running import Run
from irrun.conformance.suite import Case, Suite
from irrun.engines.values import read_tensor
from irrun.files import write_file
from irrun.opdef import SPECIFICATION

__all__ = ["write_report"]

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; color: #222 }
table { border-collapse: collapse } th, td { border: 1px solid #ccc; padding: .2em .6em; text-align: right }
th:first-child, td:first-child { text-align: left } thead th { position: sticky; top: 0; background: #eee }
.all { background: #d7f0d7 } .most { background: #fbf3cf } .few { background: #f7d6d0 }
pre { background: #f6f6f6; padding: .6em; overflow: auto; max-height: 30em } details { margin: .4em 0 }
"""
_MAX_TENSOR_CHARS: Final = 2000
"""The most characters of a tensor on a page."""


def write_report(suite: Suite, runs: Sequence[Run], folder: Path) -> int:
    """Write pages of runs to a folder, and return their number.

    ``index.html`` shows each engine by operation, element type, declaration and clause. A cell leads to the page of an
    operation, which shows each case that an engine did not pass, and lists the others. ``badges/`` gets a file for each
    engine, for https://shields.io/endpoint.
    """
    (folder / "badges").mkdir(parents=True, exist_ok=True)
    names = _distinct([run.engine for run in runs])
    _write(folder / "index.html", _page("Conformance of OpenVINO IR", _index(suite, runs, names)))
    cases: dict[str, list[Case]] = defaultdict(list)
    for case in suite.cases:
        cases[case.operation].append(case)
    for operation, own in cases.items():
        _write(folder / f"{operation}.html", _page(operation, _operation(suite, operation, own, runs, names)))
    for name, run in zip(names, runs):
        file = re.sub(r"[^\w.-]+", "-", name).strip("-")
        _write(folder / "badges" / f"{file}.json", json.dumps(_badge(suite, name, run)))
    return len(cases) + 1


def _distinct(names: Sequence[str]) -> list[str]:
    times: Counter[str] = Counter()
    found = []
    for name in map(printable, names):
        times[name] += 1
        found.append(name if times[name] == 1 else f"{name} ({times[name]})")
    return found


def _write(path: Path, text: str) -> None:
    write_file(path, text.encode("utf-8"))


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{_text(title)}</title>'
        f"<style>{_STYLE}</style>\n<h1>{_text(title)}</h1>\n{body}\n</html>\n"
    )


def _text(text: object) -> str:
    return html.escape(printable(str(text)))


def _status(run: Run, case: Case) -> str:
    result = run.results.get(case.name)
    return "skipped" if result is None else result.status


def _cell(cases: Iterable[Case], run: Run, link: str = "") -> str:
    """Return a cell: how many cases with a verdict an engine passed. What is skipped counts as not passed."""
    judged = [case for case in cases if case.verdict != "open"]
    if not judged:
        return "<td></td>"
    passed = sum(_status(run, case) == "passed" for case in judged)
    colour = "all" if passed == len(judged) else "most" if passed >= 0.9 * len(judged) else "few"
    text = f"{passed}/{len(judged)}"
    return f'<td class="{colour}">{f"<a href={link!r}>{text}</a>" if link else text}</td>'


def _table(
    title: str,
    suite: Suite,
    runs: Sequence[Run],
    names: Sequence[str],
    keys: Callable[[Case], Iterable[str]],
    link: Callable[[str], str] = lambda key: "",
) -> str:
    """Return a table with a row for each key of the cases and a column for each engine."""
    by_key: dict[str, list[Case]] = defaultdict(list)
    for case in suite.cases:
        for key in keys(case):
            by_key[key].append(case)
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{_text(key)}</td>{''.join(_cell(cases, run, link(key)) for run in runs)}</tr>\n"
        for key, cases in sorted(by_key.items(), key=lambda item: item[0].lower())
    )
    return f"<h2>{title}</h2>\n<table><thead><tr><th></th>{head}</tr></thead>\n{rows}</table>\n"


def _index(suite: Suite, runs: Sequence[Run], names: Sequence[str]) -> str:
    began = ", ".join(f"{_text(name)}: {_text(run.began)}" for name, run in zip(names, runs))
    parts = [
        f"<p>A cell counts the cases with a verdict that an engine passed. What was skipped, or not run, counts as not "
        f"passed. Suite {_text(suite.digest)}, {len(suite.cases):,} cases. {began}.</p>\n",
        _table("Verdicts", suite, runs, names, lambda case: () if case.verdict == "open" else (case.verdict, "all")),
        _table("Operations", suite, runs, names, lambda case: (case.operation,), lambda key: f"{key}.html"),
        _table("Element types", suite, runs, names, lambda case: case.types),
        _table("Declarations", suite, runs, names, lambda case: (case.declaration,)),
        _table(
            "Clauses",
            suite,
            runs,
            names,
            lambda case: (f"{case.operation} {case.clause}",) if case.clause else (),
            lambda key: f"{key.split()[0]}.html#{key.split()[1]}",
        ),
    ]
    return "".join(parts)


def _operation(suite: Suite, operation: str, cases: Sequence[Case], runs: Sequence[Run], names: Sequence[str]) -> str:
    declared = suite.operations[operation]
    link = SPECIFICATION.format(spec=declared.page)
    rules = {case.clause: suite.demand(case) for case in cases if case.clause and case.clause not in declared.clauses}
    sentences = {**declared.clauses, **rules}
    clauses = "".join(f'<dt id="{_text(k)}">{_text(k)}</dt><dd>{_text(v)}</dd>' for k, v in sentences.items())
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    rows, details = [], []
    for number, case in enumerate(cases):
        statuses = [_status(run, case) for run in runs]
        shown = any(status != "passed" for status in statuses)
        name = f'<a href="#case{number}">{_text(case.name)}</a>' if shown else _text(case.name)
        cells = "".join(
            f'<td class="{"all" if _status(run, case) == "passed" else "few"}">{_status(run, case)}</td>'
            for run in runs
        )
        rows.append(f"<tr><td>{name}</td>{cells}</tr>\n")
        if shown:
            details.append(_details(suite, case, f"case{number}", runs, names))
    return (
        f'<p><a href="index.html">All operations</a>. <a href="{_text(link)}">The page of the specification</a>.</p>'
        f"<dl>{clauses}</dl><table><thead><tr><th></th>{head}</tr></thead>{''.join(rows)}</table>"
        f"<h2>Cases that an engine did not pass</h2>{''.join(details)}"
    )


def _details(suite: Suite, case: Case, anchor: str, runs: Sequence[Run], names: Sequence[str]) -> str:
    """Return a case in full: its sentence, what each engine gave, inputs, expected outputs and IR."""
    facts = [f"Verdict: {case.verdict}. Source: {case.source}.", suite.demand(case), case.sentence, case.note]
    gave = "".join(
        f"<li>{_text(name)}: {_status(run, case)}{_detail(run, case)}</li>" for name, run in zip(names, runs)
    )
    observed = "".join(f"<li>recorded of {_text(k)}: {_text(v)}</li>" for k, v in case.observed.items())
    steps = [
        f"{title} {position}{f' of inference {number + 1}' if len(case.steps) > 1 else ''}: {_tensor(record)}\n"
        for number, step in enumerate(case.steps)
        for title, records in (("input", step.inputs), ("expected", step.outputs))
        for position, record in enumerate(records)
    ]
    return (
        f'<details id="{anchor}"><summary>{_text(case.name)}</summary>'
        + "".join(f"<p>{_text(fact)}</p>" for fact in facts if fact)
        + f"<ul>{gave}{observed}</ul><pre>{html.escape(''.join(steps))}</pre><pre>{html.escape(case.xml)}</pre>"
        + "</details>\n"
    )


def _detail(run: Run, case: Case) -> str:
    result = run.results.get(case.name)
    if result is None or not (result.detail or result.outcome != "values"):
        return ""
    return f" ({_text(result.outcome)}{': ' if result.detail else ''}{_text(result.detail)})"


def _tensor(record: Mapping[str, Any]) -> str:
    text = str(read_tensor(record).tolist())
    shown = text if len(text) <= _MAX_TENSOR_CHARS else f"{text[:_MAX_TENSOR_CHARS]} …"
    return printable(f"{record['type']}{record['shape']} {shown}")


def _badge(suite: Suite, name: str, run: Run) -> dict[str, Any]:
    judged = [case for case in suite.cases if case.verdict != "open"]
    passed = sum(_status(run, case) == "passed" for case in judged)
    share = 100 * passed / len(judged) if judged else 0.0
    colour = "brightgreen" if passed == len(judged) else "green" if share >= 95 else "yellow" if share >= 80 else "red"
    return {"schemaVersion": 1, "label": name, "message": f"{passed:,}/{len(judged):,}", "color": colour}
