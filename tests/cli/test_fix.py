"""irrun check --fix, --diff and --unsafe-fixes."""

import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from checking.test_checker import chain, changed
from irrun.cli import cli
from irrun.cli._fixing import _unified
from nets import Net
from places import SAMPLES


def broken() -> Net:
    """A wrong dim, which can be fixed, and a wrong rule, which cannot."""
    net = changed(chain(), "relu5", "<dim>6</dim>", "<dim>5</dim>", 1)
    return changed(net, "conv", 'strides="1,1"', 'strides="1,1,1"')


def test_fix(call, tmp_path):
    path = changed(chain(), "relu5", "<dim>6</dim>", "<dim>5</dim>", 1).save(tmp_path)
    result = call("check", "net.xml", "--fix")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "checked 1 file: 1 fixed; 0 errors, 0 warnings left\n"
    assert path.read_text() == chain().text
    assert call("check", "net.xml", "--fix").stderr == "checked 1 file: 0 fixed; 0 errors, 0 warnings left\n"


def test_what_is_left_is_told(call, tmp_path):
    path = broken().save(tmp_path)
    result = call("check", "net.xml", "--fix", "--format", "json")
    assert result.exit_code == 1
    assert [d["code"] for d in json.loads(result.stdout)["diagnostics"]] == ["IR403"]
    assert path.read_text() == changed(chain(), "conv", 'strides="1,1"', 'strides="1,1,1"').text


def test_diff_writes_nothing(call, tmp_path):
    path = broken().save(tmp_path)
    text = path.read_text()
    result = call("check", "net.xml", "--diff")
    assert (result.exit_code, result.stderr) == (1, "would fix 1 finding; 1 would be left\n")
    assert path.read_text() == text
    call("check", "net.xml", "--fix")
    assert patched(text.encode(), result.stdout_bytes) == path.read_bytes()


def patched(before: bytes, diff: bytes) -> bytes:
    """What a unified diff makes of a file, as `patch` applies it."""
    diff = diff.replace(b"\n\\ No newline at end of file\n", b"\0")
    lines, after, at = before.splitlines(keepends=True), [], 0
    head, *hunks = re.split(rb"^@@ -(\d+),(\d+) \+(\d+),(\d+) @@\n", diff, flags=re.MULTILINE)
    assert head == b"--- net.xml\n+++ net.xml\n"
    for start, count, to, length, body in zip(*[iter(hunks)] * 5):
        rows = [row.replace(b"\0", b"") for row in re.findall(rb"[^\n\0]*(?:\n|\0)", body)]
        after += lines[at : int(start) - 1]
        at = int(start) - 1 + int(count)
        assert lines[int(start) - 1 : at] == [row[1:] for row in rows if row[:1] in b" -"]
        written = [row[1:] for row in rows if row[:1] in b" +"]
        assert (len(after) + 1, len(written)) == (int(to), int(length))
        after += written
    return b"".join(after + lines[at:])


@pytest.mark.parametrize("end", [3, 4, 60])
@pytest.mark.parametrize("taken", [0, 1, 7, 8, 9, 40])
@pytest.mark.parametrize("put", [0, 1, 8, 9, 17, 40])
def test_a_diff_takes_and_puts_no_more_lines_than_differ(taken: int, put: int, end: int) -> None:
    """Lines that are all different, so that there is one shortest diff, amid three lines above and below."""
    above, below = [f"above {n}\n" for n in range(60)], [f"below {n}\n" for n in range(end)]
    old, new = [f"old {n}\n" for n in range(taken)], [f"new {n}\n" for n in range(put)]
    before, after = ("".join([*above, *lines, *below]).encode() for lines in (old, new))
    wanted = ["--- net.xml\n", "+++ net.xml\n"]
    if taken or put:
        wanted += [f"@@ -58,{6 + taken} +58,{6 + put} @@\n", *(f" {line}" for line in above[-3:])]
        wanted += [*(f"-{line}" for line in old), *(f"+{line}" for line in new), *(f" {line}" for line in below[:3])]
    assert list(_unified("net.xml", before, after)) == wanted


def test_diff_of_what_is_right(call, tmp_path):
    chain().save(tmp_path)
    result = call("check", "net.xml", "--diff")
    assert (result.exit_code, result.stdout) == (0, "")


def test_diffs_of_many_changes(call, tmp_path):
    net = chain()
    for i in (2, 3, 9):
        net = changed(net, f"relu{i}", "\t\t\t<dim>6</dim>\n", "", 1)
        net = changed(net, f"add{i}", "<dim>4</dim>", "<dim>4</dim>\n\t\t\t<dim>4</dim>", 0)
    path = net.save(tmp_path)
    path.write_bytes(path.read_bytes().rstrip().replace(b"\n", b"\r\n"))
    result = call("check", "net.xml", "--diff")
    assert result.stdout.count("@@ -") > 2
    assert patched(path.read_bytes(), result.stdout_bytes) == chain().text.rstrip().replace("\n", "\r\n").encode()


def test_unsafe_fixes(call, tmp_path):
    path = changed(chain(), "flat", "special_zero", "special_zer0").save(tmp_path)
    assert call("check", "net.xml", "--fix").stderr == "checked 1 file: 0 fixed; 1 error, 0 warnings left\n"
    assert call("check", "net.xml", "--fix", "--unsafe-fixes").stderr.startswith("checked 1 file: 1 fixed; 0 errors")
    assert path.read_text() == chain().text


