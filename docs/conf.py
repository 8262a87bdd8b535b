"""Sphinx's settings of the site; `python docs/build.py` builds it."""

import importlib
import inspect
import os
import re
from pathlib import Path

import sklearn_subqn
import sklearn_subqn.losses

# The base of losses has another name within the package, as if this one were an alias.
sklearn_subqn.losses.Loss.__name__ = "Loss"

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "https://github.com/sklearn-subqn/sklearn-subqn"

project = "sklearn-subqn"
author = "the sklearn-subqn developers"
project_copyright = f"2026, {author}"
release = version = sklearn_subqn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/**/*.md5", "gallery/**/*.py"]
exclude_patterns += ["papers/*.md"]  # parts of the page papers.md
suppress_warnings = ["config.cache"]  # the order of the gallery is a function

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Docstrings
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# Pages
smartquotes = False  # quotes are those of the code
toc_object_entries_show_parents = "hide"
html_theme = "pydata_sphinx_theme"
html_title = "sklearn-subqn"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_theme_options = {
    "github_url": SOURCE,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}
html_sidebars = {"index": [], "changes": [], "faq": [], "results": []}
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Gallery
os.environ["MPLBACKEND"] = "Agg"
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("sklearn_subqn",),
    "download_all_examples": False,
    "plot_gallery": bool(os.environ.get("SUBQN_RUN_GALLERY", "yes")),
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
}


def linkcode_resolve(domain, info):
    """Return the address of the source of a name of the API."""
    if domain != "py" or not info["module"]:
        return None
    found = importlib.import_module(info["module"])
    try:
        for part in info["fullname"].split("."):
            found = getattr(found, part)
        found = inspect.unwrap(found.fget if isinstance(found, property) else found)
        path = Path(inspect.getsourcefile(found)).resolve()
        lines, first = inspect.getsourcelines(found)
    except (AttributeError, OSError, TypeError):
        return None
    package = Path(sklearn_subqn.__file__).resolve().parent
    if not path.is_relative_to(package):
        return None
    branch = "main" if "dev" in release else f"v{release}"
    file = path.relative_to(package.parent).as_posix()
    return f"{SOURCE}/blob/{branch}/{file}#L{first}-L{first + len(lines) - 1}"


def link_to_pages(app, what, name, obj, options, lines):
    """Let references lead to pages of this site, and to scikit-learn's."""
    for i, line in enumerate(lines):
        line = line.replace("`docs/methods.md`", "`Methods <../../methods.html>`__")
        line = re.sub(
            r":ref:`([^`<]*) <metadata_routing>`",
            r"`\1 <https://scikit-learn.org/stable/metadata_routing.html>`__",
            line,
        )
        lines[i] = re.sub(r":(?:term|ref):`([^`<]*?)(?: <[^`>]*>)?`", r"\1", line)


def escape_names(app, what, name, obj, options, lines):
    """Names that end with an underscore are no references, as in shapes."""
    for i, line in enumerate(lines):
        lines[i] = re.sub(r"(?<=\()(\w+)_(?=[,)])", r"\1\\_", line)


def own_parameters(app, what, name, obj, options, signature, returned):
    """Show the parameters of ``__init__`` where ``__new__`` takes any."""
    if what == "class" and "__init__" in vars(obj) and hasattr(obj, "get_params"):
        of_init = inspect.signature(obj.__init__)
        _, *parameters = of_init.parameters.values()
        plain = [each.replace(annotation=each.empty) for each in parameters]
        return str(inspect.Signature(plain)), returned
    return None


def setup(app):
    """Connect what is written above."""
    app.connect("autodoc-process-signature", own_parameters)
    app.connect("autodoc-process-docstring", escape_names, priority=600)
    app.connect("autodoc-process-docstring", link_to_pages, priority=400)
