"""Machine code on disk: used again, never for other source text, and safe among processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from numba.core import config
from numba.core.caching import CompileResultCacheImpl

from irrun.kernels.compiled import machine_code, processor

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the source text, beside which machine code is kept in the folder ``code``."""
    source = Path(machine_code.__file__).parent
    for file in source.glob("*.py"):
        shutil.copy(file, tmp_path)
    monkeypatch.setattr(machine_code, "__file__", str(tmp_path / "machine_code.py"))
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "code"))
    machine_code._source.cache_clear()
    yield tmp_path
    machine_code._source.cache_clear()


def doubled() -> Any:
    """Return a compiled function, as a new process would have it."""

    def double(x: np.ndarray) -> float:
        return x.sum() * 2

    return processor.compiled(double)


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "code").rglob("*double*.nbc"))


def test_a_second_process_compiles_nothing(folder: Path) -> None:
    assert doubled()(np.ones(3, np.float32)) == 6
    (entry,) = entries(folder)
    before = entry.stat().st_mtime_ns
    again = doubled()
    assert again(np.ones(3, np.float32)) == 6
    assert sum(again.stats.cache_hits.values()) == 1
    assert entry.stat().st_mtime_ns == before
    assert entries(folder) == [entry]


def test_other_argument_types_are_other_entries(folder: Path) -> None:
    function = doubled()
    function(np.ones(3, np.float32))
    function(np.ones(3, np.float64))
    assert len(entries(folder)) == 2


@pytest.mark.parametrize("module", ["block.py", "functions.py"])
def test_a_change_of_another_module_makes_entries_invalid(folder: Path, module: str) -> None:
    doubled()(np.ones(3, np.float32))
    (before,) = entries(folder)
    file = folder / module
    file.write_text(file.read_text() + "\n_CHANGED = 1\n")
    machine_code._source.cache_clear()
    doubled()(np.ones(3, np.float32))
    (after,) = entries(folder)
    assert after != before


def test_a_damaged_entry_is_written_again(folder: Path) -> None:
    doubled()(np.ones(3, np.float32))
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    entry.write_bytes(whole[:10])
    assert doubled()(np.ones(3, np.float32)) == 6
    assert entry.stat().st_size > 10


def test_a_folder_that_cannot_be_written_to(folder: Path) -> None:
    function = doubled()
    (folder / "code").rename(folder / "gone")
    (folder / "code").write_text("a file where the folder was")
    assert function(np.ones(3, np.float32)) == 6


def test_no_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    assert doubled()(np.ones(3, np.float32)) == 6


def test_processes_that_compile_at_the_same_time(tmp_path: Path) -> None:
    """Each compiles the function for other types first. Each then gets what it asks for, also from the entries."""
    (tmp_path / "sums.py").write_text(
        "import sys\n"
        "import numpy as np\n"
        "from irrun.kernels.compiled.processor import compiled\n"
        "@compiled\n"
        "def total(x):\n"
        "    s = 0.0\n"
        "    for i in range(x.size):\n"
        "        s += x[i]\n"
        "    return s\n"
        "types = sys.argv[1:]\n"
        "assert [total(np.arange(5).astype(t)) for t in types] == [10] * len(types)\n"
    )
    types = ["f4", "f8", "i1", "u1", "i8"]
    for _ in range(2):
        running = [
            subprocess.Popen(
                [sys.executable, str(tmp_path / "sums.py"), *types[n:], *types[:n]], cwd=ROOT,
                env={"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "code"), "PATH": ""},
                stderr=subprocess.PIPE, text=True,
            )
            for n in range(3)
        ]  # fmt: skip
        assert [(process.communicate()[1], process.returncode) for process in running] == [("", 0)] * 3
    assert len(list((tmp_path / "code").rglob("*total*.nbc"))) == len(types)


def test_the_user_of_a_terminal_is_told_once_what_takes_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine_code, "PATIENCE", 0.0)
    for is_terminal in (False, True):
        monkeypatch.setattr(machine_code, "_notice", machine_code._Notice())
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal, raising=False)
        for _ in range(2):
            function = doubled()
            function._cache.flush()
            function(np.ones(3, np.float32))
        timer = machine_code._notice.timer
        if timer is not None:
            timer.join()
        told = "irrun compiles kernels for this processor, which it does only once\n"
        assert capsys.readouterr().err == (told if is_terminal else "")
