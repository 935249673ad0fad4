"""Compare what a model declares with what is inferred, and report and fix the differences."""
