"""Attention: queries, keys and values of f32, in blocks that stay in the cache."""
