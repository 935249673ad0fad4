"""irrun diff of a model and its compressed copy: values are compared after decompression, and told by kind."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import irrun
import small_networks
from irrun import build as b
from irrun.cli import cli
from irrun.debug import compare
from irrun.debug.difference import Difference, WeightsRow, diff
from irrun.debug.difference import constants as blocks
from irrun.engines import Engine

RNG = np.random.default_rng(5)
ROWS, COLUMNS = 6, 32
PLAIN = RNG.standard_normal((ROWS, COLUMNS)).astype(np.float32)
TYPES: dict[str, Any] = {"u8": np.uint8, "i8": np.int8, "u4": ml_dtypes.uint4, "i4": ml_dtypes.int4}
Build = Callable[[], Any]


def network(weight: Any, *, name: str = "") -> Any:
    x = b.parameter([-1, -1, COLUMNS], "f32", name="x")
    return b.model({"y": b.MatMul(x, weight, transpose_b=True, name=name or "product")})


def plain(values: np.ndarray = PLAIN, name: str = "w") -> Any:
    return b.constant(values, name=name)


def half(values: np.ndarray = PLAIN) -> Any:
    """As openvino.save_model writes f16: the Convert has the name that the constant had."""
    return b.Convert(b.constant(values.astype(np.float16), name="w_compressed"), destination_type="f32", name="w")


def compressed(type: str, *, asymmetric: bool, group: int = 0, to: str = "f16") -> tuple[Any, np.ndarray]:
    """Return the layers that NNCF writes for PLAIN, with the name of the constant at the codes, and the values."""
    grouped = PLAIN.reshape(ROWS, -1, group) if group else PLAIN
    low, high = {"u8": (0, 255), "i8": (-128, 127), "u4": (0, 15), "i4": (-8, 7)}[type]
    if asymmetric:
        scale = ((grouped.max(-1, keepdims=True) - grouped.min(-1, keepdims=True)) / (high - low)).astype(np.float16)
        zero = np.clip(np.rint(low - grouped.min(-1, keepdims=True) / scale), low, high)
    else:
        scale = (np.abs(grouped).max(-1, keepdims=True) / ((high - low) // 2)).astype(np.float16)
        zero = np.full(scale.shape, (low + high + 1) // 2)
    codes = np.clip(np.rint(grouped / scale.astype(np.float64)) + zero, low, high)
    y = b.Convert(b.constant(codes.astype(np.int16).astype(TYPES[type]), type, name="w"), destination_type=to)
    if asymmetric or low == 0:
        zeros = b.constant(zero.astype(np.int16).astype(TYPES[type]), type, name="w/zero_point")
        y = b.Subtract(y, b.Convert(zeros, destination_type=to))
    scales = b.constant(scale.astype(np.float16 if to == "f16" else np.float32), name="w/scale")
    y = b.Multiply(y, scales, name="w/fq_weights_1")
    if group:
        y = b.Reshape(y, np.array([ROWS, COLUMNS]), special_zero=False)
    y = b.Convert(y, destination_type="f32") if to == "f16" else y
    return y, ((codes - zero) * scale.astype(np.float64)).reshape(ROWS, COLUMNS)


def quantized(values: np.ndarray = PLAIN, levels: int = 255) -> tuple[Any, np.ndarray]:
    """Return weights as quantization-aware training leaves them, and their values."""
    high = np.abs(values).max(1, keepdims=True)
    limits = [b.constant(limit) for limit in (-high, high, -high, high)]
    step = 2 * high.astype(np.float64) / (levels - 1)
    return b.FakeQuantize(plain(values), *limits, levels=levels), np.rint((values + high) / step) * step - high


def only_row(difference: Difference) -> WeightsRow:
    """Return the only row of the summary."""
    (row,) = difference.summary.weights
    assert difference.summary.layers == ()
    return row


def assert_error(row: WeightsRow, one: np.ndarray, other: np.ndarray) -> None:
    """Compare the figures with their definitions in f64."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    error = np.abs(one - other)
    assert (row.weights, row.different) == (1, 1)
    assert row.max_abs == pytest.approx(error.max(), rel=1e-3)
    with np.errstate(all="ignore"):
        relative = np.where(error > 0, error / np.abs(one), 0)
    assert row.max_rel == pytest.approx(relative.max(), rel=1e-2)  # f32 rounds the small values of a matrix, too
    assert row.snr == pytest.approx(10 * math.log10((one**2).sum() / (error**2).sum()), abs=1e-2)


