"""What action.yml runs, in the root of the user's repository: check IR files, or compare them with another revision.

The inputs of the action are environment variables: COMMAND, PATHS, BASE, FAIL_ON and COMMENT. The exit status is that
of the step.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from irrun.cli._trees import may_be_ir

_GIT: Final = ("git", "-c", "safe.directory=*")
_NOTHING: Final = re.compile(r"0*")
"""The revision before a push that makes a branch."""
_MARKER: Final = "<!-- irrun diff -->"
"""The first line of the comment, by which the next run finds it."""
_MAX_COMMENT_BYTES: Final = 65_000
"""GitHub refuses a comment of more than 65,536 characters."""
_MAX_SUMMARY_BYTES: Final = 1_000_000
"""GitHub refuses a job summary of more than 1 MiB."""
_FAILS: Final = {"check": ("error", "warning", "never"), "diff": ("error", "difference", "never")}
"""The values of fail-on for each command, the default first."""


class ActionError(Exception):
    """A message for the user, which ends the step."""


@dataclass(frozen=True)
class Change:
    """A model that differs from the base: its path in the base (None if it is new), and now (None if it is removed)."""

    before: str | None
    after: str | None


def main() -> int:
    """Run the command of the action, and return the exit status of the step."""
    command = os.environ["COMMAND"]
    if command not in _FAILS:
        raise ActionError(f"command is {command}; choose {' or '.join(_FAILS)}")
    fail_on = os.environ.get("FAIL_ON") or _FAILS[command][0]
    if fail_on not in _FAILS[command]:
        raise ActionError(f"fail-on is {fail_on}; for {command}, choose {', '.join(_FAILS[command])}")
    paths = os.environ.get("PATHS", "").split("\n")
    paths = [path.strip() for path in paths if path.strip()]
    return (_check if command == "check" else _diff)(paths, fail_on)


def _check(paths: Sequence[str], fail_on: str) -> int:
    """Check the paths, or the models that have changed, or all models of the repository. Print the findings."""
    files = list(paths)
    if not files and (base := _base()) is not None:
        files = [change.after for change in _changes(base) if change.after is not None]
    elif not files:
        files = [path for path in _git("ls-files", "-z", "*.xml").split("\0") if path and may_be_ir(Path(path))]
    if not files:
        print("no IR file has changed")
        return 0
    done = _irrun("check", "--format", "github", "--skip-other-xml", "--", *files)
    print(done.stdout, end="", flush=True)
    print(done.stderr, end="", file=sys.stderr)
    if fail_on == "warning" and re.search(r"^::warning ", done.stdout, re.MULTILINE):
        return done.returncode or 1
    return 0 if fail_on == "never" and done.returncode != 2 else done.returncode


def _diff(paths: Sequence[str], fail_on: str) -> int:
    """Compare each model that has changed with the base. Write the summary of the job, the outputs and the comment."""
    base = _base()
    if base is None:
        raise ActionError("there is no revision to compare with; pass base")
    changes = [change for change in _changes(base) if not paths or any(map(_matcher(change), paths))]
    differs = failed = False
    sections: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for change in changes:
            status, text = _section(base, change, Path(folder))
            differs |= status == 1
            failed |= status > 1
            sections += [text] if text else []
    title = "no model has changed" if not sections else f"{len(sections)} model{'s' * (len(sections) > 1)} changed"
    _append("GITHUB_STEP_SUMMARY", _joined(f"## irrun diff: {title}\n", sections, _MAX_SUMMARY_BYTES))
    file = Path(os.environ.get("RUNNER_TEMP") or tempfile.gettempdir()) / "irrun-diff.md"
    head = f"{_MARKER}\n## irrun diff: {title}\n"
    file.write_text(_joined(head, sections, _MAX_COMMENT_BYTES), "utf-8", newline="\n")
    _append("GITHUB_OUTPUT", f"comment-file={file}\ndiffers={str(differs).lower()}\n")
    if os.environ.get("COMMENT") == "true":
        _post(file, is_new=bool(sections))
    return int((failed and fail_on != "never") or (differs and fail_on == "difference"))


def _base() -> str | None:
    """Return the base: ``BASE``, or the base commit of the pull request or push. None if the event has no base."""
    event = _event()
    request = event.get("pull_request") or {}
    name = os.environ.get("BASE") or request.get("base", {}).get("sha") or event.get("before") or ""
    if _NOTHING.fullmatch(name):
        return None
    commit = _commit(name)
    if commit is None:  # actions/checkout fetches a single commit
        done = subprocess.run([*_GIT, "fetch", "--quiet", "--depth=1", "origin", name], capture_output=True, text=True)
        commit = _commit("FETCH_HEAD") if done.returncode == 0 else None
        if commit is None and os.environ.get("BASE"):
            raise ActionError(f"there is no revision {name}: {done.stderr.strip()}")
    return commit


def _commit(name: str) -> str | None:
    command = [*_GIT, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or None


def _event() -> dict[str, Any]:
    path = os.environ.get("GITHUB_EVENT_PATH")
    return json.loads(Path(path).read_text("utf-8")) if path else {}


def _changes(base: str) -> Iterator[Change]:
    """Yield the models that differ from the base in the .xml or the .bin, in the order of their paths."""
    fields = iter(_git("diff", "--name-status", "-z", "--find-renames=90%", base, "--").split("\0"))
    found: dict[str, Change] = {}
    others: set[str] = set()
    for status in fields:
        if status:
            before = next(fields)
            after = next(fields) if status[0] in "RC" else before
            if before.endswith(".xml") or after.endswith(".xml"):
                found[after] = Change(
                    before if status[0] != "A" and before.endswith(".xml") else None,
                    after if status[0] != "D" and after.endswith(".xml") else None,
                )
            others |= {path[:-4] + ".xml" for path in (before, after) if path.endswith(".bin")}
    renamed = {change.before for change in found.values()}
    for path in others - found.keys() - renamed:
        if Path(path).is_file():
            found[path] = Change(path, path)
    for path in sorted(found):
        change = found[path]
        if change.after is None or may_be_ir(Path(change.after)):
            yield change


def _matcher(change: Change) -> Any:
    """Return a function that says whether a path, a folder or a glob names the model."""
    names = [name for name in (change.before, change.after) if name is not None]

    def matches(path: str) -> bool:
        path = path.removeprefix("./").rstrip("/")
        return path == "." or any(fnmatch.fnmatch(n, path) or n.startswith(f"{path}/") for n in names)

    return matches


def _section(base: str, change: Change, folder: Path) -> tuple[int, str]:
    """Return the exit status of ``irrun diff``, and the part of the comment about a model: none for other XML."""
    places = {"base": change.before, "head": change.after}
    for side, path in places.items():
        if path is None:
            continue
        for name in (path, path[:-4] + ".bin"):
            target = folder / side / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if side == "base":
                _extract(base, name, target)
            elif Path(name).is_file() and not target.exists():
                _link(Path(name).absolute(), target)
    is_old = change.before is not None and may_be_ir(folder / "base" / change.before)
    if change.after is None:
        return (1, f"**{_code(change.before or '')} is removed.**\n") if is_old else (0, "")
    if not is_old:
        return 1, f"**{_code(change.after)} is new.**\n"
    done = _irrun(
        "diff", "--format", "markdown", "--", *(f"{side}/{path}" for side, path in places.items()), cwd=folder
    )
    if done.returncode <= 1:
        return done.returncode, done.stdout
    quoted = "".join(f"    {line}\n" for line in done.stderr.splitlines()[:40])
    return done.returncode, f"**{_code(change.after)} cannot be compared.**\n\n{quoted}"


def _extract(base: str, path: str, target: Path) -> None:
    """Write a file of the base, with filters such as Git LFS, unless it does not exist there."""
    with target.open("wb") as stream:
        command = [*_GIT, "cat-file", "--filters", f"{base}:{path}"]
        done = subprocess.run(command, stdout=stream, stderr=subprocess.DEVNULL)
    if done.returncode:
        target.unlink()


def _link(source: Path, target: Path) -> None:
    try:
        target.symlink_to(source)
    except OSError:  # on Windows, a symbolic link needs a privilege
        shutil.copyfile(source, target)


def _joined(head: str, sections: Sequence[str], most: int) -> str:
    """Return the head and the sections that fit, and say how many do not."""
    text, left = head, 0
    for section in sections:
        if left or len(f"{text}\n{section}".encode()) > most:
            left += 1
        else:
            text += f"\n{section}"
    if left:
        text += f"\n{left} more model{'s do' if left > 1 else ' does'} not fit; see the summary of the job.\n"
    return text


def _code(text: str) -> str:
    """Return a path as code in which nothing is Markdown or HTML."""
    return f"<code>{re.sub(r'[^0-9A-Za-z ]', lambda match: f'&#{ord(match[0])};', text)}</code>"


def _post(file: Path, *, is_new: bool) -> None:
    """Replace the comment of the last run, or post one if a model has changed. A refusal is a warning."""
    number = (_event().get("pull_request") or {}).get("number")
    if number is None:
        raise ActionError("comment is true, but the event is no pull request")
    issues = f"repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    try:
        query = f'.[] | select(.body | startswith("{_MARKER}")) | .id'
        found = _gh("--paginate", f"{issues}/{number}/comments", "--jq", query).split()
        if found:
            _gh("--method", "PATCH", f"{issues}/comments/{found[0]}", "--field", f"body=@{file}")
        elif is_new:
            _gh("--method", "POST", f"{issues}/{number}/comments", "--field", f"body=@{file}")
    except subprocess.CalledProcessError as error:
        reason = " ".join(error.stderr.split())
        print(f"::warning::irrun: no comment: {reason}. The job needs permissions: pull-requests: write")


def _gh(*arguments: str) -> str:
    return subprocess.run(["gh", "api", *arguments], capture_output=True, text=True, check=True).stdout


def _irrun(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONUTF8": "1"}
    command = [sys.executable, "-P", "-m", "irrun", *arguments]  # -P: import nothing from the user's repository
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8")


def _git(*arguments: str) -> str:
    done = subprocess.run([*_GIT, *arguments], capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise ActionError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def _append(variable: str, text: str) -> None:
    """Append text to a file of GitHub Actions, if there is one."""
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ActionError as error:
        print(f"::error::irrun: {error}")
        sys.exit(2)
