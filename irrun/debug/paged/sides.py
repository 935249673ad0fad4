"""Both forms of a model: what the stateful one computes, and the caches that the paged one needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from irrun.debug.difference.constants import constant
from irrun.debug.paged.calls import INPUTS, Call, Piece
from irrun.diagnostics import FeedError, diagnostic
from irrun.model import Layer, Model
from irrun.running.executor import Executable
from irrun.types import ElementType

__all__ = [
    "ATTENTION",
    "STATES",
    "Paged",
    "Stateful",
    "contents",
    "names",
    "not_evictable",
    "replay",
    "rows",
    "too_short",
]

ATTENTION: Final = "PagedAttentionExtension"
STATES: Final = {"PagedCausalConv1D": 1, "PagedGatedDeltaNet": 3, "PagedSelectiveSSM": 5}
"""The operations whose states lie in tables, and the input of the table."""


def names(model: Model) -> set[str]:
    """Return the names of all inputs."""
    return {name for parameter in model.parameters for name in model.input_names(parameter)}


class Stateful:
    """A decoder with variables, and what it computes for prompts. It computes each prompt once."""

    def __init__(self, model: Executable) -> None:
        self.model = model
        require(model.model, {"input_ids"})
        self._logits: dict[tuple[bytes, tuple[int, int, int]], np.ndarray] = {}

    @property
    def vocabulary(self) -> int:
        """The number of tokens, or 2 if the model does not say it."""
        shape = self.model.outputs[0].shape
        return (shape[-1].value if shape and shape.rank else None) or 2

    @property
    def masks(self) -> bool:
        """Whether an input hides tokens."""
        return "attention_mask" in names(self.model.model)

    def logits(self, prompt: np.ndarray, piece: Piece) -> np.ndarray:
        """Return the logits of the tokens of a piece, [tokens, vocabulary]."""
        key = prompt.tobytes(), piece.evicted
        first, last, since = piece.evicted
        if key not in self._logits:
            self.model.reset_state()
            if since:
                self._call(prompt[:since], 0, slice(0), ())
            outputs = self._call(prompt[since:], since, slice(first, last), ())
            self._logits[key] = outputs[0].reshape(len(prompt) - since, -1)
        return self._logits[key][piece.begin - since : piece.end - since]

    def run(self, prompt: np.ndarray, taps: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Compute a prompt from the first token on, and return the values of layers, by name."""
        self.model.reset_state()
        return dict(self._call(prompt, 0, slice(0), taps).taps)

    def states(self, prompt: np.ndarray) -> list[Mapping[str, np.ndarray]]:
        """Return the variables before the first token of a prompt, and after each."""
        self.run(prompt[:1])
        after = [dict(self.model.state)]
        for position in range(1, len(prompt)):
            self._call(prompt[position : position + 1], position, slice(0), ())
            after.append(dict(self.model.state))
        return [{name: np.zeros_like(array) for name, array in after[0].items()}, *after]

    def _call(self, tokens: np.ndarray, past: int, evicted: slice, taps: Sequence[str]) -> Any:
        mask = np.ones((1, past + len(tokens)), np.int64)
        mask[:, evicted] = 0
        inputs = {
            "input_ids": tokens[None],
            "attention_mask": mask,
            "position_ids": np.arange(past, past + len(tokens))[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        known = names(self.model.model)
        return self.model({name: array for name, array in inputs.items() if name in known}, taps=taps)


class Paged:
    """The same decoder after OpenVINO's transformation, and its caches."""

    def __init__(self, model: Executable) -> None:
        self.model = model
        require(model.model, set(INPUTS))
        self.unread: dict[str, np.ndarray] = {}
        """Inputs of each call beside those of the server: caches that no layer reads, and constants."""
        self.blank: dict[str, np.ndarray] = {}
        """Caches before the first call beside those of the server, or instead of them, by the names of Parameters."""
        if not self.layers(ATTENTION):
            raise unfit(model.model, f"the model has no layer {ATTENTION}")

    def layers(self, *types: str) -> list[Layer]:
        """Return the layers of these types, in the order of the graph."""
        layers = self.model.model.layers
        return [layers[id] for id in self.model.model.order if layers[id].type in types]

    def constant(self, layer: Layer, position: int) -> np.ndarray | None:
        """Return an input of a layer, or None if it is not constant."""
        return contents(self.model, self.model.model.feeds[layer.id][position])

    def source(self, layer: Layer, position: int) -> Layer:
        """Return the layer that an input of a layer comes from."""
        feed = self.model.model.feeds[layer.id][position]
        if feed is None:
            raise unfit(self.model.model, f'input {position} of "{layer.name}" is missing')
        return self.model.model.layers[feed[0]]

    def caches(self, stateful: Stateful, length: int, slots: int, blocks: int) -> dict[str, np.ndarray]:
        """Return caches of zeros, whose shapes the file leaves open, after a run of ``length`` tokens.

        They have the types of the file. Rows of codes have one scale and one zero point each.

        The variables of the stateful model, [1, heads, tokens, width], say how the width of a key divides into heads.
        """
        held = [array.shape for array in stateful.model.state.values() if array.ndim == 4 and array.shape[2] == length]
        shapes = {heads * width: (heads, width) for _, heads, _, width in held}
        values, caches = self.model.plan.values, {}
        for layer in self.layers(ATTENTION):
            feeds = self.model.model.feeds[layer.id]
            for rows, cache in ((1, 3), (2, 4)):
                feed = feeds[rows]
                shape = None if feed is None else values[feed].shape
                size = shapes.get(shape[1].value or 0) if shape and shape.rank == 2 else None
                if size is None:
                    message = f'no variable of the stateful model has the width of the caches of "{layer.name}"'
                    raise unfit(self.model.model, message)
                source = self.source(layer, cache)
                caches[source.name] = _zeros((blocks, size[0], slots, size[1]), source.outputs[0].type)
        for layer in self.layers(*STATES):
            source = self.source(layer, STATES[layer.type])
            shape = source.outputs[0].shape
            dims = [dim.value or 0 for dim in shape][1:] if shape is not None and shape.rank else []
            if not all(dims):
                raise unfit(self.model.model, f'the table "{source.name}" has the shape {shape}')
            caches[source.name] = np.zeros((blocks, *dims), np.float32)
        self.unread = self._unread(caches)
        return caches

    def _unread(self, caches: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return caches for inputs that no layer reads, because the graph is wrong: as others of their kind."""
        model = self.model.model
        kinds: dict[str, set[str]] = {}
        for parameter in model.parameters:
            parts = [name.rpartition(".") for name in model.input_names(parameter)]
            kinds[parameter.name] = {kind for kind, _, number in parts if number.isdigit()}
        found: dict[str, np.ndarray] = {}
        for name in kinds.keys() - caches.keys():
            alike = [array for own, array in caches.items() if kinds[own] & kinds[name]]
            found |= {name: alike[0]} if alike else {}
        return found

    def run(self, call: Call, caches: Mapping[str, np.ndarray], taps: Sequence[str] = ()) -> Any:
        """Return the outputs of a call. Without ``caches`` the model continues with those of the call before."""
        begun = {**caches, **self.blank} if caches else {}
        return self.model({**self.unread, **begun, **self.named(call.inputs)}, taps=taps)

    def named(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the inputs that the model has, by the names of its Parameters instead of those of their tensors."""
        model = self.model.model
        found = {name: p.name for p in model.parameters for name in model.input_names(p)}
        return {found[name]: array for name, array in inputs.items() if name in found}


def _zeros(shape: tuple[int, ...], type: ElementType | None) -> np.ndarray:
    """Return a cache of zeros: of floats, or of codes, whose rows end with a scale and a zero point."""
    if type is None or type.kind == "dynamic":
        return np.zeros(shape, np.float32)
    spare = _PARAMETERS * 8 // type.bits if type.is_integer else 0
    return np.zeros((*shape[:-1], shape[-1] + spare), type.dtype)


_PARAMETERS: Final = 8
"""The bytes of the scale and the zero point of a row of codes."""


def contents(model: Executable, feed: tuple[int, int] | None) -> np.ndarray | None:
    """Return the value of an output that is constant, or None."""
    if feed is None:
        return None
    layer, value = model.model.layers[feed[0]], model.plan.values.get(feed)
    data = None if value is None else value.data
    if data is None and layer.type == "Const" and model.model.weights is not None:  # the plan knows small ones alone
        found = constant(model.model, layer, model.model.weights)
        data = None if found is None else found.elements(0, found.count).reshape(found.shape)
    return None if data is None or data.dtype == object else data  # elements may be unknown dims


def not_evictable(stateful: Stateful, paged: Paged, tokens: int, slots: int) -> str | None:
    """Return why both forms do not compute the same after a block has been evicted, or None if they do.

    A key must count wherever it lies, and the stateful model must be able to hide it.
    """
    if tokens < 2 * slots + 2:
        return f"it takes {2 * slots + 2} tokens, not {tokens}: raise --tokens"
    if not stateful.masks:
        return "the stateful model has no input attention_mask, which hides the evicted tokens"
    for layer in paged.layers(ATTENTION):
        for position, name in ((10, "a sliding window"), (11, "ALiBi")):
            value = paged.constant(layer, position)
            if value is None or (value.size if position == 11 else value.any()):
                return f'"{layer.name}" has {name}: after an eviction, the paged form counts other distances'
    return None


def too_short(paged: Paged, tokens: int) -> str | None:
    """Return which sliding window is larger than the prompts, or None: it then hides no token."""
    for layer in paged.layers(ATTENTION):
        value = paged.constant(layer, 10)
        window = 0 if value is None else int(value.ravel()[0])
        if window >= tokens:
            return (
                f'"{layer.name}" has a window of {window}, and prompts {tokens} tokens: raise --tokens to {window + 2}'
            )
    return None


def replay(paged: Paged, calls: Sequence[Call], caches: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Run calls, and return the caches that the next call needs: ``caches`` before the first one, none later."""
    for call in calls:
        paged.run(call, caches)
        caches = {}
    return caches


def rows(array: np.ndarray, call: Call) -> list[np.ndarray]:
    """Return the rows of the new tokens of each piece of a call: [tokens, …] as [tokens, n]."""
    ends = np.cumsum([piece.end - piece.begin for piece in call.pieces])
    return np.split(array.reshape(ends[-1], -1), ends[:-1])


def require(model: Model, needed: set[str]) -> None:
    """Raise FeedError (IR601) if a model lacks one of these inputs."""
    if missing := sorted(needed - names(model)):
        raise unfit(model, f"the model has no input {', '.join(missing)}")


def unfit(model: Model, message: str) -> FeedError:
    """Return the error (IR601) for a model that is no form of a decoder."""
    help = "pass a stateful decoder, and the same decoder after openvino's paged_attention_transformation"
    return FeedError(diagnostic("IR601", message, file=model.source.path, help=help))
