"""From a function to machine code that needs nothing of numba: numba compiles it, and LLVM emits an object file.

The object file holds an entry, ``i64 entry(PyObject *arguments, void **types, void *prepared)``. It reads the tuple of
arguments, checks their types, calls the function without the interpreter's lock, and returns its result: see
``machine_code``. With an address ``prepared``, it only writes the arguments there, and returns the address of
``i64 part(void *prepared, i64 first, i64 last)``, which calls the function with other last arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils, config
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.target_extension import target_override
from numba.np.arrayobj import make_array, populate_array

from irrun.fast.machine.entries import (
    FAILED,
    MAX_ARGUMENT_BYTES,
    OTHER_TYPES,
    SCALARS,
    ArgumentType,
    processor,
    target_machine,
)
from irrun.fast.machine.structures import BYTE_ORDER, DATA, DTYPE, FLAGS, NDIM, SHAPE, STRIDES, TYPE, TYPE_NUMBER

__all__ = ["compile"]

_SETTINGS: Final[Any] = config
_SETTINGS.CPU_NAME, _SETTINGS.CPU_FEATURES = processor()  # numba chooses the width of vectors by them

_I8: Final = ir.IntType(8)
_I32: Final = ir.IntType(32)
_I64: Final = ir.IntType(64)
_POINTER: Final = _I8.as_pointer()
_F64: Final = ir.DoubleType()

_PREFIX_BYTES: Final = 48
"""Bytes of numba's description of allocated memory, which precedes the memory: see ``_define_allocation``."""
_ALIGNMENT_BYTES: Final = 64
"""Of memory that numba's code allocates, in bytes, where it asks for less: a vector, and a row of a tile, are then in
one line of the cache."""
_SCALARS: Final = {"bool": types.boolean, "int": types.int64, "float": types.float64, "float32": types.float32}


def compile(dispatcher: Any, arguments: Sequence[ArgumentType], name: str, *, shared: bool = False) -> bytes:
    """Return an object file whose function ``name`` is an entry of a function for arguments of these types.

    The file is for this process, or for a ``shared`` library. Raises numba's errors if the function cannot be compiled.
    """
    flags: Any = Flags()
    dispatcher.targetdescr.options.parse_as_flags(flags, dispatcher.targetoptions)
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    typing: Any = cpu_target.typing_context
    context: Any = cpu_target.target_context
    with global_compiler_lock, target_override("cpu"):
        typing.refresh()
        context.refresh()
        made = compile_extra(typing, context, dispatcher.py_func, tuple(map(_type, arguments)), None, flags, {})
        made.library.finalize()  # links the functions that this one calls
        entry = _Entry(context, made, arguments, name).module
    module = llvm.parse_assembly(made.library.get_llvm_str())
    module.link_in(llvm.parse_assembly(str(entry)))
    for symbol in (*module.functions, *module.global_variables):
        if not symbol.is_declaration and symbol.name != name:
            symbol.linkage = "internal"  # object files of other processes may hold the same names
    module.verify()
    if missing := [f.name for f in module.functions if f.is_declaration and f.name.startswith(("NRT_", "numba"))]:
        raise RuntimeError(f"{name} calls {', '.join(missing)}, which processes without numba lack")
    return target_machine(shared=shared).emit_object(module)


def _type(argument: ArgumentType) -> Any:
    if isinstance(argument, str):
        return _SCALARS[argument]
    dtype, ndim, contiguous = argument
    return types.Array(from_dtype(np.dtype(dtype)), ndim, "C" if contiguous else "A")


