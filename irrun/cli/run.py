"""``irrun run`` (run): Run a model and show its outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from irrun.base.text import counted, printable
from irrun.checking.render import record
from irrun.cli import _completion, _errors, _model_explorer, _models, _results, _terminal
from irrun.cli._classes import Scores, read_labels, scores
from irrun.cli._exclusions import Exclusion, formats, refuse
from irrun.cli._execution import Run, Settings, execute
from irrun.cli._input_options import input_option, picture_options, seed_option, shape_option
from irrun.cli._options import (
    Size,
    exact_option,
    folder_to_write,
    format_option,
    memory_option,
    new_file,
    plugin_option,
    precision_option,
    refuse_to_replace_in,
    runs_option,
    timeout_option,
    top_option,
    weights_option,
)
from irrun.cli._outputs import save
from irrun.cli._random_runs import run_all
from irrun.cli._settings import with_settings
from irrun.cli._trees import TreeOptions, tree_options
from irrun.diagnostics import Diagnostic, IrrunError, ReadError
from irrun.files import write_file
from irrun.fleet.trees import RandomRun
from irrun.ir.parse import Parsed

__all__ = ["command"]

_EXCLUSIONS: Final = (
    Exclusion(
        ("--random",),
        "--random runs many models: {other} is for one",
        others=(
            "-w",
            "-i",
            "--shape",
            "-o",
            "--tap",
            "--dump",
            "--profile",
            "--top",
            "--labels",
            "--nan",
            "--trace",
            "--runs",
            "--max-weights-memory",
            "--example",
        ),
    ),
    Exclusion(formats("model-explorer"), "--format {form} shows times; add --profile", unless=("--profile",)),
    Exclusion(formats("sarif", "junit"), "the format {form} is for --random", unless=("--random",)),
)


@dataclass(frozen=True)
class Options:
    """The options of ``irrun run``, with those of one run and those of many."""

    paths: Sequence[str]
    weights: str | None
    output: str | None
    form: str
    example: int | None
    run: Settings
    top: int | None
    labels: str | None
    all_random: bool
    tree: TreeOptions


class _Command(click.Command):
    """The command, with ``--profile=layers``: click has no option whose value may be left out before an argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        parts = {"--profile=layers": ("--profile", "--profile-layers"), "--profile=steps": ("--profile",)}
        return super().parse_args(ctx, [part for arg in args for part in parts.get(arg, (arg,))])


