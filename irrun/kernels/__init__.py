"""Numerical code that knows no operation."""
