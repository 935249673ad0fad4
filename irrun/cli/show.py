"""``irrun show`` (look): Show the inputs, outputs, operations and weights of a model."""

from __future__ import annotations

import fnmatch
import re
import textwrap
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from irrun.base.text import counted, human, printable
from irrun.checking.facts import facts_of
from irrun.checking.listing import Entry, entries, select, totals
from irrun.checking.render import record
from irrun.checking.storage import storage
from irrun.cli import _completion, _errors, _models, _terminal
from irrun.cli._input_options import shape_option
from irrun.cli._options import format_option, new_file, plugin_option, require_ending, weights_option
from irrun.diagnostics import Diagnostic, FeedError, IrrunError, ModelError, ReadError, diagnostic
from irrun.files import write_file
from irrun.inference.propagate import weights_missing
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed
from irrun.model import Model, Shapes
from irrun.model.lookup import nearest, quoted
from irrun.planning.stored import kept_packed
from irrun.running.live import default_max_memory
from irrun.running.memory import predicted
from irrun.types import Dim, PartialShape

__all__ = ["command"]


@click.command("show")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@plugin_option
@format_option("text", "json")
@click.option(
    "--graph",
    metavar="FILE.svg",
    help="Also draw the graph as an SVG picture. More than 200 layers are drawn in groups; `irrun report` shows all.",
)
@click.option(
    "--layers",
    "all_layers",
    is_flag=True,
    help="Also list the layers: attributes, shapes, consumers, FLOPs and bytes. Constants are left out.",
)
@click.option(
    "--layer",
    "names",
    metavar="GLOB",
    multiple=True,
    shell_complete=_completion.layers,
    help="List the layers with such a name.",
)
@click.option(
    "--type",
    "types",
    metavar="GLOB",
    multiple=True,
    shell_complete=_completion.operations,
    help="List the layers of this type, such as '*Conv*'.",
)
@click.option(
    "--with",
    "pattern",
    metavar="SHAPE",
    help="List the layers with an input or output of this shape. [1,?,..64] has a dim of any size, and one up to 64.",
)
@click.option("--memory", "predict_memory", is_flag=True, help="Predict the peak memory of a run from its plan.")
@click.option(
    "--servable",
    "servable",
    is_flag=True,
    help="Tell whether OpenVINO rewrites a decoder to paged attention, or why not. If not, the exit status is 1.",
)
@shape_option(" With --memory also a variable, by its id or a glob.")
def command(
    model: str,
    weights: str | None,
    form: str,
    graph: str | None,
    all_layers: bool,
    names: Sequence[str],
    types: Sequence[str],
    pattern: str | None,
    predict_memory: bool,
    servable: bool,
    shapes: Shapes,
) -> int:
    """Show the inputs, outputs, operations and weights of a model.

    The .bin is needed only for --memory, and for shapes that depend on constants. Layers in the bodies of If, Loop and
    TensorIterator are counted as well.

    FLOPs count multiplications and additions on elements, and each other function of an element once. bytes are those
    of the inputs and outputs of a layer. Both are zero for a layer that needs none, and for a layer in a body, those of
    one iteration. --layer, --type and --with list the layers that satisfy all of them.

    Exit status: 0 success, 1 problems of the file or a model that a server cannot run (--servable), 2 bad usage or an
    unreadable file.
    """
    listed = all_layers or bool(names or types or pattern is not None)
    if shapes and not predict_memory and not listed:
        raise click.UsageError(
            "--shape changes only what --memory and --layers show; add one of them, or leave --shape out"
        )
    wanted = None if pattern is None else _parsed(pattern, "--with")
    target = None if graph is None else new_file(graph, "--graph")
    if graph is not None:
        require_ending(graph, "--graph", (".svg",), "a picture in SVG")
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
        facts["stored"] = [row.record() for row in storage(item.model, _packed(item.model))]
        rows: list[Entry] = []
        if listed:
            try:
                found = entries((item.reshape(shapes) if shapes else item).model)
                if len(items) == 1:
                    _require_layers(item.model, names, found)
                rows, facts["totals"] = select(found, names, types, wanted), totals(found)
                facts["listed"] = [row.record() for row in rows]
            except IrrunError as error:
                problems += error.diagnostics
        if predict_memory:
            try:
                inputs, variables = _variables(item.model, shapes)
                facts["memory"] = _memory(item.reshape(inputs).model, variables)
            except IrrunError as error:
                problems += error.diagnostics
        if servable:
            facts["paged"] = _paged(item.model)
        title = _models.title(model, item) if _models.is_example(item) else ""
        records.append({"title": title, **facts} if title else facts)
        if form == "text":
            if position:
                out.print()
            _print(out, printable(title or f"{facts['name']}  IR v{facts['ir_version']}, {model}"), facts)
            if "totals" in facts:
                _print_layers(out, rows, facts["totals"])
            if servable:
                _print_verdict(out, facts["paged"])
    if form == "json":
        found = {"diagnostics": [record(d) for d in problems]}
        is_page = _models.is_example(items[0])
        _terminal.print_json({"examples": records, **found} if is_page else {**records[0], **found})
    _errors.show(problems)
    refused = any(not facts["paged"]["servable"] for facts in records if "paged" in facts)
    return max(_errors.exit_status(problems), int(refused))