def test_f16() -> None:
    difference = diff(network(plain()), network(half()))
    row = only_row(difference)
    assert (row.a, row.b, row.worst) == ("f32", "f16", "w")
    assert_error(row, PLAIN, PLAIN.astype(np.float16))
    (layer,) = [layer for layer in difference.layers if not layer.follows]
    assert [change.kind for change in layer.changes] == ["stored", "weights"]
    (extra,) = [layer for layer in difference.layers if layer.follows]
    assert (extra.status, extra.b and extra.b.name) == ("added", "w_compressed")


def test_the_other_way_round() -> None:
    row = only_row(diff(network(half()), network(plain())))
    assert (row.a, row.b) == ("f16", "f32")
    assert_error(row, PLAIN.astype(np.float16), PLAIN)


@pytest.mark.parametrize("to", ["f16", "f32"])
@pytest.mark.parametrize("group", [0, 16])
@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("type", TYPES)
def test_integers(type: str, asymmetric: bool, group: int, to: str) -> None:
    """Codes were compared with floats."""
    layers, values = compressed(type, asymmetric=asymmetric, group=group, to=to)
    row = only_row(diff(network(plain()), network(layers)))
    zeros = "asymmetric" if asymmetric or type[0] == "u" else "symmetric"
    assert (row.a, row.b) == ("f32", f"{type} {zeros}, {f'groups of {group}' if group else 'one scale per channel'}")
    assert_error(row, PLAIN, values)


def test_two_compressed_copies() -> None:
    """Neither holds the floats; one has layers that the other lacks."""
    (eight, wide), (four, narrow) = compressed("u8", asymmetric=True), compressed("i4", asymmetric=False, group=16)
    row = only_row(diff(network(eight), network(four)))
    assert (row.a, row.b) == ("u8 asymmetric, one scale per channel", "i4 symmetric, groups of 16")
    assert_error(row, wide, narrow)


def test_the_same_layers_with_other_codes() -> None:
    """The codes of u8 and u4 may be equal and mean other values; scales and zero points are no constants of their own."""
    (eight, wide), (four, narrow) = compressed("u8", asymmetric=True), compressed("u4", asymmetric=True)
    difference = diff(network(eight), network(four))
    row = only_row(difference)
    assert (row.a, row.b) == ("u8 asymmetric, one scale per channel", "u4 asymmetric, one scale per channel")
    assert_error(row, wide, narrow)
    assert [layer.a and layer.a.name for layer in difference.layers if not layer.follows] == ["w"]


def test_other_scales_are_other_values() -> None:
    codes = RNG.integers(-100, 100, (ROWS, COLUMNS)).astype(np.int8)

    def layers(scale: np.ndarray) -> Any:
        y = b.Convert(b.constant(codes, name="w"), destination_type="f32")
        return network(b.Multiply(y, b.constant(scale, name="scales")))

    scale = np.full((ROWS, 1), 0.5, np.float32)
    twice = scale.copy()
    twice[2] = 1
    difference = diff(layers(scale), layers(twice))
    (layer,) = difference.layers
    (change,) = layer.changes
    assert (layer.a and layer.a.name, change.kind) == ("w", "weights")
    assert change.error is not None
    assert change.error.different == np.count_nonzero(codes[2])
    assert change.error.max_abs == np.abs(codes[2].astype(float)).max() / 2
    assert change.error.worst == (2, int(np.abs(codes[2].astype(int)).argmax()))
    assert diff(layers(scale), layers(scale.copy())).same


def test_equal_values_in_another_form() -> None:
    """The forms differ and the values do not."""
    values = np.array([[1, -2] * 16] * ROWS, np.float32)
    row = only_row(diff(network(plain(values)), network(half(values))))
    assert (row.a, row.b, row.weights, row.different, row.max_abs) == ("f32", "f16", 1, 0, None)


def test_fake_quantize() -> None:
    layers, values = quantized()
    row = only_row(diff(network(plain()), network(layers)))
    assert (row.a, row.b) == ("f32", "f32, FakeQuantize")
    assert_error(row, PLAIN, values)
    codes, narrow = compressed("i8", asymmetric=False, to="f32")
    row = only_row(diff(network(layers), network(codes)))
    assert row.a == "f32, FakeQuantize"
    assert_error(row, values, narrow)


def test_fake_quantized_integers() -> None:
    """Older files convert i8 codes and map them to floats with a FakeQuantize."""
    codes = RNG.integers(-127, 128, (ROWS, COLUMNS)).astype(np.int8)
    high = RNG.uniform(1, 2, (ROWS, 1)).astype(np.float32)
    y = b.Convert(b.constant(codes, name="w"), destination_type="f32")
    limits = [b.constant(limit) for limit in (np.float32(-127), np.float32(127), -high, high)]
    row = only_row(diff(network(plain()), network(b.FakeQuantize(y, *limits, levels=255))))
    assert (row.a, row.b) == ("f32", "i8, FakeQuantize")
    assert_error(row, PLAIN, codes / 127 * high.astype(np.float64))