@click.command("run", cls=_Command)
@click.argument("paths", metavar="MODEL.xml [INPUT]...", nargs=-1, required=True, shell_complete=_completion.files)
@weights_option
@input_option()
@picture_options
@shape_option()
@click.option("-o", "--output", metavar="FILE", help="Write the outputs to a .npz file, or the only one to a .npy.")
@click.option(
    "--tap",
    "taps",
    metavar="LAYER",
    multiple=True,
    shell_complete=_completion.layers,
    help="Also show, and write with -o, the outputs of this layer, by name or glob. May be repeated.",
)
@click.option("--dump", metavar="FOLDER", help="Write the outputs of every layer to a folder, with an index.json.")
@plugin_option
@format_option("text", "json", "model-explorer", "sarif", "junit", is_long=True)
@click.option(
    "--random",
    "all_random",
    is_flag=True,
    help="Run every model of the named files and folders with random inputs, and show a row for each.",
)
@tree_options
@seed_option()
@click.option(
    "--strict/--no-strict",
    default=False,
    show_default=True,
    help="Stop at a layer whose outputs differ from the declared type or shape, as with strict=True in Python.",
)
@click.option(
    "--profile",
    "profiled",
    is_flag=True,
    help="Show the time of each step of the run, how it was computed, and an estimate for each of its layers. "
    "--profile=layers computes and measures each layer in a step of its own.",
)
@click.option("--profile-layers", "layered", is_flag=True, hidden=True)
@top_option("20 of --profile, 5 classes")
@click.option("--labels", metavar="FILE", help="The names of classes, one in each line: show the likeliest classes.")
@click.option(
    "--nan",
    "nonfinite",
    is_flag=True,
    help="Show the first layer that makes NaN or Inf, and their way to the outputs; exit with 1 if they reach one.",
)
@click.option("--trace", metavar="FILE.json", help="Write a timeline of the steps, for chrome://tracing and Perfetto.")
@runs_option(1)
@exact_option
@precision_option
@memory_option()
@click.option(
    "--max-weights-memory",
    type=Size(),
    metavar="SIZE",
    help="The most memory for weights in f16, int8 or int4 that are unpacked to f32, such as 500MiB. Without the extra "
    "fast, all others are unpacked in parts in each run. [default: half of --max-memory]",
)
@timeout_option(None)
@click.option(
    "--copy-weights", is_flag=True, help="Read the .bin into memory first, so that it may change during the run."
)
@click.option("--example", type=click.IntRange(min=1), metavar="N", help="Run only the Nth example of a page.")
@with_settings(Options)
def command(options: Options) -> int:
    """Run a model and show its outputs.

    MODEL.xml is an IR file, or a documentation page with <layer> examples, each of which is run.

    INPUT is NAME=SPEC, as with -i: NAME is that of a Parameter or tensor, or a position. The only input of a model
    needs no NAME, nor does a file.npz that holds inputs by name.

    \b
    SPEC is one of
      file.npy, file.npz, file.npz:KEY
      picture.png          RGB, stretched to the input's size, values 0 to 255:
                           see --bgr, --resize, --layout, --mean and --scale
      [1,16,50,50]  3.5    JSON; text as '"text"'
      random  zeros  ones  arange
      random:[1,3,64,64]   with dims, for an input whose dims are dynamic

    An input that is not passed is random, in the smallest non-empty shape that the model allows. min, mean and max are
    over the finite values. --top N or --labels FILE show the likeliest classes of outputs that hold scores.

    With --random, the arguments are files and folders. Models that have run before, and have not changed since, are
    not run again (see --no-cache). -j, --dask, --cache and the formats sarif and junit are for --random.
    """
    refuse(_EXCLUSIONS)
    run = options.run
    if options.all_random:
        task = RandomRun(run.seed, run.strict, run.exact, run.max_memory, run.timeout, run.precision)
        return run_all(options.paths, task, options.tree, options.form)
    model, *given = options.paths
    options = replace(options, run=replace(run, inputs=(*_inputs(given), *run.inputs)))
    run = options.run
    labels = None if options.labels is None else read_labels(options.labels)
    target = None if options.output is None else new_file(options.output, "-o")
    trace_file = None if run.trace is None else new_file(run.trace, "--trace")
    if run.dump is not None:
        folder_to_write(run.dump, "--dump")
        refuse_to_replace_in(run.dump, "--dump")
    items = _models.load(model, options.weights)
    needs_one = bool(run.inputs or options.output or run.taps or run.dump or run.trace)
    needs_one |= options.form == "model-explorer"
    items = _selected(model, items, options.example, needs_one=needs_one)
    if target is not None:
        _require_format(target, items[0], run.taps)
    return _run(items, options, labels, target, trace_file)


def _inputs(texts: Sequence[str]) -> Sequence[str]:
    """Return the arguments behind the model, which are inputs. Raises click.UsageError for one that is none."""
    models = [text for text in texts if text.lower().endswith(".xml")]
    if models:
        raise click.UsageError(f"there are {len(models) + 1} models; pass one, or run all with --random")
    for text in texts:
        if text[-1:] in ("]", ",") and text.count("[") != text.count("]") and not Path(text).exists():
            raise click.UsageError(f"{text} is no file; put quotes around a SPEC with blanks: -i 'x=[[1, 2]]'")
    return texts


