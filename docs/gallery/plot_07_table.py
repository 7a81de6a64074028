"""
Adapt a table with text and missing values
==========================================

Two weather stations measure the same quantities. The thermometer of the second is five degrees off.
One column has missing values, another is text, and the rows of the second station have no labels.
"""

# %%
# The two tables.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from transferable import TFDF
from transferable.tables import TableClassifier

rng = np.random.default_rng(0)


def station(n_rows, offset):
    """Return rows of one station."""
    weather = rng.choice(["clear", "fog", "rain"], size=n_rows)
    damp = np.select([weather == "clear", weather == "fog"], [45.0, 75.0], 85.0)
    clarity = np.select([weather == "clear", weather == "fog"], [9.0, 1.0], 4.0)
    humidity = damp + rng.normal(scale=9, size=n_rows)
    return pd.DataFrame(
        {
            "temperature": 15 + offset - damp / 10 + rng.normal(scale=0.8, size=n_rows),
            "humidity": np.where(rng.random(n_rows) < 0.3, np.nan, humidity),
            "visibility": clarity * rng.lognormal(sigma=0.7, size=n_rows),
            "wind": rng.choice(["calm", "breeze", "gale"], size=n_rows, p=[0.4, 0.4, 0.2]),
            "weather": weather,
        }
    )


source, truth = station(300, offset=0.0), station(300, offset=5.0)
target = truth.drop(columns="weather")
source.head()

# %%
# ``TableClassifier`` matches columns by name, imputes missing values, encodes text and scales each
# table separately. It wraps any method.
model = TableClassifier(TFDF()).adapt(source, "weather", target)
adapted = model.predict(target)

# %%
# The baseline: a model of the source alone on the numeric columns, with missing values imputed.
numbers = ["temperature", "humidity", "visibility"]
filled = source[numbers].fillna(source[numbers].median())
plain = LogisticRegression(max_iter=1000).fit(filled, source["weather"])
alone = plain.predict(target[numbers].fillna(source[numbers].median()))

# %%
# The distribution of the shifted column, and the accuracy of both models.
figure, (left, right) = plt.subplots(
    *(1, 2), figsize=(9.5, 3.4), layout="constrained", width_ratios=(1.6, 1)
)
for name, frame, colour in (("source", source, "#0072b2"), ("target", target, "#d55e00")):
    left.hist(frame["temperature"], bins=30, alpha=0.6, color=colour, label=name)
left.set(xlabel="temperature", ylabel="rows", title="shifted column")
left.legend(frameon=False)
for at, (name, labels) in enumerate({"source alone": alone, "adapted": adapted}.items()):
    accuracy = np.mean(labels == truth["weather"])
    right.bar(name, accuracy, color=("#808080", "#0072b2")[at])
    right.annotate(f"{accuracy:.0%}", (at, accuracy), ha="center", va="bottom")
right.set(title="target accuracy", ylim=(0, 1.05))
