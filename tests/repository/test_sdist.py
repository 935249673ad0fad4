"""The sdist holds what git holds, and its tests run where it is unpacked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from places import ROOT

GENERATED = {"PKG-INFO"}
"""Files of the sdist that hatchling writes."""


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """The files that git holds."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no checkout: git does not say which files belong to the project")
    return [file for file in done.stdout.split("\0") if (ROOT / file).is_file()]


@pytest.fixture(scope="module")
def built(tracked: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders, each with the sdist and the wheel, built from copies of what git holds."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the sdist, is not installed")
    found = []
    for name in ("first", "second"):
        folder = tmp_path_factory.mktemp(name)
        for file in tracked:
            (folder / "source" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, folder / "source" / file)
        build = "import hatchling.build as b, sys; b.build_sdist(sys.argv[1]); b.build_wheel(sys.argv[1])"
        subprocess.run(
            [sys.executable, "-c", build, str(folder)],
            cwd=folder / "source",
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(folder)
    return found


@pytest.fixture(scope="module")
def unpacked(built: list[Path]) -> Path:
    """The sdist, unpacked."""
    folder = built[0]
    (archive,) = folder.glob("irrun-*.tar.gz")
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.3 and older have none
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(folder / "unpacked")
    (found,) = (folder / "unpacked").iterdir()
    return found


def test_builds_are_reproducible(built: list[Path]) -> None:
    """The same sources give the same bytes, whatever the times of the files and the folder."""
    first, second = ({path.name: path.read_bytes() for path in folder.glob("irrun-*")} for folder in built)
    assert len(first) == 2
    assert first == second


def test_the_wheel_holds_the_package_and_the_licences(built: list[Path], tracked: list[str]) -> None:
    (wheel,) = built[0].glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {file for file in held if file.startswith("irrun/")} == {
        file for file in tracked if file.startswith("irrun/")
    }
    licences = {file.partition("/licenses/")[2] for file in held} - {""}
    assert licences == {"LICENSE", *(file for file in tracked if file.endswith(".LEGAL.txt"))}


def test_it_holds_what_git_holds(tracked: list[str], unpacked: Path) -> None:
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert files - GENERATED == {*tracked}


@pytest.mark.slow
def test_its_tests_run(unpacked: Path) -> None:
    """Some tests of each kind, with the data files that they need; .github/workflows/release.yml runs the lane."""
    chosen = [
        "cli",
        "ops/test_broadcast.py",
        "ops/test_tile.py",
        "repository/test_samples.py",
        "repository/test_site.py",
        "repository/test_workflows.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{name}" for name in chosen)],
        cwd=unpacked, env=os.environ | {"PYTHONPATH": str(unpacked)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
