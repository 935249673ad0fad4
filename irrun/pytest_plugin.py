"""The pytest plugin: the fixture ``irrun``, and tests of IR files with golden outputs. See docs/testing.md.

Before a model is collected, it imports only pytest and the standard library, so that it costs other projects nothing.
"""

from __future__ import annotations

import glob
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import numpy as np

    from irrun.running.executor import Executable

_OUT = "out:"
"""The prefix of output names in an ``.npz``. Inputs have no prefix."""

_WRITTEN = pytest.StashKey[list[str]]()
_MODELS = pytest.StashKey[frozenset[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--irrun-update`` and the settings ``irrun_models``, ``irrun_allow`` and the tolerances."""
    parser.getgroup("irrun").addoption(
        "--irrun-update", action="store_true", help="write golden outputs that are missing or no longer match"
    )
    parser.addini("irrun_models", "IR files to test: paths, folders or globs, relative to this file", "args")
    parser.addini("irrun_allow", "codes of findings that do not make the test of a model fail", "args")
    for name in ("rtol", "atol"):
        parser.addini(f"irrun_{name}", f"{name} of golden outputs: 1e-3 for all types, f16=1e-2 for one", "args")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the models that the settings name. Raises pytest.UsageError for settings that are wrong."""
    config = session.config
    if config.option.irrun_update and _in_ci():
        raise pytest.UsageError(
            "--irrun-update is refused in CI: a person must look at new goldens (to write them anyway, unset CI)"
        )
    selected: set[Path] = set()
    folder = config.inipath.parent if config.inipath else config.rootpath
    for pattern in config.getini("irrun_models"):
        paths = [Path(path) for path in glob.glob(str(folder / pattern), recursive=True)]
        models = [p for path in paths for p in (sorted(path.rglob("*.xml")) if path.is_dir() else [path])]
        models = [path for path in models if path.suffix == ".xml"]
        if not models:
            raise pytest.UsageError(f"irrun_models: no model in {folder} matches {pattern!r}; correct the path or glob")
        selected.update(path.resolve() for path in models)
    for name in ("rtol", "atol"):
        _tolerance(config, name)
    config.stash[_MODELS] = frozenset(selected)
    config.stash[_WRITTEN] = []


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect an ``.xml`` file if the settings name it as a model."""
    if file_path.suffix == ".xml" and file_path.resolve() in parent.config.stash.get(_MODELS, frozenset()):
        return ModelFile.from_parent(parent, path=file_path)
    return None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List the files with golden outputs that this session has written."""
    for line in config.stash.get(_WRITTEN, []):
        terminalreporter.write_line(f"irrun: wrote {line}")


@pytest.fixture(scope="session")
def irrun() -> Any:
    """The module ``irrun``, with ``irrun.testing``."""
    import irrun
    import irrun.testing

    return irrun


class ModelFile(pytest.File):
    """An IR file: one test that `irrun check` reports nothing, and one test for each ``.npz`` beside the file."""

    _compiled: Executable | None = None

    def collect(self) -> Iterator[pytest.Item]:
        yield CheckItem.from_parent(self, name="check")
        for path in self._cases():
            yield GoldenItem.from_parent(self, name=path.name, npz=path)

    def _cases(self) -> list[Path]:
        """Return the paths ``X.npz`` and ``X.*.npz`` that belong to the model ``X.xml``, or ``X.npz`` if none exists.

        A file ``X.y.npz`` belongs to the model ``X.y.xml`` instead, if there is one.
        """
        own = self.path.stem
        longer_names = [p.stem for p in self.path.parent.glob("*.xml") if p.stem.startswith(f"{own}.")]
        cases = [
            path
            for path in sorted(self.path.parent.glob("*.npz"))
            if f"{path.stem}.".startswith(f"{own}.")
            and not any(f"{path.stem}.".startswith(f"{l}.") for l in longer_names)
        ]
        return cases or [self.path.with_suffix(".npz")]

    def executable(self) -> Executable:
        """Return the model, compiled once, as before its first run."""
        from irrun.api import compile

        if self._compiled is None:
            self._compiled = compile(self.path)
        self._compiled.restart()
        return self._compiled


class _ModelItem(pytest.Item):
    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from irrun.checking.render import text
        from irrun.diagnostics import IrrunError

        error = excinfo.value
        if isinstance(error, IrrunError):
            message = "\n".join(text(d).plain for d in error.diagnostics)
        elif isinstance(error, AssertionError):
            message = str(error)
        else:
            return super().repr_failure(excinfo, style)
        return message.strip().replace(str(self.path), self.nodeid.partition("::")[0])


class CheckItem(_ModelItem):
    """A test that `irrun check` reports nothing about a model, except for the codes in ``irrun_allow``."""

    def runtest(self) -> None:
        from irrun.testing import check_clean

        check_clean(self.path, allow=self.config.getini("irrun_allow"))


class GoldenItem(_ModelItem):
    """A test that a model computes the outputs in an ``.npz`` from the inputs in it."""

    def __init__(self, *, npz: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.npz = npz

    def runtest(self) -> None:
        from irrun.testing import assert_matches

        assert isinstance(self.parent, ModelFile)
        model = self.parent.executable()
        feeds, goldens = self._read(model)
        tolerances = {name: _tolerance(self.config, name) for name in ("rtol", "atol")}
        if self.config.option.irrun_update:
            self._update(model, feeds, goldens, tolerances)
            return
        missing = [name for name in _names(model) if name not in goldens]
        if goldens:
            assert_matches(model, feeds, goldens, **tolerances)
        if missing:
            message = f"{self.npz.name} has no golden output {', '.join(missing)}; write it with --irrun-update"
            if _in_ci():
                raise AssertionError(message)
            pytest.skip(message)

    def _read(self, model: Executable) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return the inputs and the golden outputs in the ``.npz``, by name; both empty if the file does not exist.

        Raises AssertionError if the file cannot be read.
        """
        import numpy as np

        from irrun.running.generate import declared
        from irrun.testing import like

        if not self.npz.exists():
            return {}, {}
        try:
            with np.load(self.npz, allow_pickle=False) as file:
                arrays = dict(file.items())
        except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
            raise AssertionError(f"cannot read {self.npz}: {error}") from None
        types = {
            name: declared(model.model, parameter)[0].dtype
            for parameter in model.model.parameters
            for name in model.model.input_names(parameter)
        }
        feeds = {n: like(a, types.get(n)) for n, a in arrays.items() if not n.startswith(_OUT)}
        return feeds, {n.removeprefix(_OUT): a for n, a in arrays.items() if n.startswith(_OUT)}

    def _update(
        self, model: Executable, feeds: dict[str, np.ndarray], goldens: Mapping[str, np.ndarray], tolerances: Any
    ) -> None:
        """Write the inputs and outputs of a run to the ``.npz``, unless the goldens are complete and match.

        Without inputs in the file, they are random.
        """
        from irrun.running.generate import draw
        from irrun.testing import assert_matches

        if not feeds:
            drawn = draw(model.model)
            feeds = {p.name: drawn[i] for i, p in enumerate(model.model.parameters)}
        names = _names(model)
        if set(goldens) == set(names):
            try:
                assert_matches(model, feeds, goldens, **tolerances)
            except AssertionError:
                model.restart()
            else:
                return
        outputs = model(feeds)
        arrays = feeds | {f"{_OUT}{name}": outputs[i] for i, name in enumerate(names)}
        _write(self.npz, arrays)
        root = self.config.rootpath
        self.config.stash[_WRITTEN].append(
            str(self.npz.relative_to(root) if self.npz.is_relative_to(root) else self.npz)
        )


def _names(model: Executable) -> list[str]:
    """Return the names of the outputs of a model, in order."""
    return [model.model.result_name(result) for result in model.model.results]


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an ``.npz`` that is never incomplete, and whose bytes are always the same for the same arrays."""
    import numpy as np

    from irrun.files import NewFile
    from irrun.running.dump import stored_strings

    with NewFile(path) as new:
        with zipfile.ZipFile(new.file, "w", zipfile.ZIP_DEFLATED) as archive:
            for key, array in arrays.items():
                with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, stored_strings(np.asarray(array)), allow_pickle=False)
        new.finish()


def _tolerance(config: pytest.Config, name: str) -> dict[str, float] | float | None:
    """Return the tolerance in an ini option: one number, or numbers by element type. None if it is not set.

    Raises pytest.UsageError if the option cannot be parsed.
    """
    words = config.getini(f"irrun_{name}")
    numbers: dict[str, float] = {}
    try:
        if len(words) == 1 and "=" not in words[0]:
            return float(words[0])
        for word in words:
            element_type, _, number = word.partition("=")
            numbers[element_type] = float(number)
    except ValueError:
        raise pytest.UsageError(
            f"irrun_{name}: {' '.join(words)!r} is not a tolerance; write 1e-3 for all types, or f16=1e-2 for one"
        ) from None
    return numbers or None


def _in_ci() -> bool:
    """Return whether the environment variable CI is set, as it is on continuous-integration servers."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")
