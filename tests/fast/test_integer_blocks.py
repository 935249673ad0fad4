"""The block of windows of bytes in each form: those of this processor compute, and the others are assembled."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")

import llvmlite.binding as llvm
from llvmlite import ir

from irrun.fast.integers.block import Arguments, IntegerBlock, Row
from irrun.fast.integers.dots import DOTS
from irrun.fast.integers.quads import by_quads, emit_windows, in_quads
from irrun.fast.machine.processor import ROWS, VECTORS

RANDOM = np.random.default_rng(0)
_I64 = ir.IntType(64)
_CALL = [_I64] * 11


def module(feature: str, triple: str, depthwise: bool, vectors: int = VECTORS) -> ir.Module:
    """A function that takes the arguments of a block, and computes it with so many vectors."""
    made = ir.Module()
    made.triple = triple
    function = ir.Function(made, ir.FunctionType(ir.VoidType(), _CALL), "block")
    builder = ir.IRBuilder(function.append_basic_block())
    *places, rounds, adds = function.args
    flags = [builder.trunc(flag, ir.IntType(8)) for flag in (rounds, adds)]
    of, dot = Arguments(*places, *flags), DOTS[feature]
    if depthwise and dot.quads:
        emit_windows(builder, vectors, True, of)
    else:
        IntegerBlock(builder, dot, depthwise, vectors, True, of).emit()
    builder.ret_void()
    return made


def machine(triple: str, processor: str, features: str) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(processor, features, opt=3)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize(
    ("feature", "triple", "processor", "instruction"),
    [
        ("avx512vnni", "x86_64-linux", "icelake-server", "vpdpbusd"),
        ("avx512bw", "x86_64-linux", "skylake-avx512", "vpmaddwd"),
        ("avxvnni", "x86_64-linux", "alderlake", "vpdpbusd"),
        ("avx2", "x86_64-linux", "haswell", "vpmaddwd"),
        ("dotprod", "aarch64-linux", "neoverse-n1", "sdot"),
    ],
)
def test_forms_of_other_processors_are_assembled(
    feature: str, triple: str, processor: str, instruction: str, depthwise: bool
) -> None:
    code = llvm.parse_assembly(str(module(feature, triple, depthwise)))
    text = machine(triple, processor, "").emit_assembly(code)
    assert depthwise or instruction in text


@pytest.mark.parametrize("taps", [6, 9])
@pytest.mark.parametrize("vectors", [1, 2, 4])
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("feature", DOTS)
def test_forms_of_this_processor(feature: str, depthwise: bool, vectors: int, taps: int) -> None:
    """Each form that it can execute: with the largest products, residuals and rounding."""
    host = llvm.get_host_cpu_features()
    if not host.get(feature):
        pytest.skip(f"this processor has no {feature}")
    lanes, depth, in_four = DOTS[feature].lanes, 5, depthwise and DOTS[feature].quads
    vectors = min(vectors, VECTORS)
    width, channels = lanes * VECTORS, lanes * vectors - 3
    deep = width if depthwise else 4 * depth
    data = RANDOM.choice(np.array([0, 1, 127, 128, 255], np.uint8), (ROWS * taps, deep))
    codes = RANDOM.choice(np.array([-128, -1, 0, 1, 127], np.int8), (taps, width if depthwise else 4 * depth, width))
    if depthwise:
        weights = in_quads(codes[:, 0].T) if in_four else np.ascontiguousarray(codes[:, 0].astype(np.int16))
        sums = np.einsum("rtc,tc->rc", data.reshape(ROWS, taps, width).astype(np.int64), codes[:, 0])
    else:
        each, number, wide = (2, np.int16, np.uint16) if DOTS[feature].wide else (4, np.int8, np.uint8)
        weights = np.ascontiguousarray(codes.astype(number).reshape(taps, -1, each, width).swapaxes(2, 3))
        sums = np.einsum("rtk,tkc->rc", data.reshape(ROWS, taps, deep).astype(np.int64), codes)
        sums -= DOTS[feature].offset * codes.sum((0, 1), dtype=np.int64)
        data, depth = data.astype(wide), depth * 4 // each
    own = np.zeros((len(Row), width), np.float32)
    own[0].view(np.int32)[:] = start = RANDOM.integers(-1000, 1000, width)
    own[1:3], own[3:5], own[5:8] = [[2.0**-10], [3.5]], [[-50.0], [70.0]], [[0.5], [8.0], [2.0]]
    own[8:10] = [[1.0], [200.0]]
    residual, table = RANDOM.integers(0, 256, (ROWS, width), np.uint8), np.zeros((taps, ROWS), np.int64)
    table[:] = data.__array_interface__["data"][0] + data.strides[0] * (
        np.arange(ROWS) * taps + np.arange(taps)[:, None]
    )
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(str(module(feature, llvm.get_process_triple(), depthwise, vectors))),
        machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), host.flatten()),
    )
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 11)(engine.get_function_address("block"))
    numbers = by_quads(own[None], channels)[0] if in_four else own
    plain = (sums + start) * 2.0**-10 + 3.5
    stepped = np.rint(np.clip(plain, -50, 70)) * 0.5 + 8
    for rounds, adds in itertools.product((0, 1), (0, 1)):
        out, targets = np.full((ROWS, width), 99, np.uint8), np.zeros((ROWS, 3), np.int64)
        for n, array in enumerate((out, residual)):
            targets[:, n] = array.__array_interface__["data"][0] + width * np.arange(ROWS)
        addresses = [array.__array_interface__["data"][0] for array in (table, weights, targets, numbers)]
        last = channels if in_four else lanes - 3
        function(addresses[0], taps, depth, addresses[1], addresses[2], 0, 0, last, addresses[3], rounds, adds)
        wanted = np.rint(np.clip((stepped if rounds else plain) + 2.0 * residual * adds, 1, 200))
        np.testing.assert_array_equal(out[:, :channels], wanted[:, :channels])
        assert (out[:, channels:] == 99).all(), "lanes beyond the last channel are written"
