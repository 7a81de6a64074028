"""The spectral methods against their formulas, built densely on small problems."""

import numpy as np
import pytest
from scipy.linalg import block_diag, eigh
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier

from problems import random_codes, small_problem
from transferable.classifiers import AdaptedClassifier
from transferable.domains import Domains
from transferable.transformers import BDA, JDA, JGSA, LPJT, SCA, TCA, TJM, McDA
from transferable.transformers._spectral import mean_columns

K_COMPONENTS = 3


@pytest.fixture(scope="module")
def task():
    return small_problem(seed=4, n_source=30, n_target=25, n_features=6)


def tables(task, kernel):
    """The table that W multiplies and the typical squared length of its rows, by the kernel."""
    X = np.vstack([task.Xs, task.Xt])
    if kernel is None:
        return X, np.mean(np.sum(X**2, axis=1))
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.05)
    return K, np.mean(np.diag(K)) ** 2


def outer_of_means(source, target):
    e = source / max(source.sum(), 1) - target / max(target.sum(), 1)
    return np.outer(e, e)


def mmd_matrix(ys, yt, balance=0.5, normalised=True):
    """M of JDA as printed, n x n; classes without pseudo-labels are left out."""
    n_source, n = len(ys), len(ys) + len(yt)
    on_source = np.arange(n) < n_source
    codes = np.concatenate([ys, yt])
    classes = np.unique(ys)
    M = (1 - balance) * len(classes) * outer_of_means(on_source, ~on_source)
    for c in classes:
        if (codes[n_source:] == c).any():
            M += balance * outer_of_means(on_source & (codes == c), ~on_source & (codes == c))
    return M / np.linalg.norm(M) if normalised else M


def centring(n):
    return np.eye(n) - 1.0 / n


def assert_same_span(Z, reference):
    """Columns agree up to sign and length."""
    Z, reference = Z / np.linalg.norm(Z, axis=0), reference / np.linalg.norm(reference, axis=0)
    np.testing.assert_allclose(np.abs(np.sum(Z * reference, axis=0)), 1.0, atol=1e-7)


def leading(B, A, k=K_COMPONENTS):
    values, vectors = eigh(B, A + 1e-12 * np.trace(A) / len(A) * np.eye(len(A)))
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def penultimate_labels(model, task):
    """The pseudo-labels that the last round of a model was solved with."""
    if model.n_iter_ == 1:  # they settled at once
        return model.transduction_[len(task.ys) :]
    before = type(model)(**{**model.get_params(), "max_iter": model.n_iter_ - 1})
    return before.adapt(task.Xs, task.ys, task.Xt).transduction_[len(task.ys) :]


@pytest.mark.parametrize("kernel", [None, "linear", "rbf"])
@pytest.mark.parametrize("scaling", ["unit", "constraint"])
def test_tca_solves_its_printed_problem(task, kernel, scaling):
    T, scale = tables(task, kernel)
    M = mmd_matrix(task.ys, np.full(len(task.Xt), -9), balance=0.0)
    A = T.T @ M @ T + 0.3 * scale * np.eye(T.shape[1])
    B = T.T @ centring(len(T)) @ T
    values, W = leading(B, A)
    model = TCA(K_COMPONENTS, kernel=kernel, gamma=0.05, regularization=0.3, scaling=scaling)
    Z = model.adapt(task.Xs, task.ys, task.Xt).transform(task.X)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    lengths = np.linalg.norm(W, axis=0) if scaling == "unit" else np.sqrt(values)
    np.testing.assert_allclose(np.abs(Z), np.abs(T @ (W / lengths)), atol=1e-6 * np.abs(Z).max())
    if scaling == "constraint":  # W'K H K W = I
        np.testing.assert_allclose(Z.T @ centring(len(Z)) @ Z, np.eye(K_COMPONENTS), atol=1e-8)


