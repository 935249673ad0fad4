"""Export a language model with state, as optimum-intel exports it, and rewrite it to its paged form."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import openvino as ov
import torch
import transformers as tr
from openvino import opset13
from openvino._offline_transformations import apply_make_stateful_transformation
from torch import Tensor, nn
from transformers.cache_utils import DynamicLayer

from served.loops import EXTENSIONS
from served.patches import Hybrid, Recurrent, patched

__all__ = ["exported", "rewritten"]

_INPUTS: Final = ("input_ids", "attention_mask", "position_ids")
_PAST: Final = 3
"""The tokens before those of the example, which the trace follows."""


class Decoder(nn.Module):
    """A causal language model as a function of tensors: its inputs and its states, to its logits and its new states."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        known = inspect.signature(model.forward).parameters
        self.inputs = [name for name in _INPUTS if name in known]
        self.cache = "cache" if "cache" in known else "past_key_values"
        self.slots: list[tuple[int, str]] = []
        """The states of the model: the number of the layer, and key, value, conv or ssm."""

    def example(self) -> tuple[Tensor, ...]:
        """Return the inputs of two tokens behind ``_PAST`` others, and their states."""
        made: Any = self.model
        held = tr.DynamicCache(config=made.config)
        made(input_ids=torch.randint(3, made.config.vocab_size, (2, _PAST)), use_cache=True, **{self.cache: held})
        states = [(n, kind, state) for n, layer in enumerate(held.layers) for kind, state in _held(layer)]
        self.slots = [(number, kind) for number, kind, _ in states]
        inputs = {
            "input_ids": torch.randint(3, made.config.vocab_size, (2, 2)),
            "attention_mask": torch.ones(2, _PAST + 2, dtype=torch.int64),
            "position_ids": torch.arange(_PAST, _PAST + 2).expand(2, -1).contiguous(),
        }
        return (*(inputs[name] for name in self.inputs), *(state for _, _, state in states))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of the new tokens, and the states after them."""
        made: Any = self.model
        cache = tr.DynamicCache(config=made.config)
        cache.layers = [self._layer(number) for number in range(len(cache.layers))]
        for (number, kind), state in zip(self.slots, inputs[len(self.inputs) :]):
            _hold(cache.layers[number], kind, state)
        out = made(**dict(zip(self.inputs, inputs)), use_cache=True, **{self.cache: cache})
        held = {(n, kind): state for n, layer in enumerate(cache.layers) for kind, state in _held(layer)}
        return (out.logits, *(held[slot] for slot in self.slots))

    def _layer(self, number: int) -> Any:
        """Return a layer of the cache for the states that a layer of the model has."""
        kinds = {kind for layer, kind in self.slots if layer == number}
        return Hybrid() if len(kinds) > 2 else Recurrent() if kinds & {"conv", "ssm"} else DynamicLayer()


def _held(layer: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the states of a layer, each with its kind."""
    if getattr(layer, "keys", None) is not None and layer.keys.numel():
        yield "key", layer.keys
        yield "value", layer.values
    for kind, states in (("conv", "conv_states"), ("ssm", "recurrent_states")):
        for state in getattr(layer, states, {}).values():
            if state is not None:
                yield kind, state


def _hold(layer: Any, kind: str, state: Tensor) -> None:
    """Give a layer a state from earlier tokens."""
    layer.dtype, layer.device, layer.is_initialized = state.dtype, state.device, True
    if kind in ("key", "value"):
        setattr(layer, f"{kind}s", state)
    else:
        states, known = ("conv_states", "conv") if kind == "conv" else ("recurrent_states", "recurrent")
        getattr(layer, states)[0] = state
        getattr(layer, f"is_{known}_states_initialized")[0] = layer.has_previous_state[0] = True


def exported(model: nn.Module) -> ov.Model:
    """Return a model of OpenVINO with state, and the inputs of optimum-intel's: ``beam_idx`` reorders the state."""
    decoder = Decoder(model)
    with torch.no_grad():
        example = decoder.example()
    with torch.no_grad(), patched(model):
        made = ov.convert_model(decoder, example_input=example, extension=EXTENSIONS)
    count, kinds = len(decoder.inputs), {kind for _, kind in decoder.slots}
    form = "cache_params.{}.{}.{}" if kinds - {"key", "value"} else "past_key_values.{0}.{2}.{1}"
    past, present = ([form.format(t, kind, n) for n, kind in decoder.slots] for t in ("past", "present"))
    for port, name in zip(made.inputs, [*decoder.inputs, *past]):
        port.get_tensor().set_names({name})
        port.get_node().set_friendly_name(name)
    for port, name in zip(made.outputs, ["logits", *present]):
        port.get_tensor().set_names({name})
    shapes: dict[Any, Any] = {port: [-1, -1] for port in made.inputs[:count]}
    for port, (_, kind), state in zip(made.inputs[count:], decoder.slots, example[count:]):
        shapes[port] = [-1, *state.shape[1:]]
        if kind in ("key", "value"):
            shapes[port][2] = -1
    made.reshape(shapes)
    _make_stateful(made, dict(zip(past, present)))
    return made


def _make_stateful(made: ov.Model, states: dict[str, str]) -> None:
    """Reorder each state by the new input ``beam_idx``, and turn it into a variable that begins without tokens."""
    beams = opset13.parameter([-1], np.int32, "beam_idx")
    beams.output(0).get_tensor().set_names({"beam_idx"})
    made.add_parameters([beams])
    for name in states:
        port = made.input(name)
        consumers = port.get_target_inputs()
        gather = opset13.gather(port, beams, opset13.constant(np.int64(0)))
        for consumer in consumers:
            consumer.replace_source_output(gather.output(0))
    made.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(made, states)
    batch = opset13.gather(opset13.shape_of(made.input("input_ids")), opset13.constant([0]), opset13.constant(0))
    for node in made.get_ops():
        if node.get_type_name() == "ReadValue":
            dims = [dim.min_length for dim in list(node.get_output_partial_shape(0))]
            shape = opset13.concat([batch, opset13.constant(np.array(dims[1:], np.int64))], 0)
            node.set_arguments([opset13.broadcast(opset13.constant(np.float32(0)), shape).output(0)])
    made.validate_nodes_and_infer_types()


def rewritten(path: Path) -> ov.Model:
    """Return the paged form of a file. Raises RuntimeError if OpenVINO does not rewrite it."""
    from openvino._offline_transformations import paged_attention_transformation

    model = ov.Core().read_model(path)
    paged_attention_transformation(model)
    return model
