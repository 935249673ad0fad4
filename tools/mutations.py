"""Valid models, one thing in each corrupted at random: is it reported where it stands, and put right again?

`python -m tools mutations [COUNT] [SEED]` runs COUNT mutations and prints the figures by kind, and what was missed.

A mutation changes one dim, one precision or one attribute of a file that OpenVINO wrote. It is *reported* if there is
a finding at its layer and line (for a missing or an added dim, at its port; for the value of an attribute, also at the
start of its layer, which breaks a rule with it, and at the dims and precisions that it leads to). It is *repaired* if ``fix`` gives the original
bytes. Not every mutation can be known:

- *silent*: an attribute was removed whose default is what it said, or it has another legal value on which nothing in
  the file depends. OpenVINO is the witness of that: it reads the file, and each port has its type and shape as before.
"""

from __future__ import annotations

import html
import importlib
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import irrun
import kit
import small_networks
from irrun.api import load
from irrun.checking.fix import fix
from irrun.opdef import resolve
from oracle import Oracle, OracleError
from places import SAMPLES
from tables import cases

PRECISIONS = ("FP32", "FP16", "FP64", "I64", "I32", "I8", "U8", "BOOL")
TYPES = ("f32", "f16", "f64", "i64", "i32", "i8", "u8", "boolean")
DIM_KINDS = ("output dim", "input dim", "missing dim", "added dim")
PRECISION_KINDS = ("output precision", "input precision")
ATTRIBUTE_KINDS = ("value", "nonsense", "misspelt", "missing attribute")
PORT_KINDS = (*DIM_KINDS, *PRECISION_KINDS)
KINDS = (*PORT_KINDS, *ATTRIBUTE_KINDS)


# ---------------------------------------------------------------------------------------------
# the models


