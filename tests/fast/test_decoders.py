"""Language models: variables that grow in each run."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import irrun
import irrun.build as b
from irrun.diagnostics import ExecutionError
from irrun.opdef import Variables
from irrun.running.executor import Executable


def cache(*, axis: int = 2, beams: bool = False, fails: bool = False) -> Executable:
    """Return a model that appends its input [B,2,n,3] to a variable and returns the sum, and the whole variable.

    With ``fails``, a further input is added after that, which fails unless it has one element or three.
    """
    x = b.parameter([None, 2, None, 3], "f32", name="x")
    past = b.ReadValue(
        np.zeros((1, 2, 0, 3), np.float32), variable_id="v", variable_type="f32", variable_shape=[None, 2, None, 3],
        opset=6,
    )  # fmt: skip
    read = b.Gather(past, b.parameter([None], "i32", name="beams"), 0) if beams else past
    whole = b.Concat([read, x], axis=axis)
    sums = b.ReduceSum(whole, [axis], keep_dims=True)
    results = [sums, whole]
    if fails:
        results.append(b.Add(sums, b.parameter([None], "f32", name="late")))
    return irrun.compile(b.model(results, sinks=[b.Assign(whole, variable_id="v")]))


def rows(count: int, start: float = 0, batch: int = 1) -> np.ndarray:
    numbers = np.arange(batch * 2 * count * 3, dtype=np.float32) + np.float32(start)
    return numbers.reshape(batch, 2, count, 3)


@pytest.mark.parametrize("axis", [2, -2])
def test_a_growing_variable_holds_all_that_was_appended(axis: int) -> None:
    model = cache(axis=axis)
    want = np.zeros((1, 2, 0, 3), np.float32)
    for number, count in enumerate([5, *[1] * 60, 7, 1]):
        new = rows(count, number * 100)
        want = np.concatenate([want, new], 2)
        sums, whole = model([new]).arrays
        np.testing.assert_array_equal(whole, want)
        np.testing.assert_array_equal(sums, want.sum(2, keepdims=True))
        np.testing.assert_array_equal(model.state["v"], want)


def test_most_runs_copy_no_row_of_the_past() -> None:
    model = cache()
    model([rows(8)])
    moves = 0
    for _ in range(500):
        before = model.state["v"]
        model([rows(1)])
        moves += not np.shares_memory(before, model.state["v"])
    assert model.state["v"].shape[2] == 508
    assert moves <= 8  # each time, the room becomes half as large again


def test_an_array_that_a_caller_keeps_does_not_change() -> None:
    model = cache()
    kept = [(array, array.copy()) for n in range(5) for array in (*model([rows(1, n)]).arrays, model.state["v"])]
    model.reset_state()
    for n in range(5):
        model([rows(2, 50 + n)])
    for array, copy in kept:
        np.testing.assert_array_equal(array, copy)


def test_what_a_caller_writes_to_an_output_does_not_reach_the_variable() -> None:
    model = cache()
    model([rows(3)])[1][:] = 99
    np.testing.assert_array_equal(model([rows(1, 5)])[1], np.concatenate([rows(3), rows(1, 5)], 2))


def test_a_value_that_the_caller_sets_replaces_the_buffer() -> None:
    model = cache()
    model([rows(3)])
    variables = model._interpreter.variables.values  # as the interface of OpenVINO sets a state
    variables["v"] = rows(2, 40)
    np.testing.assert_array_equal(model([rows(1, 7)])[1], np.concatenate([rows(2, 40), rows(1, 7)], 2))
    variables["v"] = variables["v"][:, :, :1]  # a beginning of the buffer
    np.testing.assert_array_equal(model([rows(1, 9)])[1], np.concatenate([rows(2, 40)[:, :, :1], rows(1, 9)], 2))


def test_reset_begins_anew() -> None:
    model = cache()
    model([rows(3)])
    model.reset_state()
    assert not model.state
    np.testing.assert_array_equal(model([rows(2, 9)])[1], rows(2, 9))


def test_a_run_that_fails_leaves_the_variable_as_it_was() -> None:
    model, one = cache(fails=True), np.ones(1, np.float32)
    model({"x": rows(3), "late": one})
    with pytest.raises(ExecutionError):
        model({"x": rows(1, 7), "late": np.ones(2, np.float32)})
    np.testing.assert_array_equal(model.state["v"], rows(3))
    wholes = [model({"x": rows(1, number), "late": one})[1] for number in range(3)]
    np.testing.assert_array_equal(wholes[-1], np.concatenate([rows(3), rows(1, 0), rows(1, 1), rows(1, 2)], 2))


@pytest.mark.parametrize("beams", [False, True])
def test_shapes_that_do_not_fit_are_refused(beams: bool) -> None:
    model = cache(beams=beams)
    chosen = [np.zeros(1, np.int32)] if beams else []
    model([rows(3), *chosen])
    with pytest.raises(ExecutionError, match="Concat-1 C3"):
        model([rows(1, batch=2), *chosen])
    np.testing.assert_array_equal(model.state["v"], rows(3))


def test_beams_that_change_their_places() -> None:
    model = cache(beams=True)
    generator = np.random.default_rng(0)
    first = rows(4, batch=3)
    want = model({"x": first[:1], "beams": np.zeros(1, np.int32)})[1]
    np.testing.assert_array_equal(want, first[:1])
    assert "Gather" not in [step.op.type for step in model.plan.steps]
    orders = [[0, 0, 0], [0, 1, 2], [0, 1, 2], [2, 0, 0], [0, 1, 2], [1, 1, 2], [2, 1, 0]]
    for number, order in enumerate(orders):
        new = generator.random((3, 2, 1, 3), np.float32)
        before = model.state["v"]
        whole = model({"x": new, "beams": np.array(order, np.int32)})[1]
        want = np.concatenate([want[order], new], 2)
        np.testing.assert_array_equal(whole, want)
        assert np.shares_memory(before, model.state["v"]) == (order == [0, 1, 2]), number


def test_two_that_append_to_one_value() -> None:
    x = b.parameter([1, None], "f32", name="x")
    past = b.ReadValue(
        np.zeros((1, 0), np.float32), variable_id="v", variable_type="f32", variable_shape=[1, None], opset=6
    )
    whole, other = b.Concat([past, x], axis=1), b.Concat([past, b.Negative(x)], axis=1)
    model = irrun.compile(b.model([whole, other], sinks=[b.Assign(whole, variable_id="v")]))
    want = np.zeros((1, 0), np.float32)
    for n in range(5):
        new = np.full((1, 2), n, np.float32)
        first, second = model([new]).arrays
        np.testing.assert_array_equal(first, np.concatenate([want, new], 1))
        np.testing.assert_array_equal(second, np.concatenate([want, -new], 1))
        want = np.concatenate([want, new], 1)


def test_two_runs_that_append_to_one_value() -> None:
    variables = Variables()
    start = np.zeros((1, 3), np.float32)
    variables.assign("v", variables.appended("v", start[:, :0], [start], 1))
    variables.commit()
    past = variables.values["v"]
    first = variables.appended("v", past, [np.ones((1, 1), np.float32)], 1)
    second = variables.appended("v", past, [np.full((1, 1), 2, np.float32)], 1)
    assert (first.tolist(), second.tolist()) == ([[0, 0, 0, 1]], [[0, 0, 0, 2]])


def test_threads_that_run_one_model() -> None:
    """Which of them extends the variable is open. But what a run returns begins with a past and ends with its rows."""
    model = cache()
    model([rows(4)])
    wrong: list[np.ndarray] = []

    def work(number: int) -> None:
        for turn in range(30):
            new = np.full((1, 2, 1, 3), 1000 * number + turn, np.float32)
            whole = model([new])[1]
            if not (whole[:, :, -1:] == new).all() or not (whole[:, :, :4] == rows(4)).all():
                wrong.append(whole)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_only_one_run_at_a_time_appends_to_variables_that_grow_together() -> None:
    variables, ids = Variables(), ("k", "v")
    for id in ids:
        variables.assign(id, variables.extended(id, np.zeros((1, 4), np.float32), 1, 1))
    together = variables.together(ids)
    assert together is not None
    variables.commit()
    assert variables.grow(together) == 6
    assert variables.grow(together) == 0
    first = together.buffers["k"]
    first[0, 5] = 1  # the run that has begun first
    for id in ids:
        past = variables.read(id)
        assert past is not None
        assert past.shape == (1, 5)
        longer = variables.extended(id, past, 1, 1)
        longer[0, 5] = 2  # the second
        variables.assign(id, longer)
    assert first[0, 5] == 1
    variables.commit()
    assert variables.values["k"][0, 5] == 2
    assert variables.grow(together) == 0
