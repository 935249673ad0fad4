"""Whatever number an attribute holds, an operation refuses it or computes: no kernel fails with an exception."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from pathlib import Path

import pytest

import irrun
from irrun.conformance import read_suite
from irrun.diagnostics import IrrunError
from irrun.running.generate import draw
from places import SAMPLES

_NUMBERS = ("1e309", "nan", "-1", "9223372036854775808", "-" + "9" * 309, "1e-320", "", "5000", "2147483647")
_ATTRIBUTE = re.compile(r'(?<=\s)(?!element_type|offset|size|shape)(\w+)="([^"]*\d[^"]*)"(?=[^<>]*/>)')
_MEMORY = 1 << 26
_MOST_SECONDS = 3
"""Seconds of the processor after which a refusal comes too late: it needs no computation."""


def _is_of_data(found: re.Match[str]) -> bool:
    """Return whether an attribute belongs to an element <data>."""
    return found.string[: found.start()].rpartition("<")[2].startswith("data ")


def _failure(path: Path) -> str:
    """Return how a model with random inputs fails with what is no answer, or after long work; or an empty text."""
    since = time.process_time()
    try:
        irrun.check(path)
        model = irrun.read_model(path)
        irrun.compile(model, max_memory=_MEMORY, timeout=10)(draw(model, 0))
    except IrrunError as error:
        taken, first = time.process_time() - since, error.diagnostics[0]
        late = f"{first.code} after {taken:.1f} s" if taken > _MOST_SECONDS and first.code != "IR607" else ""
        return first.message if first.code == "IR603" else late
    return ""


def test_absurd_numbers_in_attributes(tmp_path: Path) -> None:
    """One case of each version with static dims: each of its numbers becomes each of these."""
    cases = defaultdict(list)
    for case in read_suite().cases:
        if case.verdict == "values" and case.declaration == "static" and len(case.xml) < 20_000:
            cases[case.operation].append(case)
    failures, tried, path = [], 0, tmp_path / "model.xml"
    for operation, known in sorted(cases.items()):
        most = max(known, key=lambda case: len(_ATTRIBUTE.findall(case.xml)))
        path.with_suffix(".bin").write_bytes(most.bin)
        for found in filter(_is_of_data, _ATTRIBUTE.finditer(most.xml)):
            begin, end = found.span(2)
            for number in _NUMBERS:
                path.write_text(most.xml[:begin] + number + most.xml[end:])
                tried += 1
                if why := _failure(path):
                    failures.append(f"{operation} {found[1]}={number}: {why}")
    assert tried > 500
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('strides="1, 1"', 'strides="1, 99999999999999999999"', "holds an integer beyond 64 bits"),
        ('strides="1, 1"', 'strides="1, 9223372036854775808"', "holds an integer beyond 64 bits"),
        ('strides="1, 1"', 'strides="1, 9223372036854775808.5"', "should be integers separated by commas"),
        ('offset="288"', 'offset="99999999999999999999"', "holds an integer beyond 64 bits"),
        ('<layer id="2"', '<layer id="99999999999999999999"', "not an integer of at most 18 digits"),
    ],
)
def test_the_message_for_a_long_integer(old: str, new: str, said: str, tmp_path: Path) -> None:
    """The number is an integer. So the message names the limit instead of "should be an integer"."""
    text = (SAMPLES / "convnet.xml").read_text()
    assert old in text
    (tmp_path / "a.xml").write_text(text.replace(old, new, 1))
    (tmp_path / "a.bin").write_bytes((SAMPLES / "convnet.bin").read_bytes())
    message = irrun.check(tmp_path / "a.xml").errors[0].message
    assert new.removeprefix("<layer ") in message
    assert said in message