def test_names_are_not_needed() -> None:
    """A converter may name everything anew."""
    layers, values = compressed("u4", asymmetric=True, group=16)
    one = network(b.constant(PLAIN, name="Constant_1"), name="MatMul_2")
    other = network(layers, name="MatMul_77")
    difference = diff(one, other)
    row = difference.summary.weights[0]
    assert row.b == "u4 asymmetric, groups of 16"
    assert_error(row, PLAIN, values)


def test_in_a_body() -> None:
    def looped(weight: Build) -> Any:
        x = b.parameter([2, COLUMNS], "f32", name="x")

        def body(i: Any, state: Any) -> Any:
            return b.constant(True, name="go"), b.Add(state, b.MatMul(state, weight(), name="inner"), name="sum")

        return b.model(
            {"y": b.Loop(b.constant(np.int64(3), name="n"), b.constant(True, name="on"), x, body=body, name="loop")}
        )

    square = RNG.standard_normal((COLUMNS, COLUMNS)).astype(np.float32)
    row = only_row(diff(looped(lambda: plain(square)), looped(lambda: half(square))))
    assert (row.a, row.b) == ("f32", "f16")
    assert_error(row, square, square.astype(np.float16))


def test_a_weight_that_several_layers_read() -> None:
    def shared(weight: Any) -> Any:
        x = b.parameter([-1, COLUMNS], "f32", name="x")
        y = b.MatMul(x, weight, transpose_b=True, name="one")
        return b.model({"y": y, "z": b.MatMul(b.ReLU(x, name="relu"), weight, transpose_b=True, name="other")})

    assert_error(only_row(diff(shared(plain()), shared(half()))), PLAIN, PLAIN.astype(np.float16))


def scaled(build: Callable[[Any, Any], Any]) -> Any:
    x = b.parameter([ROWS, COLUMNS], "f32", name="x")
    w = b.Convert(b.constant(PLAIN.astype(np.float16), name="half"), destination_type="f32", name="wide")
    return b.model({"y": build(x, w)})


