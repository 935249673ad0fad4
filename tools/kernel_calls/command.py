"""The command line of the calls of kernels."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import kernel_calls
from irrun.fast.machine.forms import FORMS

__all__ = ["main"]


@dataclass
class _Figures:
    """What was called, by type of model and by kernel."""

    types: Sequence[str]
    calls: Counter[str] = field(default_factory=Counter)
    compiled: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    by_type: dict[str, Counter[str]] = field(default_factory=dict)
    """The calls of each kernel, by the type of their models."""

    def make(self, seed: int, numbers: Mapping[str, int]) -> None:
        """Make the calls of the model of a number of some types, and count them."""
        from kernel_calls.calls import calls
        from kernel_calls.kernels import reached

        for type, number in numbers.items():
            for one in calls(type, seed, number):
                inside = reached(one.kernels)
                self.calls[type] += 1
                self.compiled[type] += bool(inside)
                self.kernels.update(inside)
                self.by_type.setdefault(type, Counter()).update(inside)
                if one.wrong:
                    self.wrong[type] += 1
                    layouts, ran = ", ".join(one.layouts), ", ".join(sorted(one.kernels))
                    print(f"{type} {number} ({layouts}; {one.special or 'normal'}; {ran}): {one.wrong}", flush=True)

    def wanting(self, least: int) -> list[str]:
        """Return for each kernel that ran in fewer than ``least`` calls the type whose models reach it most often."""
        behind = [name for name, count in self.kernels.items() if count < least]
        return sorted(
            {max((self.by_type[type][name] / self.calls[type], type) for type in self.types)[1] for name in behind}
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Make calls. Return 1 if a result is wrong, or if no call reached a kernel, else 0."""
    options = _parser().parse_args(arguments)
    settings = {**FORMS[options.form], "IRRUN_FAST": "always", "IRRUN_THREADS": str(options.threads)}
    if any(os.environ.get(name) != value for name, value in settings.items()):  # read when irrun is imported
        given = list(sys.argv[1:] if arguments is None else arguments)
        os.execve(sys.executable, [sys.executable, "-m", "tools", "kernel_calls", *given], os.environ | settings)
    from irrun.kernels import threads
    from kernel_calls.kernels import kernels, needed
    from kernel_calls.models import MODELS

    for name in ("WORTH", "WORTH_NATIVELY"):  # threads share calls of every size
        setattr(threads, name, min(getattr(threads, name), 1))
    figures, start = _Figures(options.only or list(MODELS)), time.monotonic()
    for number in _numbers(options, figures):
        figures.make(options.seed, number)
    for type in figures.types:
        print(f"{type:<30}{figures.calls[type]:>8} calls {figures.compiled[type]:>8} compiled", end=" ")
        print(f"{figures.wrong[type]:>6} wrong")
    for name in sorted(kernels()):
        print(f"{name:<40}{figures.kernels[name]:>8} calls")
    missing = [] if options.only else sorted(needed(options.threads) - {*figures.kernels})
    for name in missing:
        print(f"no call reached {name}")
    print(
        f"{figures.calls.total()} calls, {figures.wrong.total()} wrong, {time.monotonic() - start:.0f} s; "
        f"seed {options.seed}, {options.form}, {options.threads} threads"
    )
    return 1 if figures.wrong or missing else 0


def _numbers(options: argparse.Namespace, figures: _Figures) -> Iterator[Mapping[str, int]]:
    """Yield for each round the number of the model of each type."""
    at: int | None = options.at
    if at is not None:
        yield dict.fromkeys(figures.types, at)
        return
    number = 0
    while figures.calls.total() < options.calls:
        yield dict.fromkeys(figures.types, number)
        number += 1
    while options.each and (types := figures.wanting(options.each)):
        yield dict.fromkeys(figures.types if number < _SEARCHED else types, number)
        number += 1
        if number % _PROGRESS == 0:
            behind = min((count, name) for name, count in figures.kernels.items())
            print(f"{figures.calls.total()} calls, {figures.wrong.total()} wrong, least {behind}", flush=True)


_SEARCHED = 40
"""The rounds in which models of every type look for kernels. Later rounds make the types that reach a kernel."""
_PROGRESS = 100
"""The rounds after which the progress is printed."""


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tools kernel_calls", description=(kernel_calls.__doc__ or "").split("\n\n")[0]
    )
    made.add_argument("--calls", type=int, default=2000, help="the least calls to make (default: 2000)")
    made.add_argument("--each", type=int, default=0, help="go on until each kernel ran in so many calls")
    made.add_argument("--seed", type=int, default=0, help="which calls (default: 0)")
    made.add_argument("--form", choices=FORMS, default="native", help="the instruction set (default: native)")
    made.add_argument("--threads", type=int, default=1, help="threads of a call (default: 1)")
    made.add_argument("--only", action="append", metavar="TYPE", help="make calls of this type of model alone")
    made.add_argument("--at", type=int, metavar="NUMBER", help="make the calls of the model of this number alone")
    return made
