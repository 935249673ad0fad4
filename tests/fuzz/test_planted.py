"""Faults that are planted into irrun itself: the judges find each of them in a few random models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from irrun.engines.moves import MOVES
from irrun.fuzz import Disagreement, described, explain, judge, judging
from irrun.fuzz.reached import ALGORITHMS, FAMILIES, algorithms, unreached
from irrun.growing import CYCLE, Graph, Grower, Node, Ref
from irrun.kernels import threads
from irrun.opdef import Value, find
from irrun.running.executor import Executable
from irrun.running.pool import Pool
from irrun.types import Dim

pytestmark = pytest.mark.processes

LIMIT = 60
"""The models among which each fault is found."""
RARE = 600
"""The same for inputs that are the same array: few graphs have two Parameters of one type and shape."""
Where = Callable[[Executable, list[np.ndarray]], bool]


def _in_another_thread(executable: Executable, feeds: list[np.ndarray]) -> bool:
    return threading.current_thread() is not threading.main_thread()


def _with_an_empty_input(executable: Executable, feeds: list[np.ndarray]) -> bool:
    return any(not feed.size for feed in feeds)


def _with_nan(executable: Executable, feeds: list[np.ndarray]) -> bool:
    return any(feed.dtype.kind == "f" and np.isnan(feed).any() for feed in feeds)


def _with_a_layout_of_fortran(executable: Executable, feeds: list[np.ndarray]) -> bool:
    return any(feed.flags.f_contiguous and not feed.flags.c_contiguous for feed in feeds)


def _with_stride_0(executable: Executable, feeds: list[np.ndarray]) -> bool:
    return any(0 in feed.strides for feed in feeds)


def _with_the_same_array_twice(executable: Executable, feeds: list[np.ndarray]) -> bool:
    return len({id(feed) for feed in feeds}) < len(feeds)


def _with_a_plan_for_recurring_dims(executable: Executable, feeds: list[np.ndarray]) -> bool:
    return len(executable.plans) > 1


def _with_state_in_the_second_call(executable: Executable, feeds: list[np.ndarray]) -> bool:
    calls = executable.__dict__.setdefault("calls", 0)
    executable.__dict__["calls"] += 1
    return bool(executable.state) and calls == 1


def _with(algorithm: str) -> Where:
    return lambda executable, feeds: any(algorithm in name for name in algorithms(executable))


PLACES: dict[str, Where] = {
    "another thread": _in_another_thread,
    "an empty input": _with_an_empty_input,
    "NaN": _with_nan,
    "the order of Fortran": _with_a_layout_of_fortran,
    "stride 0": _with_stride_0,
    "the same array twice": _with_the_same_array_twice,
    "recurring dims": _with_a_plan_for_recurring_dims,
    "state in the second call": _with_state_in_the_second_call,
    "a fused attention": _with("ScaledDotProductAttention"),
    "a convolution of Winograd": _with("Winograd"),
    "a packed recurrence": _with(": packed"),
    "channels last": _with("channels last"),
}


def _graphs(starts: bool, limit: int = LIMIT) -> Iterator[Graph]:
    grower = Grower(3)
    for number in range(limit):
        yield grower.grow(4 * number + 3) if starts else grower.grow_chain(number)


def _first(graphs: Iterator[Graph]) -> Disagreement | None:
    return next((found for graph in graphs if graph.results and (found := judge(graph)) is not None), None)


@pytest.mark.parametrize("place", PLACES)
def test_wrong_values_are_found(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only in one place, and by a hundredth."""
    arrays, is_there = judging._arrays, PLACES[place]

    def wrong(executable: Executable, feeds: list[np.ndarray]) -> list[np.ndarray]:
        outputs = arrays(executable, feeds)
        if executable.exact or not is_there(executable, feeds):
            return outputs
        return [o * o.dtype.type(1.01) + o.dtype.type(0.01) if o.dtype.kind == "f" else o for o in outputs]

    monkeypatch.setattr(judging, "_arrays", wrong)
    starts = place in ("a fused attention", "a convolution of Winograd", "a packed recurrence", "channels last")
    graphs = _graphs(starts, RARE if place == "the same array twice" else LIMIT)
    found = _first(replace(graph, special=True) for graph in graphs) if place == "NaN" else _first(graphs)
    assert found is not None
    assert found.kind == "values"
    assert found.judge == ("threads" if place == "another thread" else "exact")


