"""Compressed weights: `irrun show` calls those compressed that the planner leaves as the file has them."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.checking.storage import storage
from irrun.cli import cli

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 100, (64, 96))
ZEROS, SCALES = RNG.integers(0, 9, (64, 1)), RNG.uniform(0.01, 0.02, (64, 1))


def codes(type: Any = np.uint8, to: str = "f16") -> Any:
    return b.Convert(b.constant(CODES.astype(type)), destination_type=to)


def zeros(**reshaped: Any) -> Any:
    y = b.Convert(b.constant(ZEROS.astype(np.uint8)), destination_type="f16")
    return b.Reshape(y, np.array([64, 1]), special_zero=False) if reshaped else y


def scales(dtype: Any = np.float16) -> Any:
    return b.constant(SCALES.astype(dtype))


CASES: dict[str, tuple[Callable[[], Any], str, bool]] = {
    "in order": (
        lambda: b.Multiply(b.Subtract(codes(), zeros()), scales()), "u8 asymmetric, one scale per channel", True),
    "no zero points": (lambda: b.Multiply(codes(np.int8), scales()), "i8 symmetric, one scale per channel", True),
    "no scales": (lambda: b.Subtract(codes(), zeros()), "u8 asymmetric, no scales", True),
    "codes alone": (lambda: codes(np.int8), "i8", True),
    # the planner unpacked these, and `show` called them compressed
    "scales first": (lambda: b.Multiply(scales(), codes(np.int8)), "i8 symmetric, one scale per channel", True),
    "scales before zero points": (lambda: b.Subtract(b.Multiply(codes(), scales()), zeros()), "u8", False),
    "zero points twice": (
        lambda: b.Multiply(b.Subtract(b.Subtract(codes(), zeros()), zeros()), scales()), "u8", False),
    "zero points less codes": (lambda: b.Multiply(b.Subtract(zeros(), codes()), scales()), "u8", False),
    "zero points reshaped": (
        lambda: b.Multiply(b.Subtract(codes(), zeros(reshaped=True)), scales()), "u8", False),
    "scales twice": (lambda: b.Multiply(b.Multiply(codes(), scales()), scales()), "u8", False),
    "in another type": (lambda: b.Multiply(codes(to="f64"), scales(np.float64)), "u8", False),
    "FakeQuantize": (
        lambda: b.FakeQuantize(codes(np.int8), *map(np.float16, (0, 99, 0, 1)), levels=100), "i8, FakeQuantize", False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_show_and_the_planner_agree(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRRUN_FAST", "0")
    build, form, is_left = CASES[case]
    x = b.parameter([3, 96], "f32", name="x")
    model = b.model(b.MatMul(x, b.Convert(build(), destination_type="f32"), transpose_b=True))
    (row,) = [row for row in storage(model) if row.parameters >= CODES.size]
    assert row.form == form
    executable = irrun.compile(model, exact=False)
    assert bool(executable.plan.stored) is is_left
    a = RNG.standard_normal((3, 96), np.float32)
    expected = irrun.compile(model, exact=True)(a)[0]
    np.testing.assert_allclose(executable(a)[0], expected, rtol=0, atol=2**-8 * np.abs(expected).max())


def chain(draw: random.Random) -> Any:
    """Return a model with random layers behind a constant: in the order of a converter, in others, and broken ones."""
    types: dict[str, Any] = {
        "u8": np.uint8, "i8": np.int8, "u4": ml_dtypes.uint4, "i4": ml_dtypes.int4, "u2": ml_dtypes.uint2,
        "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn, "nf4": np.float32,
        "i16": np.int16, "u1": np.uint8,
    }  # fmt: skip
    computed: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
    type = draw.choice([*types, "u8", "i8", "u4", "i4"])
    counts = draw.choice([(64, 96), (64, 96), (64, 3, 32), (64, 24, 4), (4, 16, 96)])
    to = draw.choice(["f16", "f32", "f16", "f32", "f64", "bf16"])
    y: Any = b.Convert(b.constant(np.ones(counts, types[type]), type), destination_type=to)

    def number() -> Any:
        rows, ones = counts[0], (1,) * (len(counts) - 1)
        middle = (1, counts[1], *ones[1:])
        shape = draw.choice([(), (1,), (rows, *ones), (rows, *ones), middle, (*counts[:-1], 1), counts, (1, *ones)])
        kind = draw.choice(["Const", "Const", "Convert", "Convert", "Reshape", "Parameter"])
        if kind == "Convert":
            return b.Convert(b.constant(np.ones(shape, np.uint8)), destination_type=to)
        if kind == "Parameter":
            return b.Convert(b.parameter(shape, "f32"), destination_type=to)
        constant = b.constant(np.ones(shape, computed[to]))
        return b.Reshape(constant, np.array(shape or (1,)), special_zero=False) if kind == "Reshape" else constant

    for step in draw.choice(["SM", "SM", "M", "M", "S", "", "MS", "SSM", "MM", "SCM", "AM", "XM", "RM"]):
        pair = [y, number()] if step in "SMA" else []
        if draw.random() < 0.1:
            pair.reverse()
        match step:
            case "S" | "M" | "A":
                y = {"S": b.Subtract, "M": b.Multiply, "A": b.Add}[step](*pair)
            case "C":
                y = b.Convert(y, destination_type=to)
            case "X":
                y = b.Abs(y)
            case _:
                y = b.Reshape(y, np.array(counts), special_zero=False)
    if len(counts) == 3:
        y = b.Reshape(y, np.array([64, 96]), special_zero=False)
    y = b.Convert(y, destination_type="f32") if to != "f32" else y
    x = b.parameter([3, 96], "f32", name="x")
    match draw.choice(["product", "product", "product", "two", "rows", "sum"]):
        case "two":
            return b.model({"y": b.MatMul(x, y, transpose_b=True), "z": b.Abs(y)})
        case "rows":
            return b.model(b.Gather(y, b.parameter([2], "i64"), np.int64(0)))
        case "sum":
            return b.model(b.Add(y, b.parameter([64, 96], "f32")))
        case _:
            return b.model(b.MatMul(x, y, transpose_b=True))


def shown(model: irrun.Model) -> tuple[bool, bool]:
    """Return whether `irrun show` lists a compressed form, and whether it says that a run unpacks it."""
    with tempfile.TemporaryDirectory() as folder:
        irrun.save_model(model, Path(folder, "model.xml"))
        result = CliRunner().invoke(cli, ["show", str(Path(folder, "model.xml")), "--format", "json"])
    rows = [row for row in json.loads(result.stdout)["stored"] if "symmetric" in row["stored_as"]]
    return bool(rows), any(row["unpacked"] for row in rows)


def test_random_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `show` lists as compressed and not as unpacked, a run keeps packed; and what it keeps, `show` recognises."""
    monkeypatch.setenv("IRRUN_FAST", "0")
    seen: Counter[tuple[bool, bool, bool]] = Counter()
    for seed in range(400):
        try:
            model = chain(random.Random(seed))
        except irrun.IrrunError:  # shapes that no operation broadcasts
            continue
        kept = bool(irrun.compile(model, exact=False).plan.stored)
        is_compressed, is_unpacked = shown(model)
        seen[kept, is_compressed, is_unpacked] += 1
        if is_compressed:
            assert kept is not is_unpacked, seed
        elif kept:  # the codes alone, which need neither scales nor zero points
            (row, *_) = storage(model)
            assert row.form in ("u8", "i8", "u4", "i4", "f16", "bf16"), seed
    assert min(seen[True, True, False], seen[False, True, True], seen[False, False, False]) > 20


