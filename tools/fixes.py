"""Declare something wrong in models that run, fix them, and run them again: does each give what it gave?

`python -m tools fixes [COUNT] [SEED]` takes COUNT models that run with a wrong declaration, calls
`irrun check --fix --unsafe-fixes` of each, and compares the outputs before and after, in irrun and in OpenVINO.

A wrong declaration is one of a port (a dim, a missing dim, an added dim or a precision), of an output and all inputs
that read it, or of a number in the whole file, as by a careless replacement. OpenVINO ignores the declarations of
ports, so that no fix may change what it gives.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import irrun
from irrun.cli import cli
from irrun.running.generate import draw
from mutations import PORT_KINDS, PRECISIONS, models, mutate
from oracle import Oracle, OracleError

KINDS = ("port", "edge dim", "edge precision", "everywhere")


def wrong(path: Path, text: str, rng: random.Random) -> tuple[str, str] | None:
    """Return a kind of wrong declaration and the file with one; None where the file has no place for it."""
    kind = rng.choice(KINDS)
    if kind == "port":
        mutation = mutate(path, text, rng, PORT_KINDS)
        return None if mutation is None else (mutation.kind, mutation.text)
    if kind == "everywhere":
        numbers = sorted({int(number) for number in re.findall(r"<dim>(\d+)</dim>", text)})
        if not numbers:
            return None
        number = rng.choice(numbers)
        return kind, text.replace(f"<dim>{number}</dim>", f"<dim>{number + rng.choice((-1, 1, 7)) or 2}</dim>")
    edges = re.findall(r'<edge from-layer="(\d+)" from-port="(\d+)" to-layer="(\d+)" to-port="(\d+)"', text)
    if not edges:
        return None
    layer, port = rng.choice(edges)[:2]
    ends = [(layer, port), *((to, at) for source, out, to, at in edges if (source, out) == (layer, port))]
    at, other = rng.randrange(4), rng.choice(PRECISIONS)
    number = rng.choice((1, 2, 3, 7, 64))
    for end in ends:
        text = _declared(text, *end, other if kind == "edge precision" else None, at, number)
    return kind, text


def _declared(text: str, layer: str, port: str, precision: str | None, at: int, number: int) -> str:
    """Return the file with another precision, or another dim ``at``, of a port of a layer outside of bodies."""
    found = re.search(rf'<layer id="{layer}" .*?\n\t\t</layer>', text, re.DOTALL)
    element = found and re.search(rf'<port id="{port}"[^>]*>(.*?</port>)?', found[0], re.DOTALL)
    if not found or not element:
        return text
    new = element[0]
    if precision is not None:
        new = re.sub('precision="[^"]*"', f'precision="{precision}"', new)
    elif dims := list(re.finditer(r"<dim>[^<]*</dim>", new)):
        dim = dims[at % len(dims)]
        new = f"{new[: dim.start()]}<dim>{number}</dim>{new[dim.end() :]}"
    start = found.start() + element.start()
    return text[:start] + new + text[start + len(element[0]) :]


@dataclass
class Figures:
    """How often a model with a wrong declaration ran, was changed by its fix, and gave the same after it."""

    counts: Counter[str] = field(default_factory=Counter[str])
    broken: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in self.counts.items())


def _given(path: Path, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return list(irrun.compile(path, repeatable=True)(list(inputs)).arrays)


def _asked(oracle: Oracle, path: Path, inputs: Sequence[np.ndarray]) -> list[Any] | None:
    """Return what OpenVINO gives; None if it refuses the inputs, or reads beyond them and gives other values each time."""
    try:
        first, second = oracle(path, inputs), oracle(path, inputs)
    except OracleError:
        return None
    return first if _same(first, second) else None


def _same(a: Sequence[Any] | None, b: Sequence[Any] | None) -> bool:
    if a is None or b is None:
        return a is b
    return len(a) == len(b) and all(
        np.asarray(x).dtype == np.asarray(y).dtype and np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind in "fV")
        for x, y in zip(a, b)
    )


def judge(path: Path, kind: str, text: str, figures: Figures, oracle: Oracle) -> None:
    """Fix a model with a wrong declaration, and count what happens. Nothing is counted if it does not run."""
    original = path.read_bytes()
    path.write_bytes(text.encode())
    try:
        model = irrun.read_model(path)
        inputs = list(draw(model).values())
        before = _given(path, inputs)
        if not _same(before, _given(path, inputs)):
            return  # it draws random numbers
    except irrun.IrrunError:
        path.write_bytes(original)
        return
    try:
        expected = _asked(oracle, path, inputs)
        CliRunner().invoke(cli, ["check", str(path), "--fix", "--unsafe-fixes"], catch_exceptions=False)
        figures.counts.update(ran=1, changed=path.read_bytes() != text.encode())
        figures.counts.update({"in OpenVINO": expected is not None, "as original": path.read_bytes() == original})
        try:
            after: list[np.ndarray] | None = _given(path, inputs)
        except irrun.IrrunError as error:
            after = None
            figures.broken.append(f"{path.name}, {kind}: {error}")
        same = after is not None and _same(before, after)
        if same and not _same(expected, _asked(oracle, path, inputs)):
            path.write_bytes(text.encode())  # twice the same may be chance where OpenVINO reads beyond the inputs
            same = not _same(expected, _asked(oracle, path, inputs))
        figures.counts["same"] += same
        if after is not None and not same:
            figures.broken.append(f"{path.name}, {kind}: other values")
    finally:
        path.write_bytes(original)


def wrongs(ov: Any, folder: Path, rng: random.Random) -> Iterator[tuple[Path, str, str]]:
    """Yield models without end, each with a kind of wrong declaration and the file that has it."""
    for path in models(ov, folder, rng):
        text = path.read_bytes().decode()
        made = wrong(path, text, rng)
        if made is not None and made[1] != text:
            yield path, *made


def run(count: int, seed: int, ov: Any, oracle: Oracle) -> Figures:
    """Judge ``count`` models that run, by seed."""
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        for path, kind, text in wrongs(ov, Path(folder), random.Random(seed)):
            if figures.counts["ran"] == count:
                break
            judge(path, kind, text, figures, oracle)
    return figures


def main() -> None:
    import openvino

    oracle = Oracle()
    count, seed = (int(text) for text in (sys.argv[1:] + ["300", "0"][len(sys.argv) - 1 :]))
    figures = run(count, seed, openvino, oracle)
    oracle.close()
    print(*figures.broken, figures, sep="\n")


if __name__ == "__main__":
    main()
