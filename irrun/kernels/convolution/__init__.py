"""Convolutions by several methods, on channels-first and on channels-last data."""
