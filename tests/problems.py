"""Small random adaptation problems, and the steps of a kernel classifier one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils import Bunch

from transferable import TFDF
from transferable._kernel import choose
from transferable._kernel.class_shares import LabelRule
from transferable._kernel.rounds import Rounds
from transferable._kernel.solvers import ExactSolver, PseudoLabels, landmark_solver
from transferable.classifiers.published import PublishedTFDF
from transferable.domains import Domains
from transferable.testing import small_problem as small_problem


def random_codes(seed: int, n_source: int, n_target: int, n_classes: int) -> np.ndarray:
    """Class codes, source rows first; the last class has no target row, the others have some."""
    rng = np.random.default_rng(seed)
    source = np.concatenate(
        [np.arange(n_classes), rng.integers(n_classes, size=n_source - n_classes)]
    )
    target = np.concatenate(
        [np.arange(n_classes - 1), rng.integers(n_classes - 1, size=n_target - n_classes + 1)]
    )
    return np.concatenate([source, target])


def domains_of(p: Bunch) -> Domains:
    """The rows of a problem in canonical order, those of the target without labels."""
    return Domains.from_stacked(p.X, np.r_[p.ys, np.full(len(p.yt), -1)])


def rounds_of(model, domains: Domains, target=None, **terms) -> Rounds:
    """Rounds of a kernel classifier before the first is made, from the source's labels or given.

    `terms` replace lists of its objective.
    """
    problem = choose.parameters(model, domains)
    objective = replace(model._objective(problem), **terms)
    make = ExactSolver if problem.nystrom is None else landmark_solver
    solver = make(problem, objective.fixed)
    d, plain = problem.domains, LabelRule(np.zeros(domains.n_classes))
    first = solver.label(*solver.source_only(), plain)
    if target is not None:
        first = PseudoLabels(target, np.bincount(target, d.weights[d.target], d.n_classes))
    return Rounds(solver, objective, first, plain, d.prior)


def made(rounds: Rounds) -> Rounds:
    """The rounds after one more, the labels it began with bound still."""
    rounds.run(1)
    return rounds


def published(**settings) -> PublishedTFDF:
    """TFDF with its defaults, made as the paper makes it where settings say so."""
    forms = {"alignment_form": "normalised", "confusion_form": "normalised"}
    ours = TFDF().get_params(deep=False) | forms | {"solver": "closed_form"}
    return PublishedTFDF(**(ours | settings))
