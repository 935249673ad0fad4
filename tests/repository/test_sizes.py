"""Modules and functions stay small enough to be read: the limits of ``tools/sizes.py``, and the exceptions with reasons."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import sizes
from places import ROOT

LONG_MODULES: Final = {
    "irrun/compat/openvino/_building/nodes.py": "to split",
    "irrun/compat/openvino/_building/preprocess.py": "to split",
    "tests/checking/test_why.py": "to split",
    "tests/cli/test_run.py": "to split",
    "tests/conformance/composed.py": "to split",
    "tests/debug/test_diff.py": "to split",
    "tests/debug/test_precision.py": "to split",
    "tests/help/kit.py": "to split",
    "tests/ir/test_parse.py": "to split",
    "tests/running/test_executor.py": "to split",
}
"""Modules that may have more than ``sizes.MAX_LINES`` lines, and why."""

LONG_SIGNATURES: Final = {
    "irrun/api.py compile": "public: a keyword for each way to plan and run a model",
    "irrun/debug/comparison.py compare": "public: a keyword for each option of `irrun compare`",
    "irrun/debug/low_precision/simulate.py precision": "public: a keyword for each option of `irrun precision`",
    "irrun/debug/tokens/comparison.py compare_tokens": "public: a keyword for each option of `irrun compare --tokens`",
    "irrun/fleet/batch.py prepare": "a keyword for each option of `irrun batch`",
    "irrun/fast/attention/attend.py _attend": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/attention/weights.py _weigh_block": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/block.py _multiply_block": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/block.py _block": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/block.py _codes": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/block.py _multiply_codes": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/codes.py _multiply_part": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/convolution/copies.py _pad": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/convolution/table_block.py _find_taps": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/convolution/window_block.py _window_block": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/convolution/window_tiles.py multiply_band": "machine code: arrays and numbers alone are passed to compiled functions",
    "irrun/fast/convolution/window_tiles.py multiply_windows_in_tiles": "machine code: arrays and numbers alone are passed to compiled functions",
    "irrun/fast/convolution/windows.py convolve": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/convolution/windows.py convolve_columns": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/convolution/windows.py convolve_depthwise": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/convolution/windows.py multiply_windows": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/convolution/winograd.py convolve_3x3": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/convolution/winograd_block.py _interpolate_tile": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/tokens/few_queries.py _attend": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/tokens/paged.py _attend": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/groups.py _scale": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/integers/block.py _integer_block": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/integers/changes.py convolve_bytes_changed": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/integers/quads.py _quad_block": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/integers/summed_block.py _summed_block": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/integers/windows.py convolve_bytes": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/integers/windows.py convolve_bytes_depthwise": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/panels.py multiply_panel": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/panels.py multiply_part": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/precision/bf16.py multiply_rounded": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/precision/codes_block.py _multiply_quantized": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/precision/codes_block.py _quantized": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/precision/digits.py _multiply_part": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/precision/i8.py _multiply_part": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/precision/rounded_codes.py _multiply_part": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/tokens/few_queries.py _attend_to_past": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/tokens/rotary.py _rotate_rows": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/precision/bf16.py multiply_pairs": "machine code: an entry takes only arrays and numbers",
    "irrun/fast/precision/tiles.py _multiply_tiles": "emits LLVM code: each argument is a value in a register",
    "irrun/fast/precision/tiles.py multiply_rows": "compiled code calls it: each argument is a value in a register",
    "irrun/report/collect.py collect": "to split",
    "tests/kernels/test_matmul.py __call__": "to split",
}
"""Functions that may have more than ``sizes.MAX_PARAMETERS`` parameters, and why. Commands of click need no entry."""

MODULES: Final = [*sizes.modules("irrun", "tests", "tools", "benchmarks", "docs")]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _functions() -> list[tuple[str, sizes.Function]]:
    """Return every function behind its module and its name. Parsing all modules takes seconds, so it is done once."""
    return [(f"{_name(path)} {function.name}", function) for path in MODULES for function in sizes.functions(path)]


def test_no_module_is_long() -> None:
    long = {_name(path) for path in MODULES if sizes.lines(path) > sizes.MAX_LINES}
    assert sorted(long - LONG_MODULES.keys()) == [], f"split modules of more than {sizes.MAX_LINES} lines"


def test_no_function_is_long() -> None:
    assert [(name, f.statements) for name, f in _functions() if f.statements > sizes.MAX_STATEMENTS] == []


def test_no_signature_is_long() -> None:
    long = {name for name, f in _functions() if f.parameters > sizes.MAX_PARAMETERS and not f.is_command}
    assert sorted(long - LONG_SIGNATURES.keys()) == [], f"pass a dataclass for more than {sizes.MAX_PARAMETERS} values"


def test_every_exception_is_needed() -> None:
    """Whoever splits a module, or shortens a signature, removes its exception."""
    assert {name for name in LONG_MODULES if sizes.lines(ROOT / name) > sizes.MAX_LINES} == LONG_MODULES.keys()
    assert {name for name, f in _functions() if f.parameters > sizes.MAX_PARAMETERS} >= LONG_SIGNATURES.keys()


def test_every_folder_has_a_budget() -> None:
    folders = {f"irrun/{path.name}" for path in (ROOT / "irrun").iterdir() if [*path.rglob("*.py")]}
    assert folders | {"irrun", "tests", "tools", "benchmarks"} == sizes.BUDGETS.keys()


def test_what_is_counted(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '@click.command("run")\n@click.option("--a")\ndef command(a):\n    """Say."""\n    def inner():\n        return 1\n'
        "    return inner()\n\nclass C:\n    def method(self, a, /, b, *c, d, **e):\n        pass\n"
    )
    assert sizes.lines(module) == 11
    assert {(f.name, f.statements, f.parameters, f.is_command) for f in sizes.functions(module)} == {
        ("command", 3, 1, True),
        ("inner", 1, 0, False),
        ("method", 1, 5, False),
    }
