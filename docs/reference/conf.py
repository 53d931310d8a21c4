"""Sphinx: the reference, from the docstrings, which are Markdown with formulas."""

from importlib import metadata

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

import npax

project, author, release = "npax", "the npax authors", metadata.version("npax")
extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax"]
html_theme = "alabaster"
html_theme_options = {"description": npax.__doc__, "fixed_sidebar": True, "page_width": "75em"}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_show_sourcelink = False
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100

KEY = "Key[Array, ''] | UInt32[Array, '2'] | UInt32[Array, '4']"
"""How `jaxtyping.PRNGKeyArray` prints."""


def _formula(formula, options):
    left, right = ("\\[", "\\]") if options["display_mode"] else ("\\(", "\\)")
    return left + formula.replace("&", "&amp;").replace("<", "&lt;") + right


MARKDOWN = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, renderer=_formula, double_inline=True)


def _from_markdown(app, what, name, of, options, lines):
    html = MARKDOWN.render("\n".join(lines))
    lines[:] = [".. raw:: html", "", *("   " + line for line in html.splitlines()), ""]


def _short(app, what, name, of, options, signature, returned):
    """Names that one would write in code."""

    def short(text):
        return text and text.replace("~jaxlib._jax.", "").replace("jaxlib._jax.", "").replace(KEY, "PRNGKeyArray")

    return short(signature), short(returned)


def setup(app):
    app.set_html_assets_policy("always")  # formulas in HTML of our own need MathJax too
    app.connect("autodoc-process-docstring", _from_markdown)
    app.connect("autodoc-process-signature", _short)
