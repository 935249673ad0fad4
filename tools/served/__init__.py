"""Make small random language models of many families, and run each as a server does: its stateful and its paged form.

``python -m tools served [NAME …]`` prints a line for each family, and needs the extra `networks` (torch,
transformers). ``--keep FOLDER`` keeps the models, and ``--save`` stores the table of docs/internal-operations.md.
``--faults 40 1`` plants 40 faults with seed 1 into paged graphs and into the tables of a server, and prints whether
``irrun paged`` names layer and cause of each.
"""
