"""Compare language models: both read the same tokens, one after the other, and each choice is judged."""

from irrun.debug.tokens.comparison import compare_tokens

__all__ = ["compare_tokens"]
