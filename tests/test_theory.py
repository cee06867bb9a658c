"""What bags can tell: information by enumeration, its limits, and what fits to counts lose."""

from functools import reduce
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from problems import gaussian_bags
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, log_softmax, softmax
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from llpbook import theory
from llpbook._linear import bag_counts
from llpbook.base import append_one
from llpbook.baselines import BagMeanRegression
from llpbook.count_likelihood import CountLogistic
from llpbook.proportions import averaging_matrix
from llpbook.theory import label_worth
from studies import consistency


def bags(sizes, d=2, seed=0):
    """Features with a constant, weights, log-odds and what is known of the bags."""
    of = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(seed)
    Z, w = append_one(rng.normal(size=(len(of), d))), rng.normal(size=d + 1)
    return Z, w, Z @ w, bag_counts(of, np.full((len(sizes), 2), 0.5))


def slow_information(Z, f, known):
    """The variance of the mean of the score given the count, over all labelings of each bag."""
    J = 0
    for k, size in enumerate(known.sizes):
        X, s = Z[known.bags == k], expit(f[known.bags == k])
        Y = np.array(list(product([0, 1], repeat=size)))
        P, U, c = np.prod(np.where(Y, s, 1 - s), axis=1), (Y - s) @ X, Y.sum(axis=1)
        for j in range(size + 1):
            told = P[c == j] @ U[c == j] / P[c == j].sum()
            J = J + P[c == j].sum() * np.outer(told, told)
    return J


@pytest.mark.equation("eq-theory-exact")
def test_the_exact_information_is_that_over_all_labelings():
    Z, _, f, known = bags([1, 2, 3, 7])
    found = theory.count_information(Z, f, known)
    assert_allclose(found, slow_information(Z, f, known), atol=1e-12)


def test_the_information_of_several_classes_is_that_of_the_scores_of_the_counts():
    """Of rows in any order, and of frequencies; bags of a class each lose nothing."""
    rng = np.random.default_rng(0)
    n = rng.integers(1, 4, 30)
    of, Z = (
        rng.permutation(np.repeat(np.arange(3), [4, 10, 16])),
        rng.normal(size=(30, 2)),
    )
    scores, wanted = rng.normal(size=(30, 3)), 0
    S = softmax(scores, axis=1)
    single = [np.diag(s) - np.outer(s, s) for s in S]
    for k in range(3):
        rows = np.flatnonzero(of == k)
        count = sum(n[i] * single[i] for i in rows)
        mixed = sum(n[i] * np.kron(single[i], Z[i]) for i in rows)
        wanted = wanted + mixed.T @ np.linalg.pinv(count) @ mixed
    known = bag_counts(of, np.full((3, 3), 1 / 3), None, n)
    assert_allclose(theory.count_information(Z, scores, known), wanted, atol=1e-9)
    H = sum(n[i] * np.kron(single[i], np.outer(Z[i], Z[i])) for i in range(30))
    assert_allclose(theory.label_information(Z, scores, n), H)


@pytest.mark.equation("eq-theory-counts")
def test_the_formula_is_near_for_large_bags_and_the_parts_add_up():
    Z, _, f, known = bags([20, 20])
    exact, near = (theory.count_information(Z, f, known, upto) for upto in (20, 0))
    assert_allclose(near, exact, atol=0.03 * np.abs(exact).max())
    assert np.abs(near - exact).max() > 0
    Z, _, f, known = bags([3, 21, 20, 30])
    order = np.random.default_rng(1).permutation(len(f))
    mixed = theory.count_information(Z[order], f[order], known.reordered(order))
    small = np.array([True, False, True, False])
    parts = 0
    for keep, upto in ((small, 20), (~small, 0)):
        rows, part = keep[known.bags], known.part(keep)
        parts = parts + theory.count_information(Z[rows], f[rows], part, upto)
    assert_allclose(mixed, parts)


@pytest.mark.parametrize("size", [60, 240])
def test_the_second_term_of_the_formula_is_most_of_what_the_first_one_lacks(size):
    Z, _, f, known = bags([size], seed=3)
    v = expit(f) * expit(-f)
    mean = v @ Z / v.sum()
    exact, near = (theory.count_information(Z, f, known, upto) for upto in (size, 0))
    first = v.sum() * np.outer(mean, mean)
    assert np.linalg.norm(exact - near) < 3 / size * np.linalg.norm(exact - first)
    assert_allclose(near - first, exact - first, atol=0.1 * np.abs(exact - first).max())


