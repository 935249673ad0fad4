"""The extension of docs/extensions.md, installed as a user would install it: a package of its own with an entry point."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import page_blocks
from shell_commands import ROOT

pytestmark = pytest.mark.processes

PAGE = ROOT / "docs" / "extensions.md"
FILES = {block.file: block.code for block in page_blocks.blocks(PAGE) if block.file}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH, into which pip has installed the package, without a network."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    folder = tmp_path_factory.mktemp("extension")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "--no-deps"]
    done = subprocess.run(
        [*pip, "--target", str(folder / "site"), str(folder / "reversing")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def _python(path: list[Path], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = page_blocks.environment(ROOT) | {"PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT]))}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        encoding="utf-8", check=False,
    )  # fmt: skip


MAKE = """
import irrun
from irrun import build as b

texts = b.StringTensorUnpack(b.parameter([None], "string", name="texts"))
irrun.save_model(b.model(b.StringTensorPack(*b.ReverseBytes(*texts))), "reverse.xml")
"""


@pytest.fixture(scope="module")
def model(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the operation of the package, built without importing it."""
    folder = tmp_path_factory.mktemp("reverse")
    done = _python([installed], folder, "-c", MAKE)
    assert done.returncode == 0, done.stderr
    return folder / "reverse.xml"


def test_the_page_has_the_whole_package() -> None:
    assert sorted(FILES) == ["reversing/pyproject.toml", "reversing/reversing.py"]


def test_it_is_found_by_its_entry_point(installed: Path, model: Path) -> None:
    assert (installed / "reversing.py").is_file()
    assert 'type="ReverseBytes" version="extension"' in model.read_text("utf-8")
    for arguments, expected in (
        (("check", "reverse.xml"), "0 errors"),
        (("run", "reverse.xml", "-i", 'texts=["abc", "", "irrun"]'), "cba"),
        (("op", "ReverseBytes"), "The begins and ends have one shape"),
    ):
        done = _python([installed], model.parent, "-m", "irrun", *arguments)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout + done.stderr


@pytest.mark.parametrize("exact", [False, True])
def test_it_runs(exact: bool, installed: Path, model: Path) -> None:
    code = f"import irrun, json; y = irrun.compile('reverse.xml', exact={exact}, strict=True)([['abc', '', 'é']])[0]"
    done = _python([installed], model.parent, "-c", f"{code}; print(json.dumps(y.tolist()))")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["cba", "", "\udca9\udcc3"]


SPANS = """
import irrun
from irrun import build as b

inputs = [b.parameter([2], type, name=name) for name, type in (("begins", "i32"), ("ends", "i32"), ("chars", "u8"))]
irrun.save_model(b.model(list(b.ReverseBytes(*inputs, name="reverse"))), "spans.xml")
"""


def test_its_clauses_are_checked(installed: Path, tmp_path: Path) -> None:
    done = _python([installed], tmp_path, "-c", SPANS)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "spans.xml"
    head, ends, chars, reverse = re.split(r'(?=<layer id="\d+" name="(?:ends|chars|reverse)")', path.read_text("utf-8"))
    ends = ends.replace('shape="2"', 'shape="3"').replace("<dim>2</dim>", "<dim>3</dim>")
    before, second, after = reverse.split("<dim>2</dim>", 2)
    reverse = f"{before}<dim>2</dim>{second}<dim>3</dim>{after}"  # the port that reads them
    path.write_text(head + ends + chars + reverse, "utf-8")
    done = _python([installed], tmp_path, "-m", "irrun", "check", "spans.xml", "--format", "json")
    assert done.returncode == 1, done.stderr
    findings = json.loads(done.stdout)["diagnostics"]
    found = [(finding["code"], finding["layer"], finding["label"]) for finding in findings]
    assert ("IR403", "reverse", "C1") in found


def test_without_the_package_the_layer_is_unknown(model: Path) -> None:
    done = _python([], model.parent, "-m", "irrun", "check", "reverse.xml")
    assert done.returncode == 3
    assert "IR201" in done.stdout
    assert "ReverseBytes" in done.stdout
