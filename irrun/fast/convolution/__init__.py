"""Compiled convolutions and poolings, on channels-last data."""
