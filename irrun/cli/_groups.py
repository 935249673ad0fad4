"""The commands, in the groups of ``irrun --help``, as the first line of each file of this folder declares them.

That line is the docstring of the command's module: ```irrun NAME`` (GROUP): what the command does``. It is read and not
imported, because ``irrun --help`` must answer at once. This module imports nothing but the standard library.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

__all__ = ["COMMANDS", "GROUPS"]

_TITLES: Final = {
    "look": "Look at models and operations",
    "check": "Check a model, and understand what is found",
    "run": "Run a model",
    "compare": "Compare engines or models, and find what differs",
    "change": "Change a model",
    "judge": "Judge engines",
    "serve": "Serve editors and agents",
    "cache": "Look after irrun itself",
}
"""The titles of the groups, by the names that the files of commands give, in the order of the help."""

_HEAD: Final = re.compile(r'"""``irrun (?P<name>\w+)`` \((?P<group>\w+)\): (?P<summary>.+\.)(""")?')


def _heads() -> Iterator[tuple[str, str, str]]:
    """Yield group, name and summary of each command. A command is a module of this folder, or a package in it."""
    for entry in os.scandir(os.path.dirname(__file__)):
        file = os.path.join(entry.path, "__init__.py") if entry.is_dir() else entry.path
        if entry.name.startswith("_") or not (file.endswith(".py") and os.path.exists(file)):
            continue
        with open(file, encoding="utf-8") as lines:
            head = _HEAD.match(lines.readline())
        assert head is not None, f"the first line of {entry.name} must be " + '"""``irrun NAME`` (GROUP): SUMMARY."""'
        yield head["group"], head["name"], head["summary"]


def _grouped() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each title, with its commands by name: first the one that the group is named after."""
    heads = sorted(_heads(), key=lambda head: (head[1] != head[0], head[1]))
    for group, title in _TITLES.items():
        yield title, {name: summary for its_group, name, summary in heads if its_group == group}


GROUPS: Final = dict(_grouped())
"""What each command does, by its name, by the title of its group."""
COMMANDS: Final = {name: summary for commands in GROUPS.values() for name, summary in commands.items()}
"""What each command does, by its name, in the order of the help. ``irrun.cli.NAME.command`` is the command itself."""
