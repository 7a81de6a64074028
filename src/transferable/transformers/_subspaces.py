"""What the methods that compare the domains' principal subspaces share."""

from __future__ import annotations

from numbers import Integral

from transferable._sklearn import Interval
from transferable.domains import Domains, Reordered
from transferable.engines.spectral.components import warn_if_reduced
from transferable.linalg.eigen import Matrix
from transferable.linalg.grassmann import basis_of_moments, common_rank, principal_bases
from transferable.linalg.moments import moments_of_blocks
from transferable.transformers._blocks import BlockwiseTransformer, domain_tables

__all__ = ["SubspaceTransformer"]

_DEFAULT_COMPONENTS = 20


class SubspaceTransformer(BlockwiseTransformer):
    """Base of GFK and subspace alignment: a principal basis of each domain."""

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _bases(self, domains: Domains) -> tuple[Matrix, Matrix]:
        """Bases of source and target; without a target, twice the source's."""
        wanted = _DEFAULT_COMPONENTS if self.n_components is None else self.n_components
        if isinstance(domains.X, Reordered):
            moments = (moments_of_blocks(t, slice(0, t.n)) for t in domain_tables(domains))
            Ps, Pt = common_rank(*(basis_of_moments(m, wanted) for m in moments))
        else:
            Xt = domains.Xt if domains.n_target else domains.Xs
            Ps, Pt = principal_bases(domains.Xs, Xt, wanted)
        if Ps.shape[1] == 0:
            raise ValueError(
                f"{type(self).__name__} needs rows that vary in both domains; the "
                f"{domains.n_source} source rows or the {domains.n_target} target rows do not."
            )
        warn_if_reduced(self.n_components, Ps.shape[1])
        return Ps, Pt
