"""Tell whether OpenVINO rewrites a decoder to paged attention, and otherwise what keeps it from that.

OpenVINO replaces each ScaledDotProductAttention that reads a cache and each convolution and recurrence with a state,
and drops the inputs attention_mask and beam_idx and all variables. The conditions below are those of its passes
(SDPAToPagedAttention, StateManagementPattern, TotalSequenceLengthPattern) in release 2026.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from irrun.debug.paged.states import States
from irrun.inference.settled import settled
from irrun.model import Layer, Model

__all__ = ["Obstacle", "Servability", "servability"]

_DROPPED: Final = ("attention_mask", "beam_idx")
_EXPORT: Final = "optimum-cli export openvino --task text-generation-with-past"
_HELP: Final = {
    "variables": f"if the model generates text, export it with {_EXPORT}",
    "attention": "export the model with PyTorch's scaled_dot_product_attention (attn_implementation='sdpa' in "
    "transformers); a model whose scores are changed before the softmax cannot be served so",
    "inputs": "name the input of the tokens so: irrun edit MODEL.xml --rename-input OLD=input_ids -o NEW.xml",
    "mask": "pass attention_mask to the model when exporting it, so that each attention gets a mask",
    "cache": f"export the model with {_EXPORT}, or let its code append keys and values as transformers' caches do",
    "dims": "export the model with constant numbers and widths of heads: write them as numbers into its reshapes",
    "sinks": "store the sinks as a constant [1, heads, 1, 1]",
    "length": "let the layer take the dim from input_ids, or write it as a number",
    "readers": "compute the value of the layer from input_ids or position_ids, or remove the layer",
}
"""What to do about each condition of the whole model, its attentions and its readers."""
_Feed = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A condition that the model does not meet, and the layer that breaks it, or None for the whole model.

    ``condition`` is one of ``decoder``, ``variables``, ``attention``, ``inputs``, ``mask``, ``cache``, ``dims``,
    ``sinks``, ``states``, ``readers`` and ``length``. ``help`` says what to do.
    """

    condition: str
    layer: str | None
    line: int | None
    message: str
    help: str


@dataclass(frozen=True, slots=True)
class Servability:
    """Whether a server can run a model with paged attention: the number of attentions, and each obstacle.

    A model that ``is_paged`` has been rewritten already.
    """

    attentions: int
    is_paged: bool
    obstacles: tuple[Obstacle, ...]

    @property
    def servable(self) -> bool:
        return not self.obstacles

    def record(self) -> dict[str, Any]:
        """Return the result as a dict for JSON."""
        return {"servable": self.servable, **asdict(self)}


def servability(model: Model) -> Servability:
    """Tell whether OpenVINO rewrites a model to paged attention, and name each obstacle.

    The shapes of the model are inferred. Raises the errors of inference.
    """
    return _Search(model).result()


@dataclass(frozen=True, slots=True)
class _Cache:
    """The Concat of a variable and the new keys or values, and the heads of a row as far as a repetition says them."""

    concat: int
    heads: int | None


