"""Feeding, running and what comes out: names, positions, ownership, hooks, limits, threads."""

import gc
import os
import pickle
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.diagnostics import ExecutionError, FeedError, IrrunError, ModelError
from irrun.opdef import Op, all_ops, op, ports
from irrun.opdef.registry import _registry
from irrun.planning.steps import Step
from irrun.running.executor import Executable
from irrun.running.hooks import Hook
from irrun.running.live import default_max_memory
from nets import Net

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full((2, 3), 10, np.float32)


def two_inputs(folder: Path) -> Path:
    """a - b and a * b."""
    net = Net()
    a = net.parameter("f32", "2,3", name="a", names="left,first")
    b = net.parameter("f32", "2,3", name="b", names="right")
    difference = net.add("Subtract", [a, b], [("FP32", "2,3")], name="difference", names="minus,less")
    product = net.add("Multiply", [a, b], [("FP32", "2,3")], name="product")
    net.result(difference, name="out0")
    net.result(product, name="out1")
    return net.save(folder)


def single(element_type: str, shape: str, folder: Path, version: int = 11) -> Executable:
    """The input as it is."""
    net = Net(version=version)
    net.result(net.parameter(element_type, shape, name="x"), name="y")
    return irrun.compile(net.save(folder), strict=True)


def chain(folder: Path, length: int = 6, shape: str = "?,4") -> Path:
    net = Net()
    last = net.parameter("f32", shape, name="x")
    for i in range(length):
        last = net.add("Sigmoid", [last], [("FP32", last.output[1])], name=f"s{i}")
    net.result(last, name="y")
    return net.save(folder)


def diagnostic(caught: pytest.ExceptionInfo[IrrunError]) -> irrun.Diagnostic:
    (found,) = caught.value.diagnostics
    return found


# ---------------------------------------------------------------------------------------------
# feeds


@pytest.mark.parametrize(
    "feeds",
    [
        {"a": A, "b": B}, {"b": B, "a": A}, {"left": A, "right": B}, {"first": A, "b": B}, {0: A, 1: B}, {"a": A, 1: B},
        [A, B], (A, B), {"a": A.tolist(), "b": B.tolist()}, [A.tolist(), B.tolist()], [A.astype(">f4"), B], [A[::1, ::1], B.T.copy().T],
        {np.int64(0): A, np.int64(1): B}, [np.asfortranarray(A), memoryview(B.tobytes()).cast("f", (2, 3))],
    ],
    ids=[
        "names", "any-order", "tensor-names", "mixed-names", "positions", "mixed", "list", "tuple", "lists-by-name", "lists", "big-endian",
        "strides", "numpy-positions", "buffers",
    ],
)  # fmt: skip
def test_ways_to_feed(feeds: Any, tmp_path: Path) -> None:
    outputs = irrun.run(two_inputs(tmp_path), feeds)
    np.testing.assert_array_equal(outputs[0], A - B)
    np.testing.assert_array_equal(outputs[1], A * B)
    assert outputs[0].dtype == np.float32


def test_a_single_array(tmp_path: Path) -> None:
    executable = single("f32", "...", tmp_path)
    for given in (A, [A], {"x": A}, np.float32(3), 2.5, 7, [2.5], [[1.0, 2.0]], np.empty((0, 2), np.float32)):
        want = np.asarray(given["x"] if isinstance(given, dict) else given[0] if isinstance(given, list) else given)
        np.testing.assert_array_equal(executable(given)["y"], want)


def test_a_list_is_a_list_of_inputs(tmp_path: Path) -> None:
    executable = single("f32", "2", tmp_path)
    with pytest.raises(FeedError) as caught:
        executable([1.0, 2.0])
    assert "2 inputs are passed, the model takes 1" in str(caught.value)
    assert "[array]" in str(caught.value)


