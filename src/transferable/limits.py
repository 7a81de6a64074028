"""Size thresholds that select an algorithm: blocks, copies, exact searches and solves.

Results do not depend on them beyond rounding, except for the landmarks that "auto" takes. They suit
ordinary machines; on others, and in tests, the attributes of :data:`LIMITS` may be set.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits"]


@dataclass
class Limits:
    """Size thresholds, beyond each of which another algorithm is used.

    Attributes
    ----------
    block_values, gpu_block_values : int
        Values of a table that are worked on at once: 64 MB in float64, 512 MB on a GPU.
    threaded_values : int
        Values of a table for which threads are worth their start.
    thread_work : int
        Work of a fit, rows times the larger of rows and columns, for each thread of BLAS: threads
        that find less to do wait for each other.
    mapped_rows : int
        Rows that a transformer maps at once at most: those stay in caches, more are no faster.
    similarity_values, gpu_similarity_values : int
        Similarities that a search holds at once: 128 MB in float64, 256 MB in float32 on a GPU.
    fewest_queries : int
        Minimum number of rows in one search: products of fewer rows are inefficient.
    copied_bytes : int
        A larger dense table is not copied into canonical order but read in place.
    exact_rows : int
        Rows up to which "auto" solves exactly where landmarks do not suffice; the time of that
        grows with their square at least.
    landmarks : int
        Landmarks that "auto" takes beyond, in embeddings and over Dask.
    class_bytes, gpu_class_bytes : int
        Products of features that are held by class, so that the class prior may change without
        another pass over the rows.
    pool_rows : int
        First rows of each domain in canonical order, used for automatic choices and first labels.
    unsettled_share : float
        Rounds end where a smaller share of the labels changes: none of up to 10,000.
    double_pairs : int
        Pairs of rows up to which dense rows are compared in double precision.
    labelled_pairs : int
        Pairs up to which labels of nearest rows come from all distances.
    announced_seconds : float
        A search that will take longer announces it.
    awaited_seconds : float
        Steps that take longer are shown with a progress bar, if one is drawn at all.
    """

    block_values: int = 2**23
    gpu_block_values: int = 2**26
    threaded_values: int = 2**22
    thread_work: int = 2**24
    mapped_rows: int = 1024
    similarity_values: int = 2**24
    gpu_similarity_values: int = 2**26
    fewest_queries: int = 32
    copied_bytes: int = 2**30
    exact_rows: int = 8_000
    landmarks: int = 1000
    class_bytes: int = 2**28
    gpu_class_bytes: int = 2**31
    pool_rows: int = 20_000
    unsettled_share: float = 1e-4
    double_pairs: int = 2**30
    labelled_pairs: int = 2**30
    announced_seconds: float = 60.0
    awaited_seconds: float = 2.0


LIMITS = Limits()
