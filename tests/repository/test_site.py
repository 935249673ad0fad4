"""The documentation site: its generated pages cover everything that irrun declares, and it builds without a warning."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import irrun
from irrun.cli import COMMANDS
from irrun.codes import CODES
from irrun.departures import departures
from irrun.opdef import all_ops, is_custom, labels
from places import DEPARTURES, ROOT

DOCS = ROOT / "docs"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", DOCS / "_ext" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site_pages = _load()


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return site_pages.pages()


def test_every_operation_version_has_its_section(pages: dict[str, str]) -> None:
    ours = [cls for cls in all_ops() if cls.__module__.startswith(("irrun.ops.", "irrun.extensions."))]
    expected = {f"operations/{cls.type}.md" for cls in ours} | {"operations/index.md"}
    assert {name for name in pages if name.startswith("operations/")} == expected
    for cls in ours:
        page = pages[f"operations/{cls.type}.md"]
        title = f"{cls.type}-{cls.since}" + (
            f" of the extension {cls.__module__.split('.')[2]}" if is_custom(cls) else ""
        )
        section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
        assert is_custom(cls) or f"/operation-specs/{cls.spec}.html" in section
        for port in cls.inputs:
            assert f"| `{port.name}` |" in section
        for attribute in cls.attributes.values():
            assert f"| `{attribute.name}" in section
        assert re.findall(r"^\| (C\d+) \|", section, re.MULTILINE) == [*labels(cls)]
        assert f"[{cls.type}]({cls.type}.md)" in pages["operations/index.md"]


def test_a_page_of_an_operation(pages: dict[str, str]) -> None:
    """Broadcast, against its pages in the specification: movement/broadcast-3 and broadcast-1."""
    page = pages["operations/Broadcast.md"]
    assert page.index("## Broadcast-3") < page.index("## Broadcast-1")
    assert "opset3 and later" in page
    assert "opset1 to opset2" in page
    assert "| `mode` | one of numpy, explicit, bidirectional | numpy |" in page
    assert "| `axes_mapping` | int | optional |" in page
    assert "| C1 | `axes_mapping` is connected if and only if `mode` is explicit. |" in page
    assert "(../../../irrun/departures/broadcast_empty.xml)" in page


@pytest.mark.parametrize(
    ("type", "rows"),
    [
        ("Add", ["| 0 | T |"]),
        ("ShapeOf", ["| 0 | that of `output_type` |", "| 0 | i64 |"]),  # versions 3 and 1
        ("ConvertLike", ["| 0 | T2 |"]),
        ("Equal", ["| 0 | boolean |"]),
        ("TopK", ["| 0 | T |", "| 1 | that of `index_element_type` |"] * 3),
        ("SparseFillEmptyRows", ["| 0 | T_IDX |", "| 1 | T |", "| 2 | boolean |"]),
        ("Split", []),  # its number of outputs is that of the layer
    ],
)
def test_element_types_of_outputs(type: str, rows: list[str], pages: dict[str, str]) -> None:
    assert re.findall(r"^\| \d \| .* \|$", pages[f"operations/{type}.md"], re.MULTILINE) == rows


def test_every_departure_is_on_the_page_of_its_operation(pages: dict[str, str]) -> None:
    table = (DOCS / "departures.md").read_text("utf-8")
    models = re.findall(r"^\| \[(\w+)\]\(\.\./(irrun/departures/\w+\.xml)\)", table, re.MULTILINE)
    assert len(models) == len(departures())
    for type, model in models:
        assert f"(../../../{model})" in pages[f"operations/{type}.md"]
    assert "(../../../irrun/departures/rdft_size.xml)" in pages["operations/IRDFT.md"]  # "so IRDFT"


def test_every_code_has_its_page(pages: dict[str, str]) -> None:
    names = {f"codes/{id}.md" for id in CODES}
    assert {name for name in pages if name.startswith("codes/")} == names | {"codes/index.md"}
    for code in CODES.values():
        page = pages[f"codes/{code.id}.md"]
        assert page.startswith(f"# {code.id} {code.name}\n\nSeverity: {code.kind.severity}.")
        assert "\n## Wrong\n" in page
        assert "\n## Right\n" in page
        assert f"| [{code.id}]({code.id}.md) | {code.name} | {code.kind.severity} |" in pages["codes/index.md"]
    assert "```{code-block} python\n:caption: plugin.py\n" in pages["codes/IR603.md"]


def test_every_command_and_public_name_is_documented(pages: dict[str, str]) -> None:
    for command in COMMANDS:
        assert f"\nUsage: irrun {command} " in pages["command-line.md"]
    documented = set(re.findall(r"^\.\. auto\w+:: irrun\.(\w+)$", pages["python.md"], re.MULTILINE))
    assert documented == {*irrun.__all__}


def test_pages_of_the_repository_keep_their_links(pages: dict[str, str]) -> None:
    generated = (DOCS / "generated").resolve()
    for name, text in pages.items():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)", prose):
            path = ((generated / name).parent / target).resolve()
            is_generated = path.is_relative_to(generated) and path.relative_to(generated).as_posix() in pages
            assert is_generated or path.exists(), f"{name} links {target}"


def test_links_are_rewritten_outside_of_code_only() -> None:
    text = "[a](docs/testing.md#x) [b](https://a.b) [c](#d) [e](CHANGELOG.md) [i](irrun/explanations/IR401.md)\n```\n[f](docs/testing.md)\n```\n"
    expected = "[a](../testing.md#x) [b](https://a.b) [c](#d) [e](changelog.md) [i](codes/IR401.md)\n```\n[f](docs/testing.md)\n```\n"
    assert site_pages.relinked(text, ROOT, DOCS / "generated") == expected


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Build a copy of the docs, as the generated pages are written among the sources."""
    for module in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(module, reason="the site needs the extra `docs`")
    out = tmp_path / "html"
    work = tmp_path / "checkout"
    _copy(ROOT, work)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(work / "docs"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in out.rglob("*.html"):
        for target in re.findall(r'href="(?![a-z]+:|#)([^"#?]+)', page.read_text("utf-8")):
            assert (page.parent / unquote(target)).exists(), f"{page.relative_to(out)} links {target}"
    models = {path.name for path in DEPARTURES.iterdir() if path.suffix in (".toml", ".xml", ".bin")}
    assert {path.name for path in (out / "departures").iterdir()} == models


def _copy(root: Path, to: Path) -> None:
    """Copy what a build reads: the docs, the package, and the pages and files that they link."""
    ignore = shutil.ignore_patterns("__pycache__", "_build", "generated")
    for folder in ("docs", "irrun", "samples", "benchmarks"):
        shutil.copytree(root / folder, to / folder, ignore=ignore)
    for file in (*root.glob("*.md"), root / "pyproject.toml", root / "LICENSE"):
        shutil.copy(file, to)
