"""irrun check."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from irrun.cli import cli
from nets import Net
from places import SAMPLES


def good() -> Net:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("Add", [x, x], [("FP32", "2")], name="sum"))
    return net


def wrong(precision: str = "FP32") -> Net:
    """Its Add declares [3]; and, if told to, another precision."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("Add", [x, x], [(precision, "3")], name="sum"))
    return net


def unknown() -> Net:
    net = Net()
    net.result(net.add("Nonsense", [net.parameter("f32", "2")], [("FP32", "2")]))
    return net


def codes(result) -> list[str]:
    return [d["code"] for d in json.loads(result.stdout)["diagnostics"]]


def test_a_valid_model(call, tmp_path):
    result = call("check", good().save(tmp_path))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "checked 1 file: 0 errors, 0 warnings\n"


def test_text(call, tmp_path):
    wrong().save(tmp_path)
    result = call("check", "net.xml")
    assert result.exit_code == 1
    first, place, *_ = lines = result.stdout.splitlines()
    assert first == 'error[IR401 dims-mismatch]: Add "sum" output 2: dim 0 is 3, inferred 2'
    text = Path("net.xml").read_text().splitlines()
    number = next(i for i, line in enumerate(text, 1) if "<dim>3</dim>" in line)
    assert place == f"  --> net.xml:{number}:{text[number - 1].index('<') + 1}"
    excerpt, carets = (line.partition("| ")[2] for line in lines[3:5])
    assert carets.replace("^", "").strip() == ""
    assert excerpt[carets.index("^") :] == "<dim>3</dim>"
    assert len(carets.strip()) == len("<dim>3</dim>")
    assert lines[-2].startswith("   = help: declare 2")
    assert result.stderr == "checked 1 file: 1 error, 0 warnings (1 fixable with --fix)\n"


def test_concise(call, tmp_path):
    wrong().save(tmp_path)
    lines = call("check", "net.xml", "--format", "concise").stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("net.xml:")
    assert lines[0].endswith(': IR401 Add "sum" output 2: dim 0 is 3, inferred 2')


def test_json(call, tmp_path):
    wrong().save(tmp_path)
    result = call("check", "net.xml", "--format", "json")
    assert (result.exit_code, result.stderr) == (1, "")
    (found,) = json.loads(result.stdout)["diagnostics"]
    assert found["code"] == "IR401"
    assert found["name"] == "dims-mismatch"
    assert (found["severity"], found["layer"], found["port"], found["file"]) == ("error", "sum", 2, "net.xml")
    assert found["end_column"] - found["column"] == len("<dim>3</dim>")
    assert found["line"] > 1


def test_json_without_findings(call, tmp_path):
    found = json.loads(call("check", good().save(tmp_path), "--format", "json").stdout)
    assert found == {"version": 1, "command": "check", "diagnostics": []}


def test_text_is_another_name_of_full(call, tmp_path):
    wrong().save(tmp_path)
    assert call("check", "net.xml", "--format", "text").output == call("check", "net.xml", "--format", "full").output


@pytest.mark.parametrize("form", ["json", "json-lines", "sarif", "github", "gitlab", "junit"])
def test_formats_of_other_tools(form, call, tmp_path):
    wrong().save(tmp_path)
    result = call("check", "net.xml", "--format", form)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.count("inferred 2") >= 1


def test_statistics(call, tmp_path):
    good().save(tmp_path, "good")
    paths = [wrong("I64").save(tmp_path, "a"), wrong().save(tmp_path, "b"), "good.xml"]
    result = call("check", *paths, "--statistics")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows == [["count", "code", "name"], ["2", "IR401", "dims-mismatch"], ["1", "IR303", "precision-mismatch"]]
    assert result.stderr == "checked 3 files: 3 errors, 0 warnings (2 fixable with --fix)\n"
    assert result.exit_code == 1
    assert json.loads(call("check", *paths, "--statistics", "--format", "json").stdout)["statistics"] == [
        {"code": "IR401", "name": "dims-mismatch", "count": 2},
        {"code": "IR303", "name": "precision-mismatch", "count": 1},
    ]
    assert call("check", "good.xml", "--statistics").stdout == ""
    assert call("check", "good.xml", "--statistics", "--format", "sarif").exit_code == 2


