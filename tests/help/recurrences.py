"""Recurrent and paged operations in another form than the kernels': plain numpy, for expected values."""

from __future__ import annotations

import numpy as np

__all__ = ["attention_of_ssm", "attention_of_tokens", "delta_rule", "windows"]


def delta_rule(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, state: np.ndarray, gate: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """One sequence, as a product of matrices (arXiv 2412.06464): S = exp(g) (1 - beta k k') S + beta k v'."""
    tokens, heads, size = key.shape
    output = np.zeros(value.shape)
    states: list[np.ndarray] = []
    state = state.astype(np.float64)
    each = value.shape[1] // heads
    for t in range(tokens):
        state = state.copy()
        for h in range(value.shape[1]):
            k = key[t, h // each].astype(np.float64)
            forget = np.exp(np.float64(gate[t, h])) * (np.eye(size) - beta[t, h] * np.outer(k, k))
            state[h] = forget @ state[h] + beta[t, h] * np.outer(k, value[t, h])
            output[t, h] = query[t, h // each] @ state[h] / np.sqrt(size)
        states.append(state)
    return output, states


def attention_of_ssm(
    decay: np.ndarray, dt: np.ndarray, b: np.ndarray, x: np.ndarray, c: np.ndarray, state: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """One sequence as attention (arXiv 2405.21060): each token adds its x, decayed by the sum of all dt since then."""
    tokens, heads, _ = x.shape
    each = heads // b.shape[1]
    output, states = np.zeros(x.shape), []
    elapsed = np.cumsum(dt.astype(np.float64), 0)
    for t in range(tokens):
        now = np.zeros(state.shape)
        for h in range(heads):
            now[h] = state[h] * np.exp(decay[h] * elapsed[t, h])
            for s in range(t + 1):
                weight = np.exp(decay[h] * (elapsed[t, h] - elapsed[s, h])) * dt[s, h]
                now[h] += weight * np.outer(x[s, h], b[s, h // each])
            output[t, h] = now[h] @ c[t, h // each]
        states.append(now)
    return output, states


def windows(
    tokens: np.ndarray, weight: np.ndarray, bias: np.ndarray, state: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """One sequence: a sum over the tokens in the window and over the channels of a group."""
    channels, group, width = weight.shape
    history = np.concatenate((state.T, tokens)).astype(np.float64)
    output = np.zeros(tokens.shape)
    for t in range(len(tokens)):
        for channel in range(channels):
            first = channel // group * group
            own = history[t + 1 : t + 1 + width, first : first + group]
            output[t, channel] = (own * weight[channel].T).sum() + (bias[channel] if bias.size else 0)
    return output, [history[t + 1 : t + 1 + width].T for t in range(len(tokens))]


def attention_of_tokens(query: np.ndarray, key: np.ndarray, value: np.ndarray, scale: float) -> np.ndarray:
    """One sequence: each query [tokens, heads, size] attends to the keys [tokens, groups, size] up to its own."""
    tokens, heads, _ = query.shape
    each = heads // key.shape[1]
    output = np.zeros((tokens, heads, value.shape[2]))
    for t in range(tokens):
        for h in range(heads):
            weights = np.exp(key[: t + 1, h // each].astype(np.float64) @ query[t, h] * scale)
            output[t, h] = weights / weights.sum() @ value[: t + 1, h // each]
    return output
