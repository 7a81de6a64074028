"""The reference: a page for each public module and for each estimator, made from docstrings."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import transferable
from _site.public import MODULES, has_page, public

INDEX = """\
API
===

Every public name, with its docstring. Estimators have a page each; functions and other classes
stand on the page of their module. The names that ``transferable`` itself exports: {top}.

.. list-table::
   :widths: 30 70

{rows}

.. toctree::
   :hidden:

{modules}

.. currentmodule:: transferable

.. autofunction:: all_estimators

.. py:data:: __version__

   Version of the library: ``{version}``.
"""
MODULE = """\
{name}
{line}

.. automodule:: {name}
   :no-members:

.. currentmodule:: {name}

"""
ESTIMATOR = """\
{name}
{line}

.. currentmodule:: {module}

.. autoclass:: {name}
   :members:

{methods}

.. minigallery:: {module}.{name}
   :add-heading: Examples with {name}
   :heading-level: -
"""
# Parameters that are shown first, in this order; the others follow as the docstring has them.
FIRST = (
    *("network", "epochs", "weight", "learning_rate", "batch_size", "n_components", "effort"),
    *("caution", "class_shares", "alignment", "manifold", "confusion", "manifold_dim", "balance"),
    *("second_order", "discrimination", "weight_share", "regularization", "kernel", "gamma"),
)
COMPUTATION = {
    *("n_landmarks", "max_memory", "device", "random_state", "verbose", "n_jobs", "max_seconds"),
    *("num_workers", "precision", "deterministic", "checkpoint", "callback", "client", "cache"),
}
FUNCTION, CLASS, CONSTANT = range(3)  # in this order on the page of a module
SHOWN = 5  # parameters before the rest is folded; up to two more are shown as well


def _indented(names):
    return "\n".join(f"   {name}" for name in names)


def _summary(module):
    """Return a row of the table of modules: a link, and the first line of the docstring."""
    first = " ".join(inspect.getdoc(import_module(module)).split("\n\n")[0].split())
    return f"   * - :doc:`{module}`\n     - {first}"


def _constant(name, value):
    """Document a value, which has no docstring: its keys, or what it is."""
    if isinstance(value, dict):
        text = "Keys: " + ", ".join(f"``{key}``" for key in value) + "."
    else:
        text = f"``{value!r}``" if isinstance(value, int | str) else f"A {type(value).__name__}."
    return f".. py:data:: {name}\n\n   {text}\n"


def _kind(value):
    """Return the place of an object among functions, classes and constants."""
    if inspect.isroutine(value):
        return FUNCTION
    return CLASS if inspect.isclass(value) else CONSTANT


def _entry(name, value):
    """Document one name on the page of its module."""
    if _kind(value) == CONSTANT:
        return _constant(name, value)
    return (
        f".. autoclass:: {name}\n   :members:\n"
        if _kind(value) == CLASS
        else f".. autofunction:: {name}\n"
    )


def module_page(module):
    """Return the page of one module: a table of its names, then those without a page."""
    names = dict(sorted(public(module).items(), key=lambda item: _kind(item[1])))
    paged = [name for name, value in names.items() if has_page(module, value)]
    page = MODULE.format(name=module, line="=" * len(module))
    documented = [name for name, value in names.items() if _kind(value) != CONSTANT]
    page += f".. autosummary::\n   :nosignatures:\n\n{_indented(documented)}\n\n"
    if paged:
        pages = [f"{name} <{module}.{name}>" for name in paged]
        page += f".. toctree::\n   :hidden:\n\n{_indented(pages)}\n\n"
    return page + "\n".join(_entry(n, value) for n, value in names.items() if n not in paged)


def _methods(cls):
    """List the methods that a class inherits; those of the public bases are documented there."""
    bases = [base for base in cls.__mro__[1:] if base.__module__.startswith("transferable")]
    names = {
        name
        for base in bases
        for name, member in vars(base).items()
        if not name.startswith("_") and inspect.isroutine(member) and name not in vars(cls)
    }
    rows, rest = [], []
    for name in sorted(names):
        homes = [b for b in bases if b in public("transferable.base").values() and name in vars(b)]
        if not homes:
            rest.append(f".. automethod:: {cls.__name__}.{name}\n")
            continue
        summary = " ".join(inspect.getdoc(getattr(cls, name)).split("\n\n")[0].split())
        link = f":meth:`{name} <transferable.base.{homes[0].__name__}.{name}>`"
        rows.append(f"   * - {link}\n     - {summary}")
    if rows:
        rest.append(".. rubric:: Inherited methods\n\n.. list-table::\n   :widths: 20 80\n")
    return "\n".join([*rest, *rows])


def estimator_page(module, name):
    """Return the page of one estimator."""
    cls = getattr(import_module(module), name)
    return ESTIMATOR.format(name=name, line="=" * len(name), module=module, methods=_methods(cls))


def _top():
    """Return links to the names that the package itself exports."""
    homes = {name: module for module in reversed(MODULES) for name in public(module)}
    return ", ".join(f":obj:`~{homes[n]}.{n}`" for n in transferable.__all__ if n in homes)


def write_pages(app):
    """Write the sources of the reference, those that changed."""
    folder = Path(app.srcdir, "reference")
    folder.mkdir(exist_ok=True)
    pages = {module: module_page(module) for module in MODULES}
    for module in MODULES:
        for name, value in public(module).items():
            if has_page(module, value):
                pages[f"{module}.{name}"] = estimator_page(module, name)
    pages["index"] = INDEX.format(
        rows="\n".join(map(_summary, MODULES)),
        modules=_indented(
            f"{module.removeprefix('transferable.')} <{module}>" for module in MODULES
        ),
        top=_top(),
        version=transferable.__version__,
    )
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


def _ranked(names):
    """Return names with those that matter most first."""
    order = {name: at for at, name in enumerate(FIRST)}
    usual = [name for name in names if name not in COMPUTATION]
    return sorted(usual, key=lambda name: order.get(name, len(FIRST)))


def fold_parameters(app, what, name, obj, options, lines):
    """Show the parameters that matter most, and fold the others."""
    if what != "class" or ":Parameters:" not in lines:
        return
    start = lines.index(":Parameters:")
    end = start + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith("    ")):
        end += 1
    entries, current = {}, None
    for line in lines[start + 1 : end]:
        if found := re.match(r"    \*\*(\S+?)\*\*", line):
            current = entries.setdefault(found[1], [])
        if current is not None:
            current.append(line)
    if obj.__module__.startswith("transferable.dask"):
        lines[start:end] = _as_in_memory(obj.__name__, entries)
    elif len(entries) > SHOWN + 2:
        lines[start:end] = _grouped(entries)


def _grouped(entries):
    """Return the parameters that matter most, then the others in boxes that open."""
    ranked = _ranked(entries)
    groups = {
        "Further parameters": [name for name in entries if name in ranked[SHOWN:]],
        "Computation": [name for name in entries if name in COMPUTATION],
    }
    text = [":Main parameters:", ""]
    text += [line for name in ranked[:SHOWN] for line in entries[name]]
    for title, group in groups.items():
        if group:
            text += ["", f".. dropdown:: {title}: {', '.join(group)}", ""]
            text += [line for name in group for line in entries[name]]
    return [*text, ""]


def _as_in_memory(name, entries):
    """Return the parameters whose text is not that of the estimator for rows in memory."""
    home = next(module for module in MODULES if name in public(module))
    known = "".join(inspect.getdoc(public(home)[name]).split())
    own = [lines for lines in entries.values() if "".join("".join(lines[1:]).split()) not in known]
    other = f"Other parameters: those of :class:`~{home}.{name}`."
    return [":Parameters:", "", *(line for lines in own for line in lines), "", other, ""]


def short_signature(app, what, name, obj, options, signature, return_annotation):
    """Name the parameters that matter most in the signature of a class that has many."""
    if what != "class":
        return None
    try:
        parameters = inspect.signature(obj).parameters
    except (TypeError, ValueError):
        return None
    if len(parameters) <= SHOWN + 2:
        return None
    shown = [
        str(parameters[name].replace(annotation=inspect.Parameter.empty))
        for name in _ranked(parameters)[:SHOWN]
    ]
    return f"({', '.join(shown)}, ...)", return_annotation


def setup(app):
    """Write pages before Sphinx looks for them; shape docstrings once numpydoc has read them."""
    app.connect("config-inited", lambda app, config: write_pages(app))
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", fold_parameters, priority=600)
    app.connect("autodoc-process-signature", short_signature, priority=600)
    return {"parallel_read_safe": True}
