"""SMIC against slow versions, brute force over all clusterings, and the SMI by numerical integration."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.stats import norm
from sklearn.cluster import SpectralClustering
from sklearn.metrics.pairwise import rbf_kernel

from llpbook import smic
from llpbook.density_difference import gaussian_basis, toy_problem
from llpbook.smic import SMIC
from studies.duplessis2013 import cluster_labels


def blobs(n=40, gap=8.0, d=2, seed=0):
    """Two clusters far apart, in random order: X, y."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    return rng.normal(size=(n, d)) + gap * y[:, None], y


def rings(n=200, seed=0):
    """A small ring inside a large one: no line separates them."""
    rng = np.random.default_rng(seed)
    y, angle = np.arange(n) % 2, rng.uniform(0, 2 * np.pi, n)
    radius = np.where(y == 1, 5.0, 1.0) + 0.1 * rng.normal(size=n)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), y


def same_clusters(labels, y):
    return np.array_equal(labels, y) or np.array_equal(labels, 1 - y)


# --- the kernel --------------------------------------------------------------------------------------------


@pytest.mark.equation("eq-smic-kernel")
@pytest.mark.parametrize("t", [1, 3, 7])
def test_kernel_is_the_formula_pair_by_pair(t):
    X, _ = blobs(gap=2.0)
    kernel, scales = smic.local_scaling_kernel(X, t, smic.nearest_neighbors(X, 8))
    D, n = cdist(X, X), len(X)
    others = [np.argsort(np.where(np.arange(n) == i, np.inf, D[i])) for i in range(n)]
    slow = np.eye(n)
    for i, j in product(range(n), range(n)):
        if i != j and (j in others[i][:t] or i in others[j][:t]):
            s_i, s_j = D[i, others[i][t - 1]], D[j, others[j][t - 1]]
            slow[i, j] = np.exp(-(D[i, j] ** 2) / (2 * s_i * s_j))
    assert_allclose(kernel.toarray(), slow, atol=1e-12)
    assert_allclose(scales, [D[i, others[i][t - 1]] for i in range(n)])


def test_kernel_of_equal_instances_is_the_limit():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [3.0]])
    kernel, scales = smic.local_scaling_kernel(X, 2)
    assert_allclose(scales, [0, 0, 0, 1, 3])
    block = kernel.toarray()[:3, :3]
    assert_allclose(block, np.ones((3, 3)))
    assert np.all(kernel.toarray()[:3, 3:] == 0)


# --- eigenvectors maximize the SMI of the model ------------------------------------------------------------


@pytest.mark.equation("eq-smic-objective")
def test_objective_is_the_smi_of_the_model_on_the_sample():
    # SMI = 1/2 sum_y ∫ p(y|x)² / p(y) p(x) dx - 1/2, with p(y) = 1/c, the mean over the sample, p(y|x) = (K alpha)_y
    rng = np.random.default_rng(1)
    X, alpha = rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    K = rbf_kernel(X)
    slow = -0.5
    for i, y in product(range(9), range(3)):
        posterior = sum(alpha[j, y] * K[i, j] for j in range(9))
        slow += 0.5 * posterior**2 / (1 / 3) / 9
    assert_allclose(smic.smi_approximation(K, alpha), slow)


@pytest.mark.equation("eq-smic-eigenvectors")
def test_leading_eigenvectors_are_those_of_a_dense_solver_and_maximize():
    X, _ = blobs(n=12, gap=1.5)
    kernel, _ = smic.local_scaling_kernel(X, 9)
    values, vectors = smic.leading_eigenvectors(kernel, 3)
    all_values, all_vectors = np.linalg.eigh(kernel.toarray())
    assert_allclose(values, all_values[::-1][:3])
    overlap = np.abs(vectors.T @ all_vectors[:, ::-1][:, :3])
    assert_allclose(overlap, np.eye(3), atol=1e-10)
    assert np.all(vectors.sum(axis=0) >= 0)
    best = smic.smi_approximation(kernel, vectors)
    assert_allclose(best, 3 / (2 * 12) * np.sum(values**2) - 0.5)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.linalg.qr(vectors + rng.normal(size=(12, 3)))[0]
        assert smic.smi_approximation(kernel, other) <= best + 1e-12