@pytest.mark.parametrize("offset", [0, -9])
@pytest.mark.parametrize("gap", [0, 4, 8, 20])
def test_the_formula_is_never_above_the_exact_information(gap, offset):
    """Also where half of the labels of a bag are surely positive and half surely negative."""
    Z, _, f, known = bags([9, 14, 2])
    Z, f = Z.copy(), f + offset
    f += gap * np.where(np.arange(len(f)) % 2, 1, -1)
    f[-1] = 0.3 if gap else f[-1]  # in the last bag one label is uncertain
    exact, near = (theory.count_information(Z, f, known, upto) for upto in (20, 0))
    assert np.linalg.eigvalsh(exact - near).min() > -1e-9 * exact.max()
    assert_allclose(near[-1], exact[-1], rtol=1e-9)


@pytest.mark.equation("eq-theory-labels")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_information_of_labels_is_the_curvature_of_the_log_loss(n_classes):
    rng = np.random.default_rng(0)
    Z = append_one(rng.normal(size=(20, 2)))
    W = rng.normal(size=(1 if n_classes == 2 else n_classes, 3))

    def expected_loss(V):
        logs = log_softmax(with_zero(Z @ V.T), axis=1)
        return -np.sum(np.exp(log_softmax(with_zero(Z @ W.T), axis=1)) * logs)

    def with_zero(F):
        return np.column_stack([0 * F, F]) if F.shape[1] == 1 else F

    def slope(v):
        return approx_fprime(v, lambda u: expected_loss(u.reshape(W.shape)), 1e-5)

    numeric = approx_fprime(W.ravel(), slope, 1e-4)
    scores = (Z @ W.T)[:, 0] if n_classes == 2 else Z @ W.T
    found = theory.label_information(Z, scores)
    assert_allclose(found, numeric, atol=0.02)


@pytest.mark.parametrize("upto", [20, 0])
def test_nothing_of_the_offset_is_lost_and_nothing_is_gained(upto):
    Z, _, f, known = bags([1, 4, 15, 60])
    J = theory.count_information(Z, f, known, upto)
    H = theory.label_information(Z, f)
    assert_allclose(J[-1], H[-1], rtol=1e-9)
    if upto:
        assert np.linalg.eigvalsh(H - J).min() > -1e-9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bags_of_one_are_worth_their_labels(n_classes):
    X, y, _, _ = gaussian_bags(60, n_classes=n_classes)
    model = LogisticRegression(C=0.1).fit(X, y)
    worth = label_worth(X, np.arange(60), np.eye(n_classes)[y], model)
    assert_allclose(worth.spectrum, 60)
    assert worth.harmonic_mean == pytest.approx(60)
    assert worth.excess_log_loss == pytest.approx(len(worth.spectrum) / 120)
    assert np.isnan(worth.excess_error) == (n_classes == 3)


@pytest.mark.equation("eq-theory-spectrum")
def test_the_spectrum_knows_no_units_and_its_directions_solve_the_problem():
    Z, _, f, known = bags([8] * 30, d=3)
    J, H = theory.count_information(Z, f, known), theory.label_information(Z, f)
    spectrum, U = theory.worth_spectrum(J, H, 240)
    assert_allclose(J @ U, H @ U * spectrum / 240, atol=1e-9)
    assert (np.diff(spectrum) <= 0).all()
    A = np.random.default_rng(0).normal(size=(4, 4))
    turned, _ = theory.worth_spectrum(A.T @ J @ A, A.T @ H @ A, 240)
    assert_allclose(turned, spectrum)


@pytest.mark.equation("eq-theory-excess")
def test_predicted_losses_are_traces_with_the_covariance_of_the_weights():
    rng, width = np.random.default_rng(0), 4000**-0.2
    X, of = rng.normal(size=(4000, 2)), np.arange(4000) // 10
    model = LogisticRegression().fit(X, np.arange(4000) % 2)
    model.coef_, model.intercept_ = np.array([[2.0, 0.0]]), np.array([0.5])
    worth = label_worth(X, of, np.full(400, 0.5), model)
    Z, f = append_one(X), model.decision_function(X)
    J = theory.count_information(Z, f, bag_counts(of, np.full((400, 2), 0.5)))
    V, v = np.linalg.inv(J), expit(f) * expit(-f)
    log_loss = np.trace((Z.T * v) @ Z @ V) / 8000
    K = (Z.T * norm.pdf(f, scale=1.06 * f.std() * width)) @ Z / 4000
    assert worth.valid and worth.excess_log_loss == pytest.approx(log_loss)
    assert worth.harmonic_mean == pytest.approx(1.5 / log_loss)
    assert worth.excess_error == pytest.approx(np.trace(K @ V) / 4)


