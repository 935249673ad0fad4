"""Steps that compute one row after the other give the same as one step, whatever else reads their values."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun.build import Node
from irrun.planning import plans
from watched import watch

pytest.importorskip("numba", reason="the extra `fast` is not installed")

RANDOM = np.random.default_rng(0)
WIDTH = 72


@pytest.fixture(autouse=True)
def compiled(compiled_kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_COMPILED", 1)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def product(x: Node, rows: int, columns: int) -> Node:
    """A product with a matrix in f16, large enough to be packed."""
    weights = b.Convert(b.constant((normal(columns, rows) / 8).astype(np.float16)), destination_type="f32")
    return b.MatMul(x, weights, transpose_b=True)


def normalised(x: Node) -> Node:
    mvn = b.MVN(x, np.array([-1]), eps=1e-5, normalize_variance=True, eps_mode="inside_sqrt")
    return b.Add(b.Multiply(mvn, normal(1, WIDTH)), normal(WIDTH))


def multilayer(x: Node) -> Node:
    """A perceptron with a residual."""
    hidden = b.Gelu(b.Add(product(x, WIDTH, 5 * WIDTH), normal(5 * WIDTH)))
    return b.Add(b.Add(product(hidden, 5 * WIDTH, WIDTH), normal(WIDTH)), x)


def norm_first(x: Node) -> Node:
    y = b.Add(product(x, WIDTH, WIDTH), x)
    return b.Add(y, multilayer(normalised(y)))


def norm_last(x: Node) -> Node:
    return normalised(multilayer(normalised(b.Add(product(x, WIDTH, WIDTH), x))))


def gated(x: Node) -> Node:
    y = b.RMS(x, normal(WIDTH), epsilon=1e-5)
    gate, up = b.Swish(product(y, WIDTH, 3 * WIDTH)), product(y, WIDTH, 3 * WIDTH)
    return b.Add(product(b.Multiply(gate, up), 3 * WIDTH, WIDTH), x)


def joined(executable: irrun.Executable, feeds: list[np.ndarray]) -> list[str]:
    """The types of the layers of each step that computes rows."""
    watched = watch(executable, feeds)
    return [layers for layers, step in zip(watched.layers, watched.steps) if step.kernel.algorithm == "by rows"]


def assert_same(model: irrun.Model, feeds: list[np.ndarray]) -> irrun.Executable:
    """A model that gives, each time, what its layers give one by one."""
    fast, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    for _ in range(3):
        for got, expected in zip(fast(feeds).arrays, exact(feeds).arrays, strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)
    return fast


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("shape", [(64,), (1, 100), (2, 50), (3, 2, 133), (1,), (1, 1), (5,), (2, 3), (63,)])
@pytest.mark.parametrize(("block", "types"), [
    (norm_first, "MatMul+Add+MVN+Multiply+Add+MatMul+Add+Gelu+MatMul+Add+Add+Add"),
    (norm_last, "MatMul+Add+MVN+Multiply+Add+MatMul+Add+Gelu+MatMul+Add+Add+MVN+Multiply+Add"),
    (gated, "RMS+MatMul+Swish+MatMul+Multiply+MatMul+Add"),
])  # fmt: skip
def test_blocks_of_transformers(block: Callable[[Node], Node], types: str, shape: tuple[int, ...]) -> None:
    x = b.parameter([*shape, WIDTH], name="x")
    feeds = [normal(*shape, WIDTH)]
    executable = assert_same(b.model(block(x)), feeds)
    (layers,) = joined(executable, feeds)
    assert sorted(layers.split("+")) == sorted(types.split("+"))


@pytest.mark.usefixtures("workers")
def test_operands_of_any_kind() -> None:
    shapes = [2, 50, WIDTH], [2, 50, 1], [2, 50, WIDTH]
    x, rows, every = (b.parameter(shape, name=name) for shape, name in zip(shapes, ("x", "rows", "every")))
    y = b.Multiply(b.Subtract(product(x, WIDTH, WIDTH), rows), np.float32(3))
    y = b.Softmax(b.Minimum(b.Divide(y, np.abs(normal(1, 1, WIDTH)) + 1), every), axis=-1)
    feeds = [normal(*shape) for shape in shapes]
    executable = assert_same(b.model(product(y, WIDTH, WIDTH)), feeds)
    assert joined(executable, feeds) == ["MatMul+Subtract+Multiply+Divide+Minimum+SoftMax+MatMul"]


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("rows", [3, 100])
def test_rows_times_numbers(rows: int) -> None:
    """One number for all rows, and one for each, as either operand."""
    x, each = b.parameter([1, rows, WIDTH], name="x"), b.parameter([1, rows, 1], name="each")
    y = b.Multiply(np.full((1, 1, 1), 0.5, np.float32), product(x, WIDTH, WIDTH))
    y = b.Multiply(each, product(b.Multiply(y, each), WIDTH, WIDTH))
    feeds = [normal(1, rows, WIDTH), normal(1, rows, 1)]
    executable = assert_same(b.model(product(y, WIDTH, WIDTH)), feeds)
    assert joined(executable, feeds) == ["MatMul+Multiply+Multiply+MatMul+Multiply+MatMul"]


def test_an_operand_for_some_rows_ends_a_group() -> None:
    x = b.parameter([2, 50, WIDTH], name="x")
    y = b.Add(product(x, WIDTH, WIDTH), normal(50, WIDTH))
    feeds = [normal(2, 50, WIDTH)]
    executable = assert_same(b.model(product(normalised(y), WIDTH, WIDTH)), feeds)
    assert joined(executable, feeds) == ["MVN+Multiply+Add+MatMul"]


def test_values_that_others_read_are_returned() -> None:
    x = b.parameter([100, WIDTH], name="x")
    y = product(x, WIDTH, WIDTH)
    z = normalised(y)
    model = b.model({"last": product(z, WIDTH, WIDTH), "read": b.ReduceMax(y, np.array([0])), "z": z})
    feeds = [normal(100, WIDTH)]
    assert joined(assert_same(model, feeds), feeds) == ["MatMul+MVN+Multiply+Add+MatMul"]


@pytest.mark.usefixtures("workers")
def test_attention_divides_a_network() -> None:
    """What is before an attention and what is behind it are two groups. Their calls are one step with those of it."""
    x = b.parameter([1, 100, WIDTH], name="x")
    y = x
    for _ in range(2):
        z = normalised(y)
        query, key, value = (b.Add(product(z, WIDTH, WIDTH), normal(WIDTH)) for _ in range(3))
        weights = b.Softmax(b.MatMul(query, key, transpose_b=True), axis=-1)
        y = b.Add(product(b.MatMul(weights, value), WIDTH, WIDTH), y)
        y = b.Add(y, multilayer(normalised(y)))
    feeds = [normal(1, 100, WIDTH)]
    executable = assert_same(b.model(y), feeds)
    (step,) = executable.plan.steps
    assert step.kernel.algorithm == "compiled in turn"
    assert sum(layer.type == "MatMul" for layer in step.layers) == 12 + 4


def test_what_needs_the_result_of_a_later_step_is_not_joined() -> None:
    """The sum over all rows of one product is an operand of the next: they cannot be one step."""
    x = b.parameter([100, WIDTH], name="x")
    y = product(x, WIDTH, WIDTH)
    z = b.Add(product(x, WIDTH, WIDTH), b.ReduceMax(y, np.array([0]), keep_dims=True))
    model = b.model({"z": product(normalised(z), WIDTH, WIDTH), "y": normalised(y)})
    feeds = [normal(100, WIDTH)]
    assert_same(model, feeds)


@pytest.mark.usefixtures("workers")
def test_a_step_of_numpy_joins_no_group_of_few_rows() -> None:
    """Threads share the columns of products with few rows, which numpy would compute on one thread."""
    x = b.parameter([63, WIDTH], name="x")
    feeds = [normal(63, WIDTH)]
    y = b.Softplus(normalised(product(x, WIDTH, WIDTH)))
    assert joined(assert_same(b.model(product(y, WIDTH, WIDTH)), feeds), feeds) == ["MatMul+MVN+Multiply+Add"]


@pytest.mark.usefixtures("workers")
def test_few_rows_in_several_threads_at_once() -> None:
    """Each thread has registers of its own, which hold nothing of the call before."""
    x = b.parameter([3, WIDTH], name="x")
    model = b.model(norm_last(x))
    fast, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    feeds = [normal(3, WIDTH) for _ in range(24)]
    feeds[5][1, 7] = np.nan
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: fast([one])[0], feeds))
    for got, one in zip(found, feeds):
        np.testing.assert_allclose(got, exact([one])[0], rtol=2e-4, atol=2e-4)


def test_a_row_of_nan_is_the_only_one() -> None:
    x = b.parameter([400, WIDTH], name="x")
    feeds = [normal(400, WIDTH)]
    feeds[0][77, 3], feeds[0][205, 0] = np.nan, np.inf
    executable = irrun.compile(b.model(norm_last(x)), exact=False)
    assert joined(executable, feeds)
    assert np.flatnonzero(np.isnan(executable(feeds)[0]).any(1)).tolist() == [77, 205]


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("rows", [1, 5, 7, 130])
@pytest.mark.parametrize("bits", [8, 4])
def test_stored_weights(bits: int, rows: int) -> None:
    """Matrices of integers with scales, multiplied as they are."""
    x = b.parameter([rows, WIDTH], name="x")
    type = {8: "i8", 4: "i4"}[bits]
    y = x
    for _ in range(2):
        codes = RANDOM.integers(-(1 << bits - 1), 1 << bits - 1, (WIDTH, WIDTH)).astype(np.int8)
        weights = b.Multiply(b.Convert(b.constant(codes, type), destination_type="f32"), np.abs(normal(WIDTH, 1)) / 100)
        y = normalised(b.MatMul(y, weights, transpose_b=True))
    feeds = [normal(rows, WIDTH)]
    executable = assert_same(b.model(y), feeds)
    assert joined(executable, feeds) == ["+".join(["MatMul", "MVN", "Multiply", "Add"] * 2)]


def test_rows_of_two_ranks_that_share_an_operand() -> None:
    """Steps of [1, 96, WIDTH] and of [96, WIDTH] are one group, because both read ``scale``."""
    scale = b.parameter([WIDTH], "f32", name="scale")
    inputs = [b.parameter(shape, "f32", name=name) for name, shape in (("x", [1, 96, WIDTH]), ("y", [96, WIDTH]))]
    branches = [product(b.Add(product(x, WIDTH, WIDTH), scale), WIDTH, WIDTH) for x in inputs]
    model = b.model({"a": branches[0], "c": branches[1]}, inputs=[*inputs, scale])
    feeds = [normal(1, 96, WIDTH), normal(96, WIDTH), normal(WIDTH)]
    executable = irrun.compile(model, exact=False)
    assert [step.kernel.algorithm for step in executable.plan.steps] == ["by rows"]
    for found, expected in zip(executable(feeds).arrays, irrun.compile(model, exact=True)(feeds).arrays):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_calls_that_stay_prepared_read_new_memory() -> None:
    """A group prepares its calls again if its inputs or results lie elsewhere than in the run before."""
    model = b.model({"y": norm_first(b.parameter([100, WIDTH], "f32", name="x"))})
    executable, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    memory = normal(3, 100, WIDTH)
    kept = []
    for n in (0, 0, 1, 2, 1, 0):
        memory[n] += 1
        kept.append(executable([memory[n]])[0])
        np.testing.assert_allclose(kept[-1], exact([memory[n]])[0], rtol=2e-4, atol=2e-4)
        assert not any(np.shares_memory(kept[-1], other) for other in kept[:-1])
