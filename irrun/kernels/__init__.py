"""Numerical code that is independent of any operation."""
