"""How long the ways through the package are that people take, and how large its classes.

Ways are counted in functions, files and calls of the package that a call passes through, wherever
code is moved: into lambdas, threads, or another package beside this one. Classes are counted by
what their objects have: bases, and owners of functions that are borrowed; methods; private
attributes after a fit.
"""

import inspect
import sys
import threading
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import transferable
from transferable.transformers import JDA, PerDomainScaler

# Later steps only lower these numbers.
PATHS = {  # named functions, files and lambdas on the second call
    "TFDF().adapt": (99, 15, 0),
    "TFDF, nothing automatic": (80, 15, 0),
    "PerDomainScaler().adapt": (21, 5, 0),
    "predict": (17, 5, 0),
    "JDA().adapt": (65, 10, 0),
}
CALLS = {"transferable adapt --model --report": 14_000}  # of named functions
ENCODED = 1  # times that one command encodes the target
ASKED = 10  # times that it asks the members: in the fit, and when the file is tried
ASKING = {"Consensus.of", "Consensus.label", "Consensus.source_only"}
CLASSES = 6  # of our own that an estimator is made of, itself included
OVER_DASK = 8
METHODS = 16  # of one class, in its own body
FITTED = 4  # private attributes that a fit sets
PARAMETERS = 22  # of TFDF
GRID = {"alignment": [1.0, 10.0]}
MODULES = 17  # directly in the package
PACKAGES = 1  # in src
FILES = 140  # of the package, in Python, TOML and templates
LINES = 35_500

PACKAGE = Path(transferable.__file__).parent
SOURCE = PACKAGE.parent if PACKAGE.parent.name == "src" else PACKAGE
EXTRAS = {"deep": "torch", "images": "PIL", "dask": "distributed"}
REPORTED = "transferable adapt --model --report"


def walk(call):
    """Functions and lambdas that a call enters, by file and name; comprehensions are left out.

    Python versions differ in which of these have frames.
    """
    entered, root = Counter(), f"{SOURCE}/"

    def watch(frame, event, _):
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(root):
            name = code.co_qualname
            if code.co_name == "<lambda>":
                name += f", line {code.co_firstlineno}"
            if code.co_name == "<lambda>" or not code.co_name.startswith("<"):
                entered[code.co_filename.removeprefix(root), name] += 1

    everywhere = getattr(threading, "setprofile_all_threads", threading.setprofile)
    before = sys.getprofile()
    everywhere(watch)  # threads, of which Python 3.11 watches those to come only
    sys.setprofile(watch)
    try:
        call()
    finally:
        everywhere(None)
        sys.setprofile(before)
    named = {key: count for key, count in entered.items() if "<lambda>, line" not in key[1]}
    return {
        "functions": sorted(named),
        "files": sorted({file for file, _ in entered}),
        "lambdas": sorted(entered.keys() - named.keys()),
    }, named


def check(title, entered, most):
    """Fail with the list of what was entered if it is more than allowed."""
    counts = tuple(len(names) for names in entered.values())
    if any(count > allowed for count, allowed in zip(counts, most, strict=True)):
        listed = "\n".join(f"  {file}  {name}" for file, name in entered["functions"])
        lambdas = "\n".join(f"  {file}  {name}" for file, name in entered["lambdas"])
        pytest.fail(
            f"{title}: {counts} functions, files and lambdas, at most {most}\n{listed}\n{lambdas}"
        )


def toy(noise=1.0, n_target=40):
    """40 source rows of three classes and target rows.

    With noise=3, no member of AutoAdapter equals another and is left out.
    """
    rng = np.random.default_rng(0)
    means = rng.normal(size=(3, 10)) * 2
    ys, yt = rng.integers(0, 3, 40), rng.integers(0, 3, n_target)
    first, second = noise * rng.normal(size=(40, 10)), noise * rng.normal(size=(n_target, 10))
    return means[ys] + first, ys, means[yt] + second + 0.5


@pytest.fixture(scope="module")
def calls():
    """The calls that are watched."""
    task = toy()
    off = transferable.TFDF(class_shares="source", manifold=1.0, manifold_dim=5, balance=0.5)
    fitted = transferable.TFDF().adapt(*task)
    return {
        "TFDF().adapt": lambda: transferable.TFDF().adapt(*task),
        "TFDF, nothing automatic": lambda: off.adapt(*task),
        "PerDomainScaler().adapt": lambda: PerDomainScaler().adapt(*task),
        "predict": lambda: fitted.predict(task[2]),
        "JDA().adapt": lambda: JDA().adapt(*task),
    }


@pytest.mark.parametrize(("title", "threads"), [*((t, 1) for t in PATHS), ("TFDF().adapt", 2)])
def test_a_call_passes_through_few_functions(title, threads, calls):
    with threadpool_limits(threads):
        calls[title]()  # imports and caches
        entered, named = walk(calls[title])
    check(title, entered, PATHS[title])
    assert sum(named.values()) <= CALLS.get(title, 10_000), Counter(named).most_common(20)


def public():
    """Public estimators, by module and name."""
    found = {}
    for path in sorted(PACKAGE.glob("[a-z]*/__init__.py")):
        home = path.parent.name
        if home in EXTRAS and find_spec(EXTRAS[home]) is None:
            continue
        module = import_module(f"transferable.{home}")
        for name in getattr(module, "__all__", ()):
            kind = getattr(module, name)
            if inspect.isclass(kind) and hasattr(kind, "fit"):
                found[f"{home}.{name}"] = kind
    return found


