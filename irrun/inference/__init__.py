"""Shape inference: which operation a layer is, what its outputs are, and where each dim comes from."""
