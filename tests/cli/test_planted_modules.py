"""No file of the current folder is executed, whatever its name: not by a command, and not by a process that it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import irrun
from places import SAMPLES

pytestmark = pytest.mark.processes

_MODELS = 40
_PACKAGES = (
    "click",
    "lxml",
    "ml_dtypes",
    "networkx",
    "numpy",
    "rich",
    "threadpoolctl",
    "irrun_plugin",
    "sitecustomize",
)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with models, and beside them a file for each module that Python or irrun could import."""
    for number in range(_MODELS):
        for suffix in (".xml", ".bin"):
            shutil.copy(SAMPLES / f"convnet{suffix}", tmp_path / f"{number}{suffix}")
        shutil.copy(SAMPLES / "image.npy", tmp_path / f"{number}.npy")
    for name in (*sys.stdlib_module_names, *_PACKAGES):
        text = f"open('executed-{name}', 'w').close()\nraise SystemExit('{name} was imported')\n"
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def _executed(folder: Path, *command: str) -> list[str]:
    """Return the planted modules that a command has executed. It must end well."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment["PYTHONPATH"] = str(Path(irrun.__file__).parents[1])
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    found = sorted(file.name for file in folder.glob("executed-*"))
    assert found or done.returncode == 0, done.stdout + done.stderr
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        "check . -j 2",
        "batch 0.xml 0.npy 1.npy 2.npy -o out -j 2",
        "fuzz --count 5 --jobs 2",
        "compare 0.xml exact:1.xml",
        "bisect 0.xml exact:1.xml",
    ],
)
def test_no_planted_file_is_executed(arguments: str, planted: Path) -> None:
    program = shutil.which("irrun", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("irrun is not installed in this environment: no console script")
    assert _executed(planted, program, *arguments.split()) == []


def test_python_m_imports_no_package_from_here(planted: Path) -> None:
    """Python itself imports some modules before irrun begins: those of the standard library are not asked here."""
    for name in sys.stdlib_module_names:
        (planted / f"{name}.py").unlink()
    assert _executed(planted, sys.executable, "-m", "irrun", "check", ".", "-j", "2") == []
