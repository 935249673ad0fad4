"""``irrun edit`` (change): Rename, expose, fold, simplify, or rewrite for a release."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

import click
import numpy as np

from irrun import api
from irrun.base.text import counted, printable
from irrun.checking.checker import check
from irrun.checking.facts import written
from irrun.cli import _completion, _terminal
from irrun.cli._input_options import input_option, shape_option
from irrun.cli._options import force_option, format_option, model_to_write, plugin_option, target_option, weights_option
from irrun.cli._samples import samples
from irrun.diagnostics import ModelError
from irrun.ir.parse import Parsed
from irrun.ir.write import save_model
from irrun.model import VERSIONS, Model, Shapes
from irrun.running.live import default_max_memory
from irrun.surgery import (
    STORED,
    Step,
    batch_axes,
    batch_shapes,
    downgrade,
    drop_unused,
    expose,
    fold_constants,
    merge,
    merged,
    original,
    probe,
    rename_input,
    rename_layer,
    rename_output,
    require_agreement,
    require_equal,
    require_equal_on,
    require_reshaped,
    reshape,
    simplify,
    storage_limit,
    store,
    thaw,
    upgrade,
    with_version,
)
from irrun.targets import RELEASES, has_operation, newest_opset, parse_target

__all__ = ["command"]

_VERIFIED_SAMPLES: Final = 2
"""The random inputs on which the edited model is held against the original."""


def _pairs(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Return the new name by each old one, from texts ``OLD=NEW``. The old name may contain a ``=`` itself."""
    pairs: dict[str, str] = {}
    for value in values:
        old, equals, new = value.rpartition("=")
        if not equals or not old or not new:
            raise click.BadParameter(f"{value} is not {param.metavar}; write it as first=second", ctx, param)
        if old in pairs:
            raise click.BadParameter(f"{old} is named twice; remove one of them", ctx, param)
        pairs[old] = new
    return pairs


def _batch(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"\?|[1-9]\d{0,8}", value):
        raise click.BadParameter(f"{value} is no batch; write a number, or ? for any", ctx, param)
    return value


_NEWEST: Final = "newest"
"""The value of ``--opset`` for the newest version of each operation."""


