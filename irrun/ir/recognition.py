"""Recognise by their contents files that are passed in place of an IR or its .bin, and say what to do with them."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from irrun.base.source import STDIN
from irrun.diagnostics import ReadError, diagnostic
from irrun.ir.pages import has_examples, is_document

__all__ = ["foreign", "foreign_weights", "kind_of", "what_to_do_with_folder"]

_OVC: Final = "convert it to IR: ovc {path}"
_IN_PYTHON: Final = "convert the model in Python: openvino.convert_model, then openvino.save_model"
_FRAMEWORK_OF_WEIGHTS: Final = (
    "it holds weights without a graph; export the model: optimum-cli export openvino -m MODEL FOLDER"
)
_INPUT: Final = "pass the .xml of a model, and this file as an input: -i NAME={path}"
_UNPACK: Final = "unpack it, and pass the .xml file inside"
_PULL: Final = "get the file itself: git lfs pull"
_DOWNLOAD: Final = "download the file itself, not the page about it (on GitHub, raw; on Hugging Face, resolve)"
_PASS_XML: Final = "pass the .xml file of a model"
_PAIR: Final = "a .bin holds the weights; pass the .xml file of the model"

_MAGIC: Final[tuple[tuple[int, bytes, str, str], ...]] = (
    (0, b"version https://git-lfs.github.com/spec/", "is a Git LFS pointer", _PULL),
    (0, b"\x93NUMPY", "is a NumPy array (.npy)", _INPUT),
    (4, b"TFL3", "is a TensorFlow Lite model", _OVC),
    (0, b"\x89HDF\r\n\x1a\n", "is an HDF5 file, such as a Keras model", "save it as a SavedModel, then ovc FOLDER"),
    (0, b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "is a PyTorch checkpoint", _IN_PYTHON),
    (0, b"GGUF", "is a GGUF file", _FRAMEWORK_OF_WEIGHTS),
    (0, b"\x1f\x8b", "is compressed with gzip", "decompress it: gunzip {path}"),
    (0, b"\xfd7zXZ\0", "is compressed with xz", "decompress it: unxz {path}"),
    (0, b"\x28\xb5\x2f\xfd", "is compressed with zstd", "decompress it: unzstd {path}"),
    (0, b"BZh", "is compressed with bzip2", "decompress it: bunzip2 {path}"),
    (0, b"7z\xbc\xaf\x27\x1c", "is a 7-Zip archive", _UNPACK),
    (257, b"ustar", "is a tar archive", _UNPACK),
    (0, b"\x89PNG\r\n\x1a\n", "is a picture (PNG)", _INPUT),
    (0, b"\xff\xd8\xff", "is a picture (JPEG)", _INPUT),
    (0, b"%PDF-", "is a PDF document", _PASS_XML),
)
"""The offset and the first bytes of each format, its name, and what to do with the file."""

_HEAD: Final = 4096
"""The number of bytes that tell a text from binary data."""
_FIRST: Final = 60
"""The most characters of a text that a message quotes."""
_MOST_FIELDS: Final = 10_000
"""The most fields of a protocol buffer that are looked at: a graph has few, besides its nodes."""


def kind_of(data: bytes, path: str) -> tuple[str, str] | None:
    """Return the format of a file and what to do with it; None for text that may be an IR or a page, and for weights.

    The format is a predicate of the file: ``is an ONNX model``.
    """
    for offset, magic, name, help in _MAGIC:
        if data.startswith(magic, offset):
            return name, _convert(path, ".tflite") if help == _OVC else help.format(path=path)
    if data.startswith(b"PK\x03\x04"):
        return _archive(data, path)
    if re.match(rb"\s*<(!doctype\s+html|html)\b", data[:_HEAD], re.IGNORECASE):
        return "is a web page (HTML)", _DOWNLOAD
    if data[:1] == b"\x80" and data[1:2] in (b"\2", b"\3", b"\4", b"\5") and data.endswith(b"."):
        return "is a pickle, such as a PyTorch or scikit-learn model", _IN_PYTHON
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data) - 8:
        return "is a safetensors file", _FRAMEWORK_OF_WEIGHTS
    if _is_xml(data):
        return None
    if (protocol := _protocol_buffer(data)) is not None:
        return protocol, _convert(path, ".onnx" if "ONNX" in protocol else ".pb")
    if data[:1] in (b"{", b"["):
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            return None
        return "is JSON", _PASS_XML
    return None


def _convert(path: str, suffix: str) -> str:
    """Return how to convert a model whose files end in ``suffix``, by which OpenVINO's converter recognises them."""
    right = Path(path).with_suffix(suffix)
    return _OVC.format(path=path) if path.lower().endswith(suffix) else f"rename it to {right}, then ovc {right}"


def foreign(path: str, data: bytes) -> ReadError | None:
    """Return the error (IR003) for a file that is neither XML nor a page, or that is the web page about a file.

    Return None for a file that may be an IR or a page with examples.
    """
    shown = "FILE" if path == STDIN else path
    is_page = is_document(path) or path.lower().endswith(".txt")
    known = kind_of(data, shown)
    if known is not None and known[1] == _DOWNLOAD:
        known = None if is_page or has_examples(path, data.decode("utf-8", "replace")) else known
    elif known is not None:
        known = None if is_page and known[0] == "is JSON" else known
    elif data and not _is_xml(data):
        known = _neither_xml_nor_known(shown, data, is_page=is_page)
    if known is None:
        return None
    name, help = known
    return ReadError(diagnostic("IR003", f"not an IR: the file {name}", file=path, help=help))


