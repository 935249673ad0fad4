"""Machine code on disk: used again, never for other source text, and safe among processes."""

from __future__ import annotations

import ast
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

import irrun
from irrun import build as b
from irrun import fast
from irrun.base.compiling import Compiling
from irrun.fast.machine import ahead, compiling, machine_code, memory, processor, structures
from irrun.files import cache_folder
from places import ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the source text, beside which machine code is kept in the folder ``code``."""
    source = Path(ahead.__file__).parents[1]
    for file in source.glob("*.py"):
        shutil.copy(file, tmp_path)
    monkeypatch.setattr(ahead, "__file__", str(tmp_path / "machine" / "ahead.py"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "code"))
    ahead.source.cache_clear()
    yield tmp_path
    ahead.source.cache_clear()


def doubled() -> Any:
    """Return a compiled function, as a new process would have it."""

    def double(x: np.ndarray) -> int:
        return int(x.sum() * 2)

    return processor.compiled(double)


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "code").rglob("*double*.o"))


def test_a_second_process_compiles_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doubled()(np.ones(3, np.float32)) == 6
    (entry,) = entries(folder)
    before = entry.stat().st_mtime_ns
    monkeypatch.setattr(compiling, "compile", None)
    assert doubled()(np.ones(3, np.float32)) == 6
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
    ahead.source.cache_clear()
    doubled()(np.ones(3, np.float32))
    assert len({before, *entries(folder)}) == 2


def test_a_damaged_entry_is_written_again(folder: Path) -> None:
    doubled()(np.ones(3, np.float32))
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    entry.write_bytes(whole[:10])
    assert doubled()(np.ones(3, np.float32)) == 6
    assert entry.stat().st_size > 10


def test_a_folder_that_cannot_be_written_to(folder: Path) -> None:
    (folder / "code").write_text("a file where the folder would be")
    assert doubled()(np.ones(3, np.float32)) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode there")
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_can_write_to(mode: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read from it and nothing is written to it: the kernel is compiled again."""
    doubled()(np.ones(3, np.float32))
    (entry,) = entries(folder)
    before, compiled = entry.stat().st_mtime_ns, []
    entry.parent.chmod(mode)
    compile = compiling.compile
    monkeypatch.setattr(compiling, "compile", lambda *of: (compiled.append(of), compile(*of))[1])
    assert doubled()(np.ones(3, np.float32)) == 6
    assert len(compiled) == 1
    assert entry.stat().st_mtime_ns == before


@pytest.mark.skipif(sys.platform == "win32", reason="files have no owner there")
@pytest.mark.parametrize("what", ["folder", "entry"])
def test_code_of_another_user(what: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubled()(np.ones(3, np.float32))
    (entry,) = entries(folder)
    place = entry if what == "entry" else entry.parent
    if os.geteuid() == 0:
        os.chown(place, 65534, 65534)
    else:  # this process says that it is another user
        monkeypatch.setattr(os, "geteuid", lambda: 65533)
    with pytest.raises(PermissionError, match="belongs to another user"):
        machine_code._read(entry)
    assert doubled()(np.ones(3, np.float32)) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode there")
def test_the_folder_is_private(folder: Path) -> None:
    doubled()(np.ones(3, np.float32))
    assert stat.S_IMODE((folder / "code").stat().st_mode) == 0o700


def test_a_relative_folder_for_caches_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IRRUN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    found = cache_folder()
    assert found is not None
    assert not found.is_relative_to(tmp_path)
    assert found.is_absolute()


def test_what_was_never_finished_is_removed(folder: Path) -> None:
    """Entries of other versions, which may be in use, stay for a month; a temporary file for an hour."""
    doubled()(np.ones(3, np.float32))
    (entry,) = entries(folder)
    base = entry.name.split(".")[:-3]
    ages = {"0.key.o": 20, "1.key.o": 40, "2.key.o.x.tmp": 0, "3.key.o.x.tmp": 1}
    for name, days in ages.items():
        file = entry.with_name(".".join([*base, name]))
        file.touch()
        then = time.time() - days * 24 * 3600
        os.utime(file, (then, then))
    doubled()(np.ones(3, np.float64))
    left = {file.name.removeprefix(".".join(base) + ".") for file in entry.parent.iterdir()}
    assert left & {*ages} == {"0.key.o", "2.key.o.x.tmp"}


def test_no_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "kernels_folder", lambda: None)
    assert doubled()(np.ones(3, np.float32)) == 6


