"""Deep methods of domain adaptation under the library's contract.

Every method is an estimator like the others: ``fit``, ``adapt``, ``predict``, ``transform`` (the
learnt features). They need torch and safetensors, the extra ``deep``.
"""

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"transferable.deep needs {error.name}, which is not installed: pip install "
        '"transferable[deep]"'
    ) from error

from transferable.deep.adabn import AdaBN
from transferable.deep.adda import ADDA
from transferable.deep.augment import RandomAffine
from transferable.deep.cdan import CDAN
from transferable.deep.cmd import CMD
from transferable.deep.coral import DeepCORAL
from transferable.deep.dan import DAN
from transferable.deep.dann import DANN
from transferable.deep.ddc import DDC
from transferable.deep.jdda import JDDA
from transferable.deep.mcc import MCC
from transferable.deep.mcd import MCD
from transferable.deep.source_only import SourceOnly
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
    "DeepCORAL",
    "DeepTFDF",
    "RandomAffine",
    "SourceOnly",
]
