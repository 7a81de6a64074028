"""Shapes of fitted arrays, as far as the parameters, columns and classes of a model imply them.

A shape is written like ``float[n,p]``: what the array holds ("float" finite, "int", "any", "text"
or "labels"), and its sizes. A size is p, the columns of the model; k, its classes; others, these
but one; h, the linear scores of k classes, one for two; pairs, of these; a number; ``*``, any; or a
name, whose size is the same wherever it appears in one object. ``int[n]<k`` has values from 0 up
to, but without, k. Alternatives are separated by a slash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

_ARRAY = re.compile(r"(\w+)\[(.*)\](?:<(\w+))?")
_HELD = {"float": "f", "int": "iu", "any": "biuf", "labels": "biufUO", "text": "UO"}

SHAPES = {
    name: shape
    for line in """
transduction_ labels[all]  sample_weight_ float[all]  _target_sample any[*,*]
class_shares_ float[k]  class_shares_history_ float[*,k]  prices_ float[k]  ratios float[k]
KernelMachine.rows float[r,*]  KernelMachine.coefficients float[r,k]  KernelMachine.flow float[p,*]
KernelMachine.centre float[*]  KernelMachine.offsets float[k]  KernelMachine.absent int[*]<k
anchors float[*,p]  landmarks_ float[l,p]  factor_ float[p,*]  eigenvalues_ float[d]
RowMap.coefficients float[*,*]  linear_ float[p,p]  _means float[k,p]/float[2,p]
Machines.rows float[m,p]  Machines.coefficients float[m,c]  Machines.intercepts float[c]
source_components_ float[*,p]  target_components_ float[*,p]
words_ int[w]<p  MarginalizedDenoising.means_ float[w]  Words.weights float[w]
MarginalizedDenoising.coefficients_ float[w,w]  TableEncoder.probe_ float[e]
Scales.means float[t,p]  Scales.deviations float[t,p]
Movement.rows float[m,p]  Movement.moves float[m,p]
mean float[p]  V float[p,v]  values float[v]  _shares float[r,k]  label_distributions_ float[*,k]
Consensus.tables float[c,t,k]  Consensus.P float[t,k]  Consensus.weights float[c]
Consensus.agreed float[*]  Consensus.agreement float[*]  Consensus.factors float[k]
Consensus.alone int[t]<k  Consensus.uncertainty float[t]  Consensus.known int[3,*]
Consensus.source float[s,p]  Consensus.source_labels int[s]<k  Consensus.added float[t,k]
Stack.weights float[c]  Stack.errors any[c]  Stack.tables float[c,t]  Stack.rows float[t,p]
Stack.source float[s,p]  Stack.scale float[p]  Stack.known int[m]<t  Stack.given float[m]
Correction.rows float[m,p]  Correction.answers float[m]  Correction.coefficients float[m]
Correction.left_out float[m]  Units.means float[p]  Units.deviations float[p]
LeftOutRidge.coefficients_ float[c]  LeftOutRidge.landmarks_ float[c,p]
LeftOutRidge.left_out_ float[n]
LabelPropagation._rows float[r,p]
TargetRows.places int[t]<t  TargetRows.hashes int[t]
TargetRows.near int[t,*]<t  TargetRows.gap float[t]
TargetRows.directions float[t,*]  TargetRows.lengths float[t]
""".splitlines()
    for name, shape in re.findall(r"([\w.]+) (\S+)", line)
}
"""Shapes by the name of an attribute; what is not here is compared when the model is tried."""


@dataclass
class Sizes:
    """Sizes that an object states.

    Attributes
    ----------
    p, k : int or None
        Columns and classes; those of what holds the object if it states none.
    columns : int or None
        Columns of the whole model.
    """

    p: int | None
    k: int | None
    columns: int | None = None
    _named: dict[str, int] = field(default_factory=dict, init=False)

    def fits(self, value: Any, shapes: str | None) -> bool:
        """Return whether an array has one of these shapes; others have finite numbers only."""
        if isinstance(value, list | tuple):
            return all(self.fits(part, shapes) for part in value)
        if not isinstance(value, np.ndarray) and not sp.issparse(value):
            return True
        if shapes is None:
            return value.dtype.kind != "f" or sp.issparse(value) or bool(np.isfinite(value).all())
        return any(self.has(value, shape) for shape in shapes.split("/"))

    def has(self, value: Any, shape: str) -> bool:
        """Return whether a value is an array of this shape, or a number."""
        if shape == "number":
            return isinstance(value, int | float | np.number)
        found = _ARRAY.fullmatch(shape)
        if found is None or not (isinstance(value, np.ndarray) or sp.issparse(value)):
            return False
        content, lengths, below = found.groups()
        names = lengths.split(",") if lengths else []
        if value.dtype.kind not in _HELD[content] or len(names) != value.ndim:
            return False
        known = dict(self._named)
        for name, length in zip(names, value.shape, strict=True):
            size = self._size(name, known)
            if size is None and name != "*":
                known[name] = length
            elif name != "*" and size != length:
                return False
        numbers = value.data if sp.issparse(value) else value
        if content == "float" and not np.isfinite(numbers).all():
            return False
        if below and numbers.size:
            most = self._size(below, known)
            if most is None or not 0 <= numbers.min() <= numbers.max() < most:
                return False
        self._named = known
        return True

    def _size(self, name: str, known: dict[str, int]) -> int | None:
        if name.isdigit():
            return int(name)
        if self.k is not None and name in ("k", "others", "h", "pairs"):
            k = self.k
            return {"k": k, "others": k - 1, "h": 1 if k == 2 else k, "pairs": k * (k - 1) // 2}[
                name
            ]
        return self.p if name == "p" else known.get(name)
