"""Reconstructions of methods whose papers have neither published code nor all equations.

They keep the contract of the library, but may differ from the authors' methods.
"""

from transferable.experimental.dmm import DMM
from transferable.experimental.ldml import LDML

__all__ = ["DMM", "LDML"]