@pytest.mark.parametrize("kernel", [None, "linear", "rbf"])
@pytest.mark.parametrize("method", ["JDA", "BDA", "McDA"])
def test_methods_with_classes_solve_their_printed_problem(task, kernel, method):
    T, scale = tables(task, kernel)
    options = {"kernel": kernel, "gamma": 0.05, "regularization": 0.2, "max_iter": 4}
    balance = 0.8 if method == "BDA" else 0.5
    model = {
        "JDA": JDA(K_COMPONENTS, **options),
        "BDA": BDA(K_COMPONENTS, balance=0.8, **options),
        "McDA": McDA(K_COMPONENTS, second_order=0.7, **options),
    }[method]
    Z = model.adapt(task.Xs, task.ys, task.Xt).transform(task.X)
    pseudo = penultimate_labels(model, task)
    A = T.T @ mmd_matrix(task.ys, pseudo, balance) @ T + 0.2 * scale * np.eye(T.shape[1])
    if method == "McDA":
        A += 0.7 / scale * squared_covariance_differences(T, task.ys, pseudo)
    values, W = leading(T.T @ centring(len(T)) @ T, A)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7)
    assert_same_span(Z, T @ W)


def squared_covariance_differences(T, ys, yt):
    def covariance(rows):
        centred = rows - rows.mean(axis=0)
        return centred.T @ centred / len(rows)

    Ts, Tt = T[: len(ys)], T[len(ys) :]
    whole = covariance(Ts) - covariance(Tt)
    total = len(np.unique(ys)) ** 2 * whole @ whole
    for c in np.intersect1d(ys, yt):
        part = covariance(Ts[ys == c]) - covariance(Tt[yt == c])
        total += part @ part
    return total


def test_bda_is_jda_at_one_half_and_tca_at_zero(task):
    X = task.X
    bda = BDA(K_COMPONENTS, balance=0.5).adapt(task.Xs, task.ys, task.Xt)
    jda = JDA(K_COMPONENTS).adapt(task.Xs, task.ys, task.Xt)
    np.testing.assert_allclose(bda.transform(X), jda.transform(X), atol=1e-12)
    zero = BDA(K_COMPONENTS, balance=0.0).adapt(task.Xs, task.ys, task.Xt)
    tca = TCA(K_COMPONENTS).adapt(task.Xs, task.ys, task.Xt)
    np.testing.assert_allclose(zero.transform(X), tca.transform(X), atol=1e-12)


def test_class_weights_change_nothing_where_classes_are_equally_frequent():
    """With shares 1 / C everywhere the weights scale all class terms alike, as balance 1 does."""
    task = small_problem(n_source=30, n_target=30, n_features=5)

    class Truth:
        def fit(self, Z, y):
            return self

        def predict(self, Z):
            return order

        def get_params(self, deep=True):
            return {}

    stacked = np.concatenate([task.ys, task.yt])
    domains = Domains.from_stacked(task.X, stacked, np.repeat([1, -1], 30))
    order = stacked[domains.order[30:]]
    plain, weighted = (
        BDA(2, balance=1.0, class_weighted=flag, estimator=Truth()).adapt(task.Xs, task.ys, task.Xt)
        for flag in (False, True)
    )
    np.testing.assert_allclose(plain.transform(task.X), weighted.transform(task.X), atol=1e-9)


def domains_with(codes, n_source, **given):
    """A problem with these codes of its source, in whose order they are."""
    rows = np.zeros((len(codes), 1))
    return Domains(rows, codes[:n_source], np.arange(3), np.arange(len(codes)), **given)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("balance", [0.0, 0.3, 1.0])
def test_columns_of_the_means_are_those_of_the_dense_matrix(seed, balance):
    """Also with a class without target rows, and before there are pseudo-labels."""
    codes = random_codes(seed, 13, 10, 3)
    domains = domains_with(codes, 13)
    E = mean_columns(domains, codes[13:], balance)
    np.testing.assert_allclose(E @ E.T, mmd_matrix(codes[:13], codes[13:], balance), atol=1e-14)
    E = mean_columns(domains, None, balance)
    whole = mmd_matrix(codes[:13], codes[13:], balance=0.0)
    np.testing.assert_allclose(E @ E.T, whole, atol=1e-14)


