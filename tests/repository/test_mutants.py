"""The tool that changes code and looks for a test that fails: what it changes, and what it makes of the tests."""

import json
from collections import Counter
from pathlib import Path

import pytest

from covering import naming
from mutants import Project, Verdict, accepted, all_mutants, draw, draw_evenly, main, reason, table
from mutators import default_mutants, mutants
from places import ROOT

pytestmark = pytest.mark.processes

CHANGES = [
    ("a < b", ["a <= b"]),
    ("a <= (b)", ["a < (b)"]),
    ("a > b", ["a >= b"]),
    ("a == b != c", ["a != b != c", "a == b == c"]),
    ("a in b", ["a not in b"]),
    ("a not  in b", ["a in b"]),
    ("a is b", ["a is not b"]),
    ("a is not b", ["a is b"]),
    ("a == 'x'", ["a != 'x'", "a == 'x~'"]),
    ("a in ('x', b)", ["a not in ('x', b)", "a in ('x~', b)"]),
    ("a and b", ["a or b"]),
    ("(a) or (b)", ["(a) and (b)"]),
    ("not a", ["a"]),
    ("not(a)", ["(a)"]),
    ("a + b", ["a - b"]),
    ("a - b", ["a + b", "b - a"]),
    ("(a + b) - c", ["(c) - (a + b)", "(a + b) + c", "(a - b) - c"]),
    ("a * b", ["a + b"]),
    ("a // b", ["a * b", "b // a"]),
    ("a ** b", ["a * b", "b ** a"]),
    ("a & b | c", ["a & b & c", "a | b | c"]),
    ("a >> b", ["a << b", "b >> a"]),
    ("a += b", ["a -= b", "pass"]),
    ("a = b + [c]", ["a = b - [c]", "a = [c] + b"]),
    ("a = b @ c", ["a = c @ b"]),
    ("a = 7", ["a = 8", "a = 6"]),
    ("a = -1", ["a = -2", "a = -0"]),
    ("a = 0", ["a = 1", "a = (-1)"]),
    ("f(a, k=True)", ["pass", "f(a, k=False)", "f(a)"]),
    ("a = f(b=c, d=e,)", ["a = f(d=e,)", "a = f(b=c,)"]),
    ("a = f(b=c,)", ["a = f()"]),
    ("a = f((b), # x, y\n c=(d))", ["a = f((b))"]),
    ("a = f(b, *c)", []),
    ("a = f(b, b)", []),
    ("a = f(b, c or d)", ["a = f((c or d), b)", "a = f(b, c and d)"]),
    ("a = isinstance(b, c)", []),
    ("a = f('x', 'two words')", ["a = f('x~', 'two words')", "a = f('two words', 'x')"]),
    (
        "a = re.sub('x y', b, 1.5)",
        [
            "a = re.sub('x y~', b, 1.5)",
            "a = re.sub(b, 'x y', 1.5)",
            "a = re.sub('x y', 1.5, b)",
            "a = re.sub('x y', b, 3.0)",
        ],
    ),
    ("a = f('i64')", ["a = f('i32')"]),
    ("a = b.astype(np.float32)", ["a = b.astype(np.float64)"]),
    ("a = b.astype(int)", ["a = b.astype(float)"]),
    ("a = b.sum(axis=0)", ["a = b.sum(axis=1)", "a = b.sum(axis=(-1))", "a = b.sum()"]),
    ("a = b.sum(axis=-1)", ["a = b.sum(axis=0)", "a = b.sum(axis=-2)", "a = b.sum(axis=-0)", "a = b.sum()"]),
    ("a = b.sum(axis=c)", ["a = b.sum(axis=0)", "a = b.sum()"]),
    ("a.b = c", ["pass"]),
    ("a[b] = c", ["pass"]),
    ("a = b", []),
    ("a: 'int | 7' = b", []),
    ("a[b:c]", ["a[:c]", "a[b:]", "a[b + 1:c]", "a[b - 1:c]", "a[b:c + 1]", "a[b:c - 1]"]),
    ("a[:1]", ["a[:]", "a[1:1]", "a[:2]", "a[:0]"]),
    ("a[-b:]", ["a[:]", "a[-b:-1]"]),
    ("a[::b]", ["a[::]"]),
    ("min(a)", ["pass", "max(a)"]),
    ("a = b.any()", ["a = b.all()"]),
    ("a = np.maximum(b, c)", ["a = np.minimum(b, c)"]),
    ("a = np.subtract(b, c)", ["a = np.subtract(c, b)"]),
    ("a = np.add(b, c)", []),
    ("a = b if c else d", ["a = b if False else d", "a = b if True else d", "a = b if not (c) else d"]),
    ("a = [b for b in c if d]", ["a = [b for b in c if False]", "a = [b for b in c if True]"]),
    ("'text'", []),
    ("a = f'{b + 1}'", []),
    ("__all__ = [1]", []),
    ("assert a < b", []),
    ("a = cast(1, b)", []),
    ("a = Literal[1]", []),
    ("@d(slots=True)\nclass A: pass", []),
    ("if a:\n    b(c)", ["if False:\n    b(c)", "if True:\n    b(c)", "if a:\n    pass"]),
    (
        "if a:\n    return\nelse:\n    raise B(c)",
        [
            "if False:\n    return\nelse:\n    raise B(c)",
            "if True:\n    return\nelse:\n    raise B(c)",
            "if not (a):\n    return\nelse:\n    raise B(c)",
            "if a:\n    pass\nelse:\n    raise B(c)",
            "if a:\n    return\nelse:\n    pass",
            "if a:\n    return\nelse:\n    raise RuntimeError(c)",
        ],
    ),
    ("while a:\n    break", ["while a:\n    pass"]),
    ("for a in b:\n    continue", ["for a in b:\n    pass"]),
    ("raise", ["pass"]),
    ("raise RuntimeError(a)", ["pass", "raise ValueError(a)"]),
    ("del a", ["pass"]),
    (
        "try:\n    a = b\nexcept (C, D):\n    b = c",
        ["try:\n    a = b\nexcept ((), D):\n    b = c", "try:\n    a = b\nexcept (C, ()):\n    b = c"],
    ),
    ("try:\n    a = b\nexcept C:\n    b = c", ["try:\n    a = b\nexcept ():\n    b = c"]),
    ("with suppress(A, B):\n    a = b", ["with suppress((), B):\n    a = b", "with suppress(A, ()):\n    a = b"]),
    ("a = b\na = c", ["a = b\npass"]),
    (
        "def f(a):\n    a = b\n    c, d = b\n    d = a\n    e = a",
        [
            "def f(a):\n    pass\n    c, d = b\n    d = a\n    e = a",
            "def f(a):\n    a = b\n    c, d = b\n    pass\n    e = a",
        ],
    ),
    ("def f():\n    yield a", ["def f():\n    pass"]),
    ("if TYPE_CHECKING:\n    b(c)", []),
    ("if __name__ == '__main__':\n    b(c)", []),
    ("def f(a: 'x | 1') -> int:\n    return a", []),
    ("def f(a) -> int | None:\n    return a", ["def f(a) -> int | None:\n    return None"]),
    ("def f(a=False):\n    '''1'''", ["def f(a=True):\n    '''1'''"]),
    (
        "def f(a='x', *, b='y z'):\n    '1'",
        ["def f(a='x~', *, b='y z'):\n    '1'", "def f(a='x', *, b='y z~'):\n    '1'"],
    ),
    ("a = lambda b=1: b", ["a = lambda b=2: b", "a = lambda b=0: b"]),
    ("ä = 'é' < b", ["ä = 'é' <= b", "ä = 'é~' < b"]),
]


