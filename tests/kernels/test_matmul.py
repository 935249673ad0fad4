"""Products by another library than numpy: the same, whatever lies how in memory."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irrun.kernels import matmul as products
from irrun.kernels.mkl import Cblas, mkl

RANDOM = np.random.default_rng(2)


def _found() -> Cblas | None:
    """MKL, or else any cblas with 32 bit integers that the system has: the binding is the same."""
    if (library := mkl()) is not None:
        return library
    for name in ("openblas", "cblas", "blis"):
        if path := ctypes.util.find_library(name):
            try:
                return Cblas.of(ctypes.CDLL(path), name)
            except (OSError, AttributeError):
                continue
    return None


@pytest.fixture(scope="module")
def library() -> Cblas:
    found = _found()
    if found is None:
        pytest.skip("neither the package mkl nor a cblas of the system is installed")
    return found


class _Recorded:
    """In place of a library's functions: they note what they are called with and multiply by numpy."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.calls = 0

    def matrix(self, place: int, rows: int, columns: int, step: int) -> np.ndarray:
        count = (rows - 1) * step + columns
        memory: Any = (ctypes.c_char * (count * self.dtype.itemsize)).from_address(place)
        flat = np.frombuffer(memory, self.dtype)
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (step * flat.itemsize, flat.itemsize))

    def __call__(
        self, order: int, a_way: int, b_way: int, m: int, n: int, k: int, alpha: float,
        a: int, a_step: int, b: int, b_step: int, beta: float, out: int, step: int,
    ) -> None:  # fmt: skip
        """``cblas_?gemm`` as its documentation has it."""
        assert (order, alpha, beta) == (101, 1, 0)
        assert step >= n
        assert a_step >= (k if a_way == 111 else m)
        assert b_step >= (n if b_way == 111 else k)
        left = self.matrix(a, m, k, a_step) if a_way == 111 else self.matrix(a, k, m, a_step).T
        right = self.matrix(b, k, n, b_step) if b_way == 111 else self.matrix(b, n, k, b_step).T
        target = self.matrix(out, m, n, step)
        target[...] = left.copy() @ right.copy()
        self.calls += 1


def recorded() -> Cblas:
    return Cblas("recorded", {np.dtype(t): _Recorded(t) for t in (np.float32, np.float64)})


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def operands() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    yield "plain", normal(7, 5), normal(5, 6)
    yield "f64", normal(7, 5, dtype=np.float64), normal(5, 6, dtype=np.float64)
    yield "transposed a", normal(5, 7).T, normal(5, 6)
    yield "transposed b", normal(7, 5), normal(6, 5).T
    yield "both", normal(5, 7).T, normal(6, 5).T
    yield "columns of more", normal(7, 9)[:, 2:7], normal(5, 9)[:, 1:7]
    yield "one row", normal(1, 5), normal(5, 6)
    yield "one column", normal(7, 5), normal(5, 1)
    yield "one inner", normal(7, 1), normal(1, 6)
    yield "one of many columns", normal(7, 5), normal(5, 8)[:, 3:4]
    yield "stacks", normal(2, 3, 7, 5), normal(2, 3, 5, 6)
    yield "heads", normal(2, 7, 3, 5).transpose(0, 2, 1, 3), normal(2, 6, 3, 5).transpose(0, 2, 3, 1)
    yield "broadcast", normal(3, 1, 7, 5), normal(2, 5, 6)
    yield "one matrix for all", normal(4, 7, 5), normal(5, 6)
    yield "backwards", normal(7, 5)[::-1], normal(5, 6)
    yield "every other", normal(7, 10)[:, ::2], normal(5, 6)


OPERANDS = [pytest.param(a, b, id=name) for name, a, b in operands()]
DOUBTFUL = {"backwards", "every other"}


@pytest.mark.parametrize(("a", "b"), OPERANDS)
def test_layouts(a: np.ndarray, b: np.ndarray) -> None:
    """The flags, steps and addresses are those of the arrays."""
    _multiply(recorded(), a, b)


@pytest.mark.parametrize(("a", "b"), OPERANDS)
def test_library(library: Cblas, a: np.ndarray, b: np.ndarray) -> None:
    _multiply(library, a, b)


