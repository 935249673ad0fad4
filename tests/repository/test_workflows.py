"""The workflows in .github, the hooks and the issue templates name only what exists; the release check refuses."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import irrun
from page_blocks import walks
from shell_commands import ROOT, check_command, commands, lanes, project

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))


def _load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


def _jobs() -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path.stem}/{name}", job) for path in WORKFLOWS for name, job in _load(path)["jobs"].items()]


def _scripts(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


JOBS = dict(_jobs())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow(path: Path) -> None:
    workflow = _load(path)
    assert {True, "name", "permissions", "jobs"} <= workflow.keys()  # YAML reads the key `on` as true
    assert workflow["permissions"] == {"contents": "read"}, "a job that may do more says so itself"
    for job in workflow["jobs"].values():
        needed = job.get("needs", [])
        assert {needed} if isinstance(needed, str) else set(needed) <= workflow["jobs"].keys()


@pytest.mark.parametrize("name", JOBS)
def test_job(name: str) -> None:
    job = JOBS[name]
    assert job["timeout-minutes"] <= 120
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step)
        if step.get("uses") == "./":
            assert step.get("with", {}).keys() <= _load(ROOT / "action.yml")["inputs"].keys()
        elif "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"]), "pinned by major version"
    for script in _scripts(job):
        for command in commands(script):
            check_command(command)


def test_every_lane_is_run() -> None:
    ran = {
        lane
        for job in JOBS.values()
        for script in _scripts(job)
        for command in commands(script)
        if command[:3] == ["python", "-m", "pytest"]
        for lane in command[command.index("-m", 3) + 1].split(" or ")
    }
    assert ran == lanes()


def test_the_static_checks_and_the_site_are_run() -> None:
    ran = {shlex.join(command) for job in JOBS.values() for script in _scripts(job) for command in commands(script)}
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (checks,) = re.findall(r"## Static checks\n\n```sh\n(.*?)```", page, re.DOTALL)
    (build,) = re.findall(r"## Documentation\n\n```sh\n(.*?)```", page, re.DOTALL)
    assert {*checks.splitlines(), *build.splitlines()} <= ran


def test_python_versions() -> None:
    """Both matrices hold the Python versions of the classifiers, and every other job one of them."""
    prefix = "Programming Language :: Python :: 3."
    classifiers = [c.removeprefix(prefix) for c in project()["classifiers"] if c.startswith(prefix)]
    supported = [f"3.{minor}" for minor in classifiers]
    assert project()["requires-python"] == f">={supported[0]}"
    for name in ("spec", "openvino"):
        assert JOBS[f"test/{name}"]["strategy"]["matrix"]["python"] == supported
        assert JOBS[f"test/{name}"]["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert JOBS["release/verify"]["strategy"]["matrix"]["python"] == [supported[0], supported[-1]]
    for job in JOBS.values():
        for step in job["steps"]:
            version = step.get("with", {}).get("python-version", supported[0])
            assert version in (*supported, "${{ matrix.python }}")
    (oldest,) = (s["with"] for s in JOBS["test/oldest"]["steps"] if "setup-python" in s.get("uses", ""))
    assert oldest["python-version"] == supported[0]


def test_the_oldest_dependencies_are_those_of_pyproject() -> None:
    pins = {}
    for line in (ROOT / "tests" / "oldest.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            pins[name] = Version(version)
    declared = [*project()["dependencies"], *project()["optional-dependencies"]["spec"]]
    bounds = {}
    for requirement in map(Requirement, declared):
        (bound,) = requirement.specifier
        assert bound.operator == ">=", f"{requirement} has no lower bound"
        bounds[requirement.name] = Version(bound.version)
    assert pins == bounds
    assert list(pins) == sorted(pins)


def test_the_script_of_the_project_has_the_environment_of_each_job() -> None:
    """It collects all tests of a lane and runs some files of tests, all of which exist; the README's command runs all."""
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    for name, job in JOBS.items():
        if name in ("test/newest", "test/slow", "fuzz/fuzz"):  # may fail, weekly, nightly
            continue
        for words in (words for text in _scripts(job) for words in commands(text) if "install" in words):
            extras = [extra for word in words for extra in re.findall(r"\[([\w,]+)\]", word)]
            assert all(f"[{extra}]" in script for extra in extras), f"{name}: {words}"
            assert "-c" not in words or words[words.index("-c") + 1] in script
    for program in (".venv/spec/bin/python -m pytest", ".venv/oldest/bin/python -m pytest", "../venv/bin/pytest"):
        assert f"  lane {program}\n" in script
    assert '"$@" -q -m spec --collect-only' in script
    assert '"$@" -q -m spec "${few[@]}"' in script
    (few,) = re.findall(r"^few=\((.*?)\)", script, re.MULTILINE | re.DOTALL)
    files = [
        f"{folder}test_{name}.py"
        for folder, names in re.findall(r"(tests/\S*?)test_(?:\{([a-z_,]+)\}|[a-z_]+)\.py", few)
        for name in names.split(",")
        if name
    ] + re.findall(r"tests/\S*?test_[a-z_]+\.py", few)
    assert len(files) > 10
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_the_extra_for_tests_says_which_click_it_needs() -> None:
    """``click.testing`` keeps standard error apart from version 8.2 on."""
    (click,) = [r for r in map(Requirement, project()["optional-dependencies"]["spec"]) if r.name == "click"]
    assert Version("8.1.8") not in click.specifier
    assert Version("8.2.0") in click.specifier


