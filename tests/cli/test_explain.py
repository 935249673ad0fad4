"""irrun explain."""

import pytest

from irrun.diagnostics import CODES


def test_all_codes_are_listed(call):
    rows = [line.split() for line in call("explain").stdout.splitlines()]
    assert rows == [["code", "severity", "name"], *([c.id, c.severity, c.name] for c in CODES.values())]


@pytest.mark.parametrize("name", ["IR401", "ir401", "dims-mismatch"])
def test_one_code(name, call):
    title, doc, *page = call("explain", name).stdout.split("\n\n")
    assert title == "IR401 dims-mismatch (error)"
    assert " ".join(doc.splitlines()) == CODES["IR401"].doc
    assert "Wrong" in page
    assert "Right" in page


@pytest.mark.parametrize(
    ("code", "said"), [("IR999", "there is no code IR999"), ("dims-mismach", "did you mean IR401 dims-mismatch?")]
)
def test_an_unknown_code(code, said, call):
    result = call("explain", code)
    assert result.exit_code == 2
    assert said in result.stderr
