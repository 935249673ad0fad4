"""irrun server: one session of an editor with each kind of request."""

import builtins
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="irrun server needs the extra `server`")

from lsprotocol import types

from editor import Editor, edited
from places import ROOT

pytestmark = pytest.mark.processes


async def wrong_dim(editor: Editor) -> None:
    """The sample declares 48 where its Broadcast gives 50; the editor fixes it by the action that the server offers."""
    (finding,) = await editor.open()
    dim = editor.find("<dim>48</dim>")
    assert (finding.code, finding.severity, finding.source) == ("IR401", types.DiagnosticSeverity.Error, "irrun")
    assert finding.range.start.line == dim.line
    assert "48" in finding.message
    assert "50" in finding.message

    hover = await editor.ask("hover", dim)
    assert "Broadcast-3" in hover.contents.value
    assert "dim 3" in hover.contents.value
    assert "50" in hover.contents.value

    fix, fix_all = await editor.actions(dim.line)
    assert (fix.kind, fix_all.kind) == ("quickfix", "source.fixAll.irrun")
    assert fix.is_preferred
    assert fix.edit is not None
    assert fix.edit.changes is not None
    (edit,) = fix.edit.changes[editor.uri]
    start = edit.range.start
    assert start.line == dim.line
    line = editor.text.split("\n")[start.line]
    assert line[start.character : edit.range.end.character] == "48"
    assert edit.new_text == "50"
    assert await editor.replace(start, 2, edit.new_text) == []
    assert await editor.actions(dim.line) == []

    # text that is not well-formed, and back
    (broken,) = await editor.replace(start, 2, "50<")
    assert (broken.code, broken.range.start.line) == ("IR001", start.line)
    assert await editor.replace(start, 3, "50") == []


async def navigation(editor: Editor) -> None:
    """Edges lead from the Parameter `image` to the layer that reads it, and back."""
    assert await editor.open() == []
    text = editor.text
    edge = editor.find("<edge from-layer")
    line = text.split("\n")[edge.line]
    ends = dict(re.findall(r'(from-layer|to-layer)="(\d+)"', line))
    from_layer, to_layer = (editor.find(f'<layer id="{ends[name]}"') for name in ("from-layer", "to-layer"))

    begin = await editor.ask("definition", types.Position(edge.line, line.index("from-layer")))
    end = await editor.ask("definition", types.Position(edge.line, line.index("to-port")))
    (output,), (input_,) = editor.lines(begin), editor.lines(end)
    assert from_layer.line < output < editor.find("</layer>", from_layer.line).line
    assert to_layer.line < input_ < editor.find("</layer>", to_layer.line).line

    assert editor.lines(await editor.ask("definition", types.Position(input_, 10))) == [output]
    references = editor.lines(await editor.ask("references", types.Position(output, 10)))
    assert {input_, edge.line} <= set(references)

    const = editor.find('type="Const"')
    (weights,) = await editor.ask("definition", const)
    assert weights.uri.endswith("convnet.bin")

    name = await editor.ask("prepare_rename", from_layer)
    assert name.placeholder == "image"
    with pytest.raises(Exception, match="another layer is named"):
        await editor.ask("rename", from_layer, new_name=re.findall(r'name="([^"]+)" type="Const"', text)[0])
    rename = await editor.ask("rename", from_layer, new_name="a & b")
    (edit,) = rename.changes[editor.uri]
    assert (edit.range, edit.new_text) == (name.range, "a &amp; b")

    symbols = await editor.client.text_document_document_symbol_async(types.DocumentSymbolParams(editor.document))
    assert symbols is not None
    blocks = {symbol.name: symbol for symbol in symbols}
    inner = blocks["block1"].children or ()  # pyright: ignore[reportAttributeAccessIssue]
    assert {"conv", "relu"} <= {symbol.name for symbol in inner}
    found = await editor.client.workspace_symbol_async(types.WorkspaceSymbolParams("BLOCK1/conv"))
    assert found is not None
    assert [symbol.name for symbol in found][:1] == ["block1/conv"]

    folds = await editor.client.text_document_folding_range_async(types.FoldingRangeParams(editor.document))
    assert folds is not None
    assert from_layer.line in [fold.start_line for fold in folds]


async def completion(editor: Editor) -> None:
    await editor.open()
    layer = editor.find('type="Broadcast"')
    line = editor.text.split("\n")[layer.line]

    async def labels(line: int, character: int) -> list[str]:
        return [item.label for item in await editor.ask("completion", types.Position(line, character))]

    assert set(await labels(layer.line, line.index("Broadcast") + 5)) == {"Broadcast"}
    assert await labels(layer.line, line.index('version="opset') + 14) == ["opset3", "opset1"]
    data = editor.find("<data ", layer.line)
    text = editor.text.split("\n")[data.line]
    assert await labels(data.line, text.index('mode="') + 6) == ["numpy", "explicit", "bidirectional"]
    await editor.replace(types.Position(data.line, text.index("mode")), 0, "m ")
    assert await labels(data.line, text.index("mode") + 1) == []  # the only attribute is there already
    await editor.replace(types.Position(data.line, text.index("mode")), len(text) - text.index("mode"), "m />")
    assert await labels(data.line, text.index("mode") + 1) == ["mode"]


@pytest.mark.parametrize(
    ("sample", "script"), [("wrong_dim", wrong_dim), ("convnet", navigation), ("wrong_dim", completion)]
)
def test_a_session(sample: str, script: Callable[[Editor], Awaitable[None]]) -> None:
    path = ROOT / "samples" / f"{sample}.xml"
    edited(path, path.read_text("utf-8"), script)


def test_xml_that_is_no_ir_has_no_findings(tmp_path: Path) -> None:
    async def script(editor: Editor) -> None:
        assert await editor.open() == []
        assert await editor.replace(types.Position(0, 0), 0, "<") == []

    edited(tmp_path / "pom.xml", "<project>\n<name>net</name></project>\n", script)


def test_a_missing_extra(call, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more, **options):
        if name.startswith(("pygls", "lsprotocol", "irrun.server")):
            raise ModuleNotFoundError("No module named 'pygls'", name="pygls")
        return real(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    result = call("server")
    assert result.exit_code == 2
    assert "Python package pygls, which is not installed" in result.stderr
    assert 'pip install ".[server]"' in result.stderr
