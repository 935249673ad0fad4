"""The operations: one file for each, named after the layer type. Files with a leading underscore hold shared code.

No list of operations has to be maintained: ``opdef.find`` imports a file when a model first uses its type.
"""