@pytest.mark.parametrize("what", ["an input", "an output", "an output as an input"])
def test_what_a_run_must_not_change(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its inputs, and the outputs of the run before, which may be its inputs as well."""
    arrays = judging._arrays
    before: list[np.ndarray] = []

    def wrong(executable: Executable, feeds: list[np.ndarray]) -> list[np.ndarray]:
        outputs = arrays(executable, feeds)
        if not executable.exact:
            chained = any(feed is output for feed in feeds for output in before)
            changed = {"an input": feeds, "an output": before, "an output as an input": feeds if chained else []}[what]
            for array in changed:
                if array.dtype.kind == "f" and array.size and array.flags.writeable and np.isfinite(array).all():
                    array += 1
            before[:] = outputs
        return outputs

    monkeypatch.setattr(judging, "_arrays", wrong)
    found = _first(_graphs(False))
    assert found is not None
    assert "was changed" in found.detail or "not" in found.detail
    assert (found.judge, found.kind) == ("exact", "values")


def test_a_moved_element_is_equal_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = judging._arrays

    def wrong(executable: Executable, feeds: list[np.ndarray]) -> list[np.ndarray]:
        outputs = arrays(executable, feeds)
        types = {layer.type for layer in executable.model.layers.values()} - {"Parameter", "Const", "Result"}
        if executable.exact or not types <= MOVES:
            return outputs
        return [np.nextafter(o, np.inf) if o.dtype.kind == "f" else o for o in outputs]

    monkeypatch.setattr(judging, "_arrays", wrong)
    assert _first(_graphs(False)) is not None


def _longer(infer: Callable[..., Any]) -> Callable[..., Value]:
    """Return a shape rule whose last dim is too large by one."""

    def wrong(self: Any, *arguments: Any) -> Value:
        value = infer(self, *arguments)
        assert isinstance(value, Value)
        assert value.shape.dims is not None
        return value.reshaped([*value.shape.dims[:-1], value.shape.dims[-1] + Dim(1)])

    return wrong


def test_wrong_inference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    (cls,) = find("Tile").values()
    monkeypatch.setattr(cls, "infer", _longer(cls.infer))
    found = _first(_graphs(False))
    assert found is not None
    assert (found.judge, found.kind) in (
        ("check", "shape"),
        ("check", "finding"),
        ("check", "refusal"),
        ("exact", "refusal"),
    )


@pytest.mark.parametrize("feeds", ["empty", "nonfinite"])
def test_no_departure_explains_wrong_inference(feeds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the engine has departures, also with a tensor that has no elements, or NaN."""
    (cls,) = find("Tile").values()
    data = np.zeros((0, 2), np.float32) if feeds == "empty" else np.full((1, 2), np.nan, np.float32)
    nodes = [
        Node("parameter", type="f32", shape=data.shape, data=data),
        Node("constant", type="i64", shape=(2,), data=np.ones(2, np.int64)),
        Node("layer", cls, {}, [Ref(0), Ref(1)]),
    ]
    graph = Graph(1, nodes, [Ref(2)], [{}])
    monkeypatch.setattr(cls, "infer", _longer(cls.infer))
    found = judge(graph)
    assert found is not None
    assert (found.judge, found.kind) == ("check", "shape")
    verdict = explain(graph, found, None)
    assert feeds in described(graph, verdict.disagreement)
    assert not verdict.names


@pytest.mark.parametrize("dims", ["any", "open"])
def test_the_refusal_of_a_valid_model_is_found(dims: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in find("SoftMax").values():
        infer = cls.infer

        def refusing(self: Any, at: Any, data: Value, infer: Any = infer) -> Value:
            at.require(dims == "open" and data.shape.is_static, "C1", "no such model")
            return infer(self, at, data)

        monkeypatch.setattr(cls, "infer", refusing)
    found = _first(_graphs(False))
    assert found is not None
    assert (found.judge, found.kind) == ("check", "refusal")
    assert "no such model" in found.detail


# ---------------------------------------------------------------------------------------------
# what a campaign reaches


def test_the_starts_reach_every_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two cycles, also work that several threads share, and pooled memory."""
    shared: list[object] = []
    lent: list[object] = []
    finish, take = threads._Job.finish, Pool.take
    monkeypatch.setattr(threads._Job, "finish", lambda job: (shared.append(job), finish(job))[1])
    monkeypatch.setattr(Pool, "take", lambda pool, *how: (lent.append(pool), take(pool, *how))[1])
    grower, reached = Grower(4), dict[str, int]()
    for number in range(3, 2 * CYCLE, 4):
        found = set[str]()
        assert judge(grower.grow(number), None, found) is None
        reached |= {name: reached.get(name, 0) + 1 for name in found}
    assert unreached(reached, 2 * CYCLE) == []
    assert lent
    if threads.threads() > 1:
        assert shared


def test_what_is_not_reached_is_said() -> None:
    enough: dict[str, int] = dict.fromkeys((*ALGORITHMS, *(parts[0] for parts in FAMILIES.values())), 1)
    assert unreached(enough, 2 * CYCLE) == []
    assert unreached(enough | {"fused: Gelu": 0}, 2 * CYCLE) == ["fused: Gelu: 0, at least 1"]
    assert unreached({}, CYCLE - 1) == []
    assert len(unreached({}, CYCLE)) == len(ALGORITHMS) + len(FAMILIES)
