import pytest

import kit


@pytest.fixture(scope="session", autouse=True)
def _openvino_process():
    yield
    kit.oracle.close()
