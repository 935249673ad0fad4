"""openvino.layout_helpers: where the dims of a layout are, and the layouts of inputs."""

from __future__ import annotations

from typing import Any

from irrun.compat.openvino._building.layouts import Layout

__all__ = [
    "batch_idx", "channels_idx", "depth_idx", "get_layout", "has_batch", "has_channels", "has_depth", "has_height",
    "has_width", "height_idx", "set_layout", "width_idx",
]  # fmt: skip


def has_batch(layout: Layout) -> bool:
    return layout.has_name("N")


def has_channels(layout: Layout) -> bool:
    return layout.has_name("C")


def has_depth(layout: Layout) -> bool:
    return layout.has_name("D")


def has_height(layout: Layout) -> bool:
    return layout.has_name("H")


def has_width(layout: Layout) -> bool:
    return layout.has_name("W")


def batch_idx(layout: Layout) -> int:
    return layout.get_index_by_name("N")


def channels_idx(layout: Layout) -> int:
    return layout.get_index_by_name("C")


def depth_idx(layout: Layout) -> int:
    return layout.get_index_by_name("D")


def height_idx(layout: Layout) -> int:
    return layout.get_index_by_name("H")


def width_idx(layout: Layout) -> int:
    return layout.get_index_by_name("W")


def get_layout(port: Any) -> Layout:
    """Return the layout of an input of a model."""
    return port._model._layouts.get(port._position, Layout())


def set_layout(port: Any, layout: Layout) -> None:
    """Set the layout of an input of a model."""
    port._model._layouts[port._position] = layout
