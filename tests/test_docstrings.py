"""Every parameter of every estimator is described once, and `help()` shows it with its default."""

import inspect
import pkgutil
import re
from importlib import import_module

import pytest

import transferable
from transferable import all_estimators
from transferable.base import complete_docstring

MODULES = [
    module.name
    for module in pkgutil.walk_packages(transferable.__path__, "transferable.")
    if not module.name.endswith("__main__")
]


class Base:
    """A base.

    Parameters
    ----------
    weight : float, default=1
        What it counts.

        In a second paragraph.
    kernel : {"rbf", "linear"}, default="rbf"
        Between rows.

    Notes
    -----
    Not a parameter : int
    """

    def __init__(self, weight=1.0, kernel="rbf"):
        pass


def test_what_a_base_describes_is_added_with_the_class_s_default():
    class Method(Base):
        """A method.

        Parameters
        ----------
        rounds : int, default=3
            How many.

        Attributes
        ----------
        found_ : int
            What it found.
        """

        def __init__(self, kernel="linear", rounds=3, weight=0.5):
            pass

    complete_docstring(Method)
    assert inspect.getdoc(Method) == (
        "A method.\n\nParameters\n----------\n"
        'kernel : {"rbf", "linear"}, default="linear"\n    Between rows.\n'
        "rounds : int, default=3\n    How many.\n"
        "weight : float, default=0.5\n    What it counts.\n\n    In a second paragraph.\n\n"
        "Attributes\n----------\nfound_ : int\n    What it found."
    )


def test_a_section_is_made_where_there_is_none():
    class Method(Base):
        """A method."""

        def __init__(self, weight=2.0):
            pass

    complete_docstring(Method)
    assert "default=2\n    What it counts." in inspect.getdoc(Method)
    assert "kernel" not in inspect.getdoc(Method)


def test_a_constructor_may_be_inherited():
    class Method(Base):
        """A method."""

    complete_docstring(Method)
    assert "weight : float, default=1\n" in inspect.getdoc(Method)


def test_a_complete_docstring_is_left_alone():
    before = Base.__doc__
    complete_docstring(Base)
    assert Base.__doc__ is before


def test_fitted_attributes_that_only_bases_describe_are_added():
    class Fitted(Base):
        """Fitted.

        Attributes
        ----------
        takes : bool
            Not fitted.
        found_ : int
            What it found.
        """

    class Method(Fitted):
        """A method.

        Notes
        -----
        None.
        """

    class Own(Fitted):
        """A method.

        Attributes
        ----------
        other_ : int
            Its own.
        """

    for cls in (Method, Own):
        complete_docstring(cls)
    assert inspect.getdoc(Method).endswith(
        "Attributes\n----------\nfound_ : int\n    What it found.\n\nNotes\n-----\nNone."
    )
    assert "takes" not in inspect.getdoc(Method) + inspect.getdoc(Own)
    assert inspect.getdoc(Own).endswith(
        "Attributes\n----------\nfound_ : int\n    What it found.\nother_ : int\n    Its own."
    )


def deep_estimators():
    try:
        import transferable.deep as deep
    except ImportError:  # an extra
        return []
    others = ("Batch", "Training")  # made by the library, not by its users
    return [(name, getattr(deep, name)) for name in deep.__all__ if name not in others]


@pytest.mark.parametrize(("name", "estimator"), [*all_estimators(), *deep_estimators()])
def test_every_parameter_is_described_with_its_default(name, estimator):
    described = inspect.getdoc(estimator).split("Attributes\n---")[0]
    for parameter in inspect.signature(estimator).parameters.values():
        entry = re.search(rf"^(?:[\w, ]+, )?{parameter.name}\b[\w, ]*( : .*)?$", described, re.M)
        assert entry, f"describe {parameter.name} of {name} in {inspect.getsourcefile(estimator)}"
        default = re.search(r"default=(.*)", entry[0])
        if default and isinstance(parameter.default, bool | int | float | str):
            assert str(parameter.default).removesuffix(".0") in {
                default[1].strip('"'),
                default[1].removesuffix(".0").replace(",", ""),
            }, (name, entry[0])


@pytest.mark.parametrize(("name", "estimator"), all_estimators())
def test_every_parameter_has_a_range(name, estimator):
    without = set(estimator().get_params(deep=False)) - set(estimator._parameter_constraints)
    file = inspect.getsourcefile(estimator)
    assert not without, f"_parameter_constraints of {name} in {file} lack {sorted(without)}"


@pytest.mark.parametrize(("name", "estimator"), [*all_estimators(), *deep_estimators()])
def test_every_estimator_has_an_example(name, estimator):
    shown = inspect.getdoc(estimator).partition("Examples\n---")[2]
    assert ">>> " in shown, f"give {name} an example in {inspect.getsourcefile(estimator)}"


def public():
    """Public classes and functions of the modules that are installed, and their own methods."""
    for name in MODULES:
        try:
            module = import_module(name)
        except ImportError:  # an extra
            continue
        for title in getattr(module, "__all__", ()):
            found = getattr(module, title)
            if inspect.isclass(found) or inspect.isroutine(found):
                yield f"{name}.{title}", found
            if inspect.isclass(found):
                for method in vars(found):
                    if not method.startswith("_") and inspect.isroutine(getattr(found, method)):
                        yield f"{name}.{title}.{method}", getattr(found, method)


def test_every_public_name_has_a_docstring_or_inherits_one():
    found = dict(public())
    assert len(found) > 300
    assert not [name for name, value in found.items() if not inspect.getdoc(value)]
