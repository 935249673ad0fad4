"""From nothing to the first result; reading and planning models of many layers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

import irrun
from benchmarks.case import Case, Setup
from benchmarks.measure import ROOT, Contender, Job, core, once
from benchmarks.networks import network

_IRRUN = """
import sys, numpy, irrun
irrun.compile(sys.argv[1])([numpy.load(f) for f in sys.argv[2:]])
"""
_OPENVINO = """
import sys, numpy, openvino
core = openvino.Core()
hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": %d}
core.compile_model(core.read_model(sys.argv[1]), "CPU", hints)([numpy.load(f) for f in sys.argv[2:]])
"""


def starts(setup: Setup) -> Iterator[Case]:
    """Each turn is a process of its own: import, read, compile, run once, end."""
    small = ROOT / "samples" / "convnet.xml"
    yield Case("start, small: convnet", beside=lambda folder: _processes(small, folder, setup.threads))
    for name, file in (("ResNet-50", "resnet50"), ("BERT-base", "bert_base")):
        yield Case(
            f"start, large: {name}",
            beside=lambda folder, file=file: _processes(network(setup.cache, file), folder, setup.threads),
        )


def _processes(ir: Path, folder: Path, threads: int) -> dict[str, Contender]:
    arrays = Job(str(ir)).feeds()[0]
    files = [str(folder / f"{i}.npy") for i in range(len(arrays))]
    for file, array in zip(files, arrays):
        np.save(file, array)
    names = [irrun.read_model(ir).input_names(p)[0] for p in irrun.read_model(ir).parameters]
    given = [argument for name, file in zip(names, files) for argument in ("-i", f"{name}={file}")]
    commands = {
        "irrun": ["-c", _IRRUN, str(ir), *files],
        "OpenVINO": ["-c", _OPENVINO % threads, str(ir), *files],
        "irrun run": ["-m", "irrun", "run", str(ir), *given],
        "python -c pass": ["-c", "pass"],
    }
    return {name: once(partial(_process, command)) for name, command in commands.items()}


def _process(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], env=os.environ, stdout=subprocess.DEVNULL, check=True)


def reading(setup: Setup) -> Iterator[Case]:
    for layers in (1_000, 10_000, 100_000):
        yield Case(f"read, {layers} layers", beside=partial(_reads, layers), at=("read", layers))
    for layers in (1_000, 10_000, 100_000):
        yield Case(f"read and plan, {layers} layers", beside=partial(_compiles, layers), at=("read and plan", layers))


def _reads(layers: int, folder: Path) -> Mapping[str, Contender]:
    path = chain(folder, layers)
    return {"irrun": once(lambda: irrun.read_model(path)), "OpenVINO": once(lambda: core().read_model(path))}


def _compiles(layers: int, folder: Path) -> Mapping[str, Contender]:
    path = chain(folder, layers)
    more = {"irrun": once(lambda: irrun.compile(path))}
    if layers <= 1_000:  # ten times as many take OpenVINO more than ten minutes
        more["OpenVINO"] = once(lambda: core().compile_model(path, "CPU"))
    model = irrun.read_model(path)
    return more | {"check": once(lambda: irrun.check(model))}


def chain(folder: Path, layers: int, side: int = 56) -> Path:
    """A Parameter, ``layers`` alternating ReLU and Add (to itself, by two edges), and a Result."""
    dims = f"<dim>1</dim><dim>64</dim><dim>{side}</dim><dim>{side}</dim>"

    def port(id: int) -> str:
        return f'<port id="{id}" precision="FP32">{dims}</port>'

    rows = ['<?xml version="1.0"?>\n<net name="chain" version="11">\n<layers>']
    edges = []
    rows.append(
        f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,64,{side},{side}" '
        f'element_type="f32"/><output>{port(0)}</output></layer>'
    )
    previous = (0, 0)
    for i in range(1, layers + 1):
        type, inputs = ("ReLU", 1) if i % 2 else ("Add", 2)
        ports = "\n".join(map(port, range(inputs)))
        data = "" if i % 2 else '<data auto_broadcast="numpy"/>'
        rows.append(
            f'<layer id="{i}" name="layer_{i}" type="{type}" version="opset1">{data}\n<input>\n{ports}\n</input>\n'
            f"<output>\n{port(inputs)}\n</output>\n</layer>"
        )
        edges += [
            f'<edge from-layer="{previous[0]}" from-port="{previous[1]}" to-layer="{i}" to-port="{n}"/>'
            for n in range(inputs)
        ]
        previous = (i, inputs)
    last = layers + 1
    rows.append(f'<layer id="{last}" name="y" type="Result" version="opset1"><input>{port(0)}</input></layer>')
    edges.append(f'<edge from-layer="{previous[0]}" from-port="{previous[1]}" to-layer="{last}" to-port="0"/>')
    rows += ["</layers>", "<edges>", *edges, "</edges>", "</net>\n"]
    path = folder / "chain.xml"
    path.write_text("\n".join(rows))
    return path
