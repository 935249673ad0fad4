"""Kernels as machine code, which was made ahead of time, is loaded from disk, or is compiled by numba and kept on disk.

numba is imported only to compile. Loading machine code and calling it takes llvmlite alone, a fifth of the time and
half of the memory; what was made ahead of time (see ``ahead``) takes neither. An entry on disk is the object file of a
kernel for one combination of argument types and one kind of processor. It belongs to the source text of all kernels,
because a kernel contains code of other modules. It appears whole or not at all, so that any number of processes may
compile at the same time.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import numpy as np

from irrun.base.compiling import COMPILING, NotCompiled
from irrun.base.forking import UNFORKED
from irrun.fast.machine import ahead
from irrun.fast.machine.ahead import digest, source
from irrun.fast.machine.entries import FAILED, SCALARS, ArgumentType, processor, target_machine
from irrun.fast.machine.late import Late, jitted
from irrun.fast.machine.library import binding, release_library
from irrun.files import kernels_folder, require_own

__all__ = ["MachineCode"]

_Entry = Callable[[tuple[Any, ...], ctypes.c_void_p, int | None], int]


class MachineCode(Late):
    """A function that numba compiles, for arrays and numbers of ``SCALARS``. It returns None, or an int from 0 on.

    There is an entry for each combination of argument types. An entry checks the types of its arguments itself, and
    gives up the interpreter's lock while it computes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(partial(jitted, function))
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        file = Path(function.__code__.co_filename)
        self.base = f"{file.stem}.{function.__qualname__.replace('<locals>.', '')}"
        self._folder = kernels_folder()
        self._entries: tuple[_Entry, ...] = ()
        self._types: dict[tuple[ArgumentType, ...], _Entry] = {}

    def __call__(self, *arguments: Any) -> int:
        return self._call(arguments, None)

    def prepare(self, place: int, *arguments: Any) -> int:
        """Write the arguments of a call to an address, and return that of ``i64 part(place, first, last)``.

        ``part`` does the call with other last arguments, without the interpreter's lock. ``place`` has room for
        ``MAX_ARGUMENT_BYTES``, and the arguments live as long as they are used.
        """
        return self._call(arguments, place)

    def _call(self, arguments: tuple[Any, ...], place: int | None) -> int:
        for entry in self._entries:
            result = entry(arguments, _TABLE, place)
            if result >= 0:
                return result
            if result == FAILED:
                raise MemoryError
        return self._call_unknown(tuple(map(_plain, arguments)), place)

    def _call_unknown(self, arguments: tuple[Any, ...], place: int | None) -> int:
        """Call the function with arguments of ``SCALARS`` and of ``np.ndarray`` itself, whose types may be new."""
        types = tuple(map(_type, arguments))
        with UNFORKED:
            entry = self._types.get(types)
            if entry is None:
                entry = self._types[types] = self._load(types)
                self._entries += (entry,)
        result = entry(arguments, _TABLE, place)
        if result == FAILED:
            raise MemoryError
        assert result >= 0, "an entry refuses the types that it was compiled for"
        return result

    def _load(self, types: tuple[ArgumentType, ...]) -> _Entry:
        """Return the entry for these types: made ahead of time, from disk, or compiled.

        Raises NotCompiled if it is not there, and numba is not installed.
        """
        made = ahead.library()
        if made is not None and (address := made.address(self.base, types)) is not None:
            return _entry(address)
        if find_spec("numba") is None:
            raise NotCompiled(f"{self.base} for {', '.join(map(str, types))}")
        key = digest(repr((_processor(), types)).encode()).hex()
        name = f"{self.base}.{source()}.{key}"
        folder = self._folder
        with suppress(OSError):
            if folder is not None and (code := _read(folder / f"{name}.o")) is not None:
                return _linked(code, name)
        from irrun.fast.machine.compiling import compile

        with COMPILING:
            code = compile(self.made(), types, name)
        with suppress(OSError):  # the folder is full, cannot be written to, or others can write to it
            if folder is not None:
                _write(folder / f"{name}.o", code)
                self._remove_others(folder)
        return _linked(code, name)

    def _remove_others(self, folder: Path) -> None:
        """Remove the entries of this function that belong to other source text, and files that were never finished.

        Other versions of irrun may use the same folder, so that their entries live a while.
        """
        oldest = time.time() - _KEPT_SECONDS
        unfinished = time.time() - _UNFINISHED_SECONDS
        for file in folder.glob(f"{self.base}.*"):
            is_other = file.suffix == ".o" and not file.name.startswith(f"{self.base}.{source()}.")
            with suppress(OSError):
                if file.stat().st_mtime < (oldest if is_other else unfinished if file.suffix == ".tmp" else 0):
                    file.unlink()


