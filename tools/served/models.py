"""Small random language models of transformers, one for each family: their configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
import transformers as tr

__all__ = ["FAMILIES", "VOCABULARY", "built"]

VOCABULARY: Final = 64
_WINDOW: Final = 40
"""The tokens of a sliding window: less than a prompt of `irrun paged`, and no multiple of a block."""
_COMMON: Final[dict[str, Any]] = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 256, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False, "use_cache": True,
}  # fmt: skip
_GPT: Final[dict[str, Any]] = {
    "vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
_EXPERTS: Final[dict[str, Any]] = {"num_local_experts": 4, "num_experts_per_tok": 2}
_MANY: Final[dict[str, Any]] = {
    "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1,
}  # fmt: skip
_ALTERNATING: Final = ["sliding_attention", "full_attention"]


def _family(name: str, *leave_out: str, **more: Any) -> Callable[[], Any]:
    """Return a function that makes the configuration of a family, from the common values and its own."""
    common = {key: value for key, value in _COMMON.items() if key not in leave_out}
    return lambda: getattr(tr, f"{name}Config")(**{**common, **more})


FAMILIES: Final[dict[str, tuple[str, Callable[[], Any]]]] = {
    "llama": ("Llama", _family("Llama")),
    "qwen2": ("Qwen2", _family("Qwen2")),
    "qwen3": ("Qwen3", _family("Qwen3", head_dim=16)),
    "phi": ("Phi", _family("Phi", num_key_value_heads=4)),
    "phi3": ("Phi3", _family("Phi3", sliding_window=_WINDOW)),
    "gemma": ("Gemma", _family("Gemma", head_dim=16, num_key_value_heads=1)),
    "gemma2": ("Gemma2", _family("Gemma2", head_dim=16, sliding_window=_WINDOW)),
    "gemma2-uncapped": (
        "Gemma2", _family("Gemma2", head_dim=16, sliding_window=_WINDOW, attn_logit_softcapping=None),
    ),
    "gemma3": (
        "Gemma3", _family("Gemma3Text", head_dim=16, sliding_window=_WINDOW, layer_types=_ALTERNATING),
    ),
    "gpt2": ("GPT2LMHead", lambda: tr.GPT2Config(**_GPT)),
    "gpt-neox": ("GPTNeoX", _family("GPTNeoX", "num_key_value_heads")),
    "gptj": ("GPTJ", lambda: tr.GPTJConfig(**_GPT, rotary_dim=4)),
    "falcon": ("Falcon", _family("Falcon", num_kv_heads=2, new_decoder_architecture=True, alibi=False)),
    "falcon-alibi": ("Falcon", _family("Falcon", alibi=True, multi_query=False, new_decoder_architecture=False)),
    "bloom": ("Bloom", lambda: tr.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4)),
    "mpt": ("Mpt", lambda: tr.MptConfig(vocab_size=VOCABULARY, d_model=32, n_layers=2, n_heads=4, max_seq_len=256)),
    "opt": ("OPT", _family("OPT", ffn_dim=48, word_embed_proj_dim=32)),
    "starcoder2": ("Starcoder2", _family("Starcoder2", sliding_window=_WINDOW)),
    "gpt-bigcode": ("GPTBigCode", lambda: tr.GPTBigCodeConfig(**_GPT)),
    "mistral": ("Mistral", _family("Mistral", sliding_window=_WINDOW)),
    "cohere": ("Cohere", _family("Cohere")),
    "cohere2": ("Cohere2", _family("Cohere2", sliding_window=_WINDOW, layer_types=_ALTERNATING)),
    "olmo": ("Olmo", _family("Olmo")),
    "olmo2": ("Olmo2", _family("Olmo2")),
    "stablelm": ("StableLm", _family("StableLm")),
    "gpt-oss": (
        "GptOss", _family("GptOss", head_dim=16, sliding_window=_WINDOW, layer_types=_ALTERNATING, **_EXPERTS),
    ),
    "mixtral": ("Mixtral", _family("Mixtral", **_EXPERTS)),
    "qwen2-moe": ("Qwen2Moe", _family("Qwen2Moe", shared_expert_intermediate_size=24, **_MANY)),
    "qwen3-moe": ("Qwen3Moe", _family("Qwen3Moe", head_dim=16, **_MANY)),
    "granite": ("Granite", _family("Granite")),
    "granite-moe": ("GraniteMoe", _family("GraniteMoe", **_EXPERTS)),
    "olmoe": ("Olmoe", _family("Olmoe", num_experts=4, num_experts_per_tok=2)),
    "phimoe": ("Phimoe", _family("Phimoe", **_EXPERTS)),
    "glm4": ("Glm4", _family("Glm4", head_dim=16)),
    "smollm3": ("SmolLM3", _family("SmolLM3")),
    "exaone4": ("Exaone4", _family("Exaone4", sliding_window=_WINDOW, layer_types=_ALTERNATING)),
    "mamba": ("Mamba", _family("Mamba", state_size=8)),
    "mamba2": ("Mamba2", _family("Mamba2", state_size=8, num_heads=4, head_dim=16, n_groups=1, chunk_size=8)),
    "lfm2": ("Lfm2", _family("Lfm2", layer_types=["conv", "full_attention"])),
    "qwen3-next": (
        "Qwen3Next",
        _family(
            "Qwen3Next", head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
            linear_value_head_dim=8, layer_types=["linear_attention", "full_attention"], mlp_only_layers=[0, 1],
            shared_expert_intermediate_size=24, **_MANY,
        ),
    ),
    "jamba": (
        "Jamba",
        _family(
            "Jamba", attn_layer_period=2, attn_layer_offset=1, expert_layer_period=4, expert_layer_offset=3,
            mamba_d_state=8, use_mamba_kernels=False, num_experts=4,
        ),
    ),
    "bamba": (
        "Bamba",
        _family("Bamba", attn_layer_indices=[1], mamba_n_heads=4, mamba_d_head=16, mamba_d_state=8, mamba_chunk_size=8),
    ),
    "zamba2": (
        "Zamba2",
        _family("Zamba2", mamba_d_state=8, n_mamba_heads=4, mamba_headdim=16, chunk_size=8, num_mem_blocks=1,
                layers_block_type=["mamba", "hybrid"]),
    ),
    "falcon-h1": (
        "FalconH1", _family("FalconH1", mamba_d_state=8, mamba_n_heads=4, mamba_d_head=16, mamba_d_ssm=64,
                            mamba_n_groups=1, mamba_chunk_size=8),
    ),
}  # fmt: skip
"""The class of each model, without ForCausalLM, and a function that makes its configuration."""


def built(name: str, seed: int = 0) -> torch.nn.Module:
    """Return a model of a family with random weights, large enough for attention to matter."""
    torch.manual_seed(seed)
    kind, config = FAMILIES[name]
    names = (f"{kind}ForCausalLM", f"{kind}Model")
    made = getattr(tr, next(n for n in names if hasattr(tr, n)))
    settings = config()
    settings._attn_implementation = "sdpa" if made._supports_sdpa else "eager"
    model = made(settings).eval()
    model.config._experts_implementation = "batched_mm"  # the loop over experts depends on the example
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=1.5 * parameter.shape[-1] ** -0.5)
        else:
            parameter.data += 0.1 * torch.randn_like(parameter)
    return model
