"""What the documentation of a device says that it does not support (IR906). Nothing here was measured."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib import resources

from irrun.diagnostics import Diagnostic, diagnostic
from irrun.targets.facts import Facts

__all__ = ["documented"]


@cache
def _limits() -> Sequence[dict[str, str]]:
    """Return the limits: what an output must not be, the limit in words, and the page with its commit."""
    return json.loads((resources.files("irrun.targets") / "devices.json").read_text("utf-8"))


def documented(fact: Facts, devices: Collection[str]) -> Iterator[Diagnostic]:
    """Yield the documented limits that a layer breaks first: its outputs do, and its inputs do not."""
    layer = fact.layer
    if layer is None:
        return
    for limit in _limits():
        sentence = limit["sentence"]
        if limit["device"] not in devices or f"an output {sentence}" not in fact.sentences:
            continue
        if f"an input {sentence}" in fact.sentences:
            continue
        message = f'{layer.type} "{layer.name}": an output {sentence}, and {limit["device"]} {limit["limit"]}'
        note = f"documented, not measured: {limit['page']} in openvinotoolkit/openvino at {limit['commit'][:7]}"
        source, more = fact.model.source, {"notes": (note,), "help": limit["help"]}
        yield diagnostic("IR906", message, source=source, node=layer.node, layer=layer.name, **more)
