"""What a kernel's machine code and its caller agree on: types, results, and the processor for which it is compiled.

An entry is the function that Python calls (see ``compiling``, which makes it, and ``machine_code``, which calls it).
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from functools import cache
from typing import Any, Final

import numpy as np

from irrun.base.processor import may_use_tiles
from irrun.fast.machine import ahead
from irrun.fast.machine.library import binding

__all__ = [
    "FAILED",
    "MAX_ARGUMENT_BYTES",
    "OTHER_TYPES",
    "SCALARS",
    "ArgumentType",
    "architecture",
    "processor",
    "target_machine",
]

SCALARS: Final[tuple[type, ...]] = (bool, int, float, np.float32)
"""The types of numbers that a kernel accepts. An entry finds their addresses in its second argument, after that of
``np.ndarray``."""
OTHER_TYPES: Final = -1
"""What an entry returns if its arguments have other types than those it was compiled for. It has done nothing."""
FAILED: Final = -2
"""What an entry returns if memory could not be allocated."""
MAX_ARGUMENT_BYTES: Final = 1 << 10
"""The most bytes of the arguments of a call."""
ArgumentType = tuple[str, int, bool] | str
"""Of an array, the ``str`` of the dtype, the number of axes, and whether it is C-contiguous. The name of the type of a
number."""


def architecture() -> str:
    """Return the name of the architecture as LLVM writes it: ``x86_64`` or ``aarch64``, for example."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


@cache
def processor() -> tuple[str, str]:
    """Return the name of the processor to compile for, and its features as LLVM writes them: ``+avx2,-avx512f``.

    As for numba, NUMBA_CPU_NAME and NUMBA_CPU_FEATURES take the place of what this machine has. Where machine code that
    was made ahead of time is used, kernels that are compiled beside it use no more than its features.
    """
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if name is not None and features is not None:
        return name, features
    if (library := ahead.library()) is not None:
        return library.target.cpu, library.target.features
    if features is None:
        features = _own_features() if name is None else ""
    return name or binding().get_host_cpu_name(), features


def _own_features() -> str:
    """Return the features that this process may use."""
    features = binding().get_host_cpu_features()
    if not may_use_tiles():
        features.update((name, False) for name in features if name.startswith("amx"))
    wide = ",-prefer-256-bit" if features.get("avx512f") else ""  # LLVM would halve the vectors for some of Intel's
    return features.flatten() + wide


def target_machine(*, shared: bool = False) -> Any:
    """Return what LLVM needs to make code for ``processor()``: for this process, or ``shared`` for a library."""
    _initialise()
    llvm, (name, features) = binding(), processor()
    target, model = llvm.Target.from_triple(llvm.get_process_triple()), "small" if shared else "jitdefault"
    position = "pic" if shared else "default"
    return target.create_target_machine(name, features, opt=3, reloc=position, codemodel=model, jit=not shared)


@cache
def _initialise() -> None:
    llvm = binding()
    with suppress(RuntimeError):  # newer versions of llvmlite need no call
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