def test_no_target_leaves_no_means_to_compare():
    codes = np.arange(12) % 3
    assert not mean_columns(domains_with(codes, 12), codes[12:]).any()


def test_means_of_weighted_rows_are_those_of_repeated_rows():
    codes = random_codes(0, 13, 10, 3)
    times, F = np.random.default_rng(1).integers(1, 4, 23), np.random.default_rng(2).normal(size=23)
    repeated = domains_with(np.repeat(codes, times), times[:13].sum())
    weighted = domains_with(codes, 13, weights=times.astype(float))
    expected = mean_columns(repeated, np.repeat(codes[13:], times[13:])).T @ np.repeat(F, times)
    np.testing.assert_allclose(mean_columns(weighted, codes[13:]).T @ F, expected, atol=1e-12)


def test_class_weights_are_the_roots_of_the_shares():
    codes = random_codes(0, 13, 10, 3)
    domains, source = domains_with(codes, 13), np.arange(23) < 13
    E = mean_columns(domains, codes[13:], 1.0, class_weighted=True)
    for c in (0, 1):  # the last has no target row
        s, t = source & (codes == c), ~source & (codes == c)
        expected = s / np.sqrt(13 * s.sum()) - t / np.sqrt(10 * t.sum())
        assert E[:, c + 1] @ expected == pytest.approx(
            np.linalg.norm(E[:, c + 1]) * np.linalg.norm(expected)
        )
    assert np.linalg.norm(E @ E.T) == pytest.approx(1.0)


def test_tca_reduces_the_measured_discrepancy(task):
    def discrepancy(Zs, Zt):
        spread = np.vstack([Zs, Zt]).var(axis=0).sum()
        return np.sum((Zs.mean(axis=0) - Zt.mean(axis=0)) ** 2) / spread

    model = TCA(K_COMPONENTS, regularization=1e-3).adapt(task.Xs, task.ys, task.Xt)
    after = discrepancy(model.transform(task.Xs), model.transform(task.Xt))
    assert after < 0.05 * discrepancy(task.Xs, task.Xt)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_tjm_solves_its_printed_problem(task, kernel, rounds):
    T, scale = tables(task, kernel)
    n, n_source = len(T), len(task.ys)
    M = mmd_matrix(task.ys, np.full(len(task.Xt), -9), balance=0.0)
    G = np.ones(n)
    for _ in range(rounds):
        A = T @ M @ T + 0.2 * scale * np.diag(G)
        values, W = leading(T @ centring(n) @ T, A)
        W = W / np.linalg.norm(W, axis=0)
        G[:n_source] = 1.0 / np.linalg.norm(W[:n_source], axis=1)
    model = TJM(K_COMPONENTS, kernel=kernel, gamma=0.05, regularization=0.2, max_iter=rounds)
    Z = model.adapt(task.Xs, task.ys, task.Xt).transform(task.X)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-5)
    np.testing.assert_allclose(np.abs(Z), np.abs(T @ W), atol=1e-4 * np.abs(Z).max())


def source_scatters(T, ys):
    Ts = T[: len(ys)]
    within, between = np.zeros((2, T.shape[1], T.shape[1]))
    for c in np.unique(ys):
        rows = Ts[ys == c]
        within += (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))
        step = rows.mean(axis=0) - Ts.mean(axis=0)
        between += len(rows) * np.outer(step, step)
    return within, between


def test_sca_solves_its_printed_problem(task):
    X, n, n_source = task.X, len(task.X), len(task.ys)
    scale = np.mean(np.sum(X**2, axis=1))
    within, between = source_scatters(X, task.ys)
    means = np.array([task.Xs.mean(axis=0), task.Xt.mean(axis=0)])
    domains = np.cov(means.T, bias=True)
    B = 0.7 * X.T @ centring(n) @ X / n + 0.3 * between / n_source
    A = 2.0 * domains + within / n_source + 0.1 * scale * np.eye(X.shape[1])
    values, W = leading(B, A)
    model = SCA(K_COMPONENTS, discrimination=0.3, alignment=2.0, regularization=0.1)
    Z = model.adapt(task.Xs, task.ys, task.Xt).transform(X)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    assert_same_span(Z, X @ W)


