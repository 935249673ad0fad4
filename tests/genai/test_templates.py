"""Chat templates: what Hugging Face's templates use, where they come from, and what hostile ones may not do."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from irrun.diagnostics import FeedError, IrrunError, ReadError, UnsupportedError
from irrun.genai import ChatTemplate, Folder, Pipeline
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


HOSTILE = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "{% for a in range(999999999) %}{% endfor %}", "{{ 'a' * 9999999999 }}",
    "{{ 10 ** 9999999 }}", "{{ '%9999999999d' % 1 }}", "{{ '%*d' % (999999999, 1) }}", "{{ '{:>9999999999}'.format(1) }}", "{{ 'a'.center(9999999999) }}",
    "{{ 'a' | center(9999999999) }}", "{{ 'a\nb' | indent(9999999999) }}", "{{ [1] | tojson(indent=999999999) }}", "{{ [1] | batch(999999999, 1) | list }}",
    "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x.replace('a', 'aaaaaaaaaa') %}{% endfor %}",
    "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x | replace('a', 'aaaaaaaaaa') %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
    "{% set ns = namespace(x=['a' * 99999]) %}{{ (ns.x * 99999) | join }}", "{{ (['a'] * 99999) | join('b' * 99999) }}", "{{ strftime_now('%9999999999d') }}",
    "{% for a in range(9999) %}{{ 'a' * 9999 }}{% endfor %}",
]  # fmt: skip
ESCAPES = [
    "{{ ''.__class__.__mro__ }}", "{{ messages.__init__.__globals__ }}", "{{ raise_exception.__globals__ }}", "{{ messages.append(1) }}", "{{ lipsum(n=9) }}",
    "{{ self.__init__ }}", "{{ '{0.__class__}'.format(1) }}", "{% include 'x' %}", "{% import 'os' as os %}", "{{ cycler.__init__.__globals__.os.system('x') }}",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_ones_are_stopped(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from irrun.genai import sandbox

    monkeypatch.setattr(sandbox, "_SECONDS", 0.3)
    since = time.process_time()
    with pytest.raises(IrrunError, match="IR806"):
        template(tmp_path, text)(HELLO)
    assert time.process_time() - since < 5


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


def test_the_trace_function_is_put_back(tmp_path: Path) -> None:
    before = sys.gettrace()
    template(tmp_path, "a")(HELLO)
    assert sys.gettrace() is before


def test_without_jinja(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "irrun.genai.sandbox", None)
    with pytest.raises(UnsupportedError, match=r"IR201.*jinja2, which is not installed; pip install 'irrun\[genai\]'"):
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
