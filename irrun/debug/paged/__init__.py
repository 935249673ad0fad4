"""Compare a stateful model with its paged form, under the schedules of a server.

OpenVINO rewrites a stateful model to paged attention before a server runs it. Both forms must give the same logits for
a token, whichever blocks hold its sequence, and in whichever call it is computed.
"""

from __future__ import annotations

from irrun.debug.paged.comparison import Fault, Schedule, Serving, serving
from irrun.debug.paged.proof import RELATIVE

__all__ = ["RELATIVE", "Fault", "Schedule", "Serving", "serving"]
