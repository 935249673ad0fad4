"""Patterns of strangers: their size, their time and their memory are bounded, whatever they say."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.base.deadline import OutOfTime, ends_at
from irrun.diagnostics import Refused
from irrun.extensions.tokenizers import _patterns
from irrun.extensions.tokenizers._effort import effort
from irrun.extensions.tokenizers._patterns import MOST_CHARACTERS, compiled
from irrun.extensions.tokenizers._translation import DoesNotCompile, translate
from irrun.opdef import Op, resolve
from pattern_fuzz import failures

pytest.importorskip("regex", reason="patterns need the package regex")

BOMB = "(?:(?:(?:a{1000}){1000}){1000}){1000}"


@pytest.mark.parametrize(
    ("pattern", "items"),
    [
        ("abc", 3), ("ab{5}", 6), ("ab{2,7}", 3), ("ab{0,9}", 2), ("a*", 1), ("a{9,}", 9), ("(?:ab){4}", 4 * (2 + 1)), (r"\x{1F600}{3}x", 4),
        ("(?:a{10}|b{20}){5}", 5 * (10 + 20 + 1)), ("(?=a{30})a", 30 + 1 + 1), ("(?<=(?:a{3}){3})", 3 * (3 + 1) + 1), ("[abc]{10}", 10 * (1 + 3)),
        ("(?i:[a-c]{10})", 10 * (1 + 3) + 1), ("(a{50})(?1)", 51 + 51), ("(?<n>a)(?&n)", 4), ("((a{9}){9})", 9 * (9 + 1) + 1), (r"(a)\1", 2 + 2),
    ],
)  # fmt: skip
def test_items_by_hand(pattern: str, items: int) -> None:
    """A group and a back reference count one, a set one and its members; only the least number is written out."""
    assert effort(translate(pattern)).items == items


@pytest.mark.parametrize(
    "pattern",
    [
        BOMB, "(?:a{1000}){1000}", "(?:a{200}|b{200}){40}", "(?=(?:a{101}){101})", "(?<=(?:[ab]{101}){101})", "(?i:(?:[a-z]{101}){101})",
        r"(?:\w{100}){100}", "(?>(?:a{1000}){20})", "(a{1000})(?1){20}", "(?:(?:a{1,1000}){1000}){1000}", "(?(?=a{10000})b|c)", "(?:a{1000,}){1000,}",
        "((a{1000}))(?2)(?2)(?2)(?2)(?2)(?2)(?2)(?2)(?2)(?2)",
    ],
)  # fmt: skip
def test_counts_within_counts_are_refused(pattern: str) -> None:
    since = time.process_time()
    with pytest.raises(Refused, match="multiply to") as caught:
        compiled(pattern.encode())
    assert caught.value.code == "IR201"
    assert time.process_time() - since < 1


def test_long_patterns() -> None:
    """A pattern of many words has as many items as it has characters; there is a limit all the same."""
    words = "|".join(f"<word{number}>" for number in range(2000))
    assert compiled(words.encode()).compiled.search("x<word1234>")[0] == "<word1234>"
    with pytest.raises(Refused, match="1,000,001 characters"):
        compiled(b"a" * (MOST_CHARACTERS + 1))
    with pytest.raises(DoesNotCompile, match="nested too deeply"):
        compiled(b"(" * 300 + b"a" + b")" * 300)


@pytest.mark.parametrize("pattern", ["(?R)?a", "((?1)?a)", "(a(?2))(b(?1))", "(?<n>a(?&n)?)", "(?P<n>(?P>n))", "(?0)"])
def test_recursion_is_refused(pattern: str) -> None:
    """In `regex`, a group that calls itself takes a gigabyte before it fails."""
    with pytest.raises(Refused, match="recursion") as caught:
        compiled(pattern.encode())
    assert caught.value.code == "IR201"


def test_a_call_of_a_closed_group() -> None:
    assert compiled(b"(a|b)-(?1)").compiled.search("xb-a")[0] == "b-a"


def _split(pattern: str) -> Op:
    cls = resolve("RegexSplit", None, "extension")
    assert cls is not None
    return cls(behaviour="isolate")


def _ragged(text: str) -> list[np.ndarray]:
    zero, one, size = (np.array([n], np.int32) for n in (0, 1, len(text)))
    return [zero, one, zero, size, np.frombuffer(text.encode(), np.uint8)]


SLOW = ["(?=a*a*a*a*a*c)a", "(?:a|a)*[cd]", "(?:a?){30}a{30}[cd]", "(?:a*)*[cd]", "a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?[^a]",
        r"(a*)*\1[cd]", "(?:.*?,){11}P", "(?=(a+a+)+[bd])a"]  # fmt: skip


@pytest.mark.parametrize("pattern", SLOW)
def test_the_time_of_a_search(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search ends with the limit of searches, and with the deadline of the run."""
    source, inputs = np.frombuffer(pattern.encode(), np.uint8), _ragged("a" * 1900 + "b")
    since = time.process_time()
    with ends_at(time.monotonic() + 0.3):
        _ends(pattern, inputs, source, OutOfTime)
    assert time.process_time() - since < 2
    monkeypatch.setattr(_patterns, "MOST_SECONDS", 0.2)
    since = time.process_time()
    _ends(pattern, inputs, source, Refused)
    assert time.process_time() - since < 4