def test_a_pipeline_counts_for_the_features_that_its_model_sees():
    X, _, of, P = gaussian_bags(120)
    pipe = make_pipeline(StandardScaler(), CountLogistic())
    pipe.fit(X, of, countlogistic__proportions=P)
    inner = label_worth(pipe[0].transform(X), of, P, pipe[1])
    assert_allclose(label_worth(X, of, P, pipe).spectrum, inner.spectrum)
    alone = make_pipeline(LogisticRegression(fit_intercept=False)).fit(X, of % 2)
    bare = clone(alone[0]).set_params(fit_intercept=True).fit(X, of % 2)
    bare.coef_, bare.intercept_ = alone[0].coef_, 0.0
    found, wanted = (label_worth(X, of, P, model) for model in (alone, bare))
    assert_allclose(found.spectrum, wanted.spectrum)


def test_it_says_when_its_predictions_are_not_valid():
    X, y, of, P = gaussian_bags(240, d=6, size=80)
    worth = label_worth(X, of, P, LogisticRegression().fit(X, y))
    assert not worth.valid and "3 bags for 7 weights" in str(worth)
    assert "nothing about 1 of 7 directions" in str(worth)
    assert worth.harmonic_mean == pytest.approx(0, abs=1e-3)
    assert theory._doubts(np.ones(7), 70) == () != theory._doubts(np.ones(7), 69)
    for least, none in ((1e-9, 2), (1.01e-9, 0), (0.0, 2)):
        text = " ".join(theory._doubts(np.array([1.0, 1.0, least, least]), 40))
        words = f"the counts say nothing about {none} of 4 directions"
        assert text == words * (none > 0)


@pytest.mark.parametrize("n", [4, 5])
def test_a_worth_prints_its_numbers(n):
    spectrum = np.arange(9.0, 9 - n, -1)
    worth = theory.LabelWorth(spectrum, None, 5.254, 0.1234, 0.0123, ("few", "flat"))
    assert str(worth).splitlines() == [
        f"effective labels per direction: 9, 8, 7, 6{', …' * (n > 4)}; harmonic mean 5.25",
        "predicted excess: log loss 0.123, error 0.0123",
        "not valid: few",
        "not valid: flat",
    ]


def test_bags_are_worth_no_more_than_their_labels_where_these_are_nearly_certain():
    y = np.arange(2100) % 2
    X = np.random.default_rng(1).normal(size=(2100, 3)) * 0.4
    for gap, slope in ((2, 3), (3, 8)):
        Z = X + np.outer(2 * y - 1, [gap, 0, 0])
        model = LogisticRegression().fit(Z, y)
        model.coef_, model.intercept_ = np.array([[slope, 0.0, 0.0]]), np.zeros(1)
        found = label_worth(Z, np.arange(2100) // 21, None, model).spectrum
        assert found[0] == pytest.approx(2100) and found[-1] > 0


def test_a_direction_that_the_counts_leave_free_costs_without_end():
    spectrum, U = np.array([4.0, 0.0]), np.eye(2)
    assert theory.excess_log_loss(spectrum) == np.inf
    assert theory.excess_error(spectrum, U, np.eye(2)) == np.inf
    assert theory.excess_error(spectrum, U, np.diag([8.0, 0.0])) == 0.5
    J, H = np.diag([2.0, 8.0, 0.0]), np.diag([4.0, 4.0, 1e-12])
    found, directions = theory.worth_spectrum(J, H, 10)
    assert_allclose(found, [20, 5])
    assert_allclose(directions.T @ H @ directions, 10 * np.eye(2), atol=1e-12)


def test_bags_without_shares_can_be_planned():
    X, _, of, P = gaussian_bags(120)
    P = pd.DataFrame(P, columns=["no", "yes"])
    model = CountLogistic().fit(X, of, P)
    names = np.array([f"ward {k}" for k in of])
    planned, known = label_worth(X, names, None, model), label_worth(X, of, P, model)
    assert_allclose(planned.spectrum, known.spectrum)
    for wrong in (of[:5], np.where(of > 3, of, np.nan)):
        with pytest.raises(ValueError, match=r"bags (must have one|has a missing)"):
            label_worth(X, wrong, None, model)


@pytest.mark.parametrize("cut", ["random", "features", "scores"])
def test_a_count_loses_at_most_the_scatter_within_bags(cut):
    """Theorem “At most the scatter within bags”: equal to it where all log-odds of a bag are equal."""
    Z, _, f, known = bags([12] * 5)
    if cut != "random":
        key = Z[:, 0] if cut == "features" else f
        order = np.argsort(key)
        Z, f = Z[order], f[order]
    if cut == "scores":
        f = np.repeat(f[::12], 12)
    J, H = theory.count_information(Z, f, known), theory.label_information(Z, f)
    v = expit(f) * expit(-f)
    means = known.weighted_sums(v, Z) / known.sums(v)[:, None]
    apart = Z - means[known.bags]
    within = (apart * v[:, None]).T @ apart
    assert np.linalg.eigvalsh(J - (H - within)).min() > -1e-9
    assert np.allclose(J, H - within) == (cut == "scores")


def test_malformed_input_is_refused():
    X, _, of, P = gaussian_bags(60)
    with pytest.raises(ValueError, match="linear in the log-odds"):
        label_worth(X, of, P, BagMeanRegression().fit(X, of, P))
    three = LogisticRegression().fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match=r"classes \[0, 1\], the model \[0, 1, 2\]"):
        label_worth(X, of, P, three)


