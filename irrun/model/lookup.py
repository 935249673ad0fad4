"""Find the layers of a model by name or glob, and the names that are near to an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from fnmatch import fnmatchcase

from irrun.diagnostics import Diagnostic, FeedError, diagnostic
from irrun.model.model import Layer, Model

__all__ = ["bad_feed", "find_layers", "nearest", "no_such_layer", "quoted"]


def bad_feed(model: Model, parameter: Layer, message: str, help: str | None = None) -> FeedError:
    """Return the error (IR601) for an unusable value of an input. ``message`` follows the name of the input."""
    return FeedError(
        diagnostic(
            "IR601", f'input "{parameter.name}" {message}', source=model.source, node=parameter.node,
            layer=parameter.name, help=help,
        )
    )  # fmt: skip


def find_layers(model: Model, pattern: str) -> list[Layer]:
    """Return the layers with the name ``pattern``; if there are none, those whose unique names match it as a glob.

    The layers are in the order of the file. The list is empty if nothing matches.
    """
    names = model.unique_names
    exact = [layer for id, layer in model.layers.items() if pattern in (layer.name, names[id])]
    return exact or [layer for id, layer in model.layers.items() if fnmatchcase(names[id], pattern)]


def no_such_layer(model: Model, pattern: str) -> Diagnostic:
    """Return the diagnostic (IR606) for a layer name that the model does not have."""
    near = nearest(pattern, model.unique_names.values(), 3)
    known = " or ".join(map(quoted, near))
    help = f"did you mean {known}?" if near else "pass the name of a layer, or a glob such as 'conv*'"
    return diagnostic("IR606", f'no layer is called "{pattern}"', file=model.source.path, help=help)


def nearest(word: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most ``most`` names that ``word`` may stand for, the likeliest first; none if no name is near.

    They are the names that begin with the word; without any, the name that differs from it in fewest letters (by
    ``cutoff``, as in difflib); without any, those that contain it. Upper and lower case are the same.
    """
    lower = word.lower()
    by_lower: dict[str, str] = {}
    for name in names:
        by_lower.setdefault(name.lower(), name)
    if lower and (begin := [name for key, name in by_lower.items() if key.startswith(lower)]):
        return sorted(begin, key=len)[:most]
    if close := difflib.get_close_matches(lower, by_lower, most, cutoff):
        return [by_lower[key] for key in close[:1]]
    return [name for key, name in by_lower.items() if len(lower) > 1 and lower in key][:most]


def quoted(name: str) -> str:
    """Return the name of a layer as messages show it."""
    return f'"{name}"'
