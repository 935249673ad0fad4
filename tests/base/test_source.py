"""Exact lines and columns, in every encoding and however long the file is."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irrun.base.source import Source, Span

TEXT = """\
<?xml version="1.0"?>
<net name="näme 😀 𐍈">
\t<layers>
\t\t<layer id="0" name="a > b 'id'" type='T'><data shape="1,2"/><!-- <dim>9</dim> -->
\t\t\t<port id="7"><dim>48</dim><dim
>3</dim><dim> 5 </dim></port>
\t\t</layer>
\t\t<layer
\t\t\tid="1"  name = 'id="2"'
\t\t\ttype="T" version="opset1
"
\t\t><DIM>1</DIM></layer>
\t</layers>
</net>
"""


def span(source: Source, node: int, attribute: str | None = None) -> tuple[int, int, str]:
    """Line and column of a span, and the text that it marks."""
    found = source.span(node, attribute)
    return found.line, found.column, source.line(found.line)[found.column - 1 : found.end - 1]


# element: its place and text, by ordinal
ELEMENTS = [
    (2, 1, '<net name="näme 😀 𐍈">'),
    (3, 2, "<layers>"),
    (4, 3, """<layer id="0" name="a > b 'id'" type='T'>"""),
    (4, 44, '<data shape="1,2"/>'),
    (5, 4, '<port id="7">'),
    (5, 17, "<dim>48</dim>"),
    (5, 30, "<dim"),
    (6, 9, "<dim> 5 </dim>"),
    (8, 3, "<layer"),
    (12, 4, "<DIM>1</DIM>"),
]

ATTRIBUTES = [
    (0, "name", 2, 6, 'name="näme 😀 𐍈"'),
    (2, "id", 4, 10, 'id="0"'),
    (2, "name", 4, 17, """name="a > b 'id'\""""),
    (2, "type", 4, 35, "type='T'"),
    (2, "shape", 4, 3, """<layer id="0" name="a > b 'id'" type='T'>"""),  # not given: the tag
    (8, "id", 9, 4, 'id="1"'),
    (8, "name", 9, 12, """name = 'id="2"'"""),
    (8, "type", 10, 4, 'type="T"'),
    (8, "version", 10, 13, 'version="opset1'),
    (9, "id", 12, 4, "<DIM>"),
]

ENCODINGS = {
    "utf-8": TEXT.encode(),
    "utf-8-bom": TEXT.encode("utf-8-sig"),
    "utf-16": TEXT.encode("utf-16"),
    "utf-16-be": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-16-no-bom": TEXT.replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16-le"),
    "utf-16-declared-utf-8": TEXT.replace('"1.0"', '"1.0" encoding="UTF-8"').encode("utf-16"),
    "utf-32": TEXT.encode("utf-32"),
    "utf-32-be-no-bom": TEXT.encode("utf-32-be"),
    "gb18030": TEXT.replace('"1.0"', '"1.0" encoding="gb18030"').encode("gb18030"),
    "crlf": TEXT.replace("\n", "\r\n").encode(),
    "cr": TEXT.replace("\n", "\r").encode(),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_elements(encoding: str) -> None:
    source = Source("x.xml", ENCODINGS[encoding])
    assert [span(source, node) for node in range(len(ELEMENTS))] == ELEMENTS


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("node", "attribute", "line", "column", "text"), ATTRIBUTES)
def test_attributes(encoding: str, node: int, attribute: str, line: int, column: int, text: str) -> None:
    assert span(Source("x.xml", ENCODINGS[encoding]), node, attribute) == (line, column, text)


PARENTS = [None, 0, 1, 2, 2, 4, 4, 4, 1, 8]
"""The parent of each element of ``ELEMENTS``."""


def _ancestors(node: int | None) -> list[int]:
    return [] if node is None else [node, *_ancestors(PARENTS[node])]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_elements_at_a_line_and_column(encoding: str) -> None:
    """An element is found from its first column up to the first column of the next one."""
    source = Source("x.xml", ENCODINGS[encoding])
    last = None
    for line, text in enumerate(TEXT.split("\n"), 1):
        begun = {column: node for node, (at, column, _) in enumerate(ELEMENTS) if at == line}
        first = min(begun.values(), default=last)
        assert source.around(line) == _ancestors(first)
        for column in range(1, len(text) + 2):
            last = begun.get(column, last)
            assert source.around(line, column) == _ancestors(last), (line, column)
    assert source.around(0) == source.around(0, 1) == source.around(99) == source.around(99, 1) == []


@pytest.mark.parametrize(("encoding", "mark"), [("utf-16", 2), ("utf-16-be", 2), ("utf-32", 4), ("utf-8-sig", 3)])
def test_the_byte_of_a_character_in_a_file_of_another_encoding(encoding: str, mark: int) -> None:
    """Characters of two to four bytes stand at every place relative to the border of a block of 4,096 bytes."""
    for shift in range(4):
        text = f"<net a='{'x' * (4077 + shift)}é€😀é😀{'y' * 4066}😀😀'/>"
        data = (b"\xfe\xff" if encoding == "utf-16-be" else b"") + text.encode(encoding)
        source = Source("x.xml", data)
        plain = encoding.replace("utf-8-sig", "utf-8").replace("utf-16-be", "utf-16be")
        width = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(plain, plain)
        for at in (*range(4060, 4100), *range(len(text) - 10, len(text) + 1)):
            assert source.place_in_data(len(text[:at].encode())) == mark + len(text[:at].encode(width)), (shift, at)


