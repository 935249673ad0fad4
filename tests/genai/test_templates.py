"""Chat templates: what Hugging Face's templates use, where they come from, and what hostile ones may not do."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
import time
from collections import UserDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irrun.diagnostics import FeedError, IrrunError, ReadError, UnsupportedError
from irrun.genai import ChatTemplate, Folder, Pipeline, rendering
from language_models import write

pytest.importorskip("jinja2", reason="chat templates need the package jinja2")

HELLO = [{"role": "user", "content": "Hello"}]


def template(folder: Path, text: str, **config: Any) -> ChatTemplate:
    (folder / "chat_template.jinja").write_text(text, "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    made = ChatTemplate.of(Folder.open(folder), None)
    assert made is not None
    return made


CHATML = """{%- for message in messages %}
    {%- if loop.first and message['role'] != 'system' %}
        {{- '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}
    {%- endif %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""


def test_a_real_one(tmp_path: Path) -> None:
    """The usual form for Qwen and others; the text was written by hand."""
    expected = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    own = template(tmp_path, CHATML)
    assert own(HELLO) == expected
    assert own(HELLO, add_generation_prompt=False) == expected.removesuffix("<|im_start|>assistant\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ bos_token }}{{ eos_token }}", "<s></s>"), ("{{ {'a': '<é>'} | tojson }}", '{"a": "<é>"}'), ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("{% for m in [1, 2, 3] %}{% if m == 2 %}{% break %}{% endif %}{{ m }}{% endfor %}", "1"),
        ("{% generation %}x{% endgeneration %}", "x"), ("{{ strftime_now('%Y') | length }}", "4"), ("{{ tools is none }}", "True"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "1"),
        ("{{ 'a' * 3 ~ 2 ** 3 ~ 'x=%d' % 5 ~ '-'.join(['p', 'q']) ~ 'ab'.replace('a', 'cc') }}", "aaa8x=5p-qccb"),
        ("{{ messages[0].content | upper | indent(2) | replace('L', 'l') | default('') }}", "HEllO"), ("{{ thinking }}", "yes"),
        ("{% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{{ ['a','b'] | join(', ') }}{{ 'abc'[::-1] }}{{ 'a b'.split(' ')[1] }}", "a, bcbab"), ("{{ messages | map(attribute='role') | list }}", "['user']"),
    ],
)  # fmt: skip
def test_what_templates_use(text: str, expected: str, tmp_path: Path) -> None:
    own = template(tmp_path, text, bos_token="<s>", eos_token={"content": "</s>"})
    assert own(HELLO, thinking="yes") == expected


def test_where_it_comes_from(tmp_path: Path) -> None:
    def text(stored: str | None = None) -> str | None:
        made = ChatTemplate.of(Folder.open(tmp_path), stored)
        return None if made is None else made(HELLO)

    assert text() is None
    assert text("from the IR") == "from the IR"
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "from JSON"}')
    assert text("from the IR") == "from JSON"
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "the default"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert text() == "the default"
    (tmp_path / "chat_template.jinja").write_text("from the file")
    assert text() == "from the file"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("{% for m in messages %}\n{{ m }}", 2, "Unexpected end of template"), ("a\n{{ b c }}", 2, "expected token 'end of print statement'"),
        ("a\n\n{% iff %}", 3, "Encountered unknown tag 'iff'"), ("{{ x | frobnicate }}", 1, "No filter named 'frobnicate'"),
    ],
)  # fmt: skip
def test_a_broken_one(text: str, line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="IR806") as caught:
        template(tmp_path, text)
    (found,) = caught.value.diagnostics
    assert (found.line, found.file) == (line, str(tmp_path / "chat_template.jinja"))
    assert message in found.message


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a\n{{ raise_exception('roles must alternate') }}", 2, "the template refuses the messages: roles must alternate"),
        ("{{ 1 }}\n{{ messages[0].nothing.more }}", 2, "has no attribute 'nothing'"), ("\n\n{{ 1 / 0 }}", 3, "division by zero"),
    ],
)  # fmt: skip
def test_one_that_fails(text: str, line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(FeedError, match="IR806") as caught:
        template(tmp_path, text)(HELLO)
    (found,) = caught.value.diagnostics
    assert found.line == line
    assert message in found.message


def test_the_line_of_one_in_json(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{\n "a": 1,\n "chat_template": "a\\n{{ b c }}"\n}')
    with pytest.raises(ReadError, match="IR806") as caught:
        ChatTemplate.of(Folder.open(tmp_path), None)
    (found,) = caught.value.diagnostics
    assert found.line == 3
    assert found.notes == ("line 2 of the template: {{ b c }}",)


HOSTILE = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
    "macros": "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "macros-by-two": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "macros-in-turn": "{% macro f(n) %}{{ g(n) }}{% endmacro %}{% macro g(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "caller": "{% macro f() %}{{ caller() }}{{ caller() }}{% endmacro %}{% macro g(n) %}{% call f() %}{% if n %}{{ g(n - 1) }}{% endif %}{% endcall %}{% endmacro %}{{ g(50) }}",
    "recursive-loop": "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{% for a in ns.x recursive %}{{ loop(a) if a is iterable }}{% endfor %}",
    "range": "{% for a in range(999999999) %}{% endfor %}",
    "times": "{{ 'a' * 9999999999 }}", "times-list": "{{ ([1] * 9999999999) | length }}", "times-twice": "{{ ('a' * 99999 * 99999) | length }}",
    "power": "{{ 10 ** 9999999 ** 2 }}", "power-of-a-power": "{{ 9 ** (9 ** (9 ** 9)) }}", "power-in-test": "{% if 7 ** 99999999 > 1 %}{% endif %}", "power-as-text": "{{ (2 ** 99999999) | string }}",
    "width": "{{ '%9999999999d' % 1 }}", "width-of-2gb": "{{ '%2000000000d' % 1 }}", "width-by-argument": "{{ '%*d' % (999999999, 1) }}", "precision": "{{ '%.999999999f' % 1 }}",
    "format": "{{ '{:>9999999999}'.format(1) }}", "format-by-argument": "{{ '{:>{}}'.format(1, 9999999999) }}", "format-filter": "{{ '%9999999999d' | format(1) }}",
    "center": "{{ 'a'.center(9999999999) }}", "center-filter": "{{ 'a' | center(9999999999) }}", "ljust": "{{ 'a'.ljust(9999999999) }}", "zfill": "{{ '1'.zfill(9999999999) }}",
    "expandtabs": "{{ '\t'.expandtabs(9999999999) }}", "indent": "{{ 'a\nb' | indent(9999999999) }}", "json-indent": "{{ [1] | tojson(indent=999999999999) }}",
    "batch": "{{ [1] | batch(999999999, 1) | list }}", "slice-filter": "{{ [1] | slice(999999999) | list }}", "wordwrap": "{{ ('a ' * 9999999) | wordwrap(1, wrapstring='b' * 9999) }}",
    "truncate": "{{ ('a' * 999999999) | truncate(999999998, True, 'b' * 999999999) }}", "strftime": "{{ strftime_now('%9999999999d' * 999999) }}",
    "concatenations": "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "sums": "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "list-sums": "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "replace": "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x.replace('a', 'aaaaaaaaaa') %}{% endfor %}",
    "replace-filter": "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x | replace('a', 'aaaaaaaaaa') %}{% endfor %}",
    "replace-nothing": "{{ ('a' * 999999).replace('', 'b' * 999999) }}", "numbers": "{% set ns = namespace(x=9) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "nested": "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "nested-json": "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
    "deep-json": "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
    "deep-text": "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
    "deep-dicts": "{% set ns = namespace(x={}) %}{% for i in range(99999) %}{% set ns.x = {'a': ns.x} %}{% endfor %}{{ ns.x | tojson }}",
    "compared": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "sorted": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ [ns.x, ns.y, ns.x] | sort }}",
    "unique": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ [ns.x, ns.x] | unique | list }}",
    "contained": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x in [ns.y] }}",
    "flattened": "{{ ([[0]] * 200000) | sum(start=[]) | length }}", "product-of-sums": "{{ (['ab'] * 99999 * 99) | join('c') | length * 'a' }}",
    "kept-lists": "{% set ns = namespace(x=[]) %}{% for a in range(99999) %}{% for i in range(999) %}{% set ns.x = [ns.x, [0] * 100000] %}{% endfor %}{% endfor %}",
    "kept-texts": "{% set ns = namespace(x=[]) %}{% for a in range(99999) %}{% set ns.x = [ns.x, 'a' * (99999 + a)] %}{% endfor %}",
    "join": "{% set ns = namespace(x=['a' * 99999]) %}{{ (ns.x * 99999) | join }}", "join-by-much": "{{ (['a'] * 99999) | join('b' * 99999) }}",
    "output": "{% for a in range(9999) %}{{ 'a' * 9999 }}{% endfor %}", "reversed": "{{ ('a' * 999999999)[::-1] | length * '' ~ ('b' * 999999999) }}",
    "huge-integer": "{{ ('9' * 999999) | int ** 2 }}{{ raise_exception('end') }}", "split": "{{ ('a ' * 99999999).split() | length }}{{ ('a ' * 99999999) | wordcount }}",
    "grouped": "{{ (range(99999) | list * 9999) | groupby('x') }}", "cycler": "{% set c = cycler(1, 2) %}{% for a in range(99999) %}{% for b in range(99999) %}{{ c.next() }}{% endfor %}{% endfor %}",
    "striptags": "{% for a in range(99999) %}{{ ('<' * 99999) | striptags }}{% endfor %}", "urlize": "{% for a in range(9999) %}{{ ('http://a.' * 9999) | urlize | length }}{% endfor %}",
    "title": "{% for a in range(99999) %}{{ ('a-' * 99999) | title | length }}{% endfor %}", "pprint": "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | pprint }}",
    "xmlattr": "{{ {'a': 'b' * 999999999} | xmlattr }}", "escape": "{{ ('<' * 499999999) | e }}", "filesize": "{{ 10 ** 9999999 | filesizeformat }}{{ (10 ** 99999999) | filesizeformat }}",
}  # fmt: skip
ESCAPES = [
    "{{ ''.__class__.__mro__ }}", "{{ messages.__init__.__globals__ }}", "{{ raise_exception.__globals__ }}", "{{ messages.append(1) }}", "{{ lipsum(n=9) }}",
    "{{ self.__init__ }}", "{{ '{0.__class__}'.format(1) }}", "{% include 'x' %}", "{% import 'os' as os %}", "{{ cycler.__init__.__globals__.os.system('x') }}",
]  # fmt: skip


