"""Result-1. (What it hands out: test_executor.py.)"""

from irrun.inference.layer import infer
from irrun.opdef import Site
from kit import *

REFUSALS = [
    Refusal("ir205-nothing", "Result-1", []),
    Refusal("ir205-two", "Result-1", ["f32[2]", "f32[2]"]),
]


def test_takes_anything_and_gives_nothing() -> None:
    assert operation("Result-1").outputs == 0
    for text in ("f32[2,?]", "string[...]", "boolean[]", "u1[0]", "i64{1,2}"):
        assert infer(operation("Result-1"), Site(outputs=0), [tensor(text)], {}) == ()