def test_exit_zero(call, tmp_path):
    for path in (wrong().save(tmp_path, "a"), unknown().save(tmp_path, "b")):
        assert call("check", path, "--exit-zero", "--format", "concise").stdout.count("\n") == 1
        assert call("check", path, "--exit-zero").exit_code == 0
    assert call("check", "nosuch.xml", "--exit-zero").exit_code == 2


@pytest.mark.parametrize(
    ("options", "found", "status"),
    [
        ([], ["IR303", "IR401"], 1),
        (["--select", "IR4"], ["IR401"], 1),
        (["--select", "ir401"], ["IR401"], 1),
        (["--select", "dims-mismatch"], ["IR401"], 1),
        (["--select", "IR3,IR401"], ["IR303", "IR401"], 1),
        (["--select", "IR3", "--select", "IR4"], ["IR303", "IR401"], 1),
        (["--ignore", "IR303"], ["IR401"], 1),
        (["--ignore", "IR3,IR4"], [], 0),
        (["--select", "IR3", "--ignore", "IR303"], [], 0),
        (["--select", "IR1"], [], 0),
    ],
)
def test_selection(options, found, status, call, tmp_path):
    result = call("check", wrong("I64").save(tmp_path), "--format", "json", *options)
    assert (sorted(codes(result)), result.exit_code) == (found, status)


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("code", ["IR999", "XX", "IR4011", "dims"])
def test_an_unknown_code(option, code, call, tmp_path):
    result = call("check", good().save(tmp_path), option, code)
    assert result.exit_code == 2
    assert f"{code} is not a code" in result.stderr


def test_a_selection_does_not_hide_that_a_file_cannot_be_read(call):
    Path("old.xml").write_text('<net version="5"/>')
    for path, code in (("old.xml", "IR004"), ("nosuch.xml", "IR000")):
        result = call("check", path, "--select", "IR4", "--format", "json")
        assert (codes(result), result.exit_code) == ([code], 2)
    assert call("check", "old.xml", "--ignore", "IR004").exit_code == 0
    assert call("check", "nosuch.xml", "--ignore", "IR000").exit_code == 2


def test_what_irrun_does_not_support(call, tmp_path):
    path = unknown().save(tmp_path)
    assert call("check", path).exit_code == 3
    assert call("check", path, wrong().save(tmp_path, "wrong")).exit_code == 1


def test_missing_weights_are_named(call, tmp_path):
    net = Net()
    net.result(net.const("f32", "1", b"\0\0\x80\x3f"))
    path = net.save(tmp_path)
    path.with_suffix(".bin").rename("elsewhere")
    assert codes(call("check", path, "--format", "json")) == ["IR501"]
    assert call("check", path, "-w", "elsewhere").exit_code == 0
    assert call("check", path, good().save(tmp_path, "other"), "-w", "elsewhere").exit_code == 2


def test_standard_input(tmp_path):
    net = Net()
    net.result(net.const("f32", "2", bytes(8)))
    for data, options, found, status in (
        (wrong().save(tmp_path).read_bytes(), [], "<stdin>:", 1),
        (good().save(tmp_path).read_bytes(), [], "", 0),
        (net.save(tmp_path, "weights").read_bytes(), [], "<stdin>: IR501 no .bin is named; one constant has", 1),
        (net.save(tmp_path, "weights").read_bytes(), ["-w", str(tmp_path / "weights.bin")], "", 0),
        (b"", [], "<stdin>:1:1: IR001 the file is empty", 2),
    ):
        result = CliRunner().invoke(cli, ["check", "-", "--format", "concise", *options], input=data)
        assert (result.stdout[: len(found)], result.exit_code) == (found, status)
        assert bool(found) == bool(result.stdout)


# ---------------------------------------------------------------------------------------------
# paths


