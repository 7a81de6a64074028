"""The documentation site: `make docs` builds it into build/docs, with no network."""

import sys
import warnings
from pathlib import Path

import matplotlib as mpl
from sphinx_gallery.sorting import FileNameSortKey

import transferable

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]  # the latter knows what methods take

from _site.figures import DisplayScraper  # noqa: E402

project = "transferable"
author = "The transferable developers"
copyright = f"2026, {author}"
version = release = transferable.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "_site.reference",
    "_site.repository",
    "_site.families",
    "_site.records",
]
templates_path = ["_templates"]
exclude_patterns = ["gallery", "checks", "_site", "**/README.md"]
suppress_warnings = ["config.cache", "myst.header"]  # rendered tables bring their own headings
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = False
autodoc_typehints = "none"  # docstrings have the types
autodoc_member_order = "groupwise"
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # copied code runs
copybutton_prompt_is_regexp = True

mpl.rcParams.update({"figure.dpi": 110, "savefig.dpi": 110, "font.size": 10})
warnings.filterwarnings("error", module="transferable")
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": "/plot_",
    "capture_repr": ("_repr_html_",),  # tables, not what a call at the end of a cell returns
    "ignore_repr_types": r"transferable\.(?!trust)|sklearn",
    "image_scrapers": ("matplotlib", DisplayScraper()),
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": True,
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("transferable",),
    "reference_url": {"transferable": None},
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
    "remove_config_comments": True,
    "write_computation_times": False,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = f"transferable {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_show_search_summary = False  # it would be fetched, which pages in files may not
html_theme_options = {
    "logo": {"text": "transferable"},
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
