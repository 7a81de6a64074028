"""Every penalty against its printed formula in double precision, and its slope."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

from transferable.deep.adversarial import (
    discrepancy,
    domain_loss,
    joint_features,
    reversal,
    reversal_strength,
)
from transferable.deep.penalties import (
    class_confusion,
    covariance_distance,
    kernel_distance,
    mean_distance,
    moment_distance,
    pair_margins,
)
from transferable.deep.tfdf import information

RNG = np.random.default_rng(0)
FS, FT = RNG.normal(size=(7, 4)), RNG.normal(size=(5, 4)) + 0.5
ZS, ZT = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 3))
Y = np.array([0, 1, 2, 0, 1, 2, 2])
FACTORS = (0.25, 1.0, 4.0)
SHARES = np.array([0.5, 0.3, 0.2])


def ddc(fs, ft):
    return np.sum((fs.mean(axis=0) - ft.mean(axis=0)) ** 2)


def coral(fs, ft):
    difference = np.cov(fs, rowvar=False) - np.cov(ft, rowvar=False)
    return np.sum(difference**2) / (4 * fs.shape[1] ** 2)


def mmd(fs, ft):
    rows = np.vstack([fs, ft])
    d2 = np.array([[np.sum((a - b) ** 2) for b in rows] for a in rows])
    n, m = len(rows), len(fs)
    mean = d2.sum() / (n * (n - 1))
    K = np.mean([np.exp(-d2 / (factor * mean)) for factor in FACTORS], axis=0)
    return K[:m, :m].mean() + K[m:, m:].mean() - 2 * K[:m, m:].mean()


def cmd(fs, ft):
    ms, mt = fs.mean(axis=0), ft.mean(axis=0)
    total = np.linalg.norm(ms - mt)
    for k in range(2, 6):
        cs, ct = ((fs - ms) ** k).mean(axis=0), ((ft - mt) ** k).mean(axis=0)
        total += np.linalg.norm(cs - ct)
    return total


def mcd(z1, z2):
    return np.abs(softmax(z1, axis=1) - softmax(z2, axis=1)).mean()


# Of two samples: what we have, the formula, and two samples to compare.
PAIRS = {
    "DDC": (mean_distance, ddc, FS, FT),
    "DeepCORAL": (covariance_distance, coral, FS, FT),
    "DAN": (lambda a, b: kernel_distance(a, b, FACTORS), mmd, FS, FT),
    "CMD": (lambda a, b: moment_distance(a, b, 5), cmd, FS, FT),
    "MCD": (discrepancy, mcd, ZS, ZT),
}
pairs = pytest.mark.parametrize(("ours", "printed", "a", "b"), PAIRS.values(), ids=PAIRS)


def tensor(values, slope=False):
    return torch.tensor(values, dtype=torch.float64, requires_grad=slope)


@pairs
def test_two_samples_as_printed(ours, printed, a, b):
    value = float(ours(tensor(a), tensor(b)))
    assert value == pytest.approx(printed(a, b), rel=1e-5)
    assert value > 1e-3


@pairs
def test_slopes_by_finite_differences(ours, printed, a, b):
    if printed is mmd:  # its bandwidth follows the rows and, as published, carries no slope
        rows = np.vstack([a, b])
        n = len(rows)
        mean = ((rows[:, None] - rows[None]) ** 2).sum() / (n * (n - 1))
        x, y = tensor(a, slope=True), tensor(b)
        ours(x, y).backward()
        expected = np.zeros_like(a)
        for i in np.ndindex(a.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = a.copy()
                moved[i] += step
                both = np.vstack([moved, b])
                d2 = ((both[:, None] - both[None]) ** 2).sum(axis=2)
                K = np.mean([np.exp(-d2 / (f * mean)) for f in FACTORS], axis=0)
                m = len(a)
                sides.append(K[:m, :m].mean() + K[m:, m:].mean() - 2 * K[:m, m:].mean())
            expected[i] = (sides[0] - sides[1]) / 2e-6
        np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-8)
    else:
        assert torch.autograd.gradcheck(ours, (tensor(a, slope=True), tensor(b, slope=True)))


@pairs
def test_nothing_between_a_sample_and_itself(ours, printed, a, b):
    x = tensor(a, slope=True)
    value = ours(x, tensor(a))
    assert value.item() == pytest.approx(0.0, abs=1e-12)
    value.backward()
    assert torch.isfinite(x.grad).all()


@pairs
def test_the_order_of_a_batch_does_not_matter(ours, printed, a, b):
    order = RNG.permutation(len(a))
    other = order if printed is mcd else RNG.permutation(len(b))  # MCD compares row by row
    shuffled = float(ours(tensor(a[order]), tensor(b[other])))
    assert shuffled == pytest.approx(float(ours(tensor(a), tensor(b))), rel=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_class_confusion_as_printed(temperature):
    P = softmax(ZT / temperature, axis=1)
    H = -(P * np.log(P)).sum(axis=1)
    w = 1 + np.exp(-H)
    W = np.diag(len(P) * w / w.sum())
    C = P.T @ W @ P
    C = C / C.sum(axis=1, keepdims=True)
    expected = (C.sum() - np.trace(C)) / 3
    assert float(class_confusion(tensor(ZT), temperature)) == pytest.approx(expected)
    order = RNG.permutation(len(ZT))
    assert float(class_confusion(tensor(ZT[order]), temperature)) == pytest.approx(expected)


def test_the_weights_of_class_confusion_carry_no_slope():
    z = tensor(ZT, slope=True)
    class_confusion(z, 2.5).backward()
    P = softmax(ZT / 2.5, axis=1)
    w = 1 + np.exp((P * np.log(P)).sum(axis=1))
    w = len(P) * w / w.sum()

    def fixed(scores):
        P = torch.softmax(scores / 2.5, dim=1)
        C = (torch.tensor(w)[:, None] * P).T @ P
        C = C / C.sum(dim=1, keepdim=True)
        return (C.sum() - C.trace()) / 3

    again = tensor(ZT, slope=True)
    fixed(again).backward()
    np.testing.assert_allclose(z.grad, again.grad)
    assert torch.autograd.gradcheck(fixed, tensor(ZT, slope=True))


def test_certain_predictions_are_not_confused():
    sure = 100 * np.eye(3)[[0, 1, 2, 1]]
    assert float(class_confusion(tensor(sure), 2.5)) == pytest.approx(0.0, abs=1e-12)


def test_pairs_as_printed():
    expected = []
    for i in range(len(FS)):
        for j in range(len(FS)):
            D = np.sum((FS[i] - FS[j]) ** 2)
            same = Y[i] == Y[j]
            expected.append(max(0, D - 0.5) ** 2 if same else max(0, 9.0 - D) ** 2)
    codes = torch.tensor(Y)
    ours = pair_margins(tensor(FS), codes, 0.5, 9.0)
    assert float(ours) == pytest.approx(np.mean(expected))
    assert torch.autograd.gradcheck(
        lambda f: pair_margins(f, codes, 0.5, 9.0), tensor(FS, slope=True)
    )
    order = RNG.permutation(len(FS))
    shuffled = pair_margins(tensor(FS[order]), codes[order], 0.5, 9.0)
    assert float(shuffled) == pytest.approx(float(ours))


def test_rows_at_the_margins_cost_nothing():
    f = np.repeat(10.0 * np.eye(3), 2, axis=0)  # equal within classes, squared distance 200 across
    assert float(pair_margins(tensor(f), torch.tensor([0, 0, 1, 1, 2, 2]), 0.0, 100.0)) == 0.0


def test_domain_loss_as_printed():
    a, b = FS[:, :1], FT[:, :1]
    source = np.log1p(np.exp(-a)).mean()
    target = np.log1p(np.exp(b)).mean()
    assert float(domain_loss(tensor(a), tensor(b))) == pytest.approx((source + target) / 2)
    blind = float(domain_loss(tensor(0 * a), tensor(0 * b)))
    assert blind == pytest.approx(np.log(2))  # the 0.69 that users ask about
    weights = np.arange(1.0, 13.0)
    source = np.average(np.log1p(np.exp(-a)).ravel(), weights=weights[:7])
    target = np.average(np.log1p(np.exp(b)).ravel(), weights=weights[7:])
    weighted = float(domain_loss(tensor(a), tensor(b), tensor(weights)))
    assert weighted == pytest.approx((source + target) / 2)


def test_reversal_turns_the_slope_and_nothing_else():
    x = tensor(FS, slope=True)
    out = reversal(x, 0.3)
    assert torch.equal(out, x)
    (out**2).sum().backward()
    np.testing.assert_allclose(x.grad, -0.3 * 2 * FS)
    assert reversal_strength(0.0) == 0.0
    assert reversal_strength(0.5) == pytest.approx(2 / (1 + np.exp(-5)) - 1)
    assert 0.9999 < reversal_strength(1.0) < 1.0


def test_joint_features_are_all_products():
    p = softmax(ZS, axis=1)
    f = RNG.normal(size=(6, 2))
    expected = np.stack([np.outer(p[i], f[i]).ravel() for i in range(6)])
    np.testing.assert_allclose(joint_features(tensor(f), tensor(p)), expected)


def test_information_as_printed():
    p = softmax(ZT, axis=1)
    H = -np.mean(np.sum(p * log_softmax(ZT, axis=1), axis=1))
    mean = p.mean(axis=0)
    KL = np.sum(mean * np.log(mean / SHARES))
    entropy, divergence = information(tensor(ZT), tensor(SHARES))
    assert float(entropy) == pytest.approx(H)
    assert float(divergence) == pytest.approx(KL)
    assert float(information(tensor(ZT), tensor(mean))[1]) == pytest.approx(0.0, abs=1e-12)
    for k in (0, 1):
        assert torch.autograd.gradcheck(
            lambda z, k=k: information(z, tensor(SHARES))[k], tensor(ZT, slope=True)
        )


def test_one_row_of_a_domain_has_a_finite_distance():
    one = tensor(FT[:1], slope=True)
    for ours, _, a, _ in (PAIRS[name] for name in ("DDC", "DeepCORAL", "DAN", "CMD")):
        value = ours(tensor(a), one)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(one.grad).all()
