"""Parameters that several methods share are described once, by the base that they come from.

A class tells of what is its own; the rest of its ``Parameters`` is filled in from its bases when a
class is made, so that ``help()`` and the reference show all of them, with the defaults it has.
Transformers that describe no ``Attributes`` take those of their bases as well.
"""

from __future__ import annotations

import inspect
import re
from textwrap import indent
from typing import Any

__all__ = ["complete_attributes", "complete_parameters"]

_SECTION, _ATTRIBUTES = (
    re.compile(rf"^{name}\n-{{3,}}\n(.*?)(?=^\S[^\n]*\n-{{3,}}$|\Z)", re.M | re.S)
    for name in ("Parameters", "Attributes")
)
_HEADING = re.compile(r"^\S[^\n]*\n-{3,}$", re.M)
_ENTRY = re.compile(r"^(\S[^\n]*)((?:\n(?:[ \t][^\n]*|(?=\n)))*)", re.M)


def complete_parameters(cls: type[Any]) -> None:
    """Add to a class's docstring the parameters of its constructor that only its bases describe."""
    doc = cls.__dict__.get("__doc__")
    if doc is None:
        return
    text = inspect.cleandoc(doc)
    own = _entries(text)
    inherited: dict[str, str] = {}
    for base in cls.__mro__[1:]:
        for name, entry in _entries(inspect.cleandoc(base.__doc__ or "")).items():
            inherited.setdefault(name, entry)
    parameters = inspect.signature(cls.__init__).parameters
    missing = [name for name in parameters if name not in own and name in inherited]
    if not missing:
        return
    known = own | {name: _with_default(inherited[name], parameters[name]) for name in missing}
    # An entry that tells of several parameters stands where the first of them does.
    entries = dict.fromkeys(known[name] for name in (*parameters, *own) if name in known)
    cls.__doc__ = "\n" + indent(_replaced(text, "\n".join(entries)), "    ") + "\n    "


def complete_attributes(cls: type[Any]) -> None:
    """Add to a docstring without attributes the fitted ones that the class's bases describe."""
    text = inspect.cleandoc(cls.__doc__ or "")
    parameters = _SECTION.search(text)
    if parameters is None or _ATTRIBUTES.search(text):
        return
    entries: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        entries |= _entries(inspect.cleandoc(base.__doc__ or ""), _ATTRIBUTES)
    fitted = "\n".join(dict.fromkeys(e for name, e in entries.items() if name.endswith("_")))
    if fitted:
        section = f"\n\nAttributes\n----------\n{fitted}\n\n"
        text = text[: parameters.end()].rstrip() + section + text[parameters.end() :]
        cls.__doc__ = "\n" + indent(text.rstrip(), "    ") + "\n    "


def _entries(text: str, heading: re.Pattern[str] = _SECTION) -> dict[str, str]:
    """Return the entry of each parameter that a docstring describes, or of each attribute."""
    section = heading.search(text)
    if section is None:
        return {}
    found = {}
    for entry in _ENTRY.finditer(section[1].rstrip()):
        for name in entry[1].split(" : ")[0].split(", "):
            found[name] = entry[0].rstrip()
    return found


def _with_default(entry: str, parameter: inspect.Parameter) -> str:
    """An entry of a base, with the default that the class has."""
    head, newline, body = entry.partition("\n")
    value = parameter.default
    shown = f"{value:g}" if isinstance(value, float) else repr(value).replace("'", '"')
    said, told, default = head.partition("default=")
    if default.removesuffix(".0") != shown:
        head = said + told + (shown if told else "")
    return head + newline + body


def _replaced(text: str, entries: str) -> str:
    """The docstring with other parameters, in a new section if it had none."""
    section = f"Parameters\n----------\n{entries}\n\n"
    if _SECTION.search(text):
        return _SECTION.sub(lambda _: section, text, count=1).rstrip()
    following = _HEADING.search(text)
    place = following.start() if following else len(text)
    return (text[:place].rstrip() + "\n\n" + section + text[place:]).rstrip()
