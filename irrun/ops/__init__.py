"""The operations: one file each, named after the layer type; files with a leading underscore are shared maths.

Nothing needs to be listed here: ``opdef.find`` imports a file when its type is first met.
"""
