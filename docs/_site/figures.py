"""Pictures of examples: Displays draw figures of their own, which pyplot does not know."""

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
        return figure_rst([path], gallery_conf["src_dir"])
