"""How long the path of a call is: the functions and files of the package that it passes through.

Code counts wherever it is moved: into lambdas, threads, or another package beside this one.
"""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import transferable
from transferable.transformers import PerDomainScaler

# Later steps only lower these numbers.
PATHS = {  # named functions, files and lambdas on the second call
    "TFDF().adapt": (102, 17, 0),
    "TFDF, nothing automatic": (80, 16, 0),
    "PerDomainScaler().adapt": (25, 5, 0),
    "predict": (17, 5, 0),
}
CLASSES = 4  # of our own that TFDF is made of, itself included
PARAMETERS = 22  # of TFDF
MODULES = 13  # directly in the package
PACKAGES = 1  # in src

PACKAGE = Path(transferable.__file__).parent
SOURCE = PACKAGE.parent if PACKAGE.parent.name == "src" else PACKAGE


def walk(call):
    """Functions and lambdas that a call enters, by file and name; comprehensions are left out.

    Python versions differ in which of these have frames.
    """
    entered, root = set(), f"{SOURCE}/"

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            name = code.co_qualname
            if code.co_name == "<lambda>":
                name += f", line {code.co_firstlineno}"
            if code.co_name == "<lambda>" or not code.co_name.startswith("<"):
                entered.add((code.co_filename.removeprefix(root), name))

    everywhere = getattr(threading, "setprofile_all_threads", threading.setprofile)
    before = sys.getprofile()
    everywhere(watch)  # threads, of which Python 3.11 watches those to come only
    sys.setprofile(watch)
    try:
        call()
    finally:
        everywhere(None)
        sys.setprofile(before)
    return {
        "functions": sorted(key for key in entered if "<lambda>, line" not in key[1]),
        "files": sorted({file for file, _ in entered}),
        "lambdas": sorted(key for key in entered if "<lambda>, line" in key[1]),
    }


def check(title, entered, most):
    """Fail with the list of what was entered if it is more than allowed."""
    counts = tuple(len(names) for names in entered.values())
    if any(count > allowed for count, allowed in zip(counts, most, strict=True)):
        listed = "\n".join(f"  {file}  {name}" for file, name in entered["functions"])
        lambdas = "\n".join(f"  {file}  {name}" for file, name in entered["lambdas"])
        pytest.fail(
            f"{title}: {counts} functions, files and lambdas, at most {most}\n{listed}\n{lambdas}"
        )


def toy():
    """80 rows of three classes, half of them of the target."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(3, 10)) * 2
    ys, yt = rng.integers(0, 3, 40), rng.integers(0, 3, 40)
    return means[ys] + rng.normal(size=(40, 10)), ys, means[yt] + rng.normal(size=(40, 10)) + 0.5


def calls():
    """The calls that are watched."""
    task = toy()
    fitted = transferable.TFDF().adapt(*task)
    off = transferable.TFDF(class_shares="source", manifold=1.0, manifold_dim=5, balance=0.5)
    return {
        "TFDF().adapt": lambda: transferable.TFDF().adapt(*task),
        "TFDF, nothing automatic": lambda: off.adapt(*task),
        "PerDomainScaler().adapt": lambda: PerDomainScaler().adapt(*task),
        "predict": lambda: fitted.predict(task[2]),
    }


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("title", PATHS)
def test_a_call_passes_through_few_functions(title, threads):
    call = calls()[title]
    with threadpool_limits(threads):
        call()  # imports and caches
        check(title, walk(call), PATHS[title])


def test_few_classes_parameters_and_modules():
    own = [
        kind for kind in transferable.TFDF.__mro__ if kind.__module__.startswith("transferable.")
    ]
    assert len(own) <= CLASSES, own
    parameters = transferable.TFDF().get_params(deep=False)
    assert len(parameters) <= PARAMETERS, sorted(parameters)
    modules = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(modules) <= MODULES, modules
    if SOURCE != PACKAGE:
        packages = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}
        assert len(packages) <= PACKAGES, packages


def plant(file, text):
    """What `text` defines, as if it were in a file of the source."""
    defined = {"threading": threading}
    exec(compile(text, str(SOURCE / file), "exec"), defined)  # noqa: S102
    return defined


def test_what_is_planted_is_found():
    here = f"{PACKAGE.relative_to(SOURCE)}/planted.py"
    inner = plant("elsewhere.py", "def beside(): pass")["beside"]
    text = "def named(call):\n (lambda: call())()\n t = threading.Thread(target=in_thread)\n"
    text += " t.start()\n t.join()\n return [i for i in range(2)]\ndef in_thread(): pass"
    named = plant(here, text)["named"]
    found = walk(lambda: named(inner))
    assert found == {
        "functions": [("elsewhere.py", "beside"), (here, "in_thread"), (here, "named")],
        "files": ["elsewhere.py", here],
        "lambdas": [(here, "named.<locals>.<lambda>, line 2")],
    }
    check("planted", found, (3, 2, 1))
    for most in ((2, 2, 1), (3, 1, 1), (3, 2, 0)):
        with pytest.raises(pytest.fail.Exception, match=r"beside\n.*in_thread\n.*named"):
            check("planted", found, most)
