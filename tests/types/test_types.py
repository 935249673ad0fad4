"""Element types, dims and partial shapes: spellings, and intervals that always hold the true result."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grouped import each
from irrun.types import ELEMENT_TYPES, INF, Dim, ElementType, PartialShape, Term, as_dim, product, type_set

# ---------------------------------------------------------------------------------------------
# element types

PRECISIONS = {
    "FP32": "f32", "FP16": "f16", "BF16": "bf16", "FP64": "f64", "BOOL": "boolean", "BIN": "u1", "I4": "i4",
    "U4": "u4", "U2": "u2", "U3": "u3", "U6": "u6", "NF4": "nf4", "F8E4M3": "f8e4m3", "F8E5M2": "f8e5m2",
    "F8E8M0": "f8e8m0", "F4E2M1": "f4e2m1", "STRING": "string", "I8": "i8", "I16": "i16", "I32": "i32",
    "I64": "i64", "U8": "u8", "U16": "u16", "U32": "u32", "U64": "u64",
}  # fmt: skip


@each("precision, name", PRECISIONS.items())
def test_both_spellings_of_an_element_type(precision: str, name: str) -> None:
    element_type = ELEMENT_TYPES[name]
    for spelling in (precision, precision.lower(), name, name.upper(), f" {name} "):
        assert ElementType.parse(spelling) is element_type
    assert element_type.port_name == precision
    assert str(element_type) == name


def test_every_element_type_has_a_precision() -> None:
    assert set(PRECISIONS.values()) == ELEMENT_TYPES.keys() - {"dynamic"}
    assert ElementType.parse("dynamic") is ElementType.parse("UNDEFINED") is ELEMENT_TYPES["dynamic"]


@each("text", ["", "fp33", "float", "i128", "FP", "f32 i32", "int"])
def test_no_element_type(text: str) -> None:
    assert ElementType.parse(text) is None


@each("name", [n for n in ELEMENT_TYPES if n not in ("string", "dynamic", "u3", "u6")])
def test_widths_are_those_of_openvino(name: str, ov: Any) -> None:
    element_type = ELEMENT_TYPES[name]
    assert element_type.bits == getattr(ov.Type, name).bitwidth
    if element_type.bits >= 8:
        assert element_type.dtype.itemsize * 8 == element_type.bits


@each("name", [n for n in ELEMENT_TYPES if n not in ("string", "dynamic")])
@each("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
def test_bytes_in_the_bin(name: str, count: int, ov: Any) -> None:
    assert ELEMENT_TYPES[name].nbytes(count) == ov.Tensor(getattr(ov.Type, name), ov.Shape([count])).byte_size


def test_the_type_of_an_array() -> None:
    assert ElementType.of(np.dtype(np.uint8)) is ELEMENT_TYPES["u8"]
    assert ElementType.of(np.dtype(ml_dtypes.int4)) is ELEMENT_TYPES["i4"]
    assert ElementType.of(np.dtype(np.float32)) is ELEMENT_TYPES["f32"]
    assert ElementType.of(np.dtype("U7")) is ELEMENT_TYPES["string"]
    assert ElementType.of(np.dtype(np.complex64)) is None
    assert {ElementType.of(t.dtype) for t in ELEMENT_TYPES.values()} >= type_set("i4 u2 u4 f4e2m1 f8e8m0 bf16 boolean")


def test_sets_of_types() -> None:
    assert type_set("i32 i64") == {ELEMENT_TYPES["i32"], ELEMENT_TYPES["i64"]}
    assert ELEMENT_TYPES["boolean"] not in type_set("numeric")
    assert type_set("u1 u3 u6 nf4") <= type_set("any")
    assert not type_set("u1 u3 u6 nf4") & type_set("numeric float int signed")  # they only hold weights
    assert type_set("signed") == type_set("float i4 i8 i16 i32 i64")
    assert type_set("any") == set(ELEMENT_TYPES.values())


# ---------------------------------------------------------------------------------------------
# dims: whatever the true numbers within the intervals are, the result holds the true result

# a machine under load draws slowly, which says nothing of dims
STEADY = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_numbers = st.integers(-60, 60)


@st.composite
def _known(draw: st.DrawFn, numbers: st.SearchStrategy[int] = _numbers) -> tuple[Dim, int]:
    """An interval, with or without ends and a name, and a number within it."""
    n = draw(numbers)
    lo = draw(st.sampled_from([n, n - 1, n - 7, -INF, 0])) if draw(st.booleans()) else n
    hi = draw(st.sampled_from([n, n + 1, n + 9, INF])) if draw(st.booleans()) else n
    term = Term(draw(st.sampled_from("ab")) + str(n)) if draw(st.booleans()) else None
    return Dim(min(lo, n), hi, term), n


@st.composite
def _dim(draw: st.DrawFn) -> tuple[Dim, int]:
    """A dim of a tensor: never negative."""
    n = draw(st.integers(0, 6))
    lo = draw(st.integers(0, n))
    hi = draw(st.one_of(st.integers(n, 9), st.just(INF)))
    return Dim(lo, hi, Term(f"d{n}") if draw(st.booleans()) else None), n


@STEADY
@given(_known(), _known())
def test_sum_difference_product(a: tuple[Dim, int], b: tuple[Dim, int]) -> None:
    (x, n), (y, m) = a, b
    assert (x + y).fits(n + m)
    assert (x - y).fits(n - m)
    assert (x * y).fits(n * m)
    assert (-x).fits(-n)
    assert (x + m).fits(n + m)
    assert (n + y).fits(n + m)
    assert (x - m).fits(n - m)
    assert (n - y).fits(n - m)
    assert (x * m).fits(n * m)
    assert (n * y).fits(n * m)


@STEADY
@given(_known(), _known(st.integers(1, 60)))
def test_quotients_and_remainder(a: tuple[Dim, int], b: tuple[Dim, int]) -> None:
    (x, n), (y, m) = a, b
    assert (x // y).fits(n // m)
    assert (x // m).fits(n // m)
    assert (n // y).fits(n // m)
    assert (x % y).fits(n % m)
    assert x.ceil_div(y).fits(-(-n // m))
    assert x.ceil_div(m).fits(-(-n // m))


@STEADY
@given(_known(), _known())
def test_extremes(a: tuple[Dim, int], b: tuple[Dim, int]) -> None:
    (x, n), (y, m) = a, b
    assert x.max(y).fits(max(n, m))
    assert x.min(y).fits(min(n, m))
    assert x.max(m).fits(max(n, m))
    assert x.min(m).fits(min(n, m))


@STEADY
@given(_known(), _known())
def test_meet_and_union(a: tuple[Dim, int], b: tuple[Dim, int]) -> None:
    (x, n), (y, m) = a, b
    both, either = x.meet(y), x.union(y)
    assert either.fits(n)
    assert either.fits(m)
    for k in (n, m, 0, 1):
        assert (both is not None and both.fits(k)) == (x.fits(k) and y.fits(k)) or x.same(y)
    if both is None:
        assert not any(x.fits(k) and y.fits(k) for k in (x.lo, x.hi, y.lo, y.hi))


@STEADY
@given(_dim(), _dim())
def test_broadcast(a: tuple[Dim, int], b: tuple[Dim, int]) -> None:
    (x, n), (y, m) = a, b
    found = x.broadcast(y)
    if n == m or m == 1:
        assert found is not None
        assert found.fits(n)
    elif n == 1:
        assert found is not None
        assert found.fits(m)
    if found is None:  # then no pair of numbers within the intervals broadcasts
        pairs = [(p, q) for p in range(x.lo, min(x.hi, 12) + 1) for q in range(y.lo, min(y.hi, 12) + 1)]
        assert not any(p == q or 1 in (p, q) for p, q in pairs)


@STEADY
@given(_known())
def test_identity_is_kept(a: tuple[Dim, int]) -> None:
    x, _ = a
    assert x + 0 is x
    assert 0 + x is x
    assert x - 0 is x
    assert x * 1 is x
    assert x // 1 is x
    assert x.ceil_div(1) is x
    assert x.meet(x) is x
    assert x.union(x) is x
    assert x.max(x) is x
    assert x.same(x)


def test_the_same_unknown() -> None:
    n, other = Dim.unknown("n"), Dim.unknown("m")
    assert n.same(Dim.unknown("n"))
    assert not n.same(other)
    assert not Dim.unknown().same(Dim.unknown())
    assert (n - n) == 0
    some, same = Dim(2, 8), Dim(2, 8, Term("H"))
    assert some // some == same // Dim(2, 8, Term("H")) == 1  # of n it may be 0 / 0
    assert (some // Dim(2, 8)).fits(4)
    assert (same // Dim(2, 8, Term("W"))).fits(0)
    assert n.broadcast(Dim.unknown("n")) is n
    assert (n + 1).same(Dim.unknown("n") + 1)
    assert not (n + 1).same(n + 2)
    assert not Dim(3).same(n)


def test_zero_divided_by_a_dim_that_may_be_zero() -> None:
    n = Dim.unknown("n")
    for divide in (Dim.__floordiv__, Dim.ceil_div, Dim.__mod__):
        assert divide(Dim(12), n).fits(12)
        assert divide(Dim(12), Dim(0)) == Dim(-INF, INF)


def test_terms_tell_where_a_dim_comes_from() -> None:
    h = Dim.unknown("H")
    assert str(((h + 2 - 3) // 2 + 1).term) == "floor((H + 2 - 3) / 2) + 1"
    assert str((h * 2 + 1).term) == "H * 2 + 1"
    assert str(((h + 1) * 2).term) == "(H + 1) * 2"
    assert str((5 - (h - 1)).term) == "5 - (H - 1)"
    assert str(h.ceil_div(2).term) == "ceil(H / 2)"
    assert str((h // (Dim(1, INF, Term("s")) * 2)).term) == "floor(H / (s * 2))"
    assert str(h.max(3).term) == "max(H, 3)"


def test_bounds_stay_bounds() -> None:
    n = Dim.unknown()
    assert str(n * n) == "?"
    assert str(n % n) == "?"
    assert str(n + INF) == str(Dim(INF))
    assert (n - 1).lo == -1
    assert (n - 1).hi == INF
    assert Dim(1 << 40) * Dim(1 << 40) == Dim(INF, INF)
    assert hash(Dim(3)) == hash(Dim(3, 3))
    assert Dim(3) == 3
    assert Dim(3, 4) != 3
    assert Dim(3) != "3"
    assert as_dim(np.int64(5)) == 5  # type: ignore[arg-type]


@each(
    "dim, text",
    [
        (Dim(7), "7"), (Dim(-1), "-1"), (Dim.unknown(), "?"), (Dim(1, 8), "1..8"), (Dim(0, 8), "..8"), (Dim(5, INF), "5.."),
        (Dim(-INF, INF), "?"), (Dim(-3, 5), "..5"), (Dim(-3, INF), "?"),
    ],
)  # fmt: skip
def test_how_a_dim_is_written(dim: Dim, text: str) -> None:
    assert str(dim) == text
    assert repr(dim) == f"Dim({text})"


# ---------------------------------------------------------------------------------------------
# shapes

SHAPES = {
    "": "[]", "2,3": "[2,3]", "2, 3": "[2,3]", " 2 ,3 ": "[2,3]", "0": "[0]", "?": "[?]", "-1,3": "[?,3]",
    "?,3,1..8": "[?,3,1..8]", "1..5": "[1..5]", "..200": "[..200]", "120..": "[120..]", "...": "[...]", " ... ": "[...]",
    "..": "[?]", "3..3": "[3]", "0..": "[?]", "1..9223372036854775807": "[1..]", "007": "[7]",
}  # fmt: skip

MALFORMED = [
    "...,...", "1s", "1..g", "-2", "1,,2", "1,", ",", "a", "1.5", "5..3", "1...3", "?..5", "1,...", "2 3", "+2", "1;2",
    "99999999999999999999", "99999999999999999999..", "²", "٣", "1_0", "0x1", "--1", "9" * 5000, "1.." + "9" * 5000,
]  # fmt: skip


@each("text, shape", SHAPES.items())
def test_spellings_of_a_shape(text: str, shape: str) -> None:
    assert str(PartialShape.parse(text)) == shape


@each("text", MALFORMED, ids=lambda t: t[:12])
def test_malformed_shapes(text: str) -> None:
    assert PartialShape.parse(text) is None


@STEADY
@given(st.lists(_dim(), max_size=4))
def test_a_shape_is_read_as_it_is_written(dims: list[tuple[Dim, int]]) -> None:
    shape = PartialShape.of(d for d, _ in dims)
    assert PartialShape.parse(str(shape)[1:-1]) == shape
    assert shape.fits([n for _, n in dims])
    assert shape.count().fits(int(np.prod([n for _, n in dims], dtype=object)))
    assert product(d for d, _ in dims) == shape.count()
    assert shape.meet(PartialShape(None)) == shape == PartialShape(None).meet(shape)
    assert not shape.fits([*(n for _, n in dims), 1])


@STEADY
@given(st.lists(_dim(), max_size=3), st.lists(_dim(), max_size=3))
def test_shapes_broadcast_as_numpy_does(a: list[tuple[Dim, int]], b: list[tuple[Dim, int]]) -> None:
    left, right = (PartialShape.of(d for d, _ in dims) for dims in (a, b))
    found = left.broadcast(right)
    try:
        true = np.broadcast_shapes(*([n for _, n in dims] for dims in (a, b)))  # type: ignore[arg-type]
    except ValueError:
        return
    assert found is not None
    assert found.fits(true)
    assert PartialShape(None).broadcast(left) == PartialShape(None)


@settings(STEADY, max_examples=50)
@given(st.lists(_dim(), min_size=1, max_size=3))
def test_meet_of_shapes(dims: list[tuple[Dim, int]]) -> None:
    shape = PartialShape.of(d for d, _ in dims)
    exact = PartialShape.of(n for _, n in dims)
    assert shape.meet(exact) == exact
    assert shape.meet(PartialShape.of([*exact, 1])) is None
    assert exact.meet(exact.replace(0, dims[0][1] + 1)) is None
    assert exact.static == tuple(n for _, n in dims)
    assert exact.is_static


def test_unknown_rank() -> None:
    shape = PartialShape(None)
    assert shape.rank is None
    assert shape.static is None
    assert not shape.is_static
    assert shape.fits((1, 2))
    assert str(shape.count()) == str(shape[3]) == "?"
    with pytest.raises(TypeError):
        len(shape)
    with pytest.raises(TypeError):
        iter(shape)
    assert str(PartialShape.of_rank(2)) == "[?,?]"


def test_how_wide_an_element_is() -> None:
    widths = {
        "boolean": 8, "bf16": 16, "f16": 16, "f32": 32, "f64": 64, "f8e4m3": 8, "f8e5m2": 8, "f8e8m0": 8, "f4e2m1": 4,
        "nf4": 4, "i4": 4, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u1": 1, "u2": 2, "u3": 3, "u4": 4, "u6": 6,
        "u8": 8, "u16": 16, "u32": 32, "u64": 64, "string": 0, "dynamic": 0,
    }  # fmt: skip
    assert {name: element_type.bits for name, element_type in ELEMENT_TYPES.items()} == widths
