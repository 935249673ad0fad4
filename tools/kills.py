"""Kill command-line processes while they write, and check the files that they leave.

``python -m tools kills 500`` kills 500 processes for each writer, each one at a random moment after its first temporary
file appeared, and prints how many kills landed. ``python -m tools kills 500 extract`` does so for one writer. The suite
kills a few.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Final

import numpy as np

import irrun
import irrun.build as b
import irrun.cli.check
import irrun.cli.extract
import irrun.cli.run
from irrun.cli import main

WRITERS: Final[dict[str, Sequence[Sequence[str]]]] = {
    "run -o": [("run", "m.xml", "-o", "out.npz")],
    "run --dump": [("run", "m.xml", "--dump", "dump")],
    "run --trace": [("run", "deep.xml", "--trace", "trace.json")],
    "extract": [("extract", "m.xml", "--to", f"part{n}", "-o", "part.xml") for n in (1, 2)],
    "check --fix": [("check", "wrong.xml", "--fix")],
}
"""The commands that write. Those of one writer take turns, so that a mixture of their files would show."""

_SIZE: Final = 1 << 18
"""The elements of a constant: its file takes milliseconds to write."""


def prepare(folder: Path) -> None:
    """Write a model of two branches with weights of their own, a deep one, and one that ``--fix`` corrects."""
    x = b.parameter([1, _SIZE], "f32", name="x")
    rng = np.random.default_rng(0)
    parts = [b.Add(x, rng.random((1, _SIZE), np.float32), name=f"part{n}") for n in (1, 2)]
    long = b.Concat([*parts, rng.random((1, _SIZE), np.float32)], axis=1, name="long")
    irrun.save_model(b.model([long]), folder / "m.xml")
    chain = b.parameter([1], "f32", name="x")
    for _ in range(1000):
        chain = b.Sigmoid(chain)
    irrun.save_model(b.model([chain]), folder / "deep.xml")
    prepare_wrong(folder)


def prepare_wrong(folder: Path) -> None:
    """Write a model that ``--fix`` corrects. A long comment makes the file large."""
    (folder / "wrong.xml").write_text(_WRONG + f"<!--{'x' * 1_000_000}-->\n")


_WRONG: Final = """<net name="wrong" version="11">
    <layers>
        <layer id="0" name="x" type="Parameter" version="opset1">
            <data shape="2,3" element_type="f32"/>
            <output><port id="0" precision="FP32" names="x"><dim>2</dim><dim>3</dim></port></output>
        </layer>
        <layer id="1" name="y" type="ReLU" version="opset1">
            <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input>
            <output><port id="1" precision="FP32" names="y"><dim>2</dim><dim>4</dim></port></output>
        </layer>
        <layer id="2" name="y/sink" type="Result" version="opset1">
            <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input>
        </layer>
    </layers>
    <edges>
        <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
    </edges>
</net>
"""


def pairs(folder: Path) -> set[tuple[str, ...]]:
    """Return the pairs of an ``.xml`` and a ``.bin`` that ``extract`` writes when nothing kills it, as hashes."""
    whole = set()
    for arguments in WRITERS["extract"]:
        run(folder, arguments)
        whole.add(_hashes(folder))
    return whole


def _hashes(folder: Path) -> tuple[str, ...]:
    return tuple(hashlib.sha256((folder / f"part{suffix}").read_bytes()).hexdigest() for suffix in (".xml", ".bin"))


def inspect(folder: Path, whole: set[tuple[str, ...]]) -> None:
    """Raise AssertionError, or the error of the reader, if a file in the folder is half-written or a pair is mixed."""
    for path in folder.rglob("*"):
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None
        elif path.suffix == ".npy":
            np.load(path, allow_pickle=False)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.name == "wrong.xml":
            assert path.read_text().endswith("-->\n")
            assert {d.code for d in irrun.check(path)} <= {"IR401"}
        elif path.name == "part.xml":
            assert _hashes(folder) in whole, "a mixed pair"


def kill_while_writing(folder: Path, arguments: Sequence[str], rng: random.Random) -> bool:
    """Start a command, and kill it at a random moment after it began to write. Return whether it was still alive."""
    process = _start(folder, arguments)
    while process.is_alive() and not any(_partial(folder)):
        time.sleep(0.00005)
    time.sleep(10 ** rng.uniform(-5, -2))
    alive = process.is_alive()
    process.kill()
    process.join()
    return alive


def run(folder: Path, arguments: Sequence[str]) -> None:
    """Run a command to its end."""
    process = _start(folder, arguments)
    process.join()


def _start(folder: Path, arguments: Sequence[str]) -> ForkProcess:
    """Start the command line in a process of its own.

    The process is forked from this one, which has imported irrun, because a kill lands in the few milliseconds in which
    a process writes, and to start Python takes a hundred times as long.
    """
    process = ForkProcess(target=_command_line, args=(folder, arguments))
    process.start()
    return process


def _command_line(folder: Path, arguments: Sequence[str]) -> None:
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    sys.argv = ["irrun", *arguments]
    main()


def _partial(folder: Path) -> Iterator[Path]:
    for directory in (folder, folder / "dump"):
        if directory.exists():
            yield from (directory / name for name in os.listdir(directory) if name.endswith(".part"))


def campaign(writer: str, kills: int, seed: int = 0) -> Counter[str]:
    """Kill processes of a writer until ``kills`` have landed. Return the starts, the kills, and how many left litter.

    Litter is removed after each process, so that the next one's temporary file can be recognised; the last process
    runs to its end and has to remove the litter of the one before.
    """
    rng, seen = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        irrun.check(folder / "m.xml")  # imports the operations, before the first fork
        whole = pairs(folder)
        for number in count():
            if writer == "check --fix":
                prepare_wrong(folder)
            arguments = WRITERS[writer][number % len(WRITERS[writer])]
            seen["started"] += 1
            seen["killed while writing"] += kill_while_writing(folder, arguments, rng)
            litter = [*_partial(folder)]
            seen["left litter"] += bool(litter)
            inspect(folder, whole)
            if seen["killed while writing"] >= kills:
                break
            for path in litter:
                path.unlink()
        run(folder, WRITERS[writer][0])
        assert not [*_partial(folder)], "a later run removes what a killed one left"
        inspect(folder, whole)
    return seen


if __name__ == "__main__":
    for one in sys.argv[2:] or WRITERS:
        print(one, dict(campaign(one, int(sys.argv[1]) if len(sys.argv) > 1 else 100)), flush=True)
