"""Find out which library multiplies matrices, without loading it or numpy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path


def asked() -> str:
    """Return the value of the environment variable IRRUN_BLAS, or an empty string if it is not set."""
    return os.environ.get("IRRUN_BLAS", "")


def expected() -> str:
    """Return ``mkl`` if that package is installed and IRRUN_BLAS is not ``numpy``, and ``numpy`` otherwise."""
    return "numpy" if asked() == "numpy" or not any(mkl_libraries()) else "mkl"


def mkl_libraries() -> Iterator[Path]:
    """Yield the paths of the library in the installed package ``mkl``, from its list of files."""
    for folder in map(Path, sys.path):  # importing importlib.metadata takes longer than a small model
        for record in folder.glob("mkl-*.dist-info/RECORD"):
            for line in record.read_text(encoding="utf-8").splitlines():
                path = folder / line.split(",")[0]
                if path.name.startswith(("libmkl_rt.", "mkl_rt.")) and path.suffix != ".lib":
                    yield path