@machine_code.MachineCode
def described(values: np.ndarray, flag: bool, number: int, single: np.float32, double: float) -> int:
    """Return a number in which each argument has decimal places of its own."""
    total = number + 10 * int(single) + 100 * int(double) + (1000 if flag else 0)
    for place in range(len(values)):
        total += 10000 * int(values[place])
    return total


@pytest.mark.parametrize(
    ("values", "flag", "number"),
    [
        (np.array([3, 1], np.float32), True, 7),
        (np.array([3, 9, 1], np.float32)[::2], np.True_, np.int32(7)),
        (np.array([3, 1], np.float64), True, np.uint8(7)),
        (np.array([3, 1], np.uint8).view(np.recarray), True, 7),
        (np.array([3, 1], ">f4"), True, 7),
    ],
)
def test_arguments_of_every_type(values: np.ndarray, flag: bool, number: int) -> None:
    """An entry takes the arguments that it was compiled for, and no others, also after other entries."""
    for _ in range(2):
        if values.dtype.byteorder == ">":
            with pytest.raises(Exception, match=">f4"):  # numba knows no foreign byte order
                described(values, flag, number, np.float32(4.5), 2.5)
        else:
            assert described(values, flag, number, np.float32(4.5), 2.5) == 41247
            assert described(values, flag, number, 4.5, np.float64(2.5)) == 41247


def test_the_lock_of_the_interpreter_is_free_while_a_kernel_computes() -> None:
    """Another thread counts while a kernel waits for it."""

    @machine_code.MachineCode
    def wait(counter: np.ndarray) -> int:
        for turn in range(1 << 40):
            if counter[turn & 1] > 0:
                return 1
        return 0

    counter = np.zeros(2, np.int64)
    wait(np.ones(2, np.int64))
    timer = threading.Timer(0.1, counter.fill, [1])
    timer.start()
    assert wait(counter) == 1


def test_memory_is_freed_and_its_lack_reported() -> None:
    @machine_code.MachineCode
    def allocate(size: int) -> int:
        values = np.empty(size, np.int64)
        values[size - 1] = 5
        return values[size - 1]

    before = _memory()
    for _ in range(100):
        assert allocate(1 << 18) == 5
    assert _memory() - before < 50 << 20
    with pytest.raises(MemoryError):
        allocate(1 << 55)


def _memory() -> int:
    """Return the bytes of address space of this process; 0 where the system does not say."""
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[0]) * 4096 if file.exists() else 0


