"""The sdist holds what git holds, and its tests run where it is unpacked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from places import ROOT

GENERATED = {"MANIFEST.in", "PKG-INFO", "setup.cfg"}
"""Files at the root of the sdist that setuptools writes or, for MANIFEST.in, also reads."""


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """The files that git holds."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no checkout: git does not say which files belong to the project")
    return [file for file in done.stdout.split("\0") if (ROOT / file).is_file()]


@pytest.fixture(scope="module")
def unpacked(tracked: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, built from a copy of the checkout, since a build writes into its sources, and unpacked."""
    pytest.importorskip("setuptools", "77", reason="setuptools 77, which builds the sdist, is not installed")
    folder = tmp_path_factory.mktemp("sdist")
    for file in tracked:
        (folder / "source" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, folder / "source" / file)
    build = "import setuptools.build_meta as b, sys; b.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=folder / "source", capture_output=True, text=True, check=True
    )
    (archive,) = folder.glob("irrun-*.tar.gz")
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.3 and older have none
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(folder / "unpacked")
    (found,) = (folder / "unpacked").iterdir()
    return found


def test_it_holds_what_git_holds(tracked: list[str], unpacked: Path) -> None:
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {file for file in files if not file.startswith("irrun.egg-info/")} - GENERATED == {*tracked} - GENERATED


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
