"""Functions of transformers in forms that a trace follows, as optimum-intel patches them: masks, attention, recurrences.

A trace records what happens to the example. So a function may not branch on the number of tokens, and a loop over
tokens is one operation, which ``served.loops`` converts to Loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.activations import ACT2FN
from transformers.cache_utils import DynamicLayer, LinearAttentionLayer
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask

__all__ = ["Hybrid", "Recurrent", "patched"]

_LEAST: Final = torch.finfo(torch.float16).min


class Recurrent(LinearAttentionLayer):
    """The state of a layer without attention: the last inputs of its convolution, and its recurrent state."""

    def update_conv_state(self, conv_states: Tensor, state_idx: int = 0, **_: Any) -> Tensor:
        """Return the last inputs before the new ones and these, and keep as many of them as before."""
        held = self.conv_states[state_idx]
        assert held is not None
        full = torch.cat([held, conv_states], -1)
        self.conv_states[state_idx] = full[..., -held.shape[-1] :]
        return full

    def update_recurrent_state(self, recurrent_states: Tensor, state_idx: int = 0, **_: Any) -> Tensor:
        self.recurrent_states[state_idx] = recurrent_states
        return recurrent_states


class Hybrid(Recurrent, DynamicLayer):
    """The state of a layer with both."""

    is_compileable = False

    def __init__(self) -> None:
        DynamicLayer.__init__(self)
        Recurrent.__init__(self)


@torch.library.custom_op("served::delta_rule", mutates_args=())
def _delta_rule(
    query: Tensor, key: Tensor, value: Tensor, gate: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the outputs [batch, heads, tokens, width] and the last state [batch, heads, size, width]."""
    held, rows = state.clone(), []
    for t in range(query.shape[2]):
        held = held * gate[:, :, t, None, None].exp()
        delta = (value[:, :, t] - (held * key[:, :, t, :, None]).sum(-2)) * beta[:, :, t, None]
        held = held + key[:, :, t, :, None] * delta[:, :, None]
        rows.append((held * query[:, :, t, :, None]).sum(-2))
    return torch.stack(rows, 2), held


