"""Products whose operands are rounded, where a caller asks for it."""
