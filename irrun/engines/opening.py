"""Start the engines of sides."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from irrun.diagnostics import EngineError, diagnostic
from irrun.engines.engine import ChildEngine, Engine, NotStartedError
from irrun.engines.folder import private_folder
from irrun.engines.kinds import KINDS, PROPERTY, properties
from irrun.engines.outcomes import Crash, Failure, Refusal
from irrun.engines.process import Limits
from irrun.engines.recordings import Recording
from irrun.engines.sides import Side, parse_side
from irrun.opdef.plugins import plugins

__all__ = ["at_once", "open", "open_all"]

_HARNESSES: Final = Path(__file__).parent / "harnesses"

_Result = TypeVar("_Result")


@contextmanager
def open(side: str | Side, limits: Limits | None = None) -> Iterator[Engine]:
    """Start the engine of a side, and end it with the ``with`` block.

    ``side`` is a text such as ``openvino[device=GPU]:model.xml``, or an engine without a model: ``openvino``. Raises
    EngineError: IR701 if the text describes no side, IR702 if the engine is not installed or does not start. Raises
    ReadError (IR000) if the side is a recording that cannot be read.
    """
    if isinstance(side, str):
        side = parse_side(side, needs_path=False)
    with private_folder() as session, open_all([side], limits, session) as (engine,):
        yield engine


@contextmanager
def open_all(sides: Sequence[Side], limits: Limits | None, session: Path) -> Iterator[list[Engine]]:
    """Start the engines of several sides at the same time, and end them with the ``with`` block.

    ``session`` is a private folder, which a harness removes if this process is killed. Raises the errors of ``open``.
    """
    engines = [_engine(side, limits or Limits(), session) for side in sides]

    def start(engine: Engine, side: Side) -> None:
        try:
            if isinstance(engine, ChildEngine):
                engine.start()
        except NotStartedError as error:
            raise _unavailable(side, error.outcome) from None

    try:
        at_once(start, engines, sides)
        yield engines
    finally:
        for engine in engines:
            engine.release()


def at_once(work: Callable[[Engine, Side], _Result], engines: Sequence[Engine], sides: Sequence[Side]) -> list[_Result]:
    """Return what ``work`` returns for each engine and its side, in threads. An interrupt ends the engines at once."""
    with ThreadPoolExecutor(len(engines)) as pool:
        try:
            return list(pool.map(work, engines, sides))
        except BaseException:
            for engine in engines:
                engine.release()  # so that the threads end
            raise


def _engine(side: Side, limits: Limits, session: Path) -> Engine:
    """Return the engine of a side, which has not started yet."""
    kind = KINDS[side.kind]
    if kind.is_recording:
        return Recording(side)
    harness = str(_HARNESSES / f"{kind.harness}.py")
    options = {**kind.own_options, **{name: text for name, text in side.options.items() if name != "python"}}
    if kind.takes_properties:
        given = [name for name in options if PROPERTY.fullmatch(name)]
        options |= {"properties": json.dumps(properties(options)), "given": json.dumps(given)}
    if kind.loads_plugins:
        options["plugins"] = json.dumps([os.path.abspath(file) for file in plugins()])
    own = "python" not in side.options
    command = [side.options.get("python", sys.executable), str(_HARNESSES / "serve.py"), harness]
    return ChildEngine(command, options, side.path, limits, _environment() if own else None, session)


def _environment() -> dict[str, str]:
    """Return the environment for a harness that runs with this interpreter, so that it imports the same irrun."""
    root = str(_HARNESSES.parent.parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _unavailable(side: Side, outcome: Failure) -> EngineError:
    """Return the error (IR702) for an engine that did not start."""
    packages = KINDS[side.kind].packages
    notes: Sequence[str] = ()
    help = f"install it (pip install {packages}), or name an interpreter that has it: {side.kind}[python=PATH]:..."
    if isinstance(outcome, Refusal):
        *notes, why = outcome.lines
        if outcome.reason != "unavailable":
            help = "check the options of the side"
    elif isinstance(outcome, Crash):
        why, notes = outcome.cause, outcome.log.splitlines()[-3:]
    else:
        why, help = f"it did not answer within {outcome.seconds:g} s", "allow it more time (--timeout)"
    if "python" in side.options and not isinstance(outcome, Refusal):
        help = f"check the path of the interpreter: {side.options['python']}"
    message = f"the engine {side.kind} does not start: {why}"
    return EngineError(diagnostic("IR702", message, notes=tuple(notes), help=help))
