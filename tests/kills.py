"""Kill whole command-line processes at random moments while they write, and look at what they leave.

``python tests/kills.py 500`` kills 500 processes for each writer and prints what it found. The suite kills a few.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import irrun

SAMPLES = Path(__file__).parent.parent / "samples"
WRITERS: dict[str, Sequence[str]] = {
    "run -o": ("run", "m.xml", "-o", "out.npz"),
    "extract": ("extract", "m.xml", "-o", "part.xml"),
    "check --fix": ("check", "wrong.xml", "--fix"),
    "--dump": ("run", "m.xml", "--dump", "dump"),
    "--trace": ("run", "m.xml", "--trace", "trace.json"),
}


def prepare(folder: Path) -> None:
    """Write a model, a model to fix, and an old pair that extract replaces."""
    model = irrun.read_model(SAMPLES / "convnet.xml")
    irrun.save_model(model, folder / "m.xml")
    irrun.save_model(irrun.extract(model, "logits"), folder / "part.xml", compact=True)
    (folder / "wrong.xml").write_bytes((SAMPLES / "wrong_dim.xml").read_bytes())
    (folder / "wrong.bin").write_bytes((SAMPLES / "wrong_dim.bin").read_bytes())


def inspect(folder: Path) -> None:
    """Raise an exception if a file in the folder is half-written, or a pair mixed."""
    for path in folder.rglob("*"):
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None
        elif path.suffix == ".npy":
            np.load(path, allow_pickle=False)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".xml":
            codes = {d.code for d in irrun.check(path)}
            assert codes <= {"IR401"}, (path.name, codes)


def kill(folder: Path, arguments: Sequence[str], delay: float) -> bool:
    """Start a command and kill it after ``delay`` seconds. Return whether it still ran."""
    process = subprocess.Popen(
        [sys.executable, "-m", "irrun", *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def campaign(writer: str, count: int, seed: int = 0) -> Counter[str]:
    """Kill ``count`` processes of one writer, and return how many still ran, and how often a kill left litter."""
    rng, seen = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        begin = time.monotonic()
        kill(folder, WRITERS[writer], 60)
        duration = time.monotonic() - begin
        for _ in range(count):
            if writer == "check --fix":
                prepare(folder)
            seen["killed"] += kill(folder, WRITERS[writer], duration * rng.uniform(0.5, 1.1))
            seen["left litter"] += any(folder.rglob(".*.part"))
            inspect(folder)
        kill(folder, WRITERS[writer], 60)
        assert not [*folder.rglob(".*.part")], "the next run removes what was left"
        inspect(folder)
    return seen


if __name__ == "__main__":
    for one in WRITERS:
        print(one, dict(campaign(one, int(sys.argv[1]) if len(sys.argv) > 1 else 100)), flush=True)
