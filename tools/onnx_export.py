"""Export the cases of the conformance suite to ONNX, run them in onnxruntime, and count what agrees with the suite.

`python -m tools onnx_export [--only REGEX] [--opset N] [-j N] [--save docs/results/onnx-export.json]` prints a line for
each operation, and with --reasons why cases are not equal. With --save, it also writes the table of docs/onnx-export.md.
A case of values is `equal` (within the tolerances of the suite), `refused` by irrun, `failed` (onnxruntime does not load
or run the model) or `wrong`. An input of unknown rank gets the rank of its array, as with `irrun export --shape`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import onnx
import onnxruntime  # pyright: ignore[reportMissingImports]

import irrun
from benchmarks.report import processor
from irrun.conformance.judging import difference
from irrun.conformance.suite import Case, read_suite
from irrun.diagnostics import IrrunError
from irrun.export import OPSET, convert, plain_ends
from irrun.export.convert import Exported
from irrun.export.write import to_bytes
from irrun.model import Model
from places import ROOT

STATUSES: Final = ("equal", "refused", "failed", "wrong")

LIMITS: Final = {
    "no such operation": r"has no counterpart",
    "no such type": r"no element type|has \w+ from operation set|no kernel for|unsayable type|Type Error|NOT_IMPLEMENTED",
    "not known before a run": r"not constant|(are|is) not known|may be none|depends? on (its length|the shape)",
}
"""What ONNX cannot say, by patterns of the reasons for which irrun refuses a case or onnxruntime fails."""

MARKS: Final = ("<!-- table of tools onnx_export -->", "<!-- end -->")


def outcome(case: Case, opset: int, folder: Path) -> tuple[str, str]:
    """Return what becomes of a case, and why."""
    model = irrun.read_model(case.write(folder))
    arrays = case.steps[0].feeds()
    shapes = {
        number: ["?"] * array.ndim
        for number, (tensor, array) in enumerate(zip(model.inputs, arrays))
        if tensor.shape is not None and tensor.shape.dims is None
    }
    try:
        exported = convert(model.reshape(shapes) if shapes else model, opset)
    except IrrunError as error:
        return "refused", re.sub(r'^[^:]*".*?": ', "", error.diagnostics[0].message)
    onnx.checker.check_model(to_bytes(exported))
    try:
        return _run(case, model, exported)
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        return "failed", _short(str(error))


def _run(case: Case, model: Model, exported: Exported) -> tuple[str, str]:
    """Run an exported case in onnxruntime, and compare its outputs."""
    plain = plain_ends(exported)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(to_bytes(plain.exported), options, providers=["CPUExecutionProvider"])
    states: list[Any] = []
    for number, step in enumerate(case.steps):
        arrays = step.feeds()
        if exported.states and (number == 0 or step.reset):
            known = irrun.compile(model)(
                arrays, taps=[model.unique_names[s.reader.id] for s in exported.states.values()]
            )
            states = [known.taps[model.unique_names[state.reader.id]] for state in exported.states.values()]
        outputs = plain.run(lambda feeds: list(session.run(None, {**feeds})), [*arrays, *states])  # pyright: ignore[reportArgumentType]
        expected = step.expected()
        states = outputs[len(expected) :]
        for output, want in zip(outputs, expected):
            if output.dtype != want.dtype and want.dtype != object:
                return "wrong", f"{output.dtype} instead of {want.dtype}"
            if why := difference(output, want, case.rtol, case.atol):
                return "wrong", why
    return "equal", ""


def _short(text: str) -> str:
    """Return an error of onnxruntime without the names of the model."""
    line = " ".join(re.sub(r"[Nn]ode[ :(]+'?[^ ]*|'[^']*'|\[[^\]]*\] : \d+ : ", "", text).split())
    return re.sub(r"/\S+/", "", line)[:160]


def _work(cases: Sequence[Case], opset: int, queue: Any) -> None:
    """Put the outcome of each case into a queue, before that its number, and None at the end."""
    onnxruntime.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases):
            queue.put((number, None))
            try:
                found = outcome(case, opset, Path(folder))
            except Exception as error:  # a bug in irrun
                found = "failed", f"{type(error).__name__}: {error}"
            queue.put((number, found))
    queue.put(None)


def outcomes(cases: Sequence[Case], opset: int) -> Iterator[tuple[Case, str, str]]:
    """Yield each case with its outcome. A case that ends the process has `failed`."""
    context, start = multiprocessing.get_context("fork"), 0
    while start < len(cases):
        queue = context.SimpleQueue()
        process = context.Process(target=_work, args=(cases[start:], opset, queue))
        process.start()
        last = 0
        while (message := _next(queue, process)) is not None:
            last, found = message
            if found is not None:
                yield cases[start + last], *found
        process.join()
        if process.exitcode == 0:
            return
        yield cases[start + last], "failed", "onnxruntime ends the process"
        start += last + 1


def _next(queue: Any, process: Any) -> Any:
    """Return the next message of a process, or None after its end."""
    while not queue._reader.poll(0.5):
        if not process.is_alive() and not queue._reader.poll(0):
            return None
    return queue.get()


def _parallel(cases: Sequence[Case], opset: int, jobs: int) -> list[tuple[str, str, str]]:
    """Return name, status and reason of each case, from several processes."""
    parts = [cases[n::jobs] for n in range(jobs)]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def run(part: Sequence[Case]) -> None:
        queue.put([(case.name, status, why) for case, status, why in outcomes(part, opset)])

    processes = [context.Process(target=run, args=(part,)) for part in parts]
    for process in processes:
        process.start()
    found = [row for _ in processes for row in queue.get()]
    for process in processes:
        process.join()
    return sorted(found)


def limit(why: str) -> str:
    """Return which limit of ONNX a reason names, or an empty text."""
    return next((name for name, pattern in LIMITS.items() if re.search(pattern, why)), "")


def summary(found: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Return the counts of each operation, and those of all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    limits: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for name, status, why in found:
        operation = name.split("/")[0]
        named = limit(why)
        counts[operation][named or status] += 1
        limits[named or status] += 1
        if why and not named:
            reasons[operation][f"{status}: {why}"] += 1
    rows = {name: dict(sorted(row.items())) for name, row in sorted(counts.items())}
    common = {name: [text for text, _ in row.most_common(3)] for name, row in sorted(reasons.items())}
    return {"operations": rows, "all": dict(limits), "reasons": common}


def table(record: dict[str, Any]) -> str:
    """Return the table of the page."""
    heads = ("equal", "refused", "failed", "wrong", *LIMITS)
    total, day = record["all"], date.fromisoformat(record["date"])
    sayable = sum(total.get(status, 0) for status in STATUSES)
    lines = [
        f"`{record['command']}`, {day:%-d %B %Y}, onnxruntime {record['machine']['onnxruntime']}: "
        f"{sum(total.values()):,} cases with values in operation set {record['opset']}, of which ONNX can say {sayable:,}; "
        f"{total.get('equal', 0):,} of these ({total.get('equal', 0) / sayable:.1%}) are equal, {total.get('wrong', 0)} wrong.",
        "",
        "| operation | " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * len(heads),
    ]
    for name, row in (("all", total), *record["operations"].items()):
        lines.append(f"| {name} | " + " | ".join(str(row.get(head, "") or "") for head in heads) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools onnx_export", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default=".*", help="a pattern of the names of cases")
    parser.add_argument("--opset", type=int, default=OPSET)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    cases = [c for c in read_suite().cases if c.verdict == "values" and re.match(options.only, c.name)]
    found = _parallel(cases, options.opset, options.jobs)
    record = summary(found)
    for name, row in record["operations"].items():
        print(f"{name:40} " + ", ".join(f"{status} {count}" for status, count in row.items()))
    if options.reasons:
        why = Counter((name.split("/")[0], status, text) for name, status, text in found if status != "equal")
        first = {(n.split("/")[0], s, t): n for n, s, t in reversed(found)}
        for key, count in sorted(why.items(), key=lambda item: (item[0][0], -item[1])):
            print(f"{key[0]}: {count} {key[1]}: {key[2]}  [{first[key]}]")
    print(record["all"])
    if options.save:
        command = f"python -m tools onnx_export --save {options.save}"
        versions = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}
        head = {"command": command, "date": date.today().isoformat(), "machine": processor() | versions}
        record = {**head, "opset": options.opset, **record}
        options.save.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        page = ROOT / "docs" / "onnx-export.md"
        before, _, rest = page.read_text("utf-8").partition(MARKS[0])
        _, _, tail = rest.partition(MARKS[1])
        page.write_text(f"{before}{MARKS[0]}\n{table(record)}\n{MARKS[1]}{tail}", "utf-8")


if __name__ == "__main__":
    main()
