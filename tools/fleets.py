"""Run, kill and resume large batches, and check large trees: the full size of what tests/fleet does with little.

``python -m tools fleets batch 10000`` measures one and two processes and their memory, and kills the parent and a
worker; ``dask 10000`` does the same with a Dask cluster, one of whose workers is killed; ``check 2000`` measures a tree
of models that is checked, checked again, and checked after a change. Each prints its figures, and fails if an output
differs from that of an uninterrupted run.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import irrun
from irrun import build as b

IRRUN: Final = (sys.executable, "-m", "irrun")


def write_network(path: Path, blocks: int = 2, seed: int = 0) -> Path:
    """Write a small convolutional network with a fixed batch of 1."""
    rng = np.random.default_rng(seed)
    x = b.parameter([1, 3, 32, 32], "f32", name="image")
    value, channels = x, 3
    for block in range(blocks):
        weights = rng.normal(size=(16, channels, 3, 3)).astype(np.float32) / 8
        convolved = b.Convolution(
            value, weights, strides=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1], name=f"conv{block}"
        )  # fmt: skip
        value = b.ReLU(convolved)
        channels = 16
    pooled = b.ReduceMean(value, [2, 3])
    irrun.save_model(b.model([b.MatMul(pooled, rng.normal(size=(16, 10)).astype(np.float32))]), path)
    return path


def write_inputs(folder: Path, count: int) -> Path:
    """Write a folder of .npy files, which fit ``write_network``."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number in range(count):
        np.save(folder / f"{number:05}.npy", rng.random((1, 3, 32, 32), np.float32))
    return folder


def start(arguments: Sequence[str | Path], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*IRRUN, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env={**os.environ, "IRRUN_CACHE_DIR": options.pop("cache", "")}, **options,
    )  # fmt: skip


def run(arguments: Sequence[str | Path], **options: Any) -> tuple[int, str, str]:
    process = start(arguments, **options)
    out, err = process.communicate()
    return process.returncode, out, err


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every result in a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".irrun" not in path.parts
    }


def descendants(pid: int) -> set[int]:
    """Return the processes that a process has started, and those that these have."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def workers(pid: int, seconds: float = 30) -> list[int]:
    """Wait until a process has workers, descendants of it that multiprocessing has spawned, and return these.

    A process has none for some milliseconds while it replaces a worker that was killed.
    """
    end = time.monotonic() + seconds
    while not (found := [child for child in descendants(pid) if "spawn_main" in _command(child)]):
        assert time.monotonic() < end, f"no workers after {seconds} s"
        time.sleep(0.005)
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def wait_for_results(folder: Path, count: int, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while sum(1 for _ in folder.glob("*.np?")) < count:
        assert time.monotonic() < end, f"fewer than {count} results after {seconds} s"
        time.sleep(0.02)


def ended(pids: Sequence[int], seconds: float = 30) -> bool:
    """Return whether processes end within some time."""
    end = time.monotonic() + seconds
    while any(_runs(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Memory:
    """The private bytes of a process and its descendants, read twice a second while a ``with`` block runs."""

    def __init__(self, pid: int) -> None:
        self.pid, self.readings = pid, list[int]()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._stop.wait(0.5):
            self.readings.append(sum(map(_private, {self.pid, *descendants(self.pid)})))


def _private(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
    except OSError:
        return 0


def batch(count: int, folder: Path) -> Iterator[str]:
    """Yield the figures of ``irrun batch``."""
    model, inputs = write_network(folder / "net.xml"), write_inputs(folder / "in", count)
    rates, spent = {}, {}
    for jobs in (1, 2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = start(["batch", model, inputs, "-o", folder / f"out{jobs}", "-j", str(jobs), "--format", "json"])
        with Memory(process.pid) as memory:
            out, err = process.communicate()
        assert process.returncode == 0, err
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent[jobs] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        rates[jobs] = json.loads(out)["rate"]
        third = max(1, len(memory.readings) // 3)
        early, late = (max(part) / 2**20 for part in (memory.readings[: 2 * third], memory.readings[-third:]))
        yield (
            f"{jobs} processes: {rates[jobs]:.0f}/s, {spent[jobs] / count * 1e3:.2f} ms of the processor for each; "
            f"private memory {early:.1f} MiB, in the last third {late:.1f}"
        )
    yield f"two processes: {rates[2] / rates[1]:.2f} x one; if no other work ran, {2 * spent[1] / spent[2]:.2f} x"
    whole = contents(folder / "out1")
    assert len(whole) == count
    assert contents(folder / "out2") == whole
    killed = folder / "killed"
    command = ["batch", model, inputs, "-o", killed, "-j", "2", "--format", "json"]
    process = start(command)
    wait_for_results(killed, count // 4)
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    wait_for_results(killed, count // 2)
    left = [process.pid, *workers(process.pid)]
    process.kill()
    process.communicate()
    assert ended(left), "workers outlive their parent"
    done = len(contents(killed))
    status, out, err = run(command)
    assert status == 0, err
    again = json.loads(out)
    assert contents(killed) == whole
    yield f"a worker killed at 1/4, the parent at 1/2 with {done} done: resumed with {again['done']} more; equal"


def dask(count: int, folder: Path) -> Iterator[str]:
    """Yield the figures of ``irrun batch --dask local``, one of whose workers is killed."""
    model, inputs = write_network(folder / "net.xml"), write_inputs(folder / "in", count)
    status, out, err = run(["batch", model, inputs, "-o", folder / "one", "-j", "1", "--format", "json"])
    assert status == 0, err
    yield f"one process without Dask: {json.loads(out)['rate']:.0f}/s"
    process = start(["batch", model, inputs, "-o", folder / "out", "-j", "2", "--dask", "local", "--format", "json"])
    wait_for_results(folder / "out", count // 2)
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert contents(folder / "out") == contents(folder / "one")
    yield f"two Dask workers, one killed at half: {json.loads(out)['rate']:.0f}/s; complete and equal"


def check(count: int, folder: Path, blocks: int = 30) -> Iterator[str]:
    """Yield the figures of ``irrun check`` of a tree."""
    tree = folder / "tree"
    tree.mkdir()
    first = write_network(folder / "net.xml", blocks)
    text, weights = first.read_text(), first.with_suffix(".bin").read_bytes()
    for number in range(count):
        path = tree / f"{number % 20:02}" / f"{number:05}.xml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace('name="conv0"', f'name="first{number}"'))
        path.with_suffix(".bin").write_bytes(weights)
    command, cache = ["check", tree, "-j", "2", "--summary", "--format", "json"], str(folder / "cache")
    took = {}
    for name in ("first", "again", "changed"):
        if name == "changed":
            write_network(tree / "03" / "00003.xml", blocks + 1)
        since = time.perf_counter()
        status, out, err = run(command, cache=cache)
        took[name] = time.perf_counter() - since
        assert status == 0, err
        rows = json.loads(out)["models"]
        fresh = [row["file"] for row in rows if not row["cached"]]
        assert len(rows) == count
        assert len(fresh) == {"first": count, "again": 0, "changed": 1}[name], fresh
        yield f"{name}: {took[name]:.2f} s, {len(fresh)} of {count} checked"
    yield f"again: {took['first'] / took['again']:.1f} x faster"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for line in {"batch": batch, "dask": dask, "check": check}[sys.argv[1]](int(sys.argv[2]), Path(name)):
            print(line, flush=True)