def _multiply(library: Cblas, a: np.ndarray, b: np.ndarray) -> None:
    wanted = np.matmul(a.astype(np.float64), b.astype(np.float64))
    wide = np.full((*wanted.shape[:-1], wanted.shape[-1] + 3), 9, a.dtype)
    for out in (np.full(wanted.shape, 9, a.dtype), wide[..., 1:-2]):
        if library.product(a, b, out):
            np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)
        else:
            assert min(*a.strides, *b.strides) < 0 or a.strides[-1] == 2 * a.itemsize
            assert (out == 9).all()
    assert (wide[..., 0] == 9).all()
    assert (wide[..., -2:] == 9).all()


def test_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large products go through the library, small ones and those of integers do not."""
    library = recorded()
    monkeypatch.setattr(products, "_library", lambda: library)
    gemm: Any = library.gemm[np.dtype(np.float32)]
    a, b = normal(2, 100, 90), normal(90, 80)
    out = np.empty((2, 100, 80), np.float32)
    assert products.matmul(a, b, out) is out
    np.testing.assert_allclose(out, np.matmul(a, b), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(products.matmul(a, normal(2, 90, 80)).shape, (2, 100, 80))
    assert gemm.calls == 3  # one for all rows, one for each of a stack
    products.matmul(normal(3, 4), normal(4, 5))
    products.matmul(np.ones((100, 90), np.int32), np.ones((90, 80), np.int32))
    assert gemm.calls == 3
    half = products.matmul(a.astype(np.float16), b.astype(np.float16))
    assert half.dtype == np.float16
    assert gemm.calls == 4
    assert products.blas() == "recorded"


@pytest.mark.parametrize("wanted", ["numpy", "mkl", "atlas"])
def test_environment(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRRUN_BLAS", wanted)
    products._library.cache_clear()
    monkeypatch.setattr(products, "mkl", lambda: None)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert products.blas() == "numpy"
        assert [f"IRRUN_BLAS is {wanted}" in str(w.message) for w in told] == [True] * (wanted != "numpy")
    finally:
        products._library.cache_clear()


def test_found_where_it_was_installed(tmp_path: Path) -> None:
    """The record of the installed package tells where the library is; one that cannot be loaded is none."""
    information = tmp_path / "mkl-2026.1.dist-info"
    information.mkdir()
    (information / "RECORD").write_text(
        "../lib/libmkl_core.so.3,,\n../lib/libmkl_rt.so.3,sha256=x,1\n", encoding="utf-8"
    )
    script = """
        from irrun.kernels import blas, matmul
        import sys
        sys.path[:] = [p for p in sys.path if p == sys.argv[1]]
        print([p.name for p in blas.mkl_libraries()], blas.expected(), matmul.blas())
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "IRRUN_BLAS": ""},
    )  # fmt: skip
    assert run.stdout.strip() == "['libmkl_rt.so.3'] mkl numpy", run.stderr


def test_one_transposed_copy_of_a_constant() -> None:
    weights, others = normal(40, 30), normal(40, 30)
    first = products.TransposedConstant.of(weights)
    assert products.TransposedConstant.of(weights) is first
    assert products.TransposedConstant.of(others) is not first
    np.testing.assert_array_equal(first.array, weights.T)
    assert first.array.flags.c_contiguous


@pytest.mark.parametrize("offset", [0, 1])
def test_one_transposed_copy_for_all_views_of_a_constant(offset: int) -> None:
    weights = normal(40, 30)
    file = np.frombuffer(bytes(offset) + weights.tobytes(), np.uint8)
    first, again = (products.TransposedConstant.of(file[offset:].view(np.float32).reshape(40, 30)) for _ in range(2))
    assert again is first
    np.testing.assert_array_equal(first.array, weights.T)
    assert products.TransposedConstant.of(file[offset:].view(np.float32).reshape(30, 40)) is not first


def test_memory_that_is_used_again_holds_another_constant() -> None:
    memory = bytearray(40 * 30 * 4)
    first = products.TransposedConstant.of(np.frombuffer(memory, np.float32).reshape(40, 30).view())
    memory[:] = np.full((40, 30), 2, np.float32).tobytes()
    second = products.TransposedConstant.of(np.frombuffer(memory, np.float32).reshape(40, 30).view())
    assert second is not first
    assert (second.array == 2).all()
