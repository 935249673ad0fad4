"""An option means one thing in all commands: the same kind of value, and the same words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import click
import pytest

from irrun.cli import COMMANDS, cli

MEANINGS = {
    "--against": "the engine that is judged or looked at",
    "--all": "list everything, and fold nothing",
    "--atol": "absolute tolerance of every compared value",
    "--batch": "how many samples the inputs hold",
    "--bgr": "order of the channels of pictures",
    "--cache": "skip models that are known",
    "--dask": "use the Dask cluster with this address",
    "--every": "every N-th case of a suite",
    "--exact": "compute each layer by the kernel that defines it",
    "--force": "let OUT.xml replace a model that is read",
    "--format": "the format of the result",
    "--harness": "the command of a harness, which is an engine",
    "--input": "the value of an input",
    "--jobs": "how many processes or engines work at a time",
    "--layout": "where the channels of pictures are",
    "--map": "pair a name of the reference and one of the candidate",
    "--max-memory": "the most memory of a run or engine",
    "--mean": "subtract from the pixels of pictures",
    "--no-verify": "do not run what is written",
    "--only": "cases whose name matches",
    "--opset": "the operation set that is written, of OpenVINO or of ONNX",
    "--output": "the files that the command makes",
    "--output-file": "write the printed result to a file",
    "--plugin": "a file that registers operations",
    "--precision": "what is rounded before it is multiplied",
    "--prompt": "the text that a language model continues",
    "--resize": "how pictures get the size of the input",
    "--rtol": "relative tolerance of every compared value",
    "--runs": "how often the model runs to be timed",
    "--samples": "the number of samples",
    "--scale": "divide the pixels of pictures",
    "--seed": "seed of what is random",
    "--shape": "give an input another shape",
    "--suite": "another suite",
    "--target": "where the model must load",
    "--timeout": "the most seconds of a run or engine",
    "--to": "where it goes: the precision that is simulated, or the last layer",
    "--tolerances": "a file of tolerances",
    "--tokens": "how many tokens are compared",
    "--top": "the most rows of each ranking to show",
    "--weights": "the .bin file",
}
"""The meaning of each option that several commands have. A new one is written here first."""

FREE = {"--batch", "--output", "--to", "--harness", "--opset"}
"""Options whose values are of another kind in each command."""


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts = command.commands if isinstance(command, click.Group) else {"": command}
        yield from ((f"{name} {part}".strip(), each) for part, each in parts.items())


OPTIONS = [
    (name, param) for name, command in _commands() for param in command.params if isinstance(param, click.Option)
]


def _long(option: click.Option) -> str:
    return max(option.opts, key=len)


def _beginning(option: click.Option) -> str:
    """Return the first words of the help, up to what differs between commands: the default, or an explanation."""
    return " ".join(re.split(r"[\[.,:]", option.help or "")[0].split()[:3])


SHARED = {
    name: options
    for name, options in ((n, [o for o in OPTIONS if _long(o[1]) == n]) for n in {_long(o) for _, o in OPTIONS})
    if len(options) > 1
}


def test_the_table_holds_every_shared_option() -> None:
    assert sorted(SHARED) == sorted(MEANINGS)


@pytest.mark.parametrize("name", sorted(set(MEANINGS) - FREE))
def test_one_meaning(name: str) -> None:
    for (first, a), (second, b) in itertools.pairwise(SHARED[name]):
        same = [(o.metavar, type(o.type), o.is_flag, o.secondary_opts, _beginning(o)) for o in (a, b)]
        assert same[0] == same[1], f"{first} and {second}"


def test_short_names_belong_to_one_option() -> None:
    names = {(short, _long(option)) for _, option in OPTIONS for short in option.opts if not short.startswith("--")}
    of_short = {short: sorted(long for s, long in names if s == short) for short, _ in names}
    assert of_short.pop("-o") == ["--output", "--output-file"]
    assert all(len(long) == 1 for long in of_short.values()), of_short


def test_where_a_result_goes() -> None:
    """Every command that prints a result can write it to a file, with ``-o`` unless the command makes other files."""
    for name, command in _commands():
        options = {_long(param): param for param in command.params if isinstance(param, click.Option)}
        if "--format" in options:
            assert ("-o" in options["--output-file"].opts) == ("--output" not in options), name


def test_metavars() -> None:
    """Values are named by what they are: N, NUMBER, SECONDS, MINUTES, SIZE, FOLDER."""
    for name, option in OPTIONS:
        shown = option.make_metavar(click.Context(cli.get_command(click.Context(cli), name.split()[0]) or cli))
        assert "RANGE" not in shown, (name, option.name)
        assert shown not in ("DIR", "PATH"), (name, option.name)
        if isinstance(option.type, click.types.IntRange):
            assert shown == "N", (name, option.name)
        if isinstance(option.type, click.types.FloatRange):
            assert shown in ("NUMBER", "SECONDS", "MINUTES"), (name, option.name)
