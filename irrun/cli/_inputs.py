"""The inputs of a run, from ``-i NAME=SPEC``: array files, pictures, JSON literals and generated numbers."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import numpy as np

from irrun.arrays.pictures import AS_THEY_ARE, Pictures, read_picture
from irrun.arrays.reading import HEAD, PICTURE, native, read_array, why
from irrun.base.text import counted, printable
from irrun.cli import _terminal
from irrun.diagnostics import FeedError, diagnostic
from irrun.ir.parse import require_file
from irrun.ir.recognition import kind_of
from irrun.model import Layer, Model
from irrun.model.lookup import bad_feed, nearest
from irrun.running.generate import GENERATORS, declared, element_types, generate
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape, text_array

__all__ = ["Input", "gather", "gather_specs", "print_chosen_shapes", "remember_chosen_shapes", "split"]

_GENERATED: Final = re.compile(rf"({'|'.join(GENERATORS)})(?::(.*))?", re.DOTALL)
_ARRAY: Final = re.compile(r"(.+\.npy)|(.+\.npz)(?::(.*))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model. ``origin`` describes where the array comes from, as `irrun run` prints it."""

    name: str
    type: ElementType
    array: np.ndarray
    origin: str
    chosen: PartialShape | None = None
    """The declared shape if it is dynamic and irrun had to choose the dims, otherwise None."""


def gather(
    model: Model, options: Sequence[str], seed: int, max_memory: int, pictures: Pictures = AS_THEY_ARE
) -> list[Input]:
    """Return the inputs of a model in the order of its Parameters.

    ``options`` are as ``split`` takes them, and ``pictures`` says how pictures are read. An input that is not among
    them comes from the comment of an example, or is random numbers drawn with ``seed``. ``max_memory`` limits the bytes
    of each generated array. Raises FeedError (IR601), ExecutionError (IR604) for an array that is too large, and
    click.BadParameter for a text without ``=``.
    """
    specs: dict[int, str] = {}
    for number, spec in (item for text in options for item in split(model, text)):
        if number in specs:
            raise bad_feed(model, model.parameters[number], "is passed twice", "remove one of its options -i")
        specs[number] = spec
    return gather_specs(model, specs, seed, max_memory, pictures)


def remember_chosen_shapes(inputs: Sequence[Input]) -> None:
    """Keep the inputs whose shapes irrun chose, so that a command that fails names them at its end."""
    if (context := click.get_current_context(silent=True)) is not None:
        chosen = context.meta.setdefault("irrun.chosen", {})
        for item in inputs:
            if item.chosen is not None:
                chosen.setdefault(item.name, item)


def print_chosen_shapes(inputs: Iterable[Input]) -> None:
    """Print the shapes that irrun chose for dynamic inputs: the run may have failed because of them."""
    err = _terminal.console(stderr=True)
    for item in inputs:
        if item.chosen is not None:
            name, shape = printable(item.name), PartialShape.of(item.array.shape)
            err.print(
                f'note: input "{name}" has the dynamic shape {item.chosen}, for which irrun chose {shape}; ', end=""
            )
            err.print(f"choose other dims with -i '{name}=random:[...]'")


def gather_specs(
    model: Model, specs: Mapping[int, str], seed: int, max_memory: int, pictures: Pictures = AS_THEY_ARE
) -> list[Input]:
    """Return the inputs of a model as ``gather`` does, from the SPEC of each, by position."""
    loaded = {
        number: read_array(model, number, match[1] or match[2], match[3], max_memory)
        for number, spec in specs.items()
        if (match := _ARRAY.fullmatch(spec))
    }
    types = element_types(model, loaded)
    return [
        _read_picture(model, number, spec, types[number], pictures)
        if number not in loaded and (spec := specs.get(number)) and PICTURE.fullmatch(spec)
        else _input(model, number, specs.get(number), loaded.get(number), types[number], seed, max_memory)
        for number in range(len(model.parameters))
    ]


