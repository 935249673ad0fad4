"""``python -m tools releases``: what is measured, how rules are learned, how operation sets are read off answers."""

from __future__ import annotations

import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irrun.conformance.suite import read_suite
from releases.learning import Row, Sample, learn
from releases.opsets import internal_operations, operation_sets
from releases.probing import Wheels
from releases.pruning import merged, pruned
from releases.samples import blamed
from releases.sweeps import sweep

RELEASES = ("2022.1", "2023.0", "2024.0")


def _sample(rows: list[Row], *answers: int) -> Sample:
    return Sample(rows, np.array(answers), np.zeros(3, bool), np.array(answers) >= 0)


def _row(operation: str, *sentences: str, blocks: bool = False) -> Row:
    return Row((operation.partition("-")[0], operation), frozenset(sentences), blocks)


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


def test_a_known_rule_is_dropped_for_answers_and_not_for_assumptions() -> None:
    """The release in the middle was not asked about the first model: that it loads is assumed."""
    known = [{"operation": "Abs", "facts": ["an input is u3"], "releases": [["2023.0", "2023.0"]], "models": 3}]
    layer, other = [_row("Abs-1", "an input is u3")], [_row("Abs-1", "an input is u6")]
    asked, elsewhere = _sample(layer, 0, 0, 0), _sample(other, 0, 0, 0)
    assumed = replace(asked, asked=np.array([True, False, True]))
    assert [rule["facts"] for rule in learn([assumed, elsewhere], RELEASES, known)] == [["an input is u3"]]
    assert learn([asked, elsewhere], RELEASES, known) == []


def test_a_known_rule_holds_in_a_release_beside_its_own_that_follows_it() -> None:
    known = {"operation": "Abs", "facts": ["an input is u3"], "releases": [["2022.1", "2022.1"]], "models": 3}
    samples = [_sample([_row("Abs-1", "an input is u3", f"axis={n}")], 1, 1, 0) for n in range(2)]
    (rule,) = learn([*samples, _sample([_row("Abs-1", "axis=0")], 0, 0, 0)], RELEASES, [known])
    assert (rule["facts"], rule["releases"]) == (["an input is u3"], [["2022.1", "2023.0"]])


def test_a_rule_is_dropped_where_it_alone_is_wrong() -> None:
    """Each refusal has another reason as well; the first rule alone is wrong about a model in two releases."""
    broad = {"operation": "Abs", "facts": ["an input is u3"], "releases": [["2022.1", "2024.0"]], "models": 3}
    narrow = {**broad, "facts": ["axis=0"]}
    refused = _sample([_row("Abs-1", "an input is u3", "axis=0")], 1, 1, 1)
    loaded = _sample([_row("Abs-1", "an input is u3")], 0, 0, -1)
    asked = np.array([[True] * 3, [True, True, False]])
    assert pruned([refused, loaded], [broad, narrow], RELEASES, asked) == [
        {**broad, "releases": [["2024.0", "2024.0"]]}, narrow,
    ]  # fmt: skip
    two = [_sample([_row("Abs-1", "an input is u3")], 1, 1, 1)] * 2
    assert pruned([*two, loaded], [broad], RELEASES, np.ones((3, 3), bool)) == [broad]


def test_rules_that_differ_in_releases_alone_are_one() -> None:
    first = {"operation": "Abs", "facts": ["a", "b"], "releases": [["2022.1", "2022.1"]], "models": 3}
    second = {**first, "facts": ["b", "a"], "releases": [["2023.0", "2024.0"]], "models": 5}
    assert merged([first, second], RELEASES) == [{**first, "releases": [["2022.1", "2024.0"]], "models": 5}]
    assert len(merged([first, {**second, "loads": True}], RELEASES)) == 2


def test_an_error_of_irrun_that_releases_do_not_report() -> None:
    samples = [_sample([_row("Abs-1", "irrun reports IR403 C1", blocks=True)], 0, 0, 1) for _ in range(3)]
    assert not learn(samples[:2], RELEASES)
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
    before = ("read", "RMS layer rms with id: 1 has undefined element type for input with index 0!")
    answers = {"2022.1": [no, before, other], "2023.0": [no, about, None], "2024.0": [("", ""), None, ("compile", "")]}
    assert internal_operations([{"RMS"}, {"RMS"}, {"MOE", "RMS"}], answers) == {"RMS": "2023.0"}


