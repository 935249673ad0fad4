"""Comparing what a model declares with what is inferred, and reporting and fixing the differences."""
