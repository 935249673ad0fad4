"""irrun server with the editors that people use: sixty requests and some edits, in Neovim and in Emacs.

The extension for VS Code runs in Node.js, with stubs of the modules that VS Code and npm bring.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="irrun server needs the extra `server`")

import irrun
from places import ROOT

pytestmark = pytest.mark.processes

HELP = ROOT / "tests" / "help"
COMMANDS = {
    "nvim": [
        "nvim",
        "--headless",
        "-u",
        "NONE",
        "-n",
        "-S",
        str(ROOT / "editors" / "neovim.lua"),
        "-S",
        str(HELP / "session.lua"),
    ],
    "emacs": ["emacs", "--batch", "-Q", "-l", str(HELP / "session.el")],
}
SERVER = f"""#!{sys.executable}
import pathlib, subprocess, sys, time
server = subprocess.Popen([sys.executable, "-m", "irrun", *sys.argv[1:]])
while server.poll() is None:
    status = pathlib.Path("/proc", str(server.pid), "status")
    if status.exists() and "VmHWM:" in (text := status.read_text()):
        pathlib.Path("memory").write_text(text.split("VmHWM:")[1].split()[0])
    time.sleep(0.1)
"""
"""A program `irrun` that also writes how many KiB the server has taken, on Linux."""

PORT = '<port id="{}" precision="FP32">\n<dim>1</dim>\n<dim>64</dim>\n</port>'


class Chain:
    """A model of ``count`` layers, one after another, and the lines (from 0) of their parts."""

    def __init__(self, count: int) -> None:
        lines = ['<?xml version="1.0"?>', '<net name="chain" version="11">', "<layers>"]
        self.layers: list[int] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.edges: list[int] = []
        for id in range(count):
            type = "Parameter" if id == 0 else "Result" if id == count - 1 else "ReLU"
            self.layers.append(len(lines))
            lines.append(f'<layer id="{id}" name="block{id // 100}/layer{id}" type="{type}" version="opset1">')
            if id == 0:
                lines.append('<data shape="1,64" element_type="f32"/>')
            if id > 0:
                lines.append("<input>")
                self.inputs.append(len(lines))
                lines += [*PORT.format(0).split("\n"), "</input>"]
            if id < count - 1:
                lines.append("<output>")
                self.outputs.append(len(lines))
                lines += [*PORT.format(1).split("\n"), "</output>"]
            lines.append("</layer>")
        lines += ["</layers>", "<edges>"]
        for id in range(1, count):
            self.edges.append(len(lines))
            lines.append(f'<edge from-layer="{id - 1}" from-port="1" to-layer="{id}" to-port="0"/>')
        lines += ["</edges>", "<rt_info>", '<a value="1"/>', "</rt_info>", "</net>"]
        self.lines = lines


def session(uri: str, chain: Chain) -> list[tuple[dict[str, Any], Any]]:
    """Return the steps, each with what its result holds: lines, words, or the findings after an edit."""
    document = {"uri": uri}
    count = len(chain.layers)
    steps: list[tuple[dict[str, Any], Any]] = [({"findings": 0}, [])]

    def ask(method: str, line: int | None, character: int, expected: Any, **more: Any) -> None:
        position = {} if line is None else {"position": {"line": line, "character": character}}
        named = {} if method.startswith("workspace") else {"textDocument": document}
        steps.append(({"method": method, "params": {**named, **position, **more}}, expected))

    def edit(line: int, start: int, end: int, text: str, findings: list[int]) -> None:
        change = {"line": line, "start": start, "end": end, "text": text, "findings": len(findings)}
        steps.append((change, findings))

    for number in range(10):
        id = 1 + number * (count - 3) // 10
        input, output, edge = chain.inputs[id - 1], chain.outputs[id], chain.edges[id - 1]
        ask("textDocument/hover", output + 2, 6, ["ReLU-1", f"layer{id}", "64"])
        ask("textDocument/definition", input, 3, [chain.outputs[id - 1]])
        ask(
            "textDocument/references",
            output,
            3,
            sorted([chain.inputs[id], chain.edges[id]]),
            context={"includeDeclaration": False},
        )
        ask("textDocument/hover", edge, 3, [f"layer{id - 1}"])
        ask("textDocument/definition", edge, chain.lines[edge].index("to-layer"), [input])
    ask("textDocument/documentSymbol", None, 0, ["block0"])
    ask("workspace/symbol", None, 0, [f"block0/layer{7}"], query="block0/layer7")
    ask("workspace/symbol", None, 0, [f"layer{count - 1}"], query=f"BLOCK{(count - 1) // 100}/LAYER{count - 1}")
    ask("textDocument/foldingRange", None, 0, [str(len(chain.lines) - 4)])  # <rt_info>
    layer = chain.layers[count // 2]
    ask("textDocument/completion", layer, chain.lines[layer].index("ReLU") + 2, ["ReLU"])
    ask("textDocument/completion", layer, chain.lines[layer].index("opset1") + 5, ["opset1"])
    ask("textDocument/prepareRename", layer, 3, [f"layer{count // 2}"])
    ask("textDocument/rename", layer, 3, ["a new name"], newName="a new name")
    dim = chain.outputs[count // 3] + 2
    edit(dim, 5, 7, "63", [dim])
    whole = {"start": {"line": dim, "character": 0}, "end": {"line": dim, "character": 12}}
    ask("textDocument/codeAction", None, 0, ["declare [1,64]"], range=whole, context={"diagnostics": []})
    edit(dim, 5, 7, "64", [])
    edit(dim, 5, 7, "64<", [dim])
    edit(dim, 5, 8, "64", [])
    ask("textDocument/codeAction", None, 0, [], range=whole, context={"diagnostics": []})
    assert sum("method" in step for step, _ in steps) == 60
    return steps


def lines_of(result: list[dict[str, Any]]) -> list[int]:
    return [place["range"]["start"]["line"] for place in result]


@pytest.mark.skipif(sys.platform == "win32", reason="the program irrun is a script with #!")
@pytest.mark.parametrize("count", [100, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("editor", COMMANDS)
def test_sixty_requests(editor: str, count: int, tmp_path: Path) -> None:
    if shutil.which(editor) is None:
        pytest.skip(f"{editor} is not installed")
    chain = Chain(count)
    model = tmp_path / "chain.xml"
    model.write_text("\n".join(chain.lines) + "\n")
    steps = session(model.as_uri(), chain)
    (tmp_path / "steps.json").write_text(json.dumps([step for step, _ in steps]))
    program = tmp_path / "bin" / "irrun"
    program.parent.mkdir()
    program.write_text(SERVER)
    program.chmod(0o755)
    names = {
        name: str(tmp_path / file)
        for name, file in (("STEPS", "steps.json"), ("RESULTS", "results.json"), ("MODEL", "chain.xml"))
    }
    environment = os.environ | {f"IRRUN_{name}": path for name, path in names.items()}
    environment["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment["PYTHONPATH"] = str(ROOT)
    arguments = [*COMMANDS[editor], *(["chain.xml"] if editor == "nvim" else [])]
    done = subprocess.run(
        arguments,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1500 if count > 1000 else 120,
        check=False,
    )
    if editor == "emacs" and "eglot" in done.stderr and "Cannot open load file" in done.stderr:
        pytest.skip("Emacs has no eglot")
    assert (tmp_path / "results.json").exists(), done.stderr[-3000:]
    results = json.loads((tmp_path / "results.json").read_text())
    for (step, expected), result in zip(steps, results, strict=True):
        method = step.get("method")
        if method is None:
            assert [line for line, _ in result] == expected, step
        elif method in ("textDocument/definition", "textDocument/references"):
            assert lines_of(result) == expected, step
        elif expected == []:
            assert not result, step
        else:
            text = json.dumps(result)
            assert all(word in text for word in expected), (step, text[:300])
    if sys.platform == "linux":
        assert int((tmp_path / "memory").read_text()) < 1_000_000


EXTENSION = ROOT / "editors" / "vscode"


def test_the_extension_of_vs_code(tmp_path: Path) -> None:
    """A server that cannot be started is reported, and restarting works as soon as the setting names one that can."""
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    package = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    (setting,) = package["contributes"]["configuration"]["properties"]
    missing = str(tmp_path / "nowhere" / "irrun")
    commands = [[missing, "server"], [sys.executable, "-m", "irrun", "server"]]
    done = subprocess.run(
        ["node", str(HELP / "extension.js"), str(EXTENSION / package["main"]), setting, json.dumps(commands)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    assert said["commands"] == [command["command"] for command in package["contributes"]["commands"]]
    (error,) = said["errors"]
    assert missing in error
    assert setting in error
    assert said["servers"] == [{"name": "irrun", "hover": True}] * 2
    assert (said["stopped"], said["disposed"]) == (2, 1)
    languages = {selector["language"] for selector in said["selector"]}
    assert [f"onLanguage:{language}" for language in languages] == package["activationEvents"]
    assert (package["version"], package["publisher"]) == (irrun.__version__, "irrun")
