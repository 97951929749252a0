"""Sphinx's configuration of the site. `make site` copies this folder beside the pages it builds."""

project = "Data-parallel training"
author = "the workshop's contributors"
copyright = "free to copy: MIT No Attribution"
html_title = "Data-parallel training"

extensions = ["myst_nb"]
exclude_patterns = ["_build", "locale"]
nitpicky = False
smartquotes = False  # the field guide's commands have options such as --max-restarts

# Nothing is executed here: the pages show what `make run` recorded.
nb_execution_mode = "off"
nb_merge_streams = True
nb_mime_priority_overrides = [
    ("html", "image/svg+xml", 5),
    ("html", "application/vnd.jupyter.widget-view+json", None),
]
# Nothing comes from another host: no require.js, no widgets' renderer.
nb_ipywidgets_js: dict[str, dict] = {}
myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 4
# The lessons write prices: "$5 to $6" is no formula.
myst_update_mathjax = False
suppress_warnings = ["mystnb.mime_priority", "myst.header"]

html_theme = "sphinx_book_theme"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = True
html_sourcelink_suffix = ""
html_last_updated_fmt = "%Y-%m-%d"
# From a folder opened in a browser a page may not read the others: results show titles alone.
html_show_search_summary = False
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "navbar-logo.html",
        "icon-links.html",
        "search-button-field.html",
        "languages.html",
        "sbt-sidebar-nav.html",
    ]
}
html_theme_options = {
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
    "show_navbar_depth": 1,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

language = "en"
locale_dirs = ["locale"]
gettext_compact = False
gettext_uuid = False