def test_a_process_that_compiles_nothing_imports_nothing_of_numba(folder: Path) -> None:
    """The second process has the entry on disk, and imports nothing of numba."""
    (folder / "sums.py").write_text(
        "import sys\n"
        "import numpy as np\n"
        "from irrun.fast.machine.processor import compiled\n"
        "@compiled\n"
        "def total(x):\n"
        "    return int(np.zeros(x.size).size + x.size)\n"
        "assert total(np.ones(3)) == 6\n"
        "print('numba' in sys.modules)\n"
    )
    command = [sys.executable, str(folder / "sums.py")]
    told = [
        subprocess.run(
            command, cwd=ROOT, env={"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "code"), "PATH": ""},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert told == ["True", "False"]


def test_processes_that_compile_at_the_same_time(tmp_path: Path) -> None:
    """Each compiles the function for other types first. Each then gets what it asks for, also from the entries."""
    (tmp_path / "sums.py").write_text(
        "import sys\n"
        "import numpy as np\n"
        "from irrun.fast.machine.processor import compiled\n"
        "@compiled\n"
        "def total(x):\n"
        "    s = 0.0\n"
        "    for i in range(x.size):\n"
        "        s += x[i]\n"
        "    return int(s)\n"
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
        for process in running:
            said = process.communicate()[1].splitlines()
            assert process.returncode == 0
            assert all(line.startswith("irrun compiles kernels") for line in said), said
    assert len(list((tmp_path / "code").rglob("*total*.o"))) == len(types)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_the_user_is_told_once_what_takes_long(
    is_terminal: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also in a log, where there is no bar: compiling takes up to a minute."""
    told = Compiling(patience=0.0)
    monkeypatch.setattr(machine_code, "COMPILING", told)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    for _ in range(2):
        for entry in entries(folder):
            entry.unlink()
        doubled()(np.ones(3, np.float32))
    told.join()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("irrun compiles kernels for this processor and keeps them (irrun cache); ")
    assert not told.is_on
    assert told.seconds > 0


def test_nobody_is_told_what_takes_no_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = Compiling(patience=60.0)
    with told:
        assert told.is_on
    told.join()
    assert capsys.readouterr().err == ""


def test_machine_code_is_kept_in_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not beside irrun's own files, where ``pip uninstall`` would leave it, and with it a package to import."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("IRRUN_CACHE_DIR", str(tmp_path))
    assert doubled()(np.ones(3, np.float32)) == 6
    assert [file.suffix for file in (tmp_path / "kernels").iterdir()] == [".o"]


OFFSETS = sorted(set(structures.__all__) - {"UNKNOWN", "are_known"})


@pytest.mark.parametrize("by", [-8, -4, 4, 8])
@pytest.mark.parametrize("name", OFFSETS)
def test_other_structures_of_arrays_are_left_to_numpy(name: str, by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of Python or numpy that holds arrays in another way has no compiled kernels, and warns once."""
    monkeypatch.setenv("IRRUN_FAST", "always")
    fast.available.cache_clear()
    assert fast.available()
    monkeypatch.setattr(structures, name, getattr(structures, name) + by)
    fast.available.cache_clear()
    model, x = b.model(b.Tanh(b.parameter([3], "f32", name="x"))), np.ones(3, np.float32)
    with pytest.warns(RuntimeWarning, match="numpy computes in place of compiled kernels: Python 3"):
        executable = irrun.compile(model, exact=False)
    assert not any("compiled" in step.kernel.algorithm for step in executable.plan.steps)
    np.testing.assert_allclose(executable([x])[0], np.tanh(x), rtol=1e-6)
    irrun.compile(model, exact=False)  # warns no more
    monkeypatch.undo()
    fast.available.cache_clear()


def test_machine_code_reads_no_other_offset() -> None:
    """Each place that is read of an argument is one of the offsets that are checked, or lies in an array of numpy's."""
    tree = ast.parse(Path(compiling.__file__).read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.load"]
    read = {(ast.unparse(call.args[0]), ast.unparse(call.args[1])) for call in calls}
    of_objects = {place for source, place in read if source in ("item", "descr")}
    assert of_objects - {"place"} == {*OFFSETS} - {"SHAPE", "STRIDES"}  # ``place`` is one of these two
    assert read - {(source, place) for source, place in read if source in ("item", "descr")} == {
        ("self.table", "8 * place"), ("shape", "8 * n"), ("strides", "8 * n"),
    }  # fmt: skip


def test_the_address_of_an_array_in_any_memory() -> None:
    data = np.zeros((3, 4, 5), np.float32)
    for array in (
        data,
        data[1:, ::2],
        data[::-1, :, 3],
        data[2, 1, 1, ...],
        data[:0],
        data.T,
        data.view("u1")[..., 1:],
    ):
        assert memory.data_address(array) == array.__array_interface__["data"][0]
