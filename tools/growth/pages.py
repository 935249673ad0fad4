"""Pages of documentation with many examples, headings, code blocks or tags."""

from __future__ import annotations

from typing import Final

from growth.catalogue import PAGE, case

EXAMPLE: Final = (
    '<layer type="ReLU"><input><port id="0"><dim>2</dim></port></input>'
    '<output><port id="1"><dim>{}</dim></port></output></layer>\n'
)


def _page(examples: str) -> str:
    return f"Examples\n\n```xml\n{examples}```\n"


@case(PAGE, ".md")
def examples(count: int) -> str:
    return _page(EXAMPLE.format(2)) * count


@case(PAGE, ".md")
def examples_of_a_block(count: int) -> str:
    return _page(EXAMPLE.format(2) * count)


@case(("check",), ".md")
def examples_with_findings(count: int) -> str:
    return _page(EXAMPLE.format(3)) * count


@case(PAGE, ".rst")
def examples_in_rst(count: int) -> str:
    return ("Title\n=====\n\n.. code-block:: xml\n\n    " + EXAMPLE.format(2) + "\n") * count


@case(PAGE, ".html")
def examples_in_html(count: int) -> str:
    return f"<html><body>{('<pre>' + EXAMPLE.format(2).replace('<', '&lt;') + '</pre>') * count}</body></html>"


@case(PAGE, ".html")
def examples_in_a_line_of_html(count: int) -> str:
    return f"<html><pre>{EXAMPLE.strip().format(2).replace('<', '&lt;') * count}"


@case(("check",), ".html")
def findings_in_a_line_of_html(count: int) -> str:
    return f"<html><pre>{EXAMPLE.strip().format(3).replace('<', '&lt;') * count}"


@case(PAGE, ".txt")
def examples_in_a_line(count: int) -> str:
    return "Examples " + EXAMPLE.strip().format(2) * count


@case(PAGE, ".md")
def headings(count: int) -> str:
    return "# Heading\n\n" * count + _page(EXAMPLE.format(2))


@case(PAGE, ".rst")
def headings_in_rst(count: int) -> str:
    return "Heading\n=======\n\n" * count + _page(EXAMPLE.format(2))


@case(PAGE, ".md")
def code_blocks(count: int) -> str:
    return "```\ncode\n```\n" * count + _page(EXAMPLE.format(2))


@case(PAGE, ".md")
def open_code_blocks(count: int) -> str:
    return "".join(f"{'`' * (3 + i % 9)}\n" for i in range(count)) + _page(EXAMPLE.format(2))


@case(PAGE, ".html")
def tags_of_a_page(count: int) -> str:
    return f"<html>{'<p>text &amp; text</p>' * count}<pre>{EXAMPLE.format(2).replace('<', '&lt;')}</pre></html>"


@case(PAGE, ".html")
def open_tags_of_a_page(count: int) -> str:
    return f"<html>{'<pre><div>' * count}{EXAMPLE.format(2).replace('<', '&lt;')}"


@case(("check",), ".md")
def unclosed_layers(count: int) -> str:
    return _page("<layer type='ReLU'>\n" * count)


@case(("check",), ".txt")
def unclosed_layers_in_text(count: int) -> str:
    return "Examples\n" + "<layer type='ReLU'>\n" * count


@case(("check",), ".txt")
def unclosed_layers_in_a_line(count: int) -> str:
    return "Examples\n" + "<layer type='ReLU'>" * count


@case(("check",), ".md")
def unclosed_layers_deeper(count: int) -> str:
    return _page("".join(" " * (i % 90) + "<layer type='a'>\n" for i in range(count)))


@case(("check",), ".md")
def closing_tags(count: int) -> str:
    return _page("</layer>\n" * count + EXAMPLE.format(2))


@case(("check",), ".md")
def layer_tags_cut_short(count: int) -> str:
    return _page("<layer \n" * count)


@case(PAGE, ".md")
def comments_in_an_example(count: int) -> str:
    return _page(EXAMPLE.format(2).replace("</input>", "<!-- two -->\n" * count + "</input>"))


@case(PAGE, ".md")
def contents_in_a_comment(count: int) -> str:
    example = EXAMPLE.format(count).replace("<dim>2</dim>", f"<dim>{count}</dim><!-- [{', '.join('2' * count)}] -->")
    return _page(example)


@case(("check",), ".md")
def inputs_of_an_example(count: int) -> str:
    ports = "".join(f'<port id="{i}"><dim>2</dim></port>\n' for i in range(count))
    data = f'<data axis="0"/><input>{ports}</input><output><port id="{count}"><dim>3</dim></port></output>'
    return _page(f'<layer type="Concat">{data}</layer>\n')
