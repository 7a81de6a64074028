"""Methods that learn a classifier for the target domain."""

from transferable.classifiers.adapted import AdaptedClassifier
from transferable.classifiers.artl import ARTL
from transferable.classifiers.capls import CAPLS
from transferable.classifiers.dmm import DMM
from transferable.classifiers.meda import MEDA
from transferable.classifiers.tfdf import TFDF, TFDFV
from transferable.classifiers.tradaboost import TrAdaBoost

__all__ = ["ARTL", "CAPLS", "DMM", "MEDA", "TFDF", "TFDFV", "AdaptedClassifier", "TrAdaBoost"]
