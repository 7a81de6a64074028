"""The table of what each estimator takes, made from what the classes state.

``python benchmarks/abilities.py`` renews it in docs/methods.md; tests/test_abilities.py tries every
entry on rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.utils import get_tags

from transferable import TFDFV, all_estimators
from transferable.model_selection import LabelFreeSearch
from transferable.tables import TableClassifier, TableEncoder

PAGE = Path(__file__).parents[1] / "docs/methods.md"

# By the heading of its column, whether an estimator states it.
ABILITIES: dict[str, Callable[[Any], bool]] = {
    "several sources": lambda model: model.takes.several_sources,
    "`sample_weight`": lambda model: model.takes.sample_weight,
    "some target labels": lambda model: model.takes.target_labels,
    "no labels at all": lambda model: model.takes.no_labels,
    "sparse rows": lambda model: bool(get_tags(model).input_tags.sparse),
    "landmarks": lambda model: "n_landmarks" in model.get_params(deep=False),
    "GPU": lambda model: "device" in model.get_params(deep=False),
    "new rows": lambda model: hasattr(model, "predict") or hasattr(model, "transform"),
    "probabilities": lambda model: hasattr(model, "predict_proba"),
}


def estimators() -> dict[str, Any]:
    """Every public estimator by the name that the table gives it, as its defaults make it."""
    from transferable import deep

    networks = {f"deep.{name}": getattr(deep, name) for name in deep.__all__}
    del networks["deep.PenalisedClassifier"]  # a base
    return {
        **{name: cls() for name, cls in all_estimators()},
        "model_selection.LabelFreeSearch": LabelFreeSearch(TFDFV()),
        "tables.TableClassifier": TableClassifier(TFDFV()),
        "tables.TableEncoder": TableEncoder(scale="per-domain"),
        **{name: cls() for name, cls in networks.items() if hasattr(cls, "fit")},
    }


def markdown(models: dict[str, Any]) -> str:
    lines = [["class", *ABILITIES], ["---"] * (1 + len(ABILITIES))]
    for name, model in models.items():
        lines.append([f"`{name}`", *("yes" if has(model) else "" for has in ABILITIES.values())])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- abilities -->\n")
    _, after = rest.split("\n<!-- end abilities -->")
    table = f"<!-- abilities -->\n{markdown(estimators())}\n<!-- end abilities -->"
    PAGE.write_text(before + table + after, encoding="utf-8")
