"""Sphinx configuration: `make docs` builds the site from these pages and the docstrings of public names."""

import samebits
from samebits.errors import documentation_address

project = "samebits"
author = "the samebits authors"
project_copyright = "the samebits authors, Apache-2.0"
release = samebits.__version__
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_llms_txt"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}

# Headings get the anchors that GitHub gives them, so a link works in both places.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# `make docs` makes warnings errors, so a broken link or a missing reference stops the build.
nitpicky = True
# Types are links only within this site: the build needs no network.
nitpick_ignore_regex = [(r"py:.*", r".*")]

# `name` in a docstring is code, as in Markdown.
default_role = "code"

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"samebits {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_sourcelink = False
# Where error messages lead to; it is not known in a checkout.
html_baseurl = f"{documentation_address()}/" if documentation_address() else ""

# llms.txt lists the Markdown of every page, for programs that read text; the site has copies of the pages.
html_copy_source = True
llms_txt_full_file = False
llms_txt_uri_template = f"{html_baseurl}_sources/{{docname}}{{suffix}}{{sourcelink_suffix}}"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