BROKEN: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], set[tuple[str, str]]]] = {
    "a layer between": (
        lambda x, w: b.Multiply(x, w, name="m"), lambda x, w: b.Multiply(x, b.Abs(w, name="abs"), name="m"),
        {("added", "abs"), ("changed", "m")}),
    "another operation": (
        lambda x, w: b.Multiply(x, w, name="m"), lambda x, w: b.Divide(x, w, name="m"), {("changed", "m")}),
    "scaled in one": (
        lambda x, w: b.Add(x, w, name="m"),
        lambda x, w: b.Add(x, b.Multiply(w, np.float32(2), name="twice"), name="m"), {("changed", "half")}),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_change_next_to_a_weight(case: str) -> None:
    one, other, expected = BROKEN[case]
    difference = diff(scaled(one), scaled(other))
    found = {(l.status, (l.a or l.b).name) for l in difference.layers if not l.follows}  # type: ignore[union-attr]
    if case == "scaled in one":
        row = difference.summary.weights[0]
        assert_error(row, PLAIN.astype(np.float16), 2 * PLAIN.astype(np.float16))
    else:
        assert found == expected


def test_weights_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A matrix takes its file's bytes alone, in blocks that need not begin where a group does."""
    monkeypatch.setattr(blocks, "_BLOCK_ELEMENTS", 1 << 12)
    rows, columns, group = 600, 3 * 257, 257
    codes = RNG.integers(0, 16, (rows, 3, group)).astype(np.uint8)
    scales = RNG.uniform(0.5, 1, (rows, 3, 1)).astype(np.float32)
    values = (codes * scales).reshape(rows, columns)
    y = b.Convert(b.constant(codes.astype(ml_dtypes.uint4), "u4", name="w"), destination_type="f32")
    y = b.Reshape(b.Multiply(y, b.constant(scales)), np.array([rows, columns]), special_zero=False)
    x = b.parameter([-1, columns], "f32", name="x")
    noisy = values.copy()
    noisy[577, 500] += 3
    for name, weight in (("packed", y), ("plain", b.constant(noisy, name="w"))):
        irrun.save_model(b.model({"y": b.MatMul(x, weight, transpose_b=True)}), tmp_path / f"{name}.xml")
    one, other = (irrun.read_model(tmp_path / f"{name}.xml") for name in ("packed", "plain"))
    tracemalloc.start()
    try:
        difference = diff(one, other)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    error = next(c.error for layer in difference.layers for c in layer.changes if c.error is not None)
    assert (error.different, error.worst) == (1, (577, 500))
    assert error.max_abs == pytest.approx(3)
    assert peak < values.nbytes


def test_compare_compares_values_after_decompression(two: tuple[Engine, Engine], tmp_path: Path) -> None:
    """Codes were compared with floats: the constant had other values in each compressed copy."""
    exact = RNG.integers(-8, 8, (ROWS, COLUMNS))
    y = b.Convert(b.constant(exact.astype(ml_dtypes.int4), "i4", name="w"), destination_type="f32")
    layers = b.Multiply(y, b.constant(np.full((ROWS, 1), 0.25, np.float32)), name="w/fq")
    irrun.save_model(network(layers), tmp_path / "packed.xml")
    for scale, expected in ((0.25, 0.0), (0.5, 1.0)):
        irrun.save_model(network(plain((exact * scale).astype(np.float32))), tmp_path / "plain.xml")
        path = str(tmp_path / "packed.xml")
        comparison = compare(path, str(tmp_path / "plain.xml"), running=two)
        assert comparison.agrees is (scale == 0.25)
        if comparison.first is not None:
            (weight,) = [i for i in comparison.first.inputs if i.kind == "constant"]
            assert weight.measurement is not None
            assert weight.measurement.max_abs == np.abs(exact * 0.25).max()
            assert weight.measurement.error == pytest.approx(expected)
    # two compressed copies: neither their codes nor what the layers inside the weights compute are compared
    shifted = b.Convert(b.constant((exact + 8).astype(np.uint8), name="w"), destination_type="f32")
    shifted = b.Subtract(shifted, b.constant(np.full((ROWS, 1), 8, np.float32)), name="w/zero")
    irrun.save_model(
        network(b.Multiply(shifted, b.constant(np.full((ROWS, 1), 0.25, np.float32)), name="w/fq")),
        tmp_path / "shifted.xml",
    )
    assert compare(str(tmp_path / "packed.xml"), str(tmp_path / "shifted.xml"), running=two).agrees


def test_record() -> None:
    record = diff(network(plain()), network(half())).record()
    (row,) = record["summary"]["weights"]
    assert (row["a"], row["b"], row["weights"], row["different"], row["worst"]) == ("f32", "f16", 1, 1, "w")
    assert (record["summary"]["layers"], record["summary"]["follows"]) == ([], 1)
    changes = next(layer["changes"] for layer in record["layers"] if not layer["follows"])
    assert [change["kind"] for change in changes] == ["stored", "weights"]
    assert changes[1]["error"]["snr"] == row["snr"]


def test_a_missing_bin(tmp_path: Path) -> None:
    irrun.save_model(network(plain()), tmp_path / "a.xml")
    irrun.save_model(network(half()), tmp_path / "b.xml")
    (tmp_path / "b.bin").unlink()
    difference = diff(irrun.read_model(tmp_path / "a.xml"), irrun.read_model(tmp_path / "b.xml"))
    assert difference.uncompared == 1
    assert only_row(difference).b == "f16"


NETWORKS: Mapping[str, Callable[[Any], Any]] = {
    name: getattr(small_networks, name) for name in ("resnet", "bert", "bert_dynamic")
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_copy_that_openvino_compressed(name: str, ov: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is told in a screenful, and no layer but its weights differs."""
    model = NETWORKS[name](ov)
    ov.save_model(model, tmp_path / "a.xml", compress_to_fp16=False)
    ov.save_model(model, tmp_path / "b.xml", compress_to_fp16=True)
    difference = diff(irrun.read_model(tmp_path / "a.xml"), irrun.read_model(tmp_path / "b.xml"))
    summary = difference.summary
    assert {(row.a, row.b) for row in summary.weights} == {("f32", "f16")}
    floats = [c for c in model.get_ops() if c.get_type_name() == "Constant" and c.get_element_type() == ov.Type.f32]
    assert sum(row.weights for row in summary.weights) == len(floats)
    arrays = [c.data for c in floats]
    worst = max(float(np.abs(a - a.astype(np.float16)).max()) for a in arrays)
    assert summary.weights[0].max_abs == pytest.approx(worst)
    assert summary.layers == ()
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["diff", "a.xml", "b.xml"])
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) <= 24
    assert result.stdout.startswith(f"{len(floats)} weights f32 → f16: ")