def _ends(pattern: str, inputs: list[np.ndarray], source: np.ndarray, error: type[Exception]) -> None:
    """Run a search that ends with an error, unless `regex` finds a quick way."""
    with pytest.raises(error) if pattern == SLOW[0] else suppress(error):
        _split(pattern).run(*inputs, source)


def test_many_strings_end_with_the_deadline() -> None:
    """Each search is short, all of them are not."""
    ends = np.arange(1, 200_001, dtype=np.int32) * 100
    row = np.zeros(1, np.int32), np.array([ends.size], np.int32)
    chars = np.frombuffer(np.random.default_rng(1).integers(97, 123, ends[-1], np.uint8).tobytes(), np.uint8)
    since = time.process_time()
    with pytest.raises(OutOfTime), ends_at(time.monotonic() + 0.3):
        _split("").run(*row, ends - 100, ends, chars, np.frombuffer(b"[ab]+|[cd]+|.", np.uint8))
    assert time.process_time() - since < 3


def test_many_special_tokens_end_with_the_deadline() -> None:
    """The search for the words of a pattern compares each word at each place."""
    cls = resolve("SpecialTokensSplit", None, "extension")
    assert cls is not None
    tokens = "|".join(f"({'a' * 9}{number:04})" for number in range(5000))
    inputs, source = _ragged("a" * 3_000_000), np.frombuffer(tokens.encode(), np.uint8)
    since = time.process_time()
    with pytest.raises(OutOfTime), ends_at(time.monotonic() + 1):
        cls().run(*inputs, source)
    assert time.process_time() - since < 4


def test_the_memory_of_a_search() -> None:
    """`regex` raises MemoryError where its stack reaches a gigabyte."""
    pattern = compiled(b"(?:(a)|b)*[cd]")
    with (
        pytest.raises(Refused, match="takes more than 1 GiB on a string of 3 characters") as caught,
        pattern.searching("aba"),
    ):
        raise MemoryError
    assert caught.value.code == "IR605"


def test_few_compiled_patterns_are_kept() -> None:
    """A model may have thousands of them."""
    for number in range(3 * _patterns.KEPT):
        compiled(f"(?:a{{90}}){{30}}{number}".encode())
    assert compiled.cache_info().currsize == _patterns.KEPT
    caches = [getattr(module, "_cache", {}) for name, module in sys.modules.items() if name.startswith("regex.")]
    assert not any("a{90}" in str(key) for cache in caches for key in cache)


def _model(pattern: str) -> irrun.Model:
    strings = b.StringTensorUnpack(b.parameter([None], "string", name="texts"))
    changed = b.RegexNormalization(*strings, np.frombuffer(pattern.encode(), np.uint8), np.zeros(0, np.uint8))
    return b.model({"texts": b.StringTensorPack(*changed)})


def test_a_check_and_a_run_refuse_a_bomb(tmp_path: Any) -> None:
    path = tmp_path / "net.xml"
    irrun.save_model(_model("a" * len(BOMB)), path)
    binary = path.with_suffix(".bin")
    binary.write_bytes(binary.read_bytes().replace(b"a" * len(BOMB), BOMB.encode()))
    (found,) = irrun.check(path).errors
    assert (found.code, "multiply to 1e+12 items" in found.message, found.line is not None) == ("IR201", True, True)
    with pytest.raises(irrun.IrrunError, match="IR201"):
        irrun.compile(path)


def test_a_run_ends_in_time() -> None:
    executable = irrun.compile(_model(SLOW[0]), timeout=0.5)
    since = time.process_time()
    with pytest.raises(irrun.ExecutionError, match=r"IR607.*stopped in RegexNormalization"):
        executable(np.array(["a" * 1900], object))
    assert time.process_time() - since < 2


@pytest.mark.processes
def test_random_patterns() -> None:
    said: list[str] = []
    assert failures(1, 250, said.append) == 0, said
