"""irrun schema."""

import sys
from pathlib import Path

import pytest
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

import warm
from irrun.ir.schema import relax_ng, xsd


def test_standard_output(call):
    assert call("schema").stdout == relax_ng()
    assert call("schema", "--format", "xsd").stdout == xsd()


def test_a_file(call, tmp_path):
    result = call("schema", "--format", "xsd", "-o", tmp_path / "ir.xsd")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "ir.xsd").read_text("utf-8") == xsd()


@pytest.mark.parametrize("path", [".", "missing/ir.rng"])
def test_a_path_that_cannot_be_written(path, call, tmp_path):
    result = call("schema", "-o", tmp_path / path)
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


_PLUGIN = '''
import irrun
from irrun.opdef import Op, attr, ports

@irrun.op("Ramp")
class Ramp(Op):
    """Return a ramp."""
    slope = attr.float()
    inputs = ports(x="float")
'''

_MODEL = """<net name="net" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="2"/>
<output><port id="0"><dim>2</dim></port></output></layer>
<layer id="1" name="ramp" type="Ramp" version="mine"><data {}/><input><port id="0"><dim>2</dim></port></input>
<output><port id="1"><dim>2</dim></port></output></layer>
<layer id="2" name="y" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
</layers></net>"""


def test_operations_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "ramp.py").write_text(_PLUGIN)
    schemas = {}
    for form, read in (("rng", etree.RelaxNG), ("xsd", etree.XMLSchema)):
        arguments = ["schema", "--plugin", "ramp.py", "--format", form]
        done = warm.run([sys.executable, "-m", "irrun", *arguments], cwd=tmp_path, capture_output=True, check=True)
        schemas[form] = read(etree.fromstring(done.stdout))
    for data, accepted in (('slope="2"', True), ('slope="steep"', False), ('slope="2" step="1"', False)):
        model = etree.fromstring(_MODEL.format(data))
        assert schemas["rng"].validate(model) is accepted
    assert schemas["xsd"].validate(etree.fromstring(_MODEL.format('slope="2"')))
    plain = etree.RelaxNG(etree.fromstring(relax_ng()))
    assert not plain.validate(etree.fromstring(_MODEL.format('slope="2"')))
