"""Let an engine do the cases of the suite, and keep the results in a file that a later run continues."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from irrun.conformance.judging import Result, judge
from irrun.conformance.suite import Case, Suite
from irrun.diagnostics import EngineError, ReadError, diagnostic
from irrun.engines.engine import ChildEngine, Engine, NotStartedError
from irrun.engines.folder import private_folder
from irrun.engines.opening import open
from irrun.engines.outcomes import Crash
from irrun.engines.process import Limits
from irrun.files import write_file, writing

__all__ = ["Run", "harness", "read_run", "run", "starter"]

FORMAT: Final = "OpenVINO IR conformance results"
VERSION: Final = 1
"""The version of the file of results."""

Start = Callable[[Limits], AbstractContextManager[Engine]]
"""Starts an engine for the length of a ``with`` block."""


@dataclass(frozen=True)
class Run:
    """What an engine did with the cases of a suite. ``results`` are by name; a case without one has not been run.

    ``engine`` is the name that the engine gives itself, ``suite`` the digest of the suite, ``began`` a date (ISO 8601),
    and ``cases`` the number of cases that the run is for. ``properties`` are those of the engine in effect.
    """

    engine: str
    suite: str
    began: str
    cases: int
    results: Mapping[str, Result]
    properties: Mapping[str, str] = field(default_factory=dict)

    def count(self, status: str) -> int:
        """Return the number of cases of a status. Cases that were not run are skipped."""
        if status == "skipped":
            return self.cases - sum(result.status != "skipped" for result in self.results.values())
        return sum(result.status == status for result in self.results.values())


@contextmanager
def harness(command: Sequence[str], limits: Limits) -> Iterator[Engine]:
    """Start the harness that a command runs. Raises EngineError (IR702) if it does not start."""
    with private_folder() as session:
        engine = ChildEngine(command, limits=limits, session=session)
        try:
            yield engine
        finally:
            engine.close()


def starter(side: str) -> Start:
    """Return what starts the engine of a side without a model, such as ``openvino[device=GPU]``."""
    return lambda limits: open(side, limits)


def run(
    suite: Suite,
    cases: Sequence[Case],
    start: Start,
    target: Path,
    *,
    limits: Limits,
    jobs: int = 1,
    on_result: Callable[[Result, int, int], None] | None = None,
) -> Run:
    """Let an engine do cases of a suite, and append each result to the file ``target`` as soon as it is there.

    Results that the file already has are kept, so that a run that was interrupted goes on. If they are of another state
    of the suite, those of unchanged cases are kept. ``jobs`` engines work at the same time. ``on_result`` gets each
    result, the number of cases that are done, and the total. Raises EngineError (IR702) if the engine does not start,
    and ReadError (IR000) if the file holds something else, the results of another engine, or mostly of other cases.
    """
    with start(limits) as engine:
        done = _begun(target, _started(engine), engine.properties, suite, cases)
        work = _Work([case for case in cases if case.name not in done.results], done, target, len(cases), on_result)
        with ThreadPoolExecutor(jobs) as pool:
            own = pool.submit(work.do, engine)
            others = [pool.submit(work.start_and_do, start, limits) for _ in range(jobs - 1)]
            try:
                for future in (own, *others):
                    future.result()
            finally:
                work.stopped = True
    return read_run(target)


def _begun(target: Path, engine: str, properties: Mapping[str, str], suite: Suite, cases: Sequence[Case]) -> Run:
    """Return the results that ``target`` has of these cases, and write its head. Raises ReadError (IR000)."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    begun = Run(engine, suite.digest, now, len(cases), {}, properties)
    if not target.exists() or not target.stat().st_size:
        write_file(target, _head(begun))
        return begun
    old = read_run(target)
    digests = {case.name: case.digest for case in cases}
    if old.properties != properties:
        raise _unreadable(target, f"its results are those of {old.engine} with other properties; pass another file")
    is_same = (old.engine, old.suite, old.cases) == (engine, suite.digest, len(cases))
    if is_same and old.results.keys() <= digests.keys():
        os.truncate(target, target.read_bytes().rfind(b"\n") + 1)  # what a killed run has not completed
        return old
    kept = {name: result for name, result in old.results.items() if digests.get(name) == result.case}
    if old.engine != engine or old.suite == suite.digest or 2 * len(kept) < len(old.results):
        raise _unreadable(target, f"it has the results of {old.engine} for other cases; pass another file")
    write_file(target, _head(begun) + b"".join(_line(asdict(result)) for result in kept.values()))
    return replace(begun, results=kept)


def _head(run: Run) -> bytes:
    head = {key: value for key, value in asdict(run).items() if key != "results"}
    return _line({"format": FORMAT, "version": VERSION, **head})


class _Work:
    """Cases that several threads do, each with an engine of its own."""

    def __init__(
        self,
        cases: Sequence[Case],
        done: Run,
        target: Path,
        total: int,
        on_result: Callable[[Result, int, int], None] | None,
    ) -> None:
        self.cases = iter(cases)
        self.done, self.total = len(done.results), total
        self.target, self.on_result = target, on_result
        self.stopped = False
        self.lock = threading.Lock()

    def start_and_do(self, start: Start, limits: Limits) -> None:
        with start(limits) as engine:
            self.do(engine)

    def do(self, engine: Engine) -> None:
        """Do cases until none is left."""
        with tempfile.TemporaryDirectory() as folder:
            while not self.stopped:
                with self.lock:
                    case = next(self.cases, None)
                if case is None:
                    return
                self.finish(_result(case, engine, Path(folder)))

    def finish(self, result: Result) -> None:
        with self.lock:
            with writing(self.target), self.target.open("ab") as file:
                file.write(_line(asdict(result)))
            self.done += 1
            if self.on_result is not None:
                self.on_result(result, self.done, self.total)


def _result(case: Case, engine: Engine, folder: Path) -> Result:
    """Return the result of a case. After a crash, a process of its own shows whether the case alone is the cause."""
    result = judge(case, engine, folder)
    if result.outcome == "crash":
        engine.release()
        again = judge(case, engine, folder)
        if again.outcome != "crash":
            return again
    return result


def _started(engine: Engine) -> str:
    """Return the name of an engine that has started. Raises EngineError (IR702) if it does not start."""
    if isinstance(engine, ChildEngine):
        try:
            engine.start()
        except NotStartedError as error:
            outcome = error.outcome
            why = outcome.cause if isinstance(outcome, Crash) else str(getattr(outcome, "message", outcome))
            notes = tuple(outcome.log.splitlines()[-3:]) if isinstance(outcome, Crash) else ()
            message, help = f"the harness does not start: {why}", "run its command by hand to see what is wrong"
            raise EngineError(diagnostic("IR702", message, notes=notes, help=help)) from None
    return engine.name


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=True).encode("ascii") + b"\n"


def read_run(path: str | os.PathLike[str]) -> Run:
    """Return the results in a file. The rest of a line that a killed run has not completed is left out.

    Raises ReadError (IR000) if the file cannot be read.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
        head = json.loads(lines[0])
        if head.pop("format") != FORMAT or head.pop("version") != VERSION:
            raise ValueError(f"it holds no results of version {VERSION}")
        results = [Result(**json.loads(line)) for line in lines[1:-1]]
        return Run(**head, results={result.name: result for result in results})
    except OSError as error:
        raise _unreadable(path, (error.strerror or str(error)).lower()) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unreadable(path, f"it is damaged, or no file of results: {error}") from None


def _unreadable(path: str | os.PathLike[str], why: str) -> ReadError:
    return ReadError(diagnostic("IR000", f"cannot use the results: {why}", file=os.fspath(path)))
