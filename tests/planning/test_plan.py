"""Plans: what is folded, joined, lent and narrowed gives what layer by layer gives."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import irrun
import irrun.testing.strategies as ir
from irrun import build as b
from irrun.opdef import Site, Value
from irrun.ops.binary import Add
from irrun.planning import plans as planned
from irrun.running.pool import Pool
from watched import Watched, watch

F32 = np.dtype(np.float32)
RNG = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """Tells how many bytes more are in use than at the start, numpy's arrays among them."""
    gc.collect()
    tracemalloc.start()

    def memory() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    try:
        yield memory
    finally:
        tracemalloc.stop()


def steps(outputs: Mapping[str, Any], feeds: Sequence[np.ndarray]) -> list[str]:
    """The types of the layers of each step of a model that was seen to give what its layers give one by one."""
    return both(outputs, feeds).layers


def both(outputs: Mapping[str, Any], feeds: Sequence[np.ndarray]) -> Watched:
    """The steps of a model that was seen to give what its layers give one by one."""
    model = b.model(dict(outputs))
    executable = irrun.compile(model, exact=False)
    for _ in range(2):  # the second time with memory that was used before
        for got, expected in zip(executable(feeds).arrays, irrun.compile(model, exact=True)(feeds).arrays, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    return watch(executable, feeds)


# ---------------------------------------------------------------------------------------------
# folding


def test_what_is_constant_is_computed_once() -> None:
    x = b.parameter([2, 3], "f32", name="x")
    scale = b.Convert(b.constant(np.arange(3, dtype=np.float16)), destination_type="f32")
    assert steps({"y": b.Multiply(x, b.Add(scale, np.float32(1)))}, [random(2, 3)]) == ["Multiply"]


def test_shapes_that_are_known_are_not_computed() -> None:
    x = b.parameter([2, 3, 4], "f32", name="x")
    target = b.Concat(b.Gather(b.ShapeOf(x), [0], 0), b.constant(np.array([-1])), axis=0)
    assert steps({"y": b.Reshape(x, target, special_zero=False)}, [random(2, 3, 4)]) == ["Reshape"]


def test_what_would_grow_is_left_to_each_run() -> None:
    """A compiled model does not keep the megabytes that follow from one number."""
    x = b.parameter([1 << 20, 3], "f32", name="x")
    wide = b.Broadcast(b.constant(np.float32(2)), [1 << 20, 3])
    model = b.model({"y": b.Concat(x, wide, axis=0)})
    irrun.compile(model, exact=False)  # imports modules of compiled kernels
    with traced() as memory:
        executable = irrun.compile(model, exact=False)
        assert memory() < 1 << 20
    ones = np.ones((1 << 20, 3), np.float32)
    assert watch(executable, [ones]).layers == ["Broadcast", "Concat"]
    assert executable([ones])[0][:: 1 << 20].tolist() == [[1, 1, 1], [2, 2, 2]]


def test_misaligned_constants_are_moved() -> None:
    x = b.parameter([2, 4], "f32", name="x")
    flags = b.Select(b.constant(np.array([True])), x, np.float32(0))  # one byte, so that what follows is misaligned
    watched = both({"y": b.MatMul(flags, b.constant(random(4, 4)))}, [random(2, 4)])
    assert all(array is None or array.flags.aligned for given in watched.inputs for array in given)


def test_draws_are_not_folded() -> None:
    drawn = b.RandomUniform([3], np.float32(0), np.float32(1), output_type="f32", global_seed=1, op_seed=1)
    executable = irrun.compile(b.model({"y": drawn}), exact=False)
    assert not np.array_equal(executable()[0], executable()[0])


def test_the_last_outputs_are_dropped_if_they_have_no_consumer() -> None:
    x = b.parameter([2, 6], "f32", name="x")
    parts = b.Split(x, 1, num_splits=3)
    for last in range(3):
        kept = [step for step in both({"y": b.Tanh(parts[last])}, [random(2, 6)]).steps if step.op.type == "Split"]
        assert [len(step.writes) for step in kept] == [last + 1]


def test_places_that_nobody_reads_are_not_computed() -> None:
    x = b.parameter([1, 2, 8, 8], "f32", name="x")
    pads = {"strides": [2, 2], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel": [2, 2]}
    largest, places = b.MaxPool(x, **pads)
    fed = [random(1, 2, 8, 8)]
    assert {len(given) for given in both({"y": b.Tanh(largest)}, fed).outputs} == {1}
    assert [len(given) for given in both({"y": largest, "places": places}, fed).outputs] == [2]


@pytest.mark.parametrize("type", ["Broadcast", "Tile", "Concat"])
def test_strings_are_not_cut(type: str) -> None:
    x = b.parameter([1, 2], "string", name="x")
    made = {
        "Broadcast": lambda: b.Broadcast(x, [2, 2]),
        "Tile": lambda: b.Tile(x, [2, 1]),
        "Concat": lambda: b.Concat(x, x, axis=0),
    }
    fed = np.array([["hello", "a longer word"]])
    for exact in (False, True):
        got = irrun.compile(b.model({"y": made[type]()}), exact=exact)([fed])[0]
        np.testing.assert_array_equal(got, np.repeat(fed, 2, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.str_])
def test_element_types_that_only_a_run_knows(dtype: Any) -> None:
    """Memory for an output is allocated when its element type is known."""
    x = b.parameter([1, 1000], "dynamic", name="x")
    fed = np.arange(1000).astype(dtype)[None]
    model = b.model(
        {"broadcast": b.Broadcast(x, [500, 1000]), "tile": b.Tile(x, [2, 1]), "concat": b.Concat(x, x, axis=0)}
    )
    for exact in (False, True):
        for got in irrun.compile(model, exact=exact)([fed]).arrays:
            assert got.dtype == (object if dtype is np.str_ else fed.dtype)
            np.testing.assert_array_equal(got, np.repeat(fed, len(got), 0))


# ---------------------------------------------------------------------------------------------
# joined steps


def test_elementwise_steps_are_joined() -> None:
    x, y = b.parameter([4, 300, 70], "f32", name="x"), b.parameter([300, 1], "f32", name="y")
    found = b.Multiply(b.Tanh(b.Add(x, y)), b.Multiply(x, np.float32(0.5)))
    (joined,) = steps({"z": found}, [random(4, 300, 70), random(300, 1)])
    assert joined.count("+") == 3


def test_what_somebody_else_reads_is_not_joined() -> None:
    x = b.parameter([4, 30], "f32", name="x")
    inner = b.Add(x, np.float32(1))
    assert steps({"inner": inner, "z": b.Tanh(b.Multiply(inner, inner))}, [random(4, 30)]) == ["Add", "Multiply+Tanh"]


def test_a_step_between_is_not_joined() -> None:
    """Add may not wait for Tanh, which follows from its own value through MatMul."""
    x = b.parameter([30, 30], "f32", name="x")
    first = b.Add(x, np.float32(1))
    assert steps({"z": b.Tanh(b.Add(first, b.MatMul(first, first)))}, [random(30, 30)])[0] == "Add"


def test_bias_activation_and_residual_are_done_behind_a_convolution() -> None:
    x, more = b.parameter([2, 8, 40, 40], "f32", name="x"), b.parameter([2, 16, 40, 40], "f32", name="more")
    same = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1]}
    found = b.Convolution(x, b.constant(random(16, 8, 3, 3)), **same)
    found = b.ReLU(b.Add(b.Add(found, b.constant(random(1, 16, 1, 1))), more))
    assert steps({"y": found}, [random(2, 8, 40, 40), random(2, 16, 40, 40)]) == ["Convolution+Add+Add+ReLU"]