def test_first_line_with_a_byte_order_mark() -> None:
    source = Source("x.xml", b"\xef\xbb\xbf<net><a/></net>")
    assert source.span(0) == Span(1, 1, 6)
    assert source.span(1) == Span(1, 6, 10)
    assert source.line(1) == "<net><a/></net>"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_after_white_space(encoding: str) -> None:
    """Without a byte order mark, expat takes the zero bytes of any character for UTF-16."""
    data = "\n<net><a/></net>".encode(encoding)
    source = Source("x.xml", data)
    assert source.utf8 == b"\n<net><a/></net>"
    assert source.span(1) == Span(2, 6, 10)


def test_latin_1() -> None:
    source = Source("x.xml", '<?xml version="1.0" encoding="ISO-8859-1"?><né><a/></né>'.encode("latin-1"))
    assert source.span(1).column == 48
    assert source.line(1).endswith("<né><a/></né>")


def test_past_line_65535() -> None:
    """libxml2 keeps lines in 16 bits."""
    count = 200_000
    source = Source("x.xml", b"<net>\n" + b"  <a>\n  <dim>1</dim></a>\n" * count + b"</net>")
    assert source.span(2 * count - 1) == Span(2 * count, 3, 6)
    assert source.span(2 * count) == Span(2 * count + 1, 3, 15)
    assert source.children(2 * count - 1, "dim") == [2 * count]


def test_children() -> None:
    source = Source("x.xml", TEXT.encode())
    assert source.children(0, "layers") == [1]
    assert source.children(1, "layer") == [2, 8]
    assert source.children(2, "data") == [3]
    assert source.children(4, "dim") == [5, 6, 7]
    assert source.children(8, "dim") == [9]  # in any case of letters
    assert source.children(1, "dim") == []


def test_a_fragment_of_a_document() -> None:
    whole = "A page\n\n    <layer id='1'>\n    <port/></layer>\n"
    source = Source("x.txt", b"    <layer id='1'>\n    <port/></layer>\n", first_line=3, whole=whole.encode())
    assert span(source, 0, "id") == (3, 12, "id='1'")
    assert span(source, 1) == (4, 5, "<port/>")
    assert source.line(1) == "A page"
    assert source.line(99) == ""
    assert source.line(0) == ""


def test_a_tag_of_very_many_lines() -> None:
    source = Source("x.xml", b"<net\n" + b"\n" * 300_000 + b" version='11'\n" + b"\n" * 300_000 + b"/>")
    assert source.span(0, "version") == Span(300_002, 2, 14)


# a machine under load draws slowly, which says nothing of the positions
@settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(["<a>", "</a>", "<b x='1'/>", "é", "😀", "\n", "\r\n", "\t", "<!-- <a> -->"]), max_size=40)
)
def test_every_start_tag_is_found_where_it_stands(parts: list[str]) -> None:
    depth = 0
    well_formed: list[str] = []
    for part in parts:
        depth += (part == "<a>") - (part == "</a>")
        if depth < 0:
            depth = 0
            continue
        well_formed.append(part)
    text = "<net>" + "".join(well_formed) + "</a>" * depth + "</net>"
    source = Source("x.xml", text.encode())
    bare = re.sub(r"<!--.*?-->", lambda m: "~" * len(m[0]), text)
    node = 0
    for number, line in enumerate(bare.replace("\r\n", "\n").split("\n"), 1):
        for tag in re.finditer(r"<[a-z][^>]*>", line):
            found = source.span(node)
            assert (found.line, found.column) == (number, tag.start() + 1)
            node += 1


def test_elements_at_a_byte() -> None:
    """An element holds its bytes from its start tag to the end of its end tag."""
    text = "<a>\n<b x='1'/><c>é<D/></c></a>\n"
    source = Source("x.xml", text.encode())
    ends = {0: "</a>", 1: "<b x='1'/>", 2: "</c>", 3: "<D/>"}
    for node, end in ends.items():
        assert source.end(node) == len(text[: text.index(end) + len(end)].encode())
    at = {"<b": [1, 0], "<c": [2, 0], "é": [2, 0], "<D": [3, 2, 0], "</c": [2, 0], "</a": [0]}
    for place, nodes in at.items():
        assert source.at(len(text[: text.index(place)].encode())) == nodes
    assert source.at(len(text.encode()) - 1) == []
    assert [list(source.tagged(tag)) for tag in ("b", "d", "e")] == [[1], [3], []]
    for offset in (0, 4, text.index("é"), len(text.encode()) - 2):
        assert source.byte(*source.place(offset)) == offset
