"""StringTensorPack: strings from a tensor of bytes.  Spec: type/string-tensor-pack-15."""

import numpy as np

from irrun.opdef import Op, Site, Value, op, ports
from irrun.types import ELEMENT_TYPES, STRING_BYTES, decoded, text_array


@op("StringTensorPack", since=15, spec="type/string-tensor-pack-15")
class StringTensorPack(Op):
    """Cut ``symbols``, which holds bytes, into strings from the index in ``begins`` up to the index in ``ends``.

    C1  ``begins`` and ``ends`` have the same shape.
    C2  ``symbols`` is 1D.
    C3  The begin of a string is at least 0 and at most its end, and the end is at most the length of ``symbols``.
    """

    inputs = ports(begins="T_IDX", ends="T_IDX", symbols="u8")
    types = {"T_IDX": "i32 i64"}

    def infer(self, at: Site, begins: Value, ends: Value, symbols: Value) -> Value:
        shape = begins.shape.meet(ends.shape)
        at.require(shape is not None, "C1", f"begins is {begins.shape}, but ends is {ends.shape}")
        at.require(symbols.rank in (None, 1), "C2", f"symbols is {symbols.shape}, not 1D")
        assert shape is not None
        for begin, end in zip(begins.ints() or (), ends.ints() or ()):
            _check(at, begin, end, symbols.shape[0].hi)
        return Value(ELEMENT_TYPES["string"], shape)

    def run(self, begins: np.ndarray, ends: np.ndarray, symbols: np.ndarray) -> np.ndarray:
        text = symbols.tobytes()
        strings: list[str] = []
        for begin, end in zip(begins.ravel().tolist(), ends.ravel().tolist()):
            _check(Site(), begin, end, len(text))
            strings.append(decoded(text[begin:end]))
        return text_array(strings, begins.shape)

    def working(self, *inputs: np.ndarray) -> int:
        """Return the bytes of the strings, of which any number may share their ``symbols``."""
        begins, ends, _ = inputs
        texts = ends.sum(dtype=np.float64) - begins.sum(dtype=np.float64)
        return max(0, int(texts)) + begins.size * STRING_BYTES


def _check(at: Site, begin: int, end: int, length: int) -> None:
    message = f"a string from {begin} to {end} is not within the {length} bytes of symbols"
    at.require(0 <= begin <= end <= length, "C3", message)
