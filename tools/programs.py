"""The programs for developers, by the name under which ``python -m tools`` runs them."""

from typing import Final

PROGRAMS: Final = {
    "adjudication": "tools/adjudication.py",
    "departures": "tools/departures_page.py",
    "engine_tables": "tools/engine_tables.py",
    "export_suite": "tests/conformance/export.py",
    "figures": "tools/figures.py",
    "file_fuzz": "tools/file_fuzz/__main__.py",
    "fleets": "tools/fleets.py",
    "floors": "tests/repository/test_layout.py",
    "forks": "tools/forks.py",
    "growth": "tools/growth/__main__.py",
    "kernel_calls": "tools/kernel_calls/__main__.py",
    "kills": "tools/kills.py",
    "mutants": "tools/mutants.py",
    "mutations": "tools/mutations.py",
    "networks": "tools/networks.py",
    "onnx_nodes": "tools/onnx_nodes.py",
    "pages": "tests/repository/test_pages.py",
    "pattern_fuzz": "tools/pattern_fuzz.py",
    "planted_faults": "tools/planted_faults/__main__.py",
    "quotations": "tools/quotations.py",
    "random_faults": "tools/random_faults.py",
    "random_models": "tests/testing/test_testing.py",
    "record_compat": "tests/compat/test_compat.py",
    "record_tokenizers": "tools/record_tokenizers.py",
    "sizes": "tools/sizes.py",
    "snapshots": "tests/cli/test_widths.py",
    "suite_release": "tools/suite_release.py",
    "train_tokenizers": "tools/train_tokenizers.py",
}