@dataclass
class _Search:
    """A model, and what is found out about it."""

    model: Model
    obstacles: list[Obstacle] = field(default_factory=list)

    def result(self) -> Servability:
        self.values = settled(self.model)
        self.caches: set[int] = set()
        self.kept: dict[int, Sequence[_Feed]] = {}
        """The feeds that the paged form of an attention, convolution or recurrence reads, by its id."""
        layers = [self.model.layers[id] for id in self.model.order]
        paged = sum(layer.type == "PagedAttentionExtension" for layer in layers)
        if paged:
            return Servability(paged, True, ())
        attentions = [layer for layer in layers if layer.type == "ScaledDotProductAttention"]
        self._whole(layers, attentions)
        if not self.obstacles:
            for layer in attentions:
                self._attention(layer)
            self._states(layers)
            self._readers()
        return Servability(len(attentions), False, tuple(self.obstacles))

    def _whole(self, layers: Sequence[Layer], attentions: Sequence[Layer]) -> None:
        """Check what the model needs as a whole."""
        has_variables = any(layer.type == "ReadValue" for layer in layers)
        names = {name for parameter in self.model.parameters for name in self.model.input_names(parameter)}
        has_tokens = bool(names & {"input_ids", "inputs_embeds"})
        if not has_variables and not (attentions and has_tokens):
            message = "it has no variables and no attention over a cache: no language model that generates text"
            self._add("decoder", None, message)
            return
        if not has_variables:
            self._add("variables", None, "the model keeps no keys and values in variables")
        if not attentions:
            message = "the model has no ScaledDotProductAttention; its attention may consist of single operations"
            self._add("attention", None, message)
        if not has_tokens:
            self._add("inputs", None, "the model has no input input_ids or inputs_embeds")

    def _states(self, layers: Sequence[Layer]) -> None:
        """Check the convolutions and recurrences with states, and note which feeds their paged forms read."""
        states = States(self.model, self.values)
        for layer in layers:
            state = states.of(layer)
            if state is not None:
                self.kept[layer.id] = state.kept
                if state.reason:
                    self._add("states", layer, state.reason, state.help)

    def _add(self, condition: str, layer: Layer | None, message: str, help: str = "") -> None:
        line = None if layer is None else self.model.source.line_of(layer.node)
        name = None if layer is None else layer.name
        self.obstacles.append(Obstacle(condition, name, line, message, help or _HELP.get(condition, "")))

    def _from(self, layer: Layer, position: int = 0) -> Layer | None:
        """Return the layer that feeds an input, or None."""
        feeds = self.model.feeds[layer.id]
        feed = feeds[position] if position < len(feeds) else None
        return None if feed is None else self.model.layers[feed[0]]

    def _up(self, layer: Layer | None, type: str, most: int) -> Layer | None:
        """Return the first layer that is not of a type, at most ``most`` layers in front of ``layer``."""
        for _ in range(most):
            if layer is None or layer.type != type:
                break
            layer = self._from(layer)
        return layer

    def _attention(self, layer: Layer) -> None:
        """Check one attention, and note which feeds its paged form reads."""
        feeds = self.model.feeds[layer.id]
        self.kept[layer.id] = [feeds[0]]
        if len(feeds) < 4 or feeds[3] is None:
            self._add("mask", layer, "it has no mask; OpenVINO looks for an attention with a mask as input 3")
            return
        found = [self._cache(layer, position) for position in (1, 2)]
        if None in found:
            return
        for position, cache in zip((1, 2), found):
            assert cache is not None
            self._dims(layer, position, cache)
            self.caches.add(cache.concat)
            self.kept[layer.id] = [*self.kept[layer.id], self.model.feeds[cache.concat][1]]
        if len(feeds) > 5 and feeds[5] is not None:
            shape = self.values[feeds[5]].shape
            if not shape.is_static or shape.rank != 4:
                self._add("sinks", layer, f"the sinks are {shape}, not of rank 4 with known dims")
        self.kept[layer.id] = [*self.kept[layer.id], *feeds[4:]]

    def _cache(self, layer: Layer, position: int) -> _Cache | None:
        """Return the cache that an attention reads, or None after a note on the layer that hides it."""
        name = ("key", "value")[position - 1]
        reached = self._up(self._from(layer, position), "Transpose", len(self.model.layers))
        is_direct = reached is self._from(layer, position)
        before = None if reached is None else self._from(reached)
        heads = None
        if reached is not None and reached.type == "Reshape" and is_direct and before and before.type == "Concat":
            reached = before
        elif reached is not None and (reached.type == "Broadcast" or (before and before.type == "Broadcast")):
            reached, heads = self._repeated(reached if reached.type == "Broadcast" else before)
        elif reached is not None and reached.type == "VariadicSplit":
            reached = before
        if reached is None or reached.type != "Concat":
            what = "nothing" if reached is None else f'{reached.type} "{reached.name}"'
            message = f"its {name} comes from {what}; OpenVINO follows Transpose, the repetition of grouped heads "
            message += "(Unsqueeze, Broadcast, Reshape) or one Reshape, up to the Concat of the cache"
            self._add("cache", layer, message)
            return None
        return self._concat(layer, reached, name, heads)

    def _repeated(self, broadcast: Layer | None) -> tuple[Layer | None, int | None]:
        """Return the layer whose heads a Broadcast repeats, and their number, or the layer that is no part of it."""
        assert broadcast is not None
        unsqueeze = self._up(self._from(broadcast), "StridedSlice", 2)
        if unsqueeze is None or unsqueeze.type != "Unsqueeze":
            return unsqueeze, None
        axes = self.model.feeds[unsqueeze.id][1]
        places = None if axes is None else self.values[axes].ints()
        shape = self.values[unsqueeze.id, 0].shape
        heads = None
        if places and len(places) == 1 and shape.rank and places[0] not in (0, -shape.rank):
            heads = shape[places[0] - 1].value or 1
        return self._up(self._from(unsqueeze), "StridedSlice", 2), heads

    def _concat(self, layer: Layer, concat: Layer, name: str, heads: int | None) -> _Cache | None:
        """Return a cache if its Concat joins a variable and the new keys or values, else None after a note on it."""
        count = len(self.model.feeds[concat.id])
        gather = self._up(self._from(concat), "Transpose", 1)
        held = None if gather is None or gather.type != "Gather" else self._from(gather)
        message = ""
        if count != 2:
            message = f"joins {count} arrays, not the cache and the new {name}s"
        elif gather is None or gather.type not in ("Gather", "Parameter"):
            what = "nothing" if gather is None else f'{gather.type} "{gather.name}"'
            message = f"begins with {what}, not with a Gather that takes rows of the variable by beam_idx"
        elif gather.type == "Gather" and (held is None or held.type != "ReadValue"):
            what = "nothing" if held is None else f'{held.type} "{held.name}"'
            message = f'begins with Gather "{gather.name}" of {what}, not of a ReadValue'
        if message:
            self._add("cache", concat, f'the Concat of the {name}s of "{layer.name}" {message}')
            return None
        return _Cache(concat.id, heads)

    def _dims(self, layer: Layer, position: int, cache: _Cache) -> None:
        """Check that the width and the number of the heads of keys or values are known."""
        feed = self.model.feeds[layer.id][position]
        assert feed is not None
        name, shape = ("key", "value")[position - 1], self.values[feed].shape
        if not shape.rank or shape[-1].value is None:
            self._add("dims", layer, f"the width of its {name}, {shape}, is not known")
        elif cache.heads is None and (shape.rank < 3 or shape[-3].value is None):
            self._add("dims", layer, f"the number of heads of its {name}, {shape}, is not known")

    def _readers(self) -> None:
        """Check that nothing but attention reads the caches, the mask and beam_idx, from the results on."""
        waiting = [(result, reader) for result in self.model.results for reader in self._sources(result)]
        seen: set[int] = set()
        while waiting:
            reader, layer = waiting.pop()
            dropped = set(self.model.input_names(layer)) & {*_DROPPED} if layer.type == "Parameter" else set()
            if dropped:
                message = f"it reads {dropped.pop()}, which the paged model does not have"
                self._add("readers", reader, message)
            elif layer.id in self.caches or layer.type == "ReadValue":
                message = f'it reads the cache of {layer.type} "{layer.name}", which the paged model does not have'
                self._add("readers", reader, message)
            elif layer.id not in seen:
                seen.add(layer.id)
                waiting += [(layer, source) for source in self._sources(layer)]

    def _sources(self, layer: Layer) -> Iterator[Layer]:
        """Yield the layers that a layer reads in the paged model."""
        if layer.type == "Gather" and self._is_replaced(layer):
            return
        for feed in self.kept.get(layer.id, self.model.feeds[layer.id]):
            if feed is not None:
                yield self.model.layers[feed[0]]

    def _is_replaced(self, gather: Layer) -> bool:
        """Return whether a Gather takes a dim of a cache that OpenVINO replaces: the length, or a dim that is known."""
        shape = self._from(gather)
        source = None if shape is None or shape.type != "ShapeOf" else self._from(shape)
        index = self.model.feeds[gather.id][1]
        places = None if index is None else self.values[index].ints()
        if source is None or places is None or len(places) != 1:
            return False
        if source.type == "Gather":
            held = self._from(source)
            return held is not None and held.type == "ReadValue"
        before = self._from(source)
        held = None if before is None or before.type != "Gather" else self._from(before)
        if source.type != "Concat" or held is None or held.type != "ReadValue":
            return False
        dims = self.values[source.id, 0].shape
        rank = dims.rank or 4
        axis = int(source.attributes.get("axis", "0")) % rank
        if places[0] % rank != axis and (not dims.rank or dims[places[0]].value is None):
            message = f'it takes dim {places[0]} of the cache of Concat "{source.name}", {dims}; OpenVINO knows its '
            self._add("length", gather, message + f"length, dim {axis}, and dims that are constant")
        return True