def test_a_layer_that_no_message_names_explains_no_refusal() -> None:
    guilty = Row(("Abs", "Abs-1"), frozenset({"an input is u3"}), False)
    other = Row(("Neg", "Neg-1"), frozenset({"an input is u6"}), False, blamed=False)
    (rule,) = learn([Sample([guilty, other], np.ones(3, int), np.zeros(3, bool), np.ones(3, bool))] * 3, RELEASES)
    assert rule["operation"] == "Abs"


def _alone(operation: str, *sentences: str, is_refused: bool) -> Sample:
    return _sample([_row("Parameter-1"), _row(operation, *sentences)], *[int(is_refused)] * 3)


def test_one_model_is_enough_if_a_loaded_one_differs_in_one_thing() -> None:
    """Nothing else than the type of the input differs, so it is the reason; of many differences, any could be."""
    usual = ("input 0 has rank 2", "input 0 is constant", 'mode="a"')
    refused = _alone("Abs-1", "input 0 is u3", *usual, is_refused=True)
    close = _alone("Abs-1", "input 0 is u6", *usual, is_refused=False)
    far = _alone("Abs-1", "input 0 is u6", "input 0 has rank 3", 'mode="b"', is_refused=False)
    (rule,) = learn([refused, close, far], RELEASES)
    assert (rule["operation"], rule["facts"], rule["models"]) == ("Abs", ["input 0 is u3"], 1)
    assert learn([refused, far], RELEASES) == []


def test_what_follows_from_the_one_thing_that_differs_is_no_reason() -> None:
    """That the output is empty may be the reason, or that the input is. One model does not tell."""
    empty = ("input 0 is empty", "output 0 is empty", "output 0 is f32")
    refused = [_alone("Abs-1", *empty, "input 0 is u3", is_refused=True), _alone("Abs-1", *empty, is_refused=True)]
    close = _alone("Abs-1", "output 0 is f32", is_refused=False)
    (rule,) = learn([*refused, close], RELEASES)
    assert rule["facts"] == ["input 0 is empty"]


def test_of_several_layers_that_no_message_names_none_explains_a_refusal() -> None:
    layers = [_row("Abs-1", "an input is u3"), _row("Neg-1", "an input is u3")]
    samples = [_sample(layers, 1, 1, 1) for _ in range(9)] + [_sample([_row("Abs-1")], 0, 0, 0)] * 9
    assert learn(samples, RELEASES) == []


def test_known_rules_stay_until_an_answer_contradicts_them() -> None:
    known = {"operation": "Abs", "facts": ["an input is u3"], "releases": [["2022.1", "2024.0"]], "models": 2}
    other = {**known, "facts": ["an input is u6"]}
    samples = [_sample([_row("Abs-1", "an input is u3")], 1, 0, 0), _sample([_row("Abs-1", "an input is u4")], 0, 0, 0)]
    assert learn(samples, RELEASES, [known, other]) == [{**known, "releases": [["2022.1", "2022.1"]]}, other]


def test_a_known_rule_is_dropped_in_releases_beside_those_that_contradict_it() -> None:
    """Nobody asked the release in the middle: it follows those beside it, and here both load the model."""
    known = [{"operation": "Abs", "facts": ["an input is u3"], "releases": [["2022.1", "2024.0"]], "models": 3}]
    sample = _sample([_row("Abs-1", "an input is u3")], 0, -1, 0)
    assert learn([sample, _sample([_row("Abs-1")], 0, 0, 0)], RELEASES, known) == []
    other = _sample([_row("Abs-1", "an input is u3")], 1, -1, 0)
    (rule,) = learn([other, _sample([_row("Abs-1")], 0, 0, 0)], RELEASES, known)
    assert rule["releases"] == [["2022.1", "2023.0"]]


