"""Draw the pairs, ask ``compare`` and ``bisect`` about each, and count."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

import irrun
import pairs
from irrun import engines
from irrun.debug import Comparison, bisect, compare
from pairs import tokens
from pairs.faults import hidden
from pairs.networks import Network, networks

DEFAULT: Final = "openvino"
SIDES: Final = (DEFAULT, "openvino[precision=f32]")
"""Where faults are hidden: as the engine is shipped, and in f32."""
HARMLESS: Final = (
    *SIDES, "openvino[precision=bf16]", "openvino[precision=f16]", "openvino[KV_CACHE_PRECISION=u8]",
    "openvino[KV_CACHE_PRECISION=f16]", "openvino[EXECUTION_MODE_HINT=ACCURACY]",
)  # fmt: skip
INSTRUCTIONS: Final = ("", "AVX512_CORE", "AVX2", "SSE41")
"""The newest instructions that OpenVINO may use; an empty text allows all."""
_DRAWS: Final = 30
"""The most faults that are drawn for one that is small."""
_WRONG: Final = 0.1
"""The error of outputs, relative to their root mean square, beyond any precision: the engine itself is wrong. OpenVINO
2024.6, for example, takes a mask of booleans for something else in an attention of f32."""
_SMALL: Final = 3
"""One fault of so many is smaller in the outputs than the error of the engine's precision."""


def main() -> None:
    """Read the command line, and print the pairs and the counts."""
    parser = argparse.ArgumentParser(prog="python -m tools pairs", description=(pairs.__doc__ or "").split("\n\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--bisect", action="store_true", help="ask bisect about the faults, too")
    parser.add_argument("--tokens", type=int, metavar="N", help="pairs of language models that decode N tokens")
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="another OpenVINO")
    options = parser.parse_args()
    counts = judged(options.count, options.seed, options.python, also=options.bisect, steps=options.tokens)
    for what, count in counts.items():
        print(f"{count:>6} {what}")


def judged(
    count: int, seed: int, pythons: Sequence[str] = (), *, also: bool = False, steps: int | None = None
) -> Counter[str]:
    """Print what becomes of each pair, and return the counts: see the package.

    ``pythons`` are interpreters with another OpenVINO, ``also`` asks ``bisect``, and ``steps`` draws language models
    that decode so many tokens.
    """
    rng, counts = random.Random(seed), Counter[str]()
    sides = [*HARMLESS, *(f"openvino[precision=f32,python={path}]" for path in pythons)]
    with tempfile.TemporaryDirectory() as name:
        drawn = [] if steps else list(networks(Path(name)))
        for number in range(count):
            if steps:
                tokens.draw(number, steps, rng, counts, Path(name))
                continue
            network = drawn[number // 2 % len(drawn)]
            if number % 2:
                is_small = number // 2 % _SMALL == 0
                _faulty(network, Path(name, "wrong.xml"), rng, counts, is_small=is_small, also=also)
            else:
                _harmless(network, sides, rng, counts)
    return counts


def _faulty(network: Network, target: Path, rng: random.Random, counts: Counter[str], *, is_small: bool, also: bool) -> None:  # fmt: skip
    """Hide a fault, ask about it, and print and count what is named."""
    side, seed = DEFAULT if is_small else rng.choice(SIDES), rng.randrange(1 << 16)
    inputs = network.inputs(seed)
    right = _outputs(f"exact:{network.path}", inputs)
    own = _error(_outputs(f"{side}:{network.path}", inputs), right)
    model, draws = irrun.read_model(network.path), 0
    while True:
        fault, draws = hidden(model, rng, target), draws + 1
        size = _error(_outputs(f"exact:{target}", inputs), right)
        if size > 0 and (not is_small or size < own or draws == _DRAWS):
            break
    comparison = compare(str(network.path), f"{side}:{target}", inputs)
    named = "nothing" if comparison.first is None else comparison.first.layer.name
    counts["faults"] += 1
    counts["faults in the default side"] += side == DEFAULT
    counts["faults in the default side that compare names"] += side == DEFAULT and named == fault.layer
    counts["faults smaller than the precision's error"] += size < own
    counts["faults that compare names"] += named == fault.layer
    line = f"{network.path.stem} {fault.kind} {fault.layer} ({size:.1e} of {own:.1e}), {side}: compare names {named}"
    if also:
        parts = [layer.name for layer in bisect(str(network.path), f"{side}:{target}", inputs).layers]
        counts["faults that bisect names"] += parts == [fault.layer]
        line += f", bisect {', '.join(parts) or 'nothing'}"
    print(line, flush=True)


def _outputs(side: str, inputs: dict[str, np.ndarray]) -> Sequence[np.ndarray]:
    with engines.open(side) as engine:
        engine.load()
        outputs = engine.infer(inputs)
    assert isinstance(outputs, engines.Outputs), outputs
    return [output.array for output in outputs.outputs]


def _error(outputs: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> float:
    """Return the greatest error of an output: the root of its mean square, relative to the right values'."""
    pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(outputs, right, strict=True)]
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)) for a, b in pairs)


def _harmless(network: Network, sides: Sequence[str], rng: random.Random, counts: Counter[str]) -> None:
    """Ask about a healthy file in a drawn side, and print and count whether it agrees."""
    comparison: Comparison | None = None
    side, instructions, seed = "", "", 0
    while comparison is None or comparison.verdict == "refused":
        counts["refused by the engine, and drawn anew"] += comparison is not None
        side, instructions, seed = rng.choice(sides), rng.choice(INSTRUCTIONS), rng.randrange(1 << 16)
        if instructions:
            os.environ["ONEDNN_MAX_CPU_ISA"] = instructions
        try:
            comparison = compare(str(network.path), f"{side}:{network.path}", network.inputs(seed))
        finally:
            os.environ.pop("ONEDNN_MAX_CPU_ISA", None)
    inputs = network.inputs(seed)
    error = _error(_outputs(f"{side}:{network.path}", inputs), _outputs(f"exact:{network.path}", inputs))
    what = "agrees" if comparison.agrees else comparison.verdict
    if error > _WRONG:
        counts["healthy files that an engine computes wrongly"] += 1
        counts["healthy files that an engine computes wrongly, and is told so"] += comparison.verdict == "differ"
        what += f"; the outputs are wrong by {error:.2g}"
    else:
        counts["harmless"] += 1
        counts["harmless that agree"] += comparison.agrees
    if comparison.first is not None:
        what += f" at {comparison.first.layer.name}: {comparison.first.layer.budget}"
    print(f"{network.path.stem}, {side} {instructions or 'as it is'}: {what}", flush=True)
