"""The pytest plugin, on the sample project: what passes, what a failure shows, how goldens are written."""

import gc
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irrun.types import ELEMENT_TYPES
from nets import Net
from places import ROOT

pytestmark = pytest.mark.processes

PROJECT = ROOT / "samples" / "pytest_project"
ALONE = ["-p", "irrun.pytest_plugin", "-p", "no:cacheprovider"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__", ".*")))


def _environment(ci: bool) -> dict[str, str]:
    """Return an environment in which pytest loads only the plugins that the command line names."""
    kept = {k: v for k, v in os.environ.items() if k not in ("CI", "COLUMNS") and not k.startswith("PYTEST_")}
    return kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | ({"CI": "true"} if ci else {})


def apart(project: Path, *arguments: str, ci: bool = False) -> str:
    """What pytest says in a process of its own, all tests passing."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *ALONE, *arguments],
        cwd=project, env=_environment(ci), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


Run = Callable[..., str]


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """What pytest says of the models of the project; within this process, for speed."""

    def run(*arguments: str, ci: bool = False, status: int = 0) -> str:
        monkeypatch.chdir(project)
        with monkeypatch.context() as m:
            for key in os.environ.keys() - _environment(ci).keys():
                m.delenv(key)
            for key, value in _environment(ci).items():
                m.setenv(key, value)
            gc.freeze()  # pytest ends with five full collections, which would go through all that the tests have made
            found = pytest.main(["-q", *ALONE, "models", *arguments])
        said = capsys.readouterr()
        assert found == status, said.out + said.err
        return said.out + said.err

    return run


def ini(project: Path, *lines: str) -> None:
    (project / "pyproject.toml").unlink(missing_ok=True)
    (project / "pytest.ini").write_text("\n".join(["[pytest]", *lines, ""]))


def alter(project: Path) -> None:
    """The weight in the middle of edges.xml, -4, becomes -4.5."""
    path = project / "models" / "edges.bin"
    weights = np.frombuffer(path.read_bytes()[:36], np.float32).copy()
    assert weights[4] == -4
    weights[4] = -4.5
    path.write_bytes(weights.tobytes() + path.read_bytes()[36:])


def test_passes(project: Path) -> None:
    said = apart(project, "-v", ci=True)
    assert "models/edges.xml::check PASSED" in said
    assert "7 passed" in said


def _blurred(text: str) -> str:
    """Without the last digits, which differ from machine to machine."""
    return re.sub(r"(\d\.\d{3})\d+", r"\1", text)


def test_an_altered_weight_fails_readably(project: Path, run: Run) -> None:
    alter(project)
    said = run(status=1)
    assert "1 failed, 3 passed" in said
    (shown,) = re.findall(r"(models/edges.xml: 2 of 2 .*?)```", (PROJECT / "README.md").read_text("utf-8"), re.DOTALL)
    assert _blurred(shown) in _blurred(said)
    assert "pytest_plugin.py" not in said.partition("short test summary")[0]


def test_goldens_are_updated(project: Path, run: Run) -> None:
    untouched = (project / "models" / "classifier.npz").read_bytes()
    alter(project)
    said = run("--irrun-update")
    assert "irrun: wrote models/edges.npz" in said
    assert "classifier.npz" not in said
    assert (project / "models" / "classifier.npz").read_bytes() == untouched
    run()
    again = (project / "models" / "edges.npz").read_bytes()
    (project / "models" / "edges.npz").unlink()
    run("--irrun-update")  # inputs are drawn alike, so the file is the same
    assert (project / "models" / "edges.npz").read_bytes() == again
    assert not [path for path in (project / "models").iterdir() if path.name.startswith(".")]


def test_missing_goldens(project: Path, run: Run) -> None:
    (project / "models" / "edges.npz").unlink()
    assert "1 skipped" in run()
    assert "edges.npz has no golden output edges, strongest" in run(ci=True, status=1)
    assert not (project / "models" / "edges.npz").exists()
    assert "is refused in CI" in run("--irrun-update", ci=True, status=4)


def test_one_golden_is_missing(project: Path, run: Run) -> None:
    path = project / "models" / "edges.npz"
    with np.load(path) as file:
        arrays: dict[str, np.ndarray] = {name: file[name] for name in file if name != "out:strongest"}
    np.savez(path, **arrays)  # type: ignore[arg-type]
    assert "1 skipped" in run()
    assert "no golden output strongest" in run(ci=True, status=1)


def test_each_case_begins_as_before_the_first_run(project: Path, run: Run) -> None:
    """A model that adds up its inputs gives for each of two cases what it gives for its first input."""
    net = Net()
    x = net.parameter("f32", "2", name="x", names="x")
    state: Any = {"variable_id": "total", "variable_type": "f32", "variable_shape": "2"}
    zeros = net.const("f32", "2", np.zeros(2, np.float32).tobytes())
    total = net.add("ReadValue", [zeros], [("FP32", "2")], opset="opset6", **state)
    total = net.add("Add", [x, total], [("FP32", "2")], names="total", auto_broadcast="numpy")
    net.add("Assign", [total], [("FP32", "2")], opset="opset6", variable_id="total")
    net.result(total)
    net.save(project / "models", "total")
    numbers = np.array([1, 2], np.float32)
    for name in ("total.npz", "total.again.npz"):
        np.savez(project / "models" / name, **{"x": numbers, "out:total": numbers})  # type: ignore[arg-type]
    assert "3 passed" in run("-k", "total")


def test_several_cases_and_what_is_not_asked_for(project: Path, run: Run) -> None:
    models = project / "models"
    shutil.copy(models / "edges.npz", models / "edges.twice.npz")
    shutil.copy(models / "edges.npz", models / "edges.v2.npz")  # belongs to the model below
    for suffix in (".xml", ".bin"):
        shutil.copy((models / "edges.xml").with_suffix(suffix), models / f"edges.v2{suffix}")
    (models / "other").mkdir()
    (models / "other" / "other.xml").write_text("<a/>")
    ini(project, "irrun_models = models/*.xml")
    listed = run("--collect-only").splitlines()
    assert [line for line in listed if "edges" in line and "models/" in line] == [
        "models/edges.v2.xml::check", "models/edges.v2.xml::edges.v2.npz",
        "models/edges.xml::check", "models/edges.xml::edges.npz", "models/edges.xml::edges.twice.npz",
    ]  # fmt: skip
    assert not any("other.xml" in line for line in listed)


def test_findings_fail_the_check(project: Path, run: Run) -> None:
    text = (project / "models" / "edges.xml").read_text()
    at = text.rindex("<dim>6</dim>", 0, text.index("</output>", text.index('type="Abs"')))
    (project / "models" / "edges.xml").write_text(text[:at] + "<dim>7</dim>" + text[at + 12 :])
    said = run(status=1)
    assert "error[IR402 dims-mismatch]: Abs" in said or "error[IR401 dims-mismatch]" in said
    assert "<dim>7</dim>" in said
    ini(project, "irrun_models = models", "irrun_allow = IR401 IR402")
    assert "4 passed" in run()


def test_tolerances(project: Path, run: Run) -> None:
    alter(project)
    ini(project, "irrun_models = models/*.xml", "irrun_atol = f32=9 f16=1")
    run()
    ini(project, "irrun_models = models/*.xml", "irrun_atol = f32=x")
    assert "irrun_atol: 'f32=x' is not a tolerance; write 1e-3 for all types" in run(status=4)


def test_models_must_be_there(project: Path, run: Run) -> None:
    ini(project, "irrun_models = models nets/*.xml")
    said = run(status=4)
    assert "irrun_models: no model in" in said
    assert "matches 'nets/*.xml'" in said
    ini(project, "irrun_models = models/*.bin")  # a file that is no model would never be collected
    assert "matches 'models/*.bin'" in run(status=4)


def test_unreadable(project: Path, run: Run) -> None:
    (project / "models" / "edges.npz").write_bytes(b"PK")
    (project / "models" / "classifier.xml").write_text("<net")
    said = run(status=1)
    assert "cannot read " in said
    assert "error[IR001 not-xml]" in said
    assert "Traceback" not in said


def test_types_that_numpy_cannot_store(tmp_path: Path) -> None:
    """bf16 in an .npz is bare bytes; the model says what they are."""
    net = Net()
    x = net.parameter("bf16", "3", name="x")
    net.result(net.add("ReLU", [x], [("BF16", "3")], names="y"))
    net.save(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nirrun_models = *.xml\n")
    apart(tmp_path, "--irrun-update")
    with np.load(tmp_path / "net.npz") as file:
        assert file["x"].dtype == np.dtype("V2")
        np.testing.assert_array_equal(
            file["out:y"].view(ELEMENT_TYPES["bf16"].dtype), np.maximum(file["x"].view(ELEMENT_TYPES["bf16"].dtype), 0)
        )
    assert "2 passed" in apart(tmp_path, ci=True)


def test_the_plugin_is_no_burden(tmp_path: Path) -> None:
    """A run of pytest that has nothing to do with irrun imports nothing heavy on its account."""
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    assert 'irrun.pytest_plugin' in sys.modules\n"
        "    assert not {'numpy', 'lxml', 'networkx', 'irrun.api', 'irrun.model'} & set(sys.modules)\n"
    )
    (tmp_path / "a.xml").write_text("<a/>")
    assert "1 passed" in apart(tmp_path)
