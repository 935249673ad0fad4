"""The models that releases are asked about: cases of the suite, grown models, networks in several operation sets,
models with one thing broken, and sweeps.

A quarter of the suite is held out: the table is made without it, and ``--judge`` draws from it.
"""

from __future__ import annotations

import hashlib
import random
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import irrun
import small_networks
from irrun import surgery
from irrun.conformance.suite import Case, read_suite
from irrun.diagnostics import IrrunError
from irrun.growing import Grower
from mutations import mutate
from releases.samples import layers
from releases.sweeps import sweep

__all__ = ["write_models"]

_JUDGED: Final = {"suite": 0.4, "grown": 0.3, "networks": 0.05, "broken": 0.25}
_LEARNED: Final = {"suite": 0.4, "swept": 0.3, "grown": 0.12, "networks": 0.005, "broken": 0.175}
"""The kinds of models, as shares. A judgement has no swept ones."""
_SEEN: Final = 2
"""A case or swept model is asked about if it shows a sentence of an operation that fewer models showed before."""
_OPSETS = (8, 9, 10, 11, 12, 13)


def write_models(folder: Path, count: int, seed: int, *, held_out: bool, more: Sequence[Path] = ()) -> list[Path]:
    """Write ``count`` models to a folder, and return their paths. The same seed writes the same models.

    ``more`` are models of the user, which are added as they are.
    """
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {kind: round(count * share) for kind, share in (_JUDGED if held_out else _LEARNED).items()}
    cases = _cases(held_out=held_out)
    rng.shuffle(cases)
    paths = [*_grown(folder, seed, wanted["grown"]), *_networks(folder, rng, wanted["networks"])]
    if held_out:
        paths += islice(_write(folder, "suite", cases), wanted["suite"])
    else:
        swept = [*sweep(cases, rng)]
        rng.shuffle(swept)
        seen: Counter[tuple[str, str]] = Counter()
        paths += islice(_novel(_write(folder, "suite", cases), seen), wanted["suite"])
        paths += islice(_novel(_write(folder, "swept", swept), seen), wanted["swept"])
    paths += _broken(folder, rng, wanted["broken"], paths)
    return [*paths, *more]


def _novel(models: Iterable[Path], seen: Counter[tuple[str, str]]) -> Iterator[Path]:
    """Yield the models that show a sentence of an operation which few models in ``seen`` show, and count theirs."""
    for model in models:
        shown = {
            (row.operations[-1], sentence)
            for row in layers(model).rows
            for sentence in row.sentences
            if row.operations and (not row.blocks or sentence.startswith("irrun reports"))
        }
        if any(seen[pair] < _SEEN for pair in shown):
            seen.update(shown)
            yield model


def _cases(*, held_out: bool) -> list[Case]:
    cases: list[Case] = [*read_suite().cases, *read_suite("internal").cases]
    return [case for case in cases if _is_held_out(case.name) is held_out]


def _write(folder: Path, kind: str, cases: Sequence[Case]) -> Iterator[Path]:
    for number, case in enumerate(cases):
        path = folder / f"{kind}-{number}.xml"
        path.write_text(case.xml)
        if case.bin:
            path.with_suffix(".bin").write_bytes(case.bin)
        yield path


def _is_held_out(name: str) -> bool:
    return int(hashlib.sha1(name.encode()).hexdigest(), 16) % 4 == 0


def _grown(folder: Path, seed: int, count: int) -> list[Path]:
    """Write models that ``irrun.growing`` grows, every other one as it does for engines."""
    paths: list[Path] = []
    for for_engine in (True, False):
        grower = Grower(seed, for_engine=for_engine)
        for number in range(count // 2):
            path = folder / f"grown-{int(for_engine)}-{number}.xml"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    irrun.save_model(grower.grow(number).model(dynamic=number % 3 == 0), path)
                except IrrunError:
                    continue
            paths.append(path)
    return paths


def _networks(folder: Path, rng: random.Random, count: int) -> Iterator[Path]:
    """Write whole networks in small, in the operation sets of several releases."""
    import openvino as ov

    ov_like: Any = ov
    saved: list[Path] = []
    for made in small_networks.NETWORKS:
        path = folder / f"network-{made.__name__}.xml"
        ov.save_model(made(ov_like), path, compress_to_fp16=False)
        saved.append(path)
    for number in range(count):
        path = folder / f"opset-{number}.xml"
        try:
            irrun.save_model(surgery.downgrade(rng.choice(saved), rng.choice(_OPSETS)), path)
        except IrrunError:
            continue
        yield path


def _broken(folder: Path, rng: random.Random, count: int, of: Sequence[Path]) -> Iterator[Path]:
    """Write models in which one dim, precision or attribute is corrupted."""
    number = 0
    while number < count:
        source = rng.choice(of)
        try:
            mutation = mutate(source, source.read_text(), rng)
        except (ValueError, IndexError):  # broken already, an operation set without a number, or no attribute at all
            continue
        if mutation is None:
            continue
        path = folder / f"broken-{number}.xml"
        path.write_text(mutation.text)
        weights = source.with_suffix(".bin")
        if weights.exists():
            path.with_suffix(".bin").write_bytes(weights.read_bytes())
        number += 1
        yield path