def _require_layers(model: Model, names: Sequence[str], listed: Sequence[Entry]) -> None:
    """Raise ModelError (IR606) if a name or glob of --layer matches no layer, with the nearest names."""
    for name in names:
        if not select(listed, [name]):
            near = nearest(name.strip("*"), [entry.name for entry in listed], 3)
            help = f"did you mean {' or '.join(map(quoted, near))}?" if near else "write a glob, such as '*conv*'"
            raise ModelError(diagnostic("IR606", f'no layer matches "{name}"', source=model.source, help=help))


def _packed(model: Model) -> Callable[[Model], Container[int]]:
    """Return a function that returns the Const layers of the model or a body whose codes a run keeps packed."""
    found: dict[int, frozenset[int]] = {}

    def packed(part: Model) -> Container[int]:
        try:
            for trace in Trace(model).all() if not found else ():
                ops = {layer: op for layer, op in trace.ops.items() if op is not None}
                found[id(trace.model)] = kept_packed(trace.model, ops, trace.values)
        except IrrunError:  # no run unpacks a model that cannot be run
            found[id(part)] = frozenset(part.layers)
        return found.get(id(part), frozenset())

    return packed


def _draw(items: Sequence[Parsed | ReadError], path: str, target: Path) -> None:
    """Write a picture of the only model of a file. Raises click.UsageError for a page with several examples."""
    from irrun.report import picture  # the layout needs networkx, which takes 0.1 s to import

    item = items[0]
    if isinstance(item, ReadError):
        raise item
    if len(items) > 1:
        raise click.UsageError(f"--graph needs a single model, but {path} holds {len(items)} examples")
    write_file(target, picture(item.model).encode())


def _variables(model: Model, shapes: Shapes) -> tuple[Shapes, dict[str, PartialShape]]:
    """Return the shapes of inputs, and those of variables by their ids. Raises FeedError for one that is no shape."""
    ids = [layer.attributes.get("variable_id", "") for layer in model.layers.values() if layer.type == "ReadValue"]
    inputs, variables = dict[str | int, Any](), dict[str, PartialShape]()
    for name, text in shapes.items():
        matching = fnmatch.filter(ids, str(name)) if model.input_position(str(name)) is None else []
        if not matching:
            inputs[name] = text
            continue
        variables |= dict.fromkeys(matching, _parsed(str(text), "--shape"))
    return inputs, variables


def _memory(model: Model, variables: Mapping[str, PartialShape]) -> dict[str, Any]:
    """Return the predicted memory of a run in bytes, by purpose. Raises IrrunError if it cannot be predicted."""
    if model.weights is None and model.constants:
        raise ModelError(weights_missing(model))
    prediction = predicted(model, default_max_memory(), variables)
    if prediction is None:
        message = "the memory of a run depends on dims that are unknown"
        help = "pass the shapes of all dynamic inputs with --shape; only a run knows dims that depend on values"
        raise FeedError(diagnostic("IR601", message, file=model.source.path, help=help))
    return {
        "total": prediction.total,
        "weights": prediction.weights,
        "prepared": prediction.prepared,
        "values": prediction.values,
        "at": prediction.layer.name if prediction.layer else None,
    }