@pytest.mark.parametrize(("source", "expected"), CHANGES, ids=[source for source, _ in CHANGES])
def test_changes(source: str, expected: list[str]) -> None:
    """Exactly these texts, each with one change."""
    data = source.encode()
    found = [change.apply(data).decode() for change in mutants(data)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("attr.int(0)", "attr.int(1)"),
        ("attr.int(default=-1)", "attr.int(default=1)"),
        ("attr.float(0.5)", "attr.float(2.0)"),
        ("attr.bool(False)", "attr.bool(True)"),
        ("attr.ints(())", "attr.ints((1,))"),
        ("attr.ints((1, 2))", "attr.ints((2, 3))"),
        ("attr.ints(None)", "attr.ints((1,))"),
        ("attr.str('a')", "attr.str('a~')"),
        ("attr.choice('a', 'b', default='b')", "attr.choice('a', 'b', default='a')"),
        ("attr.choice('a', 'b', default='a')", "attr.choice('a', 'b', default='b')"),
        ("attr.choice(A, B, default=A)", "attr.choice(A, B, default=B)"),
        ("C = 'a', 'b'\nattr.choice(*C, default=\"a\")", "C = 'a', 'b'\nattr.choice(*C, default='b')"),
        ("attr.element_type('i64')", "attr.element_type('i32')"),
    ],
)
def test_changes_of_defaults(before: str, after: str) -> None:
    (change,) = default_mutants(before.encode())
    assert change.apply(before.encode()).decode() == after