def models(ov: Any, folder: Path, rng: random.Random) -> Iterator[Path]:
    """Files of models in random order, without end: of one operation and of several in turn, large ones more often."""
    models_of_one = list(cases())
    larger: list[Path] = []
    for name, model in _models(ov).items():
        path = folder / f"{name}.xml"
        ov.save_model(model, path, compress_to_fp16=name.startswith("half"))
        larger += [path] * (1 + len(_layers(path.read_text())) // 20)
    while True:
        number = rng.randrange(len(models_of_one))
        case = models_of_one[number]
        declared = rng.choice(("static", "static", "dims", "rank"))
        path = folder / f"{number}-{declared}.xml"
        kit.build(case, path, declared, as_parameters=bool(case.shapes) and rng.random() < 0.3)
        yield path
        yield rng.choice(larger)


def _models(ov: Any) -> dict[str, Any]:
    """Models of more than one operation."""
    checker = importlib.import_module("checking.test_checker")
    found: dict[str, Any] = checker.models(ov)
    for name in ("convnet", "elementwise", "tile_equal", "broadcast_bidirectional"):
        found[f"sample-{name}"] = ov.Core().read_model(SAMPLES / f"{name}.xml")
    found |= _onnx(ov)
    found |= {made.__name__: made(ov) for made in small_networks.NETWORKS}
    found["half-resnet"] = small_networks.resnet(ov)
    return found


def _onnx(ov: Any) -> dict[str, Any]:
    """The ONNX project's small models."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend/test/data"
    paths = [p for kind in ("pytorch-operator", "pytorch-converted") for p in (folder / kind).glob("*/*.onnx")]
    return {path.parent.name: ov.Core().read_model(path) for path in sorted(paths)}


# ---------------------------------------------------------------------------------------------
# where things stand: OpenVINO writes one element a line


@dataclass
class Place:
    """A layer as its lines: numbers count from 0."""

    name: str
    type: str
    opset: str
    line: int
    data: int | None = None
    ports: list[tuple[str, int, list[int]]] = field(default_factory=list)
    """``input`` or ``output``, the line of the port and those of its dims."""


def _layers(text: str) -> list[Place]:
    """The layers of a model and of its bodies."""
    found: list[Place] = []
    opened: list[Place] = []
    kind = ""
    for number, line in enumerate(text.split("\n")):
        line = line.strip()
        if line.startswith("<layer "):
            said = dict(re.findall(r'(\w+)="([^"]*)"', line))
            found.append(Place(html.unescape(said["name"]), said["type"], said["version"], number))
            opened.append(found[-1])
        elif line == "</layer>":
            opened.pop()
        elif line.startswith("<data ") and opened:
            opened[-1].data = number
        elif line in ("<input>", "<output>"):
            kind = line[1:-1]
        elif line.startswith("<port ") and opened:
            opened[-1].ports.append((kind, number, []))
        elif line.startswith("<dim>"):
            opened[-1].ports[-1][2].append(number)
    return found


@dataclass(frozen=True)
class Mutation:
    kind: str
    path: Path
    text: str
    """The whole file."""
    layer: str
    lines: frozenset[int]
    """Where it may be reported, counted from 1."""
    what: str
    is_default: bool = False
    """Whether an attribute was removed that had the value which it has by default."""


def mutate(path: Path, text: str, rng: random.Random, kinds: Sequence[str] = KINDS) -> Mutation | None:
    """Corrupt one thing of a model; None where it has nothing of the kind that was drawn."""
    lines, layers = text.split("\n"), _layers(text)
    kind = rng.choice(kinds)
    if kind in ATTRIBUTE_KINDS:
        places = [layer for layer in layers if layer.data is not None]
        return _attribute(kind, path, lines, rng.choice(places), rng) if places else None
    wanted = kind.split()[0]
    ports = [
        (layer, number, dims)
        for layer in layers
        for side, number, dims in layer.ports
        if wanted not in ("input", "output") or side == wanted
    ]
    if "dim" in kind:
        ports = [port for port in ports if port[2]]
    if not ports:
        return None
    layer, number, dims = rng.choice(ports)
    at = number if not dims else rng.choice(dims)
    allowed = {at}
    before = lines[at].strip()
    if kind in PRECISION_KINDS:
        at, allowed = number, {number}
        said = re.search(r'precision="(\w+)"', lines[at])
        if said is None:
            return None
        before, after = said[1], rng.choice([p for p in PRECISIONS if p != said[1]])
        lines[at] = lines[at].replace(f'precision="{before}"', f'precision="{after}"')
    elif kind == "missing dim":
        after = ""
        lines[at] = "\0"
        # the first dim of those left, or the port
        allowed = {number, dims[0], dims[-1] - 1}
    elif kind == "added dim":
        dim = rng.choice((1, 2, 3, 7, 64))
        after = f"{before}<dim>{dim}</dim>"
        lines[at] += "\n" + re.sub("<dim>.*</dim>", f"<dim>{dim}</dim>", lines[at])
        allowed = {number, dims[0]}
    else:
        said = int(re.sub("<.?dim>", "", before))
        others = [said + 1, said - 1, 1, 2 * said, rng.randrange(1, 300), -1 if rng.random() < 0.5 else 7]
        new = rng.choice([n for n in others if n != said and n >= -1])
        after = f"<dim>{new}</dim>"
        lines[at] = lines[at].replace(before, after)
    changed = "\n".join(lines).replace("\0\n", "")
    return Mutation(kind, path, changed, layer.name, _from_one(allowed), f"{layer.type}: {before} -> {after}")


def _from_one(lines: set[int]) -> frozenset[int]:
    return frozenset(number + 1 for number in lines)


def _attribute(kind: str, path: Path, lines: list[str], layer: Place, rng: random.Random) -> Mutation | None:
    assert layer.data is not None
    line = lines[layer.data]
    said = rng.choice(list(re.finditer(r' ([\w.-]+)="([^"]*)"', line)))
    name, value = said[1], said[2]
    new = f' {name}="{value}"'
    allowed = {layer.data}
    if kind == "missing attribute":
        new = ""
    elif kind == "misspelt":
        at = rng.randrange(len(name))
        other = rng.choice((name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:], name[:at] + "x" + name[at:]))
        if other == name or not re.fullmatch(r"[A-Za-z_][\w.-]*", other):
            return None
        new = f' {other}="{value}"'
    elif kind == "nonsense":
        if name in ("variable_id", "equation") or "str" in name:
            return None  # any text will do
        new = f' {name}="{rng.choice(("x", "1,x", "--1", "tru", "f31"))}"'
    else:
        new = f' {name}="{_other_value(value, rng)}"'
    if kind in ("value", "missing attribute"):
        allowed |= {layer.line} | {n for side, port, dims in layer.ports if side == "output" for n in (port, *dims)}
    lines[layer.data] = line[: said.start()] + new + line[said.end() :]
    what = f"{layer.type}:{said[0]} ->{new}"
    is_default = kind == "missing attribute" and _is_default(layer, name, value)
    return Mutation(kind, path, "\n".join(lines), layer.name, _from_one(allowed), what, is_default)


def _is_default(layer: Place, name: str, value: str) -> bool:
    cls = resolve(layer.type, int(layer.opset.removeprefix("opset")))
    attribute = next((a for a in cls.attributes.values() if a.name == name), None) if cls else None
    return attribute is not None and attribute.default == attribute.parse(value)


def _other_value(value: str, rng: random.Random) -> str:
    """Another value of the same sort."""
    if value in ("true", "false"):
        return "false" if value == "true" else "true"
    if value in TYPES:
        return rng.choice([t for t in TYPES if t != value])
    parts = value.split(",")
    at = rng.randrange(len(parts))
    part = parts[at].strip()
    if re.fullmatch(r"-?\d+", part):
        others = [int(part) + 1, int(part) - 1, int(part) * 2 + 3, 0, 1]
        part = str(rng.choice([n for n in others if n != int(part)]))
    elif re.fullmatch(r"-?\d+\.?\d*(e[+-]?\d+)?", part):
        part = str(float(part) * 2 + 1)
    else:
        part += "s"
    parts[at] = f" {part}" if parts[at].startswith(" ") else part
    return ",".join(parts)


# ---------------------------------------------------------------------------------------------
# the verdict


@dataclass
class Figures:
    """Counts by kind, and what was missed."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts[kind, "mutations"] for kind in KINDS)

    def rate(self, what: str, kinds: Sequence[str]) -> float:
        known = sum(self.counts[kind, "known"] for kind in kinds)
        return sum(self.counts[kind, what] for kind in kinds) / max(known, 1)

    def table(self) -> str:
        columns = ("mutations", "silent", "known", "reported", "alone", "repaired", "clean")
        rows = [f"{'':<18}" + "".join(f"{column:>11}" for column in columns)]
        rows += [f"{kind:<18}" + "".join(f"{self.counts[kind, column]:>11}" for column in columns) for kind in KINDS]
        rows.append(f"reported {self.rate('reported', KINDS):.2%} of all that can be known")
        rows.append(f"repaired {self.rate('repaired', PORT_KINDS):.2%} of the dims and precisions")
        return "\n".join(rows)


def _ports(oracle: Oracle, path: Path) -> Any:
    """The type and shape of each port as OpenVINO infers them, or why it refuses the file."""
    try:
        return oracle(path, [], "ports")
    except OracleError as error:
        return str(error)


def judge(mutation: Mutation, original: str, figures: Figures, oracle: Oracle) -> None:
    """Check and fix a mutation, and count."""
    path, kind, count = mutation.path, mutation.kind, figures.counts
    where = f"{mutation.what} of {mutation.layer} in {path.name}"
    path.write_text(mutation.text)  # beside the weights of the original, whose name it takes
    try:
        report = irrun.check(path)
        count[kind, "mutations"] += 1
        there = [d for d in report if d.layer == mutation.layer and d.line in mutation.lines]
        may_be_silent = not there and kind in ("value", "missing attribute")
        if may_be_silent and (mutation.is_default or _is_silent(oracle, path, original)):
            count[kind, "silent"] += 1
            if report.diagnostics:
                figures.missed.append(f"elsewhere: {where}: {_said(report)}")
            return
        count[kind, "known"] += 1
        count[kind, "reported"] += bool(there)
        count[kind, "alone"] += len(there) == len(report) == 1
        if not there:
            figures.missed.append(f"missed: {where}: {_said(report)}")
        fixed = fix(load(path), unsafe=kind in ATTRIBUTE_KINDS)
        count[kind, "repaired"] += fixed.data == original.encode()
        count[kind, "clean"] += not fixed.left
        if kind in PORT_KINDS and fixed.data != original.encode():
            figures.missed.append(f"not repaired: {where}: {_said(report)}")
    finally:
        path.write_text(original)


def _is_silent(oracle: Oracle, path: Path, original: str) -> bool:
    """Whether OpenVINO infers the same of the file as of the original."""
    mutated = _ports(oracle, path)
    path.write_text(original)
    return mutated == _ports(oracle, path)


def _said(report: irrun.Report) -> str:
    return " | ".join(f"{d.code} {d.layer}:{d.line} {d.message}" for d in report)[:400] or "nothing"


def run(count: int, seed: int, ov: Any, oracle: Oracle) -> Figures:
    """``count`` mutations, by seed."""
    figures = Figures()
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for path in models(ov, Path(folder), rng):
            if figures.total == count:
                break
            text = path.read_bytes().decode()
            mutation = mutate(path, text, rng)
            if mutation is not None:
                judge(mutation, text, figures, oracle)
    return figures


def main() -> None:
    import openvino

    oracle = Oracle()
    count, seed = (int(text) for text in (sys.argv[1:] + ["2000", "0"][len(sys.argv) - 1 :]))
    figures = run(count, seed, openvino, oracle)
    oracle.close()
    print(*figures.missed, figures.table(), sep="\n")


if __name__ == "__main__":
    main()
