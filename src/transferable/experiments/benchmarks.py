"""The datasets of the experiments by the names that commands and records use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from transferable.datasets import (
    DataFileError,
    DomainCollection,
    fetch_coil20,
    fetch_mnist_usps,
    fetch_office_caltech,
)
from transferable.experiments.full_digits import full_digits

__all__ = ["BENCHMARKS", "Benchmark", "domain_sizes"]


@dataclass(frozen=True)
class Benchmark:
    """A dataset and where its domains come from.

    Attributes
    ----------
    title : str
        How tables call it.
    fetch : callable
        Gives its :class:`~transferable.datasets.DomainCollection`.
    unpublished : frozenset of str
        Domains without a public address: experiments go on without those that are missing.
    """

    title: str
    fetch: Callable[[], DomainCollection]
    unpublished: frozenset[str] = frozenset()


BENCHMARKS: dict[str, Benchmark] = {
    "surf": Benchmark("Office-Caltech10, SURF", lambda: fetch_office_caltech("surf")),
    "decaf6": Benchmark(
        "Office-Caltech10, DeCAF6",
        lambda: fetch_office_caltech("decaf6"),
        unpublished=frozenset("CA"),
    ),
    "efficientnet": Benchmark(
        "Office-Caltech10, EfficientNet-Lite0",
        lambda: fetch_office_caltech("efficientnet-lite0"),
        unpublished=frozenset("CAWD"),
    ),
    "digits": Benchmark("MNIST-USPS", fetch_mnist_usps),
    "coil": Benchmark("COIL20", fetch_coil20),
    "digits-full": Benchmark("MNIST-USPS, all rows", full_digits),
}


def domain_sizes(
    needed: Iterable[tuple[str, str]],
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], str]]:
    """Read every (dataset, domain) once, before anything is computed.

    Returns
    -------
    sizes : dict
        Number of rows of each domain that is there.
    missing : dict
        For each domain without a public address that is not there, what to do about it.

    Raises
    ------
    DataFileError
        If any other domain cannot be had; it names the file, the folder and what to do.
    """
    sizes, missing = {}, {}
    for dataset, domain in dict.fromkeys(needed):
        benchmark = BENCHMARKS[dataset]
        try:
            sizes[dataset, domain] = len(benchmark.fetch().domain(domain).y)
        except DataFileError as error:
            if domain not in benchmark.unpublished:
                raise
            missing[dataset, domain] = str(error)
    return sizes, missing
