"""Attention of single tokens of several sequences, as a server computes it."""