def _neither_xml_nor_known(path: str, data: bytes, *, is_page: bool) -> tuple[str, str] | None:
    """Return what a file without a known format holds, and what to do with it; None for text with markup."""
    beside = Path(path).with_suffix(".xml")
    pair = f"a .bin holds the weights; pass {beside}" if str(beside) != path and _exists(beside) else _PAIR
    is_weights = path.lower().endswith(".bin")
    if not data.strip(b"\0"):
        return "holds nothing but zero bytes", pair if is_weights else "copy or download the file again"
    if is_weights:
        return "is the weights of a model (.bin)", pair
    if re.search(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", data[:_HEAD]):
        return "is binary data", f"{pair}; or is it encrypted, or a compiled blob (export_model)?"
    if is_page or b"<" in data or not data.strip(b"\0 \t\r\n\xef\xbb\xbf\xff\xfe"):
        return None
    first = data.lstrip()[:_FIRST].decode("utf-8", "replace").split("\n")[0].strip()
    return f"is text that begins with {first!r}", f"{_PASS_XML}; if this is one, download it again"


def foreign_weights(path: Path, *, is_named: bool) -> tuple[str, str] | None:
    """Return the format of a file in place of a .bin and what to do with it; None for bytes that may be weights.

    A file beside the .xml may be a Git LFS pointer or a web page. A file that the user names may be anything that
    begins with bytes which no weights have by chance.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    known = kind_of(head, str(path))
    if known is not None and known[1] in (_PULL, _DOWNLOAD):
        return known
    if not is_named:
        return None
    if re.match(rb"(\xef\xbb\xbf)?\s*(<\?xml|<net)\b", head):
        return "is XML", "name the .bin file with -w, and the .xml as the model"
    is_strong = any(len(magic) > 4 and head.startswith(magic, offset) for offset, magic, *_ in _MAGIC)
    if head.startswith(b"PK\x03\x04"):
        known = _archive(path.read_bytes(), str(path))
    elif known is None or not is_strong:
        return None
    return known[0], "name the .bin that belongs to the .xml"


def what_to_do_with_folder(path: Path) -> str:
    """Return what to do with a folder that is passed in place of a model."""
    try:
        names = sorted(item.name for item in path.iterdir())
    except OSError:
        return _PASS_XML
    models = [name for name in names if name.lower().endswith(".xml")]
    if "saved_model.pb" in names:
        return f"it is a TensorFlow SavedModel; {_OVC.format(path=path)}"
    if models:
        listed = ", ".join(str(path / name) for name in models[:3]) + (", ..." if len(models) > 3 else "")
        return f"pass {'the model in it' if len(models) == 1 else 'a model in it'}: {listed}"
    return f"{_PASS_XML}; the folder holds none"


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_xml(data: bytes) -> bool:
    """Return whether a file begins like XML, in whatever encoding."""
    start = data[:_HEAD].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return start.startswith((b"<", b"\x4c\x6f\xa7\x94\x93"))  # the second is <?xml in EBCDIC


def _archive(data: bytes, path: str) -> tuple[str, str]:
    """Return what a zip archive is, from the names of its members."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return "is a zip archive that is cut short", "copy or download it again"
    if any(name.endswith("data.pkl") for name in names) or any("/code/" in name for name in names):
        return "is a PyTorch model", _IN_PYTHON
    if any(name.endswith(("model.json", "serialized_exported_program.json")) for name in names):
        return "is a PyTorch exported program", _IN_PYTHON
    if "model.weights.h5" in names:
        return "is a Keras model", "save it as a SavedModel (model.export), then ovc FOLDER"
    if names and all(name.endswith(".npy") for name in names):
        return "holds NumPy arrays (.npz)", "pass the .xml of a model, and this file as its inputs: -i " + path
    models = [name for name in names if name.lower().endswith(".xml")]
    return "is a zip archive", f"unpack it, and pass {models[0]}" if len(models) == 1 else _UNPACK


def _protocol_buffer(data: bytes) -> str | None:
    """Return which model a protocol buffer holds: that of ONNX, or a graph of TensorFlow. None if it holds none."""
    seen: set[tuple[int, int]] = set()
    for field, wire, _ in _fields(data):
        seen.add((field, wire))
    # ModelProto: ir_version, graph, opset_import; GraphDef: node, library, versions; SavedModel: version, meta graphs
    if (7, 2) in seen and ((1, 0) in seen or (8, 2) in seen) and seen <= _MODEL_PROTO:
        return "is an ONNX model"
    if (1, 2) in seen and seen & {(2, 2), (4, 2)} and seen <= {(1, 2), (2, 2), (3, 0), (4, 2), (5, 2)}:
        return "is a frozen graph of TensorFlow"
    if seen == {(1, 0), (2, 2)}:
        return "is the graph of a TensorFlow SavedModel"
    return None


_MODEL_PROTO: Final = {(1, 0), (5, 0)} | {(number, 2) for number in (2, 3, 4, 6, 7, 8, 14, 20, 25, 26)}
"""The numbers and wire types of the fields of ONNX' ModelProto."""


def _fields(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the number, the wire type and the offset of each field of a protocol buffer; (0, 0, 0) for a wrong one."""
    at = 0
    for _ in range(_MOST_FIELDS):
        if at >= len(data):
            return
        key, after = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            _, end = _varint(data, after)
        elif wire == 2:
            size, after = _varint(data, after)
            end = after + size
        else:
            end = after + {1: 8, 5: 4}.get(wire, 0)
        if not number or wire not in (0, 1, 2, 5) or end <= at or end > len(data):
            yield 0, 0, 0
            return
        yield number, wire, at
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer and the offset after it. It is 0 and the offset negative if it is cut short."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number, at
    return 0, -1
