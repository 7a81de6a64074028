"""Methods that learn a feature space which both domains share."""

from transferable.transformers.coral import CORAL
from transferable.transformers.denoising import MarginalizedDenoising
from transferable.transformers.jda import BDA, JDA, TCA
from transferable.transformers.jgsa import JGSA
from transferable.transformers.landmark_features import LandmarkFeatures
from transferable.transformers.lpjt import LPJT
from transferable.transformers.mcda import McDA
from transferable.transformers.ot_mapping import LinearOTMapping, OTMapping
from transferable.transformers.per_domain_scaler import PerDomainScaler
from transferable.transformers.sca import SCA
from transferable.transformers.subspaces import GFK, SubspaceAlignment
from transferable.transformers.tjm import TJM

__all__ = [
    "BDA",
    "CORAL",
    "GFK",
    "JDA",
    "JGSA",
    "LPJT",
    "SCA",
    "TCA",
    "TJM",
    "LandmarkFeatures",
    "LinearOTMapping",
    "MarginalizedDenoising",
    "McDA",
    "OTMapping",
    "PerDomainScaler",
    "SubspaceAlignment",
]
