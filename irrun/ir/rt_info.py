"""Read the elements of an IR file that irrun does not interpret, such as ``rt_info``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

from irrun.ir.reader import KNOWN_CHILDREN
from irrun.model import Model

__all__ = ["rt_infos", "runtime_options"]


def rt_infos(model: Model) -> Mapping[int, Mapping[str, str]]:
    """Return the contents of ``rt_info`` and other uninterpreted elements, by the ordinal of the element around them.

    The root has the ordinal 0. Each leaf is keyed by its path, such as ``rt_info/attribute[fused_names]``; its text are
    its other attributes and its content. The result is empty for a model without a file and for a fragment.
    """
    if model.is_fragment or not model.source.data:
        return {}
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities="internal", no_network=True, load_dtd=False,
        remove_comments=True, remove_pis=True, recover=True, huge_tree=True,
    )  # fmt: skip
    infos: dict[int, dict[str, str]] = {}
    for node, element in enumerate(etree.fromstring(model.source.utf8, parser).iter("*")):
        kind = {"net": "net", "layer": "layer", "port": "port"}.get(element.tag.lower())
        if kind is not None:
            leaves = [
                leaf
                for child in element
                if child.tag.lower() not in KNOWN_CHILDREN[kind]
                for leaf in _leaves(child, child.tag)
            ]
            if leaves:
                infos[node] = _unique(leaves)
    return infos


def runtime_options(model: Model) -> Mapping[str, str]:
    """Return the properties that a file sets for its compilation (``rt_info/runtime_options``), by name."""
    if b"runtime_options" not in model.source.utf8:
        return {}  # without reading the file again
    prefix = "rt_info/runtime_options/"
    found = rt_infos(model).get(0, {})
    return {path.removeprefix(prefix): text for path, text in found.items() if path.startswith(prefix)}


def _leaves(element: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each element below ``element`` that has no children."""
    name = element.get("name")
    path = path if name is None else f"{path}[{name}]"
    attributes = {key: text for key, text in element.attrib.items() if key != "name"}
    if set(attributes) == {"value"}:
        words = [attributes["value"]]
    else:
        words = [f'{key}="{text}"' for key, text in sorted(attributes.items())]
    if (element.text or "").strip():
        words.append(element.text.strip())
    if words or not len(element):
        yield path, " ".join(words)
    for child in element:
        yield from _leaves(child, f"{path}/{child.tag}")


def _unique(leaves: list[tuple[str, str]]) -> dict[str, str]:
    """Return the leaves by path; a path that occurs again gets a number."""
    texts: dict[str, str] = {}
    for path, text in leaves:
        key, number = path, 1
        while key in texts:
            number += 1
            key = f"{path}#{number}"
        texts[key] = text
    return texts
