"""The JSON of every command, errors included, against the schemas in irrun/cli/schemas."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from irrun.cli import COMMANDS, cli
from irrun.conformance import Suite
from irrun.conformance.suite import write_suite
from places import ROOT
from recorded import suite

pytestmark = pytest.mark.processes

SCHEMAS = {path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT / "irrun/cli/schemas").glob("*.json")}


def validated(text: str) -> dict[str, Any]:
    """Return a document, which its schema allows."""
    document = json.loads(text)
    name = "error" if "error" in document else document["command"].replace(" ", "-")
    jsonschema.validate(document, SCHEMAS[name], cls=jsonschema.Draft202012Validator)
    assert document["version"] == 1
    if name != "report":  # the document of a page, whose tables have columns
        _require_lists(document)
    return document


def _require_lists(value: Any, key: str = "") -> None:
    """Require that a shape is a list, wherever it is."""
    if key in ("shape", "declared_shape"):
        assert value is None or isinstance(value, list), value
    for name, item in value.items() if isinstance(value, dict) else ():
        _require_lists(item, "" if key == "attributes" else name)
    for item in value if isinstance(value, list) else ():
        _require_lists(item)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("json")
    for file in (ROOT / "samples").iterdir():
        if file.is_file():
            shutil.copy(file, path)
    shutil.copy(path / "convnet.xml", path / "alone.xml")
    (path / "page.txt").write_text('<layer type="Abs"><input><port id="0"><dim>2</dim></port></input></layer>\n' * 2)
    (path / "broken.xml").write_text("<net>")
    (path / "model.onnx").write_bytes(b"\x08\x0a\x3a\x00")
    (path / "inputs").mkdir()
    np.save(path / "inputs" / "a.npy", np.zeros((1, 1, 28, 28), np.float32))
    (path / "inputs" / "b.npy").write_text("no array")
    whole = suite()
    kept = [case for case in whole.cases if case.name.startswith("Tile-1/")]
    write_suite(Suite(whole.operations, whole.rules, kept), path / "suite")  # reading the whole one takes seconds
    run = ["conformance", "run", "exact", "-o", str(path / "results.jsonl"), "--suite", str(path / "suite")]
    assert CliRunner().invoke(cli, [*run, "--every", "9"]).exit_code == 0
    return path


COMMAND_LINES = {
    "cache": 0,
    "show convnet.xml": 0,
    "show convnet.xml --layers --memory": 0,
    "show elementwise.xml --layers": 0,
    "show page.txt --layers": 0,
    "run convnet.xml": 0,
    "run convnet.xml --runs 3 --profile --tap logits --nan": 0,
    "run elementwise.xml -i a=[[[NaN,1e39,1,1],[1,1,1,1],[1,1,1,1]]] -i b=[[0],[1],[2]]": 0,
    "run wrong_dim.xml": 0,
    "run page.txt": 1,
    "run alone.xml": 1,
    "run --random convnet.xml alone.xml": 1,
    "check convnet.xml": 0,
    "check wrong_dim.xml alone.xml broken.xml model.onnx nothing.xml": 2,
    "check wrong_dim.xml --statistics": 1,
    "check wrong_dim.xml --summary": 1,
    "why convnet.xml": 0,
    "why convnet.xml block1/pool": 0,
    "why convnet.xml block*": 0,
    "diff convnet.xml convnet.xml": 0,
    "diff elementwise.xml wrong_scale.xml": 1,
    "diff broadcast_numpy.xml broadcast_explicit_channels.xml": 1,
    "diff convnet.xml nothing.xml": 2,
    "compare convnet.xml convnet.xml": 0,
    "compare elementwise.xml wrong_scale.xml": 1,
    "bisect elementwise.xml elementwise.xml": 0,
    "bisect elementwise.xml wrong_scale.xml": 1,
    "precision convnet.xml": 0,
    "precision next_token_int4.xml --twin next_token.xml -i ids=arange:[1,32]": 1,
    "runtime convnet.xml --against exact": 2,
    "passport convnet.xml --try exact": 0,
    "passport alone.xml": 0,
    "report convnet.xml --compare exact:convnet.xml": 0,
    "report wrong_dim.xml": 1,
    "batch convnet.xml inputs -o results -j 1": 1,
    "extract convnet.xml --to logits -o part.xml": 0,
    "edit convnet.xml --rename-layer flatten=flat -o edited.xml": 0,
    "ops": 0,
    "op Broadcast": 0,
    "op conv": 0,
    "explain": 0,
    "explain IR4": 0,
    "explain IR401": 0,
    "conformance run exact -o again.jsonl --suite suite --only Tile-1/* --every 9": 0,
    "conformance compare results.jsonl results.jsonl": 0,
    "conformance report results.jsonl -o pages --suite suite": 0,
    "conformance scoreboard exact --suite suite --only Tile-1/* --every 9 -o board": 0,
    "conformance smoke exact": 0,
    "fuzz --count 3": 0,
    # errors
    "run nothing.xml": 2,
    "run model.onnx": 2,
    "run broken.xml": 2,
    "run convnet.xml --such": 2,
    "run convnet.xml -i image=[1]": 2,
    "run convnet.xml --tap nothing": 2,
    "show": 2,
    "show nothing.xml": 2,
    "why convnet.xml nothing": 2,
    "compare nothing.xml convnet.xml": 2,
    "report nothing.xml": 2,
    "extract convnet.xml -o convnet.xml": 2,
    "edit convnet.xml -o x.xml": 2,
    "batch convnet.xml nothing -o results2": 2,
    "op nothing": 2,
    "explain zzz": 2,
    "generate nothing -p x": 2,
    "nothing": 2,
    "conformance show nothing --suite suite": 2,
}  # fmt: skip
"""Command lines and their exit statuses. None reads what another has written: pytest may run them in any order."""


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_the_json_of_a_command(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(cli, [*line.split(), "--format", "json"])
    assert result.exit_code == COMMAND_LINES[line], result.output
    document = validated(result.stdout)
    if "error" in document:
        assert document["error"]["status"] == result.exit_code
        assert document["error"]["message"]
        assert result.stderr  # people read the same


def test_a_case_of_the_suite(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    cases = suite().cases
    for verdict in ("values", "refuse"):
        name = next(case.name for case in cases if case.verdict == verdict)
        assert (
            validated(CliRunner().invoke(cli, ["conformance", "show", name, "--format", "json"]).stdout)["case"] == name
        )


def test_generated_text(tmp_path: Path) -> None:
    pytest.importorskip("regex", reason="the tokenizers need the package regex")
    from language_models import write

    arguments = ["generate", str(write(tmp_path)), "-p", "The", "-n", "2", "--format", "json"]
    assert validated(CliRunner().invoke(cli, arguments).stdout)["ids"]


def test_json_lines_hold_diagnostics(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    lines = CliRunner().invoke(cli, ["check", "wrong_dim.xml", "--format", "json-lines"]).stdout.splitlines()
    schema = {"$ref": "#/$defs/diagnostic", "$defs": SCHEMAS["check"]["$defs"]}
    for line in lines:
        jsonschema.validate(json.loads(line), schema)
    assert lines


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {own}", inner) for own, inner in command.commands.items())
        else:
            yield name, command


def test_every_command_has_a_format_and_a_schema() -> None:
    names = []
    for name, command in _commands():
        if name in ("completion", "mcp", "server"):  # a script for a shell, and answers in protocols
            continue
        (option,) = [param for param in command.params if "--format" in param.opts]
        if isinstance(option.type, click.Choice) and "json" in option.type.choices:
            names.append(name.replace(" ", "-"))
    assert {"error", *names} == set(SCHEMAS)
    assert len(names) >= len(COMMANDS)


def test_every_schema_is_one() -> None:
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        if "command" in schema["properties"]:
            assert schema["additionalProperties"] is False
            assert {"version", "command"} <= set(schema["required"])
