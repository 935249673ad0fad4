"""Change the code of irrun a little, and see whether a test fails.

`python -m tools mutants --count 300` makes 300 mutants, some of every module, runs the tests without OpenVINO that
run the changed line, and reports the mutants that no test kills. `--per-folder 4` makes 4 of each folder, as many of
each kind of change, so that common kinds do not hide what happens to the others. `--defaults` changes every default of an attribute
instead. `python -m tools mutants irrun/ops/tile.py` draws from one module; `--at irrun/ops/tile.py:31:5` makes the
mutant of that name again.

A mutant that changes no behaviour stands in `mutants.toml` with the reason, and counts as accepted. The exit status is
1 where another one survives.

The working tree is not changed: each process has a copy of it in a temporary folder. Which tests run which line is kept
in `.mutants/`, and is recorded again for the test files that a change concerns.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import covering
from covering import Covering
from mutators import Change, default_mutants, mutants

ACCEPTED = Path(__file__).with_name("mutants.toml")
SECONDS = 25
"""Processor seconds for the start of Python and the collection of the tests."""
SLOWER = 5
"""How many times the recorded processor seconds the tests of a mutant may take."""
MEMORY = 6 << 30
"""Bytes of data that the tests of a mutant may allocate: a wrong shape can ask for any number."""
DECLARATIONS = ("test_defaults.py", "test_operation_set.py", "test_ops_meta.py")
"""Test files that look at what modules declare, which runs none of their lines."""
FIRST_FILES = 2
"""Test files that are run before the others, because they kill most mutants."""


@dataclass(frozen=True)
class Project:
    """What to change and what to run."""

    root: Path
    package: str = "irrun"
    tests: str = "tests"
    lane: str = "spec or processes"
    """The markers of the tests that are run; empty for all tests."""

    def modules(self, paths: Sequence[str] = ()) -> list[str]:
        """The modules of the package, or those at or below ``paths``, relative to the root."""
        folders = [(self.root / path).resolve() for path in paths] or [self.root / self.package]
        found = {file for folder in folders for file in ([folder] if folder.is_file() else folder.rglob("*.py"))}
        return sorted(str(file.relative_to(self.root)) for file in found)


@dataclass(frozen=True)
class Mutant:
    module: str
    number: int
    """Its number among the changes at its line."""
    change: Change
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.change.line}:{self.number}"

    @property
    def folder(self) -> str:
        """The package, or the folder of it, that the module is in."""
        return "/".join(Path(self.module).parent.parts[:2])


@dataclass
class Verdict:
    """``killed``, ``time`` (killed because its tests took too long), ``accepted``, ``survived`` or ``unsure``."""

    mutant: Mutant
    verdict: str
    by: str = ""
    """The test that failed, or the reason why the mutant is accepted."""
    tests: int = 0
    """How many tests were chosen."""
    seconds: float = 0

    def row(self) -> dict[str, object]:
        change = asdict(self.mutant.change)
        row = {"name": self.mutant.name, "kind": change["kind"], "before": self.mutant.before}
        return row | {"after": self.mutant.after, **{k: v for k, v in asdict(self).items() if k != "mutant"}}


# ---------------------------------------------------------------------------------------------
# mutants


def all_mutants(project: Project, module: str, defaults: bool = False) -> list[Mutant]:
    """The mutants of a module in the order of their places."""
    source = (project.root / module).read_bytes()
    numbers: Counter[int] = Counter()
    found = []
    for change in default_mutants(source) if defaults else mutants(source):
        found.append(Mutant(module, numbers[change.line], change, *change.lines(source)))
        numbers[change.line] += 1
    return found


def draw(by_module: Mapping[str, Sequence[Mutant]], count: int, seed: int) -> list[Mutant]:
    """``count`` mutants: one of each module as far as they suffice, the others wherever they fall."""
    shuffled = {}
    for module, found in sorted(by_module.items()):
        shuffled[module] = list(found)
        random.Random(f"{seed}:{module}").shuffle(shuffled[module])
    rng = random.Random(seed)
    modules = [module for module in shuffled if shuffled[module]]
    drawn = [shuffled[module].pop() for module in rng.sample(modules, min(count, len(modules)))]
    rest = [mutant for module in modules for mutant in shuffled[module]]
    drawn += rng.sample(rest, min(count - len(drawn), len(rest)))
    return sorted(drawn, key=lambda mutant: (mutant.module, mutant.change.line, mutant.number))


def draw_evenly(by_module: Mapping[str, Sequence[Mutant]], count: int, seed: int) -> list[Mutant]:
    """``count`` mutants of each folder; each time of the kind that was drawn least, wherever they fall."""
    by_folder: dict[str, dict[str, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for _, found in sorted(by_module.items()):
        for mutant in found:
            by_folder[mutant.folder][mutant.change.kind].append(mutant)
    rng = random.Random(seed)
    times: Counter[str] = Counter()
    drawn = []
    for kinds in by_folder.values():
        for _ in range(min(count, sum(map(len, kinds.values())))):
            kind = min((kind for kind in kinds if kinds[kind]), key=lambda kind: (times[kind], rng.random()))
            times[kind] += 1
            drawn.append(kinds[kind].pop(rng.randrange(len(kinds[kind]))))
    return sorted(drawn, key=lambda mutant: (mutant.module, mutant.change.line, mutant.number))


def accepted(path: Path = ACCEPTED) -> list[dict[str, str]]:
    """The entries of the list: ``file``, ``line`` as it is, ``becomes`` (otherwise any change of it), ``reason``."""
    return tomllib.loads(path.read_text())["accepted"] if path.exists() else []


def reason(mutant: Mutant, entries: Iterable[Mapping[str, str]]) -> str | None:
    """Why a mutant is accepted, or None."""
    for entry in entries:
        if (entry["file"], entry["line"].strip()) == (mutant.module, mutant.before) and (
            "becomes" not in entry or entry["becomes"].strip() == mutant.after
        ):
            return entry["reason"]
    return None


# ---------------------------------------------------------------------------------------------
# running


class Tree:
    """A copy of the working tree in which one module at a time is changed."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.root, self.home = project, folder / "tree", folder
        ignored = shutil.ignore_patterns(".git", ".mutants", ".venv", ".*_cache", ".hypothesis", "__pycache__")
        shutil.copytree(project.root, self.root, ignore=ignored)
        (folder / "plugin").mkdir()
        shutil.copy(covering.__file__, folder / "plugin")
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> list[str]:
        lane = ["-m", self.project.lane] if self.project.lane else []
        options = ["-q", "-p", "no:cacheprovider", "-p", "covering", *lane]
        return [sys.executable, "-m", "pytest", *options, *arguments]

    def environment(self, **variables: str) -> dict[str, str]:
        found = {**os.environ, **variables, "PYTHONPATH": f"{self.root}{os.pathsep}{self.home / 'plugin'}"}
        found.pop("PYTHONDONTWRITEBYTECODE", None)
        return found

    def record(self, files: Sequence[str], folder: Path, *, processes: int) -> None:
        """Run test files and record the lines that each test runs."""
        parallel = ["-n", str(processes), "--dist", "loadfile"] if processes > 1 else []
        variables = {covering.RECORD: str(folder), covering.PACKAGE: str(self.root / self.project.package)}
        command = self.command(*parallel, *files)
        print(f"recording which lines {len(files)} test files run", file=sys.stderr, flush=True)
        done = subprocess.run(command, cwd=self.root, env=self.environment(**variables), capture_output=True, text=True)
        print(*done.stdout.split("\n")[-2:], file=sys.stderr, flush=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"the tests cannot be run:\n{done.stdout}{done.stderr}")

    def killer(self, tests: Sequence[str], covering: Covering) -> str | None:
        """Run chosen tests, fastest first: the one that fails, ``time`` for none in time, or None where all pass."""
        for batch in _batches(tests):
            found = self._killer(batch, sum(covering.tests[id].seconds for id in batch), covering)
            if found is not None:
                return found
        return None

    def _killer(self, tests: Sequence[str], recorded: float, record: Covering) -> str | None:
        order = sorted(tests, key=lambda test: (record.tests[test].seconds, test))
        chosen, failed = self.home / "chosen.json", self.home / "chosen.failed"
        chosen.write_text(json.dumps(order))
        failed.unlink(missing_ok=True)
        seconds = int(SECONDS + SLOWER * recorded)

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

        files = list(dict.fromkeys(id.split("::")[0] for id in order))
        self.process = subprocess.Popen(
            self.command("-x", "--no-header", *files),
            cwd=self.root,
            env=self.environment(**{covering.CHOOSE: str(chosen)}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=limit,
        )
        try:
            status = self.process.wait(timeout=60 + 4 * seconds)
        except subprocess.TimeoutExpired:
            status = -signal.SIGXCPU
        finally:
            self.stop()
        if failed.exists():
            return failed.read_text().split("\n")[0]
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            return "time"
        return None if status in (0, 5) else f"pytest, with status {status}"

    def stop(self) -> None:
        """End the tests that run, with all processes that they started."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def verdict(self, mutant: Mutant, record: Covering, limit: int) -> Verdict:
        """Change the module, run the tests that concern the change, and undo it."""
        start = time.monotonic()
        tests = concerned(mutant, record, limit)
        path = self.root / mutant.module
        source = path.read_bytes()
        try:
            self.write(path, mutant.change.apply(source))
            killer = self.killer(tests, record)
        finally:
            self.write(path, source)
        verdict = "survived" if killer is None else "time" if killer == "time" else "killed"
        return Verdict(mutant, verdict, killer or "", len(tests), time.monotonic() - start)

    def write(self, path: Path, source: bytes) -> None:
        """Write a module; its compiled form goes, which Python would take for another of the same size and second."""
        path.write_bytes(source)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def _batches(tests: Sequence[str]) -> Iterator[list[str]]:
    """The tests of the first files, then all others."""
    files = list(dict.fromkeys(id.split("::")[0] for id in tests))[:FIRST_FILES]
    first = [id for id in tests if id.split("::")[0] in files]
    yield first
    if len(first) < len(tests):
        yield [id for id in tests if id.split("::")[0] not in files]


def concerned(mutant: Mutant, record: Covering, limit: int) -> list[str]:
    """The tests to run for a mutant, at most ``limit``.

    First those that run its line, then those that run its function, which reach the line through a cache that another
    test filled. Code that runs when its module is imported, in functions that no test calls as well, concerns the tests
    that run any line of the module, and all of its name and of declarations.
    """
    module, change = mutant.module, mutant.change
    of_function = record.running(module, *change.scope)
    if not change.at_import and of_function:
        found = record.running(module, change.line, change.line + mutant.before.count("\n"))
        found = record.spread(found, module, limit)
        return found + record.spread(sorted(set(of_function) - set(found)), module, limit - len(found))
    files = {*DECLARATIONS, f"test_{Path(module).stem.lstrip('_')}.py"}
    declared = sorted(id for id, run in record.tests.items() if Path(run.file).name in files)
    return list(dict.fromkeys([*declared, *record.spread(record.by_module.get(module, ()), module, limit)]))


def judge(
    drawn: Sequence[Mutant], project: Project, record: Covering, trees: Sequence[Tree], limit: int
) -> Iterator[Verdict]:
    """The verdicts in the order in which they are found; killers that fail without a mutant make theirs unsure."""
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(mutant: Mutant) -> Verdict:
        tree = free.get()
        try:
            return tree.verdict(mutant, record, limit)
        finally:
            free.put(tree)

    executor = ThreadPoolExecutor(len(trees))
    try:
        for future in as_completed([executor.submit(one, mutant) for mutant in drawn]):
            yield future.result()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for tree in trees:
            tree.stop()
        executor.shutdown()


def control(verdicts: Sequence[Verdict], tree: Tree, record: Covering) -> None:
    """Run the tests that killed on the unchanged code: a mutant is not killed by a test that fails there, too."""
    killers = sorted({verdict.by for verdict in verdicts if verdict.by in record.tests})
    while killers and (failing := tree._killer(killers, sum(record.tests[id].seconds for id in killers), record)):
        for verdict in verdicts:
            if verdict.by == failing:
                verdict.verdict = "unsure"
        if failing not in killers:
            raise SystemExit(f"the tests that killed cannot be run on the unchanged code: {failing}")
        killers.remove(failing)


# ---------------------------------------------------------------------------------------------
# the command


COLUMNS = ("made", "killed", "accepted", "survived", "unsure")


def table(verdicts: Sequence[Verdict]) -> str:
    """The counts of the verdicts by folder and by kind."""
    by_row: dict[str, Counter[str]] = defaultdict(Counter)
    for group in (lambda v: v.mutant.folder, lambda v: f"  {v.mutant.change.kind}", lambda _: "in all"):
        for verdict in sorted(verdicts, key=group):
            column = "killed" if verdict.verdict == "time" else verdict.verdict
            by_row[group(verdict)].update(("made", column))
    width = max([len(row) for row in by_row], default=0)
    lines = [" " * width + "".join(f"{column:>10}" for column in COLUMNS)]
    lines += [f"{row:<{width}}" + "".join(f"{counts[c]:>10}" for c in COLUMNS) for row, counts in by_row.items()]
    return "\n".join(lines)


def described(verdict: Verdict, repeat: str) -> str:
    """A survivor: its place, what changed, and the command that makes it again."""
    mutant = verdict.mutant
    before, after = mutant.before.split("\n"), mutant.after.split("\n")
    diff = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    head = f"{mutant.module}:{mutant.change.line}: {verdict.verdict} ({mutant.change.kind}), {verdict.tests} tests"
    head += f": {verdict.by} also fails on the unchanged code" if verdict.verdict == "unsure" else ""
    return "\n".join([head, *(f"    {line}" for line in diff), f"    {repeat} --at {mutant.name}"])


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    project = Project(options.root.resolve(), options.package, options.tests, options.lane)
    repeat = "python -m tools mutants" + (" --defaults" if options.defaults else "")
    drawn = _drawn(project, options)
    entries = accepted(options.accepted)
    verdicts: list[Verdict] = []
    known = [Verdict(mutant, "accepted", why) for mutant in drawn if (why := reason(mutant, entries)) is not None]
    unknown = [mutant for mutant in drawn if reason(mutant, entries) is None]
    interrupted = False
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as name:
        try:
            trees = [Tree(project, Path(name, str(number))) for number in range(options.jobs)]
            record = _record(project, trees[0], options.jobs)
            for number, verdict in enumerate(judge(unknown, project, record, trees, options.limit), 1):
                verdicts.append(verdict)
                print(f"{number}/{len(unknown)} {verdict.mutant.name} {verdict.verdict}", file=sys.stderr, flush=True)
            control(verdicts, trees[0], record)
        except KeyboardInterrupt:
            interrupted = True
    verdicts = sorted([*verdicts, *known], key=lambda v: (v.mutant.module, v.mutant.change.line, v.mutant.number))
    left = [verdict for verdict in verdicts if verdict.verdict in ("survived", "unsure")]
    print(table(verdicts), *(described(verdict, repeat) for verdict in left), sep="\n")
    if options.json:
        options.json.write_text(json.dumps([verdict.row() for verdict in verdicts], indent=1) + "\n")
    if interrupted:
        print(f"interrupted after {len(verdicts)} of {len(drawn)} mutants")
        return 130
    return 1 if left else 0


def _drawn(project: Project, options: argparse.Namespace) -> list[Mutant]:
    if options.at:
        modules = {place.rsplit(":", 2)[0] for place in options.at}
        by_name = {m.name: m for module in modules for m in all_mutants(project, module, options.defaults)}
        return [by_name[place] for place in options.at]
    by_module = {module: all_mutants(project, module, options.defaults) for module in project.modules(options.paths)}
    if options.defaults:
        return [mutant for found in by_module.values() for mutant in found]
    if options.per_folder:
        return draw_evenly(by_module, options.per_folder, options.seed)
    return draw(by_module, options.count, options.seed)


def _record(project: Project, tree: Tree, processes: int) -> Covering:
    path = project.root / ".mutants" / "covering"
    record = Covering.load(path)
    if record.update(tree.root, project.package, project.tests, partial(tree.record, processes=processes)):
        record.save(path)
    return record


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paths", nargs="*", help="modules or folders to change (default: the whole package)")
    parser.add_argument("--count", type=int, default=300, help="how many mutants to draw (default: 300)")
    parser.add_argument("--per-folder", type=int, help="how many to draw of each folder, evenly by kind, instead")
    parser.add_argument("--seed", type=int, default=0, help="which mutants to draw (default: 0)")
    parser.add_argument("--defaults", action="store_true", help="change every default of an attribute instead")
    parser.add_argument("--at", action="append", help="make this mutant, as a report names it: FILE:LINE:NUMBER")
    parser.add_argument("--limit", type=int, default=300, help="the most tests to run for a mutant (default: 300)")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--json", type=Path, help="write all verdicts to this file")
    parser.add_argument("--accepted", type=Path, default=ACCEPTED, help="the list of accepted mutants")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the tree to copy")
    parser.add_argument("--package", default="irrun", help="the folder of the package in it")
    parser.add_argument("--tests", default="tests", help="the folder of the tests in it")
    parser.add_argument("--lane", default=Project.lane, help="the markers of the tests to run (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