def test_a_known_rule_gets_a_sentence_that_ends_its_contradictions() -> None:
    known = {"operation": "Abs", "facts": ["an input is u3"], "releases": [["2022.1", "2024.0"]], "models": 4}
    refused = [_sample([_row("Abs-1", "an input is u3", "none is empty", f"axis={n}")], 1, 1, 1) for n in range(2)]
    loaded = [_sample([_row("Abs-1", "an input is u3", "axis=0")], 0, 0, 0)]
    (rule,) = learn([*refused, *loaded], RELEASES, [known])
    assert rule["facts"] == ["an input is u3", "none is empty"]
    assert learn([refused[0], *loaded], RELEASES, [known])[0]["facts"] == ["an input is u3"]


def test_a_refusal_that_a_rule_explains_says_nothing_about_an_error() -> None:
    known = {"operation": "Parameter", "facts": ["an output is u3"], "releases": [["2022.1", "2024.0"]], "models": 9}
    error = _row("Abs-1", "irrun reports IR301", blocks=True)
    loaded = _sample([_row("Parameter-1", "an output is f32"), error], 0, 0, 0)
    refused = _sample([_row("Parameter-1", "an output is u3"), error], 1, 1, 1)
    excuse = {"operation": "Abs", "facts": ["irrun reports IR301"]}
    assert [rule for rule in learn([*[loaded] * 3, refused], RELEASES, [known]) if rule.items() >= excuse.items()]
    assert not [rule for rule in learn([loaded, refused], RELEASES) if rule.items() >= excuse.items()]


def test_exceptions_of_known_rules_stay_until_answers_follow_the_rule() -> None:
    known = {"operation": "", "facts": ["an input is u3"], "releases": [["2022.1", "2024.0"]], "models": 9}
    types = ("Abs", "Neg", "Exp")
    samples = [_sample([_row("Abs-1", "an input is u3")], 1, 1, 1), _sample([_row("Neg-1", "an input is u3")], 0, 0, 0)]
    (rule,) = learn(samples, RELEASES, [{**known, "except": types}])
    assert rule["except"] == ["Exp", "Neg"]


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        ("While validating node 'v1::Add Add_27 (x[0]:f32{3}) -> ()' with friendly_name 'Add_27': differ", {1, 2}),
        ("[CPU] Add node with name 'sum' has unsupported precision", {2}),
        ("CPU plug-in doesn't support it. Operation name: sum", {2}),
        ("sum.0 has zero dimension which is not allowed", {2, 3}),
        ("Reorder node with name: first_ab_abc_y doesn't support case when shapes have different rank", {1}),
        ("Incorrect precision: STRING", {0, 1, 2, 3}),
    ],
)
def test_which_layers_a_message_is_about(message: str, numbers: set[int]) -> None:
    layers = [("Parameter", "x"), ("Add", "first"), ("Add", "sum"), ("Result", "y")]
    assert blamed(layers, [message]) == numbers


def test_a_sweep_changes_one_thing_at_a_time() -> None:
    case = next(case for case in read_suite().cases if case.name == "Clamp-1/call/bf16")
    changed = [swept.xml for swept in sweep([case], random.Random(0))]
    assert case.xml.replace("bf16", "u3").replace("BF16", "U3") in changed
    before = re.search(r' min="[^"]*"', case.xml)
    assert before is not None
    for text in ("", ' min="tru"', ' min="-1"'):
        assert case.xml.replace(before[0], text, 1) in changed
    assert len(changed) == len(set(changed))


def test_a_sweep_changes_the_shapes_of_inputs_and_whether_they_are_constant() -> None:
    case = next(case for case in read_suite().cases if case.name == "Clamp-1/call/bf16")
    changed = [*sweep([case], random.Random(0))]
    shape = re.search(r'shape="([^"]*)"', case.xml)
    assert shape is not None
    for other in ("", "...", ",".join("?" * len(shape[1].split(",")))):
        assert case.xml.replace(shape[0], f'shape="{other}"', 1) in [swept.xml for swept in changed]
    fixed = next(swept for swept in changed if 'type="Const"' in swept.xml)
    assert fixed.bin.startswith(case.bin)
    assert f'size="{len(fixed.bin) - len(case.bin)}"' in fixed.xml


