"""The inputs of a run: read what the caller passes as arrays that fit the Parameters of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irrun.diagnostics import FeedError, diagnostic
from irrun.model import Layer, Model, no_such_input
from irrun.model.lookup import bad_feed
from irrun.opdef import Value
from irrun.types import ElementType, array_from, as_text, text_bytes

__all__ = ["Feeds", "read_feeds"]

Feeds = Mapping[Any, Any] | Sequence[Any] | np.ndarray | np.generic | int | float | None
"""The inputs of a run: a mapping by parameter name, tensor name or position, a sequence in Parameter order, or the
array of the only input. None passes no inputs."""


def read_feeds(
    model: Model,
    feeds: Feeds,
    values: Mapping[tuple[int, int], Value],
    lend: Callable[[str], np.ndarray | None] = lambda cache: None,
) -> tuple[list[np.ndarray], int]:
    """Return an array for each Parameter, from ``feeds`` or from a comment in a fragment, and the bytes of new arrays.

    ``values`` are those of the plan, by layer id and port. ``lend`` returns the array that an earlier run has left of a
    cache, which is the Parameter of this name, or None. An array may be the one that was passed, not a copy. Raises
    FeedError (IR601).
    """
    by_position = _by_position(model, feeds)
    arrays: list[np.ndarray] = []
    converted = 0
    for position, parameter in enumerate(model.parameters):
        if position in by_position:
            feed = by_position[position]
            array = _read_input(model, parameter, values[parameter.id, 0], feed)
            arrays.append(array)
            if array is not feed and not (isinstance(feed, np.ndarray) and np.may_share_memory(array, feed)):
                converted += array.nbytes + text_bytes(array)
        elif parameter.id in model.contents:
            arrays.append(model.contents[parameter.id][0])
        elif (kept := lend(parameter.name)) is not None:
            arrays.append(kept)
        else:
            names = ", ".join(f'"{p.name}"' for p in model.parameters)
            raise bad_feed(model, parameter, "is missing", f"pass an array for each of {names}")
    return arrays, converted


def _by_position(model: Model, feeds: Feeds) -> dict[int, Any]:
    """Return the inputs by position. Raises FeedError (IR601) for unknown, repeated or too many inputs."""
    parameters = model.parameters
    if feeds is None:
        return {}
    if isinstance(feeds, Mapping):
        named = {name: i for i, p in reversed(list(enumerate(parameters))) for name in model.input_names(p)}
        by_position: dict[int, Any] = {}
        for key, value in feeds.items():
            position = named.get(key) if isinstance(key, str) else key
            if not isinstance(position, (int, np.integer)) or not 0 <= position < len(parameters):
                raise no_such_input(model, key)
            if position in by_position:
                message = "is passed twice, by different names or by name and position"
                raise bad_feed(model, parameters[int(position)], message, "pass it once")
            by_position[int(position)] = value
        return by_position
    arrays = list(feeds) if isinstance(feeds, (list, tuple)) else [feeds]
    if len(arrays) > len(parameters):
        message = f"{len(arrays)} inputs are passed, the model takes {len(parameters)}"
        help = "wrap the array in a list: [array]" if len(parameters) == 1 and isinstance(feeds, list) else None
        raise FeedError(diagnostic("IR601", message, file=model.source.path, help=help))
    return dict(enumerate(arrays))


def _read_input(model: Model, parameter: Layer, value: Value, feed: Any) -> np.ndarray:
    """Return an input as an array that fits its Parameter. Raises FeedError (IR601)."""
    wanted = value.type
    try:
        array = _accept(feed, wanted, model.version)
    except (ValueError, TypeError, OverflowError) as error:
        raise bad_feed(model, parameter, f"cannot be read as {wanted}: {error}") from None
    if array is None:
        help = f"convert it: array.astype({wanted.dtype.name!r})"
        raise bad_feed(model, parameter, f"is {feed.dtype.name}, the model takes {wanted}", help)
    if not value.shape.fits(array.shape):
        shape = f"[{','.join(map(str, array.shape))}]"
        raise bad_feed(model, parameter, f"has shape {shape}, the model takes {value.shape}")
    return array


def _accept(feed: Any, wanted: ElementType, version: int) -> np.ndarray | None:
    """Return an input as an array of the element type ``wanted``, or None if its dtype does not fit.

    The dtype of a numpy array must fit, in any byte order. Python numbers, strings and lists are converted if they
    keep their meaning. May return ``feed`` itself. Raises ValueError, TypeError or OverflowError for values that
    cannot be converted.
    """
    if wanted.kind == "string":
        return _read_text(array_from(feed), isinstance(feed, np.ndarray))
    array = np.asarray(feed)
    if wanted.kind == "dynamic" and array.dtype.kind in "UTSO":
        text = as_text(array_from(feed))
        if text is None:
            raise TypeError(f"no element type has dtype {array.dtype.name}")
        return text
    if wanted.kind == "dynamic":
        element_type = ElementType.of(array.dtype.newbyteorder("="))
        if element_type is None:
            raise TypeError(f"no element type has dtype {array.dtype.name}")
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if not isinstance(feed, np.ndarray):
        return _read(array, wanted)
    if array.dtype == wanted.dtype or array.dtype.newbyteorder("=") == wanted.dtype:
        array = array.astype(wanted.dtype, copy=False)
        return _read(array, wanted) if wanted.bits < 8 and wanted.dtype == np.uint8 else array
    if version == 10 and wanted.name == "f16" and array.dtype.newbyteorder("=") == np.float32:
        return array.astype(np.float16)  # OpenVINO takes f32 where a v10 file says f16
    return None


def _read_text(array: np.ndarray, is_array: bool) -> np.ndarray | None:
    """Return strings as a string tensor, or None for an array of another dtype. Raises TypeError for other values."""
    text = np.empty(array.shape, object) if not array.size and not is_array else as_text(array)
    if text is None and not (is_array and array.dtype != object):
        raise TypeError(f"it holds {array.dtype.name}")
    return text


def _read(array: np.ndarray, wanted: ElementType) -> np.ndarray:
    """Return numbers or booleans as an array of ``wanted``.

    Raises TypeError for values of another kind, OverflowError for integers out of range.
    """
    if not array.size:
        return np.empty(array.shape, wanted.dtype)
    kinds = {"float": "fiu", "int": "iuO", "uint": "iuO", "boolean": "biu"}[wanted.kind]
    if array.dtype.kind not in kinds and array.dtype != wanted.dtype:
        raise TypeError(f"it holds {array.dtype.name}")
    if wanted.kind in ("int", "uint", "boolean"):
        bits = 1 if wanted.kind == "boolean" else wanted.bits
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if wanted.kind == "int" else (0, (1 << bits) - 1)
        for number in (array.min(), array.max()):
            if not isinstance(number, (int, np.integer, np.bool_)) or not least <= number <= most:
                raise OverflowError(f"{number} is not within {least}..{most}")
    with np.errstate(over="ignore"):
        return array.astype(wanted.dtype)
