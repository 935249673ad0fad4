"""Describe a model on one page: its graph, shapes and findings, and what a run and a comparison show of each layer."""

from irrun.report.collect import ModelReport, collect
from irrun.report.picture import picture

__all__ = ["ModelReport", "collect", "picture"]
