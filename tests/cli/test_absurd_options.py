"""Input files that are damaged, and numbers of thousands of digits in options."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nets import Net

LONG = "9" * 5000


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    net = Net()
    net.result(net.add("ReLU", [net.parameter("f32", "?", name="x")], [("FP32", "?")]), name="y")
    return net.save(tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        ["run", "net.xml", "-i", f"x={LONG}"],
        ["run", "net.xml", "-i", f"x=[{LONG}]"],
        ["run", "net.xml", "-i", f"x=[1e{LONG}"],
        ["run", "net.xml", "-i", f"x=random:[{LONG}]"],
        ["run", "net.xml", "-i", f"{LONG}=random"],
        ["run", "net.xml", "--max-memory", LONG],
        ["run", "net.xml", "--max-memory", f"1.{LONG}G"],
        ["run", "net.xml", "--seed", LONG],
        ["run", "net.xml", "--runs", LONG],
        ["run", "net.xml", "--example", LONG],
        ["check", "net.xml", "--shape", f"x=[{LONG}]"],
        ["check", "net.xml", "--shape", f"x=[1..{LONG}]"],
        ["check", "net.xml", "--shape", f"{LONG}=[1]"],
        ["check", "net.xml", "-j", LONG],
        ["show", "net.xml", "--memory", "--shape", f"x=[{LONG}]"],
        ["why", f"net.xml:{LONG}"],
        ["why", "net.xml", LONG],
        ["why", "net.xml", f"y:{LONG}"],
        ["why", "net.xml", f"{LONG}:{LONG}"],
    ],
    ids=lambda options: " ".join(options).replace(LONG, "9*"),
)
def test_numbers_of_5000_digits(options: list[str], echo: Path, call) -> None:
    result = call(*options)
    assert result.exit_code in (1, 2), result.stderr[-500:]
    assert "bug in irrun" not in result.stderr


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, x=np.arange(1000, dtype=np.float32))
    return file.getvalue()


def _encrypted() -> bytes:
    data = bytearray(_npz())
    at = data.index(b"PK\x01\x02")
    data[6] |= 1
    data[at + 8] |= 1
    return bytes(data)


def _method(number: int) -> bytes:
    data = bytearray(_npz())
    at = data.index(b"PK\x01\x02")
    data[8], data[at + 10] = number, number
    return bytes(data)


def _header(text: str) -> bytes:
    body = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


def _zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", data)
    return file.getvalue()


HEADERS = {
    "huge": "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}",
    "overflow": "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9)}",
    "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
    "type": "{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}",
    "types": "{'descr': [('a', '<f4', -1)], 'fortran_order': False, 'shape': (1,)}",
    "python": "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
    "text": "[[[[[",
}

FILES = {
    "encrypted.npz": _encrypted(),
    "truncated.npz": _npz()[:-30],
    "flipped.npz": _npz()[:100] + b"\xff" * 50 + _npz()[150:],
    **{f"method{number}.npz": _method(number) for number in (1, 12, 14, 99)},
    **{f"{name}.npy": _header(text) for name, text in HEADERS.items()},
    **{f"{name}.npz": _zipped(_header(text)) for name, text in HEADERS.items()},
    "empty.npy": b"",
    "noise.npy": b"\x93NUMPY\xff\xff",
    "pickle.npy": b"\x80\x04N.",
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_arrays(name: str, echo: Path, call, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    result = call("run", "net.xml", "-i", f"x={name}")
    assert (result.exit_code, "error[IR601" in result.stderr) == (2, True), result.stderr[-500:]


def test_outputs_with_very_long_names(call, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    for end in "ab":
        net.result(net.add("ReLU", [x], [("FP32", "2")]), name="n" * 70_000 + end)
    result = call("run", net.save(tmp_path), "-o", "out.npz")
    assert result.exit_code == 0, result.stderr[-500:]
    with np.load(tmp_path / "out.npz") as arrays:
        assert len(set(arrays.files)) == 2
