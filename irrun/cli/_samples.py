"""The samples of a comparison, from ``-i``: several values of an input, or folders of files, make several samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np

from irrun.arrays.pictures import AS_THEY_ARE, Pictures
from irrun.cli._inputs import gather_specs, remember_chosen_shapes, split
from irrun.diagnostics import FeedError, diagnostic
from irrun.model import Model
from irrun.model.lookup import bad_feed

__all__ = ["samples"]

_FILES: Final = (".npy", ".npz", ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
"""The endings of files in a folder that are samples of one input."""


def samples(
    model: Model,
    options: Sequence[str],
    count: int | None,
    seed: int,
    max_memory: int,
    pictures: Pictures = AS_THEY_ARE,
) -> Iterator[dict[str | int, np.ndarray]]:
    """Yield the inputs of each sample, by position.

    ``options`` are texts NAME=SPEC, as in ``gather``. A folder in the place of a file stands for its files, in order
    of names. The values of an input that is passed several times belong to as many samples. An input with one
    value has it in all samples, and one that is not passed is random, drawn with ``seed`` and the numbers after it.
    ``pictures`` says how pictures are read. ``count`` is the number of samples, by default as many as the options need.

    Raises FeedError (IR601) if the inputs have different numbers of values, and the errors of ``gather``.
    """
    specs: dict[int, list[str]] = {}
    for number, spec in (item for text in options for part in _expanded(text) for item in split(model, part)):
        specs.setdefault(number, []).append(spec)
    needed = max((len(values) for values in specs.values()), default=1)
    total = count or needed
    for number, values in specs.items():
        if len(values) not in (1, total):
            message = f"has {len(values)} values, but there are {total} samples"
            raise bad_feed(model, model.parameters[number], message, f"pass one value, or {total}")
    for sample in range(total):
        chosen = {number: values[sample if len(values) > 1 else 0] for number, values in specs.items()}
        inputs = gather_specs(model, chosen, seed + sample, max_memory, pictures)
        remember_chosen_shapes(inputs)
        yield {number: item.array for number, item in enumerate(inputs)}


def _expanded(text: str) -> list[str]:
    """Return an option for each file of a folder that ``text`` names, or the text itself.

    Raises FeedError (IR601) for a folder without such files, and click.BadParameter for one that cannot be read.
    """
    if _is_folder(text):
        name, folder = "", Path(text)
    else:
        name, equals, path = text.rpartition("=")
        if not equals or not _is_folder(path):
            return [text]
        name, folder = f"{name}=", Path(path)
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix.lower() in _FILES)
    except OSError as error:
        raise click.BadParameter(
            f"cannot read {folder}: {(error.strerror or str(error)).lower()}", param_hint="-i"
        ) from None
    if not name:  # inputs by name; without such files, each file is a value of the only input
        files = [file for file in files if file.suffix.lower() == ".npz"] or files
    if not files:
        help = "a folder of samples holds a .npz for each" if not name else "it holds an array file or picture for each"
        raise FeedError(diagnostic("IR601", f"the folder {folder} holds no samples", help=help))
    return [f"{name}{file}" for file in files]


def _is_folder(path: str) -> bool:
    try:
        return bool(path) and Path(path).is_dir()
    except (OSError, ValueError):
        return False
