"""Methods that learn a classifier for the target domain."""

from transferable.classifiers.adapted import AdaptedClassifier
from transferable.classifiers.auto_adapter import AutoAdapter
from transferable.classifiers.capls import CAPLS, SPL
from transferable.classifiers.dasvm import DASVM
from transferable.classifiers.easytl import EasyTL
from transferable.classifiers.importance_weighted import ImportanceWeighted
from transferable.classifiers.jdot import JDOTClassifier
from transferable.classifiers.meda import ARTL, MEDA
from transferable.classifiers.propagation import LabelPropagation
from transferable.classifiers.self_training import SelfTraining
from transferable.classifiers.tfdf import TFDF, TFDFV
from transferable.classifiers.tradaboost import TrAdaBoost

__all__ = [
    "ARTL",
    "CAPLS",
    "DASVM",
    "MEDA",
    "SPL",
    "TFDF",
    "TFDFV",
    "AdaptedClassifier",
    "AutoAdapter",
    "EasyTL",
    "ImportanceWeighted",
    "JDOTClassifier",
    "LabelPropagation",
    "SelfTraining",
    "TrAdaBoost",
]
