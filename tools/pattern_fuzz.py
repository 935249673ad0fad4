"""Compile and search random hostile patterns, in processes with limits of memory and time: `pattern_fuzz 20000`.

Each pattern is written for PCRE2 and passed to the three operations that search with patterns, with a string of up to
20,000 characters and a deadline. A process may take 1 GiB more than Python with irrun. An operation has to end with a
result, a refusal or the end of its time after at most 1.2 seconds of the processor. The exit status is the number of
failures.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from irrun.base.deadline import OutOfTime, ends_at
from irrun.diagnostics import Refused
from irrun.opdef import Op, resolve

__all__ = ["failures", "pattern"]

_PATTERNS = 250
"""The patterns of a process."""
_DEADLINE_SECONDS = 0.2
_MOST_SECONDS = 1.2
"""Seconds of the processor that an operation may take. The package ``regex`` measures these as well."""
_MORE_BYTES = 1 << 30
_LONGEST = 400
"""The most characters of a pattern. Longer ones are nearly always refused."""
_LENGTHS = (0, 1, 30, 300, 900, 1_900, 20_000)
_ATOMS = (
    "a", "b", "ab", "aba", ".", r"\w", r"\s", r"\d", "[ab]", "[^a]", "[a-z0-9_]", r"\p{L}", r"\P{L}", r"\b", r"\X", r"\R",
    r"[\w\s]", r"[^\W\d]", "^", "$", "", "é", r"\x{1F600}", "[[:alpha:]]", r"\K", "c", r"\p{Han}",
)  # fmt: skip
_RARE_ATOMS = (r"\1", r"\g{2}", "(?1)", "(?2)", "(?&n)", "(?R)")
_OPENINGS = (
    "(",
    "(?:",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?>",
    "(?i:",
    "(?|",
    "(?s:",
    "(?(1)",
    "(?<n>",
    "(",
    "(?:",
    "(?:",
    "(?m-i:",
    "(?:(?i)",
)
_COUNTS = ("*", "+", "?", "*?", "+?", "*+", "++", "??")
_NUMBERS = (0, 1, 1, 2, 2, 3, 3, 5, 10, 30, 100, 1_000, 65_535)


def pattern(seed: int) -> str:
    """Return a random pattern."""
    draw = random.Random(seed)
    while len(text := _alternatives(draw, draw.randrange(1, 6))) > _LONGEST:
        pass
    return text


def _alternatives(draw: random.Random, depth: int) -> str:
    count = 1 if draw.random() < 0.6 else draw.choice((2, 2, 3, 5, 40))
    return "|".join(_sequence(draw, depth if number < 3 else 0) for number in range(count))


def _sequence(draw: random.Random, depth: int) -> str:
    parts: list[str] = []
    for _ in range(draw.choice((1, 1, 2, 3, 4, 8))):
        atom = draw.choice(_ATOMS if draw.random() < 0.97 else _RARE_ATOMS)
        if depth and draw.random() < 0.6:
            atom = f"{draw.choice(_OPENINGS)}{_alternatives(draw, depth - 1)})"
        parts.append(atom + (_count(draw) if atom and draw.random() < 0.55 else ""))
    text = "".join(parts)
    return text * draw.choice((2, 10, 50)) if draw.random() < 0.03 and len(text) < 500 else text


def _count(draw: random.Random) -> str:
    if draw.random() < 0.6:
        return draw.choice(_COUNTS)
    low, high = sorted(draw.choices(_NUMBERS, k=2))
    return draw.choice((f"{{{high}}}", f"{{{low},}}", f"{{{low},{high}}}", f"{{{low},{high}}}?"))


def _text(draw: random.Random) -> bytes:
    length, kind = draw.choice(_LENGTHS), draw.randrange(4)
    text = "".join(draw.choices("ab", k=length)) if kind == 3 else ("a", "ab", "a b\n")[kind] * length
    return (text[:length] + draw.choice(("", "c", "é"))).encode()


def _calls(source: bytes, text: bytes) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name and the call of each operation that searches a string with a pattern."""
    chars, given = np.frombuffer(text, np.uint8), np.frombuffer(source, np.uint8)
    begin, end = np.zeros(1, np.int32), np.array([len(text)], np.int32)
    row = begin, np.ones(1, np.int32)
    replacement = np.frombuffer(b"x", np.uint8)
    yield "RegexSplit", lambda: _op("RegexSplit", behaviour="isolate").run(*row, begin, end, chars, given)
    yield "RegexNormalization", lambda: _op("RegexNormalization").run(begin, end, chars, given, replacement)
    yield "SpecialTokensSplit", lambda: _op("SpecialTokensSplit").run(*row, begin, end, chars, given)


def _op(type: str, **attributes: str) -> Op:
    cls = resolve(type, None, "extension")
    assert cls is not None
    return cls(**attributes)


def failures(seed: int, count: int, say: Callable[[str], None] = print) -> int:
    """Test the patterns of ``count`` seeds, in processes of their own. Return how many fail."""
    failed = 0
    for first in range(seed, seed + count, _PATTERNS):
        last = min(first + _PATTERNS, seed + count)
        while first < last:
            done = _in_process(first, last)
            for line in done:
                failed += bool(line["faults"])
                for fault in line["faults"]:
                    say(f"{line['seed']}: {fault}: {pattern(line['seed'])!r:.200}")
            first += len(done)
            if first < last:
                failed += 1
                say(f"{first}: the process ended: {pattern(first)!r:.200}")
                first += 1
    return failed


def _in_process(first: int, last: int) -> list[dict[str, Any]]:
    """Return what a process says of the patterns of some seeds, up to the one that ends it."""
    command = [sys.executable, "-m", "tools", "pattern_fuzz", "worker", str(first), str(last)]
    limit = 4 * _MOST_SECONDS * (last - first) + 60
    try:
        output = subprocess.run(command, stdout=subprocess.PIPE, timeout=limit, check=False).stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
    return [json.loads(line) for line in output.splitlines() if line.endswith(b"}")]


def _work(first: int, last: int) -> None:
    for _, call in _calls(b"a", b"a"):
        call()  # imports
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            limit = int(file.read().split()[0]) * resource.getpagesize() + _MORE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for seed in range(first, last):
        print(json.dumps({"seed": seed, "faults": list(_faults(seed))}), flush=True)


def _faults(seed: int) -> Iterator[str]:
    source, text = pattern(seed).encode(), _text(random.Random(seed))
    for name, call in _calls(source, text):
        since = time.process_time()
        try:
            with ends_at(time.monotonic() + _DEADLINE_SECONDS):
                call()
        except (Refused, OutOfTime):
            pass
        except Exception as error:
            yield f"{name} raises {type(error).__name__}: {error}"
        taken = time.process_time() - since
        if taken > _MOST_SECONDS:
            yield f"{name} takes {taken:.1f} s on {len(text):,} characters"


def main() -> None:
    """Test as many patterns as the first argument says; the second one is the first seed."""
    if sys.argv[1] == "worker":
        _work(int(sys.argv[2]), int(sys.argv[3]))
        return
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failed = failures(seed, count)
    print(f"{count:,} patterns, {failed} failures")
    sys.exit(min(failed, 255))


if __name__ == "__main__":
    main()
