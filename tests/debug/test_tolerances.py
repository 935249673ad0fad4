"""Which tolerance a value has, and files of tolerances."""

from __future__ import annotations

from pathlib import Path

import pytest

import irrun
import irrun.testing
from irrun.debug import Limit, Tolerances, read_tolerances
from irrun.debug.tolerances import TOLERANCES


def test_the_most_particular_rule_counts(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(
        'atol = 0.5\n[types]\nf16 = { rtol = 0.25 }\n[layers]\n"conv*" = { rtol = 1 }\nconv1 = { rtol = 2, atol = 0 }\n'
        "[outputs]\nout = { atol = 3 }\n"
    )
    limits = read_tolerances(file)
    assert limits.of_layer("conv1", "f32") == (1, 0.5)  # the first glob that matches
    assert limits.of_layer("block/conv1", "f32") == (1e-4, 0.5)
    assert limits.of_layer("relu", "f16") == (0.25, 0.5)
    assert limits.of_layer("relu", "i64") == (0, 0.5)
    assert limits.of_output("out", "f16") == (0.25, 3)
    assert limits.of_output("conv1", "f32") == (1e-4, 0.5)
    over = limits.overridden(Limit(rtol=7))
    assert over.of_layer("relu", "f16") == (7, 0.5)
    assert over.of_layer("conv2", "f32") == (1, 0.5)


def test_defaults() -> None:
    assert Tolerances().of_layer("x", "f32") == TOLERANCES["f32"]
    assert Tolerances().of_layer("x", "boolean") == (0, 0)
    assert irrun.testing.TOLERANCES is TOLERANCES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rtol = ", "it is not TOML"),
        ("rtol = -1", "rtol of the file is -1, not a number from 0 on"),
        ("rtol = nan", "rtol of the file is nan"),
        ("rtol = true", "rtol of the file is True"),
        ("tolerance = 1", "the file has the unknown entry 'tolerance'"),
        ("types = 1", "types is no table"),
        ("[types]\nf33 = { rtol = 1 }", "'f33' is no element type; did you mean f32?"),
        ('[layers]\n"a" = 1', "layers.a is neither rtol nor atol"),
        ("[outputs]\na = { rtl = 1 }", "outputs.a has the unknown entry 'rtl'"),
    ],
)
def test_files_that_are_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(text)
    with pytest.raises(irrun.EngineError) as caught:
        read_tolerances(file)
    assert caught.value.diagnostics[0].code == "IR703"
    assert said in caught.value.diagnostics[0].message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(irrun.EngineError, match="no such file"):
        read_tolerances(tmp_path / "none.toml")
