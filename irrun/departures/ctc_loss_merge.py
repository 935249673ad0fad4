"""Without ``ctc_merge_repeated``, repeated labels are not merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def openvino(layer: Any) -> Sequence[np.ndarray] | None:
    """Return what OpenVINO gives for a layer."""
    if layer.op.type != "CTCLoss" or not layer.op.ctc_merge_repeated:
        return None
    return [layer.changed(ctc_merge_repeated=False).run(*layer.inputs)]
