"""Figures of examples that Displays draw without pyplot."""

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


class DisplayScraper:
    """Save the figure of each Display that a cell left behind, once."""

    def __init__(self):
        self._last = None

    def __repr__(self):
        return "DisplayScraper()"

    def __call__(self, block, block_vars, gallery_conf):
        """Save and show the figure of ``display``, if it is a new one."""
        figure = getattr(block_vars["example_globals"].get("display"), "figure_", None)
        if not isinstance(figure, Figure) or figure is self._last:
            return ""
        self._last = figure
        path = str(next(block_vars["image_path_iterator"]))
        figure.savefig(path, dpi=110)
        titles = [ax.get_title(loc) for ax in figure.axes for loc in ("left", "center")]
        shown = ", ".join(filter(None, titles))
        kind = type(block_vars["example_globals"]["display"]).__name__
        return figure_rst([path], gallery_conf["src_dir"], fig_titles=f"{kind}: {shown}")
