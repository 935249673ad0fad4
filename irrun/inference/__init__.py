"""Shape inference: find the operation of each layer, infer its outputs, and trace each dim to its origin."""
