"""Your own data: from two tables to labels, a report and a model to keep.

Two stations measure the same things. The first has years of labelled rows; the second is new, its
thermometer reads five degrees too high, and nobody has labelled anything. Put your own two files
in the place of the ones made here.
"""

# %% Two files, as they come: text, missing values, columns in another order.
from pathlib import Path

import numpy as np
import pandas as pd

import transferable
from transferable import TFDF
from transferable.report import write_report
from transferable.tables import TableClassifier

rng = np.random.default_rng(0)


def station(n_rows: int, offset: float) -> pd.DataFrame:
    """Make rows of one station."""
    weather = rng.choice(["clear", "fog", "rain"], size=n_rows)
    damp = np.select([weather == "clear", weather == "fog"], [45.0, 75.0], 85.0)
    humidity = damp + rng.normal(scale=9, size=n_rows)
    clarity = np.select([weather == "clear", weather == "fog"], [9.0, 1.0], 4.0)
    return pd.DataFrame(
        {
            "temperature": 15 + offset - damp / 10 + rng.normal(scale=1.5, size=n_rows),
            "humidity": np.where(rng.random(n_rows) < 0.05, np.nan, humidity),
            "visibility": clarity * rng.lognormal(sigma=0.7, size=n_rows),
            "wind": rng.choice(["calm", "breeze", "gale"], size=n_rows, p=[0.4, 0.4, 0.2]),
            "weather": weather,
        }
    )


source, truth = station(300, offset=0.0), station(240, offset=5.0)
target = truth.drop(columns="weather")[["wind", "visibility", "temperature", "humidity"]]

# %% Adapt. Columns are matched by name, missing values filled, text turned into indicators.
model = TableClassifier(TFDF()).adapt(source, "weather", target)
predicted = model.predict(target)
confidence = model.predict_proba(target).max(axis=1)
print(f"{np.mean(predicted == truth['weather']):.1%} of the new station's rows are right")
target.assign(prediction=predicted, confidence=confidence).to_csv("predictions.csv", index=False)

# %% Keep the model. It holds the preprocessing, so new rows go in raw.
transferable.save(model, "model.skops")
later = station(100, offset=5.0)
kept = transferable.load("model.skops")
print(f"{np.mean(kept.predict(later) == later['weather']):.1%} of later rows are right")

# %% Write the report that `transferable adapt ... --report report.html` writes.
write_report("report.html", model, source, "weather", target)
print("Open", Path("report.html").resolve())
