"""How long a model of many layers takes to read, next to OpenVINO: `python benchmarks/read.py` (extra `test`).

Both read the same file in turn, in this process; medians. Linear reading keeps the time per layer level.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import openvino as ov

import irrun

_PORT = '<port id="{id}" precision="FP32"><dim>1</dim><dim>64</dim><dim>56</dim><dim>56</dim></port>'


def write_chain(path: Path, layers: int) -> None:
    """A Parameter, ``layers`` alternating ReLU and Add (to itself, by two edges), and a Result."""
    rows = ['<?xml version="1.0"?>\n<net name="chain" version="11">\n<layers>']
    edges = []
    rows.append(
        '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,64,56,56" element_type="f32"/>'
        f"<output>{_PORT.format(id=0)}</output></layer>"
    )
    previous = (0, 0)
    for i in range(1, layers + 1):
        type, inputs = ("ReLU", 1) if i % 2 else ("Add", 2)
        ports = "\n".join(_PORT.format(id=n) for n in range(inputs))
        data = "" if i % 2 else '<data auto_broadcast="numpy"/>'
        rows.append(
            f'<layer id="{i}" name="layer_{i}" type="{type}" version="opset1">{data}\n<input>\n{ports}\n</input>\n'
            f"<output>\n{_PORT.format(id=inputs)}\n</output>\n</layer>"
        )
        edges += [
            f'<edge from-layer="{previous[0]}" from-port="{previous[1]}" to-layer="{i}" to-port="{n}"/>'
            for n in range(inputs)
        ]
        previous = (i, inputs)
    last = layers + 1
    rows.append(
        f'<layer id="{last}" name="y" type="Result" version="opset1"><input>{_PORT.format(id=0)}</input></layer>'
    )
    edges.append(f'<edge from-layer="{previous[0]}" from-port="{previous[1]}" to-layer="{last}" to-port="0"/>')
    rows += ["</layers>", "<edges>", *edges, "</edges>", "</net>\n"]
    path.write_text("\n".join(rows))


def median(call: Callable[[], object], repeats: int) -> float:
    """Seconds, the median of ``repeats`` calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    arguments = parser.parse_args()
    core = ov.Core()
    figures: list[dict[str, float]] = []
    print(f"{'layers':>8} {'irrun read':>11} {'+ check':>9} {'+ compile':>10} {'OpenVINO read':>14} {'ratio':>6}  (s)")
    with tempfile.TemporaryDirectory() as folder:
        for layers in arguments.layers:
            path = Path(folder, f"{layers}.xml")
            write_chain(path, layers)
            model = irrun.read_model(path)
            ours = median(lambda path=path: irrun.read_model(path), arguments.repeats)
            check = median(lambda model=model: irrun.check(model), arguments.repeats)
            compiled = median(lambda model=model: irrun.compile(model), arguments.repeats)
            theirs = median(lambda path=path: core.read_model(path), arguments.repeats)
            row = {"layers": layers, "read": ours, "check": check, "compile": compiled, "openvino_read": theirs}
            figures.append(row)
            print(f"{layers:>8} {ours:>11.3f} {check:>9.3f} {compiled:>10.3f} {theirs:>14.3f} {theirs / ours:>6.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
