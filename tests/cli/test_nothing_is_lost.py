"""Commands refuse to overwrite what they read, and every file is written aside and renamed."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import numpy as np
import pytest

import irrun
from places import SAMPLES

PACKAGE = Path(irrun.__file__).parent


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two models, inputs in each form, and tolerances; ``link.npz`` and ``link.xml`` are other names."""
    monkeypatch.chdir(tmp_path)
    for name in ("convnet", "elementwise"):
        for ending in (".xml", ".bin"):
            shutil.copy(SAMPLES / f"{name}{ending}", tmp_path)
    image = np.zeros((1, 1, 28, 28), np.float32)
    np.save("in.npy", image)
    np.savez("in.npz", image=image)
    Path("samples").mkdir()
    np.save("samples/image.npy", image)
    Path("tolerances.toml").write_text("rtol = 0.1\n")
    Path("link.npz").symlink_to("in.npz")
    Path("link.xml").symlink_to("convnet.xml")
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        "extract convnet.xml --to logits -o convnet.xml",
        "extract convnet.xml --to logits -o link.xml",
        "extract elementwise.xml -w convnet.bin -o convnet.xml",
        "edit convnet.xml --fold -o convnet.xml",
        "edit elementwise.xml --merge convnet.xml -o convnet.xml",
        "run convnet.xml -i image=in.npy -o in.npy",
        "run convnet.xml -i in.npz -o in.npz",
        "run convnet.xml -i in.npz -o link.npz",
        "run convnet.xml -i image=in.npz:image -o ./in.npz",
        "run convnet.xml --trace convnet.bin",
        "run convnet.xml -i in.npz --trace in.npz",
        "run convnet.xml -i image=samples/image.npy --dump samples",
        "batch convnet.xml in.npy -o in.npy --overwrite",
        "batch convnet.xml samples -o samples --overwrite",
        "report convnet.xml -i in.npz -o in.npz",
        "report convnet.xml --compare convnet.xml --tolerances tolerances.toml -o tolerances.toml",
        "precision convnet.xml -i in.npz --kept in.npz",
        "precision convnet.xml --ignored-scope convnet.xml",
        "compare convnet.xml elementwise.xml --save elementwise.bin",
        "compare exact[weights=in.npz]:convnet.xml convnet.xml --save in.npz",
        "compare convnet.xml convnet.xml --tolerances tolerances.toml --save tolerances.toml",
        "bisect convnet.xml convnet.xml -o samples",
        "show convnet.xml --graph convnet.xml",
        "conformance run exact --suite in.npz -o in.npz",
        "conformance report in.npz --suite in.npz -o in.npz",
    ],
)
def test_a_command_refuses_to_overwrite_what_it_reads(command, folder, call):
    before = contents(folder)
    result = call(*command.split())
    assert result.exit_code == 2, result.output
    assert "choose another" in result.stderr or "pass a folder" in result.stderr
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["extract convnet.xml --to logits", "edit convnet.xml --rename-layer flatten=flat"])
def test_force_replaces_a_model_by_its_own_part(command, folder, call):
    result = call(*command.split(), "-o", "convnet.xml", "--force")
    assert result.exit_code == 0, result.output
    assert not irrun.check("convnet.xml").errors
    names = {layer.name for layer in irrun.read_model("convnet.xml").layers.values()}
    assert ("probabilities" not in names) if command.startswith("extract") else ("flat" in names)
    assert call("run", "convnet.xml", "-i", "in.npz").exit_code == 0


def test_a_new_file_needs_no_force(folder, call):
    before = contents(folder)
    for command in (
        "extract convnet.xml --to logits -o part.xml",
        "run convnet.xml -i in.npz -o out.npz --trace trace.json --dump values",
        "show convnet.xml --graph graph.svg",
    ):
        assert call(*command.split()).exit_code == 0
        assert call(*command.split()).exit_code == 0  # and again over its own result
    assert {path: data for path, data in contents(folder).items() if path in before} == before


IN_PLACE = {
    "files.py": "the helper itself",
    "conformance/running.py": "appends to a file of results",
    "debug/shelf.py": "values of a run, in a private folder",
    "engines/process.py": "the log of an engine, in a private folder",
    "engines/values.py": "arrays passed to an engine, in a private folder",
    "engines/folder.py": "the lock of a private folder",
    "engines/harnesses/serve.py": "arrays passed from an engine; it imports nothing of irrun",
    "export/write.py": "a file in a private folder, which replaces that of the user when it is whole",
    "fleet/batch.py": "the lock of a folder of results",
    "fleet/inputs.py": "an unpacked input, in a private folder",
    "fleet/trees.py": "a file of the kernel",
}
"""The files that write without the helper, and why."""


def writes(tree: ast.AST) -> bool:
    """Return whether code opens a file to write, or writes one as a whole."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("write_text", "write_bytes"):
            return True
        modes = {a.value for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, ast.Constant)}
        is_archive = isinstance(node.func, ast.Attribute) and "archive" in ast.unparse(node.func.value)
        if name == "open" and not is_archive and modes & {"w", "wb", "w+b", "x", "xb", "x+b", "a", "ab"}:
            return True
    return False


def test_one_helper_writes_every_file():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if writes(ast.parse(path.read_text("utf-8")))
    }
    assert found == set(IN_PLACE)
