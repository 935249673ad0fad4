"""``irrun compare`` (compare): Compare two engines or models; name the layer that goes wrong."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import Progress

from irrun.cli import _comparison, _model_explorer, _terminal
from irrun.cli._comparison_options import (
    LimitOptions,
    SampleOptions,
    ToleranceOptions,
    limit_options,
    map_option,
    model_options,
    sample_options,
    sides,
    tolerance_options,
)
from irrun.cli._exclusions import Exclusion, refuse
from irrun.cli._execution import PATIENCE
from irrun.cli._options import format_option, new_file
from irrun.cli._settings import with_settings
from irrun.cli._tokens import EXCLUSIONS, TokenOptions, token_options
from irrun.debug import Comparator, Comparison, Tolerances, compare, compare_tokens, record
from irrun.debug.measurements import apply_tolerances, read_measurements, write_measurements
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import KINDS

__all__ = ["command"]


_SIDES: Final = "\n".join(f"  {kind.example:<25}{kind.summary}" for kind in KINDS.values())
_HELP: Final = f"""Compare two engines or models; name the layer that goes wrong.

REFERENCE and CANDIDATE are each a path, or KIND[OPTIONS]:PATH. Without a path, KIND runs the model of the other side.
The kinds are:

\b
{_SIDES}

OPTIONS are such as device=GPU,precision=f16,threads=4,python=PATH. Both run on the same inputs. Outputs and inner
values are compared, and the first divergence is named. An input that is passed several times, or as a folder, has
several samples. --prompt or --tokens compares language models token by token.

Exit status: 0 both agree, 1 they differ, or one refuses, crashes or takes too long, 2 bad usage or an unreadable
input.
"""


_EXCLUSIONS: Final = (
    Exclusion(("--load",), "--load runs nothing; leave out REFERENCE and CANDIDATE", others=("reference",)),
    *EXCLUSIONS,
)


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun compare``."""

    reference: str | None
    candidate: str | None
    weights: str | None
    sample: SampleOptions
    token: TokenOptions
    renames: Mapping[str, str]
    keep_state: bool
    outputs_only: bool
    tolerance: ToleranceOptions
    comparator: str | None
    save: str | None
    saved: str | None
    form: str
    limit: LimitOptions


@click.command("compare", help=_HELP)
@click.argument("reference", metavar="REFERENCE", required=False)
@click.argument("candidate", metavar="CANDIDATE", required=False)
@model_options
@sample_options
@token_options
@map_option
@click.option("--keep-state", is_flag=True, help="Keep the state of a model from sample to sample.")
@click.option("--outputs-only", is_flag=True, help="Compare no inner values.")
@tolerance_options
@click.option("--comparator", metavar="FILE.py:FUNCTION", help="A Python function that compares two values instead.")
@click.option("--save", metavar="FILE.json", help="Write all measurements, to apply other tolerances later.")
@click.option("--load", "saved", metavar="FILE.json", help="Apply the tolerances to what --save wrote. Runs nothing.")
@format_option("text", "json", "model-explorer")
@limit_options
@with_settings(Settings)
def command(settings: Settings) -> int:
    refuse(_EXCLUSIONS)
    tolerances = settings.tolerance.read()
    if settings.saved is not None:
        comparison = apply_tolerances(read_measurements(Path(settings.saved)), tolerances)
    else:
        comparison = _compare(settings, tolerances)
    _print(comparison, settings.form)
    return 0 if comparison.agrees else 1


def _compare(settings: Settings, tolerances: Tolerances) -> Comparison:
    """Run both sides, write the measurements if the user asks for them, and return the comparison."""
    if settings.reference is None or settings.candidate is None:
        raise click.UsageError("pass REFERENCE and CANDIDATE, such as openvino:model.xml model.xml")
    target = None if settings.save is None else new_file(settings.save, "--save")
    with _Bar(_terminal.console(stderr=True)) as bar:
        both = sides(settings.reference, settings.candidate, settings.weights)
        shared: dict[str, Any] = {
            "layers": not settings.outputs_only,
            "tolerances": tolerances,
            "renames": settings.renames,
            "comparator": None if settings.comparator is None else _imported(settings.comparator),
            "limits": settings.limit.limits,
            "frontier": target is not None,
            "on_value": bar.show,
        }
        if settings.token.is_passed:
            prompt = settings.token.prompted(settings.sample.inputs, settings.limit.memory)
            comparison = compare_tokens(*both, prompt, settings.token.count, **shared)
        else:
            drawn = settings.sample.drawn(settings.limit.memory)
            comparison = compare(*both, drawn, keep_state=settings.keep_state, **shared)
    if target is not None:
        write_measurements(comparison, target)
    return comparison


class _Bar:
    """A progress bar on a terminal, in a comparison that takes longer than ``PATIENCE``."""

    def __init__(self, err: Console) -> None:
        self.progress = Progress(console=err, transient=True, disable=not err.is_interactive)
        self.task = self.progress.add_task("loading", total=None)

    def __enter__(self) -> _Bar:
        self.timer = threading.Timer(PATIENCE, self.progress.start)
        self.timer.daemon = True
        self.timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()
        self.timer.join()
        self.progress.stop()

    def show(self, role: str, sample: int, values: int, places: int) -> None:
        """Show how many values of a sample a side has computed."""
        name = f"{role}, sample {sample + 1}"
        self.progress.update(self.task, description=name, completed=min(values, places), total=places)


def _print(comparison: Comparison, form: str) -> None:
    if form == "json":
        _terminal.print_json(record(comparison))
    elif form == "model-explorer":
        _model_explorer.print_comparison(comparison)
    else:
        _comparison.show(_terminal.console(), comparison)


def _imported(text: str) -> Comparator:
    """Return the function that ``FILE.py:FUNCTION`` names. Raises EngineError (IR705)."""
    file, colon, name = text.rpartition(":")
    if not colon or not file or not name:
        raise click.BadParameter(f"{text} is not FILE.py:FUNCTION", param_hint="--comparator")
    try:
        spec = importlib.util.spec_from_file_location("irrun_comparator", file)
        if spec is None or spec.loader is None:
            raise ValueError("it is not a Python file; its name must end in .py")
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function: Any = getattr(module, name)
    except Exception as error:  # whatever the file raises
        why = (
            (error.strerror or str(error)).lower() if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        )
        message = f"the comparator {text} cannot be imported: {why}"
        help = "check the path of the file and the name of the function"
        raise EngineError(diagnostic("IR705", message, help=help)) from None
    return function
