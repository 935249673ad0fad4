"""A disk that is full: one message with a code and a path, and no half-written file, whatever irrun writes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irrun
import irrun.build as b
from irrun.arrays.writing import write_npy, write_npz
from irrun.diagnostics import WriteError
from irrun.files import NewFile, write_file, writing
from kills import prepare_wrong

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of the size of files")

_LIMITED = (
    "import resource, sys; n = int(sys.argv.pop(1)); resource.setrlimit(resource.RLIMIT_FSIZE, (n, n));"
    "from irrun.cli import main; sys.argv[0] = 'irrun'; main()"
)
"""The command line in a process that can write no file of more bytes than its first argument."""


def prepare(folder: Path) -> None:
    x = b.parameter([1, 20_000], "f32", name="x")
    weights = np.random.default_rng(0).random((1, 20_000), np.float32)
    irrun.save_model(b.model([b.Add(b.ReLU(x), weights, name="y")]), folder / "m.xml")
    chain = b.parameter([1], "f32", name="x")
    for _ in range(60):
        chain = b.Sigmoid(chain)
    irrun.save_model(b.model([chain]), folder / "deep.xml")
    prepare_wrong(folder)
    for n in range(2):
        np.save(folder / f"in{n}.npy", weights)


COMMANDS = {
    "npy": ("run m.xml -o out.npy", "out.npy"), "npz": ("run m.xml -o out.npz", "out.npz"), "dump": ("run m.xml --dump dump", "dump/000000_x_0.npy"),
    "trace": ("run deep.xml --trace t.json", "t.json"), "report": ("report deep.xml -o r.html", "r.html"), "graph": ("show deep.xml --graph g.svg", "g.svg"),
    "extract": ("extract m.xml --to y -o part.xml", "part.xml"), "edit": ("edit m.xml --rename-layer y=z --no-verify -o e.xml", "e.xml"), "fix": ("check wrong.xml --fix", "wrong.xml"),
    "batch": ("batch m.xml in0.npy in1.npy -o outs", "outs/"), "stack": ("batch m.xml in0.npy in1.npy -o outs.npy", "outs"),
    "schema": ("schema -o s.rng", "s.rng"), "bisect": ("bisect m.xml irrun:m.xml -o bi", "0.bin"), "results": ("conformance run irrun -o c.jsonl --only Tile-1/*", ""),
}  # fmt: skip
"""A command for each writer, and the end of the path that the message names. Some write to the temporary folder first."""
_KEPT = ("index.json", "lock", "manifest.json", "c.jsonl")
"""Files that are whole at any time: the index of a dump names what was written, a later run goes on with the others."""


@pytest.mark.processes
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk(name: str, tmp_path: Path) -> None:
    command, path = COMMANDS[name]
    prepare(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    environment = {**os.environ, "IRRUN_CACHE_DIR": "", "COLUMNS": "1000", "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-P", "-c", _LIMITED, "600", *command.split()], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.count("error[IR011 unwritable]: cannot write ") == 1
    assert path in ended.stderr
    assert ": file too large" in ended.stderr
    left = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and file.name not in _KEPT}
    assert left == before


class _Full:
    """A device that has room for some bytes. It stands for the file below a NewFile."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, data: bytes) -> int:
        self.room -= memoryview(data).nbytes
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return memoryview(data).nbytes


def _write_to(target: Path, device: _Full, array: np.ndarray) -> None:
    with NewFile(target) as new:
        file, new.file = new.file, device  # type: ignore[assignment]
        try:
            write_npy(new.file, array)
        finally:
            new.file = file


@pytest.mark.parametrize("room", [0, 1, 127, 128, 129, 1000, 4000])
def test_no_space_at_any_byte(room: int, tmp_path: Path) -> None:
    """numpy raised an error without a number for a file that was opened for writing alone."""
    array, target = np.arange(1000, dtype=np.float32), tmp_path / "a.npy"
    with pytest.raises(WriteError, match=r"IR011.*a\.npy: no space left on device; free some space") as caught:
        _write_to(target, _Full(room), array)
    assert caught.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


def _limited(folder: Path) -> None:
    """Write arrays and models under the limit of this process, and print the errors."""
    array = np.arange(100_000, dtype=np.float32)
    x = b.parameter([1, array.size], "f32", name="x")
    model = b.model([b.Add(x, array.reshape(1, -1))])

    def npy(path: Path) -> None:
        with NewFile(path) as new:
            write_npy(new.file, array)
            new.finish()

    def npz(path: Path) -> None:
        with NewFile(path) as new:
            write_npz(new.file, [("a", array)])
            new.finish()

    for name, write in {
        "a.npy": npy, "a.npz": npz, "m.xml": lambda path: irrun.save_model(model, path), "plain": lambda path: write_file(path, array.tobytes()),
    }.items():  # fmt: skip
        try:
            write(folder / name)
        except WriteError as error:
            print(error.diagnostics[0].code, name, error.errno == errno.EFBIG, str(folder) in str(error))


@pytest.mark.processes
def test_the_api_on_a_full_disk(tmp_path: Path) -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); from pathlib import Path;"
        "from cli.test_full_disk import _limited; _limited(Path(sys.argv[1]))"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.stdout.split("\n") == [f"IR011 {name} True True" for name in ("a.npy", "a.npz", "m.xml", "plain")] + [
        ""
    ], ended.stderr
    assert not list(tmp_path.iterdir())


def test_other_errors_stay(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), writing(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "missing")
    with pytest.raises(WriteError, match=r"IR011.*: input/output error"), writing(tmp_path / "a"):
        raise OSError(errno.EIO, "Input/output error")
