"""Inputs of calls that contradict the tokens of the call: each is corrected, and the calls run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from irrun.debug.paged.calls import Call, Plan
from irrun.genai.schedule import NewTokens, tables

__all__ = ["wrong_input"]


def wrong_input(plan: Plan, number: int, agrees: Callable[[Sequence[Call]], bool]) -> tuple[int, str] | None:
    """Return a call, up to call ``number``, with a wrong input, and what is wrong with it.

    With the input corrected, ``agrees`` is true. It runs calls, and returns whether the token at fault then has the
    expected logits.
    """
    calls = plan.calls[: number + 1]
    found = [(n, name, array) for n, call in enumerate(calls) for name, array in _wrong(call)]
    for chosen in ([one] for one in found) if len(found) < 2 else (*([one] for one in found), found):
        corrected = list(calls)
        for n, name, array in chosen:
            corrected[n] = replace(corrected[n], inputs={**corrected[n].inputs, name: array})
        if agrees(corrected):
            n, name, array = chosen[0]
            return n, " and ".join(_said(name, calls[n].inputs[name], array) for n, name, array in chosen)
    return None


def _wrong(call: Call) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the inputs that the tokens of a call determine, and that have other values, each corrected."""
    new = [NewTokens(range(p.begin, p.end), p.slot(p.begin), (), p.begin) for p in call.pieces]
    expected = {**tables(new), "la.past_lens": np.array([piece.begin for piece in call.pieces])}
    for name in ("past_lens", "position_ids", "subsequence_begins", "la.past_lens"):
        given = call.inputs.get(name)
        if given is not None and not np.array_equal(given, expected[name]):
            yield name, expected[name].astype(given.dtype)
    longest, most = call.inputs.get("max_context_len"), expected["max_context_len"]
    if longest is not None and longest < most:
        yield "max_context_len", most.astype(longest.dtype)


def _said(name: str, given: np.ndarray, corrected: np.ndarray) -> str:
    """Return what is wrong with an input, as a clause."""
    if given.shape != corrected.shape:
        return f"{name} has {given.size} elements, not {corrected.size}"
    if not given.ndim:
        return f"{name} is {given}, not {corrected}"
    place = int(np.flatnonzero(given != corrected)[0])
    return f"{name}[{place}] is {given[place]}, not {corrected[place]}"
