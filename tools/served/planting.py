"""Plant faults, and see whether ``irrun paged`` names layer and cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import irrun
from irrun.debug.paged import Fault, serving
from irrun.debug.paged.sides import Paged, Stateful, replay
from irrun.diagnostics import IrrunError
from served.call_faults import CALLS, Tables, entries, planned
from served.faults import NoPlaceError, Planted
from served.graph import Graph
from served.graph_faults import GRAPHS
from served.numbered import numbered

__all__ = ["FAMILIES", "Verdict", "verdicts"]

_ATTENTION: Final = ("llama", "qwen3", "phi3", "gemma3", "bloom", "opt", "mixtral", "qwen3-moe", "gpt-oss")
_RECURRENT: Final = ("lfm2", "qwen3-next", "bamba", "falcon-h1")
FAMILIES: Final = _ATTENTION + _RECURRENT
"""The families in which faults are planted."""
_ROTATED: Final = ("llama", "qwen3", "phi3", "gemma3", "mixtral", "qwen3-moe", "bamba", "falcon-h1")
_ONLY: Final[dict[str, tuple[str, ...]]] = {
    "window": ("phi3", "gemma3", "gpt-oss"), "no_window": ("phi3", "gemma3", "gpt-oss"), "slopes": ("bloom",),
    "sinks": ("gpt-oss",), "key_rotation": _ROTATED, "query_rotation": _ROTATED, "shared_cache": _ATTENTION,
    "experts": ("mixtral", "qwen3-moe", "gpt-oss"), "router": ("mixtral", "qwen3-moe", "gpt-oss"),
    "kernel": _RECURRENT, "decay": ("bamba", "falcon-h1"), "shared_table": ("falcon-h1",), "kept_state": _RECURRENT,
    "wrong_state": _RECURRENT, "head_of_weights": ("llama", "qwen3", "gemma3", "opt", "mixtral", "gpt-oss"),
}  # fmt: skip
"""The families that have a place for a kind of fault, where not all have."""
TOKENS: Final = 70
SLOTS: Final = 32


@dataclass(frozen=True)
class Verdict:
    """A fault, and what ``irrun paged`` says of it."""

    kind: str
    model: str
    """The family, ``-numbered`` if the layers of both files have numbers for names."""
    planted: Planted
    fault: Fault | None
    error: str = ""

    @property
    def is_named(self) -> bool:
        said = "" if self.fault is None else self.fault.cause or ""
        layer = "" if self.fault is None else self.fault.layer or ""
        return all(word in said for word in self.planted.words) and self.planted.layer in ("", layer)

    @property
    def line(self) -> str:
        said = self.error if self.fault is None else f"{self.fault.layer}: {self.fault.cause}"
        return f"{'named ' if self.is_named else 'MISSED'} {self.kind:<16} {self.model:<20} {self.planted.text} [{self.planted.layer}]\n       {said}"


_TRIES: Final = 200
"""Draws of a family and a place. Most families have no place for some kinds, which is found at once."""


def verdicts(count: int, seed: int, folder: Path) -> Iterator[Verdict]:
    """Yield ``count`` faults that move logits: each kind in turn, in a random family and place.

    Half of the faults of each kind, if there are two, are in files whose layers have numbers for names.
    """
    rng = np.random.default_rng(seed)
    kinds = [*GRAPHS, *CALLS]
    rng.shuffle(kinds)  # type: ignore[arg-type]
    exported = {family: _numbered(family, folder, rng) for family in FAMILIES}
    for made in range(count):
        turn, number = divmod(made, len(kinds))
        yield _drawn(kinds[number], folder, rng, exported if (turn + number) % 2 else {})


def _numbered(family: str, folder: Path, rng: np.random.Generator) -> Mapping[str, str]:
    """Write both files of a family with numbers for names, and return the exporters' names of the paged one."""
    numbered(folder / f"{family}.xml", folder / f"{family}-numbered.xml", rng)
    return numbered(folder / f"{family}-paged.xml", folder / f"{family}-numbered-paged.xml", rng)


def _drawn(kind: Any, folder: Path, rng: np.random.Generator, exported: Mapping[str, Mapping[str, str]]) -> Verdict:
    """Return a fault of a kind, in a family and a place where it moves logits.

    ``exported`` holds the exporters' names of the families in which layers have numbers for names.
    """
    families = _ONLY.get(kind.__name__, FAMILIES)
    for _ in range(_TRIES):
        family = families[int(rng.integers(len(families)))]
        model = f"{family}-numbered" if exported else family
        with suppress(NoPlaceError):
            if kind in GRAPHS:
                verdict = _graph(kind, model, folder, rng, exported.get(family, {}))
            else:
                verdict = _calls(kind, model, folder, rng)
            if verdict.fault is not None or verdict.error:
                return verdict
    raise AssertionError(f"{kind.__name__} moves no logits in {_TRIES} places")


def _graph(kind: Any, model: str, folder: Path, rng: np.random.Generator, exported: Mapping[str, str]) -> Verdict:
    graph = Graph(folder / f"{model}-paged.xml", exported)
    planted = kind(graph, rng)
    path = folder / f"planted-{rng.integers(1 << 30)}.xml"  # the .bin of the fault before may still be mapped
    graph.save(path)
    return _verdict(kind, model, planted, folder, str(path), None)


def _calls(kind: Any, model: str, folder: Path, rng: np.random.Generator) -> Verdict:
    stateful, paged = (
        Stateful(irrun.compile(folder / f"{model}.xml")),
        Paged(irrun.compile(folder / f"{model}-paged.xml")),
    )
    schedule = ("whole prompts", "permuted blocks", "pieces", "interleaved")[int(rng.integers(4))]
    plan = planned(stateful.vocabulary, TOKENS, SLOTS, int(rng.integers(1 << 30)), schedule)
    stateful.run(plan.prompts[0])
    blank = paged.caches(stateful, TOKENS, SLOTS, 2 * -(-TOKENS // SLOTS) + 4)

    def caches(number: int) -> dict[str, np.ndarray]:
        replay(paged, plan.calls[:number], blank)
        return dict(paged.model.state)

    tables = Tables(plan, caches)
    planted = kind(tables, rng)
    path = folder / "planted.npz"
    np.savez(path, **entries(tables.calls))  # type: ignore[arg-type]
    return _verdict(kind, model, planted, folder, str(folder / f"{model}-paged.xml"), str(path))


def _verdict(kind: Any, model: str, planted: Planted, folder: Path, paged: str, calls: str | None) -> Verdict:
    name = kind.__name__
    try:
        found = serving(str(folder / f"{model}.xml"), paged, tokens=TOKENS, slots=SLOTS, calls=calls)
    except IrrunError as error:
        return Verdict(name, model, planted, None, str(error))
    return Verdict(name, model, planted, next((s.fault for s in found.schedules if s.fault is not None), None))
