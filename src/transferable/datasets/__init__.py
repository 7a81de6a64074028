"""Adaptation tasks: some that need no download, and the benchmarks of the literature."""

from transferable.datasets._files import DataFileError, get_data_home
from transferable.datasets.fetchers import (
    DomainCollection,
    fetch_coil20,
    fetch_mnist_usps,
    fetch_office_caltech,
    fetch_tables,
)
from transferable.datasets.printed import load_printed_to_handwritten
from transferable.datasets.toys import make_drifted, make_reviews, make_shifted

__all__ = [
    "DataFileError",
    "DomainCollection",
    "fetch_coil20",
    "fetch_mnist_usps",
    "fetch_office_caltech",
    "fetch_tables",
    "get_data_home",
    "load_printed_to_handwritten",
    "make_drifted",
    "make_reviews",
    "make_shifted",
]