def test_sign_where_the_sum_is_zero_is_that_of_the_largest_entry():
    for n in range(3, 12):  # the sum is 0 but for rounding, of either sign
        apart = np.eye(n)[0] - 1 / n
        kernel = sp.csr_array(np.eye(n) + np.outer(apart, apart))
        assert smic.leading_eigenvectors(kernel, 1)[1][0, 0] > 0


def test_lanczos_agrees_with_the_dense_solver(monkeypatch):
    X, _ = blobs(n=600, gap=3.0)
    kernel, _ = smic.local_scaling_kernel(X, 8)
    values, vectors = smic.leading_eigenvectors(kernel, 2)
    monkeypatch.setattr(smic, "DENSE", 1000)
    dense_values, dense_vectors = smic.leading_eigenvectors(kernel, 2)
    assert_allclose(values, dense_values, rtol=1e-10)
    assert_allclose(vectors, dense_vectors, atol=1e-7)


def test_no_clustering_beats_the_relaxed_maximum_and_rounding_attains_the_best():
    # A clustering is the model with alpha_y = the indicator of cluster y, scaled to length 1: orthonormal columns.
    X, y = blobs(n=12, gap=6.0, seed=3)
    kernel, _ = smic.local_scaling_kernel(X, 5)
    found = smic.smic_clusters(X, 5)
    relaxed = smic.smi_approximation(kernel, found["vectors"])

    def value(labels):
        member = np.column_stack([labels == 0, labels == 1]).astype(float)
        return smic.smi_approximation(kernel, member / np.sqrt(member.sum(axis=0)))

    every = [np.array((0, *bits)) for bits in product((0, 1), repeat=11) if any(bits)]
    values = np.array([value(labels) for labels in every])
    assert values.max() <= relaxed + 1e-12
    assert same_clusters(every[values.argmax()], y)
    assert same_clusters(found["labels"], y)
    assert_allclose(value(found["labels"]), values.max())
    assert values.max() > np.sort(values)[-2] + 1e-6


@pytest.mark.equation("eq-smic-assign")
def test_scores_by_hand():
    vectors = np.array([[0.6, -0.1], [0.2, 0.3], [0.2, 0.7], [-0.4, -0.2]])
    scores = smic.cluster_scores(vectors, vectors)
    assert_allclose(scores, [[0.6, 0], [0.2, 0.3], [0.2, 0.7], [0, 0]])
    X = np.array([[0.0], [1.0], [2.0], [2.2]])
    labels, filled = smic.assign_clusters(scores, X)
    assert_array_equal(labels, [0, 1, 1, 1])  # the last joins the third
    assert_allclose(filled[3], filled[2])
    tiny = smic.cluster_scores(np.array([[5.9e-11, 0], [6.1e-11, 0]]), vectors)
    assert tiny[0, 0] == 0 < tiny[1, 0]  # 0 ends at 1e-10 of the largest entry


def test_unclaimed_join_the_nearest_claimed_wherever_they_stand():
    X = np.array([[2.2], [0.0], [9.0], [2.0], [9.5]])
    scores = np.array([[0, 0], [0.6, 0], [0, 0], [0, 0.7], [0.1, 0]])
    labels, filled = smic.assign_clusters(scores, X)
    assert_array_equal(labels, [1, 0, 0, 1, 0])
    assert_allclose(filled[[0, 2]], scores[[3, 4]])


def test_extension_is_the_sum_over_neighbors():
    X, _ = blobs(gap=2.0)
    new = blobs(n=15, gap=2.0, seed=5)[0]
    t = 4
    found = smic.smic_clusters(X, t)
    phi, lam, s = found["vectors"], found["values"], found["scales"]
    outputs, nearest, equal = smic.extend(np.vstack([new, X[:3]]), X, t, s, lam, phi)
    for k, x in enumerate(new):
        D = np.linalg.norm(X - x, axis=1)
        own = np.sort(D)[t - 1]
        slow = np.zeros(2)
        for i in range(len(X)):
            if D[i] <= own or D[i] <= s[i]:
                slow += np.exp(-(D[i] ** 2) / (2 * own * s[i])) * phi[i] / lam
        assert_allclose(outputs[k], slow, atol=1e-12)
        assert nearest[k] == D.argmin()
    assert_array_equal(equal, [False] * 15 + [True] * 3)
    kernel, _ = smic.local_scaling_kernel(X, t)
    assert_allclose(kernel @ phi / lam, phi, atol=1e-10)  # on the sample it is exact


