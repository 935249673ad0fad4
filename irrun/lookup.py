"""Find the inputs of a model by name or position, and its layers by name or glob."""

from __future__ import annotations

from fnmatch import fnmatchcase

from irrun.diagnostics import Diagnostic, FeedError, diagnostic
from irrun.model import Layer, Model
from irrun.nearest import nearest, quoted

__all__ = ["bad_feed", "find_layers", "known", "no_such_layer", "position"]


def position(model: Model, name: str) -> int | None:
    """Return the position of the input with this name, or None if there is none.

    If no input has the name and ``name`` is a number, the number itself is the position.
    """
    return model.input_position(name)


def known(model: Model, key: str | int) -> int:
    """Return the position of the input with the name or position ``key``. Raises FeedError (IR601) if there is none."""
    return model.known_input(key)


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
    return Diagnostic("IR606", "error", f'no layer is called "{pattern}"', file=model.source.path, help=help)
