"""Constants of every element type, as OpenVINO reads them; and what is wrong with a .bin."""

import struct
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
import warm
from grouped import each
from irrun import build as b
from irrun.diagnostics import Refused
from irrun.model.weights import Weights, pack
from irrun.types import ELEMENT_TYPES, NF4
from nets import Net
from oracle import Oracle

NUMBERS = [name for name, t in ELEMENT_TYPES.items() if t.kind not in ("string", "dynamic")]
TO_INTEGER = [name for name in NUMBERS if ELEMENT_TYPES[name].kind in ("int", "uint", "boolean")]


def random_bytes(name: str, count: int) -> bytes:
    data = np.random.default_rng(count).integers(0, 256, ELEMENT_TYPES[name].nbytes(count)).astype(np.uint8)
    return (data & 1 if name == "boolean" else data).tobytes()


@each("count", [1, 2, 3, 7, 8, 9, 37])
@each("name, to", [*((n, "f32") for n in NUMBERS), *((n, "i32") for n in TO_INTEGER)])
def test_every_bit_pattern_is_what_openvino_reads(
    name: str, to: str, count: int, tmp_path: Path, oracle: Oracle
) -> None:
    data = random_bytes(name, count)
    net = Net()
    const = net.const(name, str(count), data)
    net.result(net.add("Convert", [const], [(ELEMENT_TYPES[to].port_name, str(count))], destination_type=to))
    row = f"{name}-{to}-{count}"
    want = oracle(net.save(tmp_path, row), [], "core")[0]
    bare = Net()
    bare.result(bare.const(name, str(count), data))
    (got,) = irrun.run(bare.save(tmp_path, f"{row}-bare"), strict=True).arrays
    assert got.dtype == ELEMENT_TYPES[name].dtype
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got.astype(want.dtype), want)


def test_packing_by_hand() -> None:
    """A few by hand, so that the order of bits is written down somewhere."""

    def unpacked(name: str, *data: int) -> list[float]:
        weights, count = (
            Weights(data=bytes(data)),
            {"u3": 8, "u6": 4}.get(name) or len(data) * 8 // ELEMENT_TYPES[name].bits,
        )
        return weights.tensor(0, len(data), ELEMENT_TYPES[name], (count,)).astype(np.float32).tolist()

    assert unpacked("u1", 0b10100000) == [1, 0, 1, 0, 0, 0, 0, 0]
    assert unpacked("u2", 0b11_10_01_00) == [0, 1, 2, 3]
    assert unpacked("u4", 0x21) == [1, 2]
    assert unpacked("i4", 0x8F) == [-1, -8]
    assert unpacked("u3", 0b01_00_11_10, 0, 0b1000_0000) == [5, 0, 3, 2, 0, 0, 0, 0]
    assert unpacked("u6", 0x12, 0x34, 0b01_00_00_11) == [17, 2, 3, 52]
    assert unpacked("nf4", 0xF0) == [-1, 1]
    assert unpacked("f4e2m1", 0xF1) == [0.5, -6]
    assert unpacked("boolean", 0, 1, 255) == [0, 1, 1]
    assert unpacked("f8e8m0", 127, 128) == [1, 2]


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64", "i16", "i64", "u32", "string"])
def test_unaligned_offsets(name: str, tmp_path: Path) -> None:
    element_type = ELEMENT_TYPES[name]
    if name == "string":
        data, want = struct.pack("<4i", 2, 0, 1, 3) + b"abc", np.array(["a", "bc"])
    else:
        want = np.arange(5).astype(element_type.dtype)
        data = want.tobytes()
    net = Net(bin=bytearray(b"\xaa\xbb\xcc" + data + b"tail"))
    net.result(net.const(name, str(len(want)), data, offset=3))
    path = net.save(tmp_path)
    assert not irrun.check(path).diagnostics  # a .bin longer than needed is normal
    (got,) = irrun.run(path).arrays
    np.testing.assert_array_equal(got, want)


