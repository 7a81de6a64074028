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


def _table_pair(folder: str, source: str, target: str) -> tuple[DataFile, DataFile]:
    return (
        _private(f"tables/{folder}", "source.csv", source),
        _private(f"tables/{folder}", "target.csv", target),
    )


# Pairs of ordinary tables, (source, target), by the name they are fetched by.
TABLES = {
    "adult": _table_pair(
        "adult",
        "4c0166e7e207c6fa9c7829bf6da2f23e882f7f5220daac15babdd80fbac1bf81",
        "8a4259d0c5e0f007aaadd5cef734b2a2fd864a0379ed227da6a1019b8ea4be60",
    ),
    "gas": _table_pair(
        "gas",
        "75f2b7e81b74b3c41f7b50d6cde3ad412188b9ff39b7db8966ee441bc853f3e7",
        "ee7254e41425de20516a96bd6b0e8d0cb2a2b1c6df68ef611494085cf2b174a7",
    ),
    "heart": _table_pair(
        "heart",
        "538816f7d2df484aba2229a338b12dc3283d37e9389ee2540eb2d5e3cc13fba7",
        "713025a5ad11ead96ab0687efa5294cb485a2097550f86c40a34a19cb9033f3f",
    ),
    "student": _table_pair(
        "student",
        "3360b62d2780ec1a323b6bdad6b7197fe207f4e3472e56beb870f40fd194210e",
        "a2169323bd890424efe4ec5406161ba49d8c7d4feddb705fff239a3b19d5b7aa",
    ),
    "wine": _table_pair(
        "wine",
        "5dfc438bc420c9642f3839bb0b9a8af852badcc393cbf0d25dd7cb486944db15",
        "b2d5547314fecee4ab6caa91f5a683295e0057de9aa58e3104030a7a8ae52dfd",
    ),
    "adult-edu": _table_pair(
        "more/adult-edu",
        "f6d2ff6beae7e9be9f1def20ae81fe87333b13155b0c5e2d80dfdacaa1c3a3a0",
        "5cdae27032e0b70483a544369fe805bd950118d61bc062e8692f1783b9a56e6d",
    ),
    "adult-foreign": _table_pair(
        "more/adult-foreign",
        "4d61e52f7712c877b8f2f4cfeed7bb67f8ea2174d52ab7b30f7057663b597cca",
        "d3462dacd540eb871d9acc631fa18ed8150c4055619a511fce74aec0bf18d612",
    ),
    "adult-mf": _table_pair(
        "more/adult-mf",
        "612122f57b4e73d8652ab9edcc2b0b907519a6aedcfac170823d6fef47ad57dd",
        "b144083473d48b25d0903ccb7b43f8ddeafcce83a7e14879ebcab4a07525d39e",
    ),
    "adult-young": _table_pair(
        "more/adult-young",
        "18ca8dd5d03b3a3da9d1b940977ffc8aa8596ddec4375d9bd47bf0756255e088",
        "be56ab91ed41c20909e0d37d0d1b2930808f44ccfdd45ad2d4560a0165d2f51b",
    ),
    "gas12": _table_pair(
        "more/gas12",
        "75f2b7e81b74b3c41f7b50d6cde3ad412188b9ff39b7db8966ee441bc853f3e7",
        "0e01f41903df5393255c5093707b7de2307c0559f3c0e662c54389166fafd97c",
    ),
    "gas29": _table_pair(
        "more/gas29",
        "0e01f41903df5393255c5093707b7de2307c0559f3c0e662c54389166fafd97c",
        "fc9503ff3a373eb347a214d0613c9a370273f2d056271f8d193d068735646280",
    ),
    "gas38": _table_pair(
        "more/gas38",
        "369c5467a16b2990ff0b924cb7a1ac6bd21bfbaa16eb5159308214fff29e670d",
        "6e6c7493bf83d56e67633441582f0c6bcd6f429ec2c62874a2c7bafc5340ffcd",
    ),
    "heart-hu-cl": _table_pair(
        "more/heart-hu-cl",
        "713025a5ad11ead96ab0687efa5294cb485a2097550f86c40a34a19cb9033f3f",
        "538816f7d2df484aba2229a338b12dc3283d37e9389ee2540eb2d5e3cc13fba7",
    ),
    "heart-cl-va": _table_pair(
        "more/heart-cl-va",
        "538816f7d2df484aba2229a338b12dc3283d37e9389ee2540eb2d5e3cc13fba7",
        "81451c26022d312f25660950e40c7de40ab2a4f779fcfa6f988db566a820b6c6",
    ),
    "heart-va-hu": _table_pair(
        "more/heart-va-hu",
        "81451c26022d312f25660950e40c7de40ab2a4f779fcfa6f988db566a820b6c6",
        "713025a5ad11ead96ab0687efa5294cb485a2097550f86c40a34a19cb9033f3f",
    ),
    "student-rev": _table_pair(
        "more/student-rev",
        "a2169323bd890424efe4ec5406161ba49d8c7d4feddb705fff239a3b19d5b7aa",
        "3360b62d2780ec1a323b6bdad6b7197fe207f4e3472e56beb870f40fd194210e",
    ),
    "wine-wr": _table_pair(
        "more/wine-wr",
        "b2d5547314fecee4ab6caa91f5a683295e0057de9aa58e3104030a7a8ae52dfd",
        "5dfc438bc420c9642f3839bb0b9a8af852badcc393cbf0d25dd7cb486944db15",
    ),
}
