"""Find the inputs and layers of a model by name, position or glob."""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase

from irrun.diagnostics import Diagnostic, FeedError, diagnostic
from irrun.model import Layer, Model

__all__ = ["bad_feed", "find_layers", "known", "no_such_layer", "position"]


def position(model: Model, name: str) -> int | None:
    """The position of the input called ``name`` (or numbered so), None where there is none."""
    for number, parameter in enumerate(model.parameters):
        if name in model.input_names(parameter):
            return number
    number = int(name) if name.isascii() and name.isdigit() else -1
    return number if 0 <= number < len(model.parameters) else None


def known(model: Model, key: str | int) -> int:
    """The position of the input called ``key``. Raises FeedError (IR601)."""
    found = position(model, str(key))
    if found is None:
        names = ", ".join(f'"{p.name}"' for p in model.parameters) or "none"
        raise FeedError(
            Diagnostic(
                "IR601", "error", f"the model has no input {key!r}", file=model.source.path,
                help=f"its inputs are {names}",
            )
        )  # fmt: skip
    return found


def bad_feed(model: Model, parameter: Layer, message: str, help: str | None = None) -> FeedError:
    """What is wrong with what an input was given."""
    return FeedError(
        diagnostic(
            "IR601", f'input "{parameter.name}" {message}', source=model.source, node=parameter.node,
            layer=parameter.name, help=help,
        )
    )  # fmt: skip


def find_layers(model: Model, pattern: str) -> list[Layer]:
    """The layers of a name, or else those whose names a glob fits, in file order."""
    names = model.unique_names
    exact = [layer for id, layer in model.layers.items() if pattern in (layer.name, names[id])]
    return exact or [layer for id, layer in model.layers.items() if fnmatchcase(names[id], pattern)]


def no_such_layer(model: Model, pattern: str) -> Diagnostic:
    """That no layer has a name."""
    near = difflib.get_close_matches(pattern, model.unique_names.values(), 1)
    help = f'did you mean "{near[0]}"?' if near else "`irrun show` tells what is in the model"
    return Diagnostic("IR606", "error", f'no layer is called "{pattern}"', file=model.source.path, help=help)
