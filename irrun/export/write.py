"""Write an exported model: one constant at a time, so that memory never holds more than one of them twice."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

import onnx

from irrun.export.convert import Exported
from irrun.export.graph import Constant, onnx_type

__all__ = ["EXTERNAL", "to_bytes", "write"]

EXTERNAL: Final = (2 << 30) - (64 << 20)
"""The bytes of constants from which on they lie in a file of their own: protobuf reads at most 2 GiB."""
_INLINE_BYTES: Final = 1 << 10
"""Constants of at most this many bytes stay in the model: runtimes read shapes and axes from there."""
_PAGE_BYTES: Final = 1 << 12
"""The alignment of constants in their own file, so that runtimes can map them into memory."""
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
"""The numbers of the fields ``ModelProto.graph``, ``GraphProto.initializer`` and ``TensorProto.raw_data``."""


def to_bytes(exported: Exported) -> bytes:
    """Return the bytes of a model with its constants."""
    file = io.BytesIO()
    _write(exported, {}, file)
    return file.getvalue()


def write(exported: Exported, path: Path, *, external: bool | None = None) -> list[Path]:
    """Write a model to ``path``, and return the files that were written.

    ``external`` says whether constants lie in a file beside it, ``model.onnx.data``; by default if they take more than
    ``EXTERNAL`` bytes.
    """
    path.parent.mkdir(exist_ok=True)
    if external is None:
        external = sum(constant.nbytes for constant in exported.constants.values()) > EXTERNAL
    places: dict[str, tuple[str, int]] = {}
    beside = path.with_name(f"{path.name}.data")
    if external:
        with beside.open("wb") as file:
            for name, constant in exported.constants.items():
                if constant.nbytes > _INLINE_BYTES and not constant.words:
                    file.write(bytes(-file.tell() % _PAGE_BYTES))
                    places[name] = beside.name, file.tell()
                    file.write(constant.read())
    with path.open("wb") as file:
        _write(exported, places, file)
    return [path, beside] if external else [path]


def _write(exported: Exported, places: Mapping[str, tuple[str, int]], file: BinaryIO) -> None:
    """Write a model field by field. Protobuf allows the fields of a message in any order."""
    opset = next(entry.version for entry in exported.proto.opset_import if not entry.domain)
    head = onnx.ModelProto()
    head.CopyFrom(exported.proto)
    graph = head.graph.SerializeToString()
    head.ClearField("graph")
    file.write(head.SerializeToString())
    tensors = [
        (_tensor(name, constant, places.get(name), opset), constant if name not in places else None)
        for name, constant in exported.constants.items()
    ]
    sizes = [len(tensor) + _raw_size(constant) for tensor, constant in tensors]
    whole = len(graph) + sum(size + len(_key(_INITIALIZER, size)) for size in sizes)
    file.write(_key(_GRAPH, whole) + graph)
    for (tensor, constant), size in zip(tensors, sizes):
        file.write(_key(_INITIALIZER, size) + tensor)
        if constant is not None and not constant.words:
            file.write(_key(_RAW_DATA, constant.nbytes))
            file.write(constant.read())


def _raw_size(constant: Constant | None) -> int:
    """Return the bytes of the field ``raw_data``."""
    return 0 if constant is None or constant.words else constant.nbytes + len(_key(_RAW_DATA, constant.nbytes))


def _tensor(name: str, constant: Constant, place: tuple[str, int] | None, opset: int) -> bytes:
    """Return a ``TensorProto`` without ``raw_data``."""
    tensor = onnx.TensorProto(name=name, data_type=onnx_type(constant.type, opset), dims=constant.shape)
    tensor.string_data.extend(constant.words)
    if place is not None:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in _entries(place, constant.nbytes):
            tensor.external_data.add(key=key, value=value)
    return tensor.SerializeToString()


def _entries(place: tuple[str, int], nbytes: int) -> Iterator[tuple[str, str]]:
    yield "location", place[0]
    yield "offset", str(place[1])
    yield "length", str(nbytes)


def _key(field: int, length: int) -> bytes:
    """Return the key of a field that holds ``length`` bytes, and the length, as protobuf writes them."""
    return _varint(field << 3 | 2) + _varint(length)


def _varint(number: int) -> bytes:
    raw = bytearray()
    while number > 127:
        raw.append(number & 127 | 128)
        number >>= 7
    raw.append(number)
    return bytes(raw)
