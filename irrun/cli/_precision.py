"""The result of ``irrun precision`` as text: the verdict, the outputs, the ranked layers, and those to keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.debug import Kept, Layer, Precision, Sensitivity

__all__ = ["show"]

_OVERFLOWS: Final = 3
"""The most layers that overflow which are described before the tables."""


def show(out: Console, result: Precision, top: int) -> None:
    """Print a result, with at most ``top`` layers in each table."""
    _show_verdict(out, result)
    if result.outputs:
        out.print()
        _terminal.title(out, f"outputs in {result.precision}")
        _show_outputs(out, result.outputs)
    if result.layers:
        out.print()
        lose = counted(len(result.layers), "layer")
        _terminal.title(out, f"{lose} of {result.simulated} lose, by the effect of each alone on the outputs")
        _show_layers(out, result.layers[:top], is_quantized=result.precision.startswith("int8"))
        if len(result.layers) > top:
            out.print(f"  and {len(result.layers) - top} more")
        if any(not layer.exact for layer in result.layers[:top]):
            out.print("  ~ estimated; raise --measure to measure more layers")
    if result.kept is not None and not result.agrees:
        out.print()
        _show_kept(out, result.kept, top)


def _show_verdict(out: Console, result: Precision) -> None:
    if result.agrees:
        text = f"agree: the outputs in {result.precision} are within their tolerances"
    elif result.overflowing:
        first = result.overflowing[0]
        name = f'{first.type} "{printable(first.name)}"'
        text = f"overflow: {name} is the first layer that overflows in {result.precision}"
    else:
        text = f"differ: the outputs in {result.precision} are outside their tolerances"
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


def _show_outputs(out: Console, outputs: Sequence[Layer]) -> None:
    rows: list[list[str]] = []
    for output in outputs:
        m = output.measurement
        finite = "" if m.nan[0] == m.nan[1] and m.inf[0] == m.inf[1] else f"{m.nan[1]} nan, {m.inf[1]} inf"
        outside = m.problem or (f"{m.share:.2%}" if m.outside else "-")
        error = math.inf if math.isinf(m.excess) else m.error
        rows.append(
            [
                output.name,
                _number(error),
                _number(m.max_abs),
                _number(m.snr, 4),
                outside,
                f"{output.rtol:g}",
                f"{output.atol:g}",
                finite,
            ]
        )
    columns = ["name", "error", "max abs", "SNR dB", "outside", "rtol", "atol", "not finite"]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    spare = ("not finite", "atol", "rtol", "SNR dB", "max abs")
    _terminal.print_table(out, columns, rows, right=columns[1:7], spare=spare)


def _show_layers(out: Console, layers: Sequence[Sensitivity], *, is_quantized: bool) -> None:
    columns = ["layer", "type", "line", "overflows", "greatest", "own error", "SNR dB", "effect"]
    rows = [
        [
            layer.name,
            layer.type,
            "-" if layer.line is None else str(layer.line),
            str(layer.overflows) if layer.overflows else "-",
            _number(layer.magnitude),
            _number(layer.error),
            _number(layer.snr, 4),
            ("" if layer.exact else "~") + _number(layer.effect),
        ]
        for layer in layers
    ]
    if is_quantized:  # values saturate: nothing overflows
        columns.pop(3)
        rows = [[*row[:3], *row[4:]] for row in rows]
    spare = ("greatest", "SNR dB", "own error", "line", "overflows", "type")
    _terminal.print_table(out, columns, rows, right=columns[2:], spare=spare)


def _show_kept(out: Console, kept: Kept, top: int) -> None:
    what = "none of them can be left out" if kept.minimal else "some of them may be left out"
    layers = counted(len(kept.layers), "layer")
    out.print(f"keep {layers} in full precision to restore the tolerances; {what}")
    for layer in kept.layers[:top]:
        line = "" if layer.line is None else f", line {layer.line}"
        out.print(f'  {layer.type} "{printable(layer.name)}"{line}')
    if len(kept.layers) > top:
        out.print(f"  and {len(kept.layers) - top} more; --kept writes all of them")


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else "inf" if math.isinf(value) else f"{value:.{digits}g}"