def test_shared_offsets(tmp_path: Path) -> None:
    net = Net()
    one = net.const("i32", "2,2", np.arange(4, dtype=np.int32).tobytes())
    two = net.const("i32", "4", bytes(16), offset=0)
    half = net.const("i16", "2", bytes(4), offset=4)
    for ref in (one, two, half):
        net.result(ref)
    outputs = irrun.run(net.save(tmp_path))
    assert [a.tolist() for a in outputs.arrays] == [[[0, 1], [2, 3]], [0, 1, 2, 3], [1, 0]]


@each("shape", [(0,), (2, 0, 3)])
@each("name", [*NUMBERS, "string"])
def test_no_elements_take_a_byte_or_none(name: str, shape: tuple[int, ...]) -> None:
    for size in (0, 1):
        tensor = Weights(data=b"\0\0").tensor(1, size, ELEMENT_TYPES[name], shape)
        assert tensor.shape == shape
        assert tensor.dtype.kind == ELEMENT_TYPES[name].dtype.kind


def test_what_openvino_writes_for_no_elements(tmp_path: Path, ov: Any) -> None:
    results = [
        ov.opset1.result(ov.op.Constant(getattr(ov.Type, name), ov.Shape([2, 0]), []))
        for name in ("f32", "i64", "u4", "boolean")
    ]
    ov.serialize(ov.Model(results, [], "empty"), tmp_path / "empty.xml")
    assert not irrun.check(tmp_path / "empty.xml").diagnostics
    assert [a.shape for a in irrun.run(tmp_path / "empty.xml").arrays] == [(2, 0)] * 4


def test_a_scalar(tmp_path: Path) -> None:
    net = Net()
    net.result(net.const("f32", "", struct.pack("<f", 2.5)))
    (got,) = irrun.run(net.save(tmp_path)).arrays
    assert got.shape == ()
    assert got == 2.5


# ---------------------------------------------------------------------------------------------
# mapped, not copied


def test_a_tensor_is_a_view_of_the_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(np.arange(100, dtype=np.float32).tobytes())
    weights = Weights(path)
    tensor = weights.tensor(40, 40, ELEMENT_TYPES["f32"], (2, 5))
    assert np.shares_memory(tensor, weights.data)
    assert not tensor.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        tensor[0, 0] = 1
    with path.open("r+b") as file:  # what the file says is what the tensor holds
        file.seek(40)
        file.write(struct.pack("<f", -1))
    assert tensor[0, 0] == -1


def resident(path: Path) -> int:
    """Bytes of a mapped file that are in the memory of this process."""
    found, mine = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            mine = line.endswith(str(path))
        elif mine and line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells what is resident")
def test_what_was_read_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    numbers = np.arange(1 << 20, dtype=np.float32)
    path.write_bytes(numbers.tobytes())
    weights = Weights(path)
    tensor = weights.tensor(0, numbers.nbytes, ELEMENT_TYPES["f32"], numbers.shape)
    assert tensor.max() == numbers[-1]
    assert resident(path) >= numbers.nbytes
    weights.release()
    assert resident(path) == 0
    np.testing.assert_array_equal(tensor, numbers)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells what is resident")
@pytest.mark.usefixtures("numpy_alone")
def test_weights_that_kernels_turn_do_not_stay(tmp_path: Path) -> None:
    x = b.parameter([-1, 1024], "f32", name="x")
    turned, read = (np.random.default_rng(n).standard_normal((1024, 1024)).astype(np.float32) for n in range(2))
    y = b.MatMul(b.MatMul(x, b.constant(turned), transpose_b=True), b.constant(read))
    irrun.save_model(b.model({"y": y}), tmp_path / "m.xml")
    executable = irrun.compile(tmp_path / "m.xml", exact=False)
    assert resident(tmp_path / "m.bin") < 1 << 20
    fed = np.ones((1, 1024), np.float32)
    for _ in range(4):  # for the last ones there is a plan of their own
        np.testing.assert_allclose(executable([fed])[0], fed @ turned.T @ read, rtol=1e-3, atol=1e-2)
    assert read.nbytes <= resident(tmp_path / "m.bin") < read.nbytes + (1 << 20)


