"""Kernels that numba compiles for the processor at hand, beside those of numpy. Nothing needs them (extra ``fast``).

``irrun.fast`` itself imports nothing of numba. The planner asks ``available`` once for each plan that is
large enough, and the modules beside this one are imported for the first kernel of such a plan.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache

__all__ = ["available"]


@cache
def available() -> bool:
    """Return whether numba is installed. IRRUN_FAST=0 declines it."""
    return os.environ.get("IRRUN_FAST", "") != "0" and importlib.util.find_spec("numba") is not None
