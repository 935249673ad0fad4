"""Operation sets beside OpenVINO's numbered ones, one package each.

``irrun.opdef`` imports them when a model names a layer type that the numbered operation sets do not have. They register
their operations in the same way as a package of somebody else.
"""
