"""Check the commands that pages and workflows show, without running them.

The program belongs to the project or to an extra, options, files, extras and lanes exist.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from file_fuzz.command import parser as fuzz_parser
from growth.cases import CASES as GROWTH
from irrun.cli import COMMANDS, cli
from places import ROOT
from programs import PROGRAMS

__all__ = ["ROOT", "check_command", "commands", "lanes", "project"]


_FROM_EXTRAS: Final = {
    "build": "build",
    "pre-commit": "pre-commit",
    "pyright": "pyright",
    "ruff": "ruff",
    "sphinx": "sphinx",
    "towncrier": "towncrier",
    "twine": "twine",
}
"""Programs and modules that only contributors and workflows call, by the distribution that brings them."""
_FROM_PYTHON: Final = ("pip", "venv")
_FROM_SYSTEM: Final = (".", "apk", "apt-get", "cd", "diff", "git", "mkdir", "podman", "sh", "tar", "trang")
_PLACEHOLDERS: Final = ("script.py",)
"""Files that stand for files of the reader."""


def project() -> dict[str, Any]:
    """Return the table ``project`` of pyproject.toml."""
    return _settings()["project"]


def lanes() -> set[str]:
    """Return the markers of pytest that are declared in pyproject.toml: the lanes of the tests."""
    return {marker.partition(":")[0] for marker in _settings()["tool"]["pytest"]["ini_options"]["markers"]}


def _settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each command of a shell script; redirections are left out."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        command: list[str] = []
        skip = False
        for word in [*words, "&&"]:
            if word in ("&&", "||", "|", ";"):
                if command:
                    yield command
                command = []
            elif word in (">", "<", ">>", "2>"):
                skip = True
            elif skip:
                skip = False
            else:
                command.append(word)


def check_command(words: Sequence[str]) -> None:
    """Raise AssertionError where a command cannot work: an unknown program, option, file, extra or lane."""
    while re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    program, *arguments = words
    program = re.sub(r"^(\S+/)?\.?venv/(bin|Scripts)/", "", program)
    if program in ("python", "python3"):
        _check_python(arguments)
    elif program == "irrun":
        _check_irrun(arguments)
    elif program == "pytest":
        _check_pytest(arguments)
    elif program == "pip":
        _check_pip(arguments)
    else:
        _check_program(program)


def _check_program(program: str) -> None:
    if program not in (*_FROM_PYTHON, *_FROM_SYSTEM):
        assert program in _FROM_EXTRAS, f"nothing brings {program}"
        extras = project()["optional-dependencies"].values()
        names = {re.split(r"[<>=\[]", requirement)[0] for extra in extras for requirement in extra}
        assert _FROM_EXTRAS[program] in names, f"no extra brings {program}"


def _check_python(arguments: Sequence[str]) -> None:
    if arguments[0] == "-c":
        compile(arguments[1], "-c", "exec")
    elif arguments[0] == "-m":
        module = arguments[1]
        if module in ("pip", "pytest"):
            check_command(arguments[1:])
        elif module == "tools":
            _check_tool(*arguments[2:])
        elif module.split(".")[0] in ("irrun", "benchmarks"):
            assert importlib.util.find_spec(module) is not None, f"there is no module {module}"
        else:
            _check_program(module)
    else:
        assert (ROOT / arguments[0]).is_file() or arguments[0] in _PLACEHOLDERS, f"there is no file {arguments[0]}"


def _check_tool(name: str, *arguments: str) -> None:
    assert name in PROGRAMS, f"there is no program {name} in tools"
    if name == "file_fuzz":
        fuzz_parser().parse_args(arguments)  # exits for unknown options
    elif name == "growth":
        for case in arguments:
            assert case.partition(":")[0] in GROWTH, f"there is no case {case}"


def _check_irrun(arguments: Sequence[str]) -> None:
    if arguments[0].startswith("-"):
        assert arguments[0] in ("-h", "--help", "--version")
        return
    assert arguments[0] in COMMANDS, f"there is no command irrun {arguments[0]}"
    command = cli.get_command(click.Context(cli), arguments[0])
    assert command is not None
    command.make_parser(click.Context(command)).parse_args(list(arguments[1:]))  # raises for unknown options


@functools.cache
def _pytest_options() -> frozenset[str]:
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "--noconftest", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return frozenset(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", said.stdout))


def _check_pytest(arguments: Sequence[str]) -> None:
    takes_value = ("-m", "-n", "-p", "-k")
    for before, argument in zip(["", *arguments], arguments):
        if before == "-m":
            named = set(re.findall(r"\w+", argument)) - {"and", "or", "not"}
            assert named <= lanes(), f"there is no lane {argument}"
        elif argument.startswith("-"):
            assert argument.partition("=")[0] in _pytest_options(), f"pytest has no option {argument}"
        elif before not in takes_value:
            assert (ROOT / argument.partition("::")[0]).exists(), f"there is no file {argument}"


def _check_pip(arguments: Sequence[str]) -> None:
    if arguments[0] == "uninstall":
        assert list(arguments[1:]) == ["irrun"]
        return
    assert arguments[0] == "install"
    extras = project()["optional-dependencies"].keys()
    for argument in arguments[1:]:
        if match := re.fullmatch(r"(?:\.|irrun)\[([\w,]+)\]", argument):
            assert set(match[1].split(",")) <= extras, f"there is no extra {argument}"
