"""The groups of ``irrun --help``, and what a command needs to be in one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import irrun.cli
from irrun.cli import COMMANDS
from irrun.cli._groups import GROUPS

FOLDER: Final = Path(irrun.cli.__file__).parent


def test_every_command_is_in_a_group() -> None:
    files = {path.stem for path in FOLDER.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert sorted(name for commands in GROUPS.values() for name in commands) == sorted(COMMANDS)
    assert COMMANDS.keys() == {name for name in files if not name.startswith("_")}
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