def test_a_sum_of_two_convolutions_waits_for_both() -> None:
    x = b.parameter([1, 4, 9, 9], "f32", name="x")
    plain = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    first, second = (b.Convolution(x, b.constant(random(6, 4, 2, 2)), **plain) for _ in range(2))
    assert len(steps({"y": b.ReLU(b.Add(first, second))}, [random(1, 4, 9, 9)])) == 2


def test_types_are_not_mixed() -> None:
    x = b.parameter([50, 50], "f32", name="x")
    chosen = b.Select(
        b.Greater(x, np.float32(0)), b.Exp(x), b.Convert(b.Convert(x, destination_type="i32"), destination_type="f32")
    )
    both({"y": b.Add(chosen, x)}, [random(50, 50)])


def test_integers_of_one_axis_are_joined_too() -> None:
    """They might be shapes, for which a layer by itself is checked when it runs."""
    x, y = b.parameter([3], "u8", name="x"), b.parameter([3], "i32", name="y")
    feeds = [np.array([1, 2, 3], np.uint8), np.array([5, 6, 7], np.int32)]
    assert steps({"z": b.Subtract(b.Convert(x, destination_type="i32"), y)}, feeds) == ["Convert+Subtract"]


def test_hooks_see_every_layer() -> None:
    x = b.parameter([4, 30], "f32", name="x")
    model = b.model({"z": b.Tanh(b.Add(b.Multiply(x, x), np.float32(1)))})

    class Seen:
        def __init__(self, joined: bool) -> None:
            self.joined, self.types, self.arrays = joined, [], []

        def before(self, step: irrun.Step, inputs: Sequence[np.ndarray | None]) -> None:
            pass

        def after(self, step: irrun.Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
            self.types.append([layer.type for layer in step.layers])
            self.arrays += outputs

    executable, fed = irrun.compile(model, exact=False), random(4, 30)
    every, joined = Seen(False), Seen(True)
    executable([fed], hooks=[every])
    executable([fed], hooks=[joined])
    assert every.types == [["Multiply"], ["Add"], ["Tanh"]]
    assert joined.types == [["Multiply", "Add", "Tanh"]]
    np.testing.assert_allclose(every.arrays[0], fed * fed)
    np.testing.assert_allclose(every.arrays[1], fed * fed + 1)


def test_taps_of_constants_are_those_of_the_file() -> None:
    x, weights = b.parameter([1, 4, 9, 9], "f32", name="x"), random(6, 4, 3, 3)
    plain = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    found = b.Convolution(x, b.constant(weights, name="weights"), **plain, name="conv")
    executable = irrun.compile(b.model({"y": b.ReLU(found)}), exact=False)
    taps = executable([random(1, 4, 9, 9)], taps=["weights", "conv"]).taps
    np.testing.assert_array_equal(taps["weights"], weights)
    assert taps["conv"].min() < 0


# a machine under load draws slowly, and large models now and then: neither says anything of the plans
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=_SLOW)
@given(ir.models(max_layers=12))
def test_any_model_gives_what_its_layers_give(model: ir.GeneratedModel) -> None:
    read = model.read()
    executable, exact = irrun.compile(read, exact=False), irrun.compile(read, exact=True)
    expected = exact(model.feeds).arrays
    for _ in range(4):  # from the third time on with a plan for these very shapes
        for got, want in zip(executable(model.feeds).arrays, expected, strict=True):
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            if want.dtype == object:
                assert np.array_equal(got, want)
            else:
                np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-3, atol=1e-4)


