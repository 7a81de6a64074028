"""Hostile input of every kind, drawn from seeds: `make campaign` runs it, see docs/reliability.md.

An area is a module with a function ``trial(seed, folder)``. It returns what it did, in a few words,
or raises `Violation` with what must not happen.
"""


class Violation(AssertionError):  # noqa: N818
    """Something happened that must not."""


class Refused(Exception):  # noqa: N818
    """Input was refused as it should be; not a failure."""
