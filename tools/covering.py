"""Which tests run which lines of a package.

As a plugin of pytest (``-p covering``) this module records the lines that each test runs (``RECORD`` names a folder),
or runs chosen tests in a given order (``CHOOSE`` names a JSON file with their ids). ``Covering`` holds the record of all
tests and renews the part of it that a changed file makes outdated.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

RECORD, PACKAGE, CHOOSE = "COVERING_RECORD", "COVERING_PACKAGE", "COVERING_CHOOSE"

# ---------------------------------------------------------------------------------------------
# the plugin


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.each_row = True  # the rows of a table run different lines
    if RECORD in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ[RECORD]), Path(os.environ[PACKAGE])))
    if CHOOSE in os.environ:
        config.pluginmanager.register(Chooser(Path(os.environ[CHOOSE])))


class Recorder:
    """Record the lines of a package that each test runs, its processor time, and whether it passed."""

    def __init__(self, folder: Path, package: Path) -> None:
        import coverage

        name = folder / f"record-{os.getpid()}"
        self.coverage = coverage.Coverage(data_file=f"{name}.coverage", include=[f"{package}/*"], config_file=False)
        self.file = name.with_suffix(".json")
        self.seconds: dict[str, float] = {}
        self.not_passed: set[str] = set()
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        start = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - start
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.not_passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        passed = {id: seconds for id, seconds in self.seconds.items() if id not in self.not_passed}
        self.file.write_text(json.dumps(passed))


class Chooser:
    """Run the chosen tests in their order; write the id of the first that fails beside the list of ids."""

    def __init__(self, path: Path) -> None:
        self.order = {id: number for number, id in enumerate(json.loads(path.read_text()))}
        self.failed = path.with_suffix(".failed")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self.failed.open("a") as file:
                file.write(report.nodeid + "\n")


# ---------------------------------------------------------------------------------------------
# the record


@dataclass
class Run:
    """A test that passed: its file, processor seconds, and by module a set of lines as the bits of a number."""

    file: str
    seconds: float
    lines: dict[str, int]


@dataclass
class Covering:
    """The tests of a tree by id, and a digest of each file that the record depends on."""

    tests: dict[str, Run] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def load(path: Path) -> Covering:
        return pickle.loads(path.read_bytes()) if path.exists() else Covering()

    def save(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(self))

    def update(self, root: Path, package: str, tests: str, run: Callable[[Sequence[str], Path], None]) -> int:
        """Renew the record of the test files that changed, or that run a module that changed; their number.

        ``run(files, folder)`` runs test files with the plugin recording to ``folder``. A module that tests share makes
        the test files outdated that import it, or import another one that does.
        """
        digests = {
            str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for folder in (package, tests)
            for path in sorted((root / folder).rglob("*.py"))
        }
        changed = {path for path in digests.keys() | self.digests.keys() if digests.get(path) != self.digests.get(path)}
        of_package = {path for path in changed if path.startswith(f"{package}/")}
        outdated = {test.file for test in self.tests.values() if of_package & test.lines.keys()}
        outdated |= naming(
            changed - of_package, {p: (root / p).read_text() for p in digests if p.startswith(f"{tests}/")}
        )
        outdated = {path for path in outdated if path in digests and Path(path).name.startswith("test_")}
        self.tests = {id: test for id, test in self.tests.items() if test.file in digests and test.file not in outdated}
        if outdated:
            self._record(root, sorted(outdated), run)
        self.digests = digests
        return len(outdated)

    def _record(self, root: Path, files: Sequence[str], run: Callable[[Sequence[str], Path], None]) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run(files, folder)
            for path in folder.glob("*.json"):
                for id, seconds in json.loads(path.read_text()).items():
                    self.tests[id] = Run(id.split("::")[0], seconds, {})
            for path in folder.glob("*.coverage"):
                for id, file, lines in _lines(path):
                    if id in self.tests:
                        self.tests[id].lines[str(Path(file).relative_to(root))] = int.from_bytes(lines, "little")

    @cached_property
    def by_module(self) -> dict[str, list[str]]:
        """The ids of the tests that run lines of each module."""
        found: dict[str, list[str]] = defaultdict(list)
        for id, test in sorted(self.tests.items()):
            for module in test.lines:
                found[module].append(id)
        return found

    def running(self, module: str, first: int, last: int) -> list[str]:
        """The ids of the tests that run any of the lines ``first`` to ``last``."""
        mask = (1 << last + 1) - (1 << first)
        return [id for id in self.by_module.get(module, ()) if self.tests[id].lines[module] & mask]

    def spread(self, ids: Iterable[str], module: str, limit: int) -> list[str]:
        """At most ``limit`` tests from as many files as possible; half of them from the file that fits the module best.

        The file that fits best has the module's name, or else its tests run most lines of it. The tests taken from a file
        are evenly spaced.
        """
        by_file: dict[str, list[str]] = defaultdict(list)
        for id in ids:
            by_file[self.tests[id].file].append(id)
        home = f"test_{Path(module).stem.lstrip('_')}.py"
        files = sorted(by_file, key=lambda f: (Path(f).name != home, -self._lines_run(by_file[f], module), f))
        chosen: list[str] = []
        for number, file in enumerate(files):
            left = limit - len(chosen)
            quota = max(left // 2 if not number else left // (len(files) - number), 1)
            chosen += evenly(by_file[file], min(quota, left))
        return chosen

    def _lines_run(self, ids: Iterable[str], module: str) -> int:
        run = 0
        for id in ids:
            run |= self.tests[id].lines.get(module, 0)
        return run.bit_count()

    def __getstate__(self) -> dict[str, Any]:
        return {"tests": self.tests, "digests": self.digests}


def naming(changed: Iterable[str], sources: Mapping[str, str]) -> set[str]:
    """The paths in ``changed``, and those of the sources that import the modules of any of them, and so on.

    A ``conftest.py`` concerns all files at its folder and below.
    """
    found, new = set[str](), set(changed)
    while new:
        found |= new
        folders = tuple(path.removesuffix("conftest.py") for path in new if path.endswith("conftest.py"))
        stems = "|".join(Path(path).stem for path in new)
        imports = re.compile(rf"^\s*(from\s+([\w.]+\.)?|import\s+([\w.]+\.|.*,\s*)?)({stems})\b", re.MULTILINE)
        new = {path for path, text in sources.items() if path.startswith(folders) or imports.search(text)} - found
    return found


def evenly(items: Sequence[str], count: int) -> list[str]:
    """At most ``count`` items, evenly spaced."""
    count = min(count, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def _lines(path: Path) -> Iterable[tuple[str, str, bytes]]:
    """The test, module and bit set of lines of each record in a file that coverage wrote."""
    query = """select context.context, file.path, line_bits.numbits from line_bits
        join context on context.id = line_bits.context_id join file on file.id = line_bits.file_id"""
    connection = sqlite3.connect(path)
    try:
        yield from connection.execute(query)
    finally:
        connection.close()