WRONG = {
    "unknown-name": ({"c": A}, "no input 'c'", 'its inputs are "a", "b"'),
    "unknown-position": ({2: A}, "no input 2", '"a", "b"'),
    "negative-position": ({-1: A}, "no input -1", '"a", "b"'),
    "odd-key": ({None: A}, "no input None", '"a", "b"'),
    "twice": ({"a": A, "left": A, "b": B}, 'input "a" is passed twice', ""),
    "twice-by-position": ({"a": A, 0: A, "b": B}, 'input "a" is passed twice', ""),
    "missing": ({"a": A}, 'input "b" is missing', '"a", "b"'),
    "nothing": (None, 'input "a" is missing', ""),
    "too-few": ([A], 'input "b" is missing', ""),
    "single-for-two": (A, 'input "b" is missing', ""),
    "too-many": ([A, B, A], "3 inputs are passed, the model takes 2", ""),
    "shape": ([A.T, B], 'input "a" has shape [3,2], the model takes [2,3]', ""),
    "rank": ([A, B[None]], 'input "b" has shape [1,2,3], the model takes [2,3]', ""),
    "scalar": ([A, 1.0], 'input "b" has shape [], the model takes [2,3]', ""),
    "type": ([A.astype(np.float64), B], 'input "a" is float64, the model takes f32', "astype('float32')"),
    "integers": ([A.astype(np.int64), B], "is int64, the model takes f32", "astype('float32')"),
    "words": ([[["a"] * 3] * 2, B], "cannot be read as f32", ""),
    "numbers-as-words": ([[["1"] * 3] * 2, B], "cannot be read as f32", ""),
    "ragged": ([[[1, 2, 3], [1]], B], "cannot be read as f32", ""),
    "object": ([object(), B], "cannot be read as f32", ""),
    "none": ([None, B], "cannot be read as f32", ""),
    "complex": ([A.astype(np.complex64), B], "is complex64", ""),
    "a-set": ({1.0, 2.0}, "cannot be read as f32", ""),
    "a-string": ("ab", "cannot be read as f32", ""),
    "generator": ((a for a in (A, B)), "cannot be read as f32", ""),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_feeds(case: str, tmp_path: Path) -> None:
    feeds, says, helps = WRONG[case]
    path = two_inputs(tmp_path)
    with pytest.raises(FeedError) as caught:
        irrun.run(path, feeds)
    found = diagnostic(caught)
    assert (found.code, found.file) == ("IR601", str(path))
    assert says in found.message
    assert helps in (found.help or "")
    if found.message.startswith("input"):
        assert found.layer in ("a", "b")
        assert f'name="{found.layer}"' in path.read_text().split("\n")[(found.line or 0) - 1]


@pytest.mark.parametrize(
    ("element_type", "given", "accepted"),
    [
        ("f32", [1, 2], True), ("f32", [1.5, 2], True), ("f32", [True], False), ("f16", [1e9], True), ("bf16", [0.5], True),
        ("f8e4m3", [0.5, 3], True), ("f64", [1e300], True), ("i32", [1, -2], True), ("i32", [1.5], False), ("i32", [1.0], False),
        ("i32", [1 << 31], False), ("i64", [-(1 << 63)], True), ("u64", [(1 << 64) - 1], True), ("u64", [-1], False), ("u8", [255], True),
        ("u8", [256], False), ("u8", [-1], False), ("i8", [-128], True), ("i8", [128], False), ("i4", [-8, 7], True), ("i4", [8], False),
        ("u4", [15], True), ("u4", [16], False), ("u1", [0, 1], True), ("u1", [2], False), ("u6", [63], True), ("u6", [64], False),
        ("boolean", [True, False], True), ("boolean", [0, 1], True), ("boolean", [2], False), ("boolean", [0.5], False),
        ("string", ["a", "é"], True), ("string", [1], False), ("i64", [1 << 70], False), ("i32", [], True), ("f32", [], True),
        ("i32", ["1"], False), ("f32", [None], False),
    ],
)  # fmt: skip
def test_lists_of_numbers(element_type: str, given: list[Any], accepted: bool, tmp_path: Path) -> None:
    """They become what the model takes, but nothing is cut off or wraps around."""
    executable = single(element_type, "?", tmp_path)
    if not accepted:
        with pytest.raises(FeedError, match="cannot be read as"):
            executable([given])
        return
    (got,) = executable([given]).arrays
    if element_type != "f16":
        assert got.tolist() == given or got.astype(np.float64).tolist() == given


@pytest.mark.parametrize(
    ("element_type", "array", "accepted"),
    [
        ("bf16", np.ones(2, ml_dtypes.bfloat16), True), ("bf16", np.ones(2, np.float16), False), ("i4", np.ones(2, ml_dtypes.int4), True),
        ("i4", np.ones(2, np.int8), False), ("u1", np.ones(2, np.uint8), True), ("u1", np.full(2, 7, np.uint8), False),
        ("u3", np.full(2, 7, np.uint8), True), ("u8", np.full(2, 255, np.uint8), True), ("nf4", np.ones(2, np.float32), True),
        ("string", np.array(["a", "bcd"]), True), ("string", np.array(["a", "bcd"], object), True), ("string", np.array(["a", 1], object), False),
        ("string", np.array(["\ud800"], object), False), ("i64", np.ones(2, np.int32), False), ("boolean", np.ones(2, np.uint8), False),
        ("i32", np.ones(2, ">i4"), True), ("f32", np.ones(2, object), False), ("f32", np.ma.masked_array([1.0, 2], dtype=np.float32), True),
    ],
)  # fmt: skip
def test_arrays_are_of_the_models_type(element_type: str, array: np.ndarray, accepted: bool, tmp_path: Path) -> None:
    executable = single(element_type, "?", tmp_path)
    if not accepted:
        with pytest.raises(FeedError):
            executable(array)
        return
    (got,) = executable(array).arrays
    assert got.tolist() == array.tolist()


def test_dynamic_dims_take_what_fits(tmp_path: Path) -> None:
    executable = single("f32", "?,3,1..4", tmp_path)
    for shape in ((0, 3, 1), (5, 3, 4)):
        assert executable(np.zeros(shape, np.float32))[0].shape == shape
    for shape in ((1, 2, 1), (1, 3, 0), (1, 3, 5), (1, 3)):
        with pytest.raises(FeedError, match=r"the model takes \[\?,3,1..4\]"):
            executable(np.zeros(shape, np.float32))


def test_ir_v10_takes_f32_where_it_says_f16(tmp_path: Path) -> None:
    x = np.array([1.5, 1e-8], np.float32)
    assert single("f16", "2", tmp_path, 10)(x)[0].tolist() == x.astype(np.float16).tolist()
    with pytest.raises(FeedError, match="is float32, the model takes f16"):
        single("f16", "2", tmp_path, 11)(x)
    with pytest.raises(FeedError, match="is float64, the model takes f16"):
        single("f16", "2", tmp_path, 10)(x.astype(np.float64))


# ---------------------------------------------------------------------------------------------
# outputs


def test_outputs_by_name_and_position(tmp_path: Path) -> None:
    outputs = irrun.run(two_inputs(tmp_path), [A, B])
    assert list(outputs) == ["minus", "out1"]
    assert len(outputs) == 2
    for name in ("minus", "less", "out0", 0, -2):
        assert outputs[name] is outputs.arrays[0]
    assert outputs["out1"] is outputs[1] is outputs.arrays[1]
    assert dict(outputs).keys() == {"minus", "out1"}
    assert "float32[2, 3]" in repr(outputs)
    with pytest.raises(KeyError, match="no output 'y'; there are 'minus', 'out1'"):
        outputs["y"]
    with pytest.raises(IndexError):
        outputs[2]
    assert "y" not in outputs


def test_results_are_in_c_order() -> None:
    model = b.model({"y": b.Elu(b.parameter([2, 3], "f32"), alpha=1.0)})
    for exact in (True, False):
        (found,) = irrun.compile(model, exact=exact)(np.asfortranarray(B - A)).arrays
        assert found.flags.c_contiguous


def test_results_are_arrays_of_their_own(tmp_path: Path) -> None:
    """Of an input, a constant, a view of either, one tensor twice: writing into one changes nothing else."""
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    c = net.const("f32", "2,3", A.tobytes(), name="c")
    shape = net.const("i64", "1", np.array([6]).tobytes())
    flat = net.add("Reshape", [x, shape], [("FP32", "6")], name="flat", special_zero="false")
    flat_c = net.add("Reshape", [c, shape], [("FP32", "6")], name="flat_c", special_zero="false")
    relu = net.add("ReLU", [x], [("FP32", "2,3")], name="relu")
    grown = net.add(
        "Broadcast",
        [relu, net.const("i64", "3", np.array([2, 2, 3]).tobytes())],
        [("FP32", "2,2,3")],
        opset="opset3",
        mode="numpy",
    )
    refs = [x, x, c, flat, flat_c, relu, relu, grown]
    for ref in refs:
        net.result(ref)
    executable = irrun.compile(net.save(tmp_path), strict=True)
    fed = A.copy()
    first = executable(fed).arrays
    want = [a.copy() for a in first]
    for i, array in enumerate(first):
        assert array.flags.writeable
        assert not np.shares_memory(array, fed)
        assert not any(np.shares_memory(array, other) for other in first[:i])
        array[...] = -1
    np.testing.assert_array_equal(fed, A)
    for got, expected in zip(executable(fed).arrays, want):
        np.testing.assert_array_equal(got, expected)


def test_inputs_are_never_changed(tmp_path: Path) -> None:
    executable = irrun.compile(two_inputs(tmp_path))
    a, b = A.copy(), B.copy()
    a.flags.writeable = b.flags.writeable = False
    executable([a, b])
    np.testing.assert_array_equal(a, A)
    np.testing.assert_array_equal(b, B)


def test_run_twice_is_the_same(tmp_path: Path) -> None:
    executable = irrun.compile(chain(tmp_path))
    x = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
    first, other, second = executable(x), executable(x[:2]), executable(x)
    assert first[0].tobytes() == second[0].tobytes()
    assert other[0].tobytes() == first[0][:2].tobytes()


def test_no_inputs_and_no_outputs(tmp_path: Path) -> None:
    net = Net()
    net.result(net.const("i32", "1", bytes(4)))
    assert irrun.run(net.save(tmp_path))[0].tolist() == [0]
    net = Net()
    net.parameter("f32", "1", name="x")
    assert len(irrun.run(net.save(tmp_path), [[1]])) == 0


# ---------------------------------------------------------------------------------------------
# hooks and memory


class Watch:
    """Records what a run shows it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.values: dict[str, tuple[list[Any], list[Any]]] = {}

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        self.seen.append(("before", step.layer.name))

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        self.seen.append(("after", step.layer.name))
        self.values[step.layer.name] = ([np.array(i) for i in inputs], [np.array(o) for o in outputs])


def test_hooks_see_true_values_in_order(tmp_path: Path) -> None:
    watch, second = Watch(), Watch()
    hooks: list[Hook] = [watch, second]
    irrun.compile(two_inputs(tmp_path))([A, B], hooks=hooks)
    steps = ["difference", "product"]
    assert watch.seen == second.seen == [(when, name) for name in steps for when in ("before", "after")]
    inputs, outputs = watch.values["difference"]
    np.testing.assert_array_equal(inputs, [A, B])
    np.testing.assert_array_equal(outputs, [A - B])


def test_values_are_freed_at_their_last_use(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "?,4", name="x")
    last = first = net.add("Sigmoid", [x], [("FP32", "-1,4")], name="first")
    for i in range(8):
        last = net.add("Sigmoid", [last], [("FP32", "-1,4")], name=f"s{i}")
    last = net.add("Add", [last, first], [("FP32", "-1,4")], name="late")
    net.add("Sigmoid", [last], [("FP32", "-1,4")], name="unread")
    net.result(net.add("Sigmoid", [last], [("FP32", "-1,4")], name="end"))
    alive: dict[str, weakref.ref[np.ndarray]] = {}
    counts: dict[str, set[str]] = {}

    class Count:
        def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
            gc.collect()
            counts[step.layer.name] = {name for name, ref in alive.items() if ref() is not None}

        def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
            alive[step.layer.name] = weakref.ref(outputs[0])

    irrun.compile(net.save(tmp_path))(np.zeros((2, 4), np.float32), hooks=[Count()])
    assert counts["s5"] == {"first", "s4"}
    assert counts["late"] == {"first", "s7"}
    assert counts["end"] <= {"late", "unread"}
    gc.collect()
    assert not [name for name, ref in alive.items() if ref() is not None]


def test_constants_stay_and_are_shared_between_runs(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "3", name="x")
    c = net.const("f32", "3", np.ones(3, np.float32).tobytes())
    net.result(net.add("Add", [x, c], [("FP32", "3")], name="sum"))
    executable = irrun.compile(net.save(tmp_path))
    seen: list[Any] = []

    class Keep:
        def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
            seen.append(inputs[1])

        def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None: ...

    for _ in range(2):
        executable(np.zeros(3, np.float32), hooks=[Keep()])
    assert seen[0] is seen[1]
    assert not seen[0].flags.writeable


# ---------------------------------------------------------------------------------------------
# memory limits and values that break a rule


def broadcast(folder: Path, target: list[int] | None, rank: int = 3) -> Path:
    net = Net()
    x = net.parameter("f32", "1", name="x")
    if target is None:
        shape = net.parameter("i64", str(rank), name="target")
    else:
        shape = net.const("i64", str(len(target)), np.array(target).tobytes(), name="target")
    out = ",".join(map(str, target)) if target else ",".join(["-1"] * rank)
    net.result(net.add("Broadcast", [x, shape], [("FP32", out)], opset="opset3", name="grown", mode="numpy"))
    return net.save(folder)


def test_terabytes_from_a_constant_are_refused_when_compiled(tmp_path: Path) -> None:
    path = broadcast(tmp_path, [1 << 20, 1 << 20, 4])
    assert not irrun.check(path).diagnostics
    with pytest.raises(ExecutionError) as caught:
        irrun.compile(path)
    found = diagnostic(caught)
    assert (found.code, found.layer) == ("IR604", "grown")
    assert "16.0 TiB" in found.message
    assert found.line is not None


def test_terabytes_from_an_input_are_refused_before_allocating(tmp_path: Path) -> None:
    executable = irrun.compile(broadcast(tmp_path, None))
    with pytest.raises(ExecutionError) as caught:
        executable([[1.0], [1 << 20, 1 << 20, 4]])
    assert diagnostic(caught).code == "IR604"
    assert executable([[1.0], [1, 2, 3]])[0].shape == (1, 2, 3)


def test_sizes_beyond_64_bits(tmp_path: Path) -> None:
    huge = [1 << 40, 1 << 40, 1 << 40]
    with pytest.raises(ExecutionError, match="IR604"):
        irrun.compile(broadcast(tmp_path, huge))
    with pytest.raises(ExecutionError, match="IR604"):
        irrun.run(broadcast(tmp_path, None), [[1.0], huge])


def test_max_memory_is_what_one_says(tmp_path: Path) -> None:
    path = broadcast(tmp_path, [1000, 10, 10])
    irrun.compile(path, max_memory=400_000)
    with pytest.raises(ExecutionError, match=r"takes 390\.6 KiB, more than the 390\.6 KiB allowed"):
        irrun.compile(path, max_memory=399_999)


def test_memory_where_the_system_does_not_tell_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", known.__getitem__, raising=False)
    assert default_max_memory() == 3_072_000
    monkeypatch.delattr(os, "sysconf")
    assert default_max_memory() == 2 * 1024**3


def test_an_input_too_large_is_refused_when_declared(tmp_path: Path) -> None:
    net = Net()
    net.result(net.parameter("f64", "1000000,1000000,1000", name="x"))
    with pytest.raises(ExecutionError, match="IR604"):
        irrun.compile(net.save(tmp_path))


def test_values_that_break_a_rule(tmp_path: Path) -> None:
    """Only the run can know; it is the values that are wrong, and the message says so."""
    executable = irrun.compile(broadcast(tmp_path, None, 1))
    for target in ([-1], [0]):
        if target == [0]:
            assert executable([[1.0], target])[0].shape == (0,)
            continue
        with pytest.raises(ExecutionError) as caught:
            executable([[1.0], target])
        assert (diagnostic(caught).code, diagnostic(caught).layer) == ("IR605", "grown")


def test_dims_that_only_a_run_can_tell(tmp_path: Path) -> None:
    """x[?] + c[3]: the output is surely [3], the input not surely right."""
    net = Net()
    x = net.parameter("f32", "?", name="x")
    c = net.const("f32", "3", bytes(12))
    net.result(net.add("Add", [x, c], [("FP32", "3")], name="sum", auto_broadcast="numpy"))
    executable = irrun.compile(net.save(tmp_path))
    for size in (1, 3):
        assert executable(np.ones(size, np.float32))[0].shape == (3,)
    with pytest.raises(ExecutionError) as caught:
        executable(np.ones(2, np.float32))
    assert (diagnostic(caught).code, diagnostic(caught).layer) == ("IR605", "sum")
    assert "[2]" in diagnostic(caught).message


def test_without_broadcasting_dims_must_be_equal(tmp_path: Path) -> None:
    """numpy would broadcast silently what the attribute forbids."""
    net = Net()
    x = net.parameter("f32", "?", name="x")
    c = net.const("f32", "3", bytes(12))
    net.result(net.add("Add", [x, c], [("FP32", "3")], name="sum", auto_broadcast="none"))
    with pytest.raises(ExecutionError, match="IR605"):
        irrun.run(net.save(tmp_path), np.ones(1, np.float32))


def test_axes_that_only_a_run_can_tell(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    target = net.const("i64", "3", np.array([3, 2, 3]).tobytes())
    axes = net.parameter("i64", "2", name="axes")
    net.result(net.add("Broadcast", [x, target, axes], [("FP32", "3,2,3")], opset="opset3", mode="explicit"))
    executable = irrun.compile(net.save(tmp_path))
    np.testing.assert_array_equal(executable([A, [1, 2]])[0], np.stack([A] * 3))
    for wrong in ([2, 1], [0, 1], [1, 7]):
        with pytest.raises(ExecutionError, match="IR605"):
            executable([A, wrong])


# ---------------------------------------------------------------------------------------------
# bugs of ours, and operations that fail


@pytest.fixture
def operations():
    """Operations registered in a test are gone after it."""
    all_ops()  # what is imported in the test would be forgotten as well
    known = {type: dict(versions) for type, versions in _registry.items()}
    yield
    _registry.clear()
    _registry.update(known)


def failing(folder: Path, type: str) -> Path:
    net = Net()
    net.result(net.add(type, [net.parameter("f32", "2", name="x")], [("FP32", "2")], name="bad"))
    return net.save(folder)


@pytest.mark.usefixtures("operations")
def test_contents_that_need_too_much_memory_stay_unknown(tmp_path: Path) -> None:
    class Large(Op):
        inputs = ports(data="T")

        def infer(self, at: Any, data: Any) -> Any:
            return data.reshaped(data.shape)

        def run(self, data: np.ndarray) -> Any:
            raise MemoryError

    op("Large", since=1, spec="none")(Large)
    net = Net()
    net.result(net.add("Large", [net.const("f32", "2", bytes(8))], [("FP32", "2")], name="large"))
    path = net.save(tmp_path)
    assert not irrun.check(path)
    with pytest.raises(ExecutionError, match="IR604"):
        irrun.run(path)


@pytest.mark.parametrize("where", ["infer", "run", "prepare", "memory"])
@pytest.mark.usefixtures("operations")
def test_a_bug_is_called_a_bug(where: str, tmp_path: Path) -> None:
    class Bad(Op):
        inputs = ports(data="T")

        def infer(self, at: Any, data: Any) -> Any:
            return 1 // 0 if where == "infer" else data.reshaped(data.shape)

        def run(self, data: np.ndarray) -> Any:
            if where == "memory":
                raise MemoryError
            return 1 // 0

        def prepare(self, request: Any) -> Any:
            return 1 // 0 if where == "prepare" else super().prepare(request)

    op(f"Bad{where}", since=1, spec="none")(Bad)
    path = failing(tmp_path, f"Bad{where}")
    if where == "infer":
        (found,) = irrun.check(path)
        assert found.code == "IR603"
    if where in ("infer", "prepare"):
        with pytest.raises(ModelError) as raised:
            irrun.compile(path, exact=False)
        found = diagnostic(raised)
    else:
        with pytest.raises(ExecutionError) as caught:
            irrun.run(path, [[1, 2]])
        found = diagnostic(caught)
        assert "float32[2]" in found.message
    assert found.code == ("IR604" if where == "memory" else "IR603")
    assert found.layer == "bad"
    assert found.line is not None
    if where != "memory":
        assert "test_a_bug_is_called_a_bug.<locals>.Bad" in (found.help or "")  # whose operation it is
        assert "ZeroDivisionError" in found.message


def test_unknown_operations_are_unsupported_not_invalid(tmp_path: Path) -> None:
    with pytest.raises(irrun.UnsupportedError) as caught:
        irrun.compile(failing(tmp_path, "NeverHeardOf"))
    assert [d.code for d in caught.value.diagnostics] == ["IR201"]


@pytest.mark.usefixtures("operations")
def test_an_operation_of_ones_own(tmp_path: Path) -> None:
    @op("Thrice", since=1, spec="none")
    class Thrice(Op):
        inputs = ports(data="T")

        def infer(self, at: Any, data: Any) -> Any:
            return data.reshaped(data.shape)

        def run(self, data: np.ndarray) -> np.ndarray:
            return data * np.float32(3)

    assert irrun.run(failing(tmp_path, "Thrice"), [[1, 2]], strict=True)[0].tolist() == [3, 6]


def test_errors_can_be_pickled(tmp_path: Path) -> None:
    with pytest.raises(FeedError) as caught:
        irrun.run(two_inputs(tmp_path), A)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is FeedError
    assert str(again) == str(caught.value)


# ---------------------------------------------------------------------------------------------
# threads and state


def test_one_executable_in_many_threads(tmp_path: Path) -> None:
    executable = irrun.compile(chain(tmp_path, 20), strict=True)
    rng = np.random.default_rng(1)
    feeds = [rng.standard_normal((n + 1, 4)).astype(np.float32) for n in range(8)]
    want = [executable(x)[0] for x in feeds]
    wrong: list[int] = []

    def work(number: int) -> None:
        got = [executable(feeds[number])[0].tobytes() for _ in range(20)]
        wrong.extend(number for result in got if result != want[number].tobytes())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_run_that_fails_leaves_the_state_alone() -> None:
    x = b.parameter([None], "f32", name="x")
    state = b.ReadValue(np.zeros(1, np.float32), variable_id="total", variable_type="f32", variable_shape=[1], opset=6)
    total = b.Add(state, b.ReduceSum(x, [0], keep_dims=True))
    late = b.Add(b.Add(total, x), np.ones(3, np.float32))
    executable = irrun.compile(b.model(late, sinks=[b.Assign(total, variable_id="total")]))
    executable(np.ones(3, np.float32))
    before = {name: value.tolist() for name, value in executable.state.items()}
    assert before == {"total": [3]}
    with pytest.raises(ExecutionError):
        executable(np.ones(2, np.float32))
    assert {name: value.tolist() for name, value in executable.state.items()} == before
    assert executable(np.ones(1, np.float32))[0].tolist() == [6, 6, 6]
    executable.reset_state()
    assert executable(np.ones(1, np.float32))[0].tolist() == [3, 3, 3]


def test_an_element_type_that_only_a_run_can_tell(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("dynamic", "2", name="x")
    net.result(net.add("Sqrt", [x], [("", "2")], name="root"))
    executable = irrun.compile(net.save(tmp_path))
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16, ">f8"):
        assert executable(np.full(2, 4, dtype))[0].tolist() == [2, 2]
    with pytest.raises(FeedError, match="no element type has dtype object"):
        executable(np.full(2, None, object))
    with pytest.raises(ExecutionError, match=r'IR301.*Sqrt "root": input 0 \(data\) is boolean'):
        executable(np.full(2, True))


def test_a_bound_of_nothing_is_a_bound(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError) as caught:
        irrun.compile(single("f32", "2", tmp_path).model, max_memory=0)
    assert diagnostic(caught).code == "IR604"
