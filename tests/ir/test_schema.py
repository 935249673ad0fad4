"""``irrun schema``: RELAX NG and XSD accept what is valid, and refuse what a grammar can refuse."""

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

import irrun
from irrun.conformance.suite import Case
from irrun.ir.schema import relax_ng, xsd
from irrun.ir.schema.vocabulary import described
from irrun.opdef import all_ops, find, resolve
from marks import BROKEN, BrokenModel
from nets import Net
from places import ROOT
from recorded import suite

VALID = sorted((ROOT / "samples").rglob("*.xml"))
FORMS: dict[str, Callable[[], str]] = {"rng": relax_ng, "xsd": xsd}


@cache
def _schema(form: str) -> Any:
    tree = etree.fromstring(FORMS[form]().encode())
    return etree.RelaxNG(tree) if form == "rng" else etree.XMLSchema(tree)


def _accepts(form: str, document: Any) -> bool:
    return _schema(form).validate(document)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_samples(path: Path, form: str) -> None:
    assert _accepts(form, etree.parse(path)), _schema(form).error_log


TEXT = {"IR001", "IR002", "IR005", "IR006", "IR008"}
"""The codes of files that lxml need not be able to read."""

BEYOND = {
    "a dim or type that another part of the file contradicts": {
        "IR301", "IR302", "IR303", "IR304", "IR401", "IR402", "IR403", "IR405", "IR406",
    },
    "edges, port maps and variables: what is missing, or where it leads": {"IR103", "IR104", "IR106", "IR108", "IR111"},
    "the contents and size of the .bin": {"IR501", "IR502", "IR503", "IR504", "IR505", "IR506", "IR507", "IR508"},
    "text before or around the grammar: XML, encoding, DOCTYPE, a page with an example": TEXT,
}  # fmt: skip
"""Codes whose fault a grammar cannot see, by the reason. The files below are exceptions, in both directions."""

REFUSED_ALL_THE_SAME = {
    "body_map_to_no_layer": {"xsd"},  # a reference to an id
    "edge_from_unknown_layer": {"xsd"},
    "edge_to_unknown_layer": {"xsd"},
    "weights_offset_negative": {"rng"},  # a number below 0
    "constraint_const_shape": {"rng"},  # an unknown dim in a Const
}
"""Files with a code of ``BEYOND`` whose very fault a grammar sees, and which of the two schemas does."""

ACCEPTED_ALL_THE_SAME = {
    "shape_upside_down": "an interval from 8 to 1: a grammar compares no numbers",
    "port_id_twice": "an input and an output may share an id, as long as no edge leaves it open which is meant",
}

BY_RELAX_NG_ALONE = {
    "attribute_assumed", "attribute_missing", "const_without_offset", "loop_without_condition", "no_result",
    "operation_of_a_custom_opset", "operation_of_a_later_opset", "operation_without_output",
    "parameter_of_two_outputs", "parameter_without_shape", "too_few_inputs", "too_many_inputs", "too_many_outputs",
}  # fmt: skip
"""Faults of a layer of a particular operation. XSD 1.0 cannot choose by the value of an attribute."""

BY_XSD_ALONE = {"edge_stray", "input_fed_twice", "input_port_id_twice", "layer_id_twice"}
"""Faults of ids. RELAX NG compares no attributes."""


def _refusing(name: str, codes: set[str]) -> set[str]:
    """Return the schemas that refuse a file of tests/checking/invalid."""
    if name in REFUSED_ALL_THE_SAME:
        return REFUSED_ALL_THE_SAME[name]
    if name in ACCEPTED_ALL_THE_SAME or codes <= {code for beyond in BEYOND.values() for code in beyond}:
        return set()
    return {"rng"} if name in BY_RELAX_NG_ALONE else {"xsd"} if name in BY_XSD_ALONE else {"rng", "xsd"}


FILES = [model for model in BROKEN if model.path]


