"""Releases of OpenVINO as targets: what a text names, and which operations a release has."""

from __future__ import annotations

from pathlib import Path

import pytest

import irrun
from irrun.opdef import RELEASES as OPSETS
from irrun.opdef import all_ops, is_custom
from irrun.targets import RELEASES, Target, first_release, has_operation, newest_opset, parse_target
from nets import Net


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        ("openvino==2024.6", ["2024.6"]),
        ("openvino==2024.6.0", ["2024.6"]),
        (" OpenVINO == 2024.6 ", ["2024.6"]),
        ("openvino>=2022.1,<2023.1", ["2022.1", "2022.2", "2022.3", "2023.0"]),
        ("openvino>=2023.2,<=2024,!=2023.3", ["2023.2", "2024.0"]),
        ("openvino<2022.2", ["2022.1"]),
    ],
)
def test_targets(text: str, releases: list[str]) -> None:
    assert parse_target(text) == Target(text, tuple(releases))


def test_a_target_without_a_condition_names_all_releases() -> None:
    assert parse_target("openvino").releases == RELEASES
    assert parse_target("npu").device == "NPU"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("openvin==2024.6", "did you mean openvino?"),
        ("torch", "write openvino==2024.6"),
        ("", "write openvino==2024.6"),
        ("openvino=2024.6", "=2024.6 is no condition"),
        ("openvino 2024.6", "2024.6 is no condition"),
        ("openvino==latest", "==latest is no condition"),
        ("openvino==2021.4", "names no measured release; these are 2022.1"),
        ("openvino>=2023,<2022", "names no measured release"),
        ("npu==4000", "did you mean npu?"),
    ],
)
def test_texts_that_are_no_target(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?").replace(".", r"\.")):
        parse_target(text)


def test_the_measured_releases_of_opsets_are_those_of_the_pages() -> None:
    """The page of the operation sets, and the pull requests that ``opdef.RELEASES`` names."""
    for opset in range(9, 16):
        assert first_release("Abs", opset) == OPSETS[opset]
    assert first_release("Abs", 8) == first_release("Abs", 1) == "2022.1", "the oldest release with a wheel"
    assert newest_opset("2023.3") == 13


LATER = {"FakeConvert": "2023.3", "ScaledDotProductAttention": "2023.3", "RMS": None}
"""Operations that the reader of the release which began their opset does not have. No reader has RMS in an opset."""


def test_a_release_has_the_operations_of_its_opsets() -> None:
    for cls in all_ops():
        if is_custom(cls) or not 8 < cls.since < 16:
            continue
        first, latest = first_release(cls.type, cls.since), LATER.get(cls.type, OPSETS[cls.since])
        if latest is None:
            assert first is None, cls
        else:
            assert first is not None
            assert RELEASES.index(first) <= RELEASES.index(latest), cls
        assert not has_operation("2022.1", cls.type, cls.since)


@pytest.mark.parametrize(
    ("type", "opset", "release", "has"),
    [
        ("Softmax", 8, "2022.1", True),
        ("softmax", 9, "2022.1", False),
        ("ScaledDotProductAttention", 13, "2023.2", False),
        ("Inverse", 13, "2024.6", False),
        ("Reverse", 1, "2024.6", True),
        ("Reverse", 2, "2024.6", False),
        ("Nonsense", 1, "2022.1", True),
    ],
)
def test_has_operation(type: str, opset: int, release: str, has: bool) -> None:
    assert has_operation(release, type, opset) is has


def _inverse() -> Net:
    net = Net()
    x = net.parameter("f32", "2,2", name="x")
    net.result(net.add("Inverse", [x], [("FP32", "2,2")], name="inverse", opset="opset14", adjoint="false"))
    return net


def test_a_missing_operation(tmp_path: Path) -> None:
    path = _inverse().save(tmp_path)
    report = irrun.check(path, targets=["openvino>=2023.1,<=2024.1"])
    (finding,) = report.errors
    assert (finding.code, finding.layer, finding.blocks) == ("IR901", "inverse", False)
    assert finding.message == (
        'Inverse "inverse": OpenVINO 2023.1 to 2023.3 cannot read it from opset14; OpenVINO 2024.0 is the first release that does'
    )
    assert finding.help is not None
    assert "openvino==2023.1" in finding.help
    line = Path(path).read_text().splitlines()[(finding.line or 0) - 1]
    assert 'type="Inverse"' in line
    assert irrun.check(path, targets=["openvino==2024.0"]).ok