_KEPT_SECONDS: Final = 30 * 24 * 3600
"""How long an entry of other source text is kept: another version of irrun may use it."""
_UNFINISHED_SECONDS: Final = 3600
"""After how long nobody writes a temporary file any more: the process was killed."""


def _read(file: Path) -> bytes | None:
    """Return the code in a file, or None if the file is damaged.

    Raises OSError if there is none, and if another user may have written it: code in it would run as this user.
    """
    require_own(file.parent.stat(), str(file.parent))
    with file.open("rb") as opened:
        require_own(os.fstat(opened.fileno()), str(file))
        data = opened.read()
    code = data[_DIGEST_BYTES:]
    return code if digest(code) == data[:_DIGEST_BYTES] else None


def _write(file: Path, code: bytes) -> None:
    file.parent.parent.mkdir(parents=True, exist_ok=True)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    require_own(file.parent.stat(), str(file.parent))
    with NamedTemporaryFile(dir=file.parent, prefix=f"{file.name}.", suffix=".tmp", delete=False) as written:
        written.write(digest(code) + code)
    os.replace(written.name, file)


_DIGEST_BYTES: Final = 8
"""Bytes of a digest."""


def _plain(argument: Any) -> Any:
    """Return an argument with a type that entries know: a subclass of ndarray or int is none."""
    if isinstance(argument, np.ndarray):
        return np.asarray(argument)
    if isinstance(argument, bool | np.bool_):
        return bool(argument)
    if isinstance(argument, int | np.integer):
        return int(argument)
    return argument if type(argument) is np.float32 else float(argument)


def _type(argument: Any) -> ArgumentType:
    if isinstance(argument, np.ndarray):
        return argument.dtype.str, argument.ndim, argument.flags.c_contiguous
    return type(argument).__name__


@cache
def _processor() -> str:
    """Return what machine code depends on beside the source text."""
    interpreter = sys.implementation.cache_tag, object.__basicsize__, struct.calcsize("P")
    return repr((binding().get_process_triple(), processor(), interpreter, _numba()))


def _numba() -> bytes:
    """Return what tells versions of numba apart. ``importlib.metadata`` takes longer than loading a kernel."""
    spec = find_spec("numba")
    if spec is None or spec.origin is None:
        return b""
    file = Path(spec.origin).with_name("_version.py")
    return file.read_bytes() if file.exists() else spec.origin.encode()


# ---------------------------------------------------------------------------------------------
# from an object file to a function

_ADDRESSES: Final = (ctypes.c_void_p * (1 + len(SCALARS)))(id(np.ndarray), *map(id, SCALARS))
_TABLE: Final = ctypes.cast(_ADDRESSES, ctypes.c_void_p)
_USED: Final = (
    "PyTuple_GetItem", "PyLong_AsLongLong", "PyFloat_AsDouble", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
"""The functions of the interpreter that entries call."""


@cache
def _linker() -> Any:
    """Return the engine that links object files into this process."""
    llvm, machine = binding(), target_machine()
    for name in _USED:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        assert address is not None
        llvm.add_symbol(name, address)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.finalize_object()
    return engine


def _linked(code: bytes, name: str) -> _Entry:
    """Return the function of this name in an object file."""
    engine = _linker()
    engine.add_object_file(binding().ObjectFileRef.from_data(code))
    engine.finalize_object()
    release_library()
    return _entry(engine.get_function_address(name))


def _entry(address: int) -> _Entry:
    """Return the function at an address."""
    return ctypes.PYFUNCTYPE(ctypes.c_longlong, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)(address)
