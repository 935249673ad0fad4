"""From the recorded entries to a wheel: object files for each kind of processor, linked to a library of each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import irrun
from ahead.recording import ENTRIES, read
from irrun.fast.machine.ahead import PACKAGE, TARGETS, marker, name_of
from places import IMPORTED

__all__ = ["build", "compile_for"]

PROJECT: Final = Path(__file__).parent / "package"
"""What the wheel is built from, beside the libraries."""


def build(folder: Path, targets: Sequence[str], entries: Path = ENTRIES) -> Path:
    """Write the wheel to ``folder``, with a library of the ``entries`` for each of ``targets``, and return its path.

    Raises CalledProcessError if something cannot be compiled or linked; the compiler's message is on standard error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary) / "project"
        shutil.copytree(PROJECT, project)
        (project / PACKAGE / "version.py").write_text(f'__version__ = "{irrun.__version__}"\n', "utf-8")
        shutil.copy(Path(__file__).parents[2] / "LICENSE", project)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in [pool.submit(_library, name, entries, project / PACKAGE / f"{name}.so") for name in targets]:
                done.result()
        command = [sys.executable, "-c", "import hatchling.build as b, sys; print(b.build_wheel(sys.argv[1]))"]
        made = subprocess.run(
            [*command, str(folder.resolve())], cwd=project, stdout=subprocess.PIPE, text=True, check=True
        )
    return folder / made.stdout.strip().splitlines()[-1]


def _library(target: str, entries: Path, file: Path) -> None:
    """Compile the entries for a kind of processor in a process of its own, and link them."""
    kind = TARGETS[target]
    environment = {
        "NUMBA_CPU_NAME": kind.cpu, "NUMBA_CPU_FEATURES": kind.features,
        "PYTHONPATH": os.pathsep.join(map(str, IMPORTED)),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as objects:
        code = "import sys; from ahead.building import compile_for; compile_for(*sys.argv[1:])"
        command = [sys.executable, "-c", code, target, str(entries), objects]
        subprocess.run(command, env=os.environ | environment, check=True)
        # without libraries, so that functions of the interpreter and of libm are those of the process that loads it
        link = ["gcc", "-shared", "-nostdlib", "-s", "-o", str(file)]
        subprocess.run([*link, *map(str, sorted(Path(objects).glob("*.o")))], check=True)


def compile_for(target: str, entries: str, folder: str) -> None:
    """Write the object files of the entries in a file, for the processor that the environment of this process names."""
    import llvmlite.binding as llvm

    from irrun.fast.machine.compiling import compile
    from irrun.fast.machine.entries import target_machine
    from kernel_calls.kernels import kernels

    known, kind = kernels(), TARGETS[target]
    for number, (base, types) in enumerate(sorted(read(Path(entries)), key=repr)):
        code = compile(known[base].made(), types, name_of(base, types, kind), shared=True)
        (Path(folder) / f"{number}.o").write_bytes(code)
    text = llvm.parse_assembly(f'@"{marker()}" = constant i8 1')
    (Path(folder) / "source.o").write_bytes(target_machine(shared=True).emit_object(text))
