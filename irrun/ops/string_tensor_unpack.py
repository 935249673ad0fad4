"""StringTensorUnpack: strings as one row of bytes.  Spec: type/string-tensor-unpack-15."""

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports
from irrun.types import ELEMENT_TYPES, PartialShape, encoded


@op("StringTensorUnpack", since=15, spec="type/string-tensor-unpack-15")
class StringTensorUnpack(Op):
    """Return the index where each string begins, the index where it ends, and the UTF-8 bytes of all strings."""

    inputs = ports(data="string")
    outputs = 3

    def infer(self, at: Site, data: Value) -> tuple[Value, ...]:
        places = Value(ELEMENT_TYPES["i32"], data.shape)
        symbols = (
            PartialShape.of_rank(1) if data.exact is None else PartialShape.of([sum(map(len, _bytes(data.exact)))])
        )
        return places, places, Value(ELEMENT_TYPES["u8"], symbols)

    def run(self, data: np.ndarray) -> tuple[np.ndarray, ...]:
        strings = _bytes(data)
        lengths = np.array([len(s) for s in strings], np.int32)
        ends = np.cumsum(lengths, dtype=np.int32)
        symbols = np.frombuffer(b"".join(strings), np.uint8)
        return (ends - lengths).reshape(data.shape), ends.reshape(data.shape), symbols


def _bytes(data: np.ndarray) -> list[bytes]:
    return [encoded(s) for s in data.ravel().tolist()]