# ---------------------------------------------------------------------------------------------
# plans for what comes again


def test_dims_that_come_again_are_planned_for() -> None:
    x, y = b.parameter([-1, -1], "f32", name="x"), b.parameter([-1, 5], "f32", name="y")
    model = b.model({"z": b.Tanh(b.Add(b.Multiply(x, x), np.float32(1))), "s": b.ReduceSum(y, [0])})
    executable = irrun.compile(model, exact=False)
    assert len(watch(executable, [random(1, 7), random(3, 5)]).steps) == 4
    for length in (3, 4, 5, 6, 3, 9):
        feeds = [random(1, 7), random(length, 5)]
        z, s = executable(feeds).arrays
        np.testing.assert_allclose(z, np.tanh(feeds[0] ** 2 + 1), rtol=1e-6)
        np.testing.assert_allclose(s, feeds[1].sum(0), rtol=1e-5, atol=1e-6)
    assert len(watch(executable, feeds).steps) == 2
    z, _ = executable([random(2, 3), random(4, 5)]).arrays  # others still have the plan for any
    assert z.shape == (2, 3)


def test_a_narrower_plan_takes_the_type_of_a_parameter_from_its_attribute(tmp_path: Path) -> None:
    x = b.parameter(["?"], "f64", name="x")
    path = tmp_path / "net.xml"
    irrun.save_model(b.model(b.Abs(x)), path)
    path.write_text(path.read_text().replace('precision="FP64"', 'precision="U32"', 1))
    executable = irrun.compile(path, strict=False)
    for _ in range(4):
        assert executable(np.array([-1.5])).arrays[0].tolist() == [1.5]