@pytest.mark.parametrize("broken", ["no-input", "cycle"])
def test_converts_that_convert_nothing(broken: str, tmp_path: Path) -> None:
    """`irrun show` failed on a Convert without an input, and did not end on a cycle of them."""
    y = b.Convert(b.constant(np.ones((64, 96), np.uint8), name="codes"), destination_type="f32", name="c0")
    scales = b.Convert(b.constant(np.ones((64, 1), np.float16), name="scales"), destination_type="f32", name="c1")
    irrun.save_model(b.model(b.Multiply(y, scales, name="m")), tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text()
    model = irrun.read_model(tmp_path / "a.xml")
    ids = {layer.name: layer.id for layer in model.layers.values()}
    edge = next(e for e in model.edges if (e.from_layer, e.to_layer) == (ids["scales"], ids["c1"]))
    pattern = rf'<edge from-layer="{edge.from_layer}" from-port="\d+" to-layer="{edge.to_layer}" to-port="(\d+)" ?/>'
    own = f'<edge from-layer="{ids["c1"]}" from-port="1" to-layer="{ids["c1"]}" to-port="0"/>'
    wrong, count = re.subn(pattern, own if broken == "cycle" else "", text)
    assert count == 1
    (tmp_path / "b.xml").write_text(wrong)
    (tmp_path / "b.bin").write_bytes((tmp_path / "a.bin").read_bytes())
    result = CliRunner().invoke(cli, ["show", str(tmp_path / "b.xml")])
    assert result.exception is None or isinstance(result.exception, SystemExit)