# --- least-squares mutual information ----------------------------------------------------------------------


def gaussians(n, gap, seed=0, share=0.5):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < share * n).astype(int)
    return rng.normal(size=(n, 1)) + gap * y[:, None], y


def true_smi(gap, share=0.5):
    """1/2 sum_y p(y) ∫ p(x|y)² / p(x) dx - 1/2."""
    prior = [1 - share, share]

    def marginal(x):
        return sum(p * norm.pdf(x, gap * y) for y, p in enumerate(prior))

    def integrand(x):
        return sum(p * norm.pdf(x, gap * y) ** 2 for y, p in enumerate(prior))

    return 0.5 * quad(lambda x: integrand(x) / marginal(x), -9, 9 + gap)[0] - 0.5


@pytest.mark.equation("eq-smic-lsmi")
@pytest.mark.parametrize(
    ("gap", "share"), [(0.0, 0.5), (1.0, 0.5), (2.0, 0.5), (2.0, 0.2), (12.0, 0.5)]
)
def test_lsmi_is_near_the_true_smi(gap, share):
    X, y = gaussians(2000, gap, share=share)
    truth = true_smi(gap, share)
    if gap == 12.0:
        assert_allclose(truth, 0.5, atol=1e-6)  # (c - 1) / 2 for clusters apart
    assert_allclose(smic.lsmi(X, y, random_state=0)[0], truth, atol=0.02)


def test_lsmi_without_penalty_is_the_other_estimate():
    X, y = gaussians(60, 2.0)
    rng = np.random.RandomState(3)
    value, *chosen = smic.lsmi(X, y, [1.0], [1e-9], n_centers=6, random_state=3)
    assert chosen == [1.0, 1e-9]
    order = np.argsort(X[:, 0])
    X, y, centers = X[order], y[order], np.sort(rng.permutation(60)[:6])
    half = 0.0
    for k in (0, 1):
        phi = gaussian_basis(X, X[centers[y[centers] == k]], 1.0)
        H, h = smic.lsmi_moments(*smic.lsmi_sums(phi, y == k))
        half += 0.5 * h @ np.linalg.solve(H + 1e-9 * np.eye(len(h)), h)
    assert_allclose(value, half - 0.5, atol=1e-6)


def test_weights_solve_the_normal_equations_and_minimize_the_loss():
    rng = np.random.default_rng(0)
    A, h, lam = rng.normal(size=(5, 8)), rng.normal(size=5), 0.3
    H = A @ A.T
    theta = smic.lsmi_weights(H, h, lam)
    assert_allclose(H @ theta + lam * theta, h)

    def penalized(w):
        return smic.lsmi_loss(w, H, h) + lam / 2 * w @ w

    assert_allclose(smic.lsmi_loss(theta, H, h), theta @ H @ theta / 2 - h @ theta)
    for _ in range(50):
        assert penalized(theta + 0.1 * rng.normal(size=5)) > penalized(theta)


def test_cross_validation_against_a_loop():
    X, y = gaussians(50, 1.5)
    phi, member = gaussian_basis(X, X[y == 1][:7], 0.8), y == 1
    folds, lams = np.random.default_rng(2).permutation(50) % 5, np.array([0.01, 1.0])
    slow = np.zeros(2)
    for fold, (k, lam) in product(range(5), enumerate(lams)):
        inside, held = folds != fold, folds == fold
        n, m = inside.sum(), held.sum()
        H = member[inside].sum() / n**2 * phi[inside].T @ phi[inside]
        h = phi[inside & member].sum(axis=0) / n
        theta = np.linalg.solve(H + lam * np.eye(7), h)
        H = member[held].sum() / m**2 * phi[held].T @ phi[held]
        h = phi[held & member].sum(axis=0) / m
        slow[k] += (theta @ H @ theta / 2 - h @ theta) / 5
    assert_allclose(smic.lsmi_cv(phi, member, folds, lams), slow)