def files(result) -> list[str]:
    return [line.split(":")[0] for line in result.stdout.splitlines()]


@pytest.fixture
def tree(tmp_path: Path) -> None:
    for folder in ("models/b", "models/a/deep", "empty"):
        (tmp_path / folder).mkdir(parents=True)
    wrong().save(tmp_path / "models" / "b")
    wrong().save(tmp_path / "models/a/deep")
    (tmp_path / "models/layout.xml").write_text("<?xml version='1.0'?>\n<!-- no IR --><html><net/></html>")
    (tmp_path / "models/readme.txt").write_text("no IR")


def test_folders(call, tree):
    result = call("check", "models", "--format", "concise")
    assert files(result) == ["models/a/deep/net.xml", "models/b/net.xml"]
    assert result.stderr == "checked 2 files: 2 errors, 0 warnings (2 fixable with --fix)\n"


def test_a_folder_names_what_may_be_ir(call, tree):
    Path("models/empty.xml").write_text("")
    Path("models/cut.xml").write_text("<net version='11'><layers>")
    result = call("check", "models", "--format", "json")
    assert sorted(codes(result)) == ["IR001", "IR001", "IR401", "IR401"]
    assert result.exit_code == 2


@pytest.mark.parametrize("pattern", ["models/*/net.xml", "models/**/b/*.xml", "models/[a-c]/net.xml"])
def test_globs(pattern, call, tree):
    assert files(call("check", pattern, "--format", "concise")) == ["models/b/net.xml"]


def test_a_glob_of_folders(call, tree):
    assert len(files(call("check", "mod*", "--format", "concise"))) == 2


def test_a_file_is_checked_once(call, tree):
    assert len(files(call("check", "models/b/net.xml", "models/b", "models/b/*.xml", "--format", "concise"))) == 1


def test_a_name_may_look_like_a_glob(call, tmp_path):
    wrong().save(tmp_path, "net[1]")
    assert files(call("check", "net[1].xml", "--format", "concise")) == ["net[1].xml"]


@pytest.mark.parametrize(
    ("path", "said"), [("empty", "no IR in empty"), ("models/*.bin", "no file matches models/*.bin")]
)
def test_nothing_to_check(path, said, call, tree):
    result = call("check", path)
    assert result.exit_code == 2
    assert said in result.stderr


def test_what_is_named_is_checked(call, tree):
    Path("models/notes").write_text("no IR")
    result = call("check", "models/layout.xml", "models/readme.txt", "models/notes", "--format", "json")
    assert codes(result) == ["IR003", "IR003"]  # readme.txt is a page, be there examples in it or not
    assert result.exit_code == 2


def test_a_page_of_examples(call):
    Path("page.txt").write_text(
        'Text\n<layer ... type="Broadcast"><input>\n<port id="0"><dim>3</dim></port>\n'
        '<port id="0"><dim>2</dim><!-- [5, 4] --></port>\n</input><output><port id="2"><dim>5</dim><dim>4</dim></port>'
        "</output></layer>\n<layer><input>"
    )
    result = call("check", "page.txt", "--format", "concise")
    found = [line.split(":")[1] + line.split(":")[3][:6] for line in result.stdout.splitlines()]
    assert sorted(found) == ["2 IR008", "2 IR403", "4 IR008", "6 IR001"]
    assert result.exit_code == 2


def test_other_xml_is_left_out(call, tmp_path):
    """As the hook of pre-commit passes files: a project file is no model, but a model that is cut off is reported."""
    other, cut = tmp_path / "pom.xml", tmp_path / "cut.xml"
    other.write_text("<project/>")
    assert call("check", other).exit_code == 2
    assert call("check", other, "--skip-other-xml").exit_code == 0
    done = call("check", other, SAMPLES / "convnet.xml", "--skip-other-xml")
    assert (done.exit_code, done.stderr) == (0, "checked 1 file: 0 errors, 0 warnings\n")
    cut.write_text("<net>")
    assert call("check", other, cut, "--skip-other-xml").exit_code == 2
