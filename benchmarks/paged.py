"""Rates of a decoder with paged attention, next to its stateful form: `python -m benchmarks.paged MODEL.xml [PAGED]`.

Each form computes one token after the other behind a prompt of 128 tokens, in one thread. The forms take turns, call by
call. A row is the median of the processor time of calls with so many sequences. Without PAGED, an installed OpenVINO
rewrites the model.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import irrun
from irrun.genai.decoder import Decoder
from irrun.genai.paged import Paged, rewritten
from irrun.genai.schedule import NewTokens, needed
from irrun.kernels.threads import one_thread

PROMPT, WARM, CALLS = 128, 8, 64
SEQUENCES = (1, 2, 4, 8)


def main() -> None:
    stateful, *rest = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder, one_thread():
        paged = rest[0] if rest else rewritten(stateful, Path(folder))
        calls = {("stateful", 1): _stateful(stateful), **{("paged", n): _paged(paged, n) for n in SEQUENCES}}
        took = _medians(calls)
    print("| form | sequences | ms a call | tokens/s | of stateful | of one sequence |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for (form, count), seconds in took.items():
        rates = [count * took[other, 1] / seconds for other in ("stateful", form)]
        print(f"| {form} | {count} | {seconds * 1e3:.2f} | {count / seconds:.0f} | {rates[0]:.2f} | {rates[1]:.2f} |")


def _stateful(path: Path) -> Callable[[int], object]:
    """Return a function that computes one more token of the stateful model."""
    decoder = Decoder(irrun.compile(path))
    decoder(_prompt())
    return lambda _: decoder([1])


def _paged(path: Path, count: int) -> Callable[[int], object]:
    """Return a function that computes one more token of each of so many sequences. It gets the number of the call."""
    model = Paged(irrun.compile(path))
    own = needed(PROMPT + WARM + CALLS)
    blocks = [list(range(s * own, s * own + own)) for s in range(count)]
    model.begin(own * count)
    for table in blocks:
        model([NewTokens(_prompt(), 0, table)])
    return lambda number: model([NewTokens([1], PROMPT + number, table) for table in blocks])


def _prompt() -> list[int]:
    return np.random.default_rng(0).integers(0, 32, PROMPT).tolist()


def _medians(calls: dict[tuple[str, int], Callable[[int], object]]) -> dict[tuple[str, int], float]:
    """Return the median processor time of each call in seconds, after some that make plans for recurring dims."""
    times: dict[tuple[str, int], list[float]] = {name: [] for name in calls}
    for number in range(WARM + CALLS):
        for name, call in calls.items():
            begin = time.process_time()
            call(number)
            times[name].append(time.process_time() - begin)
    return {name: statistics.median(own[WARM:]) for name, own in times.items()}


if __name__ == "__main__":
    main()
