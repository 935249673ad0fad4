"""Simulate lower precisions: which layers overflow, which lose most, and which to keep in full precision."""
