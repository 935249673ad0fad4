"""Two fuzzers: mutants of files, and random graphs. ``python -m tests.fuzz --help`` says how to run them."""
