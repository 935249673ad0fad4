"""Constant matrices that stay as the file has them give what their layers give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.fast import available
from irrun.kernels.matmul import ConstantForm
from irrun.planning import plans

RNG = np.random.default_rng(0)
DTYPES = {"u8": np.uint8, "i8": np.int8, "u4": ml_dtypes.uint4, "i4": ml_dtypes.int4}
RANGES = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}


@pytest.fixture(params=[False, True], ids=["numpy", "fast"])
def fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Run a test with numpy alone and with compiled kernels for everything."""
    if request.param:
        pytest.importorskip("numba", reason="the extra `fast` is not installed")
    monkeypatch.setenv("IRRUN_FAST", "1" if request.param else "0")
    monkeypatch.setattr(plans, "_COMPILED", 0)
    available.cache_clear()
    yield request.param
    available.cache_clear()


def codes(type: str, *shape: int) -> np.ndarray:
    return RNG.integers(*RANGES[type], shape).astype(np.int16)


def constant(numbers: np.ndarray, type: str) -> Any:
    return b.constant(numbers.astype(DTYPES[type]), type)


def scales(*shape: int) -> np.ndarray:
    return RNG.uniform(0.01, 0.03, shape).astype(np.float16)


def algorithms(executable: irrun.Executable) -> list[str]:
    return [step.kernel.algorithm for step in executable.plan.steps]


def layers(executable: irrun.Executable) -> list[str]:
    return [step.op.type for step in executable.plan.steps]


def assert_product(result: np.ndarray, a: np.ndarray, matrix: np.ndarray) -> None:
    """Compare with the product in f64. Each sum may be wrong by a few rounding errors for each of its terms."""
    wide = np.matmul(a.astype(np.float64), matrix.astype(np.float64))
    terms = np.matmul(np.abs(a).astype(np.float64), np.abs(matrix) + np.abs(matrix).max())
    assert (np.abs(result - wide) <= 2**-22 * np.sqrt(matrix.shape[0] + 1) * terms).all()


# shape of the codes as the file has them, shape of scales and zeros, and the shape of the matrix [columns, depth]
FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, int]]] = {
    "a tensor": ((70, 96), (), (70, 96)),
    "a tensor, axes": ((70, 96), (1, 1), (70, 96)),
    "a row": ((70, 96), (70, 1), (70, 96)),
    "odd": ((67, 97), (67, 1), (67, 97)),
    "groups": ((70, 3, 32), (70, 3, 1), (70, 96)),
    "groups of 9": ((67, 11, 9), (67, 11, 1), (67, 99)),
    "groups of all rows": ((70, 3, 32), (1, 3, 1), (70, 96)),
    "groups of 4": ((70, 24, 4), (70, 24, 1), (70, 96)),
    "a column": ((70, 96), (1, 96), (70, 96)),
}


@pytest.mark.parametrize("zero", ["none", "one", "all"])
@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_integers(form: str, type: str, zero: str, fast: bool) -> None:
    counts, shape, (columns, depth) = FORMS[form]
    number, scale = codes(type, *counts), scales(*shape)
    zeros = {"none": None, "one": codes(type, 1), "all": codes(type, *shape)}[zero]
    y = b.Convert(constant(number, type), destination_type="f16")
    if zeros is not None:
        y = b.Subtract(y, b.Convert(constant(zeros, type), destination_type="f16"))
    y = b.Multiply(y, b.constant(scale))
    if len(counts) == 3:
        y = b.Reshape(y, np.array([columns, depth]), special_zero=False)
    weights = b.Convert(y, destination_type="f32")
    x = b.parameter([-1, -1, depth], "f32", name="x")
    executable = irrun.compile(b.model(b.MatMul(x, weights, transpose_b=True)), exact=False)
    assert layers(executable) == ["MatMul"]
    shifted = number - (0 if zeros is None else zeros)
    matrix = (shifted * scale.astype(np.float64)).reshape(columns, depth).T
    for rows in (1, 2, 5, 6, 31):
        a = RNG.standard_normal((2, rows, depth), np.float32)
        if form == "groups of 4":  # so many scales would be no smaller than f32: folded as the file computes it, in f16
            assert np.abs(executable(a)[0] - a @ matrix).max() < 2**-11 * np.abs(matrix).max() * depth
        else:
            assert_product(executable(a)[0], a, matrix)


