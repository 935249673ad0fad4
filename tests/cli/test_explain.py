"""irrun explain."""

import pytest

from irrun.codes import CODES, Code
from places import SAMPLES


def test_all_codes_are_listed(call):
    rows = [line.split() for line in call("explain").stdout.splitlines()]
    assert rows == [["code", "severity", "name"], *([c.id, c.kind.severity, c.name] for c in CODES.values())]


@pytest.mark.parametrize("name", ["IR401", "ir401", "dims-mismatch"])
def test_one_code(name, call):
    title, doc, *page = call("explain", name).stdout.split("\n\n")
    assert title == "IR401 dims-mismatch (error)"
    assert " ".join(doc.splitlines()) == CODES["IR401"].doc
    assert "Wrong" in page
    assert "Right" in page


@pytest.mark.parametrize(("beginning", "ids"), [
    ("IR4", ["IR401", "IR402", "IR403", "IR404", "IR405", "IR406", "IR407"]), ("ir4xx", "as above"), ("4", "as above"),
    ("IR70", ["IR701", "IR702", "IR703", "IR704", "IR705", "IR706", "IR707"]),
    ("dims", ["IR401", "IR402", "IR405"]), ("edge-", ["IR304", "IR402"]),
])  # fmt: skip
def test_the_beginning_of_a_code_lists_the_group(beginning, ids, call):
    group = ["IR401", "IR402", "IR403", "IR404", "IR405", "IR406", "IR407"] if ids == "as above" else ids
    result = call("explain", beginning)
    assert result.exit_code == 0
    head, *rows = [line.split() for line in result.stdout.splitlines()]
    assert head == ["code", "severity", "name"]
    assert [row[0] for row in rows] == group


@pytest.mark.parametrize(
    ("code", "said"), [("IR999", "there is no code IR999"), ("dims-mismach", "did you mean IR401 dims-mismatch?")]
)
def test_an_unknown_code(code, said, call):
    result = call("explain", code)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["check", str(SAMPLES / "wrong_dim.xml")], ["explain"]])
def test_a_page_is_read_only_when_it_is_shown(arguments, call, monkeypatch):
    monkeypatch.setattr(Code, "_text", lambda code: pytest.fail(f"the page of {code.id} is read"))
    assert call(*arguments).exit_code in (0, 1)