def split(model: Model, text: str) -> list[tuple[int, str]]:
    """Split ``NAME=SPEC`` into the position of the input and the SPEC. The name may contain a ``=`` itself.

    A ``.npz`` file alone gives a SPEC for each of its arrays, which have the names of inputs. Any other SPEC alone is
    for the only input. Raises FeedError (IR601) for a name of no input, and click.BadParameter for a SPEC alone if the
    model has not one input.
    """
    for equals in re.finditer("=", text):
        number = model.input_position(text[: equals.start()])
        if number is not None:
            return [(number, text[equals.end() :])]
    name, equals, _ = text.partition("=")
    is_spec = not equals or text[:1] in ("[", '"') or os.path.exists(text)
    if is_spec and text.lower().endswith(".npz"):
        return _archived(model, text)
    if is_spec and len(model.parameters) == 1:
        return [(0, text)]
    names = [f'"{p.name}"' for p in model.parameters]
    if is_spec:
        message = f"the model has {counted(len(names), 'input')}"
        help = f'{", ".join(names)}; write "{model.parameters[0].name}={text}"' if names else f"leave {text} out"
        raise click.BadParameter(f"{text} is for one input, but {message}: {help}", param_hint="-i")
    near = nearest(name, [n for p in model.parameters for n in model.input_names(p)], cutoff=0.5)
    help = f'did you mean "{near[0]}"?' if near else f"its inputs are {', '.join(names) or 'none'}"
    raise FeedError(diagnostic("IR601", f'the model has no input "{name}"', file=model.source.path, help=help))


def _archived(model: Model, path: str) -> list[tuple[int, str]]:
    """Return the position and SPEC of the input that each array of a .npz file is for. Raises FeedError (IR601)."""
    try:
        require_file(Path(path))
        with zipfile.ZipFile(path) as archive:
            keys = [name.removesuffix(".npy") for name in archive.namelist()]
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        reason = why(error) if isinstance(error, OSError) else str(error)
        message = f"the inputs cannot be read from {path}: {reason}"
        raise FeedError(diagnostic("IR601", message, help="check the path, or write it with numpy.savez")) from None
    if keys == ["arr_0"] and len(model.parameters) == 1:  # numpy.savez(path, array)
        return [(0, path)]
    specs: list[tuple[int, str]] = []
    for key in keys:
        number = model.input_position(key)
        if number is None:
            names = ", ".join(f'"{p.name}"' for p in model.parameters) or "none"
            message = f'{path} holds an array "{key}", but the model has no such input'
            help = f"its inputs are {names}; pass single arrays as NAME={path}:KEY"
            raise FeedError(diagnostic("IR601", message, file=model.source.path, help=help))
        specs.append((number, f"{path}:{key}"))
    return specs


def _read_picture(model: Model, number: int, path: str, element_type: ElementType, pictures: Pictures) -> Input:
    array, origin = read_picture(model, number, path, element_type, pictures)
    return Input(model.parameters[number].name, element_type, array, origin)


def _input(
    model: Model,
    number: int,
    spec: str | None,
    loaded: np.ndarray | None,
    element_type: ElementType,
    seed: int,
    max_memory: int,
) -> Input:
    """Return the input at position ``number`` from its SPEC.

    ``loaded`` is the array of a .npy or .npz that the SPEC names. ``element_type`` is the type that the input has, or
    that the values of the others imply.
    """
    parameter = model.parameters[number]
    wanted, shape = declared(model, parameter)

    def ready(array: np.ndarray, origin: str, chosen: PartialShape | None = None) -> Input:
        kept = wanted if wanted.kind != "dynamic" else ElementType.of(array.dtype) or element_type
        return Input(parameter.name, kept, array, origin, chosen)

    if loaded is not None:
        return ready(native(loaded, element_type), str(spec))
    if spec is None and parameter.id in model.contents:
        array, line = model.contents[parameter.id]
        return ready(array, f"from the comment at line {line}")
    generated = _GENERATED.fullmatch("random" if spec is None else spec)
    if generated:
        how, text = generated[1], generated[2]
        dims = None if text is None else _dims(model, parameter, text)
        array = generate(how, model, number, element_type, dims, seed, max_memory)
        chosen = shape if dims is None and not shape.is_static else None
        origin = f"random, seed {seed}" if how == "random" else how
        if spec is None:
            origin = f"not given: {origin}"
        if chosen is not None:
            origin += f", shape chosen for {chosen}"
        return ready(array, origin, chosen)
    assert spec is not None
    return ready(_literal(model, parameter, spec, element_type, free=wanted.kind == "dynamic"), "as given")