# --- consistency, by enumeration ------------------------------------------------------------------------------


def test_worlds_have_the_dependence_that_their_names_say():
    for name, kinds in consistency.WORLDS.items():
        joints = np.array([joint for _, joint in kinds])
        by_label = joints / joints.sum(axis=1, keepdims=True)
        by_value = joints / joints.sum(axis=2, keepdims=True)
        assert joints.sum(axis=(1, 2)) == pytest.approx(1)
        parts = by_label, by_value, joints.sum(axis=2)
        same = [np.ptp(p, axis=0).max() < 1e-12 for p in parts]
        wanted = {
            "X ⊥ B | Y": [True, False, False],
            "Y ⊥ B | X": [False, True, False],
            "X ⊥ B": [False, False, True],
            "neither": [False, False, False],
        }
        assert same == wanted.get(name, [True, True, True])


def test_bags_are_enumerated_with_their_probabilities():
    H, c, P = consistency.bags_of("X ⊥ B | Y", 3)
    assert P.sum() == pytest.approx(1) and (H.sum(axis=1) == 3).all()
    star, px = consistency.truth("X ⊥ B | Y")
    assert P @ c / 3 == pytest.approx(px @ star)
    assert_allclose(P @ H / 3, px)


def test_who_is_right_in_which_world():
    table = consistency.table(2)
    right = {
        "MeanMap": "11...",
        "ridge": "1.11.",
        "proportion loss": "1.11.",
        "counts": "111..",
        "hard EM": ".....",
        "EasyLLP": "1..1.",
        "EasyLLP, n/w": "11...",
        "forward pairs": "11...",
    }
    rows = table.itertuples()
    found = {name: "".join(".1"[x < 1e-4] for x in row) for name, *row in rows}
    assert found == right and table.to_numpy()[table > 1e-4].min() > 0.015


def count_objective(kinds, size):
    """Minus the expected log-likelihood of the counts of any number of classes, over all bags of a size."""
    values, K = kinds[0][1].shape
    rows, found = list(product(range(values), repeat=size)), []
    labelings = list(product(range(K), repeat=size))
    for x in rows:
        for c in {tuple(sorted(y)) for y in labelings}:
            ways = [y for y in labelings if tuple(sorted(y)) == c]
            pairs = product(kinds, ways)
            chance = sum(w * np.prod(J[list(x), list(y)]) for (w, J), y in pairs)
            found.append((x, ways, chance))

    def objective(flat):
        s = np.exp(log_softmax(flat.reshape(values, K), axis=1))
        return -sum(
            chance * np.log(sum(np.prod(s[list(x), list(y)]) for y in ways))
            for x, ways, chance in found
        )

    return objective


