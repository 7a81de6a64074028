"""
Fit many rows with landmarks
============================

Over all rows, the time of a kernel method is cubic in their number. Over a fixed number of
landmarks it is linear. :doc:`/many-rows` has measurements up to a million rows.
"""

# %%
# Rows of five classes; the target is shifted.
import time

import matplotlib.pyplot as plt
import numpy as np

from transferable import TFDFV

rng = np.random.default_rng(0)
centres = rng.normal(scale=2.0, size=(5, 20))


def domain(n_rows, shift):
    """Return rows of five classes, and their labels."""
    y = rng.integers(5, size=n_rows)
    return centres[y] + shift + rng.normal(size=(n_rows, 20)), y


def seconds(n_rows, **settings):
    """Return the time of a fit, and its accuracy on the target."""
    (Xs, ys), (Xt, yt) = domain(n_rows // 2, 0.0), domain(n_rows // 2, 0.7)
    started = time.perf_counter()
    model = TFDFV(manifold_dim=None, **settings).adapt(Xs, ys, Xt)
    return time.perf_counter() - started, model.score(Xt, yt)


# %%
# Fit TFDF-V over all rows and over 200 landmarks.
sizes = [500, 1000, 2000]
seconds(200)  # the first fit also loads libraries
exact = [seconds(n_rows, n_landmarks=None) for n_rows in sizes]
landmarks = [seconds(n_rows, n_landmarks=200) for n_rows in sizes]
for n_rows, (_, all_rows), (_, few) in zip(sizes, exact, landmarks, strict=True):
    print(f"{n_rows:5} rows: accuracy {all_rows:.1%} exact, {few:.1%} with landmarks")

# %%
# Time by the number of rows.
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.loglog(sizes, [t for t, _ in exact], "s-", color="#d55e00", label="all rows")
ax.loglog(sizes, [t for t, _ in landmarks], "o-", color="#0072b2", label="200 landmarks")
ax.set(xlabel="rows", ylabel="seconds", title="Time of a fit over all rows and over landmarks")
ax.grid(color="#e4e4e4")
ax.legend(frameon=False)
