"""Sharing among threads: everything is done once, in the way one thread would do it, wherever threads can be had."""

import contextlib
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import irrun
from irrun import build as b
from irrun.kernels import blas
from irrun.kernels import matmul as kernel_matmul
from irrun.kernels import threads as kernel_threads
from irrun.kernels.blocks import blocks
from irrun.kernels.matmul import matmul
from irrun.kernels.threads import WORTH, each, fill, shares

RNG = np.random.default_rng(0)
_GUARD = 300
"""Seconds after which a thread or process counts as hung: far more than any machine needs."""


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets the number of threads."""

    def clear() -> None:
        kernel_threads.threads.cache_clear()
        kernel_threads._tasks.cache_clear()
        kernel_threads._controller.cache_clear()  # a test before may have loaded one more BLAS

    def set_to(count: int) -> None:
        monkeypatch.setenv("IRRUN_THREADS", str(count))
        clear()

    yield set_to
    clear()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"IRRUN_THREADS": "3", "OPENBLAS_NUM_THREADS": "5"}, 3),
        ({"IRRUN_THREADS": "", "OPENBLAS_NUM_THREADS": "5", "OMP_NUM_THREADS": "2"}, 5),
        ({"IRRUN_THREADS": "0", "OPENBLAS_NUM_THREADS": "many", "OMP_NUM_THREADS": "2"}, 2),
    ],
)
def test_how_many(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: int) -> None:
    for name in ("IRRUN_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert kernel_threads.threads.__wrapped__() == expected


def test_as_many_as_processors_but_not_too_many(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("IRRUN_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    limit = tmp_path / "cpu.max"
    monkeypatch.setattr(kernel_threads, "_CGROUP", limit)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)), raising=False)
    assert kernel_threads.threads.__wrapped__() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(100)))
    assert kernel_threads.threads.__wrapped__() == 8
    for text, expected in (("max 100000\n", 8), ("150000 100000\n", 2), ("20000 100000\n", 1), ("?", 8)):
        limit.write_text(text)
        assert kernel_threads.threads.__wrapped__() == expected


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 1000])
def test_shares_cover(use: Callable[[int], None], count: int) -> None:
    use(3)
    cuts = shares(count, WORTH)
    assert [n for cut in cuts for n in range(cut.start, cut.stop)] == list(range(count))
    assert len(cuts) == min(count, 3)
    assert all(cut.start % 10 == 0 for cut in shares(count, WORTH, 10))
    assert sum(cut.stop - cut.start for cut in shares(count, WORTH, 10)) == count
    assert shares(count, WORTH - 1) == [slice(0, count)]


def test_each_part_once_on_all_threads(use: Callable[[int], None]) -> None:
    use(3)
    together, done = threading.Barrier(3, timeout=_GUARD), []

    def part(n: int) -> None:
        if n < 3:
            together.wait()  # three must be at it at once
        done.append((n, threading.get_ident()))

    each(part, range(50), WORTH)
    assert sorted(n for n, _ in done) == list(range(50))
    assert len({thread for n, thread in done if n < 3}) == 3


def test_little_stays_here(use: Callable[[int], None]) -> None:
    use(3)
    done: list[int] = []
    each(lambda n: done.append(threading.get_ident()), range(20), WORTH - 1)
    assert set(done) == {threading.get_ident()}


def test_parts_of_parts_stay_where_they_are(use: Callable[[int], None]) -> None:
    use(2)
    found: list[set[int]] = []

    def outer(_: int) -> None:
        inner: list[int] = []
        each(lambda n: inner.append(threading.get_ident()), range(5), WORTH)
        assert len(inner) == 5
        found.append(set(inner))

    each(outer, range(8), WORTH)
    assert len(found) == 8
    assert all(len(threads) == 1 for threads in found)


def test_who_comes_late_is_not_waited_for(use: Callable[[int], None]) -> None:
    use(2)
    tasks, busy, done = kernel_threads._tasks(), threading.Event(), []
    assert tasks is not None

    def hold() -> None:
        busy.wait(_GUARD)

    tasks.put(hold)
    each(done.append, range(5), WORTH)
    assert done == list(range(5))
    array = np.zeros(5)
    held = weakref.ref(array)
    each(array.item, range(5), WORTH)
    del array
    assert held() is None, "the thread that comes late keeps what the parts need"
    assert not busy.is_set()
    busy.set()
    each(done.append, range(5), WORTH)
    assert sorted(done) == sorted([*range(5), *range(5)])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_a_part_raises(use: Callable[[int], None], error: type[BaseException]) -> None:
    use(2)
    done: list[int] = []

    def part(n: int) -> None:
        time.sleep(0.001)
        if n == 3:
            raise error("three")
        done.append(n)

    with pytest.raises(error, match="three"):
        each(part, range(10_000), WORTH)
    assert len(done) < 5_000  # the others stop
    each(done.append, range(5), WORTH)  # and work again
    assert sorted(done[-5:]) == list(range(5))


def test_warnings_are_those_of_the_caller(use: Callable[[int], None]) -> None:
    use(3)
    zeros = np.zeros(100, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="ignore"):
            each(lambda _: zeros / zeros, range(30), WORTH)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        each(lambda _: zeros / zeros, range(30), WORTH)


def test_where_no_thread_can_be_started(use: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    use(3)

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    done: list[int] = []
    each(done.append, range(20), WORTH)
    assert done == list(range(20))


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 400, 500), (1, 1, 300_000)])
def test_fill(use: Callable[[int], None], shape: tuple[int, ...]) -> None:
    use(3)
    source, target = np.asarray(RNG.standard_normal(shape)), np.zeros(shape)
    fill(target, source)
    np.testing.assert_array_equal(target, source)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((300, 700), (700, 500)),
        ((1000, 300), (300, 200)),
        ((3, 3000), (3000, 4000)),
        ((12, 100, 500), (12, 500, 300)),
        ((1, 12, 100, 500), (12, 500, 300)),
        ((7, 1, 100, 500), (1, 4, 500, 300)),
        ((300, 700), (9, 700, 100)),
        ((9, 100, 700), (700, 300)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product(
    use: Callable[[int], None], left: tuple[int, ...], right: tuple[int, ...], dtype: type[np.floating]
) -> None:
    use(3)
    a, b = (RNG.integers(-8, 9, shape).astype(dtype) for shape in (left, right))  # whose products are exact
    expected = np.einsum("...ij,...jk->...ik", a, b, optimize=True)
    with kernel_threads.products_are_shared_here():
        assert kernel_threads.products_are_shared()
        np.testing.assert_array_equal(matmul(a, b), expected)
        np.testing.assert_array_equal(matmul(a[..., ::-1], b[..., ::-1, :]), expected)
        out = np.empty((*expected.shape[:-1], expected.shape[-1] + 1), dtype)[..., :-1]
        assert matmul(a, b, out) is out
        np.testing.assert_array_equal(out, expected)
    assert not kernel_threads.products_are_shared()


@pytest.mark.parametrize(
    ("counts", "whole", "expected"),
    [
        # 1,024 bytes are 256 elements of 4 bytes; 256 bytes in a row are not cut
        ((1000,), (), [256, 256, 256, 232]),
        ((2, 300), (), [192, 108, 192, 108]),
        ((3, 100), (), [200, 100]),  # two rows are 800 bytes
        ((4, 2, 64), (), [256, 256]),
        ((5, 40, 2), (), [240, 160]),  # three of 320
        ((3, 2, 1000), (2,), [1000] * 6),
        ((3, 200), (0,), [192, 192, 192, 24]),
        ((3, 70), (0, 1), [210]),
        ((0, 5), (), []),
        ((), (), [1]),
    ],
)
def test_blocks(counts: tuple[int, ...], whole: tuple[int, ...], expected: list[int]) -> None:
    """They cover all once, each about as large as the limit, in one piece where they can be."""
    times = np.zeros(counts, int)
    sizes = []
    for index in blocks(counts, 4, 1024, whole):
        times[index] += 1
        sizes.append(times[index].size)
    assert (times == 1).all()
    assert sizes == expected


def test_which_library_multiplies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MKL where a package of that name lists its library, and IRRUN_BLAS does not say numpy."""
    monkeypatch.delenv("IRRUN_BLAS", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert blas.expected() == "numpy"
    record = tmp_path / "mkl-2025.1.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("mkl/readme.txt,,\nmkl_rt.lib,,\nmkl_core.2.dll,,\n")
    assert blas.expected() == "numpy"
    record.write_text("mkl/readme.txt,,\n../lib/libmkl_rt.so.2,sha256=abc,123\n../lib/libmkl_core.so.2,,\n")
    assert blas.expected() == "mkl"
    assert list(blas.mkl_libraries()) == [tmp_path / "../lib/libmkl_rt.so.2"]
    monkeypatch.setenv("IRRUN_BLAS", "numpy")
    assert blas.expected() == "numpy"


class _Watch:
    """A hook that sees how many threads BLAS takes."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def before(self, step: object, inputs: object) -> None:
        self.seen += [library["num_threads"] for library in _blas()]

    def after(self, step: object, inputs: object, outputs: object) -> None: ...


def _blas() -> list[dict[str, int]]:
    return ThreadpoolController().select(user_api="blas").info()


def test_blas_takes_one_thread_while_a_model_runs(use: Callable[[int], None]) -> None:
    use(2)
    x = b.parameter([64, 512], "f32", name="x")
    run = irrun.compile(b.model({"y": b.MatMul(x, b.constant(np.ones((512, 512), np.float32)))}))
    feed, watch = np.ones((64, 512), np.float32), _Watch()
    with threadpool_limits(3, "blas"):
        before = _blas()
        for feeds in ([feed], [feed], [np.ones(1)]):
            with contextlib.suppress(irrun.FeedError):
                run(feeds, hooks=[watch])
            assert _blas() == before
    assert watch.seen == [1] * 2 * len(before)
    watch.seen.clear()
    started = [threading.Thread(target=run, args=([feed],), kwargs={"hooks": [watch]}) for _ in range(8)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert len(watch.seen) == 8 * len(before)
    assert not kernel_threads.products_are_shared()


def test_the_last_of_overlapping_runs_lifts_the_limit(use: Callable[[int], None]) -> None:
    """The number of BLAS' threads must not change while another run computes a product."""
    use(2)
    with threadpool_limits(3, "blas"):
        before = _blas()
        first, second = kernel_threads.products_are_shared_here(), kernel_threads.products_are_shared_here()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert {library["num_threads"] for library in _blas()} == {1}
        assert kernel_threads.products_are_shared()
        second.__exit__(None, None, None)
        assert _blas() == before
        assert not kernel_threads.products_are_shared()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_two_threads_run_a_model_while_another_forks() -> None:
    script = """
import os, threading, time, warnings
import numpy as np
import irrun
from irrun import build as b

warnings.simplefilter("ignore")  # Python warns of forks beside threads
rng = np.random.default_rng(0)
weights = rng.standard_normal((512, 2048)).astype(np.float32)
x = b.parameter([900, 512], "f32", name="x")
run = irrun.compile(b.model({"y": b.SoftMax(b.ReLU(b.MatMul(x, b.constant(weights))), axis=1)}), exact=False)
feed = rng.standard_normal((900, 512)).astype(np.float32)
expected, stop, differences = run([feed])[0], time.monotonic() + 10, []


def work():
    while time.monotonic() < stop:
        differences.append(np.abs(run([feed])[0] - expected).max())


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
while time.monotonic() < stop:
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.05)
for thread in threads:
    thread.join()
assert max(differences) < 1e-3, differences
"""
    subprocess.run([sys.executable, "-c", script], env=os.environ | {"IRRUN_THREADS": "2"}, check=True, timeout=_GUARD)


@pytest.mark.parametrize("exact", [False, True])
def test_exact_runs_on_one_thread(use: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, exact: bool) -> None:
    """An exact run starts no thread and asks for no BLAS but numpy's; any other run of this model does both."""
    use(2)
    used: list[str] = []
    tasks, library = kernel_threads._tasks, kernel_matmul._library
    x = b.parameter([256, 512], "f32", name="x")
    y = b.MatMul(b.MatMul(x, b.constant(np.ones((512, 512), np.float32))), b.Einsum(x, x, equation="ab,ac->bc"))
    executable = irrun.compile(b.model({"y": b.Tanh(y)}), exact=exact)
    with monkeypatch.context() as patched:
        patched.setattr(kernel_threads, "_tasks", lambda: (used.append("threads"), tasks())[1])
        patched.setattr(kernel_matmul, "_library", lambda: (used.append("library"), library())[1])
        executable([np.ones((256, 512), np.float32)])
    assert set(used) == (set() if exact else {"threads", "library"})


def test_small_models_leave_blas_alone() -> None:
    x = b.parameter([4, 8], "f32", name="x")
    run = irrun.compile(b.model({"y": b.MatMul(x, b.constant(np.ones((8, 8), np.float32)))}))
    watch = _Watch()
    with threadpool_limits(3, "blas"):
        before = _blas()
        run([np.ones((4, 8), np.float32)], hooks=[watch])
    assert watch.seen == [library["num_threads"] for library in before] * len(watch.seen[:: len(before)])
    assert watch.seen


def test_a_model_gives_the_same_on_any_number(use: Callable[[int], None]) -> None:
    x = b.parameter([1, 32, 60, 60], "f32", name="x")
    same = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}

    def random(*shape: int) -> np.ndarray:
        return RNG.standard_normal(shape).astype(np.float32)

    y = b.ReLU(b.Add(b.Convolution(x, b.constant(random(32, 32, 3, 3)), **same), b.constant(random(1, 32, 1, 1))))
    y = b.Clamp(b.GroupConvolution(y, b.constant(random(32, 1, 1, 3, 3)), **same), min=0, max=6)
    y = b.Sigmoid(b.Add(b.Convolution(y, b.constant(random(64, 32, 5, 5)), **same), np.float32(1)))
    y = b.SoftMax(b.Gelu(b.Reshape(y, [64, -1], special_zero=False)), axis=1)
    model, feed = b.model({"y": y, "z": b.Sigmoid(b.Multiply(y, b.Tanh(y)))}), random(1, 32, 60, 60)
    found = []
    for count in (1, 2, 5):
        use(count)
        found.append(irrun.compile(model, exact=False)([feed]).arrays)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)  # the last bits are of the size of the products


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    script = """
import os, warnings
from irrun.kernels.threads import WORTH, each, products_are_shared, products_are_shared_here
warnings.simplefilter("ignore")  # of forking with threads
each(lambda n: None, range(9), WORTH)
with products_are_shared_here():
    child = os.fork()
assert not products_are_shared()
done = []
each(done.append, range(9), WORTH)
assert sorted(done) == list(range(9))
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both")
"""
    environment = {**os.environ, "IRRUN_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=_GUARD, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("both\n", "", 0)
