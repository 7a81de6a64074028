"""Pieces of a page. Whatever comes from a file of the user passes through :func:`text`."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure

from transferable.plots._style import GRID, INK

__all__ = ["Section", "definitions", "figure", "number", "paragraph", "table", "text"]

_LONGEST_TEXT = 200
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


class Section(NamedTuple):
    """A part of the page: its identifier, its title, and its content as markup."""

    key: str
    title: str
    content: Sequence[str]

    def html(self) -> str:
        """The section with its heading."""
        heading = f'<h2 id="{self.key}">{text(self.title)}</h2>'
        body = "\n".join(part for part in self.content if part)
        return f'<section aria-labelledby="{self.key}">\n{heading}\n{body}\n</section>'


def text(value: Any, limit: int | None = _LONGEST_TEXT) -> str:
    """Any value as text of the page: nothing in it is markup, nothing in it is invisible."""
    shown = "".join(c if c.isprintable() else " " for c in str(value))
    if limit is not None and len(shown) > limit:
        shown = shown[: limit - 1] + "…"
    return escape(shown)


def number(value: float, digits: int = 3) -> str:
    """A number for a table; a dash where there is none."""
    return "–" if value != value else f"{value:,.{digits}f}"


def paragraph(content: str, kind: str = "") -> str:
    """A paragraph of markup, perhaps of a kind the style sheet knows."""
    return f'<p class="{kind}">{content}</p>' if kind else f"<p>{content}</p>"


def definitions(items: Mapping[str, Any]) -> str:
    """Names and values as a list of definitions."""
    pairs = (f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in items.items())
    return f"<dl>{''.join(pairs)}</dl>"


def table(
    caption: str, head: Sequence[Any], rows: Iterable[Sequence[Any]], *, names: int = 1
) -> str:
    """A table in a region that the keyboard can scroll; the first columns name the rows."""
    cells = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    body = "".join(f"<tr>{_row(row, names)}</tr>\n" for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(caption)}"><table>'
        f"<caption>{text(caption)}</caption><thead><tr>{cells}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[Any], names: int) -> str:
    head = (f'<th scope="row">{text(value)}</th>' for value in row[:names])
    return "".join((*head, *(f"<td>{text(value)}</td>" for value in row[names:])))


def figure(key: str, drawing: Figure, caption: str, description: str) -> str:
    """A drawing inside the page, in the page's ink, with a description for those who do not see."""
    svg = _inline_svg(key, drawing)
    opening = f'<svg role="img" aria-labelledby="{key}-description"'
    svg = svg.replace("<svg", opening, 1)
    title = f'<title id="{key}-description">{text(description)}</title>'
    svg = re.sub(r"(<svg[^>]*>)", lambda match: match[1] + title, svg, count=1)
    return f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>"


def _inline_svg(key: str, drawing: Figure) -> str:
    """SVG whose ink is that of the page, and whose identifiers no other drawing has."""
    buffer = io.StringIO()
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": key}
    with rc_context(settings), warnings.catch_warnings():
        # The page's reader has fonts for letters that ours lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawing.savefig(buffer, format="svg", dpi=160, transparent=True, metadata=_NO_METADATA)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{key}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
    return svg.replace(INK, "currentColor").replace(GRID, "var(--line)")
