"""``python -m tools releases``: how rules are learned, and how operation sets are read off answers."""

from __future__ import annotations

import numpy as np

from releases.learning import Row, Sample, learn
from releases.opsets import internal_operations, operation_sets

RELEASES = ("2022.1", "2023.0", "2024.0")


def _sample(rows: list[Row], *answers: int) -> Sample:
    return Sample(rows, np.array(answers), np.zeros(3, bool))


def _row(operation: str, *sentences: str, blocks: bool = False) -> Row:
    return (operation.partition("-")[0], operation), frozenset(sentences), blocks


def test_a_rule_names_what_refused_models_have_and_loaded_ones_have_not() -> None:
    refused = [_sample([_row("Abs-1", "an input is u3", f"axis={n}")], 1, 1, 0) for n in range(3)]
    loaded = [_sample([_row("Abs-1", "an input is u6", f"axis={n}")], 0, 0, 0) for n in range(3)]
    (rule,) = learn([*refused, *loaded], RELEASES)
    assert rule == {
        "operation": "Abs", "facts": ["an input is u3"], "releases": [["2022.1", "2023.0"]], "models": 3,
    }  # fmt: skip


def test_a_release_between_two_that_is_not_known_follows_them() -> None:
    refused = [_sample([_row("Abs-1", "an input is u3")], 1, -1, 1) for _ in range(3)]
    loaded = [_sample([_row("Abs-1", "an input is u6")], 0, 0, 0)]
    (rule,) = learn([*refused, *loaded], RELEASES)
    assert rule["releases"] == [["2022.1", "2024.0"]]


def test_an_error_of_irrun_that_releases_do_not_report() -> None:
    samples = [_sample([_row("Abs-1", "irrun reports IR403 C1", blocks=True)], 0, 0, 1) for _ in range(2)]
    (rule,) = learn(samples, RELEASES)
    assert rule["loads"]
    assert (rule["facts"], rule["releases"]) == (["irrun reports IR403 C1"], [["2022.1", "2023.0"]])


def test_operation_sets() -> None:
    no = ("read", "Opset opset9 doesn't contain the operation with type: Eye")
    yes, crash = ("read", "index '0' out of range"), ("crash", "-11")
    pairs = {("Abs", 8): yes, ("Abs", 9): no, ("Eye", 8): no, ("Eye", 9): no}
    later = {**pairs, ("Abs", 9): yes, ("Eye", 9): crash}
    opsets, operations = operation_sets({"2022.1": pairs, "2022.3": later})
    assert opsets == {"2022.1": 8, "2022.3": 9}
    assert operations == {"Eye": [[8, 8, None]]}


def test_internal_operations() -> None:
    no = ("read", "Cannot create RMS layer rms id:1 from unsupported opset: ie_internal_opset")
    about = ("read", "While validating node 'RMS': its inputs differ")
    other = ("read", "Incorrect precision: F8E4M3")
    answers = {"2022.1": [no, no, other], "2023.0": [no, about, None], "2024.0": [("", ""), None, ("compile", "")]}
    assert internal_operations([{"RMS"}, {"RMS"}, {"MOE", "RMS"}], answers) == {"RMS": "2023.0"}