class _Entry:
    """Builds the module of an entry."""

    def __init__(self, context: Any, made: Any, arguments: Sequence[ArgumentType], name: str) -> None:
        self.context = context
        self.module = ir.Module(name)
        self.module.triple, self.module.data_layout = llvm.get_process_triple(), str(target_machine().target_data)
        self.made = made
        function = ir.Function(self.module, ir.FunctionType(_I64, [_POINTER] * 3), name)
        self.builder = builder = ir.IRBuilder(function.append_basic_block())
        self.refused = function.append_basic_block("refused")
        given, self.table, prepared = function.args
        values = [
            self.value(self.call("PyTuple_GetItem", _POINTER, given, ir.Constant(_I64, n)), argument, type)
            for n, (argument, type) in enumerate(zip(arguments, made.signature.args))
        ]
        with builder.if_then(builder.icmp_unsigned("!=", prepared, ir.Constant(_POINTER, None))):
            self.prepare(prepared, values)
        state = self.call("PyEval_SaveThread", _POINTER)
        result = self.run(builder, values)
        self.call("PyEval_RestoreThread", ir.VoidType(), state)
        builder.ret(result)
        builder.position_at_end(self.refused)
        builder.ret(ir.Constant(_I64, OTHER_TYPES))
        _define_allocation(self.module)

    def run(self, builder: Any, values: Sequence[Any]) -> Any:
        """Call the function, and return its result as an entry returns it."""
        convention, described = self.context.call_conv, self.made.fndesc
        callee = cgutils.get_or_insert_function(
            self.module, convention.get_function_type(described.restype, described.argtypes), described.llvm_func_name
        )
        status, result = convention.call_function(builder, callee, described.restype, described.argtypes, values)
        if described.restype in (types.none, types.void):
            result = ir.Constant(_I64, 0)
        else:
            result = self.context.cast(builder, result, described.restype, types.int64)
        return builder.select(status.is_error, ir.Constant(_I64, FAILED), result)

    def prepare(self, prepared: Any, values: Sequence[Any]) -> None:
        """Write the arguments to memory, and return the address of the function that calls with them."""
        kind = ir.LiteralStructType([value.type for value in values])
        if kind.get_abi_size(target_machine().target_data) > MAX_ARGUMENT_BYTES:
            raise RuntimeError(f"the arguments of {self.module.name} take more than {MAX_ARGUMENT_BYTES} bytes")
        place = self.builder.bitcast(prepared, kind.as_pointer())
        for n, value in enumerate(values):
            self.builder.store(value, cgutils.gep_inbounds(self.builder, place, 0, n))
        type = ir.FunctionType(_I64, [_POINTER, _I64, _I64])
        part = ir.Function(self.module, type, f"{self.module.name}.part")
        builder = ir.IRBuilder(part.append_basic_block())
        place = builder.bitcast(part.args[0], kind.as_pointer())
        held = [builder.load(cgutils.gep_inbounds(builder, place, 0, n)) for n in range(len(values))]
        last = [value.type for value in values[-2:]] == [_I64, _I64]
        builder.ret(self.run(builder, [*held[:-2], *part.args[1:]] if last else held))
        self.builder.ret(self.builder.ptrtoint(part, _I64))

    def call(self, name: str, result: ir.Type, *arguments: Any) -> Any:
        type = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.module, type, name), arguments)

    def load(self, address: Any, offset: int, type: ir.Type) -> Any:
        """Return what is ``offset`` bytes behind an address."""
        place = self.builder.gep(address, [ir.Constant(_I64, offset)])
        return self.builder.load(self.builder.bitcast(place, type.as_pointer()))

    def require(self, condition: Any) -> None:
        """Refuse the arguments unless a condition holds."""
        following = self.builder.function.append_basic_block()
        self.builder.cbranch(condition, following, self.refused)
        self.builder.position_at_end(following)

    def require_equal(self, value: Any, number: int) -> None:
        self.require(self.builder.icmp_signed("==", value, ir.Constant(value.type, number)))

    def value(self, item: Any, argument: ArgumentType, type: Any) -> Any:
        """Return an argument as numba passes it on."""
        names = [scalar.__name__ for scalar in SCALARS]
        place = 1 + names.index(argument) if isinstance(argument, str) else 0
        expected = self.load(self.table, 8 * place, _I64)
        self.require(self.builder.icmp_signed("==", self.load(item, TYPE, _I64), expected))
        if not isinstance(argument, str):
            return self.array(item, argument, type)
        if argument in ("bool", "int"):
            number = self.call("PyLong_AsLongLong", _I64, item)
            return self.builder.trunc(number, ir.IntType(1)) if argument == "bool" else number
        number = self.call("PyFloat_AsDouble", _F64, item)
        return self.builder.fptrunc(number, ir.FloatType()) if argument == "float32" else number

    def array(self, item: Any, argument: tuple[str, int, bool], type: Any) -> Any:
        dtype, (_, ndim, contiguous) = np.dtype(argument[0]), argument
        descr = self.load(item, DTYPE, _POINTER)
        self.require_equal(self.load(descr, TYPE_NUMBER, _I32), dtype.num)
        self.require_equal(self.load(descr, BYTE_ORDER, _I8), ord(dtype.byteorder))
        self.require_equal(self.load(item, NDIM, _I32), ndim)
        flag = self.builder.and_(self.load(item, FLAGS, _I32), ir.Constant(_I32, 1))
        self.require_equal(flag, int(contiguous))
        array = make_array(type)(self.context, self.builder)
        shape, strides = (self.load(item, place, _POINTER) for place in (SHAPE, STRIDES))
        data = self.load(item, DATA, _POINTER)
        populate_array(
            array,
            data=self.builder.bitcast(data, array.data.type),
            shape=[self.load(shape, 8 * n, _I64) for n in range(ndim)],
            strides=[self.load(strides, 8 * n, _I64) for n in range(ndim)],
            itemsize=ir.Constant(_I64, dtype.itemsize),
            meminfo=None,
        )
        return array._getvalue()