@pytest.mark.processes
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_ones_are_stopped(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ends with an error within the limits, which are less here: a second, and 256 MiB."""
    monkeypatch.setattr(rendering, "_SECONDS", 1.0)
    monkeypatch.setattr(rendering, "_MEMORY", 1 << 28)
    own = template(tmp_path, HOSTILE[name])
    since, before = time.monotonic(), _peak()
    with pytest.raises(FeedError, match="IR806") as caught:
        own(HELLO)
    assert time.monotonic() - since < 8  # on a busy machine
    assert _peak() <= max(before, 5 << 26) + (1 << 25)  # other processes of the tests end meanwhile
    assert len(str(caught.value)) < 1000


def _peak() -> int:
    """Return the bytes of the largest child so far, where the system tells it."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1 << 10)


@pytest.mark.parametrize("name", HOSTILE)
def test_compiling_computes_nothing(name: str, tmp_path: Path) -> None:
    """`irrun check` compiles a template within its own process."""
    since = time.process_time()
    template(tmp_path, HOSTILE[name])
    assert time.process_time() - since < 2


@pytest.mark.parametrize("value", ["9 ** 999999999", "'a' | center(9999999999)", "[0] * 9999999999"])
def test_a_computed_autoescape(value: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"IR806.*autoescape takes true or false"):
        template(tmp_path, f"{{% autoescape {value} %}}a{{% endautoescape %}}")
    assert template(tmp_path, "{% autoescape false %}<{% endautoescape %}")(HELLO) == "<"


def test_a_template_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next text starts a new process, and one process serves a whole conversation."""
    own = template(
        tmp_path, "{% for a in range(count) %}{% for b in range(count) %}{% endfor %}{% endfor %}{{ count }}"
    )
    assert own(HELLO, count=1) == "1"
    renderer = own._renderer
    first = renderer._process
    assert own(HELLO, count=2) == "2"
    assert renderer._process is first
    with monkeypatch.context() as patched:
        patched.setattr(rendering, "_SECONDS", 0.3)
        renderer._stop()
        with pytest.raises(FeedError, match=r"it ran for over 0\.3 s"):
            own(HELLO, count=99999)
    assert own(HELLO, count=3) == "3"
    process = renderer._process
    assert process is not None
    del own, renderer
    gc.collect()
    assert not process.is_running


def test_what_variables_may_be(tmp_path: Path) -> None:
    own = template(tmp_path, "{{ value }}")
    values = [
        1,
        2.5,
        None,
        True,
        "a\udc80",
        (1, "b"),
        {1: [2]},
        {3},
        np.float32(0.5),
        np.arange(3),
        UserDict({"k": UserDict(a=(1,))}),
    ]
    texts = [own(HELLO, value=value) for value in values]
    assert texts == [
        "1",
        "2.5",
        "None",
        "True",
        "a\udc80",
        "(1, 'b')",
        "{1: [2]}",
        "{3}",
        "0.5",
        "[0, 1, 2]",
        "{'k': {'a': (1,)}}",
    ]
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    for value, said in (
        (object(), "the variable value holds a object"),
        (deep, "the variable value is nested more than 100 deep"),
    ):
        with pytest.raises(FeedError, match=f"IR806.*{said}"):
            own(HELLO, value=value)


def test_where_no_process_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = template(tmp_path, "{{ messages[0].content }}")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(tmp_path / "missing"))
        with pytest.raises(FeedError, match=r"IR806.*no process can be started for the template: No such file"):
            own(HELLO)
    monkeypatch.setattr(rendering, "_NO_PROCESSES", (sys.platform,))  # a browser
    assert own(HELLO) == "Hello"
    with pytest.raises(FeedError, match=r"IR806.*division by zero"):
        template(tmp_path, "{{ 1 / 0 }}")(HELLO)


def test_nothing_of_the_current_folder_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "marshal", "base64", "jinja2", "datetime", "resource"):
        (tmp_path / f"{name}.py").write_text("import os\nopen('executed', 'w')\nos._exit(1)\n")
    own = template(tmp_path, "{{ messages[0].content }}")
    monkeypatch.chdir(tmp_path)
    assert own(HELLO) == "Hello"
    assert not Path("executed").exists()


@pytest.mark.parametrize("text", ESCAPES)
def test_there_is_no_way_out(text: str, tmp_path: Path) -> None:
    messages: list[dict[str, str]] = list(HELLO)
    said = ""
    with contextlib.suppress(IrrunError):
        said = template(tmp_path, text)(messages)
    assert said == ""
    assert messages == HELLO


def test_deep_nesting(tmp_path: Path) -> None:
    for text in ("{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}", "{% if 1 %}" * 9999, "x" * (2 << 20)):
        with pytest.raises(IrrunError, match="IR806"):
            template(tmp_path, text)(HELLO)


def test_without_jinja(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "irrun.genai.sandbox", None)
    with pytest.raises(
        UnsupportedError, match=r'IR201.*jinja2, which is not installed; install it: pip install "\.\[genai\]"'
    ):
        template(tmp_path, "a")


def test_a_chat(tmp_path: Path) -> None:
    """The template says where special tokens are, so that the tokenizer adds none; its special tokens are read as such."""
    pytest.importorskip("regex", reason="the tokenizers need the package regex")
    folder = write(tmp_path)
    with pytest.raises(ReadError, match=r"IR801.*the folder has no chat template"):
        Pipeline(folder).generate(HELLO)
    template(folder, CHATML)
    pipeline = Pipeline(folder)
    result = pipeline.generate(HELLO, max_new_tokens=2)
    assert pipeline.chat(HELLO).startswith("<|im_start|>system\n")
    assert result.prompt_ids[0] == 1
    assert result.prompt_ids[1] != 1
    assert result.prompt_ids.count(1) == 3
    assert result.prompt_ids.count(2) == 2