@pytest.mark.parametrize("kernel", [None, "linear"])
def test_jgsa_solves_its_printed_problem(task, kernel):
    T, scale = tables(task, kernel)
    model = JGSA(K_COMPONENTS, kernel=kernel, target_variance=0.5, discrimination=0.2, max_iter=3)
    model.adapt(task.Xs, task.ys, task.Xt)
    pseudo = penultimate_labels(model, task)
    n_source, d = len(task.ys), T.shape[1]
    within, between = source_scatters(T, task.ys)
    marginal = mmd_matrix(task.ys, pseudo, balance=0.0, normalised=False)
    M = 2 * mmd_matrix(task.ys, pseudo, normalised=False) / np.linalg.norm(marginal)
    psi = block_diag(T[:n_source], T[n_source:])
    Tt = T[n_source:] - T[n_source:].mean(axis=0)
    B = block_diag(0.2 * between, 0.5 * Tt.T @ Tt)
    penalty = np.array([[1.0, -1.0], [-1.0, 1.5]])
    A = psi.T @ M @ psi + np.kron(scale * penalty, np.eye(d))
    A[:d, :d] += 0.2 * within
    values, W = leading(B, A)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7)
    Z = model.transform(task.X, sample_domain=np.repeat([1, -1], [n_source, len(task.Xt)]))
    assert_same_span(Z, psi @ W)


def test_lpjt_with_equal_weights_solves_its_printed_problem(task):
    """One round starts from equal weights: all distances are written out pair by pair."""
    model = LPJT(K_COMPONENTS, locality=0.3, weight_share=0.5, n_neighbors=3, n_pairs=4, max_iter=1)
    Z = model.adapt(task.Xs, task.ys, task.Xt).transform(
        task.X, sample_domain=np.repeat([1, -1], [len(task.ys), len(task.Xt)])
    )
    pseudo = KNeighborsClassifier(1).fit(task.Xs, task.ys).predict(task.Xt)
    psi = block_diag(task.Xs, task.Xt)
    n_source, d = task.Xs.shape
    codes = np.concatenate([task.ys, pseudo])
    A = psi.T @ (2 * mmd_matrix(task.ys, pseudo, normalised=False)) @ psi
    # The marginal part counts C times in M of JDA and once here.
    marginal = mmd_matrix(task.ys, pseudo, balance=0.0, normalised=False)
    A -= psi.T @ (marginal * 2 / 3) @ psi
    for i in range(n_source):
        for j in np.flatnonzero(pseudo == task.ys[i]):
            step = psi[i] - psi[n_source + j]
            share = np.sum(task.ys == task.ys[i]) * np.sum(pseudo == task.ys[i])
            A += np.outer(step, step) / share
    A += 0.3 * psi.T @ plain_laplacian(nearest_same(task, codes, 3)) @ psi
    A += np.kron(np.mean(np.sum(task.X**2, axis=1)) * np.array([[1, -1], [-1, 2]]), np.eye(d))
    Tt = task.Xt - task.Xt.mean(axis=0)
    B = block_diag(np.zeros((d, d)), Tt.T @ Tt)
    B += 0.3 * psi.T @ plain_laplacian(nearest_other(task, codes, 4)) @ psi
    values, W = leading(B, A)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7)
    assert_same_span(Z, psi @ W)


def domain_distances(task):
    """Distances between rows of one domain; infinite across domains and to oneself."""
    X = task.X
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    side = np.arange(len(X)) < len(task.ys)
    D[side[:, None] != side[None]] = np.inf
    np.fill_diagonal(D, np.inf)
    return D