def test_a_sweep_changes_one_input_alone_and_the_type_and_the_rank_of_a_constant() -> None:
    gathers = (case for case in read_suite().cases if case.operation == "Gather-8" and case.verdict == "values")
    case = next(case for case in gathers if case.xml.count('type="Const"') == 1)
    xmls = [swept.xml for swept in sweep([case], random.Random(0))]
    shapes = [re.findall(r'type="Parameter"[^>]*>\s*<data [^>]*shape="([^"]*)"', xml) for xml in [case.xml, *xmls]]
    given = shapes[0]
    assert len(given) == 1 or ["", *given[1:]] in shapes
    constants = [re.findall(r'type="Const"[^>]*>\s*<data element_type="(\w+)" shape="([^"]*)"', xml) for xml in xmls]
    ((type, shape),) = re.findall(r'type="Const"[^>]*>\s*<data element_type="(\w+)" shape="([^"]*)"', case.xml)
    assert {kind for of in constants for kind, other in of if other == shape} >= {"i16", "i32", "i64", "u8"}
    assert (type, ",".join(filter(None, ["1", shape]))) in {pair for of in constants for pair in of}


def _release(folder: Path, version: str, *, loads: str) -> None:
    """Write a wheel that loads the models whose name begins with a text, and writes down which it is asked about."""
    python = folder / version / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f"#!{sys.executable}\nimport json, sys\nfor line in sys.stdin:\n"
        f"    name = line.split('/')[-1].strip()\n    open({str(folder / 'asked')!r}, 'a').write('{version} ' + name + '\\n')\n"
        f"    print(json.dumps(['', ''] if name.startswith({loads!r}) else ['read', name]), flush=True)\n"
    )
    python.chmod(0o755)


def test_only_releases_that_may_disagree_are_asked(tmp_path: Path) -> None:
    for version, loads in (("2022.1.0", "a"), ("2022.3.0", "a"), ("2023.0.0", ""), ("2023.3.0", ""), ("2024.0.0", "")):
        _release(tmp_path, version, loads=loads)
    models = [tmp_path / name for name in ("a.xml", "b.xml", "c.xml")]
    for model in models:
        model.write_text(model.name)
    found = Wheels(tmp_path).ask_some(models, [(), (), ("2022.1", "2022.3")])
    asked = sorted((tmp_path / "asked").read_text().splitlines())
    assert [line for line in asked if "a.xml" in line] == ["2022.1.0 a.xml", "2024.0.0 a.xml"]
    assert [line for line in asked if "b.xml" in line] == [
        f"{v} b.xml" for v in ("2022.1.0", "2022.3.0", "2023.0.0", "2023.3.0", "2024.0.0")
    ]
    assert [line for line in asked if "c.xml" in line] == ["2023.3.0 c.xml", "2024.0.0 c.xml"]
    assert found["2022.3"] == [None, ("read", "b.xml"), None]
    assert Wheels(tmp_path).ask_all(models)["2023.0"] == [("", "")] * 3


def test_a_release_is_asked_once_and_again_after_a_crash(tmp_path: Path) -> None:
    python = tmp_path / "2024.6.0" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f"#!{sys.executable}\nimport sys\nfor line in sys.stdin:\n"
        "    if 'crash' in line: sys.exit(3)\n    print('[\"read\", \"' + line.split('/')[-1].strip() + '\"]', flush=True)\n"
    )
    python.chmod(0o755)
    models = [tmp_path / name for name in ("a.xml", "crash.xml", "b.xml")]
    for model in models:
        model.write_text(model.name)
    expected = [("read", "a.xml"), ("crash", "3"), ("read", "b.xml")]
    assert Wheels(tmp_path).ask("2024.6", models) == expected
    python.write_text("")
    assert Wheels(tmp_path).ask("2024.6", models) == expected


def test_a_process_that_an_earlier_model_spoilt_is_replaced(tmp_path: Path) -> None:
    python = tmp_path / "2022.3.0" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f"#!{sys.executable}\nimport sys\nspoilt = False\nfor line in sys.stdin:\n"
        "    message = 'There should be only one instance of RegistersPool per thread' if spoilt else ''\n"
        '    print(\'["compile", "\' + message + \'"]\' if message else \'["", ""]\', flush=True)\n    spoilt = True\n'
    )
    python.chmod(0o755)
    models = [tmp_path / name for name in ("a.xml", "b.xml")]
    for model in models:
        model.write_text(model.name)
    assert Wheels(tmp_path).ask("2022.3", models) == [("", ""), ("", "")]
