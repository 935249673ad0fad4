"""The result of ``irrun compare`` as text: tables, the curve of the error, and the first divergence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from shlex import quote
from typing import Final

from rich.console import Console
from rich.text import Text

from irrun.base.text import apart, counted, printable
from irrun.cli import _terminal
from irrun.cli._tokens import show_other_token, show_steps
from irrun.debug import (
    Budget,
    Comparison,
    Conduct,
    Content,
    First,
    InputError,
    InputPair,
    Layer,
    Measurement,
    SideFailure,
    Storage,
)
from irrun.debug.budget import SATURATING, InEffect
from irrun.engines import Crash, Refusal, Side, parse_side
from irrun.engines.moves import MOVES

__all__ = ["content_note", "show", "show_content", "show_inputs"]

_MAX_CURVE_ROWS: Final = 24
"""The most rows of the curve: with more layers, a row shows the worst of several."""
_MAX_BAR_CHARS: Final = 30
"""Characters of the longest bar of the curve."""
_SHORTEST_BAR_POWER: Final = -9
"""The power of ten of an error without a bar: float32 rounds off about 1e-7."""
_LONGEST_BAR_POWER: Final = 0
"""The power of ten of an error with the longest bar: the error is as large as the value."""
_MAX_SHOWN_LAYERS: Final = 12
"""The most layers in the table of those that differ."""
_MAX_UNSEEN: Final = 4
"""The most layers that are named of those whose values a side does not show."""


def show(out: Console, comparison: Comparison) -> None:
    """Print a comparison."""
    for title, (side, engine) in (("reference", comparison.reference), ("candidate", comparison.candidate)):
        out.print(f"{title}  {printable(side)}  ({printable(engine)})")
    _show_properties(out, comparison)
    show_inputs(out, comparison.inputs)
    if comparison.outputs:
        out.print()
        _terminal.title(out, "outputs")
        _table(out, comparison.outputs, with_type=False)
    show_steps(out, comparison)
    differing = [layer for layer in comparison.layers if not layer.agrees]
    if differing:
        out.print()
        verb = "differs" if len(comparison.layers) == 1 else "differ"
        _terminal.title(out, f"{len(differing)} of {counted(len(comparison.layers), 'layer output')} {verb}")
        _table(out, differing[:_MAX_SHOWN_LAYERS], with_type=True)
        if len(differing) > _MAX_SHOWN_LAYERS:
            out.print(f"  and {len(differing) - _MAX_SHOWN_LAYERS} more")
    if comparison.layers:
        out.print()
        _terminal.title(out, "error in the order of the run")
        rows = _curve(comparison.layers, min(_MAX_BAR_CHARS, out.width // 4))
        _terminal.print_table(out, ("name", "error", "bar"), rows, right=("error",), whole=("bar",), spare=("bar",))
    out.print()
    if comparison.failure is not None:
        _show_failure(out, comparison.failure)
        if comparison.first is not None:
            _show_first(out, comparison.first, comparison)
    elif comparison.agrees:
        _show_agreement(out, comparison)
    elif comparison.first is not None:
        _show_first(out, comparison.first, comparison)
    else:
        _show_outputs_only(out, comparison)
    if comparison.failure is None:
        show_other_token(out, comparison)
        _show_conduct(out, comparison.conduct)
        _show_unseen(out, comparison)
        _show_default(out, comparison)
        _show_storage(out, comparison.storage)
        show_content(
            out, comparison.content, [parse_side(side) for side, _ in (comparison.reference, comparison.candidate)]
        )


def _show_storage(out: Console, storage: Storage | None) -> None:
    """Print how many constants one file stores in another type, and what that does to the outputs."""
    if storage is None:
        return
    verb = "is" if storage.constants == 1 else "are"
    is_narrower = storage.reference == "f32"
    how = "rounded from f32" if is_narrower else f"rounded to {storage.reference} in the reference"
    out.print(f"note: {counted(storage.constants, 'constant')} {verb} stored in {storage.type} ({how});", end=" ")
    out.print(f"this explains at most {_number(storage.explained, 2)} of an output's root mean square")


def _show_properties(out: Console, comparison: Comparison) -> None:
    """Print the processor and the properties in effect, if an engine shows any."""
    if not any(comparison.properties):
        return
    out.print(f"processor  {printable(comparison.processor)}")
    texts = [", ".join(f"{name} {value}" for name, value in own.items()) for own in comparison.properties]
    for title, text in (("both", texts[0]),) if texts[0] == texts[1] else zip(("reference", "candidate"), texts):
        if text:
            out.print(f"{title:<9}  {printable(text)}")


def show_inputs(out: Console, pairs: Sequence[InputPair]) -> None:
    """Print which inputs a dump has passed to the other side, and those that are not paired by their names."""
    lines: list[str] = []
    if recorded := [f'"{printable(pair.candidate)}"' for pair in pairs if pair.is_recorded]:
        lines.append(f"from the dump: {', '.join(recorded)}")
    for by, words in (("map", "paired by --map"), ("position", "paired by position")):
        if texts := [f'"{printable(p.reference)}" with "{printable(p.candidate)}"' for p in pairs if p.by == by]:
            lines.append(f"{words}: {', '.join(texts)}")
    alone = {side: [getattr(p, side) for p in pairs if not p.by] for side in ("reference", "candidate")}
    for side, names in alone.items():
        texts = [f'"{printable(name)}"' for name in names if name]
        lines += [f"only in the {side}: {', '.join(texts)}"] if texts else []
    for number, line in enumerate(lines):
        out.print(f"{'' if number else 'inputs':<11}{line}")


def _table(out: Console, layers: Sequence[Layer], *, with_type: bool) -> None:
    columns = [
        "name",
        *(["type"] if with_type else []),
        "max abs",
        "max rel",
        "cosine",
        "SNR dB",
        "worst at",
        "outside",
    ]
    special = any(sum(layer.measurement.nan) + sum(layer.measurement.inf) for layer in layers)
    rows = []
    for layer in layers:
        m = layer.measurement
        figures = [
            layer.label,
            *([layer.type] if with_type else []),
            _number(m.max_abs),
            _number(m.max_rel),
            _number(m.cosine, 6),
            _number(m.snr, 4),
            "-" if m.worst is None else _index(m.worst),
            "explained" if layer.drifts and not m.problem else _share(layer),
        ]
        if special:
            figures.append(_special(m))
        rows.append(figures)
    right = ("max abs", "max rel", "cosine", "SNR dB", "outside")
    spare = ("worst at", "cosine", "SNR dB", "max rel", "type", "not finite", "max abs")
    _terminal.print_table(out, [*columns, *(["not finite"] if special else [])], rows, right=right, spare=spare)


def _share(layer: Layer) -> str:
    """Return the share of the elements outside the budget of a value or, without one, outside its tolerance."""
    m = layer.measurement
    if m.problem:
        return m.problem
    outside = m.outside if layer.budget is None else layer.budget.outside
    if not outside:
        return "-"
    return f"{outside / m.size:.2%}" if outside >= 1e-4 * m.size else f"{outside} of {m.size:,}"


def _special(measurement: Measurement) -> str:
    """Return the numbers of NaN and Inf where there are any: reference, then candidate."""
    pairs = ((measurement.nan, "nan"), (measurement.inf, "inf"))
    return ", ".join(f"{pair[0]} and {pair[1]} {name}" for pair, name in pairs if sum(pair))


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def _index(index: Sequence[int]) -> str:
    return f"[{','.join(map(str, index))}]"


def _curve(layers: Sequence[Layer], longest: int = _MAX_BAR_CHARS) -> list[tuple[str, str, Text]]:
    """Return the name and the error of each layer, or of the worst of several, and a bar on a logarithmic scale."""
    groups = [
        layers[i * len(layers) // _MAX_CURVE_ROWS : (i + 1) * len(layers) // _MAX_CURVE_ROWS]
        for i in range(_MAX_CURVE_ROWS)
    ]
    shown = [max(group, key=lambda layer: layer.measurement.error) for group in groups if group]
    rows = []
    for layer in shown:
        error = layer.measurement.error
        power = math.log10(error) if 0 < error < math.inf else _SHORTEST_BAR_POWER if error <= 0 else math.inf
        power = min(max(power, _SHORTEST_BAR_POWER), _LONGEST_BAR_POWER)
        share = (power - _SHORTEST_BAR_POWER) / (_LONGEST_BAR_POWER - _SHORTEST_BAR_POWER)
        bar = Text("█" * round(share * longest), "green" if layer.agrees else "red")
        rows.append((layer.label, _number(error, 2), bar))
    return rows


def _show_agreement(out: Console, comparison: Comparison) -> None:
    parts = [counted(len(comparison.outputs), "output")]
    if comparison.layers:
        parts.append(counted(len(comparison.layers), "layer output"))
    out.print(Text(f"agree: {' and '.join(parts)}, {counted(comparison.samples, _sample(comparison))}", "bold green"))
    if drifting := comparison.drifting:
        verb = "drifts" if len(drifting) == 1 else "drift"
        out.print(f"   = {counted(len(drifting), 'inner value')} {verb}: right for inputs that have errors themselves")
    if explained := [output for output in comparison.outputs if output.drifts and output.budget]:
        worst = max(explained, key=lambda output: output.budget.excess if output.budget else 0)
        assert worst.budget is not None
        share = apart(worst.budget.excess, 1)[0]
        out.print(f"   = {worst.budget.form} explains the errors of the outputs: at most {share} of what it allows")
        costly = sorted(comparison.layers, key=lambda layer: -(layer.budget.error if layer.budget else 0))
        names = [
            f'"{printable(layer.label)}" ({_number(layer.budget.error, 2)})'
            for layer in costly[:3]
            if layer.budget and layer.budget.error
        ]
        if names:
            out.print(f"   = layers with the greatest own errors: {', '.join(names)}")


def content_note(content: Content) -> str:
    """Return how the files of two sides differ, as the beginning of a sentence that ends with ``;``."""
    counts = ((content.constants, "constant"), (content.layers, "other layer" if content.constants else "layer"))
    reader = f", which {content.reader} reads" if content.reader else ""
    files = f"note: the files differ in {' and '.join(counted(n, word) for n, word in counts if n)}"
    return f'{files} (first "{printable(content.first)}"{printable(reader)});'


def show_content(out: Console, content: Content | None, sides: Sequence[Side]) -> None:
    """Print how the files of two sides differ, and the command that shows it."""
    if content is None:
        return
    out.print(content_note(content), end=" ")
    options = [f" --weights-{letter} {quote(side.weights)}" for letter, side in zip("ab", sides) if side.weights]
    files = " ".join(quote(str(side.path)) for side in sides)
    out.print(f"`irrun diff {files}{''.join(options)}` shows them")


_CONDUCT: Final = {
    "not deterministic": "not deterministic: the {} gives other outputs for the same inputs in each run",
    "changes with repetition": "changes with repetition: the first run of the {} gives other outputs than the next",
    "vanishes when observed": "vanishes when observed: no layer of the {} is wrong while it shows its inner values, "
    "which keeps an engine from fusing them",
}


def _show_conduct(out: Console, conduct: Conduct | None) -> None:
    if conduct is not None:
        out.print(f"   = {_CONDUCT[conduct.kind].format(conduct.side)}")
        if conduct.layer:
            out.print(f'   = "{printable(conduct.layer)}" is the first layer whose value changes')


def _show_unseen(out: Console, comparison: Comparison) -> None:
    """Print which inner values a side does not show: it runs the model, but not with these as further outputs."""
    for side in ("reference", "candidate"):
        if names := [f'"{printable(layer)}"' for role, layer in comparison.unseen if role == side]:
            shown = names[:_MAX_UNSEEN] + [f"{len(names) - _MAX_UNSEEN} more"] * (len(names) > _MAX_UNSEEN)
            out.print(f"   = not compared, for the {side} refuses the model while it shows them: {', '.join(shown)}")


def _show_default(out: Console, comparison: Comparison) -> None:
    """Print that an engine computes in another precision than f32, unless the user has asked for it."""
    every = (*comparison.outputs, *comparison.layers)
    for (side, _), properties in zip((comparison.reference, comparison.candidate), comparison.properties):
        type = InEffect.of(properties).type
        kind = parse_side(side).kind
        if properties and any(one.budget and one.budget.form == SATURATING for one in every):
            out.print("   = sums of products in u8 and i8 saturate at 16 bits, for the processor has no VNNI;", end=" ")
            out.print(f"{kind}[precision=f32]:… computes them in f32")
            return
        if properties.get("INFERENCE_PRECISION_HINT") == "dynamic":
            hint = properties.get("EXECUTION_MODE_HINT", "")
            out.print(f"   = {kind} computes in {type}" + (f", as {hint} asks" if hint == "ACCURACY" else ""))
        if type != "f32" and not {"precision", "INFERENCE_PRECISION_HINT"} & parse_side(side).options.keys():
            out.print(
                f"   = {type} is the default of {kind} on this processor; {kind}[precision=f32]:… computes in f32"
            )
            return


def _sample(comparison: Comparison) -> str:
    return "step" if comparison.steps else "sample"


def _show_first(out: Console, first: First, comparison: Comparison) -> None:
    layer, head = first.layer, "differ: " if comparison.failure is None else ""
    out.print(Text(f'{head}the first divergence is {layer.type} "{printable(layer.label)}"', "bold red"))
    if layer.file is not None:
        out.print(f"  --> {printable(layer.file)}:{layer.line}")
    notes = []
    if layer.candidate != layer.label:
        notes.append(f'it is called "{printable(layer.candidate)}" in the candidate')
    if comparison.samples > 1:
        notes.append(f"{_sample(comparison)} {layer.sample + 1} of {comparison.samples}")
    if layer.iteration is not None:
        notes.append(f"iteration {layer.iteration}")
    m = layer.measurement
    if m.problem:
        notes.append(printable(m.problem))
    if layer.budget is not None and not m.problem:
        notes.append(f"max abs {_number(m.max_abs)}")
    elif m.worst is not None:
        limit = f"rtol {layer.rtol:g}, atol {layer.atol:g}"
        notes.append(f"max abs {_number(m.max_abs)} ({limit}), worst at {_index(m.worst)}")
    if special := _special(m):
        notes.append(f"{special}: reference and candidate")
    if layer.budget is not None:
        notes.append(_own_error(layer, layer.budget, comparison))
    notes += [f"input {number}: {_input(item)}" for number, item in enumerate(first.inputs)]
    notes += map(printable, first.differences)
    notes.append(_role(first))
    for note in filter(None, notes):
        out.print(f"   = {note}")


def _own_error(layer: Layer, budget: Budget, comparison: Comparison) -> str:
    """Return what a layer adds to the errors of the inputs that it has read, beside what its precision explains."""
    unit = "" if math.isinf(layer.measurement.error) else " of the root mean square"
    error = "" if math.isinf(budget.error) else f" {_number(budget.error, 2)}{unit}"
    of_layer = f"own error{error} on the inputs that the layer has read"
    where = "" if budget.worst is None else f" at {_index(budget.worst)}"
    if layer.type in MOVES:
        return f"{of_layer}{where}: this layer computes nothing that rounds"
    if math.isinf(budget.excess):
        return f"{of_layer}: no rounding explains the value{where}"
    form = InEffect.of(comparison.properties[1]).type if budget.form.startswith("f32") else budget.form
    return f"{of_layer}: {apart(budget.excess, 1)[0]} times what {form} explains{where}"


def _input(item: InputError) -> str:
    place = f", line {item.line}" if item.line is not None else ""
    what = f'{item.type} "{printable(item.name)}"{place}' if item.type else "not connected"
    m = item.measurement
    if m is None:
        return what if item.kind == "input" or not item.type else f"{what}: not compared"
    if m.problem:
        return f"{what}: {printable(m.problem)}"
    return f"{what}: {'equal' if not m.max_abs and not m.outside else f'error {_number(m.error, 2)}'}"


def _role(first: First) -> str:
    """Return whether the layer makes the error or amplifies one."""
    if first.differences:
        return "the layer differs between the files"
    fed = [i for i in first.inputs if i.kind != "constant" and i.measurement]
    unlike = [i for i in fed if i.measurement and i.measurement.problem]
    if unlike:
        return f'the layer passes on the difference of its input "{printable(unlike[0].name)}", and makes no error'
    if first.layer.type == "Parameter":
        return "the sides ran on other data: if the pairs of inputs are wrong, pass --map REFERENCE=CANDIDATE"
    if not first.inputs:
        return ""
    if first.layer.budget is not None:
        beside = any(i.measurement and i.measurement.error for i in fed)
        return f"the layer makes the error: its inputs have {'smaller or other ones' if beside else 'none'}"
    if first.gain is None:
        if any(i.measurement and i.measurement.error for i in fed):
            return "the layer makes the difference, or follows from the small errors of its inputs"
        return "the layer makes the error: its inputs have none"
    error = _number(first.layer.measurement.error, 2)
    if first.gain > 10:
        return f"the layer makes the error, or amplifies that of its inputs: {first.gain:.2g} times, to {error}"
    return f"the layer passes on the error of its inputs: {first.gain:.2g} times, to {error}"


def _show_outputs_only(out: Console, comparison: Comparison) -> None:
    names = ", ".join(f'"{printable(output.label)}"' for output in comparison.outputs if not output.agrees)
    out.print(Text(f"differ: the outputs {names}", "bold red"))
    for output in comparison.outputs:
        if output.budget is not None and not output.agrees:
            times = apart(output.budget.excess, 1, 3)[0]
            out.print(f'   = the error of "{printable(output.label)}" is {times} times what its budget allows')
    if comparison.layers and comparison.conduct is None:
        out.print("   = no inner value differs: the fault may vanish when inner values are observed,")
        out.print("     which changes how engines fuse layers")
    elif not comparison.layers:
        out.print("   = no inner values were compared")


def _show_failure(out: Console, failure: SideFailure) -> None:
    outcome = failure.outcome
    where = "while it loaded the model" if failure.sample is None else f"on sample {failure.sample + 1}"
    if isinstance(outcome, Refusal):
        out.print(Text(f"refused: the {failure.side} refused {where}", "bold red"))
        lines = outcome.message.splitlines()
    elif isinstance(outcome, Crash):
        out.print(Text(f"crashed: the {failure.side} crashed {where}: {printable(outcome.cause)}", "bold red"))
        lines = outcome.log.splitlines()[-8:]
    else:
        out.print(Text(f"timeout: the {failure.side} took more than {outcome.seconds:g} s {where}", "bold red"))
        lines = []
    for line in lines:
        out.print(f"   = {printable(line)}")
