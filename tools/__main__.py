"""Run a program for developers: ``python -m tools NAME [ARGUMENTS]``. Without a name, list all of them.

A program is a module of this folder, or a module of the tests that writes what it holds against the code. Each finds
the helpers of the tests, whatever folder it lies in.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "help"), str(Path(__file__).parent)]

from places import IMPORTED, ROOT
from programs import PROGRAMS


def main() -> None:
    """Run the program that the first argument names; with any other first argument, print the list and exit with 2."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in PROGRAMS:
        print("usage: python -m tools NAME [ARGUMENTS]\n")
        for program, file in PROGRAMS.items():
            summary = (ast.get_docstring(ast.parse((ROOT / file).read_text("utf-8"))) or "").splitlines()[0]
            print(f"  {program:<18} {summary.partition(': `')[0].rstrip('.:')}")
        sys.exit(0 if name in ("", "-h", "--help") else 2)
    sys.path[:0] = map(str, IMPORTED)
    sys.argv = [f"python -m tools {name}", *sys.argv[2:]]
    runpy.run_path(str(ROOT / PROGRAMS[name]), run_name="__main__")


if __name__ == "__main__":
    main()
