"""Saved table classifiers of the format before encoders were estimators of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from transferable.tables.encoder import TableEncoder

__all__ = ["upgraded"]


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a classifier as it would be now; one that is, as it is."""
    if "source_encoder_" not in state:
        return state | ({} if "label" not in state else {"label_": state["label"]})
    state = dict(state)
    label, pipelines = state.pop("label"), (state.pop("source_encoder_"), state.pop("encoder_"))
    names = {name: state.pop(name) for name in ("numeric_", "categorical_", "feature_names_")}
    encoder = TableEncoder(
        scale=state["scale"], ids=state["ids"], drop=state["drop"], features=state["features"]
    )
    encoder.numeric_ = list(names["numeric_"])
    encoder.categories_ = _categories(pipelines[0], names["categorical_"])
    encoder.scale_ = state.pop("scale_", state["scale"])
    steps = [_scaling(pipeline, len(encoder.numeric_)) for pipeline in pipelines]
    encoder.medians_, encoder.means_, encoder.spreads_ = map(np.stack, zip(*steps, strict=True))
    encoder.dtype_ = np.dtype(np.float64)
    encoder.notes_ = list(state.pop("notes_", []))
    encoder.feature_names_in_ = np.array([*encoder.numeric_, *encoder.categories_], dtype=object)
    encoder.n_features_in_ = len(encoder.feature_names_in_)
    return state | {
        "encoder_": encoder,
        "label_": label,
        "_notes_on_labels": [],
        "feature_names_in_": encoder.feature_names_in_,
        "n_features_in_": encoder.n_features_in_,
    }


def _categories(pipeline: Any, columns: list[str]) -> dict[str, list[str]]:
    one_hot = pipeline.named_steps["columns"].named_transformers_["categorical"]
    found = [list(map(str, values)) for values in one_hot.categories_] if columns else []
    return dict(zip(columns, found, strict=True))


def _scaling(pipeline: Any, n_numeric: int) -> tuple[Any, Any, Any]:
    """Medians, means and spreads of the numeric columns."""
    if n_numeric == 0:
        return np.empty(0), np.empty(0), np.empty(0)
    steps = pipeline.named_steps["columns"].named_transformers_["numeric"].named_steps
    scaler = steps.get("standardscaler")
    medians = steps["simpleimputer"].statistics_
    if scaler is None:
        return medians, np.zeros(n_numeric), np.ones(n_numeric)
    return medians, scaler.mean_, scaler.scale_
