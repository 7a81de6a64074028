"""What ``transferable adapt`` computes, and what it tells about it."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from transferable.cli._console import Messages
from transferable.cli._inputs import Evaluation, Inputs
from transferable.cli._methods import parameters_of
from transferable.cli._predictions import predicted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray
    from rich.table import Table

    from transferable.diagnostics import Trust
    from transferable.tables import TableClassifier

__all__ = ["Adaptation", "adapt"]

_CHANGES_SHOWN = 3


@dataclass(frozen=True)
class Adaptation:
    """A fitted model with its predictions for the target."""

    model: TableClassifier
    inputs: Inputs
    lines: pd.DataFrame
    probabilities: NDArray[Any]
    evaluation: Evaluation | None
    trust: Trust | None
    seconds: float

    @property
    def fitted(self) -> Any:
        """The method as it was fitted: the one that a search chose, or the only one."""
        return getattr(self.model.estimator_, "best_estimator_", self.model.estimator_)

    @property
    def method(self) -> str:
        """The name of the method's class; of a transformer's, if one nearest neighbour follows."""
        return type(self._named).__name__

    @property
    def parameters(self) -> dict[str, Any]:
        """The method's parameters."""
        return parameters_of(self._named)

    @property
    def _named(self) -> Any:
        return getattr(self.fitted, "transformer", None) or self.fitted

    def counts(self) -> dict[str, tuple[int, int]]:
        """Rows of each class in the source and as predicted in the target."""
        source = self.inputs.source[self.inputs.label].astype(str)
        ours, theirs = source.value_counts(), self.lines["prediction"].astype(str).value_counts()
        return {
            name: (int(ours.get(name, 0)), int(theirs.get(name, 0)))
            for name in map(str, self.model.classes_.tolist())
        }

    def table(self) -> Table:
        """The summary for people."""
        from rich.markup import escape
        from rich.table import Table

        table = Table("class")
        for heading in ("source rows", "target rows, predicted", "mean confidence"):
            table.add_column(heading, justify="right")
        if self.trust is not None:
            table.add_column("by the source alone", justify="right")
            alone = self.lines["source_only"].astype(str).value_counts()
        confidence = self.lines["confidence"].groupby(self.lines["prediction"].astype(str)).mean()
        for name, (ours, theirs) in self.counts().items():
            sure = f"{confidence[name]:.1%}" if theirs else "-"
            more = [f"{int(alone.get(name, 0)):,}"] if self.trust is not None else []
            table.add_row(escape(name), f"{ours:,}", f"{theirs:,}", sure, *more)
        return table

    def summary(self) -> str:
        """One line on what was done."""
        return (
            f"{self.method} learnt from {len(self.inputs.source):,} source and "
            f"{len(self.inputs.target):,} target rows, "
            f"{len(self.model.encoder_.get_feature_names_out())} features, in {self.seconds:.1f} s"
        )

    def verdicts(self) -> list[str]:
        """Lines on what is known of the accuracy, and on the evaluation or its absence."""
        lines = []
        if self.trust is not None:
            lines += _on_trust(self.trust)
        found = self.evaluation
        if self.inputs.uses_labels and self.inputs.true is not None:
            lines.append(
                f"The {int(self.inputs.true.notna().sum()):,} values in "
                f"{self.inputs.true.name!r} were learnt from; the accuracy elsewhere is unknown."
            )
        elif found is None:
            lines.append("The target's true labels were not given; its accuracy is unknown.")
        else:
            lines.append(
                f"Accuracy on the {int(found.known.sum()):,} target rows with a value in "
                f"{found.column!r}: {found.accuracy:.1%} (used for this evaluation only)"
            )
        return lines


def _on_sources(model: TableClassifier, parts: list[pd.DataFrame]) -> str:
    """What each source counted, where the method weighs them."""
    from transferable.tables._errors import who

    fitted = getattr(model.estimator_, "transformer_", model.estimator_)
    weights = getattr(fitted, "source_weights_", None)
    names = [who(part, f"source {k}") for k, part in enumerate(parts, 1)]
    told = [f"{name} ({len(part):,} rows)" for name, part in zip(names, parts, strict=True)]
    if weights is not None:
        told = [f"{text} counts {weight:.2f}" for text, weight in zip(told, weights, strict=True)]
    return f"{len(parts)} sources: {', '.join(told)}."


def _on_trust(trust: Trust) -> list[str]:
    pairs = [f"{c.rows:,} from {c.source_only} to {c.adapted}" for c in trust.changes]
    shown = ", ".join(pairs[:_CHANGES_SHOWN])
    more = f" and {len(pairs) - _CHANGES_SHOWN} other kinds" if len(pairs) > _CHANGES_SHOWN else ""
    changed = (
        f"Against a model of the source alone, {trust.changed:,} of {len(trust.labels):,} rows "
        f"({trust.changed / len(trust.labels):.0%}) changed their label"
    )
    estimate = trust.estimate
    lines = [
        changed + (f": {shown}{more}" if pairs else ""),
        f"Estimated without labels, {estimate.adapted} of the labels are right; of the "
        f"source-only model's, {estimate.source_only}",
    ]
    return [*lines, f"Warning: {trust.warning}"] if trust.warning else lines


def adapt(
    model: TableClassifier,
    inputs: Inputs,
    messages: Messages,
    *,
    seed: int,
    estimates: bool,
    every_class: bool,
) -> Adaptation:
    """Fit a model, label the target's rows, and tell what is known of the labels."""
    from transferable.events import stage

    start = perf_counter()
    with messages.hearing(), messages.bar("Adapting"):
        source: Any = inputs.source if inputs.parts is None else inputs.parts
        model.adapt(source, inputs.label, inputs.target, inputs.known(messages))
        stage("Labelling the target")
        lines, probabilities = predicted(model, inputs.target, inputs.ids, every_class=every_class)
    seconds = perf_counter() - start
    if inputs.parts is not None:
        messages.note(_on_sources(model, inputs.parts))
    search = model.estimator_ if hasattr(model.estimator_, "best_params_") else None
    if search is not None:
        chosen = ", ".join(f"{name}={value}" for name, value in search.best_params_.items())
        messages.note(f"of {len(search.cv_results_['params'])} settings, --tune chose {chosen}.")
    trust = _trust(model, inputs, seed, messages) if estimates else None
    if trust is not None:
        lines = lines.assign(source_only=trust.source_only)
    evaluation = inputs.evaluate(lines["prediction"].to_numpy(), messages)
    return Adaptation(model, inputs, lines, probabilities, evaluation, trust, seconds)


def _trust(model: TableClassifier, inputs: Inputs, seed: int, messages: Messages) -> Trust | None:
    """How far to trust the labels; None, with a note, where the rows are too few to tell."""
    import warnings

    import numpy as np

    from transferable.diagnostics import assess_trust

    encoder = model.encoder_
    alone = encoder.of_source_alone(inputs.source)
    fitted = getattr(model.estimator_, "best_estimator_", model.estimator_)
    with messages.bar("Estimating the accuracy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits on parts of the rows
        try:
            return assess_trust(
                fitted,
                encoder.transform(inputs.source, inputs.marks),
                inputs.labels,
                encoder.transform(inputs.target),
                plain=(alone.transform(inputs.source), alone.transform(inputs.target)),
                random_state=seed,
            )
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            messages.note(f"the accuracy cannot be estimated without labels here: {error}")
            return None
