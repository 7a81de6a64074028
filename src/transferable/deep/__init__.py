"""Deep methods of domain adaptation under the library's contract.

Every method is an estimator like the others: ``fit``, ``adapt``, ``predict``, ``transform`` (the
learnt features). They need torch and safetensors, the extra ``deep``.
"""

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    from transferable.exceptions import installing

    raise ImportError(
        f"transferable.deep needs {error.name}, which is not installed: {installing('deep')}"
    ) from error

from transferable.deep._data import RandomAffine
from transferable.deep._training import Batch, Training
from transferable.deep.adversarial import ADDA, CDAN, DANN, MCD
from transferable.deep.base import AdaBN, PenalisedClassifier, SourceOnly
from transferable.deep.penalties import CMD, DAN, DDC, JDDA, MCC, DeepCORAL
from transferable.deep.tfdf import DeepTFDF

__all__ = [
    "ADDA",
    "CDAN",
    "CMD",
    "DAN",
    "DANN",
    "DDC",
    "JDDA",
    "MCC",
    "MCD",
    "AdaBN",
    "Batch",
    "DeepCORAL",
    "DeepTFDF",
    "PenalisedClassifier",
    "RandomAffine",
    "SourceOnly",
    "Training",
]
