"""Compiled kernels: the same as numpy's within rounding, where the plan uses them, and never needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import fast
from irrun.opdef import Request, Value
from irrun.planning import plans
from kit import filled, operation, tensor

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.arithmetic import outer
from irrun.fast.product import WIDTH, PackedMatrix

RANDOM = np.random.default_rng(0)
HALF = WIDTH // 2


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def rounded(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16).astype(np.float32)


def assert_product(result: np.ndarray, a: np.ndarray, matrix: np.ndarray) -> None:
    """Compare with the product in f64. Each sum may be wrong by a rounding error for each of its terms."""
    wide, terms = a.astype(np.float64) @ matrix.astype(np.float64), np.abs(a).astype(np.float64) @ np.abs(matrix)
    assert (np.abs(result - wide) <= 2**-23 * np.sqrt(matrix.shape[0] + 1) * terms + 1e-37).all()


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 31, 385, 800])
@pytest.mark.parametrize(
    "columns", [1, HALF - 1, HALF, HALF + 1, WIDTH - 1, WIDTH, WIDTH + 1, 4 * WIDTH, 5 * WIDTH + 3, 5 * WIDTH + HALF]
)
def test_products(halves: bool, depth: int, columns: int) -> None:
    """Every number of rows that a block may have, parts of the depth and of a panel, and rows that lie apart."""
    matrix = rounded(normal(depth, columns)) if halves else normal(depth, columns) + np.float32(1e-5)
    packed = PackedMatrix(matrix)
    assert packed.panels.dtype == (np.uint16 if halves else np.float32)
    for rows in (0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 193):
        a = normal(rows, depth + 2)[:, 1 : depth + 1]
        around = np.full((rows, columns + 2), 7, np.float32)
        packed.multiply(a, around[:, 1:-1])
        assert_product(around[:, 1:-1], a, matrix)
        assert (around[:, [0, -1]] == 7).all()


def test_columns_from_a_panel_on() -> None:
    matrix, a = normal(40, 3 * WIDTH + 5), normal(9, 40)
    out = np.empty((9, WIDTH + 5), np.float32)
    PackedMatrix(matrix).multiply(a, out, 2 * WIDTH)
    assert_product(out, a, matrix[:, 2 * WIDTH :])


def test_numbers_that_are_not_finite() -> None:
    """f16 holds infinities and zeros with a sign; the padding of a panel adds no NaN."""
    matrix = np.array([[np.inf, -0.0, 2**-24, 65504]], np.float32)
    packed = PackedMatrix(matrix)
    out = np.empty((2, 4), np.float32)
    packed.multiply(np.array([[-1], [np.inf]], np.float32), out)
    assert packed.panels.dtype == np.uint16
    np.testing.assert_array_equal(out[0], [-np.inf, 0, -(2**-24), -65504])
    np.testing.assert_array_equal(np.isnan(out[1]), [False, True, False, False])


@pytest.mark.parametrize("number", [65520, 1e-8, np.nan, 1 + 2**-11])
def test_numbers_that_f16_does_not_hold(number: float) -> None:
    assert PackedMatrix(np.full((3, 3), number, np.float32)).panels.dtype == np.float32


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize(("rows", "columns"), [(70, 90), (1, 300), (900, 70)])
def test_mat_mul(transpose_a: bool, transpose_b: bool, batch: tuple[int, ...], rows: int, columns: int) -> None:
    """A kernel for a constant matrix fills each tile once, for inputs of known and of unknown shape."""
    op = operation("MatMul-1", {"transpose_a": str(transpose_a).lower(), "transpose_b": str(transpose_b).lower()})
    a, matrix = normal(*batch, rows, 100), normal(100, columns)
    inputs = a.swapaxes(-1, -2).copy() if transpose_a else a, matrix.T.copy() if transpose_b else matrix
    for declared in (Value.of(inputs[0]), tensor("f32[" + ",".join(["?"] * a.ndim) + "]")):
        known = Value(declared.type, declared.shape)
        kernel = fast.kernel(op, Request((known, Value.of(inputs[1]))))
        assert kernel is not None
        assert kernel.algorithm == "compiled"
        assert kernel.packing.inputs == (1,)
        assert_product(kernel.call(inputs[0], None), a, matrix)
    assert_product(filled(kernel, (*batch, rows, columns), np.float32, inputs[0], inputs[1]), a, matrix)


def decoder(width: int) -> irrun.Model:
    """Return a model of products with weights in f16, of a bias and an activation, for any number of rows."""
    x = b.parameter([None, None, width], name="x")
    y = x
    for _ in range(3):
        weights = b.Convert(b.constant(normal(4 * width, width).astype(np.float16) / 32), destination_type="f32")
        back = b.Convert(b.constant(normal(width, 4 * width).astype(np.float16) / 32), destination_type="f32")
        y = b.MatMul(b.Gelu(b.Add(b.MatMul(y, weights, transpose_b=True), normal(4 * width))), back, transpose_b=True)
    return b.model(b.Add(x, y))


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that sets IRRUN_FAST, as if irrun had just been started."""

    def chosen(value: str) -> None:
        monkeypatch.setenv("IRRUN_FAST", value)
        fast.available.cache_clear()

    yield chosen
    fast.available.cache_clear()