def _run(
    items: Sequence[Parsed | ReadError],
    options: Options,
    labels: Sequence[str] | None,
    target: Path | None,
    trace_file: Path | None,
) -> int:
    """Run the model of a file, or the examples of a page, show and write the outputs, and return the exit status."""
    is_page = _models.is_example(items[0])
    out, form = _terminal.console(), options.form
    records: list[dict[str, Any]] = []
    problems: list[Diagnostic] = []
    status = 0
    for position, item in enumerate(items):
        head = {"title": _models.title(options.paths[0], item)} if is_page else {}
        if head and form == "text":
            _terminal.title(out, ("\n" if position else "") + printable(head["title"]))
        try:
            run = execute(item, options.run)
        except IrrunError as error:
            if not is_page:
                raise
            problems += error.diagnostics
            _errors.show(error.diagnostics)
            records.append({**head, "diagnostics": [record(d) for d in error.diagnostics]})
            continue
        problems += item.problems if isinstance(item, Parsed) else ()
        classes: Sequence[Scores] = ()
        if labels is not None or (options.top is not None and not options.run.profiled):
            classes = scores(run.outputs, options.top or 5, labels)
        if form == "text":
            _results.show(out, run, classes, profiled=options.run.profiled, top=options.top or 20)
        elif form == "model-explorer" and isinstance(item, Parsed):
            _model_explorer.print_times(run, item.model)
        else:
            records.append({**head, **_results.record(run, classes, profiled=options.run.profiled)})
        _write(run, target, trace_file)
        if run.nonfinite is not None and run.nonfinite.verdict == "made":
            status = 1
    if form == "json":
        _terminal.print_json({"examples": records} if is_page and options.example is None else records[0])
    return max(status, _errors.exit_status(problems))


def _selected(
    path: str, items: list[Parsed | ReadError], example: int | None, *, needs_one: bool
) -> list[Parsed | ReadError]:
    """Return the items of a file to run: all, or the one at number ``example``, counted from 1.

    Raises click.UsageError if there is no such item, or if there are several and an option ``needs_one``.
    """
    if example is None:
        if len(items) > 1 and needs_one:
            options = "-i, -o, --tap, --dump, --trace and --format model-explorer need a single model"
            raise click.UsageError(f"{options}, but {path} holds {len(items)} examples; choose one with --example N")
        return items
    if example > len(items):
        numbers = f"choose 1 to {len(items)}" if len(items) > 1 else "choose 1"
        raise click.BadParameter(f"{path} has no example {example}; {numbers}", param_hint="--example")
    return [items[example - 1]]


def _require_format(target: Path, item: Parsed | ReadError, taps: Sequence[str]) -> None:
    """Raise click.BadParameter unless the outputs fit into the format of the file name: .npz, or .npy for one.

    A name without an ending is a .npz.
    """
    count = len(item.model.results) if isinstance(item, Parsed) else 1
    ending = target.suffix.lower()
    if ending not in (".npz", ".npy", ""):
        message = f"{target} ends neither in .npz nor in .npy; write .npz, or .npy for a single output"
        raise click.BadParameter(message, param_hint="-o")
    if ending == ".npy" and (count != 1 or taps):
        held = "taps" if taps else counted(count, "output")
        message = f"a .npy holds one array, but there are {held}; write {target.with_suffix('.npz')}"
        raise click.BadParameter(message, param_hint="-o")


def _write(run: Run, target: Path | None, trace_file: Path | None) -> None:
    """Write the timeline of a run and, to a .npz file, its outputs and tapped values. Both paths may be None.

    Print a note for each value that is saved as another type.
    """
    if run.profile and trace_file is not None:
        write_file(trace_file, json.dumps(run.profile.trace()).encode())
    if target is None:
        return
    names = {o.name for o in run.outputs}
    for output in save(target, [*run.outputs, *(o for o in run.taps if o.name not in names)]):
        message = f'note: "{printable(output.name)}" is {output.type}, which a {target.suffix} cannot hold; '
        stored = {"float": "float32", "string": "uint8, in the layout of a .bin"}.get(output.type.kind, "int8")
        _terminal.console(stderr=True).print(f"{message}saved as {stored}")