@pytest.mark.parametrize("given", ["label", "features", "neither"])
def test_the_counts_of_several_classes_are_right_under_either_assumption(given):
    rng = np.random.default_rng(3)
    if given == "label":  # one P(x | y), shares that differ
        of_class = rng.dirichlet(np.ones(3), 3).T
        joints = [of_class * share for share in rng.dirichlet(np.ones(3), 3)]
    elif given == "features":
        of_value = rng.dirichlet(np.ones(3), 3)
        joints = [of_value * x[:, None] for x in rng.dirichlet(np.ones(3), 3)]
    else:
        joints = [rng.dirichlet(np.ones(9)).reshape(3, 3) for _ in range(3)]
    kinds = list(zip([0.3, 0.3, 0.4], joints, strict=True))
    pooled = sum(w * J for w, J in kinds)
    truth = pooled / pooled.sum(axis=1, keepdims=True)
    objective = count_objective(kinds, 2)
    slope = approx_fprime(np.log(truth).ravel(), objective, 1e-7)
    assert (np.abs(slope).max() < 1e-6) == (given != "neither")
    start = np.log(truth).ravel() + 0.5 * rng.normal(size=9)
    found = minimize(objective, start, tol=1e-9).x.reshape(3, 3)
    error = np.abs(np.exp(log_softmax(found, axis=1)) - truth).max()
    assert error < 1e-3 if given != "neither" else error > 5e-3


def test_with_a_free_offset_the_first_term_leaves_the_scatter_between_bags():
    Z, _, f, known = bags([4, 9, 5, 7], seed=2)
    v = expit(f) * expit(-f)
    V = known.sums(v)
    means = known.weighted_sums(v, Z) / V[:, None]
    J = (means.T * V) @ means
    left = J[:2, :2] - np.outer(J[:2, 2], J[:2, 2]) / J[2, 2]
    apart = (means - np.average(means, axis=0, weights=V))[:, :2]
    assert_allclose(left, (apart.T * V) @ apart)


def test_the_counts_are_right_where_sizes_go_with_shares():
    """Bags of two with few positives, bags of four with many; one P(x | y)."""
    kinds = {2: (0.7, consistency.by_label(0.1)), 4: (0.3, consistency.by_label(0.7))}
    pooled = sum(w * m * J for m, (w, J) in kinds.items())
    star = np.log(pooled / pooled.sum(axis=1, keepdims=True)).ravel()
    parts = [(w, count_objective([(1.0, J)], m)) for m, (w, J) in kinds.items()]
    slope = approx_fprime(star, lambda f: sum(w * part(f) for w, part in parts), 1e-7)
    assert_allclose(slope, 0, atol=1e-6)


@pytest.mark.parametrize(("size", "count"), [(2, 1), (3, 1)])
def test_the_truth_is_unique_unless_half_of_each_bag_is_positive(size, count):
    """All bags have one count, so that no share differs; one P(x | y)."""
    D, eta = consistency.by_label(0.5) * 2, count / size
    labelings = [y for y in product([0, 1], repeat=size) if sum(y) == count]

    def mean_over(table, x):
        return np.mean([np.prod(table[list(x), list(y)]) for y in labelings])

    every = list(product(range(3), repeat=size))
    chances = [mean_over(D, x) for x in every]

    def objective(s):
        P = np.column_stack([1 - s, s])
        return -np.sum(chances * np.log([mean_over(P, x) for x in every]))

    star = eta * D[:, 1] / (D @ [1 - eta, eta])
    best, others = objective(star), np.random.default_rng(0).random((40, 3))
    assert min(objective(s) for s in others) > best + 1e-4
    assert (objective(1 - star) < best + 1e-12) == (eta == 0.5)
    fits = [minimize(lambda f: objective(expit(f)), 4 * s - 2) for s in others[:6]]
    lowest = expit(min(fits, key=lambda fit: fit.fun).x)
    apart = [np.abs(lowest - s).max() for s in (star, 1 - star)]
    assert min(apart) < 1e-3 and (eta == 0.5 or apart[0] < 1e-3)