@pytest.mark.parametrize("model", FILES, ids=lambda model: model.name)
def test_broken_files(model: BrokenModel) -> None:
    try:
        document = etree.parse(model.path, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        assert model.codes <= TEXT
        return
    except OSError:
        assert model.name in ("encoding_latin_1", "encoding_unknown")
        return
    assert {form for form in FORMS if not _accepts(form, document)} == _refusing(model.name, model.codes)


def test_most_kinds_of_faults_are_covered() -> None:
    """At least a third of the broken files is refused, and each code from IR003 on that no reason excuses."""
    refused = [model for model in FILES if not model.codes <= TEXT and _refusing(model.name, model.codes)]
    codes = {code for model in refused for code in model.codes}
    assert codes >= {
        "IR003", "IR004", "IR007", "IR009", "IR010", "IR101", "IR102", "IR105", "IR107", "IR110", "IR112", "IR201",
        "IR202", "IR203", "IR204", "IR205", "IR206", "IR207", "IR208", "IR305", "IR404", "IR407",
    }  # fmt: skip
    assert len(refused) > len(FILES) / 3


@cache
def _cases() -> list[Case]:
    return [case for case in suite().cases if case.verdict != "open"]


ARITY = "IR205"


def _judge(case: Case) -> None:
    document = etree.fromstring(case.xml.encode())
    assert _accepts("xsd", document), (case.name, _schema("xsd").error_log)
    if case.verdict == "values":
        assert _accepts("rng", document), (case.name, _schema("rng").error_log)
    elif case.clause == ARITY:
        assert not _accepts("rng", document), case.name


def test_single_operations() -> None:
    """A model of each operation, and those with a wrong number of inputs."""
    operations: set[str] = set()
    for case in _cases():
        if case.clause == ARITY or (case.verdict == "values" and case.operation not in operations):
            _judge(case)
            operations.add(case.operation)
    assert len(operations) > 200


@pytest.mark.slow
def test_all_models_of_the_suite() -> None:
    for case in _cases():
        _judge(case)


def test_each_operation_and_version_has_a_definition() -> None:
    types = set(
        re.findall(r'<value type="token">(\w+)</value>\s*</attribute>\s*<attribute name="version">', relax_ng())
    )
    known = {cls.type for cls in all_ops()}
    assert types == known
    layer_types = etree.fromstring(xsd().encode()).find("{*}simpleType[@name='layerType']")
    assert {word.get("value") for word in layer_types.iter("{*}enumeration")} == known


def _with_layer(type: str, version: str, data: dict[str, Any], *, ir: int = 11) -> Any:
    net = Net(version=ir)
    x = net.parameter("f32", "1,3,8,8", name="x", names="x")
    net.result(net.add(type, [x], [("FP32", "1,3,8,8")], opset=version, **data))
    return etree.fromstring(net.text.encode())


POOL = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "kernel": "1,1"}


@pytest.mark.parametrize(
    ("type", "version", "data", "rng", "xsd"),
    [
        ("MaxPool", "opset1", POOL, True, True),
        ("MaxPool", "opset8", POOL | {"dilations": "1,1"}, True, True),
        ("MaxPool", "opset1", POOL | {"dilations": "1,1"}, False, True),  # an attribute of MaxPool-8
        ("MaxPool", "opset8", {"kernel": "1,1"}, False, True),
        ("MaxPool", "opset1", POOL | {"auto_pad": "SAME_UPPER"}, True, True),
        ("MaxPool", "opset1", POOL | {"auto_pad": "full"}, False, False),
        ("MaxPool", "opset1", POOL | {"strides": "1;1"}, False, False),
        ("MaxPool", "opset1", POOL | {"stride": "1,1"}, False, True),  # Col2Im has it
        ("MaxPool", "opset1", POOL | {"strydes": "1,1"}, False, False),
        ("Gelu", "opset1", {}, False, True),  # it came with opset2
        ("ReLU", "opset17", {}, True, True),
        ("ReLU", "opset18", {}, False, False),
        ("ReLU", "extension", {}, False, True),
        ("CaseFold", "extension", {"encoding": "utf-8"}, False, True),  # it has three inputs
        ("Clamp", "opset1", {"min": " -inf", "max": "6."}, True, True),
        ("Clamp", "opset1", {"min": "-1e3", "max": ""}, False, False),
    ],
)  # fmt: skip
def test_attributes(type: str, version: str, data: dict[str, str], rng: bool, xsd: bool) -> None:
    document = _with_layer(type, version, data)
    assert (_accepts("rng", document), _accepts("xsd", document)) == (rng, xsd)


