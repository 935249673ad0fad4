"""The settings under ``[tool.irrun]`` in pyproject.toml: codes that a project selects, and its targets."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import click

from irrun.codes import CODES
from irrun.model.lookup import nearest

__all__ = ["Config", "codes", "read_config"]

_KEYS: Final = ("select", "ignore", "per-file-ignores", "targets")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a project. ``folder`` holds its pyproject.toml, or is the current folder if there is none.

    All codes may be prefixes, such as ``IR4``.
    """

    folder: Path
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    targets: tuple[str, ...] = ()

    def ignored_in(self, file: str) -> tuple[str, ...]:
        """Return the codes that ``per-file-ignores`` lists for a file.

        A pattern matches the name of the file, or its path: relative to ``folder``, or absolute if it lies elsewhere.
        """
        path = Path(os.path.abspath(file))
        place = (path.relative_to(self.folder) if path.is_relative_to(self.folder) else path).as_posix()
        every: list[str] = []
        for pattern, ignored in self.per_file_ignores:
            patterns = {pattern, pattern.replace("**/", "")}  # ** also matches no folder at all
            if any(fnmatchcase(name, p) for name in (place, path.name) for p in patterns):
                every += ignored
        return tuple(every)


def codes(values: Iterable[str]) -> tuple[str, ...]:
    """Return codes and prefixes of codes, with the names of codes replaced by the codes.

    A value may hold several, separated by commas or white space. Raises ValueError for an unknown code or name.
    """
    names = {code.name: code.id for code in CODES.values()}
    prefixes: list[str] = []
    for value in filter(None, re.split(r"[\s,]+", ",".join(values))):
        code = names.get(value.lower(), value.upper())
        if code != "IR" and not any(known.startswith(code) for known in CODES):
            raise ValueError(f"{value} is not a code; irrun explain lists the codes")
        prefixes.append(code)
    return tuple(prefixes)


def read_config() -> Config:
    """Return the settings of the nearest pyproject.toml with a ``[tool.irrun]``, from the current folder upwards.

    Without such a file, the settings are empty. Raises click.UsageError for invalid settings.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            tool = tomllib.loads(file.read_text("utf-8")).get("tool")
            if isinstance(tool, dict) and "irrun" in tool:
                return _config(folder, tool["irrun"])
        except ValueError as error:  # invalid TOML, UTF-8 or settings
            raise click.UsageError(f"{file}: {error}") from None
    return Config(here)


def _config(folder: Path, table: Any) -> Config:
    if not isinstance(table, dict):
        raise ValueError(f"tool.irrun is not a table; write [tool.irrun] with the keys {', '.join(_KEYS)}")
    for key in table:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            help = f"did you mean {near[0]}?" if near else f"its keys are {', '.join(_KEYS)}"
            raise ValueError(f"tool.irrun has no key {key}; {help}")
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise ValueError('tool.irrun.per-file-ignores is not a table; write a line such as "tests/*" = ["IR401"]')
    return Config(
        folder,
        _listed("select", table.get("select", [])),
        _listed("ignore", table.get("ignore", [])),
        tuple((pattern, _listed("per-file-ignores", listed)) for pattern, listed in per_file.items()),
        _targets(table.get("targets", [])),
    )


def _targets(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError('tool.irrun.targets is not a list of targets; write it as ["openvino>=2024.6"]')
    from irrun.targets import parse_target  # imported late: most projects name no target

    return tuple(parse_target(text).text for text in value)


def _listed(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'tool.irrun.{key} is not a list of codes; write it as ["IR401", "IR5"]')
    return codes(value)
