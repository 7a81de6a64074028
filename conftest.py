"""Where torch is not installed, what cannot do without it is not collected."""

from importlib.util import find_spec

collect_ignore = (
    []
    if find_spec("torch")
    else [
        "src/transferable/deep",
        "tests/deep",
        "tests/benchmarks/test_bench_deep.py",
        "tests/test_abilities.py",
    ]
)
