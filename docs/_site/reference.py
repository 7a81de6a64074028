"""The reference: pages that list every public name, and what of a class is shown."""

import inspect
from importlib import import_module
from pathlib import Path

from _site.public import USED, public_modules, public_names

INDEX = """\
Reference
=========

Every public name, from its docstring; ``help()`` shows the same.

.. toctree::
   :maxdepth: 1
   :caption: To use

{used}

.. toctree::
   :maxdepth: 1
   :caption: To extend

{extended}
"""
MODULE = """\
{name}
{line}

.. automodule:: {name}
   :no-members:

.. currentmodule:: {name}

{alias}
"""
ALIAS = """\
At the top level too: {names}.

"""


def _indented(names):
    return "\n".join(f"   {name}" for name in names)


def _table(names):
    return f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{_indented(names)}\n"


def _constant(module, name):
    """A value that has no docstring: its keys, or what it is."""
    value = getattr(import_module(module), name)
    if isinstance(value, dict):
        told = "Keys: " + ", ".join(f"``{key}``" for key in value) + "."
    else:
        told = f"``{value!r}``" if isinstance(value, int | str) else f"A {type(value).__name__}."
    return f".. py:data:: {name}\n\n   {told}\n"


def _is_constant(module, name):
    value = getattr(import_module(module), name)
    return not (inspect.isclass(value) or inspect.isroutine(value))


def module_page(module):
    """The page of one module."""
    names = public_names(module)
    constants = [name for name in names if _is_constant(module, name)]
    page = MODULE.format(name=module, line="=" * len(module), alias="")
    if module == "transferable":
        rest = [name for name in import_module(module).__all__ if name not in names]
        page += ALIAS.format(names=", ".join(_home(name) for name in rest))
    documented = [name for name in names if name not in constants]
    if documented:
        page += _table(documented)
    return page + "\n" + "\n".join(_constant(module, name) for name in constants)


def _home(name):
    homes = [module for module in USED[1:] if name in import_module(module).__all__]
    return f":obj:`~{homes[0]}.{name}`"


def write_pages(app):
    """Write the reference's sources, those that changed."""
    folder = Path(app.srcdir, "reference")
    folder.mkdir(exist_ok=True)
    modules = public_modules()
    extended = [module for module in modules if module not in USED]
    pages = {module: module_page(module) for module in modules}
    pages["index"] = INDEX.format(used=_indented(USED), extended=_indented(extended))
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def skip_member(app, what, name, member, skip, options):
    """Leave out what scikit-learn documents: parameters, routing, containers of results."""
    function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
    home = getattr(function, "__module__", None) or ""
    ours = home.startswith("transferable")
    return None if ours and "_request" not in name else True


def setup(app):
    """Write pages before Sphinx looks for them."""
    app.connect("config-inited", lambda app, config: write_pages(app))
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True}