@pytest.mark.parametrize("source", ["attr.int()", "attr.choice('a', 'b')", "attr.bool(name='a')", "other.int(1)"])
def test_an_attribute_without_a_default(source: str) -> None:
    assert default_mutants(source.encode()) == []


def test_a_change_of_several_lines() -> None:
    source = b"if a:\n    f(\n        b,\n    )\n"
    (change,) = [change for change in mutants(source) if change.kind == "statement"]
    assert change.line == 2
    assert change.lines(source) == ("f(\nb,\n)", "pass")
    assert change.scope == (1, 5)
    assert change.at_import


def test_what_runs_at_import() -> None:
    source = b"A = 1\nclass B:\n    c = 2\n    def d(self, e=3):\n        return 4\nf = lambda g=5: 6\n"
    found = {change.text: (change.at_import, change.scope) for change in mutants(source)[1::2]}
    module = (True, (1, 7))
    assert found == {"2": module, "3": module, "4": module, "5": (False, (4, 5)), "6": module, "7": (False, (6, 6))}


MODULES = {
    "pkg/__init__.py": "",
    "pkg/one.py": "def least(a, b):\n    return a if a < b else b\n",
    "pkg/two.py": "LIMIT = 10\n\n\ndef fits(n):\n    return n <= LIMIT\n\n\ndef unused(n):\n    return n - 1\n",
    "tests/test_two.py": "from pkg.two import fits\n\n\ndef test_fits():\n    assert fits(10)\n    assert not fits(11)\n",
    "tests/test_one.py": "from pkg.one import least\n\n\ndef test_least():\n    assert least(2, 3) == 2\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name, text in MODULES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Project(tmp_path / "project", "pkg", "tests", "")


def test_a_shared_module_concerns_the_files_that_import_it() -> None:
    sources = {
        "tests/a.py": "",
        "tests/b.py": "import c, a",
        "tests/test_a.py": "from c import a",
        "tests/test_b.py": "from b import c",
        "tests/sub/conftest.py": "",
        "tests/sub/test_c.py": "",
    }
    assert naming(["tests/test_a.py"], sources) == {"tests/test_a.py"}
    assert naming(["tests/a.py"], sources) == {"tests/a.py", "tests/b.py", "tests/test_b.py"}
    assert naming(["tests/sub/conftest.py"], sources) == {"tests/sub/conftest.py", "tests/sub/test_c.py"}
    assert naming(["tests/conftest.py"], sources) == {"tests/conftest.py", *sources}
    assert naming([], sources) == set()


def test_draws_are_by_seed_and_of_every_module(project: Project) -> None:
    by_module = {module: all_mutants(project, module) for module in project.modules()}
    assert [len(found) for found in by_module.values()] == [0, 4, 7]
    names = [mutant.name for mutant in draw(by_module, 5, 1)]
    assert names == [mutant.name for mutant in draw(by_module, 5, 1)]
    assert len(set(names)) == 5
    assert {name.split(":")[0] for name in names} == {"pkg/one.py", "pkg/two.py"}
    assert len({tuple(mutant.name for mutant in draw(by_module, 5, seed)) for seed in range(9)}) > 1
    assert len(draw(by_module, 99, 1)) == 11


def test_draws_are_even_by_folder_and_kind(tmp_path: Path) -> None:
    """A folder with many comparisons and two other kinds, one with two kinds, and one module beside them."""
    modules = {
        "pkg/a/one.py": "a < b\n" * 50 + "c = d - e\n",
        "pkg/b/c/two.py": "f = g - h",
        "pkg/three.py": "i = j < k",
    }
    for name, text in {**modules, "pkg/__init__.py": ""}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    project = Project(tmp_path, "pkg")
    by_module = {module: all_mutants(project, module) for module in project.modules()}
    drawn = draw_evenly(by_module, 3, 1)
    assert Counter(mutant.folder for mutant in drawn) == {"pkg/a": 3, "pkg/b": 2, "pkg": 1}
    assert {mutant.change.kind for mutant in drawn if mutant.folder == "pkg/a"} == {
        "comparison",
        "arithmetic",
        "operands",
    }
    assert [mutant.name for mutant in drawn] == [mutant.name for mutant in draw_evenly(by_module, 3, 1)]
    assert len({tuple(mutant.name for mutant in draw_evenly(by_module, 3, seed)) for seed in range(9)}) > 1
    lines = table([Verdict(mutant, "time" if mutant.folder == "pkg" else "survived") for mutant in drawn]).splitlines()
    assert [line.split() for line in lines] == [
        ["made", "killed", "accepted", "survived", "unsure"],
        ["pkg", "1", "1", "0", "0", "0"],
        ["pkg/a", "3", "0", "0", "3", "0"],
        ["pkg/b", "2", "0", "0", "2", "0"],
        ["arithmetic", "2", "0", "0", "2", "0"],
        ["comparison", "2", "1", "0", "1", "0"],
        ["operands", "2", "0", "0", "2", "0"],
        ["in", "all", "6", "1", "0", "5", "0"],
    ]


def test_accepted_mutants_are_known_by_the_text_of_their_line(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "accepted.toml"
    path.write_text(
        '[[accepted]]\nfile = "pkg/two.py"\nline = "return n - 1"\nbecomes = "return n + 1"\nreason = "no caller"\n'
    )
    changed = [mutant for mutant in all_mutants(project, "pkg/two.py") if mutant.before == "return n - 1"]
    found = {mutant.after: reason(mutant, accepted(path)) for mutant in changed}
    assert found == {"return n + 1": "no caller", "return n - 2": None, "return n - 0": None, "return 1 - n": None}
    assert accepted(tmp_path / "missing.toml") == []


def test_the_accepted_mutants_exist_and_have_a_reason() -> None:
    """An entry for a line that is no more, or that none of its changes turns into what it says, is out of date."""
    project = Project(ROOT)
    for entry in accepted():
        changes = [mutant.after for mutant in all_mutants(project, entry["file"]) if mutant.before == entry["line"]]
        changes += [m.after for m in all_mutants(project, entry["file"], defaults=True) if m.before == entry["line"]]
        assert changes, entry
        assert "becomes" not in entry or entry["becomes"] in changes, entry
        assert len(entry["reason"]) > 10, entry


def test_a_package_of_two_modules(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``a <= b`` gives the same least of two numbers, which are equal then: nobody can notice."""
    pytest.importorskip("coverage", reason="the extra dev has it")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    options = ["--root", str(project.root), "--package", "pkg", "--tests", "tests", "--lane", ""]
    options += ["--accepted", str(tmp_path / "accepted.toml"), "--json", str(tmp_path / "verdicts.json")]
    places = ["--at", "pkg/one.py:2:3", "--at", "pkg/two.py:5:0", "--at", "pkg/two.py:9:1"]
    assert main([*options, *places]) == 1
    rows = {row["after"]: row for row in json.loads((tmp_path / "verdicts.json").read_text())}
    assert {after: row["verdict"] for after, row in rows.items()} == {
        "return a if a <= b else b": "survived",
        "return n < LIMIT": "killed",
        "return n + 1": "survived",
    }
    assert rows["return n < LIMIT"]["by"] == "tests/test_two.py::test_fits"
    printed = capsys.readouterr().out
    assert "-     return" not in printed
    assert "    - return a if a < b else b\n    + return a if a <= b else b\n" in printed
    assert "python -m tools mutants --at pkg/one.py:2:3" in printed
    assert {name: (project.root / name).read_text() for name in MODULES} == MODULES
    (tmp_path / "accepted.toml").write_text(
        '[[accepted]]\nfile = "pkg/one.py"\nline = "return a if a < b else b"\nreason = "equal numbers are the same"\n'
    )
    assert main([*options, *places[:4]]) == 0