def _define_allocation(module: ir.Module) -> None:
    """Define the functions by which numba's code allocates arrays and frees them.

    The description of memory is: references (one), destructor and its argument (none), address, size, and one more.
    """
    allocate, free = (
        ir.Function(module, ir.FunctionType(result, [argument]), name)
        for name, result, argument in (("malloc", _POINTER, _I64), ("free", ir.VoidType(), _POINTER))
    )
    for kind in ("", "_safe", "_aligned", "_safe_aligned"):
        numbers = [_I64, _I32] if kind.endswith("aligned") else [_I64]
        made = ir.Function(module, ir.FunctionType(_POINTER, numbers), f"NRT_MemInfo_alloc{kind}")
        builder = ir.IRBuilder(made.append_basic_block())
        size = made.args[0]
        asked, alignment = [builder.zext(number, _I64) for number in made.args[1:]], ir.Constant(_I64, _ALIGNMENT_BYTES)
        for number in asked:
            alignment = builder.select(builder.icmp_unsigned(">", number, alignment), number, alignment)
        memory = builder.call(allocate, [builder.add(builder.add(size, alignment), ir.Constant(_I64, _PREFIX_BYTES))])
        with builder.if_then(builder.icmp_unsigned("==", memory, ir.Constant(_POINTER, None))):
            builder.ret(ir.Constant(_POINTER, None))
        end = builder.add(builder.ptrtoint(memory, _I64), builder.add(alignment, ir.Constant(_I64, _PREFIX_BYTES - 1)))
        address, zero = builder.and_(end, builder.neg(alignment)), ir.Constant(_I64, 0)
        for n, number in enumerate((ir.Constant(_I64, 1), zero, zero, address, size, zero)):
            place = builder.gep(memory, [ir.Constant(_I64, 8 * n)])
            builder.store(number, builder.bitcast(place, _I64.as_pointer()))
        builder.ret(memory)
    for name, function in (
        ("NRT_Allocate", allocate),
        ("NRT_Free", free),
        ("NRT_MemInfo_call_dtor", free),  # the memory begins with its description
    ):
        made = ir.Function(module, function.function_type, name)
        builder = ir.IRBuilder(made.append_basic_block())
        result = builder.call(function, made.args)
        if function is allocate:
            builder.ret(result)
        else:
            builder.ret_void()
