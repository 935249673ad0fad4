"""The result of ``irrun precision`` as text: the verdict, the outputs, the ranked layers, and those to keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.debug import Kept, Layer, Measurement, Precision, Sensitivity, Twin
from irrun.debug.budget import Expected

__all__ = ["show"]

_OVERFLOWS: Final = 3
"""The most layers that overflow which are described before the tables."""
_NAMED: Final = 3
"""The most layers that are named in a row of the table of weights."""


def show(out: Console, result: Precision, top: int) -> None:
    """Print a result, with at most ``top`` layers in each table."""
    _show_verdict(out, result)
    if result.outputs:
        out.print()
        _terminal.title(out, f"outputs {_where(result)}")
        _show_outputs(out, result.outputs, result.expected, is_text=result.text)
    if result.twin is not None:
        _show_twin(out, result.twin, top)
    if result.layers:
        out.print()
        lose = counted(len(result.layers), "layer")
        _terminal.title(out, f"{lose} of {result.simulated} lose, by the effect of each alone on the outputs")
        _show_layers(out, result.layers[:top], result)
        if len(result.layers) > top:
            out.print(f"  and {len(result.layers) - top} more")
        if any(not layer.exact for layer in result.layers[:top]):
            out.print("  ~ estimated; raise --measure to measure more layers")
    if result.kept is not None and not result.agrees:
        out.print()
        _show_kept(out, result.kept, top, "text" if result.text else "tolerances")


def _where(result: Precision) -> str:
    """Return where the outputs are not the true ones."""
    return f"in {result.precision}" if result.twin is None else "of the compressed model"


def _show_verdict(out: Console, result: Precision) -> None:
    limits = "the greedy tokens of the true ones" if result.text else "their tolerances"
    if result.agrees:
        text = f"agree: the outputs {_where(result)} " + (f"have {limits}" if result.text else f"are within {limits}")
    elif result.overflowing:
        first = result.overflowing[0]
        name = f'{first.type} "{printable(first.name)}"'
        text = f"overflow: {name} is the first layer that overflows {_where(result)}"
    elif result.text:
        text = f"differ: the outputs {_where(result)} have other greedy tokens"
    else:
        text = f"differ: the outputs {_where(result)} are outside their tolerances"
    samples = counted(result.samples, "sample")
    out.print(Text(f"{text}, {samples}", "bold green" if result.agrees else "bold red"))
    for layer in result.overflowing[:_OVERFLOWS]:
        if layer.line is not None:
            out.print(f"  --> {printable(layer.file or '')}:{layer.line}")
        place = ""
        if layer.place is not None:
            at = f"at [{','.join(map(str, layer.place[1]))}]"
            place = f" {at}" if result.samples == 1 else f" {at} of sample {layer.place[0] + 1}"
        share = f"{layer.overflows} of {counted(layer.size, 'element')} overflow"
        out.print(f'   = "{printable(layer.name)}": {share}, the greatest is {layer.magnitude:.4g}{place}')
    if len(result.overflowing) > _OVERFLOWS:
        out.print(f"   = and {counted(len(result.overflowing) - _OVERFLOWS, 'layer')} more")


def _show_outputs(out: Console, outputs: Sequence[Layer], expected: Expected, *, is_text: bool) -> None:
    rows: list[list[str]] = []
    for position, output in enumerate(outputs):
        m, known = output.measurement, expected.outputs.get(position)
        finite = "" if m.nan[0] == m.nan[1] and m.inf[0] == m.inf[1] else f"{m.nan[1]} nan, {m.inf[1]} inf"
        outside = m.problem or (_outside(m, is_text=is_text) if m.outside else "-")
        error = math.inf if math.isinf(m.excess) else m.error
        rows.append(
            [
                output.name,
                _number(error),
                _number(None if known is None else known.error),
                _number(None if known is None else known.allowed),
                _number(m.max_abs),
                _number(m.snr, 4),
                outside,
                f"{output.rtol:g}",
                f"{output.atol:g}",
                finite,
            ]
        )
    other = "other tokens" if is_text else "outside"
    columns = ["name", "error", "expect", "budget", "max abs", "SNR dB", other, "rtol", "atol", "not finite"]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    spare = ("not finite", "atol", "rtol", "SNR dB", "max abs", "budget")
    _terminal.print_table(out, columns, rows, right=columns[1:9], spare=spare)


def _outside(measurement: Measurement, *, is_text: bool) -> str:
    if not is_text or measurement.worst is None:
        return f"{measurement.share:.2%}"
    place = ",".join(map(str, measurement.worst))
    return f"{measurement.outside} of {measurement.size}, first at [{place}]"


def _show_twin(out: Console, twin: Twin, top: int) -> None:
    """Print the forms of the weights, and the layers that quantize values."""
    out.print()
    _terminal.title(out, f"weights, compared with {printable(twin.path)}")
    rows = [
        [
            form.form,
            str(len(form.layers)),
            "equal" if form.is_exact else _number(form.snr, 4),
            _named(form.layers) if len(form.layers) <= _NAMED or form.is_exact else f"worst: {form.worst}",
        ]
        for form in twin.forms
    ]
    columns = ["form", "layers", "least SNR dB", "names"]
    _terminal.print_table(out, columns, rows, right=columns[1:3], spare=("layers",))
    if not twin.is_explained:
        out.print(
            f"  the outputs have an error of {_number(twin.rest)} that neither weights nor quantizers explain: the two "
            "models differ in more; list it with `irrun diff`"
        )
    if twin.quantizers:
        out.print()
        _terminal.title(out, "layers of the compressed model that quantize inputs, by the share that saturates")
        ordered = sorted(twin.quantizers, key=lambda item: (-item.saturated, item.snr or math.inf))
        rows = [
            [
                item.name,
                item.type,
                "-" if item.line is None else str(item.line),
                "-" if item.levels is None else str(item.levels),
                f"{item.saturated:.2%}" if item.saturated else "-",
                _number(item.snr, 4),
                _named(item.readers),
            ]
            for item in ordered[:top]
        ]
        columns = ["layer", "type", "line", "levels", "saturated", "SNR dB", "read by"]
        _terminal.print_table(out, columns, rows, right=columns[2:6], spare=("levels", "SNR dB", "line", "type"))
        if len(ordered) > top:
            out.print(f"  and {len(ordered) - top} more")


def _named(names: Sequence[str]) -> str:
    """Return the first names of a list."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _show_layers(out: Console, layers: Sequence[Sensitivity], result: Precision) -> None:
    columns = ["layer", "type", "line", "overflows", "greatest", "own error", "SNR dB", "expect", "effect"]
    rows = [
        [
            layer.name,
            layer.type,
            "-" if layer.line is None else str(layer.line),
            str(layer.overflows) if layer.overflows else "-",
            _number(layer.magnitude),
            _number(layer.error),
            _number(layer.snr, 4),
            _number(layer.expected),
            ("" if layer.exact else "~") + _number(layer.effect),
        ]
        for layer in layers
    ]
    if result.twin is not None:
        columns[3:5] = ["weight SNR dB"]
        rows = [[*row[:3], _number(layer.weight_snr, 4), *row[5:], layer.form] for row, layer in zip(rows, layers)]
    elif result.precision.startswith("int"):  # values saturate: nothing overflows
        columns.pop(3)
        rows = [[*row[:3], *row[4:]] for row in rows]
    spare = ("greatest", "SNR dB", "own error", "line", "overflows", "type")
    right = columns[2:]
    columns += [] if result.twin is None else ["form"]
    _terminal.print_table(out, columns, rows, right=right, spare=spare)


def _show_kept(out: Console, kept: Kept, top: int, restored: str) -> None:
    what = "none of them can be left out" if kept.minimal else "some of them may be left out"
    layers = counted(len(kept.layers), "layer")
    out.print(f"keep {layers} in full precision to restore the {restored}; {what}")
    for layer in kept.layers[:top]:
        line = "" if layer.line is None else f", line {layer.line}"
        out.print(f'  {layer.type} "{printable(layer.name)}"{line}')
    if len(kept.layers) > top:
        out.print(f"  and {len(kept.layers) - top} more; --kept writes all of them")


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else "inf" if math.isinf(value) else f"{value:.{digits}g}"
