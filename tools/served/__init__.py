"""Make small random language models of many families, and run each as a server does: its stateful and its paged form.

``python -m tools served [NAME …]`` prints a line for each family, and needs the extra `networks` (torch,
transformers). ``--save`` also writes the table of docs/internal-operations.md. ``--keep FOLDER`` keeps the models.
"""