def test_five_folds_and_the_defaults_of_lsmi():
    rng, X = np.random.RandomState(3), np.random.default_rng(0).normal(size=(30, 1))
    X = np.sort(X, axis=0)
    y = (X[:, 0] > 0.3).astype(int)
    rng.permutation(30)  # the centers, here all instances
    folds, lams, found = rng.permutation(30) % 5, np.array(smic.LAMS), []
    for sigma in np.multiply(smic.SIGMAS, smic.median_distance(X)):
        phi = gaussian_basis(X, X, sigma)
        sides = [(phi[:, y == k], y == k) for k in (0, 1)]
        loss = sum(smic.lsmi_cv(*side, folds, lams) for side in sides)
        found.append((loss.min(), sigma, lams[loss.argmin()]))
    assert_allclose(smic.lsmi(X, y, random_state=3)[1:], min(found)[1:])


def test_lsmi_ignores_names_and_order_and_survives_a_cluster_without_center():
    X, y = gaussians(80, 2.0)
    value = smic.lsmi(X, y, random_state=0)
    order = np.random.default_rng(1).permutation(80)
    assert_allclose(smic.lsmi(X[order], y[order], random_state=0), value)
    assert_allclose(smic.lsmi(X, 7 - 3 * y, random_state=0), value)
    single = np.zeros(80, dtype=int)
    single[0] = 1
    assert np.isfinite(smic.lsmi(X, single, n_centers=5, random_state=0)[0])


