"""The files behind the fetchers: name, checksum and public address of each.

None of them is part of the package. They are research files without a licence of their own, read
from the user's data folder or downloaded there from the commit named here.
"""

from transferable.datasets._files import DataFile

_JDA = "https://raw.githubusercontent.com/AngryCarrot/JDA/12167daf32b01a07b85fdfa3db57a42b3be7eefe"
_SCSL = "https://raw.githubusercontent.com/zzf495/SCSL/a8c5c28d85563fc73c0e3431a089c5396a56bf99"
_USPS = (
    "https://raw.githubusercontent.com/niuers/Learning-From-Data-A-Short-Course/"
    "879a698b960e5867f7c2b11f8938fa89c3d21839"
)
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"


def _public(folder: str, name: str, sha256: str, address: str) -> DataFile:
    return DataFile(f"{folder}/{name}", sha256, f"{address}/{name}")


def _private(folder: str, name: str, sha256: str | None = None) -> DataFile:
    return DataFile(f"{folder}/{name}", sha256)


OFFICE_CALTECH = {
    "surf": {
        "C": _public(
            "office_caltech10_surf",
            "Caltech10_SURF_L10.mat",
            "4f9334c8ced489d5054de97a5fd51a61f017f3bcd1f38c9a85c6d78cb9d7bda5",
            f"{_JDA}/data",
        ),
        "A": _public(
            "office_caltech10_surf",
            "amazon_SURF_L10.mat",
            "df32548b994e18d364c99e1f317e1fae100597259f0423a41b90f4f68187bb1f",
            f"{_JDA}/data",
        ),
        "W": _public(
            "office_caltech10_surf",
            "webcam_SURF_L10.mat",
            "a6a9c78b4b7181dfbb58bcfd351d4ebd737f171c31247b8884948aa156d3f700",
            f"{_JDA}/data",
        ),
        "D": _public(
            "office_caltech10_surf",
            "dslr_SURF_L10.mat",
            "44d673c68e1d07b837893aa74dba3b986e4a6cc3fd66f0dd357683bdef059216",
            f"{_JDA}/data",
        ),
    },
    # Two of the DeCAF6 files have neither an address nor a known checksum: their shape is checked.
    "decaf6": {
        "C": _private("office_caltech10_decaf6", "caltech_decaf.mat"),
        "A": _private("office_caltech10_decaf6", "amazon_decaf.mat"),
        "W": _public(
            "office_caltech10_decaf6",
            "webcam_decaf.mat",
            "e42207580fb1fadd3adba2504e1d8cff9620f464fca7536f9d7093f84c1459a3",
            f"{_SCSL}/data",
        ),
        "D": _public(
            "office_caltech10_decaf6",
            "dslr_decaf.mat",
            "42443f5e82e98cbe6304cacdba905e24c8430ed977b3d6b7b279f088b76e108f",
            f"{_SCSL}/data",
        ),
    },
    "efficientnet-lite0": {
        "C": _private(
            "office_caltech10_effnet_lite0",
            "caltech10_effnet_lite0.mat",
            "907970e9b7568b1da1de887672362fa10dd1b896c4e98aa4b448656eab5032cb",
        ),
        "A": _private(
            "office_caltech10_effnet_lite0",
            "amazon_effnet_lite0.mat",
            "6ea894d8b110988ccae261f6e798c28aee88a4b9069e30ab7dfa60504d38dae3",
        ),
        "W": _private(
            "office_caltech10_effnet_lite0",
            "webcam_effnet_lite0.mat",
            "5dac5749a52ae5e5156858a84c402d17a9d9fa9259ca1db5329a16526abf7a6f",
        ),
        "D": _private(
            "office_caltech10_effnet_lite0",
            "dslr_effnet_lite0.mat",
            "16463ee1869984c9a0296ec9d5e1c20a96c713d9bca1a818c1e86da1c404107a",
        ),
    },
}

COIL20 = _public(
    "coil20",
    "COIL_1.mat",
    "5001c5bcef8d95217d66a08bdccbcaae2bc8cd3142540ed4ec38ca0796342534",
    f"{_JDA}/data",
)

MNIST_USPS = _public(
    "mnist_usps",
    "USPS_vs_MNIST.mat",
    "77d2df99e2aab8a722c8d4ff7c93a92d8b29d409a065f12e972168d1089e2971",
    f"{_JDA}/data",
)

USPS = _public(
    "usps_full",
    "usps.h5",
    "734f88c541104a956d88be2c95d03b4a463ffd74ccc2ba9c80841fb98e3fcb36",
    f"{_USPS}/data",
)

# (images, labels) of the 60,000 and of the 10,000; the checksums are of the unpacked content.
MNIST = (
    (
        _public(
            "mnist_full",
            "train-images-idx3-ubyte.gz",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            _MNIST,
        ),
        _public(
            "mnist_full",
            "train-labels-idx1-ubyte.gz",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            _MNIST,
        ),
    ),
    (
        _public(
            "mnist_full",
            "t10k-images-idx3-ubyte.gz",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            _MNIST,
        ),
        _public(
            "mnist_full",
            "t10k-labels-idx1-ubyte.gz",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            _MNIST,
        ),
    ),
)
