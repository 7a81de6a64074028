"""Choosing a method: is there a gap, what do the methods make of it, and where do they differ?

No label of the target is used until the last cell, which shows how far the conclusions hold.
"""

# %% Printed digits are labelled, handwritten ones are not.
import numpy as np

from transferable import MEDA, TFDF, TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.diagnostics import compare_methods, diagnose, source_only_methods, vote
from transferable.plots import DomainScatterDisplay
from transferable.transformers import CORAL, GFK, JDA, TCA

task = load_printed_to_handwritten()
Xs, ys, Xt = task.Xs[:840], task.ys[:840], task.Xt[:900]

# %% Is there a gap, and can the source be learnt?
diagnosis = diagnose(Xs, ys, Xt)
print("A-distance", round(diagnosis.gap.overall["A-distance"], 2))
print(*diagnosis.lines, sep="\n")

# %% What do the methods say? Models of the source alone take part.
methods = {
    **source_only_methods(),
    **{type(method).__name__: method for method in (TFDF(), TFDFV(), MEDA())},
    **{type(method).__name__: method for method in (CORAL(), GFK(), JDA(), TCA())},
}
outcomes = compare_methods(methods, Xs, ys, Xt)
agreed = vote(outcomes)
for outcome in outcomes:
    agreement = np.mean(outcome.predicted == agreed)
    print(f"{outcome.name:20} agrees on {agreement:5.1%}   {outcome.seconds:.1f} s")

# %% Look at what the first choice does to the rows, with its own labels.
model = TFDF().adapt(Xs, ys, Xt)
display = DomainScatterDisplay.from_estimator(model, Xs, ys, Xt)
display.figure_.savefig("before-and-after.png", dpi=150)

# %% With true labels, which a real task lacks: agreement is a hint, and no more.
yt = task.yt[:900]
for outcome in sorted(outcomes, key=lambda o: -np.mean(o.predicted == yt)):
    print(f"{outcome.name:20} {np.mean(outcome.predicted == yt):5.1%} correct")