def test_selection_takes_the_largest_lsmi():
    X, y = rings()
    t, found, table = smic.select_neighbors(X, random_state=0)
    assert list(table.columns) == ["n_neighbors", "score"]
    values = dict(table.itertuples(index=False, name=None))
    assert list(values) == list(range(1, 11))
    assert t == min(k for k in values if values[k] == max(values.values()))
    for k in (1, t, 10):  # clusters of the same sizes as those of t, but not the same
        labels = smic.smic_clusters(X, k)["labels"]
        assert_allclose(values[k], smic.lsmi(X, labels, random_state=0)[0])
    assert same_clusters(found["labels"], y)
    assert not same_clusters(cluster_labels(X, "k-means", 0), y)
    model = SMIC([3, 8], random_state=10).fit(X[:40], np.arange(40) // 2 % 2)
    expected = smic.select_neighbors(X[:40], [3, 8], random_state=10)[2]
    assert_allclose(model.cv_results_, expected)
    few = SMIC(random_state=0).fit(X[:5], [0, 0, 0, 1, 1])
    assert few.cv_results_["n_neighbors"].max() == 4


# --- the estimator -----------------------------------------------------------------------------------------


def test_naming_takes_the_smaller_proportion_error():
    rng = np.random.default_rng(0)
    for _ in range(50):
        second, in_p = rng.random(20) < 0.5, np.arange(20) < 7
        theta = rng.random(2)
        shares = [(s[in_p].mean(), s[~in_p].mean()) for s in (~second, second)]
        error = np.abs(shares - theta) @ [7, 13]
        best = smic.name_clusters(second, in_p, theta, (7, 13))
        assert error[best] <= min(error) + 2e-5 * 20
    half = np.array([1, 0, 1, 0], bool), np.array([1, 1, 0, 0], bool)
    for off in (0, 1e-6, -1e-6):  # a tie goes to the second; rounding decides nothing
        assert smic.name_clusters(*half, (0.8 + off, 0.2), (2, 2)) == 1


@pytest.mark.filterwarnings("ignore:the shares of the two samples")
def test_pools_of_unequal_size_weigh_in_the_naming():
    X = np.concatenate([np.linspace(0, 1, 7), np.linspace(20, 21, 7)])[:, None]
    bags = np.repeat([0, 1], [2, 12])
    model = SMIC(4).fit(X, bags, [0.6, 0.55])
    # The low cluster has all of 2 and 5 of 12: its error 2 * .4 + 12 * .13 = 2.4, that of the high one
    # 2 * .6 + 12 * .03 = 1.6. Without weights .53 and .63: the low one.
    assert_array_equal(model.predict(X), np.repeat([0, 1], 7))
    # Without shares class 1 has the larger share in the first bag, whatever the sizes: .8 of 5, .7 of 50.
    X = np.concatenate([np.linspace(0, 1, 16), np.linspace(20, 21, 39)])[:, None]
    bags = np.isin(np.arange(55), [0, 16, 20, 30, 40], invert=True)
    assert_array_equal(SMIC(4).fit(X, bags).predict(X), np.repeat([0, 1], [16, 39]))


@pytest.mark.parametrize("n_neighbors", ["cv", 6])
def test_two_blobs_exactly(n_neighbors):
    X, y = blobs(n=60)
    bags = np.where(np.random.default_rng(1).random(60) < 0.2 + 0.6 * y, 0, 1)
    model = SMIC(n_neighbors, random_state=0)
    assert_array_equal(model.fit(X, bags).predict(X), y)  # class 1 is more in bag 0
    assert_array_equal(model.fit(X, 1 - bags).predict(X), 1 - y)
    p = np.array([y[bags == b].mean() for b in (0, 1)])
    for named in (p, 1 - p):
        predicted = model.fit(X, bags, named).predict(X)
        assert_array_equal(predicted, y if named is p else 1 - y)
    new, y_new = blobs(n=100, seed=9)
    assert_array_equal(SMIC(random_state=0).fit(X, bags, p).predict(new), y_new)


def test_training_instances_keep_their_cluster_and_others_do_not_matter():
    X, _, bags = toy_problem(1, n=40, random_state=2)
    model = SMIC(7).fit(X, bags)
    scores = model.decision_function(X)
    order = np.lexsort(X.T[::-1])
    own = model.cluster_scores_ @ np.where(np.arange(2) == model.positive_, 1, -1)
    assert_allclose(scores[order], own)
    alone = [model.decision_function(x[None])[0] for x in X[:5] + 0.05]
    assert_allclose(alone, model.decision_function(X[:5] + 0.05))
    outputs = smic.extend(
        X + 0.05 - model.origin_, model.X_fit_, model.n_neighbors_, model.scales_,
        model.eigenvalues_, model.eigenvectors_,
    )[0]  # fmt: skip
    shares = np.maximum(outputs, 0) / np.maximum(model.eigenvectors_, 0).sum(axis=0)
    slow = shares[:, model.positive_] - shares[:, 1 - model.positive_]
    claimed = outputs.max(axis=1) > 1e-6
    assert claimed.sum() > 40
    assert_allclose(model.decision_function(X + 0.05)[claimed], slow[claimed])
    far = model.decision_function(np.array([[100.0, 100.0]]))  # no cluster claims it
    assert far[0] == scores[X.sum(axis=1).argmax()] != 0


def test_equal_instances_and_tiny_samples_are_fitted():
    X = np.repeat([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0], [9.1, 9.0]], 4, axis=0)
    model = SMIC(random_state=0).fit(X, np.arange(16) % 2)
    assert same_clusters(model.predict(X), (np.arange(16) >= 8).astype(int))
    four = SMIC(random_state=0).fit([[0.0], [1.0], [8.0], [9.5]], [0, 0, 1, 1])
    assert_array_equal(four.predict([[0.0], [1.0], [8.0], [9.5]]), [1, 1, 0, 0])
    with pytest.raises(ValueError, match=r"n_neighbors must be whole .* 4, got 4"):
        SMIC(4).fit([[0.0], [1.0], [8.0], [9.0]], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"n_neighbors .* 16, got \[2, 2.5\]"):
        SMIC([2, 2.5]).fit(X, np.arange(16) % 2)


# --- the other clusterings ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("method", ["k-means", "spectral"])
def test_cluster_labels(method):
    X, y = blobs(n=50, gap=5.0)
    labels = cluster_labels(X, method, 0)
    assert same_clusters(labels, y)
    order = np.random.default_rng(0).permutation(50)
    assert_array_equal(cluster_labels(X[order], method, 0), labels[order])


def test_six_others_are_the_seven_of_scikit_learn():
    X, _, _ = toy_problem(1, n=30, random_state=1)
    own = SpectralClustering(
        2, affinity="nearest_neighbors", n_neighbors=7, random_state=0,
        eigen_solver="arpack",
    ).fit_predict(X)  # fmt: skip
    assert same_clusters(cluster_labels(X, "spectral", 0, n_neighbors=6), own)
