"""Find the smallest part of a model that an engine computes wrongly, and write it to a folder."""

from irrun.debug.bisection.anonymous import anonymized
from irrun.debug.bisection.judging import Wrong
from irrun.debug.bisection.reproduction import write_reproduction
from irrun.debug.bisection.search import Bisection, Culprit, bisect

__all__ = ["Bisection", "Culprit", "Wrong", "anonymized", "bisect", "write_reproduction"]