# --- limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "n_bags"), [(1.0, 2), (0.5, 8)])
def test_a_flip_is_as_probable_as_stated(mu, n_bags):
    """Two Gaussian classes, known up to the sign: the best rule errs at the rate of Student's distribution."""
    rng = np.random.default_rng(0)
    y = 2 * rng.integers(0, 2, (10_000, n_bags, 50), dtype=np.int8) - 1
    x = rng.normal(size=y.shape) + mu * y
    told, tau = np.tanh(mu * x), np.mean(np.tanh(mu * x) ** 2)
    gain = np.sum(y.sum(axis=2) * told.sum(axis=2), axis=1)
    wrong = np.mean(gain < 0) / 2 + np.mean(gain <= 0) / 2  # bags of 50, so ties
    formula = student.sf(np.sqrt(tau / (1 - tau) * n_bags), n_bags)
    assert wrong == pytest.approx(formula, abs=0.01)
    assert formula < (1 - tau) ** (n_bags / 2) / 2


def test_no_estimate_beats_the_information_of_the_counts_and_the_prior():
    """Van Trees: the least Bayes risk of a slope, by quadrature, is at least 1 / (E J + 1 / the prior's variance)."""
    w, weight = np.polynomial.hermite_e.hermegauss(60)
    weight = weight / weight.sum()  # the prior is normal with variance 1
    X, risk, J = np.random.default_rng(0).normal(size=(3, 2, 1)) + 1, 1.0, 0.0
    s = expit(w[:, None, None] * X[:, :, 0])
    none, two = np.prod(1 - s, axis=2), np.prod(s, axis=2)
    chances = np.stack([none, 1 - none - two, two])
    for c in product(range(3), repeat=3):
        joint = weight * np.prod([chances[j, :, k] for k, j in enumerate(c)], axis=0)
        risk -= (joint @ w) ** 2 / joint.sum()
    known = bag_counts(np.repeat(range(3), 2), np.full((3, 2), 0.5))
    for v, p in zip(w, weight, strict=True):
        J += p * theory.count_information(X.reshape(6, 1), v * X.ravel(), known)[0, 0]
    assert 1 < risk * (J + 1) < 1.2


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_inequality_behind_the_theorem_on_squares_of_bag_means(size):
    """E exp(-mZ) is at most 1 - v/16, over all bags of three values and all labelings."""
    rng = np.random.default_rng(0)
    for trial in range(30):
        px = rng.dirichlet(np.ones(3))
        star, f = rng.beta(0.3, 0.3, (2, 3)) if trial % 2 else rng.random((2, 3))
        eta, mean = px @ star, px @ f  # the same mean for both
        f = f * eta / mean if mean > eta else 1 - (1 - f) * (1 - eta) / (1 - mean)
        total = 0.0
        for x in map(list, product(range(3), repeat=size)):
            count = reduce(np.convolve, np.column_stack([1 - star, star])[x])
            p, gap = np.arange(size + 1) / size, f[x].mean() - star[x].mean()
            Z = gap**2 - 2 * (p - star[x].mean()) * gap
            total += np.prod(px[x]) * count @ np.exp(-size * Z)
        assert total <= 1 - px @ (f - star) ** 2 / 16 + 1e-12


def test_squares_of_bag_means_find_the_truth_where_they_are_weighted_by_size():
    """One bag of one among 199 large ones; truth and its flip, at a distance above the theorem's bound for 5 %."""
    rng, star = np.random.default_rng(1), np.array([0.1, 0.9])
    sizes = np.r_[1, np.full(199, 100_000)]
    assert 16 * np.log(2 / 0.05) / 200 < np.mean((star - star[::-1]) ** 2)
    first = rng.binomial(sizes, 0.5, (1000, 200))
    p = (rng.binomial(first, star[0]) + rng.binomial(sizes - first, star[1])) / sizes
    x = first / sizes
    true, flipped = ((p - x * a - (1 - x) * b) ** 2 for a, b in (star, star[::-1]))
    assert np.mean(flipped @ sizes < true @ sizes) < 0.05
    assert np.mean(flipped.sum(axis=1) < true.sum(axis=1)) > 0.05


def test_bag_means_of_a_random_partition_keep_their_share_of_the_scatter():
    rng, of, kept = np.random.default_rng(0), np.repeat(range(4), [1, 2, 5, 12]), 0.0
    X = scale(rng.normal(size=(20, 2)), with_std=False)
    for _ in range(2000):
        S = averaging_matrix(rng.permutation(of))
        kept = kept + X.T @ S.T @ ((S @ X) * [[1], [2], [5], [12]]) / 2000
    assert_allclose(kept, 3 / 19 * X.T @ X, atol=0.15)
