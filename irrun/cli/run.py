"""``irrun run``: run a model and show its outputs."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from irrun import api
from irrun.checking.render import concise, printable, record
from irrun.cli import _errors, _models, _terminal
from irrun.cli._inputs import Input, gather
from irrun.cli._options import Size, format_option, plugin_option, weights_option
from irrun.cli._outputs import Output, describe, describe_taps, number, save
from irrun.diagnostics import Diagnostic, ExecutionError, IrrunError, ModelError, ReadError
from irrun.ir.parse import Parsed
from irrun.planning.steps import Step
from irrun.running.dump import Dump
from irrun.running.executor import Executable, Outputs
from irrun.running.hooks import Hook
from irrun.running.profile import Profile
from irrun.types import PartialShape

__all__ = ["command"]


@click.command("run")
@click.argument("model", metavar="MODEL.xml")
@weights_option
@click.option(
    "-i", "--input", "inputs", metavar="NAME=SPEC", multiple=True,
    help="The value of an input, by parameter name, tensor name or position. May be repeated.",
)  # fmt: skip
@click.option("-o", "--output", metavar="OUT.npz", help="Write the outputs to a .npz file.")
@click.option(
    "--tap", "taps", metavar="LAYER", multiple=True,
    help="Also show, and write with -o, the outputs of this layer, by name or glob. May be repeated.",
)  # fmt: skip
@click.option("--dump", metavar="DIR", help="Write the outputs of every layer to a folder, with an index.json.")
@plugin_option
@format_option("text", "json")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of random inputs.")
@click.option(
    "--strict/--no-strict", default=True, show_default=True,
    help="Stop at a layer whose outputs differ from the declared type or shape.",
)  # fmt: skip
@click.option(
    "--profile", "profiled", is_flag=True, help="Show the time of each step of the run, and how it was computed."
)
@click.option("--trace", metavar="FILE.json", help="Write a timeline of the steps, for chrome://tracing and Perfetto.")
@click.option(
    "--runs", type=click.IntRange(min=1), default=1, show_default=True,
    help="Number of runs. With more than one, the profile leaves the first out.",
)  # fmt: skip
@click.option(
    "--exact", is_flag=True, default=None, help="Compute each layer on its own, by the kernel that defines it."
)
@click.option(
    "--max-memory", type=Size(), help="The largest size of one tensor, such as 2GiB. [default: 3/4 of the memory]"
)
@click.option("--example", type=click.IntRange(min=1), metavar="N", help="Run only the Nth example of a page.")
def command(
    model: str,
    weights: str | None,
    inputs: Sequence[str],
    output: str | None,
    taps: Sequence[str],
    dump: str | None,
    form: str,
    seed: int,
    strict: bool,
    profiled: bool,
    trace: str | None,
    runs: int,
    exact: bool | None,
    max_memory: int | None,
    example: int | None,
) -> int:
    """Run a model and show its outputs.

    MODEL.xml is an IR file, or a documentation page with <layer> examples, each of which is run.

    \b
    SPEC is one of
      file.npy, file.npz, file.npz:KEY
      picture.png          scaled to the input's height and width, values 0 to 255
      [1,16,50,50]  3.5    JSON; text as '"text"'
      random  zeros  ones  arange
      random:[1,3,64,64]   with dims, for an input whose dims are dynamic

    An input that is not passed is random, in the smallest non-empty shape that the model allows.
    min, mean and max are over the finite values.
    """
    target, trace_file = _target(output, "-o"), _target(trace, "--trace")
    found = _models.load(model, weights)
    examples = _models.is_example(found[0])
    if example is not None:
        if example > len(found):
            raise click.BadParameter(f"{model} holds {len(found)} of them", param_hint="--example")
        found = [found[example - 1]]
    elif len(found) > 1 and (inputs or output or taps or dump or trace):
        raise click.UsageError(f"{model} holds {len(found)} examples; choose one with --example N")
    out = _terminal.console()
    records: list[dict[str, Any]] = []
    problems: list[Diagnostic] = []
    for position, item in enumerate(found):
        title = _models.title(model, item) if examples else ""
        head = {"title": title} if examples else {}
        if title and form == "text":
            if position:
                out.print()
            _terminal.title(out, printable(title))
        try:
            profile = Profile() if profiled or trace else None
            watch = _Watch(taps, dump, profile, runs)
            ran = _run(item, inputs, watch, seed, strict, exact, max_memory or api.default_max_memory())
        except IrrunError as error:
            problems += error.diagnostics
            _errors.show(error.diagnostics)
            records.append({**head, "diagnostics": [record(d) for d in error.diagnostics]})
            continue
        if form == "text":
            _print(out, *ran)
            if profile and profiled:
                _print_profile(out, profile)
        else:
            records.append({**head, **_record(*ran), **({"profile": profile.record()} if profile and profiled else {})})
        if profile and trace_file is not None:
            trace_file.write_text(json.dumps(profile.trace()), "utf-8")
        if target is not None:
            names = {o.name for o in ran[1]}
            _save(target, [*ran[1], *(o for o in ran[2] if o.name not in names)])
    if form == "json":
        _terminal.print_json({"examples": records} if examples and example is None else records[0])
    return _errors.exit_status(problems)


def _target(output: str | None, option: str) -> Path | None:
    """Return the path of a file to write. Raises click.BadParameter, before the run, if it cannot be written."""
    if output is None:
        return None
    path = Path(output)
    why = ""
    if not path.resolve().parent.is_dir():
        why = "there is no such folder"
    elif path.exists() and not path.is_file():
        why = "it is no file"
    if why:
        raise click.BadParameter(f"cannot write {output}: {why}", param_hint=option)
    return path


@dataclass(frozen=True)
class _Watch:
    """How to observe the runs of a model, and the number of runs."""

    taps: Sequence[str]
    dump: str | None
    profile: Profile | None
    runs: int


def _run(
    item: Parsed | ReadError, specs: Sequence[str], watch: _Watch, seed: int, strict: bool, exact: bool | None,
    max_memory: int,
) -> tuple[list[Input], list[Output], list[Output]]:  # fmt: skip
    """Run a model, and return its inputs, its outputs and the tapped values. Raises IrrunError."""
    if isinstance(item, ReadError):
        raise item
    err = _terminal.console(stderr=True)
    if errors := [p for p in item.problems if p.severity == "error"]:
        raise ModelError(errors)
    for warning in item.problems:
        err.print(f"warning: {concise(warning)}")
    executable = api.compile(item.model, strict=strict, max_memory=max_memory, exact=exact)
    inputs = gather(item.model, specs, seed, max_memory)
    try:
        outputs = _execute(executable, inputs, watch, err)
    except ExecutionError:
        _hint(inputs, err)
        raise
    return inputs, describe(executable, outputs), describe_taps(executable, outputs)


def _execute(executable: Executable, inputs: Sequence[Input], watch: _Watch, err: Console) -> Outputs:
    arrays = [i.array for i in inputs]
    measured: list[Hook] = [watch.profile] if watch.profile is not None else []
    for again in range(watch.runs - 1):
        executable(arrays, hooks=measured if again else ())
        executable.reset_state()
    hooks = list(measured)
    with ExitStack() as stack:
        if watch.dump is not None:
            values = stack.enter_context(Dump(watch.dump))
            for parameter, array in zip(executable.model.parameters, arrays):
                values.add(parameter, parameter.outputs[0], array)
            hooks.append(values)
        if err.is_interactive:
            hooks.append(stack.enter_context(_Bar(len(executable.plan.steps), err)))
        return executable(arrays, hooks=hooks, taps=watch.taps)


class _Bar:
    """A hook that shows a progress bar once a run takes more than a second."""

    joined = True

    def __init__(self, total: int, err: Console) -> None:
        self.progress = Progress(console=err, transient=True)
        self.task = self.progress.add_task("running", total=total)
        self.since = time.monotonic()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        if time.monotonic() - self.since > 1:
            self.progress.start()
        self.progress.update(self.task, description=step.layer.type)

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        self.progress.advance(self.task)


def _hint(inputs: Sequence[Input], err: Console) -> None:
    """Print the shapes that irrun chose for dynamic inputs: the run may have failed because of them."""
    for item in inputs:
        if item.chosen is not None:
            name, shape = printable(item.name), PartialShape.of(item.array.shape)
            err.print(f'note: input "{name}" is {item.chosen}, for which {shape} was chosen; ', end="")
            err.print(f"choose other dims with -i '{name}=random:[...]'")


# ---------------------------------------------------------------------------------------------
# print the results


def _print(out: Console, inputs: Sequence[Input], outputs: Sequence[Output], taps: Sequence[Output]) -> None:
    if inputs:
        _terminal.title(out, "inputs")
        rows = [(i.name, str(i.type), str(PartialShape.of(i.array.shape)), i.origin) for i in inputs]
        _terminal.print_table(out, ("name", "type", "shape", "from"), rows)
    for title, values in (("outputs", outputs), ("taps", taps)):
        if not values and title == "taps":
            continue
        _terminal.title(out, title)
        columns = ["name", "type", "shape", "declared", "min", "mean", "max", "first values"]
        if odd := any(o.nans or o.infinities for o in values):
            columns.insert(-1, "not finite")
        rows = [_row(o, odd) for o in values]
        _terminal.print_table(out, columns, rows, right=("min", "mean", "max"))


def _print_profile(out: Console, profile: Profile) -> None:
    _terminal.title(out, "profile")
    columns = ("layer", "type", "algorithm", "ms", "share", "GFLOP/s", "GB/s", "MB")
    summary = profile.record()
    steps = summary["steps"]
    rows = [
        (
            step["layers"][-1], step["type"], step["algorithm"] or "", f"{step['seconds'] * 1e3:.3f}",
            f"{step['share']:.1%}", _rate(step["gflops"]), _rate(step["gigabytes_per_second"]),
            f"{step['bytes'] / 1e6:.2f}",
        )
        for step in steps
    ]  # fmt: skip
    total = f"{profile.seconds * 1e3:.3f}"
    rows.append((f"{len(steps)} steps", "", f"matrix products: {summary['matrix_products']}", total, "", "", "", ""))
    _terminal.print_table(out, columns, rows, right=columns[3:])


def _rate(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"


def _row(output: Output, odd: bool) -> list[str | Text]:
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
        *([not_finite] if odd else []),
        " ".join(map(number, output.first)) + more if output.first else "(no elements)",
    ]


def _declared(output: Output) -> str | Text:
    if output.as_declared is None:
        return "-"
    if output.as_declared:
        return "yes"
    said = (output.declared_type, output.declared_shape)
    return Text("no: " + " ".join(str(part) for part in said if part is not None), "red")


def _record(inputs: Sequence[Input], outputs: Sequence[Output], taps: Sequence[Output]) -> dict[str, Any]:
    return {
        "inputs": [
            {"name": i.name, "type": str(i.type), "shape": list(i.array.shape), "from": i.origin} for i in inputs
        ],
        "outputs": [_fields(o) for o in outputs],
        **({"taps": [_fields(o) for o in taps]} if taps else {}),
    }


def _fields(output: Output) -> dict[str, Any]:
    o = output
    return {
        "name": o.name,
        "type": str(o.type),
        "shape": list(o.array.shape),
        "as_declared": o.as_declared,
        "declared_type": None if o.declared_type is None else str(o.declared_type),
        "declared_shape": None if o.declared_shape is None else str(o.declared_shape),
        "min": _json(o.least),
        "mean": _json(o.mean),
        "max": _json(o.most),
        "nan": o.nans,
        "inf": o.infinities,
        "first": [_json(value) for value in o.first],
    }


def _json(value: Any) -> Any:
    """Return the value, with NaN and infinities as strings, because JSON has no numbers for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _save(target: Path, outputs: Sequence[Output]) -> None:
    """Write the outputs to a .npz file, and print a note for each that is saved as another type."""
    for output in save(target, outputs):
        message = f'note: "{printable(output.name)}" is {output.type}, which .npz cannot hold; '
        kept = "float32" if output.type.kind == "float" else "int8"
        _terminal.console(stderr=True).print(f"{message}written as {kept}")