def test_the_readme_names_each_dependency() -> None:
    (sentence,) = re.findall(r"It needs (\w+) packages:([^.]+)\.", (ROOT / "README.md").read_text("utf-8"))
    names = {Requirement(dependency).name for dependency in project()["dependencies"]}
    assert {name for name in re.findall(r"\w+", sentence[1]) if name in names} == names
    assert sentence[0] == ["six", "seven", "eight", "nine"][len(names) - 6]


def test_the_page_on_installing_names_each_extra_of_users() -> None:
    extras = project()["optional-dependencies"].keys() - {"spec", "test", "networks", "bench", "docs", "dev", "release"}
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == extras


def test_no_page_and_no_message_installs_irrun_from_a_registry() -> None:
    """irrun is in none, and somebody else could take its name there."""
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "irrun").rglob("*.py")):
        assert not re.findall(r"pip install [\"']?irrun\b", page.read_text("utf-8")), page


def test_the_address_is_written_in_one_way() -> None:
    """So that one replacement fills it in: IRRUN_ADDRESS does for the site."""
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        assert set(re.findall(r"https://ADDRESS[^\s`]*", page.read_text("utf-8"))) <= {"https://ADDRESS/irrun"}, page


@pytest.mark.parametrize("extra", project()["optional-dependencies"])
def test_every_dependency_of_an_extra_has_a_bound(extra: str) -> None:
    for requirement in map(Requirement, project()["optional-dependencies"][extra]):
        assert requirement.name == "irrun" or requirement.specifier != SpecifierSet(), f"{requirement} has no bound"


# -- releases


FRAGMENTS = sorted((ROOT / "changelog.d").glob("+*.md"))


def _faults(tag: str, init: str, citation: str, changelog: str, fragments: Sequence[str] = ()) -> list[str]:
    spec = importlib.util.spec_from_file_location("check_release", GITHUB / "check_release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.faults(tag, init, citation, changelog, fragments)


_ENTRY = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-03-04\n\n## [1.1.0] - 2026-01-01\n"


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "said"),
    [
        ("v1.2.0", "1.2.0", _ENTRY, []),
        ("1.2.0", "1.2.0", _ENTRY, ["irrun.__version__ is 1.2.0", "CITATION.cff is 1.2.0", "CHANGELOG.md is 1.2.0"]),
        ("v1.2.0", "1.1.0", _ENTRY, ["irrun.__version__ is 1.1.0", "CITATION.cff is 1.1.0"]),
        ("v1.1.0", "1.1.0", _ENTRY, ["CHANGELOG.md is 1.2.0"]),
        ("v1.2.0", "1.2.0", _ENTRY.replace("2026-03-04", "Unreleased"), ["dated Unreleased"]),
        ("v1.2.0", "1.2.0", _ENTRY.replace(" - 2026-03-04", ""), ["dated nothing"]),
    ],
)
def test_a_release_is_checked(tag: str, version: str, changelog: str, said: list[str]) -> None:
    found = _faults(tag, f'__version__ = "{version}"\n', f"version: {version}\n", changelog)
    assert len(found) == len(said)
    assert all(text in fault for text, fault in zip(said, found))


