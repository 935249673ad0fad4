"""Print how many lines each folder has, next to its budget: ``python -m tools sizes``. Exits with 1 above a budget.

``tests/repository/test_sizes.py`` holds modules and functions to the limits below.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from places import ROOT

__all__ = ["BUDGETS", "MAX_LINES", "MAX_PARAMETERS", "MAX_STATEMENTS", "Function", "functions", "lines", "modules"]

MAX_LINES: Final = 450
"""The most lines of a module: about what a reader keeps in mind, and scrolls through in a minute."""
MAX_STATEMENTS: Final = 60
"""The most statements of a function, those of nested functions included."""
MAX_PARAMETERS: Final = 10
"""The most parameters of a function, without ``self`` and ``cls``."""

BUDGETS: Final = {
    "irrun": 1_500,  # api, codes, diagnostics, files, dask, pytest_plugin, __init__, __main__; targets, precisions
    "irrun/arrays": 350,
    "irrun/base": 1_170,  # with the places and contents of caches, and of elements by byte
    "irrun/build": 1_250,
    "irrun/checking": 3_500,  # with runtime options, frozen dims
    "irrun/cli": 9_550,  # options of one meaning, pictures, classes, results in files, tables whose names all differ; export, passport
    "irrun/compat": 3_650,
    "irrun/conformance": 1_450,  # claims of engines, causes of failures
    "irrun/debug": 14_950,  # budgets of error, runtime graphs, weights, tokens, schedules of a server; causes that runs prove, storage
    "irrun/departures": 3_000,  # a small file for each departure that predicts values
    "irrun/specification": 2_450,  # a function for each behaviour that a page leaves open
    "irrun/engines": 3_200,  # runtime graphs; transformations, saved; one table of kinds, with what each reads and shows
    "irrun/explorer": 250,
    "irrun/export": 4_150,  # a converter for each operation that ONNX can say, and functions for others
    "irrun/extensions": 7_700,  # patterns are bounded before they are compiled; internal operations
    "irrun/fast": 14_500,  # tokens as one step each, codes times digits, pictures in tiles; with the passes of a plan that only compiled kernels need, networks in integers, products in bf16 and i8, tiles, U-Nets and transformers as one step
    "irrun/fleet": 2_000,
    "irrun/fuzz": 1_800,  # layers that are explained are taken out, and the rest is judged
    "irrun/genai": 2_200,  # texts of both sides; templates run in a process of their own; several texts at once
    "irrun/growing": 3_550,  # idioms of converters, habits of networks, layers of internal operations
    "irrun/inference": 1_500,
    "irrun/ir": 3_150,
    "irrun/kernels": 3_870,
    "irrun/model": 900,
    "irrun/opdef": 1_680,  # with revisions of pages, and caches
    "irrun/ops": 13_500,
    "irrun/planning": 3_095,  # caches that a layer overwrites; precisions, copies of chains that only move elements
    "irrun/report": 1_950,  # groups in the order of the graph, runtime graphs, errors to expect
    "irrun/running": 2_350,  # runs before and after a fix
    "irrun/server": 1_850,  # editors and agents: the neighbourhood of an edit is a small document of its own
    "irrun/surgery": 3_050,  # simplification, decompositions, engines, frozen dims also in bodies, storage
    "irrun/targets": 2_160,  # releases of OpenVINO, what each infers when it reads and compiles, rules of what each refuses: of a layer, a kernel, weights, an attention; limits of devices, passports
    "irrun/testing": 950,
    "irrun/types": 850,
    "tests": 75_350,  # internal operations, editors, widths of tables; ONNX, conversions, targets, models with open dims
    "tools": 12_745,  # kernel_calls, planted_faults, adjudication, pairs, served models, releases, conversions
    "benchmarks": 2_850,  # lanes, the state of decoders, budgets of networks, exports
}
"""The most lines of Python of each folder. A change that needs more raises the number here, and says why."""

FORMATTED_BY_HAND: Final = 349
"""The most comments in ``irrun`` that keep the formatter off. There were 448 of them in November 2026."""


@dataclass(frozen=True)
class Function:
    """A function of a module, with what the limits count."""

    name: str
    statements: int
    parameters: int
    is_command: bool
    """Whether click passes the parameters: one for each option, declared in the decorators above it."""


def modules(*folders: str) -> Iterator[Path]:
    """Yield the modules of folders of the repository, in order."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def lines(path: Path) -> int:
    """Return the number of lines of a file."""
    return path.read_text("utf-8").count("\n")


def functions(path: Path) -> Iterator[Function]:
    """Yield the functions of a module, methods and nested functions included."""
    for node in _nested(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(node.name, _statements(node), _parameters(node.args), _is_command(node))


def _nested(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements in a module or a statement, at any depth. They need no look at expressions."""
    for block in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        for name in ("body", "orelse", "finalbody"):
            for inner in getattr(block, name, ()):
                yield inner
                yield from _nested(inner)


def _statements(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return sum(1 for _ in _nested(node)) - (ast.get_docstring(node) is not None)


def _parameters(arguments: ast.arguments) -> int:
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    return sum(argument is not None and argument.arg not in ("self", "cls") for argument in every)


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    calls = (decorator.func for decorator in node.decorator_list if isinstance(decorator, ast.Call))
    return any(isinstance(call, ast.Attribute) and call.attr == "command" for call in calls)


def _folder(path: Path) -> str:
    """Return the key of ``BUDGETS`` that counts a file."""
    top, *inner = path.relative_to(ROOT).parts
    return f"{top}/{inner[0]}" if top == "irrun" and len(inner) > 1 else top


def main() -> None:
    """Print the table."""
    counted = dict.fromkeys(BUDGETS, 0)
    for path in modules("irrun", "tests", "tools", "benchmarks"):
        counted[_folder(path)] = counted.get(_folder(path), 0) + lines(path)
    print(f"{'folder':<20}{'lines':>8}{'budget':>8}")
    for folder, number in counted.items():
        budget = BUDGETS.get(folder, 0)
        print(f"{folder:<20}{number:>8,}{budget:>8,}{'  over' * (number > budget)}")
    by_hand = sum(path.read_text("utf-8").count("# fmt: skip") for path in modules("irrun"))
    print(f"{'fmt: skip in irrun':<20}{by_hand:>8,}{FORMATTED_BY_HAND:>8,}{'  over' * (by_hand > FORMATTED_BY_HAND)}")
    sys.exit(by_hand > FORMATTED_BY_HAND or any(number > BUDGETS.get(name, 0) for name, number in counted.items()))


if __name__ == "__main__":
    main()
