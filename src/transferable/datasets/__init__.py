"""Adaptation tasks: some that need no download, and the benchmarks of the literature."""

from transferable.datasets._domains import DomainCollection
from transferable.datasets._files import DataFileError, get_data_home
from transferable.datasets.coil20 import fetch_coil20
from transferable.datasets.everyday_tables import fetch_tables
from transferable.datasets.mnist_usps import fetch_mnist_usps
from transferable.datasets.office_caltech import fetch_office_caltech
from transferable.datasets.printed import load_printed_to_handwritten
from transferable.datasets.toys import make_shifted

__all__ = [
    "DataFileError",
    "DomainCollection",
    "fetch_coil20",
    "fetch_mnist_usps",
    "fetch_office_caltech",
    "fetch_tables",
    "get_data_home",
    "load_printed_to_handwritten",
    "make_shifted",
]