def test_fragments_are_collected_before_a_release() -> None:
    said = _faults("v1.2.0", '__version__ = "1.2.0"\n', "version: 1.2.0\n", _ENTRY, ["+a.added.md", "+b.fixed.md"])
    assert said == ["changelog.d still holds +a.added.md, +b.fixed.md; run towncrier build --version 1.2.0"]


def test_the_changelog_has_an_entry_for_this_version_or_fragments_of_it() -> None:
    """The pages of the repository name one version. Until its release, the changes are fragments."""
    texts = [(ROOT / file).read_text("utf-8") for file in ("irrun/__init__.py", "CITATION.cff", "CHANGELOG.md")]
    faults = _faults(f"v{irrun.__version__}", *texts)
    assert FRAGMENTS or not faults
    assert all("CHANGELOG.md is" in fault for fault in faults)
    pages = [page.read_text("utf-8") for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
    assert {rev for page in pages for rev in re.findall(r"rev: (\S+)\n", page)} == {f"v{irrun.__version__}"}


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_fragment(path: Path) -> None:
    """Towncrier finds it, and it reads as an entry: sentences, no heading, no list, links from the root."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
    kinds = "|".join(kind["directory"] for kind in settings["type"])
    assert re.fullmatch(rf"\+[a-z-]+\.({kinds})\.md", path.name)
    text = path.read_text("utf-8")
    assert text.endswith(".\n")
    assert not [line for line in text.splitlines() if not line or line.startswith(("#", "- "))]
    assert all(len(line) <= 120 for line in text.splitlines())
    assert all((ROOT / target).exists() for target in re.findall(r"\]\((?!https?:)([^)#]+)", text))


def test_every_fragment_is_found() -> None:
    """A file with another name would be left out of the changelog."""
    assert sorted((ROOT / "changelog.d").iterdir()) == sorted([*FRAGMENTS, ROOT / "changelog.d" / "README.md"])


# -- hooks and templates


def test_hooks() -> None:
    """Users get `irrun check`; contributors get the tools of the extra `dev`."""
    (ours,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    check_command(shlex.split(ours["entry"]))
    (local,) = _load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        assert hook["language"] == "system"
        check_command(shlex.split(hook["entry"]))


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem)
def test_issue_template(path: Path) -> None:
    form = _load(path)
    assert {"name", "description", "labels", "body"} == form.keys()
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    assert any(field.get("validations", {}).get("required") for field in form["body"])
    for field in form["body"]:
        assert field["type"] in ("markdown", "input", "textarea", "dropdown", "checkboxes")
        assert ("value" if field["type"] == "markdown" else "label") in field["attributes"]
    for code in re.findall(r"`([^`]+)`", " ".join(path.read_text("utf-8").split())):
        if code.startswith("irrun "):
            check_command(shlex.split(code))


def test_files_that_templates_and_pages_name_exist() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *GITHUB.rglob("*.md"), *GITHUB.rglob("*.yml")]
    folders = r"`((?:\.github|docs|irrun|tests|samples|benchmarks)/[\w./-]+)`"
    named = {name for page in pages for name in re.findall(folders, page.read_text("utf-8"))}
    created = {block.file for walk in walks().values() for block in walk} | {"docs/_build/html"}  # Sphinx makes it
    named = {name for name in named if Path(name).stem != "NAME"}  # which stands for any name
    assert not {name for name in named if not (ROOT / name).exists()} - created