def test_narrower_plans_read_prepacked_constants_again() -> None:
    """A plan keeps no contents of weights that its kernels hold in another form, not even of a single weight."""
    x = b.parameter([1, 1, -1, -1], "f32", name="x")
    pads = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    executable = irrun.compile(
        b.model({"y": b.Convolution(x, np.full((1, 1, 1, 1), 2, np.float32), **pads)}), exact=False
    )
    fed = random(1, 1, 3, 3)
    for _ in range(5):
        np.testing.assert_array_equal(executable([fed])[0], 2 * fed)


def test_narrower_plans_continue_a_stream() -> None:
    """Random numbers do not begin again when a model gets a plan for inputs that come again."""
    x = b.parameter([-1], "f32", name="x")
    drawn = b.RandomUniform([3], np.float32(0), np.float32(1), output_type="f32", global_seed=1, op_seed=1)
    model = b.model({"y": drawn, "x": b.Tanh(x)})
    runs = [[irrun.compile(model, exact=exact)] * 6 for exact in (False, True)]
    first, second = ([tuple(executable([random(2)])[0].tolist()) for executable in run] for run in runs)
    assert len(set(first)) == 6
    assert first == second


def test_a_plan_is_added_while_another_thread_looks_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = irrun.compile(b.model(b.ReLU(b.parameter(["?", 3], name="x"))))._plans
    for _ in range(3):
        plans.fitting(((2, 3),))
    assert len(plans._narrow) == 1
    fits = planned._fits

    def meanwhile(common: Any, shape: Any) -> bool:
        monkeypatch.setattr(planned, "_fits", fits)
        for _ in range(3):
            plans.fitting(((5, 3),))
        return fits(common, shape)

    plans.fitting(((4, 3),))  # shapes that recur keep their plan without a look at the others
    monkeypatch.setattr(planned, "_fits", meanwhile)
    assert plans.fitting(((2, 3),)) in plans._narrow.values()
    assert len(plans._narrow) == 2


def test_few_plans_are_kept() -> None:
    """Memory does not grow with the number of shapes that came again."""
    x = b.parameter([-1], "f32", name="x")
    executable = irrun.compile(b.model({"z": b.Tanh(b.Add(b.Tanh(x), x))}), exact=False)

    def run(lengths: range) -> None:
        for n in lengths:
            for _ in range(4):
                assert executable([random(n)])[0].shape == (n,)

    run(range(20))
    with traced() as memory:
        run(range(20, 420))
        assert memory() < 500_000  # a plan of this model takes some 3,000 bytes


def test_ranks_may_differ() -> None:
    x = b.parameter("...", "f32", name="x")
    executable = irrun.compile(b.model({"z": b.Tanh(x)}), exact=False)
    for shape in [(2, 3), (2,), (2, 3), (2, 3), (2, 3), (), (4, 3)]:
        assert executable([random(*shape)])[0].shape == shape


def test_a_layer_is_checked_once_for_the_same_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[tuple[Any, ...]] = []
    infer = Add.infer

    def counted(op: Any, at: Site, *inputs: Value) -> Value:
        checked.append(tuple(value.shape for value in inputs))
        return infer(op, at, *inputs)

    x, y = b.parameter([-1], "f32", name="x"), b.parameter([-1], "f32", name="y")
    executable = irrun.compile(b.model({"z": b.Add(x, y)}), exact=False)
    monkeypatch.setattr(Add, "infer", counted)
    for n in (2, 3, 2, 3):
        executable([random(n), random(n)])
    assert len(checked) == 2, checked
    with pytest.raises(irrun.ExecutionError, match="IR605"):
        executable([random(2), random(3)])


