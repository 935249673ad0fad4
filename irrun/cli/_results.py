"""The results of ``irrun run`` as text and as JSON."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rich.console import Console
from rich.text import Text

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.cli._classes import Scores, show_classes
from irrun.cli._execution import Run
from irrun.cli._outputs import Output, number
from irrun.kernels.matmul import blas
from irrun.running.profile import Profile, Share
from irrun.types import PartialShape

if TYPE_CHECKING:
    from irrun.debug.nonfinite import Origin, Report

__all__ = ["record", "show", "timing"]


def show(out: Console, run: Run, classes: Sequence[Scores], *, profiled: bool, top: int) -> None:
    """Print the inputs, outputs, tapped values and classes of a run as tables, and its profile if ``profiled``.

    The profile has at most ``top`` steps and layers.
    """
    if run.inputs:
        _terminal.title(out, "inputs")
        rows = [(i.name, str(i.type), str(PartialShape.of(i.array.shape)), i.origin) for i in run.inputs]
        _terminal.print_table(out, ("name", "type", "shape", "from"), rows)
    for title, values in (("outputs", run.outputs), ("taps", run.taps)):
        if not values and title == "taps":
            continue
        _terminal.title(out, title)
        columns = ["name", "type", "shape", "declared", "min", "mean", "max", "first values"]
        if has_special := any(o.nans or o.infinities for o in values):
            columns.insert(-1, "not finite")
        rows = [_row(o, has_special) for o in values]
        spare = ("first values", "not finite", "declared", "mean", "min", "max", "type")
        _terminal.print_table(out, columns, rows, right=("min", "mean", "max"), spare=spare)
    if classes:
        show_classes(out, classes)
    if run.seconds:
        _print_times(out, timing(run.seconds))
    if run.profile and profiled:
        _print_profile(out, run.profile, run.costs, top)
    if run.nonfinite:
        _print_nonfinite(out, run.nonfinite)


def timing(seconds: Sequence[float]) -> dict[str, Any]:
    """Return the times of several runs for JSON, in seconds. ``throughput`` is the number of runs in a second."""
    return {
        "count": len(seconds),
        "median": statistics.median(seconds),
        "min": min(seconds),
        "p90": float(np.percentile(seconds, 90)),
        "throughput": len(seconds) / sum(seconds),
    }


def _print_times(out: Console, times: Mapping[str, Any]) -> None:
    _terminal.title(out, "times")
    columns = ("runs", "median", "min", "p90", "throughput")
    row = (str(times["count"]), *(_milliseconds(times[name]) for name in columns[1:4]), f"{times['throughput']:.4g}/s")
    _terminal.print_table(out, columns, [row], right=columns)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"


def _print_nonfinite(out: Console, report: Report) -> None:
    """Print the first layer that makes NaN or Inf, then the other origins of such values."""
    _terminal.title(out, "NaN and Inf")
    if not report.origins:
        out.print("  every value of the run is finite")
    first = report.first
    others = [origin for origin in report.origins if origin is not first]
    for origin in ([first] if first else []) + others:
        lines = [f"{'first: ' if origin is first else ''}{_origin(origin)}", *_ways(origin)]
        out.print("  " + "\n    ".join(lines))
    if report.further:
        out.print(f"  and {counted(report.further, 'further origin')}")


def _origin(origin: Origin) -> str:
    """Return what an origin makes or holds, and how much of it."""
    values = " and ".join(name for name, number in (("NaN", origin.nan), ("Inf", origin.inf)) if number)
    share = f"{origin.nan + origin.inf} of {counted(origin.size, 'element')}"
    line = "" if origin.line is None else f", line {origin.line}"
    around = "".join(f', iteration {iteration} of "{printable(name)}"' for name, iteration in reversed(origin.loops))
    place = f'{printable(origin.type)} "{printable(origin.layer)}" (output {origin.port}{line}{around})'
    if origin.kind != "layer":
        return f"{place} holds {values}: {share}"
    return f"{place} makes {'NaN' if origin.made_from == 'Inf' else values} from {_FROM[origin.made_from]}: {share}"


_FROM: Final = {"finite": "finite inputs", "Inf": "inputs with Inf"}


def _ways(origin: Origin) -> Iterator[str]:
    """Yield the elements of an origin, and where its values lead."""
    for element in origin.elements:
        inputs = ", ".join(f"{number:g}" for number in element.inputs)
        yield f"[{','.join(map(str, element.index))}] = {element.value:g}" + (f" from {inputs}" if inputs else "")
    if origin.reaches is not None:
        path = " -> ".join(printable(name) for name in origin.path)
        yield f'reaches the output "{printable(origin.reaches)}": {path}'
    else:
        ends = ", ".join(f'"{printable(name)}"' for name in origin.ends_at)
        yield "reaches no output" + (f": the values are finite again after {ends}" if ends else "")


def _print_profile(out: Console, profile: Profile, costs: Mapping[int, float], top: int) -> None:
    """Print the slowest steps, then the time of each layer and type, which ``costs`` divide within a step."""
    _terminal.title(out, "profile")
    columns = ("layer", "type", "algorithm", "ms", "share", "GFLOP/s", "GB/s", "MB")
    runs, total = profile.runs, profile.seconds or 1.0
    steps = sorted(profile.rows, key=lambda row: -row.seconds * row.calls)
    rows = [
        (
            row.name,
            row.title,
            row.algorithm,
            f"{row.seconds * 1e3:.3f}",
            f"{row.seconds * row.calls / runs / total:.1%}",
            _rate(row.gflops),
            _rate(row.bandwidth),
            f"{row.bytes / 1e6:.2f}" if row.bytes else "",
        )
        for row in steps[:top]
    ]
    rows.append((counted(len(steps), "step"), "", "", f"{profile.seconds * 1e3:.3f}", "", "", "", ""))
    spare = ("MB", "GB/s", "GFLOP/s", "algorithm", "share")
    _terminal.print_table(out, columns, rows, right=columns[3:], spare=spare)
    _print_rest(out, len(steps) - top, "step")
    shares = profile.shares(costs)
    if any(share.is_estimate for share in shares):
        _terminal.title(out, "by layer")
        rows = [(s.layer, s.type, *_time(s.seconds, total, is_estimate=s.is_estimate)) for s in shares[:top]]
        _terminal.print_table(out, ("layer", "type", "ms", "share"), rows, right=("ms", "share"))
        _print_rest(out, len(shares) - top, "layer")
    _terminal.title(out, "by type")
    types: dict[str, list[Share]] = {}
    for share in shares:
        types.setdefault(share.type, []).append(share)
    kinds = sorted(types.items(), key=lambda item: -sum(share.seconds for share in item[1]))
    rows = [
        (type, str(len(of)), *_time(sum(s.seconds for s in of), total, is_estimate=any(s.is_estimate for s in of)))
        for type, of in kinds
    ]
    _terminal.print_table(out, ("type", "count", "ms", "share"), rows, right=("count", "ms", "share"))
    if any(share.is_estimate for share in shares):
        out.print("  ~ is an estimate: the time of a step is divided among its layers by their FLOPs and bytes;")
        out.print("  --profile=layers measures each layer, in a run that computes one after the other")
    out.print(f"  matrix products: {blas()}")


def _print_rest(out: Console, count: int, noun: str) -> None:
    if count > 0:
        out.print(f"  and {counted(count, noun)} more; --top N shows N")


def _time(seconds: float, total: float, *, is_estimate: bool) -> tuple[str, str]:
    mark = "~" if is_estimate else ""
    return f"{mark}{seconds * 1e3:.3f}", f"{mark}{seconds / total:.1%}"


def _rate(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _row(output: Output, has_special: bool) -> list[str | Text]:
    """Return the row of an output. With ``has_special``, the table has a column for counts of NaNs and infinities."""
    counts = ((output.nans, "nan"), (output.infinities, "inf"))
    not_finite = ", ".join(f"{count} {what}" for count, what in counts if count)
    more = " ..." if output.array.size > len(output.first) else ""
    return [
        output.name,
        str(output.type),
        str(PartialShape.of(output.array.shape)),
        _declared(output),
        number(output.least),
        number(output.mean),
        number(output.most),
        *([not_finite] if has_special else []),
        " ".join(map(number, output.first)) + more if output.first else "(no elements)",
    ]


def _declared(output: Output) -> str | Text:
    """Return whether the declaration of an output is true, as the table shows it."""
    if output.as_declared is None:
        return "-"
    if output.as_declared:
        return "yes"
    declared = (output.declared_type, output.declared_shape)
    return Text("no: " + " ".join(str(part) for part in declared if part is not None), "red")


def record(run: Run, classes: Sequence[Scores], *, profiled: bool) -> dict[str, Any]:
    """Return a run as a dict for JSON, with its profile if ``profiled``."""
    return {
        "inputs": [
            {"name": i.name, "type": str(i.type), "shape": list(i.array.shape), "from": i.origin} for i in run.inputs
        ],
        "outputs": [_fields(o) for o in run.outputs],
        **({"taps": [_fields(o) for o in run.taps]} if run.taps else {}),
        **({"classes": [scores.record() for scores in classes]} if classes else {}),
        **({"runs": timing(run.seconds)} if run.seconds else {}),
        **({"profile": run.profile.record(run.costs)} if run.profile and profiled else {}),
        **({"nonfinite": run.nonfinite.record()} if run.nonfinite else {}),
    }


def _fields(output: Output) -> dict[str, Any]:
    return {
        "name": output.name,
        "type": str(output.type),
        "shape": list(output.array.shape),
        "as_declared": output.as_declared,
        "declared_type": None if output.declared_type is None else str(output.declared_type),
        "declared_shape": None if output.declared_shape is None else output.declared_shape.listed,
        "min": _json(output.least),
        "mean": _json(output.mean),
        "max": _json(output.most),
        "nan": output.nans,
        "inf": output.infinities,
        "first": [_json(value) for value in output.first],
    }


def _json(value: Any) -> Any:
    """Return the value, with NaN and infinities as strings, because JSON has no numbers for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value
