"""Pieces of a page. Whatever comes from a file of the user passes through :func:`text`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

__all__ = [
    "Section",
    "bar",
    "definitions",
    "number",
    "paragraph",
    "percent",
    "range_bar",
    "table",
    "text",
]

_LONGEST_TEXT = 200


class Section(NamedTuple):
    """A part of the page: its identifier, its title, its content as markup, folded or not."""

    key: str
    title: str
    content: Sequence[str]
    folded: bool = False

    def html(self) -> str:
        """The section with its heading."""
        heading = f'<h2 id="{self.key}">{text(self.title)}</h2>'
        body = "\n".join(part for part in self.content if part)
        if self.folded:
            heading, body = f"<details><summary>{heading}</summary>", f"{body}\n</details>"
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


def percent(share: float, digits: int = 0) -> str:
    """A share as per cent."""
    return f"{100 * share:.{digits}f} %"


def paragraph(content: str, kind: str = "") -> str:
    """A paragraph of markup, perhaps of a kind the style sheet knows."""
    return f'<p class="{kind}">{content}</p>' if kind else f"<p>{content}</p>"


def definitions(items: Mapping[str, Any]) -> str:
    """Names and values as a list of definitions."""
    pairs = (f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in items.items())
    return f"<dl>{''.join(pairs)}</dl>"


def bar(share: float, kind: str = "") -> str:
    """A bar as long as a share of the width there is."""
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    return f'<span class="bar {kind}" aria-hidden="true"><i style="width:{width}"></i></span>'


def range_bar(low: float, value: float, high: float) -> str:
    """A range and a value in it, on a line from 0 to 1."""
    return (
        '<span class="range" aria-hidden="true">'
        f'<i style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></i>'
        f'<b style="left:{100 * value:.1f}%"></b></span>'
    )


def table(
    caption: str,
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    names: int = 1,
    key: str = "",
    kind: str = "",
    marked: bool = False,
) -> str:
    """A table; the first columns name the rows, and what follows is aligned by what it is.

    Cells are texts, unless `marked` says that they are markup already. A column is one of numbers
    if all of its cells begin and end as numbers do.
    """
    lines = [list(map(str, row)) for row in rows]
    numeric = [
        i >= names and bool(lines) and all(_is_number(line[i]) for line in lines)
        for i in range(len(head))
    ]
    sides = [' class="n"' if n else "" for n in numeric]
    named = "".join(f' {name}="{value}"' for name, value in (("id", key), ("class", kind)) if value)
    show = (lambda cell: cell) if marked else text
    cells = "".join(f'<th scope="col"{k}>{text(h)}</th>' for h, k in zip(head, sides, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f'<th scope="row">{show(c)}</th>' for c in line[:names])
        + "".join(
            f"<td{k}>{show(c)}</td>" for c, k in zip(line[names:], sides[names:], strict=True)
        )
        + "</tr>\n"
        for line in lines
    )
    return (
        f"<table{named}><caption>{text(caption)}</caption>"
        f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    )


def _is_number(cell: str) -> bool:
    plain = cell.split("<", 1)[0].strip()
    return (
        bool(plain)
        and (plain[0].isdigit() or plain[0] in "–-+")
        and not any(c.isalpha() for c in plain)
    )