# ---------------------------------------------------------------------------------------------
# memory


def test_memory_comes_back_when_no_view_is_left() -> None:
    pool = Pool()
    array = pool.take((1000, 1000), F32)
    place, view = array.ctypes.data, array.reshape(-1)[5:].reshape(5, -1)
    assert pool.lends(array)
    assert not pool.lends(view)
    del array
    assert pool.take((1000, 1000), F32).ctypes.data != place
    del view
    gc.collect()
    assert place in {a.ctypes.data for a in [pool.take((1001, 1000), F32) for _ in range(3)]}


def test_outputs_are_the_callers() -> None:
    x = b.parameter([1000, 1000], "f32", name="x")
    executable = irrun.compile(b.model({"y": b.Tanh(x), "same": x, "turned": b.Transpose(x, [1, 0])}), exact=False)
    fed = random(1000, 1000)
    kept = executable([fed])
    copies = [array.copy() for array in kept.arrays]
    executable([fed + 1])
    for array, copy in zip(kept.arrays, copies):
        assert np.array_equal(array, copy)
        array[:] = 0
    np.testing.assert_array_equal(executable([fed])["same"], fed)


def test_memory_for_other_shapes_is_given_back() -> None:
    x = b.parameter([-1, 1000], "f32", name="x")
    executable = irrun.compile(b.model({"y": b.Transpose(x, [1, 0])}), exact=False)
    with traced() as memory:
        for rows in range(300, 900, 20):
            executable([random(rows, 1000)])
        assert memory() <= 2 * 900 * 1000 * 4


@pytest.mark.parametrize("type", ["f32", "f16"])
def test_an_attribute_beyond_the_range_of_the_type_gives_no_warning(type: str) -> None:
    """numpy warns of the overflow, and filterwarnings makes an error of it."""
    model = b.model(b.Clamp(b.parameter([2], type), min=-1e300, max=1e300))
    assert irrun.compile(model, exact=False)([[1.0, 2.0]])[0].tolist() == [1, 2]


def _small_weights() -> dict[str, tuple[b.Node, list[np.ndarray], float]]:
    """Layers with a weight of one element and an open dim, their inputs, and the value that they give everywhere."""
    one, window = (
        np.full((1, 1), 2, np.float32),
        {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]},
    )
    image, rows = b.parameter([1, 1, -1, 1], "f32"), b.parameter([-1, 1], "f32")
    halves, state = b.parameter([-1, 1], "f16"), b.parameter([-1, 1], "f32")
    images, column = [np.full((1, 1, 3, 1), 2, np.float32)], np.full((3, 1), 2, np.float32)
    return {
        "Convolution": (b.Convolution(image, one[None, None], **window), images, 4),
        "GroupConvolution": (b.GroupConvolution(image, one[None, None, None], **window), images, 4),
        "ConvolutionBackpropData": (b.ConvolutionBackpropData(image, one[None, None], **window), images, 4),
        "GroupConvolutionBackpropData": (b.GroupConvolutionBackpropData(image, one[None, None, None], **window), images, 4),
        "MatMul": (b.MatMul(halves, one.astype(np.float16)), [column.astype(np.float16)], 4),
        "RNNCell": (b.RNNCell(rows, state, one / 2, one / 2, np.full(1, -3, np.float32), hidden_size=1), [column, column], np.tanh(1)),
    }  # fmt: skip


@pytest.mark.parametrize("type", list(_small_weights()))
def test_a_weight_of_one_element_is_kept_when_dims_come_again(type: str) -> None:
    node, feeds, expected = _small_weights()[type]
    executable = irrun.compile(b.model(node), exact=False)
    for _ in range(5):
        np.testing.assert_allclose(executable(feeds)[0], np.full_like(feeds[0], expected), rtol=1e-3)
