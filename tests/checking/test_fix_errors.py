"""Fixing never leaves more errors than there were: known cases, and files with several random faults."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from irrun.base.source import Source
from irrun.checking.checker import check
from irrun.checking.fix import fix
from irrun.diagnostics import IrrunError
from irrun.ir.parse import Parsed, parse
from irrun.model.weights import Weights
from nets import Net
from places import DEPARTURES, INVALID, ROOT

MUTANTS = 250
DIMS = ("0", "1", "2", "3", "7", "64", "-1", "x", "?")
PRECISIONS = ("FP16", "FP32", "I64", "BOOL", "FOO")
VALUES = ("", "x", "1", "7", "-1", "0,1", "f32", "i64", "true")


def _files() -> list[Path]:
    """Return small files of many operations, valid and broken ones."""
    paths = [*(ROOT / "samples").glob("*.xml"), *DEPARTURES.glob("*.xml")]
    paths += INVALID.glob("*.xml")
    return sorted(path for path in paths if path.stat().st_size < 20_000)


def _mutated(text: str, rng: random.Random) -> str:
    """Return a file with one to six faults: in dims, precisions, attributes and lines."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        kind = rng.choice(("dim", "dims", "precision", "attribute", "number", "remove", "repeat"))
        mark = {"dim": "<dim>", "dims": "<dim>", "precision": "precision=", "attribute": "<data "}.get(kind, "<")
        places = [number for number, line in enumerate(lines) if mark in line]
        if places:
            at = rng.choice(places)
            lines[at] = _mutated_line(kind, lines[at], rng)
    return "\n".join(lines)


def _mutated_line(kind: str, line: str, rng: random.Random) -> str:
    if kind == "dim":
        return re.sub("<dim>[^<]*</dim>", f"<dim>{rng.choice(DIMS)}</dim>", line)
    if kind == "precision":
        return re.sub(r'precision="\w+"', f'precision="{rng.choice(PRECISIONS)}"', line)
    if kind in ("repeat", "dims"):
        return f"{line}\n{line}"
    attributes = list(re.finditer(r' ([\w.-]+)="([^"]*)"', line))
    if kind == "remove" or not attributes:
        return ""
    chosen = rng.choice(attributes)
    name, value = chosen[1], chosen[2]
    if kind == "number":
        new = f' {name}="{rng.randrange(6)}"'
    else:
        new = rng.choice((f' {name}x="{value}"', "", f' {name}="{rng.choice(VALUES)}"'))
    return line[: chosen.start()] + new + line[chosen.end() :]


def _errors(parsed: Parsed) -> int:
    return len(check(parsed).errors)


@pytest.mark.parametrize("unsafe", [False, True])
def test_random_faults(unsafe: bool) -> None:
    files, worse = _files(), list[str]()
    for seed in range(MUTANTS):
        rng = random.Random(seed)
        path = rng.choice(files)
        weights = Weights(path.with_suffix(".bin")) if path.with_suffix(".bin").exists() else None
        text = _mutated(path.read_bytes().decode("utf-8", "replace"), rng)
        try:
            parsed = parse(Source(str(path), text.encode()), weights)
        except IrrunError:
            continue
        fixed = fix(parsed, unsafe=unsafe)
        again = parse(Source(str(path), fixed.data), weights)
        if _errors(again) > _errors(parsed):
            worse.append(f"{path.name}, seed {seed}")
    assert not worse


def _fixed(text: str, *, unsafe: bool = False) -> tuple[int, int, int]:
    """Return the number of errors before and after fixing, and how many fixes were kept."""
    parsed = parse(Source("net.xml", text.encode()))
    fixed = fix(parsed, unsafe=unsafe)
    return _errors(parsed), sum(finding.severity == "error" for finding in fixed.left), fixed.count


def _misspelt() -> str:
    """Return a model with an attribute whose name and value are wrong: a warning, which hides an error."""
    net = Net()
    x = net.parameter("f32", "2,3")
    net.result(net.add("SoftMax", [x], [("FP32", "2,3")], axiss="x"))
    return net.text


def test_a_fix_that_reveals_an_error_is_not_kept() -> None:
    assert _fixed(_misspelt(), unsafe=True) == (0, 0, 0)


def test_the_other_fixes_of_the_round_are_kept() -> None:
    wrong = _misspelt().replace("<dim>3</dim>", "<dim>4</dim>")
    at = wrong.index("<dim>4</dim>")
    text = wrong[:at] + wrong[at:].replace("<dim>4</dim>", "<dim>3</dim>", 1)
    before, after, count = _fixed(text, unsafe=True)
    assert before > 0
    assert (after, count > 0) == (0, True)
    assert "axiss" in fix(parse(Source("net.xml", text.encode())), unsafe=True).data.decode()
