"""Which library multiplies matrices, told without loading it or numpy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path


def asked() -> str:
    """What the environment variable IRRUN_BLAS says: ``numpy``, ``mkl``, or nothing."""
    return os.environ.get("IRRUN_BLAS", "")


def expected() -> str:
    """``mkl`` where the package of that name is installed and not declined, else ``numpy``."""
    return "numpy" if asked() == "numpy" or not any(mkl_libraries()) else "mkl"


def mkl_libraries() -> Iterator[Path]:
    """Where the installed package ``mkl`` says that its library is."""
    for folder in map(Path, sys.path):  # importlib.metadata takes longer than a small model
        for record in folder.glob("mkl-*.dist-info/RECORD"):
            for line in record.read_text(encoding="utf-8").splitlines():
                path = folder / line.split(",")[0]
                if path.name.startswith(("libmkl_rt.", "mkl_rt.")) and path.suffix != ".lib":
                    yield path
