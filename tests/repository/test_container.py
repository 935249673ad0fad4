"""Containerfile builds the wheel of the repository from what it copies, and starts irrun as a user without privileges.

No test builds the image: this takes a registry. The instructions are read as Docker and Podman read them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from places import ROOT
from shell_commands import project


def _instructions() -> list[tuple[str, str]]:
    """Return the name and the arguments of each instruction, without comments and line breaks."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line]


INSTRUCTIONS = _instructions()
STAGES = [position for position, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM"]
BUILD, FINAL = INSTRUCTIONS[STAGES[0] : STAGES[1]], INSTRUCTIONS[STAGES[1] :]


def _copied() -> list[str]:
    return [path for name, words in BUILD if name == "COPY" for path in words.split()[:-1]]


def test_the_instructions_are_in_order() -> None:
    assert [name for name, _ in INSTRUCTIONS[: STAGES[0]]] == ["ARG"], "what FROM names is declared before"
    (version,) = re.findall(r"^PYTHON=(3\.\d+)$", INSTRUCTIONS[0][1])
    assert f"Programming Language :: Python :: {version}" in project()["classifiers"]
    assert [words.split() for name, words in INSTRUCTIONS if name == "FROM"] == [
        ["docker.io/library/python:${PYTHON}-slim", "AS", "build"],
        ["docker.io/library/python:${PYTHON}-slim"],
    ]
    assert [name for name, _ in BUILD] == ["FROM", "WORKDIR", "COPY", "COPY", "RUN"]
    assert [name for name, _ in FINAL] == ["FROM", "ARG", "RUN", "RUN", "USER", "WORKDIR", "ENTRYPOINT"]
    (user,) = (words for name, words in FINAL if name == "USER")
    assert ("RUN", f"useradd --create-home {user}") in FINAL
    (entry,) = (json.loads(words) for name, words in FINAL if name == "ENTRYPOINT")
    assert set(entry) <= project()["scripts"].keys()


def test_the_extras_exist() -> None:
    pages = [(ROOT / name).read_text("utf-8") for name in ("Containerfile", "docs/install.md")]
    named = {extra for page in pages for extras in re.findall(r"EXTRAS=([\w,]+)", page) for extra in extras.split(",")}
    assert len(named) > 1
    assert named <= project()["optional-dependencies"].keys()


@pytest.mark.skipif(sys.platform == "win32", reason="the instruction is a script of a shell")
@pytest.mark.parametrize(("extras", "ending"), [("", ""), ("fast,image", "[fast,image]")])
def test_the_wheel_is_installed_with_extras(extras: str, ending: str, tmp_path: Path) -> None:
    (wheel := tmp_path / "irrun-1.2.3-py3-none-any.whl").touch()
    (script,) = (words for name, words in FINAL if name == "RUN" and "pip install" in words)
    script = re.sub(r"--mount=\S+ ", "", script).replace("/wheels", str(tmp_path)).replace("pip install", "echo")
    done = subprocess.run(
        ["sh", "-c", script],
        env={"EXTRAS": extras, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"--no-cache-dir {wheel}{ending}\n"


def test_the_first_stage_builds_the_wheel_of_the_repository(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    source = tmp_path / "source"
    source.mkdir()
    for name in _copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, source / name)
    build = "import hatchling.build as b, sys; print(b.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=source, capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(tmp_path / done.stdout.splitlines()[-1]) as wheel:
        held = set(wheel.namelist())
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "irrun").rglob("*") if path.is_file()}
    assert {name for name in held if name.startswith("irrun/")} == {f for f in files if "__pycache__" not in f}
    licenses = [name for name in held if ".dist-info/licenses/" in name]
    assert sum(name.endswith("/LICENSE") for name in licenses) == 1
    assert len(licenses) > 1, "also those of what the wheel holds of others"
