"""Measure which operations releases of OpenVINO have, and what they refuse: `python -m tools releases FOLDER`.

FOLDER holds an environment for each release: FOLDER/2024.6.0/bin/python imports OpenVINO 2024.6.0. Releases of 2022 need
Python 3.8, and 2022.1 needs a numpy before 1.20. The command asks each release about COUNT models, learns rules from the
answers, and writes `irrun/targets/table.json`. Answers are kept in FOLDER/answers, so that it can be interrupted.

`--judge COUNT SEED` measures how often the rules are right, with COUNT other models that SEED chooses, and
`--save docs/results/releases.json` stores the figures. `--also FOLDER` adds the models of a folder to those.
"""