def _dims(model: Model, parameter: Layer, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\[\s*(\d+\s*(,\s*\d+\s*)*)?\]", text):
        raise bad_feed(model, parameter, f'cannot have the dims "{text}"', "write them as [1,3,224,224]")
    dims = re.findall(r"\d+", text)
    if any(len(dim) > _MAX_DIM_DIGITS for dim in dims):
        raise bad_feed(model, parameter, f"cannot have a dim of more than {_MAX_DIM_DIGITS} digits")
    return tuple(map(int, dims))


_MAX_DIM_DIGITS: Final = 18
"""The most digits of a dim, so that it is less than 2^63."""


# ---------------------------------------------------------------------------------------------
# literals


def _literal(model: Model, parameter: Layer, text: str, element_type: ElementType, *, free: bool) -> np.ndarray:
    """Return a JSON literal as an array of ``element_type``.

    With ``free``, the model does not declare a type, so that ``true`` is a boolean and ``"text"`` is a string. Raises
    FeedError (IR601) if the text is not JSON, or does not suit the element type.
    """
    try:
        items = np.array(json.loads(text), object)
    except (ValueError, RecursionError):
        help = "pass a .npy, .npz or picture, JSON ([1,2], 3.5, '\"text\"'), or random, zeros, ones or arange"
        what, advice = (_unsuitable(Path(text)) if text else None) or ("is neither a file nor JSON", "")
        message = f'cannot be read from "{text}", which {what}'
        raise bad_feed(model, parameter, message, advice or help) from None
    kinds = {type(item) for item in items.flat}
    if free and kinds in ({bool}, {str}):
        element_type = ELEMENT_TYPES["string" if str in kinds else "boolean"]
    try:
        _require_elements(items, kinds, is_text=element_type.kind == "string")
        return _converted(items, element_type)
    except (ValueError, OverflowError) as error:
        raise bad_feed(model, parameter, f"has type {element_type}: {error}") from None


def _unsuitable(path: Path) -> tuple[str, str] | None:
    """Return what a file or folder is that can be no input, and advice if there is any; None if there is no file."""
    try:
        if path.is_dir():
            return "is a folder", "pass a file in it; `irrun batch` runs all files of a folder"
        require_file(path)
        with path.open("rb") as file:
            known = kind_of(file.read(HEAD), str(path))
    except (OSError, ValueError):
        return None
    if known is None:
        return "is a file, but neither an array nor a picture", ""
    name, help = known
    if "(.npy)" in name:
        return "is a NumPy array", f"rename it to {path.with_suffix('.npy')}"
    if "picture" in name:
        return "is a picture", "give its name the ending .png or .jpg"
    return f"{name}, neither an array nor a picture", help if "Git LFS" in name else ""


_JSON_NAMES: Final[dict[type, str]] = {dict: "an object", type(None): "null"}


def _require_elements(items: np.ndarray, kinds: set[type], *, is_text: bool) -> None:
    """Raise ValueError unless all items are numbers or booleans or, if ``is_text``, text. ``kinds`` are their types."""
    if list in kinds:
        raise ValueError("its inner lists have different lengths; pad them to one length")
    if not kinds <= {bool, int, float, str}:
        raise ValueError(f"it cannot hold {', '.join(sorted(_JSON_NAMES[t] for t in kinds & _JSON_NAMES.keys()))}")
    if kinds and is_text and str not in kinds:
        raise ValueError(f"{json.dumps(items.flat[0])} is not text; write text in double quotes")
    if str in kinds and not is_text:
        text = next(item for item in items.flat if isinstance(item, str))
        raise ValueError(f"{json.dumps(text)} is text; write numbers without quotes")


def _converted(items: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Return the items of a JSON literal in an element type.

    Raises ValueError for a number that an integer type cannot hold: it is neither rounded nor wrapped.
    """
    if element_type.kind == "string":
        return text_array(items.ravel().tolist(), items.shape)
    if element_type.kind == "boolean":
        for item in items.flat:
            if item not in (0, 1):
                raise ValueError(f"{item} is neither true nor false; write true (1) or false (0)")
        return items.astype(np.bool_)
    if element_type.is_integer:
        most = (1 << (element_type.bits - (element_type.kind == "int"))) - 1
        least = -most - 1 if element_type.kind == "int" else 0
        for item in items.flat:
            if isinstance(item, float) or not least <= item <= most:
                raise ValueError(f"{item} is not an integer from {least} to {most}")
        return items.astype(np.uint64 if element_type.kind == "uint" else np.int64).astype(element_type.dtype)
    with np.errstate(all="ignore"):
        return items.astype(np.float64).astype(element_type.dtype)