ESTIMATORS = public()
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def functions(member):
    """Functions of the source that a value in the body of a class consists of."""
    names = ("fget", "fset", "fdel", "__func__", "func", "fn")
    parts = [getattr(member, name, None) for name in names] + [member]
    found = [inspect.unwrap(part) for part in parts if callable(part)]
    here = f"{SOURCE}/"
    return [f for f in found if inspect.isfunction(f) and f.__code__.co_filename.startswith(here)]


def methods(kind):
    """Names of the methods and properties in the body of a class."""
    return sorted(name for name, member in vars(kind).items() if functions(member))


def own_classes(kind):
    """Names of the classes of the source that a class is made of, itself and lenders included."""
    own = set()
    for base in kind.__mro__:
        file = getattr(sys.modules.get(base.__module__), "__file__", None) or ""
        if methods(base) or file.startswith(f"{SOURCE}/"):
            own.add((base.__module__, base.__qualname__))
        for part in (part for member in vars(base).values() for part in functions(member)):
            owner = part.__qualname__.rpartition(".")[0]
            if owner and not owner.endswith("<locals>"):
                own.add((part.__module__, owner))
    return sorted(own)


@every_estimator
def test_an_estimator_is_of_few_classes_and_these_have_few_methods(name):
    kind, own = ESTIMATORS[name], own_classes(ESTIMATORS[name])
    assert len(own) <= (OVER_DASK if name.startswith("dask.") else CLASSES), own
    for base in kind.__mro__:
        if (base.__module__, base.__qualname__) in own:
            has = methods(base)
            assert len(has) <= METHODS, (base, has)


def pictures(folder, rows, labels):
    """Files of one pixel for each row, in folders of their labels."""
    from PIL import Image

    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        file = folder / str(label) / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((20 * row[:3] + 120).clip(0, 255).astype(np.uint8)[None, None]).save(file)
    return folder


def mean_colours(images):
    """Embed pictures by their mean colours."""
    return [np.asarray(image).mean(axis=(0, 1)) for image in images]


@every_estimator
@pytest.mark.filterwarnings("ignore:.*reduced to 10:UserWarning")
def test_a_fit_sets_few_private_attributes(name, tmp_path):
    kind, (Xs, ys, Xt) = ESTIMATORS[name], toy()
    given = Xs, ys, Xt
    if name.startswith("dask."):
        from dask.array import from_array

        given = [from_array(rows, chunks=(20, *rows.shape[1:])) for rows in given]
    model = kind(transferable.TFDFV(), GRID) if name.endswith("LabelFreeSearch") else kind()
    if name.startswith("images."):
        given = pictures(tmp_path / "s", Xs, ys), None, pictures(tmp_path / "t", Xt, ys)
        model.set_params(model=mean_colours, cache=None)
    if hasattr(model, "epochs"):
        model.set_params(epochs=1)
    before = set(vars(model))
    fitted = vars(model.adapt(*given)).keys() - before
    private = sorted(attribute for attribute in fitted if attribute.startswith("_"))
    assert len(private) <= FITTED, private


def test_few_parameters_and_modules():
    parameters = transferable.TFDF().get_params(deep=False)
    assert len(parameters) <= PARAMETERS, sorted(parameters)
    modules = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(modules) <= MODULES, modules
    if SOURCE != PACKAGE:
        packages = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}
        assert len(packages) <= PACKAGES, packages


def test_the_package_is_small():
    """Its own text in Python, schemas, templates: not the folder that links to the paper."""
    kinds = {".py", ".toml", ".html", ".js", ".css", ".j2", ".jinja", ".json"}
    counted = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8").count("\n")
        for path in PACKAGE.rglob("*")
        if path.suffix in kinds
    }
    assert len(counted) <= FILES, sorted(counted)
    assert sum(counted.values()) <= LINES, Counter(counted).most_common(20)


def plant(file, text):
    """What `text` defines, as if it were in a file of the source."""
    defined = {"threading": threading, "__name__": "transferable.planted"}
    exec(compile(text, str(SOURCE / file), "exec"), defined)  # noqa: S102
    return defined


def test_what_is_planted_is_found():
    here = f"{PACKAGE.relative_to(SOURCE)}/planted.py"
    inner = plant("elsewhere.py", "def beside(): pass")["beside"]
    text = "def named(call):\n (lambda: call())()\n t = threading.Thread(target=in_thread)\n"
    text += " t.start()\n t.join()\n return [i for i in range(2)]\ndef in_thread(): pass"
    named = plant(here, text)["named"]
    found, calls = walk(lambda: named(inner))
    assert found == {
        "functions": [("elsewhere.py", "beside"), (here, "in_thread"), (here, "named")],
        "files": ["elsewhere.py", here],
        "lambdas": [(here, "named.<locals>.<lambda>, line 2")],
    }
    assert sum(calls.values()) == 3
    check("planted", found, (3, 2, 1))
    for most in ((2, 2, 1), (3, 1, 1), (3, 2, 0)):
        with pytest.raises(pytest.fail.Exception, match=r"beside\n.*in_thread\n.*named"):
            check("planted", found, most)


def test_a_class_that_lends_its_methods_is_counted():
    text = "class Lender:\n def fit(self): pass\n @property\n def p(self): pass\n"
    text += "class Base:\n def __init_subclass__(cls): cls.more = Lender.p\n"
    text += "class Borrower(Base):\n fit = Lender.fit\n n = 1\n def own(self): pass\n"
    kind = plant(f"{PACKAGE.relative_to(SOURCE)}/planted.py", text)["Borrower"]
    assert [name for _, name in own_classes(kind)] == ["Base", "Borrower", "Lender"]
    assert methods(kind) == ["fit", "more", "own"]
