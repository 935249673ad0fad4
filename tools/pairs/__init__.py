"""Judge pairs of files and engines: half of them hide a fault, half differ in precision, cache, processor or version.

``python -m tools pairs 120 7`` makes 120 pairs with the seed 7. It asks ``compare`` about each: does it name the layer
of the fault, and does it agree where nothing is wrong? With ``--bisect``, ``bisect`` is asked about the faults, too.
``--python PATH``, which may be repeated, adds the OpenVINO of another environment to the harmless sides.

``--tokens N`` draws language models instead, and asks ``compare_tokens`` about N tokens with a cache in u8 and in f32.

Of the faults, each third one changes the outputs less than the engine's own precision does, if 30 draws find one.
"""