def test_without_advice(tmp_path: Path) -> None:
    """On systems whose maps take none, nothing is given back and everything stays."""
    (tmp_path / "w.bin").write_bytes(bytes(range(8)))
    script = """
import mmap, pathlib
if hasattr(mmap, "MADV_DONTNEED"):
    del mmap.MADV_DONTNEED
from irrun.model.weights import Weights
mapped = Weights(pathlib.Path("w.bin"))
before = mapped.data.tolist()
mapped.release()
print(before == mapped.data.tolist() == list(range(8)))
"""
    done = warm.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_without_a_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems that cannot map a file."""
    path = tmp_path / "w.bin"
    path.write_bytes(bytes(range(8)))

    def refused(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr("mmap.mmap", refused)
    for weights in (Weights(path), Weights(data=bytes(range(8)))):
        assert weights.data.tolist() == list(range(8))
        weights.release()
        assert weights.tensor(2, 2, ELEMENT_TYPES["u8"], (2,)).tolist() == [2, 3]


@pytest.mark.parametrize("name", NUMBERS)
def test_nobody_can_write_into_a_constant(name: str) -> None:
    tensor = Weights(data=bytes(24)).tensor(0, 24, ELEMENT_TYPES[name], (24 * 8 // ELEMENT_TYPES[name].bits,))
    assert not tensor.flags.writeable


def test_a_result_of_a_constant_is_the_callers(tmp_path: Path) -> None:
    net = Net()
    net.result(net.const("i32", "2", bytes(8)))
    executable = irrun.compile(net.save(tmp_path))
    executable()[0][:] = 7
    assert executable()[0].tolist() == [0, 0]
    assert (tmp_path / "net.bin").read_bytes() == bytes(8)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    """A sparse file of a terabyte: mapping it costs nothing."""
    net = Net(bin=bytearray(1))
    net.result(net.const("u8", "4", bytes(4), offset=(1 << 40) - 4))
    path = net.save(tmp_path)
    try:
        with path.with_suffix(".bin").open("wb") as file:
            file.truncate(1 << 40)
    except OSError:
        pytest.skip("no file of a terabyte here")
    assert irrun.run(path)[0].tolist() == [0, 0, 0, 0]


# ---------------------------------------------------------------------------------------------
# what is wrong with a .bin


@each(
    "offset, size, shape, code",
    [
        (0, 12, (3,), ""),
        (4, 8, (2,), ""),
        (4, 12, (3,), "IR502"),
        (12, 0, (0,), ""),
        (13, 0, (0,), "IR502"),
        (-4, 8, (2,), "IR502"),
        (0, -4, (1,), "IR502"),
        (1 << 70, 4, (1,), "IR502"),
        (0, 8, (3,), "IR503"),
        (0, 0, (1,), "IR503"),
        (0, 12, (1 << 40, 1 << 40), "IR503"),
    ],
)
def test_range_and_size(offset: int, size: int, shape: tuple[int, ...], code: str) -> None:
    weights = Weights(data=bytes(12))
    if not code:
        assert weights.tensor(offset, size, ELEMENT_TYPES["f32"], shape).shape == shape
        return
    with pytest.raises(Refused) as caught:
        weights.tensor(offset, size, ELEMENT_TYPES["f32"], shape)
    assert caught.value.code == code


def test_no_constant_is_dynamic() -> None:
    with pytest.raises(Refused) as caught:
        Weights(data=bytes(8)).tensor(0, 1, ELEMENT_TYPES["dynamic"], (0,))
    assert caught.value.code == "IR305"


def test_no_file_and_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "w.bin").touch()
    for weights in (Weights(), Weights(tmp_path / "w.bin"), Weights(data=b"")):
        assert len(weights) == 0
        with pytest.raises(Refused, match="which has 0 bytes"):
            weights.tensor(0, 4, ELEMENT_TYPES["f32"], (1,))


# ---------------------------------------------------------------------------------------------
# strings


def packed(*offsets: int, text: bytes = b"", count: int | None = None) -> bytes:
    return struct.pack(f"<{len(offsets) + 1}i", len(offsets) - 1 if count is None else count, *offsets) + text


def test_strings_as_openvino_writes_them(tmp_path: Path, ov: Any, oracle: Oracle) -> None:
    words = np.array([["one", ""], ["zwölf 🎉", "  "]])
    constant = ov.op.Constant(ov.Tensor(words))  # (of the array itself: crashes)
    ov.serialize(ov.Model([ov.opset1.result(constant)], [], "s"), tmp_path / "s.xml")
    (got,) = irrun.run(tmp_path / "s.xml", strict=True).arrays
    np.testing.assert_array_equal(got, words)
    assert got.dtype == object
    (want,) = oracle(tmp_path / "s.xml", [])
    np.testing.assert_array_equal(got, want)


@each(
    "data, count, why",
    [
        (packed(0, 1, 3, text=b"abc"), 3, "they declare 2|cannot hold"),
        (packed(0, 1, 3, text=b"abc"), 1, "they declare 2 elements"),
        (packed(0, 1, 3, text=b"ab"), 2, "ascend"),
        (packed(0, 3, 1, text=b"abc"), 2, "ascend"),
        (packed(1, 2, 3, text=b"abc"), 2, "ascend"),
        (packed(0, -1, 3, text=b"abc"), 2, "ascend"),
        (packed(0, 1, count=-1), 1, "they declare -1"),
        (b"\1\0\0", 1, "cannot hold the offsets"),
        (b"", 1, "cannot hold the offsets"),
        (packed(0), 1 << 40, "cannot hold the offsets"),
    ],
)
def test_broken_strings(data: bytes, count: int, why: str) -> None:
    with pytest.raises(Refused, match=why) as caught:
        Weights(data=data).tensor(0, len(data), ELEMENT_TYPES["string"], (count,))
    assert caught.value.code == "IR504"


def test_strings_are_read_only() -> None:
    data = pack(np.array(["one", ""]), ELEMENT_TYPES["string"])
    tensor = Weights(data=data).tensor(0, len(data), ELEMENT_TYPES["string"], (2, 1))
    assert tensor.tolist() == [["one"], [""]]
    assert not tensor.flags.writeable


def test_a_long_string_among_many_empty_ones(tmp_path: Path) -> None:
    """480 KB of .bin would take 19 GB in an array of fixed width."""
    count, text = 80_000, b"x" * 60_000
    net = Net()
    net.result(net.const("string", str(count), packed(*[0] * count, len(text), text=text), name="words"))
    path = net.save(tmp_path)
    tracemalloc.start()
    try:
        assert irrun.check(path).ok
        (words,) = irrun.run(path).arrays
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert (words[0], words[-1]) == ("", text.decode())


def test_types_of_ml_dtypes_travel_as_such(tmp_path: Path) -> None:
    net = Net()
    for name, data in (("bf16", b"\x80\x3f"), ("f8e4m3", b"\x38"), ("i4", b"\x01"), ("f4e2m1", b"\x02")):
        net.result(net.const(name, "1", data))
    outputs = irrun.run(net.save(tmp_path)).arrays
    assert [a.dtype for a in outputs] == [
        ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.float4_e2m1fn,
    ]  # fmt: skip
    assert [float(a[0]) for a in outputs] == [1, 1, 1, 1]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 7, 9, 13])
@pytest.mark.parametrize("name", ["u1", "u2", "u3", "u4", "u6", "i4", "nf4", "f4e2m1"])
def test_a_last_byte_that_is_not_full(name: str, count: int, tmp_path: Path) -> None:
    """Every value comes back from a file, a constant and an input, and through Convert and ConvertLike."""
    own, path = ELEMENT_TYPES[name], tmp_path / "net.xml"
    rng = np.random.default_rng(count)
    if name == "nf4":
        data = rng.choice(NF4, count)
    elif name == "f4e2m1":
        data = rng.choice(np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -6], np.float32), count)
    else:
        low = -(1 << own.bits - 1) if own.kind == "int" else 0
        data = rng.integers(low, low + (1 << own.bits), count)
    constant, x = b.constant(data, name), b.parameter([None], name, name="x")
    outputs = {
        "same": constant,
        "convert": b.Convert(constant, destination_type="f32"),
        "like": b.ConvertLike(constant, np.zeros(1, np.float32)),
        "input": b.Convert(x, destination_type="f32"),
    }
    irrun.save_model(b.model(outputs), path)
    assert irrun.check(path).ok
    for exact in (False, True):
        for array in irrun.compile(path, exact=exact)(data.astype(own.dtype)).arrays:
            assert array.astype(np.float32).tolist() == data.astype(np.float32).tolist()
