"""The catalogue of files with n of one thing, and what the modules that fill it share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nets import Net, Ref

__all__ = ["ALL", "CASES", "CHECK", "FIX", "PAGE", "READ", "TWO", "Case", "case", "chain_of", "end", "small", "start"]

ALL: Final = ("check", "fix", "diff", "run", "extract", "why", "show")
"""The commands for a model that runs."""
CHECK: Final = ("check", "diff")
"""The commands for a file with errors that fixes do not concern."""
FIX: Final = ("check", "fix", "diff", "show")
"""The commands for a file that fixes change."""
READ: Final = ("check", "run", "why", "show")
"""The commands for a model that runs, and that has nothing to cut or to fix."""
PAGE: Final = ("check", "run")
"""The commands for a page."""

TWO: Final = ("FP32", "2")
"""The port of almost all layers: two elements."""


@dataclass(frozen=True)
class Case:
    """One thing to count: ``text`` writes a file with n of it, and each of ``commands`` is timed on this file."""

    name: str
    commands: Sequence[str]
    text: Callable[[int], str | Net]
    suffix: str = ".xml"
    encoding: str = "utf-8"

    def write(self, folder: Path, count: int) -> Path:
        """Write the file with ``count`` things, and its .bin if it has one. Return the path."""
        path = folder / f"{self.name}{self.suffix}"
        made = self.text(count)
        if isinstance(made, Net):
            if made.bin:
                path.with_suffix(".bin").write_bytes(made.bin)
            made = made.text
        path.write_text(made, self.encoding, newline="\n")
        return path


CASES: Final[dict[str, Case]] = {}


def case(
    commands: Sequence[str], suffix: str = ".xml", encoding: str = "utf-8"
) -> Callable[[Callable[[int], str | Net]], Callable[[int], str | Net]]:
    """Add the function to the catalogue, under its name with hyphens."""

    def add(text: Callable[[int], str | Net]) -> Callable[[int], str | Net]:
        name = text.__name__.strip("_").replace("_", "-")
        CASES[name] = Case(name, commands, text, suffix, encoding)
        return text

    return add


def start() -> tuple[Net, Ref]:
    net = Net()
    return net, net.parameter("f32", "2", name="x")


def end(net: Net, *refs: Ref) -> Net:
    for ref in refs:
        net.result(ref)
    return net


def small() -> Net:
    """Return a model of a Parameter, a ReLU and a Result."""
    net, x = start()
    return end(net, net.add("ReLU", [x], [TWO], name="relu"))


def chain_of(count: int, types: Sequence[str] = ("ReLU",), declared: Callable[[int], str] = lambda _: "2") -> Net:
    net, last = start()
    for number in range(count):
        last = net.add(types[number % len(types)], [last], [("FP32", declared(number))], name=f"layer{number}")
    return end(net, last)
