"""Tokenizers next to OpenVINO Tokenizers: `python -m benchmarks.tokenization` prints the figures as Markdown.

The tokenizers are those of `tools/train_tokenizers.py`, trained on half of the texts and timed on the other half:
documentation in English and Python code from Python itself, and the messages of Sphinx in some 60 languages. Both sides
take each batch of lines in turn, in one process with one thread, and their CPU time counts.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

for library in ("OPENBLAS", "OMP", "MKL"):  # read when numpy is imported
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import click
import numpy as np

import irrun

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

NAMES: Final = (
    "bert-uncased", "gpt2", "llama3", "qwen", "llama2", "gemma", "t5", "xlm-roberta", "albert", "word-level",
)  # fmt: skip
"""WordPiece, byte-level BPE, BPE with byte fallback, Unigram and WordLevel."""
VOCABULARY: Final = 32_000
SIZE: Final = 1_000_000
"""The bytes of the texts that are timed."""
TURNS: Final = 3
LARGE: Final = 128_000
"""The entries of the vocabulary whose loading is timed."""


def texts() -> list[str]:
    """Return lines of documentation, of code and of translated messages, in a random order that is always the same."""
    import gettext
    import pydoc_data.topics

    import sphinx

    lines: set[str] = set()
    for path in sorted(Path(sphinx.__file__).parent.glob("locale/*/LC_MESSAGES/sphinx.mo")):
        with path.open("rb") as file:
            try:
                messages = vars(gettext.GNUTranslations(file))["_catalog"]
            except UnicodeDecodeError:  # an old encoding
                continue
        lines.update(line for own in messages.values() for line in own.splitlines())
    lines.update(line for topic in pydoc_data.topics.topics.values() for line in topic.splitlines())
    library = Path(os.__file__).parent
    for name in ("argparse", "ast", "datetime", "difflib", "doctest", "inspect", "tarfile", "typing", "zipfile"):
        found = library / f"{name}.py"
        lines.update((found if found.exists() else library / name / "__init__.py").read_text("utf-8").splitlines())
    kept = sorted(line for line in lines if line.strip())
    random.Random(1).shuffle(kept)
    return kept


def batches(lines: Sequence[str], size: int, each: int) -> list[list[str]]:
    """Return the first lines of ``size`` bytes in all, ``each`` in a batch."""
    total, count = 0, 0
    for count, line in enumerate(lines, 1):  # noqa: B007
        total += len(line.encode())
        if total >= size:
            break
    return [list(lines[at : min(at + each, count)]) for at in range(0, count, each)]


class Sides:
    """irrun and OpenVINO with the tokenizer of a folder, and the CPU seconds that each took."""

    def __init__(self, folder: Path) -> None:
        import openvino as ov
        import openvino_tokenizers  # noqa: F401  (registers the operations)

        path = folder / "openvino_tokenizer.xml"
        model = irrun.compile(path, strict=True)
        compiled: Any = ov.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": 1})
        request = compiled.create_infer_request()
        self.runs: dict[str, Callable[[list[str]], Any]] = {
            "irrun": lambda batch: model([batch]).arrays,
            "OpenVINO": lambda batch: list(request.infer({0: batch}).values()),
        }

    def seconds(self, work: Sequence[list[str]]) -> dict[str, float]:
        """Tokenize all batches with both sides in turn. Return the CPU seconds of each."""
        spent = dict.fromkeys(self.runs, 0.0)
        for batch in work:
            outputs: list[Any] = []
            for name, run in self.runs.items():
                start = time.process_time()
                outputs.append(run(batch))
                spent[name] += time.process_time() - start
            ours, theirs = outputs
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True)), batch
        return spent


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, type=click.Choice([*NAMES, "load"]))
@click.option("--lines", type=click.IntRange(1), default=32, show_default=True, help="The lines of a batch.")
def main(names: Sequence[str], lines: int) -> None:
    """Time tokenizers in irrun and in OpenVINO: the CPU seconds of both, in turn, in one thread.

    The first reading is of texts that neither side has seen, after a warm-up on others; the second one is of the same
    texts again. NAME "load" is the time to load a vocabulary of 128,000 entries.
    """
    root = Path(tempfile.gettempdir(), "irrun-benchmarks", "tokenization")
    wanted = [name for name in names or NAMES if name in NAMES]
    if wanted:
        _speed(root, wanted, lines)
    if not names or "load" in names:
        _load(root / "large")


def _speed(root: Path, names: Sequence[str], each: int) -> None:
    lines = texts()
    half = len(lines) // 2
    trained(root, names, lines[:half])
    warm, work = batches(lines[:half], SIZE // 5, each), batches(lines[half:], SIZE, each)
    size = sum(len(line.encode()) for batch in work for line in batch)
    print(f"{size:,} bytes in {sum(map(len, work)):,} lines, batches of {each}; one thread, CPU time.\n")
    print("| tokenizer | first: OpenVINO MB/s | irrun MB/s | ratio | second: OpenVINO MB/s | irrun MB/s | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in names:
        first: list[dict[str, float]] = []
        second: list[dict[str, float]] = []
        for _ in range(TURNS):
            sides = Sides(root / name)
            sides.seconds(warm)
            first.append(sides.seconds(work))
            second.append(sides.seconds(work))
        cells = [cell for times in (first, second) for cell in _rates(times, size)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _load(folder: Path) -> None:
    """Time reading and compiling a byte-level BPE tokenizer, without what an earlier turn has built."""
    import openvino as ov
    import openvino_tokenizers  # noqa: F401

    from irrun.extensions.tokenizers import _vocabulary

    if not (folder / "openvino_tokenizer.xml").exists():
        rng = random.Random(3)
        words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(4, 12))) for _ in range(120_000)]
        lines = [" ".join(words[at : at + 20]) for at in range(0, len(words), 20)]
        trained(folder.parent, ["gpt2"], lines, folder.name)
    path = folder / "openvino_tokenizer.xml"
    turns: dict[str, Callable[[], object]] = {
        "irrun": lambda: irrun.compile(path), "OpenVINO": lambda: ov.Core().compile_model(path, "CPU")
    }  # fmt: skip
    for name, load in turns.items():
        spent: list[float] = []
        for _ in range(TURNS):
            vars(_vocabulary)["_tables"].clear()
            start = time.process_time()
            load()
            spent.append(time.process_time() - start)
        print(f"{name} loads {LARGE:,} entries in {median(spent):.2f} s of CPU time.", flush=True)


def _rates(times: Sequence[dict[str, float]], size: int) -> Iterator[str]:
    rates = {name: size / 1e6 / median(own[name] for own in times) for name in times[0]}
    yield f"{rates['OpenVINO']:.1f}"
    yield f"{rates['irrun']:.2f}"
    yield f"{median(own['OpenVINO'] / own['irrun'] for own in times):.2f}"


def trained(root: Path, names: Sequence[str], lines: Sequence[str], target: str = "") -> None:
    """Train and convert the tokenizers that ``root`` lacks; one of 128,000 entries if it gets the name ``target``."""
    from tokenization import train

    train.TRAINING.texts, train.TRAINING.vocabulary = lines, LARGE if target else VOCABULARY
    missing = [name for name in names if target or not (root / name / "openvino_tokenizer.xml").exists()]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as folder:
        train.train(Path(folder), missing)
        for name in missing:
            shutil.copytree(Path(folder, name), root / (target or name), dirs_exist_ok=True)


if __name__ == "__main__":
    main()
