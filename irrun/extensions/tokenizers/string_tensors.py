"""StringTensorUnpack and StringTensorPack of the operation set ``extension``, and NumericToString.

Files before 2024.5 have the first two in this operation set; later ones have those of OpenVINO's opset15.
"""

from __future__ import annotations

import numpy as np

from irrun.extensions.tokenizers._strings import STRINGS, check_strings, packed, pieces, string_outputs
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import ELEMENT_TYPES, Dim, PartialShape, decoded, encoded, text_array


@op("StringTensorUnpack", version="extension")
class StringTensorUnpack(Op):
    """Return where each string begins, where it ends, and the bytes of all strings.

    The strings are a string tensor, or its packed form of type u8: the number of strings, the offset of the first one
    and of the end of each one (i32 each), and then the bytes, from which the offsets count.

    C1  ``mode`` is begins_ends.
    C2  The packed form is 1D, and holds all the offsets and bytes that it names.
    """

    mode = attr.str(default="begins_ends")
    inputs = ports(data="string u8")
    outputs = 3

    def infer(self, at: Site, data: Value) -> tuple[Value, ...]:
        at.require(self.mode == "begins_ends", "C1", f'mode is "{self.mode}"')
        if data.type.name != "u8":
            return string_outputs(data.shape)
        at.require(data.rank in (None, 1), "C2", f"data is {data.shape}, not 1D")
        if data.exact is not None:
            _unpacked(at, data.exact)
        return string_outputs(PartialShape.of([Dim.unknown()]))

    def run(self, data: np.ndarray) -> tuple[np.ndarray, ...]:
        if data.dtype != np.uint8:
            return packed(map(encoded, data.ravel().tolist()), data.shape)
        offsets, text = _unpacked(Site(), data)
        return offsets[:-1], offsets[1:], text


def _unpacked(at: Site, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and the bytes of the packed form of a string tensor."""
    header = np.frombuffer(data[: data.size // 4 * 4].tobytes(), "<i4").astype(np.int32)
    count = int(header[0]) if header.size else -1
    at.require(0 <= count <= header.size - 2, "C2", f"{data.size} bytes do not hold the offsets of {count} strings")
    offsets, text = header[1 : count + 2], data[4 * (count + 2) :]
    inside = offsets[0] >= 0 and not np.any(np.diff(offsets) < 0) and offsets[-1] <= text.size
    at.require(bool(inside), "C2", f"the offsets do not ascend from 0 to the {text.size} bytes of text")
    return offsets, text


@op("StringTensorPack", version="extension")
class StringTensorPack(Op):
    """Cut ``chars``, which holds bytes, into strings from the index in ``begins`` up to the index in ``ends``.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  ``mode`` is begins_ends.
    """

    mode = attr.str(default="begins_ends")
    inputs = ports(**STRINGS)

    def infer(self, at: Site, begins: Value, ends: Value, chars: Value) -> Value:
        at.require(self.mode == "begins_ends", "C2", f'mode is "{self.mode}"')
        return Value(ELEMENT_TYPES["string"], check_strings(at, begins, ends, chars))

    def run(self, begins: np.ndarray, ends: np.ndarray, chars: np.ndarray) -> np.ndarray:
        return text_array(map(decoded, pieces(begins, ends, chars)), begins.shape)


@op("NumericToString")
class NumericToString(Op):
    """Return each number as text: integers in decimals, floats with six significant digits, booleans as true and false.

    A float is written as ``%g`` writes it. Layers of this type have ``version="openvino_tokenizers"``.
    """

    inputs = ports(data="numeric boolean")

    def infer(self, at: Site, data: Value) -> Value:
        return Value(ELEMENT_TYPES["string"], data.shape)

    def run(self, data: np.ndarray) -> np.ndarray:
        return text_array(map(_number, data.ravel().tolist()), data.shape)


def _number(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f"{value:g}"
