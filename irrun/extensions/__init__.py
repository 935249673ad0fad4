"""Operation sets that are not OpenVINO's, one package each.

``irrun.opdef`` imports them when a model names a layer type that OpenVINO's operation sets do not have. They register
their operations in the same way as a package of somebody else.
"""
