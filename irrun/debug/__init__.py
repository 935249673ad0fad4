"""Find out where two models, or two runs of them, differ."""
