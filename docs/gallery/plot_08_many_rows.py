"""
A million rows by landmarks
===========================

Over all rows, a kernel method takes time that grows with the cube of their number. Over landmarks,
it grows with the number.
"""

# %%
# Measured here, on a few thousand rows: the exact solve, and the same over 200 landmarks.
import time

import matplotlib.pyplot as plt
import numpy as np

from transferable import TFDFV

rng = np.random.default_rng(0)
centres = rng.normal(scale=2.0, size=(5, 20))


def domain(n_rows, shift):
    """Make rows of five classes."""
    y = rng.integers(5, size=n_rows)
    return centres[y] + shift + rng.normal(size=(n_rows, 20)), y


def seconds(n_rows, **settings):
    """Time a fit, and tell how accurate it is."""
    (Xs, ys), (Xt, yt) = domain(n_rows // 2, 0.0), domain(n_rows // 2, 0.7)
    started = time.perf_counter()
    model = TFDFV(manifold_dim=None, **settings).adapt(Xs, ys, Xt)
    return time.perf_counter() - started, model.score(Xt, yt)


sizes = [500, 1000, 2000]
seconds(200)  # the first fit also loads libraries
exact = [seconds(n_rows, n_landmarks=None) for n_rows in sizes]
landmarks = [seconds(n_rows, n_landmarks=200) for n_rows in sizes]
for n_rows, (_, all_rows), (_, few) in zip(sizes, exact, landmarks, strict=True):
    print(f"{n_rows:5} rows: {all_rows:.1%} exact, {few:.1%} over landmarks")

# %%
# Recorded, since a million rows take a while: TFDF with 1,000 landmarks, 64 features, ten classes,
# two cores. The graph is that of nearest neighbours; the star is the graph of anchors, which takes
# no search and is the default there. The page on many rows has the details.
recorded = {20_000: (3.2, 0.43), 80_000: (9.4, 0.92), 320_000: (48.9, 2.73), 1_000_000: (208, 7.65)}
anchors = (1_000_000, 57, 5.3)

figure, (times, memory) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
times.loglog(sizes, [t for t, _ in exact], "s-", color="#d55e00", label="exact, here")
times.loglog(sizes, [t for t, _ in landmarks], "o-", color="#0072b2", label="200 landmarks, here")
counts, costs = list(recorded), np.array(list(recorded.values()))
times.loglog(counts, costs[:, 0], "D--", color="#222222", label="1,000 landmarks, recorded")
times.plot(*anchors[:2], "*", color="#009e73", markersize=12, label="by anchors, recorded")
times.set(xlabel="rows", ylabel="seconds")
times.legend(frameon=False)
memory.loglog(counts, costs[:, 1], "D--", color="#222222")
memory.plot(anchors[0], anchors[2], "*", color="#009e73", markersize=12)
memory.set(xlabel="rows", ylabel="peak memory in GB, recorded")
for ax in (times, memory):
    ax.grid(color="#e4e4e4")
