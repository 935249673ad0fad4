"""The rows as a table for a terminal and as JSON, alone or next to those of an earlier run."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import irrun
from benchmarks.case import Row, Setup
from benchmarks.measure import ENGINES
from benchmarks.tables import geometric_mean, milliseconds, number

Earlier = Mapping[tuple[str, str], float]
"""The ratios of an earlier run, by group and name."""


def machine(setup: Setup) -> dict[str, Any]:
    """Where the figures come from."""
    blas = np.show_config("dicts")["Build Dependencies"]["blas"]  # pyright: ignore
    return {
        **processor(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
        "threads": setup.threads,
        "exact": setup.exact,
        "clock": "processor" if setup.cpu else "wall",
        "system": platform.platform(),
        "python": platform.python_version(),
        "irrun": irrun.__version__,
        **{package: metadata.version(package) for package in ("openvino", "numpy", "onnx")},
        "blas": f"{blas['name']} {blas['version']}",
    }


def processor() -> dict[str, Any]:
    """Return the name of the processor and the number of its cores."""
    return {"cpu": _cpu(), "cores": os.cpu_count()}


def _cpu() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def save(path: Path, facts: Mapping[str, Any], rows: Iterable[Row]) -> None:
    """Write the rows of a run, the machine, the date and the command of this process."""
    store(path, "benchmarks", facts, [row.record() for row in rows])


def store(path: Path, module: str, facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a result that pages quote: the rows, and how ``python -m module`` came to them."""
    stored = {
        "command": shlex.join(["python", "-m", *module.split(), *sys.argv[1:]]),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": facts,
        "rows": rows,
    }
    path.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")


def load(path: Path) -> Earlier:
    """Raises OSError where the file cannot be read, ValueError where it is not what ``save`` writes."""
    try:
        rows = json.loads(path.read_text())["rows"]
        return {(row["group"], row["name"]): row["ratio"] for row in rows if row["ratio"]}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} holds no figures of this benchmark; write them with --save") from None


# ---------------------------------------------------------------------------------------------


def table(group: str, rows: Sequence[Row], earlier: Earlier) -> Table:
    """A group of rows; columns without any entry are left out."""
    columns: dict[str, list[str]] = {
        group: [row.name for row in rows],
        "irrun ms": [_time(row, "irrun") for row in rows],
        "OpenVINO ms": [_time(row, "OpenVINO") for row in rows],
        "ratio": [number(row.ratio) for row in rows],
        "of least": [number(row.least_ratio) for row in rows],
        "irrun auto ms": [_time(row, "irrun auto") for row in rows],
        "as shipped ms": [_time(row, "OpenVINO as shipped") for row in rows],
        "its ratio": [number(row.shipped_ratio) for row in rows],
        "numpy alone ms": [_time(row, "numpy alone") for row in rows],
        "of numpy alone": [number(row.numpy_ratio) for row in rows],
        "was": [number(earlier.get((group, row.name))) for row in rows],
        "change": [_change(row, earlier) for row in rows],
        "memcpy": ["" if row.of_memcpy is None else f"{row.of_memcpy:.0%}" for row in rows],
        **{f"{name} error": [_error(row, name) for row in rows] for name in ENGINES},
        **{f"{name} MB": [_megabytes(row, name) for row in rows] for name in ENGINES},
        "beside, ms": [_beside(row) for row in rows],
    }
    found = Table(box=None, pad_edge=False, header_style="bold")
    kept = {title: cells for title, cells in columns.items() if any(cells)}
    for title in kept:
        left = title in (group, "beside, ms")
        found.add_column(title, justify="left" if left else "right", no_wrap=True)
    for cells in zip(*kept.values()):
        found.add_row(*cells)
    return found


def summary(rows: Sequence[Row]) -> list[str]:
    """What the rows of a group come to: the mean of the ratios, the worst, and the exponents of what grows."""
    lines = [f"{row.name} failed: {row.failed}" for row in rows if row.failed]
    kinds: dict[str, Callable[[Row], float | None]] = {
        "the ratios": lambda row: row.ratio, "those as shipped": lambda row: row.shipped_ratio
    }  # fmt: skip
    for what, ratio_of in kinds.items():
        ratios = {row.name: ratio for row in rows if (ratio := ratio_of(row))}
        if len(ratios) > 1:
            worst = min(ratios, key=lambda name: ratios[name])
            mean = geometric_mean(ratios.values())
            lines.append(f"geometric mean of {what} {mean:.2f}, least {ratios[worst]:.2f} ({worst})")
    growing: dict[str, list[Row]] = {}
    for row in rows:
        if row.at:
            growing.setdefault(row.at[0], []).append(row)
    for what, found in growing.items():
        exponents = [f"{name} {exponent:.2f}" for name in ENGINES if (exponent := _exponent(found, name)) is not None]
        if exponents:
            lines.append(f"time grows with {what} to the power of: {', '.join(exponents)}")
    return lines


def _exponent(rows: Sequence[Row], contender: str) -> float | None:
    """The slope of log time over log size."""
    points = [(row.at[1], row.times[contender].median) for row in rows if row.at and contender in row.times]
    if len(points) < 2:
        return None
    x, y = np.log(points).T
    return float(np.polyfit(x, y, 1)[0])


def _time(row: Row, contender: str) -> str:
    times = row.times.get(contender)
    return "" if times is None else f"{milliseconds(times.median)} ±{times.spread / 2:3.0%}"


def _change(row: Row, earlier: Earlier) -> str:
    before = earlier.get((row.group, row.name))
    return "" if before is None or row.ratio is None else f"{row.ratio / before - 1:+.0%}"


def _megabytes(row: Row, engine: str) -> str:
    return f"{row.memory[engine] / 1e6:.0f}" if engine in row.memory else ""


def _error(row: Row, engine: str) -> str:
    return f"{row.errors[engine]:.0e}" if engine in row.errors else ""


def _beside(row: Row) -> str:
    others = (name for name in row.times if name not in (*ENGINES, "memcpy"))
    return ", ".join(f"{name} {milliseconds(row.times[name].median)}" for name in others)
