"""Harnesses: the programs that engines run in. ``serve.py`` is the common loop, each other file starts one engine.

They run in processes of their own, maybe with another interpreter. Only ``irrun.py`` and ``exact.py`` import irrun.
"""
