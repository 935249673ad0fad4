"""Copies of irrun, to which tests add what a contributor would add."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from places import ROOT

__all__ = ["copy_of_irrun", "run_commands"]

_CALLS: Final = """
import sys
from irrun.cli import cli

for line in sys.argv[1].splitlines():
    assert not cli.main(line.split(), prog_name="irrun", standalone_mode=False), line
    print("---")
"""
"""Calls of the command line, in one process: it takes longer to start than all of them. Each must succeed."""


def copy_of_irrun(folder: Path) -> Path:
    """Copy the package to a folder, with the bytecode that is up to date, and return the path of the copy."""
    return shutil.copytree(ROOT / "irrun", folder / "irrun")


def run_commands(copy: Path, *lines: str, folder: Path) -> list[str]:
    """Run lines such as ``check model.xml`` with a copy of irrun in a folder, and return what each prints."""
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
    ran = subprocess.run(
        [sys.executable, "-c", _CALLS, "\n".join(lines)],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.split("---\n")[:-1]