def _paged(model: Model) -> dict[str, Any]:
    """Return whether a server can run the model with paged attention. Raises IrrunError if it cannot be told."""
    from irrun.debug.paged.servable import servability

    if model.weights is None and model.constants:
        raise ModelError(weights_missing(model))
    return servability(model).record()


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
    if facts["stored"]:
        stored = [
            (
                row["stored_as"] + (", unpacked in a run" if row["unpacked"] else ""),
                str(row["constants"]),
                f"{row['parameters']:,}",
                human(row["bytes"]),
                f"{row['bytes'] / size:.1%}" if size else "",
            )
            for row in facts["stored"]
        ]
        columns = ("stored as", "constants", "parameters", "size", "share")
        _terminal.print_table(out, columns, stored, right=columns[1:])
    if facts["runtime_options"]:
        _terminal.title(out, "\nruntime options of the file")
        for name, text in facts["runtime_options"].items():
            out.print(f"  {printable(name)}={printable(text)}")
    if paged := facts.get("paged"):
        _terminal.title(out, "\npaged attention")
        type = "PagedAttentionExtension" if paged["is_paged"] else "ScaledDotProductAttention"
        out.print(f"  {counted(paged['attentions'], 'attention')} ({type})")
        if not paged["servable"]:
            rows = [(str(o["line"] or ""), o["layer"] or "the model", o["message"]) for o in paged["obstacles"]]
            _terminal.print_table(out, ("line", "layer", "reason"), rows, right=("line",), is_prose=True)
    if memory := facts.get("memory"):
        _terminal.title(out, "\nmemory of a run")
        at = f'at "{printable(memory["at"])}"' if memory["at"] else "before a run, while weights are packed"
        rows = [
            ("weights, mapped", human(memory["weights"]), ""),
            ("prepared from them", human(memory["prepared"]), ""),
            ("values at the peak", human(memory["values"]), at),
            ("in all", human(memory["total"]), ""),
        ]
        _terminal.print_table(out, ("", "size", ""), rows, right=("size",))


def _print_verdict(out: Console, paged: Mapping[str, Any]) -> None:
    """Print whether a server can run a model, and what to do if not."""
    helps = dict.fromkeys(obstacle["help"] for obstacle in paged["obstacles"] if obstacle["help"])
    if paged["is_paged"]:
        verdict = "already in paged form: a server runs it as it is"
    elif paged["servable"]:
        rewrites = f"OpenVINO rewrites {_attentions(paged)} to paged attention"
        verdict = f"a server can run the model; {rewrites} (irrun paged compares the logits)"
    else:
        verdict = f"a server cannot run the model; {counted(len(paged['obstacles']), 'reason')} above"
    out.print()
    for text in (f"verdict: {verdict}", *(f"  do: {help}" for help in helps)):
        for line in textwrap.wrap(text, out.width, subsequent_indent="    ", break_on_hyphens=False):
            out.print(line)


def _attentions(paged: Mapping[str, Any]) -> str:
    return "its attention" if paged["attentions"] == 1 else f"all {paged['attentions']:,} attentions"


def _print_layers(out: Console, listed: Sequence[Entry], sums: Mapping[str, Any]) -> None:
    """Print a row for each layer, and the sums over all layers of the model."""
    _terminal.title(out, "\nlayers")
    columns = ("layer", "type", "attributes", "inputs", "outputs", "consumers", "weights", "FLOPs", "bytes")
    rows = [
        (
            entry.name,
            entry.type,
            " ".join(f"{key}={_tight(text)}" for key, text in entry.attributes.items()),
            " ".join("-" if tensor is None else str(tensor) for tensor in entry.inputs),
            " ".join(map(str, entry.outputs)),
            " ".join(entry.consumers),
            human(entry.weights) if entry.weights else "",
            _scaled(entry.flops),
            _size(entry.bytes),
        )
        for entry in listed
    ]
    spare = ("bytes", "weights", "consumers", "FLOPs", "inputs", "attributes")
    _terminal.print_table(out, columns, rows, right=columns[6:], spare=spare)
    least = "" if sums["exact"] else "at least "
    out.print(
        f"  {counted(len(listed), 'layer')} of {sums['layers']:,} without constants; in all "
        f"{least}{_scaled(Dim(sums['flops'])) or 0} FLOPs, {least}{human(sums['bytes'])} read and written"
    )


def _tight(text: str) -> str:
    """Return a list without the spaces after its commas."""
    return re.sub(r",\s+", ",", text)


def _scaled(figure: Dim | None) -> str:
    """Return a number of FLOPs with a prefix: ``1.23 M``. It is ``?`` if unknown, and empty if it is 0."""
    if figure is None or figure.value is None:
        return "?"
    if not figure.value:
        return ""
    number, power = float(figure.value), 0
    while number >= 999.5 and power < len(_PREFIXES) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{_PREFIXES[power]}" if number < 999.5 else f"{number:.0f}{_PREFIXES[power]}"


_PREFIXES: Final = ("", " k", " M", " G", " T")


def _size(figure: Dim | None) -> str:
    return "?" if figure is None or figure.value is None else human(figure.value) if figure.value else ""


def _parsed(text: str, option: str) -> PartialShape:
    """Return the shape that an option names. Raises click.BadParameter."""
    shape = PartialShape.parse(text[1:-1] if text.startswith("[") and text.endswith("]") else text)
    if shape is None:
        message = f"{text} is not a shape; write it as [1,3,224,224]: ? is any dim, 1..8 an interval, ... any rank"
        raise click.BadParameter(message, param_hint=option)
    return shape


def _shape(dims: Sequence[int | str] | None) -> str:
    return "-" if dims is None else f"[{','.join(map(str, dims))}]"