def test_a_const_without_a_type() -> None:
    """IR version 10 has them."""
    for version, accepted in ((10, True), (11, False)):
        net = Net(version=version)
        net.result(net.const("f32", "1", b"\0" * 4))
        document = etree.fromstring(net.text.encode())
        del document.find(".//layer[@type='Const']/data").attrib["element_type"]
        assert _accepts("rng", document) is accepted
        assert _accepts("xsd", document)


def _with_reference(folder: Path) -> Path:
    """Write a sample with the line that names its schema for editors."""
    sample = ROOT / "samples" / "elementwise.xml"
    text = sample.read_text("utf-8")
    assert text.count("<net ") == 1
    path = folder / "model.xml"
    path.write_text(text.replace("<net ", '<?xml-model href="ir.xsd"?>\n<net '), "utf-8")
    path.with_suffix(".bin").write_bytes(sample.with_suffix(".bin").read_bytes())
    return path


def test_irrun_ignores_the_reference_to_a_schema(tmp_path: Path) -> None:
    assert not irrun.check(_with_reference(tmp_path)).diagnostics


def test_openvino_ignores_the_reference_to_a_schema(tmp_path: Path, ov: Any) -> None:
    assert len(ov.Core().read_model(_with_reference(tmp_path)).outputs) == 1


# -- what the page says of an editor ------------------------------------------------------------


def _proposals() -> list[tuple[str, list[str]]]:
    page = (ROOT / "docs" / "schema.md").read_text("utf-8")
    rows = re.findall(r"^\| `(<layer.*\\\|)` \| (.*) \|$", page, re.MULTILINE)
    return [(typed.replace("\\|", "|"), re.findall(r"`([^`]+)`", proposed)) for typed, proposed in rows]


def test_the_page_proposes_what_the_registry_declares() -> None:
    proposals = dict(_proposals())
    assert len(proposals) == 5
    for version, since in ((8, 8), (1, 1)):
        typed = f'<layer id="1" name="pool" type="MaxPool" version="opset{version}"><data |'
        declared = [attribute.name for attribute in find("MaxPool")[since].attributes.values()]
        assert proposals[typed] == sorted(declared)
    types = sorted({cls.type for cls in all_ops() if cls.type.startswith("Conv")})
    assert proposals['<layer id="1" name="conv" type="Conv|'] == types


@pytest.mark.parametrize(("typed", "proposed"), _proposals())
def test_emacs_completes(typed: str, proposed: list[str], tmp_path: Path) -> None:
    if not shutil.which("emacs") or not shutil.which("trang"):
        pytest.skip("Emacs or trang is not installed")
    (tmp_path / "ir.rng").write_text(relax_ng())
    subprocess.run(["trang", "ir.rng", "ir.rnc"], cwd=tmp_path, check=True)
    rest = '"' * (typed.count('"') % 2)
    (tmp_path / "net.xml").write_text(f'<net name="net" version="11">\n<layers>\n{typed}{rest}/>\n</layers>\n</net>\n')
    done = subprocess.run(
        ["emacs", "--batch", "-Q", "-l", ROOT / "tests" / "editor.el", "ir.rnc", "net.xml"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert sorted(done.stdout.split()) == sorted(proposed)


@pytest.mark.parametrize(
    ("type", "since", "name", "text"),
    [
        ("Assign", 6, "variable_id", "text (required)"),
        ("AUGRUCell", 15, "clip", "a number (default: 0.0)"),
        ("AUGRUCell", 15, "linear_before_reset", "true or false (default: false)"),
        ("AUGRUCell", 15, "activations_alpha", "numbers separated by commas"),
        ("Bincount", 17, "minlength", "an integer (default: 0)"),
        ("Bucketize", 3, "output_type", "an element type such as f32 or i64 (default: i64)"),
        ("Col2Im", 15, "strides", "integers separated by commas (default: 1,1)"),
        ("Col2Im", 15, "output_size", "integers separated by commas"),
    ],
)
def test_what_an_attribute_holds(type: str, since: int, name: str, text: str) -> None:
    """With its default, unless it has none or an empty list."""
    cls = resolve(type, since)
    assert cls is not None
    assert described(cls.attributes[name]) == text