@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 5, 31])
@pytest.mark.parametrize("numbers", [[np.inf], [-np.inf], [3e38], [np.nan], [-np.inf, np.nan, 1]], ids=str)
def test_numbers_that_have_no_sum(numbers: list[float], rows: int, type: str, fast: bool) -> None:
    """The products with the codes and with the zeros may be infinite both: their difference is no NaN."""
    code, zeros = codes(type, 70, 96), codes(type, 70, 1)
    y = b.Convert(constant(code, type), destination_type="f32")
    y = b.Subtract(y, b.Convert(constant(zeros, type), destination_type="f32"))
    y = b.Multiply(y, b.constant(scales(70, 1).astype(np.float32)))
    model = b.model(b.MatMul(b.parameter([-1, 96], "f32", name="x"), y, transpose_b=True))
    a = RNG.standard_normal((rows, 96), np.float32)
    for row, number in enumerate(numbers[:rows]):
        a[row, 5] = number
    got, wanted = (irrun.compile(model, exact=exact)(a)[0] for exact in (False, True))
    for kind in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(kind(got), kind(wanted))


@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("shape", [(1, 75), (4, 1, 75), (1, 1), (4, 1, 1)], ids=str)
def test_matrices_that_are_not_transposed(shape: tuple[int, ...], type: str, transpose_a: bool, fast: bool) -> None:
    """The depth is the first axis, and so are the groups: [groups, rows of a group, columns]."""
    depth, columns = 96, 75
    counts = (depth, columns) if len(shape) == 2 else (4, depth // 4, columns)
    number, scale, zeros = codes(type, *counts), scales(*shape), codes(type, *shape)
    y = b.Convert(constant(number, type), destination_type="f32")
    y = b.Subtract(y, b.Convert(constant(zeros, type), destination_type="f32"))
    y = b.Multiply(y, b.Convert(b.constant(scale), destination_type="f32"))
    if len(counts) == 3:
        y = b.Reshape(y, np.array([depth, columns]), special_zero=False)
    matrix = ((number - zeros) * scale.astype(np.float64)).reshape(depth, columns)
    x = b.parameter([depth, -1] if transpose_a else [-1, depth], "f32", name="x")
    executable = irrun.compile(b.model(b.MatMul(x, y, transpose_a=transpose_a)), exact=False)
    assert layers(executable) == ["MatMul"]
    assert algorithms(executable) == ([f"compiled, {type}"] if fast else [""])
    for rows in (1, 3, 40):
        a = RNG.standard_normal((rows, depth), np.float32)
        assert_product(executable(a.T.copy() if transpose_a else a)[0], a, matrix)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_floats(dtype: Any, transpose_b: bool, fast: bool) -> None:
    matrix = RNG.standard_normal((99, 70)).astype(dtype)
    weights = b.Convert(b.constant(matrix.T.copy() if transpose_b else matrix), destination_type="f32")
    x = b.parameter([-1, 99], "f32", name="x")
    executable = irrun.compile(b.model(b.MatMul(x, weights, transpose_b=transpose_b)), exact=False)
    assert algorithms(executable) == ([f"compiled, {'f16' if dtype is np.float16 else 'bf16'}"] if fast else [""])
    for rows in (1, 4, 20):
        a = RNG.standard_normal((rows, 99), np.float32)
        assert_product(executable(a)[0], a, matrix.astype(np.float32))


@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("width", [64, 65])
def test_embeddings(type: str, width: int, fast: bool) -> None:
    """Gather unpacks the rows that it takes; the matrix may be that of a product as well."""
    number, scale, zeros = codes(type, 80, width), scales(80, 1), codes(type, 80, 1)
    y = b.Convert(constant(number, type), destination_type="f16")
    y = b.Multiply(b.Subtract(y, b.Convert(constant(zeros, type), destination_type="f16")), b.constant(scale))
    table = b.Convert(y, destination_type="f32")
    ids = b.parameter([-1, -1], "i64", name="ids")
    gathered = b.Gather(table, ids, np.array(0))
    model = b.model({"rows": gathered, "logits": b.MatMul(gathered, table, transpose_b=True)})
    executable = irrun.compile(model, exact=False)
    assert algorithms(executable)[0] == "as stored"
    matrix = np.vstack([(number - zeros) * scale.astype(np.float32), np.zeros((1, width), np.float32)])
    indices = np.array([[0, 79, 7], [-1, -80, 79], [80, -81, 1000]])
    rows, logits = executable(indices).arrays
    expected = matrix[[[0, 79, 7], [79, 0, 79], [80, 80, 80]]]
    np.testing.assert_array_equal(rows, expected)
    assert_product(logits, expected, matrix[:80].T)


def weights(shape: tuple[int, int] = (80, 64)) -> Any:
    return b.Convert(b.constant(RNG.standard_normal(shape).astype(np.float16)), destination_type="f32")


def test_what_is_folded_instead(fast: bool) -> None:
    """A matrix that another layer reads, one that is no matrix, and one that is multiplied with a constant."""
    x = b.parameter([-1, 64], "f32", name="x")
    shared = weights()
    read = b.Relu(b.Convert(b.constant(RNG.standard_normal((80, 64)).astype(np.float16)), destination_type="f32"))
    batch = b.Convert(b.constant(RNG.standard_normal((2, 64, 50)).astype(np.float16)), destination_type="f32")
    known = b.MatMul(RNG.standard_normal((5, 64)).astype(np.float32), weights(), transpose_b=True)
    outputs = {
        "shared": b.MatMul(x, shared, transpose_b=True), "itself": shared,
        "read": b.MatMul(x, read, transpose_b=True), "batch": b.MatMul(x, batch),
        "known": b.MatMul(b.MatMul(x, weights(), transpose_b=True), known, transpose_b=True),
        "matrix on the left": b.MatMul(weights(), x, transpose_b=True),
    }  # fmt: skip
    model = b.model(outputs)
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    assert set(layers(executable)) == {"MatMul"}
    a = RNG.standard_normal((3, 64), np.float32)
    for got, expected in zip(executable(a).arrays, exact(a).arrays, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def forms(call: Callable[..., Any]) -> set[int]:
    """Return the forms of constants that a kernel holds, or that of each kernel whose calls it does."""
    turns = getattr(call, "__self__", None)
    calls = [call] if turns is None else [member.step.kernel.call for member in turns.members]
    cells = (cell.cell_contents for one in calls for cell in one.__closure__ or ())
    return {id(held) for held in cells if isinstance(held, ConstantForm)}


def test_plans_share_the_packed_matrices(fast: bool) -> None:
    """A plan for dims that recur holds the constants of the first one."""
    x, y = (b.parameter([-1, 64], "f32", name=name) for name in "xy")
    scaled = b.Multiply(
        b.Convert(constant(codes("i4", 80, 64), "i4"), destination_type="f32"), scales(80, 1).astype("f4")
    )
    model = b.model({"a": b.MatMul(x, scaled, transpose_b=True), "b": b.MatMul(y, weights((64, 80)))})
    executable = irrun.compile(model, exact=False)
    before = [step.kernel.call for step in executable.plan.steps]
    for _ in range(5):
        executable([np.ones((70, 64), np.float32)] * 2)
    (narrow,) = executable._plans._narrow.values()
    held = [forms(call) for call in before]
    assert all(held)
    assert set().union(*held) == set().union(*(forms(step.kernel.call) for step in narrow.steps))


def test_an_exact_run_computes_as_the_file_does(fast: bool) -> None:
    """Layer by layer, a scaled weight is rounded to f16."""
    number, scale = codes("u8", 80, 64), scales(80, 1)
    y = b.Multiply(b.Convert(constant(number, "u8"), destination_type="f16"), b.constant(scale))
    x = b.parameter([-1, 64], "f32", name="x")
    model = b.model(b.MatMul(x, b.Convert(y, destination_type="f32"), transpose_b=True))
    a = np.eye(64, dtype=np.float32)
    rounded = (number.astype(np.float16) * scale).astype(np.float32)
    np.testing.assert_array_equal(irrun.compile(model, exact=True)(a)[0], rounded.T)
    np.testing.assert_allclose(irrun.compile(model, exact=False)(a)[0], number.T * scale.astype("f4").T, rtol=1e-6)


def decompressed(number: np.ndarray, scale: np.ndarray, type: str) -> Any:
    y = b.Multiply(b.Convert(constant(number, type), destination_type="f16"), b.constant(scale))
    return b.Convert(y, destination_type="f32")


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("type", ["u4", "i8", "f16"])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matrices_that_may_not_be_unpacked(type: str, transpose_a: bool, transpose_b: bool) -> None:
    depth, columns = 300, 700  # several blocks
    shape = (columns, depth) if transpose_b else (depth, columns)
    if type == "f16":
        matrix = RNG.standard_normal(shape).astype(np.float16)
        weights = b.Convert(b.constant(matrix), destination_type="f32")
    else:
        number, scale = codes(type, *shape), scales(shape[0], 1)
        matrix, weights = number * scale.astype(np.float32), decompressed(number, scale, type)
    x = b.parameter([-1, depth, -1] if transpose_a else [-1, -1, depth], "f32", name="x")
    product = b.MatMul(x, weights, transpose_a=transpose_a, transpose_b=transpose_b)
    executable = irrun.compile(b.model(b.Relu(product)), exact=False, max_weights_memory=1)
    assert "unpacked in parts" in algorithms(executable)
    whole = matrix.astype(np.float32).T if transpose_b else matrix.astype(np.float32)
    for rows in (1, 40):
        a = RNG.standard_normal((2, rows, depth), np.float32)
        result = executable(a.swapaxes(1, 2).copy() if transpose_a else a)[0]
        assert (result >= 0).all()
        positive = np.matmul(a, whole) > 1
        assert_product(np.where(positive, result, np.matmul(a, whole)), a, whole)


@pytest.mark.usefixtures("numpy_alone")
def test_matrices_are_unpacked_up_to_the_limit() -> None:
    x = y = b.parameter([1, 128], "f32", name="x")
    for _ in range(3):
        y = b.MatMul(y, decompressed(codes("u4", 128, 128), scales(128, 1), "u4"), transpose_b=True)
    size = 128 * 128 * 4
    for limit, count in ((size - 1, 3), (size, 2), (3 * size - 1, 1), (3 * size, 0)):
        executable = irrun.compile(b.model(y, inputs=[x]), exact=False, max_weights_memory=limit)
        assert algorithms(executable).count("unpacked in parts") == count
    # the default leaves the other half of the memory to values
    executable = irrun.compile(b.model(y, inputs=[x]), exact=False, max_memory=5 * size)
    assert algorithms(executable).count("unpacked in parts") == 1


@pytest.mark.usefixtures("numpy_alone")
def test_a_matrix_that_several_layers_read_is_unpacked_once() -> None:
    x = b.parameter([1, 128], "f32", name="x")
    weights = decompressed(codes("u4", 128, 128), scales(128, 1), "u4")
    y = b.MatMul(b.MatMul(x, weights, transpose_b=True), weights, transpose_b=True)
    executable = irrun.compile(b.model(y), exact=False, max_weights_memory=128 * 128 * 4)
    assert "unpacked in parts" not in algorithms(executable)


def test_compiled_kernels_need_no_unpacked_weights(fast: bool) -> None:
    x = b.parameter([1, 96], "f32", name="x")
    y = b.MatMul(x, decompressed(codes("u4", 96, 96), scales(96, 1), "u4"), transpose_b=True)
    executable = irrun.compile(b.model(y), exact=False, max_weights_memory=1)
    assert algorithms(executable) == ["compiled, u4" if fast else "unpacked in parts"]