def test_standard_input_goes_to_standard_output(tmp_path):
    path = changed(chain(), "relu5", "<dim>6</dim>", "<dim>5</dim>", 1).save(tmp_path)
    weights = str(path.with_suffix(".bin"))
    result = CliRunner().invoke(cli, ["check", "--fix", "-", "-w", weights], input=path.read_bytes())
    assert (result.exit_code, result.stdout) == (0, chain().text)
    assert result.stderr == "checked 1 file: 1 fixed; 0 errors, 0 warnings left\n"
    shown = CliRunner().invoke(cli, ["check", "--diff", "-", "-w", weights], input=path.read_bytes())
    assert shown.stdout.splitlines()[:2] == ["--- <stdin>", "+++ <stdin>"]
    refused = CliRunner().invoke(cli, ["check", "--fix", "-", "--format", "json"], input=path.read_bytes())
    assert refused.exit_code == 2


def test_only_what_is_selected_is_fixed(call, tmp_path):
    path = changed(changed(chain(), "relu5", "<dim>6</dim>", "<dim>5</dim>", 1), "relu8", "FP32", "FP16", 1).save(
        tmp_path
    )
    call("check", "net.xml", "--fix", "--select", "IR3")
    assert path.read_text() == changed(chain(), "relu5", "<dim>6</dim>", "<dim>5</dim>", 1).text
    text = path.read_text().replace("<dim>5</dim>\n", "<dim>5</dim> <!-- irrun: ignore -->\n")
    path.write_text(text)
    call("check", "net.xml", "--fix")
    assert path.read_text() == text


def test_usage(call, tmp_path):
    chain().save(tmp_path)
    for options in (["--unsafe-fixes"], ["--fix", "--watch"], ["--diff", "--shape", "x=[1,3,8,8]"]):
        result = call("check", "net.xml", *options)
        assert result.exit_code == 2, options
        assert "Error: --" in result.stderr
    assert call("check", "none.xml", "--fix").exit_code == 2
    assert call("check", "none.xml", "--diff").exit_code == 2


def test_a_page_is_left_as_it_is(call, tmp_path):
    lines = (
        '<layer type="ReLU">',
        '<input><port id="0"><dim>2</dim></port></input>',
        '<output><port id="1"><dim>3</dim></port></output>',
        "</layer>",
    )
    page = "Example:\n\n.. code-block:: xml\n\n" + "".join(f"   {line}\n" for line in lines)
    Path("page.rst").write_text(page)
    assert call("check", "page.rst", "--fix").exit_code == 1
    assert Path("page.rst").read_text() == page


def test_fixable_findings_are_counted(call, tmp_path):
    broken().save(tmp_path)
    assert call("check", "net.xml").stderr == "checked 1 file: 2 errors, 0 warnings (1 fixable with --fix)\n"


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_machines_get_the_edits(call, tmp_path, form):
    path = broken().save(tmp_path)
    found = json.loads(call("check", "net.xml", "--format", form).stdout)
    if form == "json":
        fixes = [d["fix"] for d in found["diagnostics"] if d["fix"]]
        ((edit,),) = (fix["edits"] for fix in fixes)
        data = path.read_bytes()
        data = data[: edit["start"]] + edit["text"].encode() + data[edit["end"] :]
    else:
        ((fix,),) = (result["fixes"] for result in found["runs"][0]["results"] if "fixes" in result)
        (change,) = fix["artifactChanges"]
        assert change["artifactLocation"] == {"uri": "net.xml"}
        (replacement,) = change["replacements"]
        region = replacement["deletedRegion"]
        assert region["startLine"] == region["endLine"]
        lines = io.StringIO(path.read_text()).readlines()
        line = lines[region["startLine"] - 1]
        lines[region["startLine"] - 1] = (
            line[: region["startColumn"] - 1] + replacement["insertedContent"]["text"] + line[region["endColumn"] - 1 :]
        )
        data = "".join(lines).encode()
    assert data.decode() == changed(chain(), "conv", 'strides="1,1"', 'strides="1,1,1"').text


def test_without_weights_an_edge_is_not_guessed_at(tmp_path: Path) -> None:
    """The wrong dim is that of the output, as the .bin would show."""
    path = tmp_path / "wrong_dim.xml"
    path.write_bytes((SAMPLES / "wrong_dim.xml").read_bytes())
    before = path.read_bytes()
    done = CliRunner().invoke(cli, ["check", str(path), "--fix"])
    assert done.exit_code == 1
    assert "IR501" in done.output
    assert path.read_bytes() == before


def runnable() -> Net:
    """A constant added to an input: a model whose outputs show which shape each has."""
    net = Net()
    x = net.parameter("f32", "1,3", name="x")
    net.result(net.add("Add", [x, net.const("f32", "2,3", bytes(24), name="c")], [("FP32", "2,3")], name="sum"))
    return net


def test_a_model_that_runs_gives_the_same_after_a_fix(call, tmp_path):
    net = runnable()
    path = net.save(tmp_path)
    path.write_text(net.text.replace("<dim>3</dim>", "<dim>4</dim>"))
    result = call("check", "net.xml", "--fix", "--unsafe-fixes")
    assert (result.exit_code, result.stdout) == (0, "")
    assert path.read_text() == net.text


def test_what_no_run_shows_is_told(call, tmp_path):
    net = runnable()
    path = net.save(tmp_path)
    path.write_text(net.text.replace("<dim>2</dim>", "<dim>7</dim>", 1))
    path.with_suffix(".bin").unlink()
    said = "net.xml: no run shows that the fixed model gives what it gave: "
    assert said in call("check", "net.xml", "--diff").stderr
    assert said in call("check", "net.xml", "--fix").stderr
