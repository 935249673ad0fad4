"""IsInf: which elements are infinite.  Spec: comparison/isinf-10."""

import numpy as np

from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import ELEMENT_TYPES


@op("IsInf", since=10, spec="comparison/isinf-10")
class IsInf(Op):
    """Return whether x is +Inf (if ``detect_positive``) or -Inf (if ``detect_negative``)."""

    detect_negative = attr.bool(default=True)
    detect_positive = attr.bool(default=True)
    inputs = ports(data="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value) -> Value:
        return data.typed(ELEMENT_TYPES["boolean"])

    def run(self, data: np.ndarray) -> np.ndarray:
        detected = self.detect_positive, self.detect_negative
        return np.asarray(np.isinf(data) & np.where(np.signbit(data), detected[1], detected[0]))
