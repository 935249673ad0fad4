"""Memory and time of `irrun compare`, next to a plain run of each side: `python -m benchmarks.compare --help`.

The memory is the peak, over time, of the sum of the proportional set sizes of all processes of a command: a page that
several processes share counts once. Linux tells it for each process in ``/proc/PID/smaps_rollup``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

import irrun
from benchmarks.measure import ROOT
from benchmarks.networks import network
from benchmarks.report import processor, store

NETWORKS = {"ResNet-50 224": "resnet50", "BERT-base 128": "bert_base"}
PAIRS = [("irrun", "irrun"), ("irrun", "exact"), ("irrun", "openvino"), ("openvino", "irrun")]
PATIENCE = 0.005
"""Seconds between two looks at the memory."""

OPENVINO = """
import sys
sys.modules["openvino_telemetry"] = None
import numpy as np
import openvino as ov
core = ov.Core()
request = core.compile_model(core.read_model(sys.argv[1]), "CPU").create_infer_request()
with np.load(sys.argv[2]) as feeds:
    request.infer(list(feeds.values()))
"""


@dataclass(frozen=True)
class Cost:
    """What a command takes: bytes of memory at the peak, seconds of the processor, and seconds."""

    memory: int
    cpu: float
    wall: float


def cost(command: Sequence[str], turns: int) -> Cost:
    """Run a command several times, and return the least that it takes. Raises RuntimeError if it fails."""
    costs = [_cost(command) for _ in range(turns)]
    return Cost(min(c.memory for c in costs), min(c.cpu for c in costs), min(c.wall for c in costs))


def _cost(command: Sequence[str]) -> Cost:
    before, start = os.times(), time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(_pss, _family(process.pid))))
            time.sleep(PATIENCE)
        assert process.stderr is not None
        complaint = process.stderr.read().decode("utf-8", "replace").strip()
    wall, after = time.perf_counter() - start, os.times()
    if process.returncode not in (0, 1):  # 1: the sides differ
        raise RuntimeError(complaint or f"exit status {process.returncode}")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Cost(peak, cpu, wall)


def _family(root: int) -> list[int]:
    """Return a process and all that it has started, directly or not."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                status = Path("/proc", entry, "stat").read_text("utf-8", "replace")
            except OSError:  # it has ended
                continue
            children.setdefault(int(status.rpartition(")")[2].split()[1]), []).append(int(entry))
    family = [root]
    for pid in family:
        family += children.get(pid, [])
    return family


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:  # it has ended
        pass
    return 0


def rows(cache: Path, turns: int) -> Iterator[dict[str, Any]]:
    """Yield what each comparison takes, as ``tables.comparisons`` reads it."""
    irrun_command = [sys.executable, "-m", "irrun"]
    for title, name in NETWORKS.items():
        path = str(network(cache, name))
        with tempfile.TemporaryDirectory() as folder:
            feeds = str(Path(folder, "feeds.npz"))
            with np.load(Path(path).with_suffix(".npz")) as stored:
                named = [p.name for p in irrun.read_model(path).parameters]
                np.savez(feeds, **{name: stored[f"0.{k}"] for k, name in enumerate(named)})
            plain = {
                "irrun": cost([*irrun_command, "run", path, "-i", feeds], turns),
                "exact": cost([*irrun_command, "run", "--exact", path, "-i", feeds], turns),
                "openvino": cost([sys.executable, "-c", OPENVINO, path, feeds], turns),
            }
            for pair in PAIRS:
                taken = cost([*irrun_command, "compare", *(f"{side}:{path}" for side in pair), "-i", feeds], turns)
                yield _row(title, pair, [plain[side] for side in pair], taken)


def _row(title: str, pair: Sequence[str], plain: Sequence[Cost], taken: Cost) -> dict[str, Any]:
    """Return a row: the memory next to that of the side that takes more, the time next to that of both sides."""
    return {
        "network": title,
        "reference": pair[0],
        "candidate": pair[1],
        "plain_mb": [c.memory >> 20 for c in plain],
        "mb": taken.memory >> 20,
        "memory": taken.memory / max(c.memory for c in plain),
        "plain_s": [c.cpu for c in plain],
        "s": taken.cpu,
        "time": taken.cpu / sum(c.cpu for c in plain),
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="The folder of converted networks.")
@click.option("--turns", type=click.IntRange(1), default=3, show_default=True, help="Runs of each command.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON.")
def main(cache: Path | None, turns: int, save: Path | None) -> None:
    """Measure the memory and the time of `irrun compare` on ResNet-50 and BERT, on Linux.

    A plain run is `irrun run`, `irrun run --exact`, or reading, compiling and running the model with OpenVINO. The
    ratio of the memory is that to the plain run of the side that takes more, and the ratio of the time, in seconds of
    the processor, that to the plain runs of both sides. All figures are the least of several runs.
    """
    if not Path("/proc/self/smaps_rollup").exists():
        raise click.ClickException("this system does not tell the proportional set size of processes; use Linux")
    found = []
    for row in rows(cache or Path(tempfile.gettempdir(), "irrun-benchmarks"), turns):
        found.append(row)
        click.echo(", ".join(f"{name} {value}" for name, value in row.items()))
    if save:
        store(save, "benchmarks.compare", processor(), found)


if __name__ == "__main__":
    main()
