"""Build the documentation site: ``python -m sphinx -W -b html docs docs/_build/html``."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parent.parent)]

import site_pages

import irrun
from irrun.departures import FOLDER

project = "irrun"
author = "the irrun developers"
copyright = author
version = release = irrun.__version__

ADDRESS = "https://ADDRESS/irrun"
"""What the pages of the repository write for the address of the repository, which the environment variable
``IRRUN_ADDRESS`` names for the site."""

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_design"]
myst_enable_extensions = ["colon_fence"]
exclude_patterns = ["_build", "_ext", "_static"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries = False
maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"irrun {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False


def _generate(app: Sphinx) -> None:
    """Write the generated pages, leave unchanged ones alone so that Sphinx reuses them, and remove stale ones."""
    folder = Path(app.srcdir) / site_pages.FOLDER
    pages = site_pages.pages()
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _relink(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill in the address, and let links from docs lead to the copies of pages that lie outside of it."""
    source[0] = source[0].replace(ADDRESS, os.environ.get("IRRUN_ADDRESS", ADDRESS))
    if not docname.startswith(f"{site_pages.FOLDER}/"):
        source[0] = site_pages.relinked(source[0], site_pages.DOCS, site_pages.DOCS)


def _link_models(app: Sphinx, doctree: nodes.document) -> None:
    """Let links to irrun/departures/*.xml lead to a copy of that folder, where each .xml lies beside its .bin."""
    docname = app.env.docname
    for node in list(doctree.findall(addnodes.download_reference)):
        _, slash, model = node["reftarget"].rpartition("departures/")
        if slash:
            uri = relative_uri(app.builder.get_target_uri(docname), f"departures/{model}")
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


def _copy_models(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        ignore = shutil.ignore_patterns("*.py", "__pycache__")
        shutil.copytree(FOLDER, Path(app.outdir) / "departures", ignore=ignore, dirs_exist_ok=True)


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", _generate)
    app.connect("source-read", _relink)
    app.connect("doctree-read", _link_models, priority=100)  # before Sphinx collects downloads, at 500
    app.connect("build-finished", _copy_models)
