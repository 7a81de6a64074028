"""Sizes at which the library changes its ways: blocks, copies, exact searches and solves.

Results do not depend on them beyond rounding, but for the searches that become approximate and the
landmarks that "auto" takes. They suit ordinary machines; on others, and in tests, which have no
million rows, the attributes of :data:`LIMITS` may be set.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits"]


@dataclass
class Limits:
    """All of them; a size beyond its limit is treated otherwise.

    Attributes
    ----------
    block_values, gpu_block_values : int
        Values of a table that are worked on at once: 64 MB in float64, 512 MB on a GPU.
    threaded_values : int
        Values of a table for which threads are worth their start.
    mapped_rows : int
        Rows that a transformer maps at once at most: those stay in caches, more are no faster.
    similarity_values, gpu_similarity_values : int
        Similarities that a search holds at once: 128 MB in float64, 256 MB in float32 on a GPU.
    fewest_queries : int
        Rows that are searched for at once at least: the product of fewer is slow for what it is.
    copied_bytes : int
        A dense table of more is not copied into canonical order but read where it lies.
    exact_rows : int
        Rows up to which "auto" solves exactly; that grows with their square at least.
    landmarks : int
        Landmarks that "auto" takes beyond.
    class_bytes : int
        Products of features that are held by class, so that class shares may change without
        another pass over the rows.
    pool_rows : int
        Rows of each domain, the first in canonical order, that choices are made from and first
        labels come from.
    unsettled_share : float
        Rounds end where a smaller share of the labels changes: none of up to 10,000.
    exact_pairs : int
        Pairs of rows up to which all are compared (32,768 rows with each other).
    short_rows : int
        Rows of a table so short that putting rows into clusters costs as much as comparing them.
    candidates : int
        Rows that each is compared with, on average, where clusters are searched. Time is linear
        from there on, and recall is what gives.
    labelled_pairs : int
        Pairs up to which labels of nearest rows come from all distances.
    announced_seconds : float
        A search that will take longer says so.
    awaited_seconds : float
        Whatever takes longer is shown with a bar, where one is drawn at all.
    """

    block_values: int = 2**23
    gpu_block_values: int = 2**26
    threaded_values: int = 2**22
    mapped_rows: int = 1024
    similarity_values: int = 2**24
    gpu_similarity_values: int = 2**26
    fewest_queries: int = 32
    copied_bytes: int = 2**30
    exact_rows: int = 10_000
    landmarks: int = 1000
    class_bytes: int = 2**28
    pool_rows: int = 20_000
    unsettled_share: float = 1e-4
    exact_pairs: int = 2**30
    short_rows: int = 4096
    candidates: int = 8192
    labelled_pairs: int = 2**30
    announced_seconds: float = 60.0
    awaited_seconds: float = 2.0


LIMITS = Limits()