@torch.library.custom_op("served::scan", mutates_args=())
def _scan(decay: Tensor, added: Tensor, read: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs [batch, tokens, heads, width] and the last state [batch, heads, width, size]."""
    held, rows = state.clone(), []
    for t in range(added.shape[1]):
        held = held * decay[:, t] + added[:, t]
        rows.append((held * read[:, t]).sum(-1))
    return torch.stack(rows, 1), held


def _gated_delta_rule(
    query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor, initial_state: Tensor, **_: Any
) -> tuple[Tensor, Tensor]:
    """Return the outputs [batch, tokens, heads, width] and the last state, of queries and keys to be normalized."""
    each = value.shape[2] // key.shape[2]
    if each > 1:
        query, key = query.repeat_interleave(each, 2), key.repeat_interleave(each, 2)
    query, key, value, g, beta = (x.transpose(1, 2) for x in (query, key, value, g, beta))
    query, key = (x * (1 / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-6)) for x in (query, key))
    rows, last = _delta_rule(query / query.shape[-1] ** 0.5, key, value, g, beta, initial_state)
    return rows.transpose(1, 2), last


def _mamba2(
    hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, *, D: Tensor, dt_bias: Tensor,  # noqa: N803
    initial_states: Tensor, dt_limit: tuple[float, float], **_: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the outputs [batch, tokens, heads, width] and the last state of a scan with one decay for each head."""
    dt = functional.softplus(dt + dt_bias).clamp(*dt_limit)
    batch, tokens, heads, _width = hidden_states.shape
    groups, size = B.shape[2:]
    expanded = [x.unsqueeze(3).repeat(1, 1, 1, heads // groups, 1).reshape(batch, tokens, heads, size) for x in (B, C)]
    decay = (A * dt).exp().reshape(batch, tokens, heads, 1, 1)
    added = (dt.unsqueeze(-1) * expanded[0]).unsqueeze(-2) * hidden_states.unsqueeze(-1)
    rows, last = _scan(decay, added, expanded[1].unsqueeze(-2), initial_states)
    return rows + hidden_states * D[:, None], last


def _mamba(
    hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, z: Tensor | None = None,  # noqa: N803
    delta_bias: Tensor | None = None, *, initial_states: Tensor, **_: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the outputs [batch, channels, tokens] and the last state of a scan with a decay for each channel."""
    dt = functional.softplus(dt if delta_bias is None else dt + delta_bias[:, None]).transpose(1, 2)
    inputs = hidden_states.transpose(1, 2)
    decay = (A * dt[..., None]).exp()
    added = dt[..., None] * B.transpose(1, 2)[:, :, None] * inputs[..., None]
    rows, last = _scan(
        decay[..., None, :], added[..., None, :], C.transpose(1, 2)[:, :, None, None], initial_states[:, :, None]
    )
    rows = rows[..., 0] + inputs * D
    if z is not None:
        rows = rows * functional.silu(z.transpose(1, 2))
    return rows.transpose(1, 2), last[:, :, 0]


def _convolution(
    hidden_states: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None, **_: Any
) -> Tensor:
    """Return the convolution of the new inputs, behind as many held ones as the kernel has."""
    rows = functional.conv1d(hidden_states, weight[:, None], bias, groups=len(weight))[..., 1:]
    return rows if activation is None else ACT2FN[activation](rows)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "causal_conv1d_fn": _convolution,
    "torch_chunk_gated_delta_rule": _gated_delta_rule,
    "mamba2_chunk_scan": _mamba2,
    "mamba_selective_scan": _mamba,
    "apply_mask_to_padding_states": lambda hidden_states, _: hidden_states,
}
"""Functions of the modules of models. No prompt here is padded."""


def _mask(*args: Any, dtype: torch.dtype = torch.float32, **options: Any) -> Tensor:
    """Return a causal mask of 0 and a number near that of -inf."""
    mask = sdpa_mask(*args, **{**options, "allow_is_causal_skip": False})
    return torch.where(mask, torch.tensor(0.0, dtype=dtype), torch.tensor(_LEAST, dtype=dtype))


def _bloom(
    self: Any, hidden_states: Tensor, residual: Tensor, alibi: Tensor, attention_mask: Tensor, **more: Any
) -> Any:
    """Return the output of BloomAttention by scaled_dot_product_attention, whose mask holds ALiBi."""
    batch, tokens, _ = hidden_states.shape
    query, key, value = self._reshape(self.query_key_value(hidden_states))
    key, value = more["layer_past"].update(key, value, self.layer_idx)
    mask = alibi.reshape(batch, -1, *alibi.shape[1:]).masked_fill(attention_mask < 0, _LEAST)
    rows = functional.scaled_dot_product_attention(query, key, value, mask, scale=self.inv_norm_factor)
    return self.dense(rows.transpose(1, 2).reshape(batch, tokens, -1)) + residual, None


def _mpt(self: Any, hidden_states: Tensor, position_bias: Tensor, cache: Any, attention_mask: Tensor, **_: Any) -> Any:
    """Return the output of MptAttention by scaled_dot_product_attention, whose mask holds ALiBi."""
    batch, tokens, _width = hidden_states.shape
    rows = (x.reshape(batch, tokens, self.n_heads, -1).transpose(1, 2) for x in self.Wqkv(hidden_states).chunk(3, 2))
    query, key, value = rows
    key, value = cache.update(key, value, self.layer_idx)
    mask = position_bias[:, :, -key.shape[-2] :].unsqueeze(0).masked_fill(attention_mask, _LEAST)
    rows = functional.scaled_dot_product_attention(query, key, value, mask, scale=self.softmax_scale)
    return self.out_proj(rows.transpose(1, 2).reshape(batch, tokens, -1)), None


def _mixer(self: Any, hidden_states: Tensor, cache: Any, **more: Any) -> Any:
    """Return the output of a Mamba mixer, whose scan of several tokens begins with the state of the cache."""
    module: Any = sys.modules[type(self).__module__]
    module.mamba_selective_scan = partial(_mamba, initial_states=cache.get_recurrent_state(self.layer_idx))
    return type(self).forward(self, hidden_states, cache=cache, **more)


_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "BloomAttention": _bloom, "MptAttention": _mpt, "MambaMixer": _mixer, "JambaMambaMixer": _mixer,
}  # fmt: skip


@contextmanager
def patched(model: nn.Module) -> Iterator[None]:
    """Let a model compute with the functions of this module."""
    mapping: Any = ALL_MASK_ATTENTION_FUNCTIONS
    masks = {name: mapping[name] for name in ("sdpa", "eager")}
    module: Any = sys.modules[type(model).__module__]
    before = {name: getattr(module, name) for name in _FUNCTIONS if hasattr(module, name)}
    for name in masks:
        mapping.register(name, _mask)
    for name in before:
        setattr(module, name, _FUNCTIONS[name])
    for part in model.modules():
        if type(part).__name__ in _METHODS:
            part.forward = _METHODS[type(part).__name__].__get__(part)
    try:
        yield
    finally:
        for name, function in masks.items():
            mapping.register(name, function)
        for name, function in before.items():
            setattr(module, name, function)
