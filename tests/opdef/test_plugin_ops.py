"""Operations of one's own: registered in code, by --plugin and by an entry point; docs/embedding.md runs as printed."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.cli import cli
from irrun.opdef import registry
from irrun.opdef.plugins import plugins
from places import ROOT

PAGE = (ROOT / "docs" / "embedding.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten after it."""
    registry.all_ops()
    monkeypatch.setattr(registry, "_registry", {key: dict(versions) for key, versions in registry._registry.items()})
    registry._load_plugins.cache_clear()
    yield
    registry._load_plugins.cache_clear()


PLUGIN = '''
import numpy as np
import irrun


@irrun.op("TimesTable", since=3)
class TimesTable(irrun.Op):
    """Multiply ``data`` by ``by`` and by each of ``others``.

    C1  ``data`` is 1D.
    """

    by = irrun.attr.int(2)
    inputs = irrun.ports(data="T", others=irrun.variadic("T", least=0))
    types = {"T": "numeric"}
    carries = True

    def infer(self, at: irrun.Site, data: irrun.Value, *others: irrun.Value) -> irrun.Value:
        at.require(data.rank in (None, 1), "C1", f"data is {data.shape}")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, *others: np.ndarray) -> np.ndarray:
        for other in others:
            data = data * other
        if self.by == 13:
            raise RuntimeError("no luck")
        return data * np.asarray(self.by, data.dtype)
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "times_table.py"
    path.write_text(PLUGIN)
    return path


def _model(folder: Path, version: str = "extension", by: int = 3, shape: tuple[int, ...] = (4,)) -> Path:
    """A model with a TimesTable, written without irrun knowing one."""
    path = folder / "model.xml"
    irrun.save_model(b.model({"y": b.ReLU(b.parameter(shape, "f32", name="x"), name="table")}), path)
    layer = f'type="TimesTable" version="{version}"><data by="{by}"/>'
    path.write_text(path.read_text().replace('type="ReLU" version="opset1">', layer))
    return path


def _register() -> None:
    exec(PLUGIN, {"__name__": "mine"})


@pytest.mark.parametrize("version", ["extension", "custom_opset", "opset3", "opset8", "opset99"])
def test_any_version_will_do(version: str, tmp_path: Path) -> None:
    path = _model(tmp_path, version)
    with pytest.raises(irrun.UnsupportedError):
        irrun.compile(path)
    _register()
    assert not irrun.check(path).diagnostics
    assert irrun.run(path, np.ones(4, np.float32), strict=True)["y"].tolist() == [3, 3, 3, 3]


def test_numbered_opsets_before_it_have_none(tmp_path: Path) -> None:
    _register()
    with pytest.raises(irrun.UnsupportedError, match="came with opset3"):
        irrun.compile(_model(tmp_path, "opset2"))


def test_its_clauses_are_told_as_those_of_any_other(tmp_path: Path) -> None:
    _register()
    (found,) = irrun.check(_model(tmp_path, shape=(2, 2)))
    assert (found.code, found.label) == ("IR403", "C1")


def test_its_kernel_is_not_a_bug_of_irrun(tmp_path: Path) -> None:
    _register()
    with pytest.raises(irrun.ExecutionError, match="IR603") as caught:
        irrun.run(_model(tmp_path, by=13), np.ones(4, np.float32))
    (found,) = caught.value.diagnostics
    assert "no luck" in found.message
    assert found.help == "this is a bug in mine.TimesTable, which declares the operation"


def test_it_can_be_built(tmp_path: Path) -> None:
    _register()
    x = b.parameter([None], "i64", name="x")
    model = b.model({"y": b.TimesTable(x, 5, by=7)})
    assert model.layers[2].version == "extension"
    irrun.save_model(model, tmp_path / "model.xml")
    assert irrun.run(tmp_path / "model.xml", np.array([1, 2]))["y"].tolist() == [35, 70]
    with pytest.raises(irrun.ModelError, match="C1"):
        b.TimesTable(b.parameter([2, 2]))


def test_a_new_version_of_a_known_operation() -> None:
    @irrun.op("ReLU", since=14)
    class ReLU(irrun.Op):
        inputs = irrun.ports(data="T")

        def infer(self, at: irrun.Site, data: irrun.Value) -> irrun.Value:
            return data.reshaped(data.shape)

    assert sorted(registry.find("ReLU")) == [1, 14]
    assert not registry.is_custom(registry.find("ReLU")[1])
    with pytest.raises(TypeError, match="registered twice"):
        irrun.op("ReLU", since=1)(ReLU)


def test_a_file_that_computes_its_type_is_found(tmp_path: Path) -> None:
    """A file in irrun.ops, neither named after its type nor with the type in its text."""
    (tmp_path / "strange.py").write_text(
        'from irrun.opdef import Op, op, ports\n@op("Com" + "puted")\nclass Strange(Op):\n    inputs = ports(data="T")\n'
    )
    code = (
        f"import irrun.ops; irrun.ops.__path__.append({str(tmp_path)!r})\n"
        "from irrun.opdef import find; print(find('Computed'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "irrun.ops.strange.Strange" in done.stdout, done.stderr


def test_plugin_option(plugin: Path, tmp_path: Path) -> None:
    path = str(_model(tmp_path, "custom_opset"))
    assert CliRunner().invoke(cli, ["check", path]).exit_code == 3
    assert CliRunner().invoke(cli, ["check", path, "--plugin", str(plugin)]).exit_code == 0
    result = CliRunner().invoke(cli, ["run", "--plugin", str(plugin), "--plugin", str(plugin), path, "-i", "x=ones"])
    assert result.exit_code == 0
    assert "3 3 3 3" in result.output


@pytest.mark.parametrize(
    ("text", "message"),
    [("import irrun\n1 / 0\n", "broken.py:2: ZeroDivisionError"), (None, "cannot read"), ("(", "SyntaxError")],
)
def test_plugins_that_cannot_be_imported(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    if text is not None:
        path.write_text(text)
    result = CliRunner().invoke(cli, ["check", "--plugin", str(path), str(ROOT / "samples" / "convnet.xml")])
    assert result.exit_code == 2
    assert message in result.output.replace("\n", "")
    assert str(path) not in plugins()


def test_entry_point(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    entry = importlib.metadata.EntryPoint("mine", "times_table", "irrun.ops")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry] if group == "irrun.ops" else [])
    path = _model(tmp_path)
    assert irrun.check(path).ok
    assert irrun.run(path, np.ones(4, np.float32))["y"][0] == 3


def test_an_entry_point_that_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = importlib.metadata.EntryPoint("mine", "not_there_at_all", "irrun.ops")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    with pytest.warns(RuntimeWarning, match="cannot import the operations of not_there_at_all"):
        assert not irrun.check(_model(tmp_path)).ok


# ---------------------------------------------------------------------------------------------
# the page


def test_the_examples_are_short() -> None:
    """Ten lines or so make a hook, and an operation (without the model that then uses it)."""
    hook = next(c for c in BLOCKS if "class FirstNaN" in c)
    own, _ = next(c for c in BLOCKS if "class Scaled" in c).split("\n\n\nmodel = ")
    for code in (hook, own):
        assert sum(bool(line.strip()) for line in code.splitlines()) <= 12