def _opset(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    if value == _NEWEST:
        return value
    match = None if value is None else re.fullmatch(r"(?:opset)?(\d{1,2})", value)
    if value is not None and (match is None or int(match[1]) < 1):
        raise click.BadParameter(
            f"{value} is not an operation set; write its number, such as 13, or {_NEWEST}", ctx, param
        )
    return int(match[1]) if match else None


_OF_TARGETS: Final = "IR9"
"""The beginning of the codes that say what a target lacks or refuses."""
_OPENVINO: Final = "openvino"
_DEFAULT_SIDE: Final = f"{_OPENVINO}[precision=f32]"


def _pairs_option(name: str, metavar: str, help: str) -> Any:
    return click.option(name, metavar=metavar, multiple=True, callback=_pairs, help=f"{help} May be repeated.")


@click.command("edit")
@click.argument("model", metavar="MODEL.xml", shell_complete=_completion.files)
@weights_option
@plugin_option
@click.option("--merge", "other", metavar="B.xml", help="Run another model on outputs of this one.")
@_pairs_option(
    "--connect",
    "OUTPUT=INPUT",
    "With --merge: an output of MODEL and the input of B that it becomes. [default: those of equal names]",
)
@click.option("--keep-outputs", "keep", is_flag=True, help="With --merge: keep the outputs that become inputs.")
@click.option(
    "--expose",
    "exposed",
    metavar="VALUE[=NAME]",
    multiple=True,
    help="Make an inner value an output: a layer, LAYER:PORT or a tensor. May be repeated.",
)
@_pairs_option("--rename-input", "OLD=NEW", "Rename an input and its tensor.")
@_pairs_option("--rename-output", "OLD=NEW", "Rename an output and its tensor.")
@_pairs_option("--rename-layer", "OLD=NEW", "Rename a layer. The names of tensors stay.")
@click.option("--fold", is_flag=True, help="Store values that depend only on constants.")
@click.option("--simplify", is_flag=True, help="Merge equal constants and layers, and drop layers that have no effect.")
@click.option(
    "--storage", type=click.Choice(STORED), help="Store constants of f32 in this type, and align and share their bytes."
)
@click.option("--drop-unused", is_flag=True, help="Drop layers that no output depends on. Inputs stay.")
@click.option(
    "--opset",
    metavar="N|newest",
    callback=_opset,
    help="Write no operation set newer than N, such as 13, or the newest version of each operation.",
)
@target_option
@click.option("--ir-version", type=click.Choice([str(v) for v in VERSIONS]), help="Write this version of the IR.")
@shape_option()
@click.option("--batch", metavar="N|?", callback=_batch, help="Give all inputs another batch, or an unknown one.")
@input_option(" The result is compared with the model before the edits.")
@click.option("--no-verify", is_flag=True, help="Do not run the original and the result.")
@click.option(
    "--verify-on",
    "sides",
    metavar="ENGINE",
    multiple=True,
    help="Also run both there, such as openvino[python=PATH]. May be repeated. "
    "[default: openvino[precision=f32], if installed]",
)
@click.option("-o", "--output", metavar="OUT.xml", required=True, help="The .xml to write, with its .bin next to it.")
@force_option
@format_option("text", "json", is_long=True)
def command(
    model: str,
    weights: str | None,
    inputs: Sequence[str],
    output: str,
    force: bool,
    form: str,
    shapes: Shapes,
    no_verify: bool,
    sides: Sequence[str],
    batch: str | None,
    **edits: Any,
) -> int:
    """Rename, expose, fold, simplify, or rewrite for a release.

    The edits are made in the order of the options below, --shape first. Elements that irrun does not use, such as
    rt_info, are kept. Before the result is written, it and the original are run on the same inputs, in irrun and in
    OpenVINO if that is installed. In irrun, every bit of their outputs must be equal; with --opset, --target and
    --storage, and in other engines, they may be rounded otherwise. Inputs that are not passed with -i are random. A
    layer in a body is named with its path, such as loop/total.
    """
    model_to_write(output, "-o", force=force)
    if not edits["other"] and (edits["connect"] or edits["keep"]):
        raise click.UsageError("--connect and --keep-outputs say how to merge; add --merge")
    if not any(edits.values()) and not shapes and batch is None:
        raise click.UsageError("no edit is named; `irrun edit --help` lists them")
    read = whole = _model(model, weights)
    sides = sides or [_DEFAULT_SIDE] * (find_spec(_OPENVINO) is not None)
    facts: dict[str, Any] = {}
    if shapes or batch is not None:
        whole, facts = _reshaped(whole, shapes, batch, inputs, None if no_verify else sides)
    if edits["other"] is not None:
        other = _model(edits["other"], None)
        whole = _merged(whole, other, edits["connect"] or None, edits["keep"], None if no_verify else inputs)
    edited, steps = _edited(whole, edits)
    ran: list[str] = []
    is_edited = any(edits.values())
    if is_edited and not no_verify:
        reference = original(whole, [_exposed(text)[0] for text in edits["exposed"]])
        is_rounded = edits["opset"] is not None or edits["targets"] or edits["storage"]
        limit = 0.0 if edits["storage"] is None else storage_limit(edits["storage"])
        samples = [probe(read, whole)] if facts and not inputs else list(_feeds(whole, inputs))
        require_equal(reference, edited, feeds=samples, limit=limit if is_rounded else None)
        names = [require_equal_on(side, whole, edited, feeds=samples, limit=limit) for side in sides]
        ran = [name for name in names if name]
    save_model(edited, output, compact=True)
    if form == "json":
        simplified = [{"step": step.name, "layers": step.layers, "bytes": step.bytes} for step in steps]
        record = {"simplified": simplified, "reshaped": facts or None, "verified": not no_verify, "engines": ran}
        _terminal.print_json({**written(edited, output), **record})
        return 0
    names = ", ".join(p.name for p in edited.parameters) or "none"
    outputs = ", ".join(edited.result_name(r) for r in edited.results) or "none"
    given = "the inputs" if inputs else f"{_VERIFIED_SAMPLES} random inputs"
    also = f", also in {', '.join(ran)}" if ran else ""
    proofs = [facts["proof"]] if facts else []
    proofs += [f"equal to the original on {given}{also}"] if is_edited else []
    proof = "not verified" if no_verify else "; ".join(proofs)
    message = f"wrote {output}: {counted(len(edited.layers), 'layer')}; inputs {names}; outputs {outputs}; {proof}"
    console = _terminal.console(stderr=True)
    for sentence in facts.get("replaced", ()):
        console.print(printable(f"replaced: {sentence}"))
    if edits["simplify"]:
        _terminal.title(console, "removed")
        rows = [(step.name, f"{step.layers:,}", f"{step.bytes:,}") for step in steps]
        _terminal.print_table(
            console, ("step", "layers", "bytes"), rows or [("nothing", "0", "0")], right=("layers", "bytes")
        )
    console.print(printable(message))
    return 0


def _model(path: str, weights: str | None) -> Model:
    """Return the model of an IR file. Raises click.BadParameter for a page."""
    model = api.read_model(path, weights)
    if model.is_fragment:
        raise click.BadParameter(f"{path} is a page with examples; pass an IR file", param_hint="MODEL.xml")
    return model


def _reshaped(
    model: Model, shapes: Shapes, batch: str | None, inputs: Sequence[str], sides: Sequence[str] | None
) -> tuple[Model, dict[str, Any]]:
    """Return the model with other input shapes, and what was replaced and compared. It is verified unless ``sides`` is
    None. Raises ModelError if a layer cannot take the shapes, or if the result is wrong.
    """
    axes: Mapping[int, int] = {}
    size = None
    if batch is not None:
        axes = batch_axes(model)
        position, axis = next(iter(axes.items()))
        size = model.inputs[position].dims[axis].value
        shapes = {**batch_shapes(model, None if batch == "?" else int(batch)), **shapes}  # type: ignore[dict-item]
    thawed = thaw(model, shapes, batch=size if axes and not any(axes.values()) else None)
    reshaped = reshape(thawed.model, shapes)
    errors = [found for found in check(Parsed(reshaped, [])) if found.severity == "error"]
    if errors:
        raise ModelError(errors)
    facts: dict[str, Any] = {"replaced": list(thawed.replaced), "proof": "", "engines": []}
    if sides is not None:
        feeds = list(_feeds(reshaped, inputs)) if inputs else [probe(model, reshaped)]
        facts["proof"] = require_reshaped(model, reshaped, axes, feeds=feeds)
        ran = [name for side in sides if (name := require_agreement(side, model, reshaped, feeds=feeds))]
        facts["engines"] = ran
        facts["proof"] += f", and as irrun in {', '.join(ran)}" if ran else ""
    return reshaped, facts


def _feeds(model: Model, inputs: Sequence[str]) -> Iterator[dict[int, np.ndarray]]:
    """Yield the inputs of each run of a model and of its edit, by position."""
    for seed in range(_VERIFIED_SAMPLES):
        gathered = samples(model, inputs, 1, seed, default_max_memory())
        yield from ({model.known_input(key): array for key, array in feeds.items()} for feeds in gathered)


def _merged(a: Model, b: Model, connect: Mapping[str, str] | None, keep: bool, inputs: Sequence[str] | None) -> Model:
    """Return the merged model, held against both on ``inputs``, unless these are None."""
    whole = merge(a, b, connect, keep=keep)
    if inputs is not None:
        require_equal(merged(a, b, connect, keep=keep), whole, feeds=_feeds(whole, inputs))
    return whole


def _edited(model: Model, edits: Mapping[str, Any]) -> tuple[Model, tuple[Step, ...]]:
    """Return the model with all edits except a merge, and what its simplification has removed."""
    for text in edits["exposed"]:
        model = expose(model, *_exposed(text))
    renames: tuple[tuple[str, Callable[[Model, str, str], Model]], ...] = (
        ("rename_input", rename_input),
        ("rename_output", rename_output),
        ("rename_layer", rename_layer),
    )
    for option, rename in renames:
        for old, new in edits[option].items():
            model = rename(model, old, new)
    if edits["fold"]:
        model = fold_constants(model)
    steps: tuple[Step, ...] = ()
    if edits["simplify"]:
        simplified = simplify(model)
        model, steps = simplified.model, simplified.steps
    if edits["drop_unused"]:
        model = drop_unused(model)
    if edits["storage"] is not None:
        model = store(model, edits["storage"])
    return _converted(model, edits), steps


def _converted(model: Model, edits: Mapping[str, Any]) -> Model:
    """Return the model in the operation sets and in the version of the IR that the options name."""
    if edits["targets"]:
        targets = [parse_target(text) for text in edits["targets"]]
        if device := next((target.text for target in targets if target.device != "CPU"), None):
            message = f"{device} names no release; write a release, such as openvino==2024.6"
            raise click.BadParameter(message, param_hint="--target")
        releases = sorted({release for target in targets for release in target.releases}, key=RELEASES.index)

        def is_lacking(type: str, opset: int) -> bool:
            return not all(has_operation(release, type, opset) for release in releases)

        model = downgrade(model, newest_opset(releases[0]), is_lacking)
        report = api.check(model, targets=edits["targets"])
        if errors := [found for found in report.errors if found.code.startswith(_OF_TARGETS)]:
            raise ModelError(errors)
    if edits["opset"] is not None:
        model = upgrade(model) if edits["opset"] == _NEWEST else downgrade(model, edits["opset"])
    return model if edits["ir_version"] is None else with_version(model, int(edits["ir_version"]))


def _exposed(text: str) -> tuple[str, str | None]:
    """Return a value and the name of its output from ``VALUE[=NAME]``."""
    value, equals, name = text.rpartition("=")
    return (value, name) if equals and value and name else (text, None)