def nearest_same(task, codes, k):
    D = domain_distances(task)
    D[codes[:, None] != codes[None]] = np.inf
    W = np.zeros_like(D)
    for i, row in enumerate(D):
        near = [j for j in np.argsort(row)[:k] if np.isfinite(row[j])]
        W[i, near] = W[near, i] = 1.0
    return W


def nearest_other(task, codes, n_pairs):
    D = np.triu(domain_distances(task)) + np.tril(np.full((len(codes),) * 2, np.inf))
    D[codes[:, None] == codes[None]] = np.inf
    W = np.zeros_like(D)
    n_source = len(task.ys)
    for side in (slice(0, n_source), slice(n_source, None)):
        block = D[side, side]
        for flat in np.argsort(block, axis=None)[:n_pairs]:
            i, j = np.unravel_index(flat, block.shape)
            W[side, side][i, j] = W[side, side][j, i] = 1.0
    return W


def plain_laplacian(W):
    return np.diag(W.sum(axis=1)) - W


def test_landmark_weights_keep_their_mean_in_each_class(task):
    model = LPJT(K_COMPONENTS, weight_share=0.4).adapt(task.Xs, task.ys, task.Xt)
    weights = model.sample_weight_
    assert ((weights >= 0) & (weights <= 1)).all()
    for c in range(3):
        np.testing.assert_allclose(weights[: len(task.ys)][task.ys == c].mean(), 0.4, atol=1e-6)
    assert weights.std() > 0.01


def test_landmark_weights_reach_an_estimator_that_takes_them(task):
    seen = []

    class Recorder(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(sample_weight)
            return super().fit(X, y, sample_weight)

    LPJT(2, estimator=Recorder(max_iter=500), max_iter=2).adapt(task.Xs, task.ys, task.Xt)
    assert [len(weights) for weights in seen] == [len(task.ys)] * len(seen)


@pytest.mark.parametrize("kernel", [None, "linear"])
def test_lanczos_and_lapack_agree_where_both_can_solve(kernel):
    """220 features are solved by Lanczos for 5 components and by LAPACK for 90."""
    task = small_problem(n_source=150, n_target=140, n_features=220)
    few, many = (
        JDA(k, kernel=kernel, max_iter=1).adapt(task.Xs, task.ys, task.Xt) for k in (5, 90)
    )
    np.testing.assert_allclose(few.eigenvalues_, many.eigenvalues_[:5], rtol=1e-9)
    Z, reference = few.transform(task.Xt), many.transform(task.Xt)[:, :5]
    np.testing.assert_allclose(Z, reference, atol=1e-6 * np.abs(Z).max())


def test_normalised_rows_have_unit_length(task):
    Z = JDA(3, normalize=True).adapt(task.Xs, task.ys, task.Xt).transform(task.Xt)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0)


@pytest.mark.filterwarnings("ignore:.*reduced to")
@pytest.mark.parametrize("method", [JGSA, LPJT])
@pytest.mark.parametrize("n_features", [5, 10])
def test_two_maps_lose_nothing_where_features_are_few(method, n_features):
    """As many components as the two maps have would tell the domains apart, not the classes."""
    easy = [
        small_problem(seed, n_source=90, n_target=90, n_features=n_features, shift=0.3)
        for seed in range(4)
    ]
    plain, adapted, all_of_them = [], [], []
    for task in easy:
        nearest = KNeighborsClassifier(1)
        plain.append(nearest.fit(task.Xs, task.ys).score(task.Xt, task.yt))
        for n_components, scores in ((None, adapted), (2 * n_features, all_of_them)):
            model = AdaptedClassifier(method(n_components), nearest)
            scores.append(model.adapt(task.Xs, task.ys, task.Xt).score(task.Xt, task.yt))
            width = model.transformer_.transform(task.Xt).shape[1]
            assert width <= n_features if n_components is None else width > n_features
    assert np.mean(adapted) >= np.mean(plain) - 0.01
    assert np.mean(all_of_them) < np.mean(plain) - 0.02
