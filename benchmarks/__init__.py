"""How fast irrun is, next to OpenVINO's CPU plugin: `python -m benchmarks --help`."""
