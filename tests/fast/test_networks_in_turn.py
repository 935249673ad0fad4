"""Networks of which one step does all calls in turn: through views, copies, attention, sums and recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.build import Node
from irrun.running.liveness import peak_of

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from irrun.fast.passes import turns

RANDOM = np.random.default_rng(0)
HEADS, WIDTH = 3, 24


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch, compiled_kernels: None) -> None:
    monkeypatch.setenv("IRRUN_FAST", "always")


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def integers(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def product(x: Node, rows: int, columns: int) -> Node:
    return b.Add(b.MatMul(x, normal(columns, rows) / 5, transpose_b=True), normal(columns))


def heads_of(x: Node, batch: int, rows: int) -> Node:
    apart = b.Reshape(x, integers(batch, rows, HEADS, WIDTH // HEADS), special_zero=False)
    return b.Transpose(apart, integers(0, 2, 1, 3))


def attended(x: Node, batch: int, rows: int, mask: Any, split: bool = False) -> Node:
    """Attention with heads, in which all results of products are views."""
    if split:
        parts = b.VariadicSplit(product(x, WIDTH, 3 * WIDTH), integers(2), integers(WIDTH, WIDTH, -1))
        query, key, value = (heads_of(parts[n], batch, rows) for n in range(3))
    else:
        query, key, value = (heads_of(product(x, WIDTH, WIDTH), batch, rows) for _ in range(3))
    given = () if mask is None else (mask,)
    y = b.Transpose(b.ScaledDotProductAttention(query, key, value, *given, causal=False), integers(0, 2, 1, 3))
    return product(b.Reshape(y, integers(batch, rows, WIDTH), special_zero=False), WIDTH, WIDTH)


def normalised(x: Node) -> Node:
    return b.MVN(x, integers(-1), eps=1e-5, normalize_variance=True, eps_mode="inside_sqrt")


def assert_close(found: irrun.Outputs, wanted: irrun.Outputs) -> None:
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=2e-4, atol=2e-4)


def check(model: irrun.Model, *feeds: list[np.ndarray]) -> irrun.Executable:
    """Each run gives what ``exact`` does, whatever the run before was given, and wherever arrays are."""
    fast, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    kept = []
    for given in (*feeds, *feeds[::-1], *feeds):
        arrays = [array.copy() for array in given]
        kept.append((fast(arrays), exact(arrays)))
    for found, wanted in kept:
        assert_close(found, wanted)
    return fast


def in_turn(executable: irrun.Executable) -> list[int]:
    """How many layers each step in turn has."""
    return [len(step.layers) for step in executable.plan.steps if step.kernel.algorithm == "compiled in turn"]


def masks(kind: str, batch: int, rows: int) -> list[np.ndarray]:
    """Two masks of a kind, which see the first keys."""
    shape = {"rows": (batch, 1, rows, rows), "keys": (1, 1, 1, rows)}[kind.split()[-1]]
    seen = [np.arange(rows) < n for n in (rows // 2 + 1, rows - 1)]
    wholes = [np.broadcast_to(one, shape) for one in seen]
    if kind.startswith("boolean"):
        return [whole.copy() for whole in wholes]
    return [np.where(whole, RANDOM.standard_normal(shape), -np.inf).astype(np.float32) for whole in wholes]


KINDS = ["boolean rows", "boolean keys", "f32 rows", "f32 keys"]


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("mask", ["none", *KINDS])
@pytest.mark.parametrize(("batch", "rows"), [(1, 70), (2, 33), (1, 5)])
def test_transformers(batch: int, rows: int, mask: str, split: bool) -> None:
    """A mask of one run is none of the next."""
    x = b.parameter([batch, rows, WIDTH], name="x")
    feeds = [[normal(batch, rows, WIDTH)] for _ in range(2)]
    given = None
    if mask != "none":
        arrays = masks(mask, batch, rows)
        given = b.parameter(list(arrays[0].shape), mask.split()[0], name="mask")
        feeds = [[*feed, array] for feed, array in zip(feeds, arrays)]
    y: Node = x
    for _ in range(2):
        y = b.Add(y, attended(normalised(y), batch, rows, given, split))
        y = b.Add(y, product(b.Gelu(product(normalised(y), WIDTH, 3 * WIDTH)), 3 * WIDTH, WIDTH))
    executable = check(b.model({"y": b.LogSoftmax(y, axis=-1)}), *feeds)
    assert len(in_turn(executable)) == len(executable.plan.steps) == 1


def test_a_mask_that_changes_nothing() -> None:
    x = b.parameter([1, 20, WIDTH], name="x")
    executable = check(b.model(attended(x, 1, 20, np.zeros((), np.float32))), [normal(1, 20, WIDTH)])
    assert len(in_turn(executable)) == len(executable.plan.steps) == 1


@pytest.mark.parametrize("type", ["f32", "boolean"])
def test_a_mask_that_changes_nothing_in_one_run_alone(type: str) -> None:
    """A single key is hidden in the second run: its weights are NaN, as the definition has it."""
    shapes = [1, 2, 9, 8], [1, 2, 1, 8], [1, 2, 1, 8]
    some = [b.parameter(shape) for shape in shapes]
    mask = b.parameter([1, 1, 1, 1], type)
    model = b.model(b.ScaledDotProductAttention(*some, mask, causal=False))
    shown = [np.zeros((1, 1, 1, 1), np.float32), np.full((1, 1, 1, 1), -np.inf, np.float32)]
    arrays = [normal(*shape) for shape in shapes]
    check(model, *([*arrays, one if type == "f32" else one == 0] for one in shown))


@pytest.mark.usefixtures("workers")
def test_views_that_others_read() -> None:
    """Views are results, and an operation of numpy reads one of them, too."""
    x = b.parameter([1, 64, WIDTH], name="x")
    y = product(x, WIDTH, WIDTH)
    view = heads_of(y, 1, 64)
    z = b.ScaledDotProductAttention(view, view, view, causal=False)
    flat = b.Reshape(b.Transpose(z, integers(0, 2, 1, 3)), integers(1, 64, WIDTH), special_zero=False)
    results = {"view": view, "counted": b.CumSum(view, np.int64(1)), "last": product(flat, WIDTH, WIDTH)}
    check(b.model(results), [normal(1, 64, WIDTH)], [normal(1, 64, WIDTH)])


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("shift", [0, 2])
def test_windows(shift: int) -> None:
    """Rows are moved to windows of four by four and back, by copies of runs."""
    x = b.parameter([1, 8, 8, WIDTH], name="x")
    y: Node = b.Roll(x, integers(-shift, -shift), integers(1, 2)) if shift else x
    apart = b.Reshape(y, integers(1, 2, 4, 2, 4, WIDTH), special_zero=False)
    rows = b.Reshape(b.Transpose(apart, integers(0, 1, 3, 2, 4, 5)), integers(4, 16, WIDTH), special_zero=False)
    y = attended(rows, 4, 16, None)
    apart = b.Reshape(y, integers(1, 2, 2, 4, 4, WIDTH), special_zero=False)
    y = b.Reshape(b.Transpose(apart, integers(0, 1, 3, 2, 4, 5)), integers(1, 8, 8, WIDTH), special_zero=False)
    y = b.Roll(y, integers(shift, shift), integers(1, 2)) if shift else y
    model = b.model(product(b.ReduceMean(normalised(y), integers(1, 2), keep_dims=False), WIDTH, 5))
    executable = check(model, *([normal(1, 8, 8, WIDTH)] for _ in range(2)))
    assert len(in_turn(executable)) == len(executable.plan.steps) == 1


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, 7, 9, 5), (1, 2)), ((3, 1300), (1,)), ((1300, 3), (0,)), ((2, 3, 1031), (1,)), ((4, 5), (0, 1)), ((3, 1, 4), (1,)), ((5, 6), (-1,))],
)  # fmt: skip
def test_sums_and_means(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> None:
    """Also of numbers like a million and a few: a sum in f32 would round them."""
    x = b.parameter(list(shape), name="x")
    results = {name: getattr(b, name)(x, integers(*axes), keep_dims=keep) for name in ("ReduceSum", "ReduceMean")}
    executable = irrun.compile(b.model(results), exact=False)
    assert [step.kernel.algorithm for step in executable.plan.steps] == ["compiled in turn"]
    data = normal(*shape) + np.float32(1 << 20)
    found, wide = executable([data]), data.astype(np.float64)
    for name, fold in (("ReduceSum", np.sum), ("ReduceMean", np.mean)):
        wanted = fold(wide, axis=axes, keepdims=keep)
        np.testing.assert_allclose(found[name], wanted, rtol=1e-7)
        assert found[name].shape == wanted.shape


@pytest.mark.parametrize("columns", [1, 17, 300])
def test_logarithms_of_softmax(columns: int) -> None:
    """Of numbers far apart, and of infinite ones: NaN where the definition has it."""
    data = np.float32(40) * normal(70, columns)
    data[3, 0], data[4, 0], data[5, 0] = np.inf, -np.inf, np.nan
    executable = irrun.compile(b.model(b.LogSoftmax(b.parameter([70, columns]), axis=1)), exact=False)
    wide = data.astype(np.float64)
    with np.errstate(all="ignore"):
        wide -= wide.max(1, keepdims=True)
        wanted = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    np.testing.assert_allclose(executable([data])[0], wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize(
    ("batch", "direction"), [(1, "bidirectional"), (3, "forward"), (2, "reverse"), (2, "bidirectional")]
)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrences(kind: str, batch: int, direction: str) -> None:
    """With initial states of each run. Two directions of several sequences stay a step of their own."""
    time, hidden, ways, gates = 9, 64, 1 + (direction == "bidirectional"), 4 if kind == "LSTM" else 3
    x = b.parameter([batch, time, WIDTH], name="x")
    states = [b.parameter([batch, ways, hidden], name=f"state {n}") for n in range(1 + (kind == "LSTM"))]
    weights = normal(ways, gates * hidden, WIDTH), normal(ways, gates * hidden, hidden), normal(ways, gates * hidden)
    cell = b.LSTMSequence if kind == "LSTM" else b.GRUSequence
    lengths = np.full(batch, time, np.int32)
    y = cell(x, *states, lengths, *(array / 8 for array in weights), hidden_size=hidden, direction=direction)
    flat = b.Reshape(b.Transpose(y[0], integers(0, 2, 1, 3)), integers(batch, time, ways * hidden), special_zero=False)
    model = b.model(b.LogSoftmax(product(flat, ways * hidden, WIDTH), axis=-1))
    shapes = [(batch, time, WIDTH), *[(batch, ways, hidden)] * len(states)]
    executable = check(model, *([normal(*shape) for shape in shapes] for _ in range(2)))
    assert (len(executable.plan.steps) == 1) == (batch == 1 or ways == 1)


@pytest.mark.parametrize(("limit", "most"), [("_MAX_WORK", 200_000), ("_MAX_BETWEEN_BYTES", 20_000)])
def test_much_work_is_divided(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between steps, a run can be interrupted, and memory is used again. Views are next to what reads them."""
    monkeypatch.setattr(turns, limit, most)
    x = b.parameter([1, 64, WIDTH], name="x")
    y: Node = x
    for _ in range(3):
        y = b.Add(y, attended(normalised(y), 1, 64, None, split=True))
    executable = check(b.model(y), *([normal(1, 64, WIDTH)] for _ in range(2)))
    assert len(executable.plan.steps) > 2


