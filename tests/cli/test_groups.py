"""The groups of ``irrun --help``, and what a command needs to be in one."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import jsonschema

from copies import copy_of_irrun, run_commands
from irrun.cli import COMMANDS
from irrun.cli._groups import GROUPS

COMMAND: Final = '''"""``irrun greet`` (look): Greet a model, for this test."""

import click

from irrun.cli import _terminal
from irrun.cli._options import format_option

__all__ = ["command"]


@click.command("greet")
@click.argument("name")
@format_option("text", "json")
def command(name: str, form: str) -> int:
    """Greet a model, for this test."""
    if form == "json":
        _terminal.print_json({"greeted": name})
    else:
        _terminal.console().print(f"hello, {name}")
    return 0
'''
SCHEMA: Final = {
    "type": "object",
    "properties": {"version": {"const": 1}, "command": {"const": "greet"}, "greeted": {"type": "string"}},
    "required": ["version", "command", "greeted"],
    "additionalProperties": False,
}


def test_every_command_is_in_a_group() -> None:
    assert sum(len(commands) for commands in GROUPS.values()) == len(COMMANDS) == 19
    assert all(GROUPS.values())


def test_the_help_lists_the_groups(call: Any) -> None:
    lines = call("--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options", *GROUPS]
    at = lines.index("Run a model:")
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["run", "batch", "generate"]


def test_each_module_defines_its_command() -> None:
    for name, summary in COMMANDS.items():
        module = import_module(f"irrun.cli.{name}")
        assert module.command.name == name
        assert module.command.get_short_help_str(200) == summary


def test_a_file_and_a_schema_add_a_command(tmp_path: Path) -> None:
    """A copy of irrun has a command because of its file; another one describes what it prints as JSON."""
    copy = copy_of_irrun(tmp_path)
    (copy / "cli" / "greet.py").write_text(COMMAND)
    (copy / "cli" / "schemas" / "greet.json").write_text(json.dumps(SCHEMA))
    help, own, text, form = run_commands(
        copy, "--help", "greet --help", "greet convnet", "greet convnet --format json", folder=tmp_path
    )
    title, _, rest = help.partition("Look at models and operations:\n")[2].partition("\n")
    assert title == "  greet        Greet a model, for this test."
    assert rest.lstrip().startswith("op ")
    assert own.startswith("Usage: irrun greet ")
    assert text == "hello, convnet\n"
    jsonschema.validate(json.loads(form), json.loads((copy / "cli" / "schemas" / "greet.json").read_text()))
