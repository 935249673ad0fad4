"""Describe a model on one page: its graph, shapes and findings, and what a run and a comparison show of each layer."""

from irrun.report.collect import ModelReport, collect

__all__ = ["ModelReport", "collect"]