def test_what_is_between_calls_counts_as_memory() -> None:
    x = b.parameter([1, 64, WIDTH], name="x")
    executable = irrun.compile(b.model(attended(x, 1, 64, None)), exact=False)
    peak = peak_of(executable.plan, inputs=False)
    assert peak is not None
    assert peak.bytes >= 4 * 64 * WIDTH * 5  # query, key, value, what attention gives, and the result


def test_a_profile_shows_the_parts_of_a_step() -> None:
    """The layers of the parts are those of the step, and the times are those of a run."""
    x = b.parameter([1, 64, WIDTH], name="x")
    executable = irrun.compile(b.model(b.Softmax(attended(normalised(x), 1, 64, None), axis=-1)), exact=False)
    (step,) = executable.plan.steps
    profile, data = irrun.Profile(), normal(1, 64, WIDTH)
    for _ in range(3):
        executable([data], hooks=[profile])
    assert [layer for row in profile.rows for layer in row.members] == [*step.layers]
    kinds = [{layer.type for layer in row.members} for row in profile.rows]
    assert any("ScaledDotProductAttention" in types for types in kinds)
    assert not any({"ScaledDotProductAttention", "MatMul"} <= types for types in kinds)
    assert all(row.calls == 3 for row in profile.rows)
    begins = [event["ts"] for event in profile.trace()["traceEvents"]]
    assert begins == sorted(begins)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("type", ["f32", "f16", "i64", "u8"])
