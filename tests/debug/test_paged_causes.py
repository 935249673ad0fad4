"""The sentences about constants, and inputs of calls that are corrected one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from irrun.debug.paged.cached import shared_slots
from irrun.debug.paged.calls import Call, Piece, Plan, plans
from irrun.debug.paged.constants import difference, spans
from irrun.debug.paged.inputs import wrong_input

ROWS = np.arange(1, 25, dtype=np.float32).reshape(6, 4)


def _changed(**places: float) -> np.ndarray:
    """Return ``ROWS`` with other elements: ``r2c3=9`` is 9 in row 2, column 3."""
    other = ROWS.copy()
    for place, value in places.items():
        other[int(place[1]), int(place[3])] = value
    return other


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ROWS.copy(), None),
        (ROWS[[0, 2, 1, 3, 4, 5]], "has at 1, 2 of axis 0 what belongs at 2, 1"),
        (ROWS[[0, 2, 3, 1, 4, 5]], "has at 1 to 3 of axis 0 what belongs at 2, 3, 1"),
        (ROWS[:, ::-1], "has at 0 to 3 of axis 1 what belongs at 3, 2, 1, 0"),
        (ROWS * [[1], [1], [3], [3], [3], [1]], "is 3 times that of the stateful model at 2 to 4 of axis 0"),
        (ROWS * [1, -1, 1, 1], "is -1 times that of the stateful model at 1 of axis 1"),
        (ROWS * 0.5, "is 0.5 times that of the stateful model"),
        (_changed(r1c0=np.nan, r1c1=np.nan, r1c2=np.nan, r1c3=np.nan), "is NaN at 1 of axis 0"),
        (_changed(r2c3=9), "is 9 at [2, 3], not 12"),
        (_changed(r0c0=7, r5c1=0.5), "is 7 at [0, 0], not 1; 0.5 at [5, 1], not 22"),
        (_changed(r0c0=7, r1c1=7, r2c2=7, r5c1=7), "differs in 4 of 24 elements"),
        (ROWS[:5], "has the shape [5, 4], not [6, 4]"),
    ],
)
def test_a_constant(found: np.ndarray, said: str | None) -> None:
    assert difference(found.astype(np.float32), ROWS) == said


def test_nan_is_nan() -> None:
    rows = np.array([np.nan, 1.0])
    assert difference(rows, rows.copy()) is None


def test_spans() -> None:
    assert spans([0, 1, 3, 4, 5, 9]) == "0, 1, 3 to 5, 9"
    assert spans([4, 3]) == "4, 3"


def _plan(**inputs: list[int] | int) -> Plan:
    """Return one call of two sequences: 2 tokens of 3 before, and the first 3 of another."""
    right = {
        "past_lens": [3, 0],
        "position_ids": [3, 4, 0, 1, 2],
        "subsequence_begins": [0, 2, 5],
        "max_context_len": 5,
    }
    given = {name: np.array(value, np.int32) for name, value in {**right, **inputs}.items()}
    return Plan("", [], [Call((Piece(0, 3, 5), Piece(1, 0, 3)), given)])


@pytest.mark.parametrize(
    ("inputs", "needed", "said"),
    [
        ({"past_lens": [2, 0]}, {"past_lens"}, "past_lens[0] is 2, not 3"),
        ({"subsequence_begins": [0, 3, 5]}, {"subsequence_begins"}, "subsequence_begins[1] is 3, not 2"),
        ({"max_context_len": 4}, {"max_context_len"}, "max_context_len is 4, not 5"),
        ({"position_ids": [3, 4, 0, 1]}, {"position_ids"}, "position_ids has 4 elements, not 5"),
        (
            {"past_lens": [4, 0], "position_ids": [4, 5, 0, 1, 2]},
            {"past_lens", "position_ids"},
            "past_lens[0] is 4, not 3 and position_ids[0] is 4, not 3",
        ),
        ({"past_lens": [4, 0], "max_context_len": 4}, {"past_lens"}, "past_lens[0] is 4, not 3"),
        ({"max_context_len": 90}, set(), None),
        ({"past_lens": [2, 0]}, {"block_indices"}, None),
    ],
    ids=lambda value: "" if isinstance(value, set) else str(value),
)
def test_inputs_that_are_corrected(inputs: dict[str, list[int] | int], needed: set[str], said: str | None) -> None:
    """A correction counts if the logits are then right: here, if the ``needed`` inputs are as they should be."""
    right = _plan().calls[0].inputs

    def agrees(calls: Sequence[Call]) -> bool:
        own = calls[0].inputs
        return all(name in own and np.array_equal(own[name], right[name]) for name in needed)

    found = wrong_input(_plan(**inputs), 0, agrees)
    assert found == (None if said is None else (0, said))


def test_two_sequences_in_one_block() -> None:
    """Tokens 3 and 4 of sequence 0 lie in slots 3 and 0 of the blocks 5 and 6, those of sequence 1 in block 6."""
    tables = {"block_indices": np.array([5, 6, 6], np.int32), "block_indices_begins": np.array([0, 2, 3], np.int32)}
    call = Call((Piece(0, 3, 5), Piece(1, 0, 3)), tables)
    assert shared_slots(call, 0, 4) == "sequence 1 writes to block 6, slots 0, of sequence 0"
    assert shared_slots(call, 1, 4) == "sequence 0 writes to block 6, slots 0, of sequence 1"
    past = Call((Piece(0, 4, 5), Piece(1, 0, 3)), {**tables, "block_indices": np.array([5, 6, 5], np.int32)})
    assert shared_slots(past, 0, 4) == "sequence 1 writes to block 5, slots 0 to 2, of sequence 0"
    apart = Call(call.pieces, {**tables, "block_indices": np.array([5, 6, 7], np.int32)})
    assert shared_slots(apart, 0, 4) is None


def test_the_blocks_of_schedules() -> None:
    """Prompts of 10 tokens in blocks of 4: the tables have room, and the evicted block is in none."""
    first, second = np.arange(10), np.arange(10) + 10
    made = {plan.name: plan for plan in plans([first, second], 4, evicts=True)}
    for plan in made.values():
        for call in plan.calls:
            counts, tables = np.diff(call.inputs["subsequence_begins"]), np.diff(call.inputs["block_indices_begins"])
            assert (4 * tables >= call.inputs["past_lens"] + counts).all()
            assert call.inputs["max_context_len"] == (call.inputs["past_lens"] + counts).max()
    before, after = made["evicted block"].calls[0], made["evicted block"].calls[2]
    table = before.inputs["block_indices"].tolist()
    assert after.inputs["block_indices"].tolist()[:2] == [table[0], table[2]]
    assert after.inputs["past_lens"].tolist() == [4, 4]
    assert after.inputs["position_ids"].tolist() == [8, 8]
    assert after.place(0, 8, 4) == (table[2], 0)
    assert "evicted block" not in {plan.name for plan in plans([first, second], 4, evicts=False)}


def test_the_states_of_schedules() -> None:
    """A call reads the state after its past, the block behind all others before the first token, and writes behind."""
    prompts = [np.arange(10), np.arange(10)]
    pieces = next(plan for plan in plans(prompts, 4, evicts=False) if plan.name == "pieces")
    own = [call for call in pieces.calls if call.pieces[0].sequence == 0]
    tables = [call.inputs["la.block_indices"].tolist() for call in own]
    blocks = own[0].inputs["block_indices"].tolist()
    assert [(call.pieces[0].begin, call.pieces[0].end) for call in own] == [
        (0, 1), (1, 3), (3, 4), (4, 6), (6, 8), (8, 9), (9, 10),
    ]  # fmt: skip
    assert tables == [
        [9, blocks[0]], [blocks[0], blocks[0]], [blocks[0], blocks[0]], [blocks[0], blocks[1]],
        [blocks[1], blocks[1]], [blocks[1], blocks[2]], [blocks[2], blocks[2]],
    ]  # fmt: skip
