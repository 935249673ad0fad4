"""``irrun show``: the inputs, outputs, operations and weights of a model, and the memory of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from irrun.checking.facts import facts_of
from irrun.checking.reshaping import Shapes, reshaped
from irrun.cli import _errors, _models, _terminal
from irrun.cli._options import format_option, new_file, shape_option, weights_option
from irrun.diagnostics import Diagnostic, FeedError, IrrunError, ModelError, ReadError, human, printable
from irrun.files import write_file
from irrun.inference.propagate import weights_missing
from irrun.ir.parse import Parsed
from irrun.model import Model
from irrun.running.live import default_max_memory
from irrun.running.memory import predicted

__all__ = ["command"]


@click.command("show")
@click.argument("model", metavar="MODEL.xml")
@weights_option
@format_option("text", "json")
@click.option(
    "--graph", metavar="FILE.svg",
    help="Also draw the graph as an SVG picture. More than 200 layers are drawn in groups; `irrun report` shows all.",
)  # fmt: skip
@click.option("--memory", "predict_memory", is_flag=True, help="Predict the peak memory of a run from its plan.")
@shape_option("With --memory: the shape of an input, such as [1,3,224,224].")
def command(
    model: str, weights: str | None, form: str, graph: str | None, predict_memory: bool, shapes: Shapes
) -> int:  # fmt: skip
    """Show the inputs, outputs, operations and weights of a model.

    The .bin is needed only for --memory. Layers in the bodies of If, Loop and TensorIterator are counted as well.
    """
    if shapes and not predict_memory:
        raise click.UsageError("--shape changes only what --memory predicts; add --memory, or leave --shape out")
    target = None if graph is None else new_file(graph, "--graph")
    items = _models.load(model, weights)
    if target is not None:
        _draw(items, model, target)
    out = _terminal.console()
    problems: list[Diagnostic] = []
    records: list[dict[str, Any]] = []
    for position, item in enumerate(items):
        problems += item.diagnostics if isinstance(item, ReadError) else item.problems
        if isinstance(item, ReadError):
            continue
        facts = facts_of(item.model)
        if predict_memory:
            try:
                facts["memory"] = _memory(reshaped(item, shapes).model)
            except IrrunError as error:
                problems += error.diagnostics
        title = _models.title(model, item) if _models.is_example(item) else ""
        records.append({"title": title, **facts} if title else facts)
        if form == "text":
            if position:
                out.print()
            _print(out, printable(title or f"{facts['name']}  IR v{facts['ir_version']}, {model}"), facts)
    if form == "json":
        _terminal.print_json({"examples": records} if _models.is_example(items[0]) else records[0])
    _errors.show(problems)
    return _errors.exit_status(problems)


def _draw(items: Sequence[Parsed | ReadError], path: str, target: Path) -> None:
    """Write a picture of the only model of a file. Raises click.UsageError for a page with several examples."""
    from irrun.report import picture  # the layout needs networkx, which takes 0.1 s to import

    item = items[0]
    if isinstance(item, ReadError):
        raise item
    if len(items) > 1:
        raise click.UsageError(f"--graph needs a single model, but {path} holds {len(items)} examples")
    write_file(target, picture(item.model).encode())


def _memory(model: Model) -> dict[str, Any]:
    """Return the predicted memory of a run in bytes, by purpose. Raises IrrunError if it cannot be predicted."""
    if model.weights is None and model.constants:
        raise ModelError(weights_missing(model))
    prediction = predicted(model, default_max_memory())
    if prediction is None:
        message = "the memory of a run depends on dims that are unknown"
        help = "pass the shapes of all dynamic inputs with --shape; only a run knows dims that depend on values"
        raise FeedError(Diagnostic("IR601", "error", message, file=model.source.path, help=help))
    return {
        "total": prediction.total, "weights": prediction.weights, "prepared": prediction.prepared,
        "values": prediction.values, "at": prediction.layer.name if prediction.layer else None,
    }  # fmt: skip


def _print(out: Console, title: str, facts: dict[str, Any]) -> None:
    _terminal.title(out, title)
    for side in ("inputs", "outputs"):
        if facts[side]:
            _terminal.title(out, f"\n{side}")
            rows = [(t["name"], t["type"] or "-", _shape(t["shape"]), ", ".join(t["names"][1:])) for t in facts[side]]
            _terminal.print_table(out, ("name", "type", "shape", "also called"), rows)
    _terminal.title(out, "\noperations")
    rows = [(o["type"], o["version"] or "-", str(o["count"])) for o in facts["operations"]]
    rows.append(("in all", "", str(facts["layers"])))
    _terminal.print_table(out, ("type", "version", "count"), rows, right=("count",))
    _terminal.title(out, "\nweights")
    size = facts["weight_bytes"]
    where = Path(facts["weights"]).name if facts["weights"] else "no .bin"
    out.print(f"  {facts['parameters']:,} parameters, {size:,} bytes ({human(size)}), {printable(where)}")
    if memory := facts.get("memory"):
        _terminal.title(out, "\nmemory of a run")
        at = f'at "{printable(memory["at"])}"' if memory["at"] else "before a run, while weights are packed"
        rows = [
            ("weights, mapped", human(memory["weights"]), ""), ("prepared from them", human(memory["prepared"]), ""),
            ("values at the peak", human(memory["values"]), at), ("in all", human(memory["total"]), ""),
        ]  # fmt: skip
        _terminal.print_table(out, ("", "size", ""), rows, right=("size",))


def _shape(dims: Sequence[int | str] | None) -> str:
    return "-" if dims is None else f"[{','.join(map(str, dims))}]"