def test_parts_are_joined(type: str, axis: int) -> None:
    """Of a type whose rows are no whole words, numpy joins them."""
    shapes = [[4, 6, 8] for _ in range(3)]
    shapes[1][axis], shapes[2][axis] = 1, 3
    parts = [b.parameter(shape, type, name=f"x{n}") for n, shape in enumerate(shapes)]
    executable = irrun.compile(b.model(b.Concat(parts, axis=axis)), exact=False)
    dtype = executable.plan.types[executable.plan.parameters[0]].dtype
    arrays = [RANDOM.integers(0, 100, shape).astype(dtype) for shape in shapes]
    for _ in range(2):
        np.testing.assert_array_equal(executable(arrays)[0], np.concatenate(arrays, axis))


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("type", ["f16", "bf16"])
@pytest.mark.parametrize("indices", ["i32", "i64"])
def test_rows_of_a_table(type: str, indices: str) -> None:
    """Negative ones count from the end, and those outside are zeros."""
    table = normal(300, 128)
    held = b.Convert(b.constant(table, type), destination_type="f32")
    at = b.parameter([2, 5], indices, name="at")
    executable = irrun.compile(b.model(b.Gather(held, at, np.int64(0), batch_dims=0, opset=8)), exact=False)
    (step,) = executable.plan.steps
    assert step.kernel.algorithm == "as stored"
    places = np.array([[0, 299, -1, -300, 7], [300, -301, 1 << 30, -(1 << 31), 150]], indices.replace("i", "int"))
    rounded = table.astype(np.float16) if type == "f16" else table.astype("bfloat16")
    wanted = np.where((places >= -300) & (places < 300), 1, 0)[..., None] * rounded.astype(np.float32)[places % 300]
    for _ in range(2):
        np.testing.assert_array_equal(executable([places])[0], wanted)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_transposed_matrices(turned: bool) -> None:
    """Whose operand is a view with its rows side by side, or is turned before."""
    x = b.parameter([2, 40, 30], name="x")
    y = normalised(x)
    y = b.Transpose(y, integers(0, 2, 1)) if turned else y
    rows, depth = (40, 30) if turned else (30, 40)
    y = b.Add(b.MatMul(y, normal(depth, 64) / 5, transpose_a=True), normal(64))
    executable = check(b.model(b.LogSoftmax(y, axis=-1)), *([normal(2, 40, 30)] for _ in range(2)))
    assert executable(normal(2, 40, 30))[0].shape == (2, rows, 64)
    assert len(in_turn(executable)) == len(executable.plan.steps) == 1


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("kernel", "stride", "pads"), [(3, 2, (1, 2)), (1, 1, (0, 0)), (4, 4, (0, 0)), (5, 1, (4, 3))])
def test_convolutions_along_a_line(kernel: int, stride: int, pads: tuple[int, int], batch: int, precision: Any) -> None:
    """The first convolution turns the data. The second one reads rows of channels."""
    x, y = b.parameter([batch, 33, 50], name="x"), b.parameter([batch, 33, 50], name="x")
    options = {"strides": [stride], "dilations": [1], "pads_begin": [pads[0]], "pads_end": [pads[1]]}
    for filters in normal(33, 33, kernel) / 9, normal(24, 33, kernel) / 9:
        y = b.Gelu(b.Add(b.Convolution(x if y is None else y, filters, **options), normal(1, len(filters), 1)))
    model = b.model(normalised(b.Transpose(y, integers(0, 2, 1))))
    fast = irrun.compile(model, exact=False, precision=precision)
    exact = irrun.compile(model, exact=True)
    for _ in range(3):
        data = normal(batch, 33, 50)
        bound = 2e-4 if precision == "f32" else 0.2
        np.testing.assert_allclose(fast([data])[0], exact([data])[0], rtol=bound, atol=bound)
    assert len(in_turn(fast)) == len(fast.plan.steps) == 1


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("down", "across", "more"), [(4, 4, 0), (2, 8, 1)])
def test_patches(batch: int, down: int, across: int, more: int) -> None:
    """The last pixels may be in no window."""
    shape = [batch, 3, 8 * down + more, 5 * across + more]
    x = b.parameter(shape, name="x")
    options = {"strides": [down, across], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    y = b.Add(b.Convolution(x, normal(48, 3, down, across) / 5, **options), normal(1, 48, 1, 1))
    rows = b.Transpose(b.Reshape(y, integers(batch, 48, 40), special_zero=False), integers(0, 2, 1))
    executable = check(b.model(product(normalised(rows), 48, 7)), *([normal(*shape)] for _ in range(2)))
    assert len(in_turn(executable)) == len(executable.plan.steps) == 1


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("channels", [1, 3])
def test_images_that_grow(channels: int) -> None:
    """Channels-last images are enlarged, joined and added, and the result has its channels first."""
    options = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1]}
    x = b.parameter([2, channels, 9, 7], name="x")
    y = b.Convolution(x, normal(32, channels, 3, 3) / 9, **options)
    small = b.GroupNormalization(y, normal(32), normal(32), num_groups=4, epsilon=1e-3)
    sizes = {"mode": "nearest", "shape_calculation_mode": "sizes", "nearest_mode": "floor"}
    modes = {"coordinate_transformation_mode": "asymmetric", "antialias": False, "opset": 11}
    large = b.Interpolate(
        small, integers(18, 21), integers(2, 3), **sizes, **modes, pads_begin=[0], pads_end=[0], cube_coeff=-0.75
    )
    other = b.parameter([2, 16, 18, 21], name="other")
    z = b.GroupNormalization(b.Concat([large, other], axis=1), normal(48), normal(48), num_groups=6, epsilon=1e-3)
    z = b.Add(b.Convolution(z, normal(48, 48, 3, 3) / 20, **options), b.Sigmoid(z))
    feeds = [[normal(2, channels, 9, 7), normal(2, 16, 18, 21)] for _ in range(2)]
    executable = check(b.model({"small": small, "z": z}), *feeds)
    assert len(in_turn(executable)) == 1


@pytest.mark.parametrize("shape", [[0], [3, 0], [0, 3]])
def test_nothing_to_compute(shape: list[int]) -> None:
    model = b.model(b.Relu(b.Tanh(b.parameter(shape))))
    assert irrun.compile(model, exact=False)([np.zeros(shape, np.float32)])[0].shape == tuple(shape)


def test_no_images() -> None:
    """A convolution along a line has no calls then."""
    x = b.parameter([0, 33, 50])
    y = b.Convolution(x, normal(24, 33, 3), strides=[1], dilations=[1], pads_begin=[1], pads_end=[1])
    assert irrun.compile(b.model(y), exact=False)([np.zeros((0, 33, 50), np.float32)])[0].shape == (0, 24, 50)


def test_a_product_whose_depth_is_open() -> None:
    """Its matrix says how deep it is. The input is elsewhere in each run."""
    matrix = normal(24, 40)
    executable = irrun.compile(b.model({"y": b.MatMul(b.parameter([4, 3, -1], "f32"), matrix)}))
    for x in [normal(4, 3, 24) for _ in range(3)]:
        np.testing.assert_allclose(executable([x])[0], x @ matrix, rtol=1e-5, atol=1e-5)
