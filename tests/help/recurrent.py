"""Recurrent cells and sequences by their formulas, element by element; and the rows that all of them share."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from kit import Case, Refusal, Shapes, Values, random

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "AUGRU": 3}
_ACTIVATIONS = {
    "RNN": ["tanh"],
    "GRU": ["sigmoid", "tanh"],
    "LSTM": ["sigmoid", "tanh", "tanh"],
    "AUGRU": ["sigmoid", "tanh"],
}
_FUNCTIONS = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}


# ---------------------------------------------------------------------------------------------
# the formulas


def _element(
    kind: str, x: Any, states: list[Any], w: Any, r: Any, b: Any, attention: float, attributes: dict[str, Any]
) -> list[Any]:
    """The states after one element of one sequence, as the specification writes its formulas."""
    clip = attributes.get("clip", 0)
    f, *gh = (_FUNCTIONS[name.lower()] for name in attributes.get("activations", _ACTIVATIONS[kind]))

    def clipped(gate: Any) -> Any:
        return np.clip(gate, -clip, clip) if clip else gate

    before, size = states[0], r.shape[1]
    ws, rs, bs = (np.split(a, len(a) // size) for a in (w, r, b))
    if kind == "RNN":
        return [f(clipped(ws[0] @ x + rs[0] @ before + bs[0]))]
    if kind == "LSTM":
        forget, new, candidate, output = (clipped(ws[n] @ x + rs[n] @ before + bs[n]) for n in range(4))
        state = f(forget) * states[1] + f(new) * gh[0](candidate)
        return [f(output) * gh[1](state), state]
    update, reset = (f(clipped(ws[n] @ x + rs[n] @ before + bs[n])) for n in range(2))
    if attributes.get("linear_before_reset"):
        hidden = ws[2] @ x + reset * (rs[2] @ before + bs[3]) + bs[2]
    else:
        hidden = ws[2] @ x + rs[2] @ (reset * before) + bs[2]
    update = (1 - attention) * update
    return [(1 - update) * gh[0](clipped(hidden)) + update * before]


def _cell(kind: str, inputs: list[np.ndarray], attributes: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """What a cell gives for a batch."""
    count = _states(kind)
    x, *others = (a.astype(np.float64) for a in inputs)
    states, (w, r, b, *more) = others[:count], others[count:]
    after = [
        _element(kind, x[n], [s[n] for s in states], w, r, b, more[0][n, 0] if more else 0, attributes)
        for n in range(len(x))
    ]
    return tuple(np.array([found[k] for found in after]).reshape(states[k].shape) for k in range(count))


def _sequence(kind: str, inputs: list[np.ndarray], attributes: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """What a sequence gives for a batch."""
    count = _states(kind)
    x, *others = (a.astype(np.float64) for a in inputs)
    first, (lengths, w, r, b, *more) = others[:count], others[count:]
    y = np.zeros((len(x), len(w), x.shape[1], r.shape[2]))
    last = [np.zeros_like(first[0]) for _ in range(count)]
    for n in range(len(x)):
        for way, step in enumerate(_STEPS[attributes.get("direction", "forward")]):
            states = [s[n, way] for s in first]
            for t in range(int(lengths[n]))[::step]:
                attention = more[0][n, t, 0] if more else 0
                states = _element(kind, x[n, t], states, w[way], r[way], b[way], attention, attributes)
                y[n, way, t] = states[0]
                for k in range(count):
                    last[k][n, way] = states[k]
    return (y, *last)


_STEPS = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}


def _states(kind: str) -> int:
    return 2 if kind == "LSTM" else 1


def expected(op: str, inputs: list[np.ndarray], attributes: dict[str, Any]) -> Any:
    """The outputs by the formulas, rounded to the element type of the inputs."""
    kind, of = _parts(op)
    outputs = of(kind, inputs, attributes)
    rounded = [a.astype(inputs[0].dtype) for a in outputs]
    return tuple(rounded) if len(rounded) > 1 else rounded[0]


def _parts(op: str) -> tuple[str, Any]:
    return (op.partition("Cell")[0], _cell) if "Cell" in op else (op.partition("Sequence")[0], _sequence)


# ---------------------------------------------------------------------------------------------
# inputs


def layouts(op: str, *, linear: bool = False, **dims: Any) -> list[list[Any]]:
    """The dims of each input: 2 sequences of 5 elements of 3 numbers, with 4 hidden, unless ``dims`` say otherwise."""
    kind, of = _parts(op)
    n, t, ways, size, hidden = ({"n": 2, "t": 5, "ways": 1, "size": 3, "hidden": 4} | dims).values()
    gates, biases = (hidden * k for k in (_GATES[kind], _GATES[kind] + linear))
    states = range(_states(kind))
    if of is _sequence:
        rows = [[n, t, size], *([n, ways, hidden] for _ in states), [n]]
        rows += [[ways, gates, size], [ways, gates, hidden], [ways, biases]]
        return rows + ([[n, t, 1]] if kind == "AUGRU" else [])
    rows = [[n, size], *([n, hidden] for _ in states), [gates, size], [gates, hidden], [biases]]
    return rows + ([[n, 1]] if kind == "AUGRU" else [])


def inputs(
    op: str, lengths: Any = (5, 5), dtype: Any = np.float32, length_dtype: Any = np.int64, **dims: Any
) -> list[np.ndarray]:
    found = [random(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(layouts(op, n=len(lengths), **dims))]
    if "Sequence" in op:
        found[1 + _states(_parts(op)[0])] = np.array(lengths, length_dtype)
    return found


# ---------------------------------------------------------------------------------------------
# rows


def _attributes(op: str, **more: Any) -> dict[str, Any]:
    """What OpenVINO needs to be told, and ``more``."""
    way = {"direction": "forward"} if "Sequence" in op else {}
    return {"hidden_size": 4, "activations": _ACTIVATIONS[_parts(op)[0]]} | way | more


def _formulas(op: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """What changes the formula: an id, attributes, and dims of the inputs."""
    if op.startswith("AUGRU"):
        return [("plain", _attributes(op), {}), ("mixed", _attributes(op, activations=["tanh", "SIGMOID"]), {})]
    count = len(_ACTIVATIONS[_parts(op)[0]])
    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("plain", {}, {}),
        ("clip", {"clip": 0.4}, {}),
        ("relu", {"activations": ["relu"] * count, "clip": 1}, {}),
        ("mixed", {"activations": ["tanh", "Relu", "SIGMOID"][:count], "clip": 0.7}, {}),
    ]
    if "GRU" in op:
        linear = {"linear_before_reset": True}
        rows += [
            ("linear-before-reset", linear, {"linear": True}),
            ("linear-before-reset-clip", linear | {"clip": 0.4, "activations": ["relu", "sigmoid"]}, {"linear": True}),
        ]
    return [(id, _attributes(op, **attributes), dims) for id, attributes, dims in rows]


def _directions(op: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    if op.startswith("AUGRU"):
        return [("forward", _attributes(op), {})]
    return [(name, _attributes(op, direction=name), {"ways": len(steps)}) for name, steps in _STEPS.items()]


def values_of(op: str) -> list[Values]:
    """The formulas on f64; in a sequence also each direction and sequences of any length."""
    rows = [(id, inputs(op, dtype=np.float64, **dims), attributes) for id, attributes, dims in _formulas(op)]
    rows += [(f"f32-{id}", inputs(op, **dims), attributes) for id, attributes, dims in _formulas(op)]
    if "Sequence" in op:
        rows += [
            (f"{id}-{lengths}-{np.dtype(t).name}", inputs(op, lengths, np.float64, t, **dims), attributes)
            for id, attributes, dims in _directions(op)
            for lengths, t in [((5, 3), np.int64), ((0, 1, 5, 4), np.int32), ((2,), np.uint8), ((), np.int64)]
        ]
        rows.append(("no-elements", inputs(op, (0, 0), t=0), _attributes(op)))
    else:
        rows.append(("no-batch", inputs(op, ()), _attributes(op)))
    for t in (np.float16, ml_dtypes.bfloat16):
        rows.append((np.dtype(t).name, inputs(op, dtype=t), _attributes(op)))
    # in low precision, the state may be rounded after each element
    rtol = {"float16": 1e-2, "bfloat16": 5e-2}
    return [
        Values(id, op, arrays, expected(op, arrays, attributes), attributes, rtol.get(arrays[0].dtype.name, 1e-4))
        for id, arrays, attributes in rows
    ]


def cases_of(op: str) -> list[Case]:
    """The same against OpenVINO."""
    rows = [Case(id, op, inputs(op, **dims), attributes) for id, attributes, dims in _formulas(op)]
    weights = range(len(inputs(op)) - 3, len(inputs(op)))
    rows.append(Case("constant-weights", op, inputs(op), _attributes(op), constants=weights))
    # an engine may round the state to f16 after each element
    rtol, atol = (1e-2, 5e-3) if "Sequence" in op else (None, None)
    rows.append(Case("float16", op, inputs(op, dtype=np.float16), _attributes(op), rtol=rtol, atol=atol))
    rows.append(Case("float64", op, inputs(op, dtype=np.float64), _attributes(op)))
    rows += [Case(f"one-{t}", op, inputs(op, (t,), t=t, hidden=7), _attributes(op, hidden_size=7)) for t in (1, 9)]
    if "Sequence" in op:
        rows += [
            Case(f"{id}-{lengths}-{np.dtype(t).name}", op, inputs(op, lengths, length_dtype=t, **dims), attributes)
            for id, attributes, dims in _directions(op)
            for lengths, t in [((5, 5), np.int64), ((5, 3), np.int32), ((0, 1, 5, 4), np.int64)]
        ]
    return rows


def _texts(op: str, **dims: Any) -> list[str | None]:
    rows = [f"f32[{','.join(map(str, row))}]" for row in layouts(op, **dims)]
    if "Sequence" in op:
        place = 1 + _states(_parts(op)[0])
        rows[place] = rows[place].replace("f32", "i32")
    return list(rows)


def _outputs(op: str, n: str = "2", t: str = "5", ways: int = 1) -> list[str]:
    kind, of = _parts(op)
    if of is _cell:
        return [f"f32[{n},4]"] * _states(kind)
    return [f"f32[{n},{ways},{t},4]"] + [f"f32[{n},{ways},4]"] * _states(kind)


def shapes_of(op: str) -> list[Shapes]:
    def row(id: str, given: list[str | None], wanted: list[str], **more: Any) -> Shapes:
        return Shapes(id, op, given, wanted, {"hidden_size": 4} | more)

    static = _texts(op)
    unknown: list[str | None] = [str(text).partition("[")[0] + "[...]" for text in static]
    rows = [
        row("static", static, _outputs(op)),
        row("batch", _texts(op, n="?"), _outputs(op, "?")),
        row("batch-of-the-state", _texts(op, n="?")[:1] + static[1:2] + _texts(op, n="?")[2:], _outputs(op)),
        row("interval", _texts(op, n="1..3")[:1] + _texts(op, n="2..8")[1:], _outputs(op, "2..3")),
        row("unknown-rank", unknown, _outputs(op, "?", "?")),
        row("unknown-x", unknown[:1] + static[1:], _outputs(op, "2", "5" if op.startswith("AUGRUS") else "?")),
        row("unknown-weights", static[:-3] + unknown[-3:], _outputs(op)),
    ]
    if op.startswith("GRU"):
        rows.append(row("linear-before-reset", _texts(op, linear=True), _outputs(op), linear_before_reset=True))
    if "Sequence" in op:
        rows.append(row("time", _texts(op, t="?"), _outputs(op, t="?")))
        if not op.startswith("AUGRU"):
            rows.append(row("bidirectional", _texts(op, ways=2), _outputs(op, ways=2), direction="bidirectional"))
            rows.append(row("reverse", static, _outputs(op), direction="reverse"))
    return rows


def refusals_of(op: str) -> list[Refusal]:
    static = _texts(op)
    names = [str(n) for n in range(len(static))]
    attributes = {"hidden_size": 4}

    def row(id: str, place: int, text: str, **more: Any) -> Refusal:
        return Refusal(f"{id}-{names[place]}", op, [*static[:place], text, *static[place + 1 :]], attributes | more)

    rows = [
        Refusal("c1-too-few", op, static, attributes | {"activations": ""}),
        Refusal("c1-too-many", op, static, attributes | {"activations": "tanh,tanh,tanh,tanh"}),
        Refusal("c1-name", op, static, attributes | {"activations": ["softsign"] * len(_ACTIVATIONS[_parts(op)[0]])}),
        Refusal("c3-hidden-size", op, static, {"hidden_size": 5}),
        Refusal("ir205-no-weights", op, static[:3], attributes),
        Refusal("ir301-integers", op, ["i32[2,5,3]", *static[1:]], attributes),
        Refusal("ir302-types", op, [*static[:1], str(static[1]).replace("f32", "f16"), *static[2:]], attributes),
    ]
    for place, text in enumerate(static):
        type, dims = str(text).rstrip("]").split("[")
        rows.append(row("c2-rank", place, f"{type}[1,{dims}]"))
        first, *others = dims.split(",")
        rows.append(row("c3-first-dim", place, f"{type}[{','.join([str(int(first) + 1), *others])}]"))
        if others and place:
            rows.append(row("c3-last-dim", place, f"{type}[{','.join([first, *others[:-1], '9'])}]"))
    if op.startswith("GRU"):
        rows.append(Refusal("c3-linear-before-reset", op, static, attributes | {"linear_before_reset": True}))
    if op.startswith("AUGRU"):
        rows += [
            Refusal("c1-relu", op, static, attributes | {"activations": ["sigmoid", "relu"]}),
            Refusal("c4-clip", op, static, attributes | {"clip": 1}),
            Refusal("c4-linear-before-reset", op, static, attributes | {"linear_before_reset": True}),
        ]
    if "Sequence" in op and not op.startswith("AUGRU"):
        rows.append(Refusal("c3-bidirectional", op, static, attributes | {"direction": "bidirectional"}))
    return rows
