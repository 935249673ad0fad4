"""Machine code that was made ahead of time: found without numba and llvmlite, and never for other source text."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `fast` is not installed")
pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")

import irrun
from ahead.building import build
from ahead.recording import ENTRIES, Entry, called, fits, read, write
from irrun import build as b
from irrun.base.processor import has_flag
from irrun.fast.machine.ahead import TARGETS
from places import IMPORTED

RUNS = [name for name, target in TARGETS.items() if all(map(has_flag, target.flags))]
"""The kinds of processors whose code this machine runs, the best first."""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or not RUNS or shutil.which("gcc") is None,
        reason="libraries are linked with gcc, for processors with AVX2 that Linux describes",
    ),
]

PROGRAM = """
import sys
for name in ("numba", "llvmlite"):
    sys.modules[name] = None  # as if not installed
import json, warnings
import numpy as np
import irrun
from irrun import fast
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    available = fast.available()
    executable = irrun.compile(sys.argv[1])
    outputs = [executable(np.load(sys.argv[2])) for _ in range(2)]
names = [step.kernel.algorithm for step in executable.plan.steps]
np.save(sys.argv[3], outputs[1][0])
print(json.dumps({"available": available, "algorithms": names, "said": [str(one.message) for one in said]}))
"""
IMPORTS = """
import importlib, pkgutil
import irrun.fast
for module in pkgutil.walk_packages(irrun.fast.__path__, "irrun.fast."):
    if module.name != "irrun.fast.machine.compiling":
        importlib.import_module(module.name)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a model of two layers: a product, and tanh of it."""
    weights = np.random.default_rng(1).normal(size=(256, 300)).astype(np.float32)
    x = b.parameter([40, 256], "f32", name="x")
    path = tmp_path_factory.mktemp("model") / "model.xml"
    irrun.save_model(b.model(b.Tanh(b.MatMul(x, weights))), path)
    np.save(path.with_suffix(".npy"), np.random.default_rng(2).normal(size=(40, 256)).astype(np.float32))
    return path


@pytest.fixture(scope="module")
def package(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, whose libraries hold what the model calls."""
    folder = tmp_path_factory.mktemp("package")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRRUN_FAST", "always")
        irrun.compile(model)(np.load(model.with_suffix(".npy")))
    write(folder / "entries.json", _calls())
    wheel = build(folder, RUNS[:1], folder / "entries.json")
    assert wheel.name == f"irrun_fast-{irrun.__version__}-py3-none-manylinux_2_17_x86_64.whl"
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def _calls() -> list[Entry]:
    """Return the entries that the model has called, and those that other tests have called of the same modules."""
    return [entry for entry in called() if entry[0].startswith(("panels.", "activations.", "arithmetic.", "sharing."))]


def run(model: Path, package: Path, out: Path, **environment: str) -> dict[str, object]:
    """Run the model in a process without numba and llvmlite, and return what it says."""
    path = os.pathsep.join(map(str, [package, *IMPORTED]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(model), str(model.with_suffix(".npy")), str(out)],
        cwd=package, env=os.environ | {"PYTHONPATH": path, "IRRUN_FAST": "always", "IRRUN_THREADS": "1", **environment},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def expected(model: Path) -> np.ndarray:
    weights = np.random.default_rng(1).normal(size=(256, 300)).astype(np.float32)
    x = np.load(model.with_suffix(".npy"))
    return np.tanh(x.astype(np.float64) @ weights.astype(np.float64))


def test_a_process_without_numba_computes_with_the_library(model: Path, package: Path, tmp_path: Path) -> None:
    """Also a model of 300 KiB, for which numba would compile nothing."""
    said = run(model, package, tmp_path / "out.npy", IRRUN_FAST="")
    assert said["available"] is True
    assert said["said"] == []
    assert any("compiled" in str(name) for name in said["algorithms"])  # type: ignore[union-attr]
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected(model), rtol=1e-4, atol=1e-5)


def test_numpy_computes_what_the_library_lacks(model: Path, package: Path, tmp_path: Path) -> None:
    """A library with the right source text and without entries."""
    write(tmp_path / "entries.json", [])
    zipfile.ZipFile(build(tmp_path, RUNS[:1], tmp_path / "entries.json")).extractall(tmp_path)
    said = run(model, tmp_path, tmp_path / "out.npy")
    assert said["available"] is True
    (message,) = said["said"]  # type: ignore[misc]
    assert message.startswith("numpy computes in place of compiled kernels: irrun-fast has no panels.")
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected(model), rtol=1e-4, atol=1e-5)


def test_a_library_of_other_source_text_is_not_used(model: Path, package: Path, tmp_path: Path) -> None:
    source = Path(irrun.__file__).parent
    shutil.copytree(source, tmp_path / "irrun", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "irrun" / "fast" / "block.py").open("a") as file:
        file.write("# another version\n")
    said = run(model, package, tmp_path / "out.npy", PYTHONPATH=os.pathsep.join(map(str, [tmp_path, package])))
    assert said["available"] is False
    (message,) = said["said"]  # type: ignore[misc]
    assert "those of another version of irrun" in message
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected(model), rtol=1e-4, atol=1e-5)


def test_every_module_of_kernels_is_imported_without_numba(package: Path) -> None:
    """All but the one that compiles."""
    program = PROGRAM.partition("import json")[0] + IMPORTS
    path = os.pathsep.join(map(str, [package, *IMPORTED]))
    subprocess.run([sys.executable, "-c", program], cwd=package, env=os.environ | {"PYTHONPATH": path}, check=True)


def test_without_the_package_there_are_no_compiled_kernels(model: Path, tmp_path: Path) -> None:
    assert importlib.util.find_spec("irrun_fast") is None
    said = run(model, tmp_path, tmp_path / "out.npy")
    assert said == {"available": False, "algorithms": said["algorithms"], "said": []}


def test_the_recorded_entries_are_of_kernels_that_exist() -> None:
    """After a change of kernels: ``python -m tools ahead record``."""
    assert [entry for entry in read(ENTRIES) if not fits(*entry)] == []