def test_a_model(choose: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a plan of a model with many weights has compiled kernels, and none in ``exact`` runs."""
    monkeypatch.setattr(plans, "_COMPILED", 1 << 16)
    model = decoder(96)
    choose("0")
    plain = irrun.compile(model, exact=False)
    choose("1")
    fast, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    small = irrun.compile(b.model(b.MatMul(b.parameter([1, 8], name="x"), normal(8, 8))), exact=False)
    names = [{step.kernel.algorithm for step in executable.plan.steps} for executable in (plain, fast, exact, small)]
    assert ["compiled, f16" in algorithms for algorithms in names] == [False, True, False, False]
    for rows in (1, 5, 5, 5, 5, 1, 1, 1, 40):
        x = normal(2, rows, 96)
        expected = exact(x)[0]
        for executable in (plain, fast):
            np.testing.assert_allclose(executable(x)[0], expected, rtol=1e-4, atol=1e-4)


def test_nothing_imports_numba_before_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    irrun.save_model(decoder(8), path)
    code = f"import sys, irrun, numpy as np; irrun.run({str(path)!r}, np.ones((1, 1, 8), np.float32))"
    code += "; assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e38, -3e38, 0.5, 1.5, 2.5, 127.5], np.float32)


@pytest.mark.parametrize(
    ("levels", "limits"),
    [(256, (0, 255, 0, 255)), (255, (-1.27, 1.3, -1.27, 1.3)), (2, (0.2, 0.7, -1, 1)), (65536, (-3, 5, 4, -4))],
)
def test_fake_quantize(levels: int, limits: tuple[float, ...]) -> None:
    """The same steps as the defining kernel, in place, of an array of any size, and of one that is not contiguous.

    With up to 256 levels, a number in the middle between two steps may become either of them (``quantized``).
    """
    op = operation("FakeQuantize-1", {"levels": levels})
    arrays = [np.float32(limit).reshape(1, 1) for limit in limits]
    inputs = (Value.of(np.zeros((3, 8), np.float32)), *map(Value.of, arrays))
    kernel = fast.kernel(op, Request(inputs))
    assert kernel is not None
    ulp = 2**-22 * max(map(abs, limits))
    step = abs(limits[3] - limits[2]) / (levels - 1)

    def require(got: np.ndarray, x: np.ndarray, wanted: np.ndarray) -> None:
        place = (x.astype(np.float64) - np.float32(limits[0])) / (np.float64(limits[1]) - limits[0]) * (levels - 1)
        with np.errstate(invalid="ignore"):  # inf - inf
            from_middle = abs(abs(place - np.rint(place)) - 0.5)
        between = (from_middle < 2**-21 * levels) & (levels <= 256)
        np.testing.assert_allclose(got[~between], wanted[~between], rtol=0, atol=ulp)
        np.testing.assert_allclose(got[between], wanted[between], rtol=0, atol=step + ulp)

    for x in (SPECIAL.reshape(3, 4), normal(0, 3), normal(1, 1), normal(37, 1001) * 3, (normal(50, 60) * 3)[:, 7:]):
        wanted = op.run(x, *arrays)
        require(kernel.call(x, *arrays), x, wanted)
        tile = x.copy() if x.flags.c_contiguous else np.tile(x, 2)[:, : x.shape[1]]
        assert kernel.call(tile, *arrays, out=tile) is tile
        require(tile, x, wanted)


def test_fake_quantize_of_channels_is_left_to_numpy() -> None:
    op = operation("FakeQuantize-1", {"levels": 16})
    limits = [np.full((3, 1), n, np.float32) for n in (-1, 1, -1, 1)]
    inputs = (Value.of(np.zeros((3, 8), np.float32)), *map(Value.of, limits))
    assert fast.kernel(op, Request(inputs)) is None
    kernel = op.prepare(Request(inputs))
    assert kernel is not None
    x = normal(3, 8)
    np.testing.assert_allclose(kernel.call(x, *limits), op.run(x, *limits), atol=1e-6)


@pytest.mark.usefixtures("compiled_kernels")
def test_a_quantised_model_has_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matrices, too."""
    monkeypatch.setattr(plans, "_COMPILED", 0)
    called: list[int] = []
    quantization = pytest.importorskip("irrun.fast.quantization")
    name, compute = "_quantize_coarsely", quantization._quantize_coarsely

    def counting(source: int, step: int, target: int, apart: int, columns: int, *more: Any) -> None:
        called.append(columns * (more[-1] - more[-2]))
        compute(source, step, target, apart, columns, *more)

    monkeypatch.setattr(quantization, name, counting)
    x = b.parameter([1, 2, 9, 9], "f32", name="x")
    filters = b.constant(normal(3, 2, 3, 3))
    shape = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
    y = b.FakeQuantize(b.ReLU(b.Convolution(x, filters, **shape)), 0.0, 2.0, 0.0, 2.0, levels=256)
    model = b.model({"y": y})
    data = normal(1, 2, 9, 9)
    result = irrun.compile(model, exact=False)(data)[0]
    assert sum(called) == result.size
    np.testing.assert_allclose(result, irrun.compile(model, exact=True)(data)[0], atol=2 / 255 + 1e-6)


@pytest.mark.usefixtures("compiled_kernels")
def test_a_reshaped_model_has_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its constants declare no shapes at their ports."""
    monkeypatch.setattr(plans, "_COMPILED", 1 << 16)
    x = b.parameter([-1, 128], "f32", name="x")
    model = b.model(b.MatMul(x, normal(128, 512)))
    assert plans.planning(model, 1 << 30).compiled
    assert plans.planning(model.reshape([4, 128]), 1 << 30).compiled


@pytest.mark.usefixtures("compiled_kernels")
def test_a_large_value_has_compiled_kernels() -> None:
    """A model without constants, if a value of it takes 4 MiB."""
    for count in (63, 64):
        columns, rows = b.parameter([1, count, 128, 1], name="columns"), b.parameter([1, 1, 1, 128], name="rows")
        model = b.model(b.Multiply(columns, rows))
        assert plans.planning(model, 1 << 30).compiled == (count == 64)
        feeds = [normal(1, count, 128, 1), normal(1, 1, 1, 128)]
        np.testing.assert_array_equal(irrun.compile(model, exact=False)(feeds)[0], feeds[0] * feeds[1])


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize(("columns", "rows", "shared"), [
    ((30, 1), (1, 17), 0), ((2, 3, 50, 1), (2, 1, 1, 9), 1), ((4, 5, 1), (4, 1, 33), 1), ((2, 3, 7, 1), (2, 3, 1, 64), 2),
])  # fmt: skip
def test_outer_products(columns: tuple[int, ...], rows: tuple[int, ...], shared: int) -> None:
    left, right = normal(*columns), normal(*rows)
    out = np.empty(np.broadcast_shapes(columns, rows), np.float32)
    outer(left, right, out, shared)
    np.testing.assert_array_equal(out, left * right)
