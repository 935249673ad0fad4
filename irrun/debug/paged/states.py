"""Find the states of convolutions and recurrences that OpenVINO rewrites to state tables of a server.

OpenVINO rewrites GroupConvolution to PagedCausalConv1D, and Loops that compute the gated delta rule or a selective
state space to PagedGatedDeltaNet and PagedSelectiveSSM. The conditions below are those of its passes
(PagedCausalConv1DFusion, FuseGDNLoop, FuseSSMLoop) in release 2026.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final

from irrun.inference.propagate import Values
from irrun.model import Layer, Model

__all__ = ["State", "States"]

_Feed = tuple[int, int] | None
_Pattern = Any
"""The name of an output, which is the same wherever a pattern names it, or a type and the patterns of its inputs."""
_NEXT: Final = ("Add", ("Multiply", "state", ("Squeeze", "decay")), ("Squeeze", "added"))
_SELECTED: Final = ("Unsqueeze", ("ReduceSum", ("Multiply", _NEXT, ("Squeeze", "read"))))
_KEPT: Final = ("Multiply", "state", ("Unsqueeze", ("Exp", "gate")))
_KEY: Final = ("Unsqueeze", ("Squeeze", "key"))
_CHANGE: Final = ("Subtract", ("Squeeze", "value"), ("ReduceSum", ("Multiply", _KEPT, _KEY)))
_DELTA: Final = ("Add", _KEPT, ("Multiply", _KEY, ("Unsqueeze", ("Multiply", _CHANGE, "beta"))))
_READ: Final = ("ReduceSum", ("Multiply", _DELTA, ("Unsqueeze", ("Squeeze", "query"))))
_EXPANDED: Final = ("Reshape", ("Tile", ("Unsqueeze", None)))
_ADDED: Final = (
    "Multiply",
    ("Unsqueeze", ("Multiply", ("Unsqueeze", "step"), _EXPANDED)),
    ("Unsqueeze", None),
)
_LOOPS: Final[Sequence[tuple[int, _Pattern, _Pattern, dict[int, _Pattern]]]] = (
    (7, _DELTA, _READ, {2: ("Divide", None, None)}),
    (
        5,
        _NEXT,
        _SELECTED,
        {2: ("Reshape", ("Exp", ("Multiply", "rate", "step"))), 3: _ADDED, 4: ("Unsqueeze", _EXPANDED)},
    ),
)
"""Of each Loop: the input of the state, the next state and the new output of a token, and the inputs of the Loop."""
_OPERATIONS: Final = {"GatedDeltaNet": 3, "SelectiveSSM": 5}
"""The input of the state of each operation into which OpenVINO fuses a Loop."""
_PASSED: Final = ("Convert", "Unsqueeze", "Reshape", "Squeeze", "Transpose")
_SWAPPABLE: Final = ("Add", "Multiply")


@dataclass(frozen=True, slots=True)
class State:
    """A layer that reads a state: the feeds that its paged form reads, and why OpenVINO does not rewrite it, or ""."""

    kept: Sequence[_Feed]
    reason: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class States:
    """The states of convolutions and recurrences of a model with inferred values."""

    model: Model
    values: Values

    def of(self, layer: Layer) -> State | None:
        """Return the state that a convolution or recurrence reads, or None if it reads none."""
        if layer.type == "GroupConvolution":
            return self._convolution(layer)
        if layer.type not in ("Loop", *_OPERATIONS):
            return None
        feeds = self.model.feeds[layer.id]
        place = next((place for place, feed in enumerate(feeds) if self._variable(feed, far=True)), None)
        if place is None:
            return None
        kept = [*feeds[:place], *feeds[place + 1 :]]
        if not self._is_state(feeds[place], 4):
            reason = "its state is not a Gather by beam_idx of a variable of rank 4"
        elif _OPERATIONS.get(layer.type) == place or self._is_recurrence(layer, place):
            reason = ""
        else:
            reason = "it computes neither the gated delta rule nor a selective state space as OpenVINO knows them"
        return State(kept, reason, "export the recurrence as optimum-intel does, with a state [batch, heads, …, …]")

    def _convolution(self, layer: Layer) -> State | None:
        """Return the state that is concatenated with the tokens of a convolution, or None if there is none."""
        data, weights = self.model.feeds[layer.id][:2]
        concat = None if data is None else self.model.layers[data[0]]
        if concat is None or concat.type != "Concat":
            return None
        feeds = self.model.feeds[concat.id]
        places = [place for place, feed in enumerate(feeds) if self._variable(feed)]
        if len(places) != 1 or len(feeds) != 2 or weights is None:
            return None
        state, tokens = feeds[places[0]], feeds[1 - places[0]]
        assert state is not None
        assert tokens is not None
        source = self.model.layers[tokens[0]]
        if len(source.outputs) > 1:
            reason = f'its tokens are output {tokens[1]} of {source.type} "{source.name}" with {len(source.outputs)} '
            reason += 'outputs; OpenVINO fails: "Default output not supported"'
            return State((tokens, weights), reason, "let the tokens come from a layer with one output: split earlier")
        reason = self._misfit(layer, concat, state, weights)
        return State((tokens, weights), reason, "export the convolution with a state as wide as its kernel")

    def _misfit(self, layer: Layer, concat: Layer, state: tuple[int, int], weights: tuple[int, int]) -> str:
        """Return why a convolution with a state is not rewritten, or ""."""
        shape, held = self.values[weights].shape, self.values[state].shape
        filters = [dim.value for dim in shape] if shape.rank else []
        attributes = layer.attributes
        single = {attributes.get(name, "1").strip() for name in ("strides", "dilations")} == {"1"}
        equal = attributes.get("pads_begin", "").strip() == attributes.get("pads_end", "").strip()
        if len(filters) != 4 or filters[1:3] != [1, 1] or not shape.is_static:
            return f"its filters are {shape}, not [channels, 1, 1, width]"
        if not held.rank or held.rank != 3 or {held[1].value, filters[0]} - {None} != {filters[0]}:
            return f"its state is {held}, not [batch, {filters[0]}, {filters[3]}]"
        if held[2].value not in (None, filters[3]):
            return f"its state is {held}, not [batch, {filters[0]}, {filters[3]}]"
        if int(concat.attributes.get("axis", "0")) not in (-1, 2):
            return f'Concat "{concat.name}" does not append the tokens along the last axis'
        if not single or not equal:
            return "its strides or dilations are not 1, or its pads differ"
        if not any(map(self._is_slice, self._behind(layer))):
            return "no Slice along axis 2 reads its output, or the sum with its bias"
        return ""

    def _behind(self, layer: Layer) -> list[Layer]:
        """Return the readers of a layer, and those of the Adds among them."""
        layers = [self.model.layers[id] for id in self.model.consumers[layer.id]]
        adds = [add for add in layers if add.type == "Add"]
        return layers + [self.model.layers[id] for add in adds for id in self.model.consumers[add.id]]

    def _is_slice(self, layer: Layer) -> bool:
        feeds = self.model.feeds[layer.id]
        axes = feeds[4] if layer.type == "Slice" and len(feeds) > 4 else None
        return axes is not None and list(self.values[axes].ints() or ()) in ([2], [-1])

    def _variable(self, feed: _Feed, *, far: bool = False) -> bool:
        """Return whether an output is a variable, or a Gather of one: also behind changes of its form if ``far``."""
        layer = None if feed is None else self.model.layers[feed[0]]
        while far and layer is not None and layer.type in _PASSED:
            layer = self._first(layer)
        if layer is not None and layer.type == "Gather":
            layer = self._first(layer)
        return layer is not None and layer.type == "ReadValue"

    def _is_state(self, feed: _Feed, rank: int) -> bool:
        return feed is not None and self._variable(feed) and self.values[feed].shape.rank == rank

    def _first(self, layer: Layer) -> Layer | None:
        feed = next(iter(self.model.feeds[layer.id]), None)
        return None if feed is None else self.model.layers[feed[0]]

    def _is_recurrence(self, loop: Layer, place: int) -> bool:
        """Return whether a Loop computes one of the recurrences that OpenVINO knows, with its state at an input."""
        body = loop.bodies["body"]
        entries = [entry for entry in loop.maps["port_map"] if entry.kind == "input"]
        held = next((entry.internal for entry in entries if entry.external == place), None)
        results = {parameter: result for result, parameter in loop.back_edges}
        if held is None or len(results) != 2 or held not in results:
            return False
        filled = next(parameter for parameter in results if parameter != held)
        after, row = (body.feeds[results[parameter]][0] for parameter in (held, filled))
        for number, next_state, new, inputs in _LOOPS:
            names: dict[str, _Feed] = {"state": (held, 0), "filled": (filled, 0)}
            scattered = ("ScatterUpdate", "filled", None, new)
            outer = _matched(
                self.model, [(feed, inputs.get(n)) for n, feed in enumerate(self.model.feeds[loop.id])], {}
            )
            inner = _matched(body, [(after, next_state), (row, scattered)], names)
            if number == place and inner is not None and outer is not None:
                return True
        return False


def _matched(model: Model, pairs: Sequence[tuple[_Feed, _Pattern]], names: dict[str, _Feed]) -> dict[str, _Feed] | None:
    """Return the outputs that patterns name if every output matches its pattern, else None."""
    if not pairs:
        return names
    (feed, pattern), *rest = pairs
    if pattern is None:
        return _matched(model, rest, names)
    layer = None if feed is None else model.layers[feed[0]]
    while layer is not None and layer.type == "Convert":
        feed = model.feeds[layer.id][0]
        layer = None if feed is None else model.layers[feed[0]]
    if layer is None:
        return None
    if isinstance(pattern, str):
        return _matched(model, rest, {**names, pattern: feed}) if names.get(pattern, feed) == feed else None
    type, *parts = pattern
    if layer.type != type:
        return None
    for order in permutations(parts) if type in _SWAPPABLE else [parts]:
        found = _matched(model, [*zip(model.feeds[layer.id], order), *rest], names)
        if found is not None:
            return found
    return None
