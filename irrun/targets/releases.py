"""The releases of OpenVINO: which operations each reads, and which of them a target such as ``openvino>=2024.6`` names.

``table.json`` holds what was measured with the wheel of each release. ``python -m tools releases`` writes it.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from irrun.inference.bind import LATEST_OPSET
from irrun.model.lookup import nearest

__all__ = ["RELEASES", "Target", "first_release", "has_operation", "newest_opset", "parse_target", "span", "table"]

DEVICES: Final = ("npu", "gpu")
"""The devices whose documented limits can be a target."""


@cache
def table() -> dict[str, Any]:
    """Return the contents of ``table.json``.

    ``opsets`` has the newest operation set of each release. ``operations`` has, by type, the operation sets that
    differ from the rule that a release has every operation set up to its newest: a list of first and last operation
    set with the first release that has the operation in them, or None. ``internal`` has the first release that reads an
    operation of no numbered set under the name of another set. ``refusals`` has the rules of ``rules.py``.
    """
    return json.loads((resources.files("irrun.targets") / "table.json").read_text("utf-8"))


def version(text: str) -> tuple[int, ...]:
    """Return a release as numbers without zeros at the end, so that 2024.6.0 is 2024.6."""
    numbers = [int(number) for number in text.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


RELEASES: Final[tuple[str, ...]] = tuple(table()["opsets"])
"""The measured releases, such as ``2024.6``, from the oldest to the newest."""


def newest_opset(release: str) -> int:
    """Return the number of the newest operation set that a release reads as a whole. Raises KeyError if unknown."""
    return table()["opsets"][release]


def first_release(type: str, opset: int | None) -> str | None:
    """Return the first measured release that reads a layer of ``type`` with the version ``opset<opset>``.

    ``opset`` is None for a version without a number, such as ``extension``. The oldest measured release stands for
    itself and all before. None if no measured release reads the layer.
    """
    if opset is None:
        numbered = _exceptions().get(type.lower(), ()) != [[1, LATEST_OPSET, None]]
        return RELEASES[0] if numbered else table()["internal"].get(type)
    for first, last, release in _exceptions().get(type.lower(), ()):
        if first <= opset <= last:
            return release
    return next((release for release in RELEASES if newest_opset(release) >= opset), None)


def has_operation(release: str, type: str, opset: int | None) -> bool:
    """Return whether a measured release reads a layer of ``type`` with the version ``opset<opset>``."""
    first = first_release(type, opset)
    return first is not None and RELEASES.index(first) <= RELEASES.index(release)


@cache
def _exceptions() -> dict[str, list[tuple[int, int, str | None]]]:
    return {type.lower(): rows for type, rows in table()["operations"].items()}


_OPSET_OF_2021: Final = 7
_IR_OF_2021: Final = 10
"""The newest operation set and the only IR version that OpenVINO 2021.4 reads. Each measured release also reads 11."""


_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a model is to run: ``text`` as the user wrote it, and the measured releases that it names, in order.

    ``device`` is ``CPU``; of ``GPU`` and ``NPU``, only what their documentation says is known.
    """

    text: str
    releases: tuple[str, ...]
    device: str = "CPU"


def parse_target(text: str) -> Target:
    """Return the target of a text: ``openvino==2024.6``, ``openvino>=2022.1,<2025``, ``openvino``, ``npu`` or ``gpu``.

    Raises ValueError for another text, and if no measured release fits.
    """
    name = re.match(r"\s*([\w-]*)", text)[1].lower()  # type: ignore[index]
    rest = text.strip()[len(name) :]
    if name in DEVICES and not rest:
        return Target(text, RELEASES, name.upper())
    if name != "openvino":
        near = nearest(name, ("openvino", *DEVICES))
        help = f"did you mean {near[0]}?" if near else "write openvino==2024.6, openvino>=2022.1,<2025, npu or gpu"
        raise ValueError(f"{text!r} is no target; {help}")
    fitting = RELEASES
    for part in filter(None, re.split(r"[,\s]+", re.sub(r"([=<>!])\s+", r"\1", rest))):
        match = re.fullmatch(r"(==|!=|>=|<=|>|<)(\d{4}(?:\.\d+){0,2})", part)
        if match is None:
            raise ValueError(f"{text!r}: {part} is no condition; write == or >= and a release, such as >=2022.1")
        fitting = tuple(r for r in fitting if _COMPARE[match[1]](version(r), version(match[2])))
    if not fitting:
        help = f"OpenVINO 2021.4 reads what `irrun edit --opset {_OPSET_OF_2021} --ir-version {_IR_OF_2021}` writes"
        raise ValueError(f"{text!r} names no measured release; these are {', '.join(RELEASES)}. {help}")
    return Target(text, fitting)


def span(releases: Iterable[str]) -> str:
    """Return releases as text, with neighbours joined: ``2022.1 to 2022.3 and 2023.1``."""
    runs: list[list[str]] = []
    for release in releases:
        if runs and RELEASES.index(runs[-1][-1]) + 1 == RELEASES.index(release):
            runs[-1].append(release)
        else:
            runs.append([release])
    texts = [run[0] if len(run) == 1 else f"{run[0]} {'and' if len(run) == 2 else 'to'} {run[-1]}" for run in runs]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}" if texts else ""
