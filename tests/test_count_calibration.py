"""Calibration by the counts of held-out bags: its limits, brute force, what it recovers, and what users hand it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import gaussian_bags
from scipy.optimize import approx_fprime
from scipy.special import expit, log_softmax, softmax
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from llpbook import count_likelihood as cl
from llpbook._linear import bag_counts
from llpbook.alter_svm import AlterSVM
from llpbook.base import LLPWarning, NotIdentifiableError, read_bags
from llpbook.baselines import BagMeanRegression, MajorityClass
from llpbook.count_likelihood import CountCalibration, calibrate
from llpbook.count_likelihood import calibration_objective as objective
from llpbook.density_difference import KDEDifference
from llpbook.invcal import InvCal
from llpbook.mean_map import MeanMap
from llpbook.proportions import label_proportions
from llpbook.uncertainty import bag_bootstrap


def drawn(size, n_bags, slope=1.0, offset=0.0, n_classes=2, seed=0):
    """Scores, labels whose log-odds are linear in them, and the counts of random bags."""
    rng = np.random.default_rng(seed)
    n = size * n_bags
    scores = rng.normal(size=n if n_classes == 2 else (n, n_classes))
    F = slope * scores + offset
    F = np.column_stack([0 * F, F]) if n_classes == 2 else F
    y = (F + rng.gumbel(size=F.shape)).argmax(axis=1)
    bags = rng.permutation(n) // size
    P = label_proportions(y, bags, classes=range(n_classes))
    return scores, y, bag_counts(bags, P)


def slow_objective(w, scores, known, lapse, C):
    """The definition for bags of up to eight: every labeling, each label drawn by itself."""
    F, n = w[0] * scores + w[1:], len(scores)
    F = np.column_stack([0 * F, F]) if F.ndim == 1 else F
    prior = np.sum(known.shares * known.sizes[:, None], axis=0) / n
    p, value = (1 - lapse) * softmax(F, axis=1) + lapse * prior, w[0] ** 2 / (2 * C)
    for k, size in enumerate(known.sizes):
        one, total = p[known.bags == k], 0.0
        wanted = np.round(known.shares[k] * size)
        for y in product(range(len(prior)), repeat=size):
            if (np.bincount(y, minlength=len(prior)) == wanted).all():
                total += np.prod(one[np.arange(size), list(y)])
        value -= np.log(total)
    return value / n


# --- slope and offset ---------------------------------------------------------------------------------------


@pytest.mark.equation("eq-counts-calibration")
@pytest.mark.parametrize("lapse", [0.0, 0.05])
@pytest.mark.parametrize("C", [3.0, np.inf])
def test_the_objective_is_a_sum_over_all_labelings(lapse, C):
    scores, _, known = drawn(5, 8)
    for w in ([0.0, 0.3], [2.0, -1.0], [9.0, 0.1]):
        given = np.array(w), scores, known, lapse, C
        assert objective(*given)[0] == pytest.approx(slow_objective(*given))
    given = np.array([2.0, 0.3, 0.1, -1.0]), *drawn(1, 20, n_classes=3)[::2], lapse, C
    assert objective(*given)[0] == pytest.approx(slow_objective(*given))


@pytest.mark.parametrize("lapse", [0.0, 0.05])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_is_that_of_the_objective(n_classes, lapse):
    scores, _, known = drawn(6, 10, n_classes=n_classes)
    w = np.array([1.3, 0.4, 0.1, -0.3][: 2 if n_classes == 2 else 4])
    numeric = approx_fprime(w, lambda w: objective(w, scores, known, lapse, 5.0)[0])
    gradient = objective(w, scores, known, lapse, 5.0)[1]
    assert_allclose(gradient, numeric, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [8, 30])
def test_the_gradient_is_zero_at_the_answer(size, n_classes):
    scores, _, known = drawn(size, 60, 1.5, n_classes=n_classes)
    slope, offset = calibrate(scores, known, C=np.inf)
    assert slope > 0.3 and len(offset) == (1 if n_classes == 2 else 3)
    gradient = objective(np.append(slope, offset), scores, known, 0.01)[1]
    assert_allclose(gradient, 0, atol=1e-5)
    if n_classes == 3:
        assert abs(offset.sum()) < 1e-9
    (slope, offset), (center, width) = calibrate(scores, known), cl.spread(scores)
    w, z = [slope * width, *(offset + slope * center)], (scores - center) / width
    assert_allclose(objective(np.array(w), z, known, 0.01, 100.0)[1], 0, atol=1e-5)


def test_the_spread_is_that_of_the_middle_half_if_there_is_one():
    scores = np.random.default_rng(0).normal(3, 2, 999)
    low, median, high = np.sort(scores)[[249, 499, 749]]
    center, width = cl.spread(scores)
    assert center == median and width == pytest.approx((high - low) / 1.349, rel=0.01)
    assert cl.spread(np.repeat([1.0, 11.0], [9, 1])) == (1, 3)
    assert cl.spread(np.full(9, 7.0)) == (7, 1)


def test_of_two_maxima_the_higher_is_kept(monkeypatch):
    scores, _, known = drawn(12, 8, 0.3, seed=13)
    best, _ = calibrate(scores, known)
    ends = []
    for start in cl._calibration.STARTS:
        monkeypatch.setattr(cl._calibration, "STARTS", (start,))
        ends.append(calibrate(scores, known)[0])
    assert min(ends) == 0 and max(ends) == pytest.approx(best, abs=1e-3) and best > 0.3


def test_bags_of_one_are_platts_scaling():
    scores, y, known = drawn(1, 400, 2.0, 0.5)
    center, width = cl.spread(scores)
    slope, offset = calibrate(scores, known, lapse=0.0, C=4.0)
    platt = LogisticRegression(C=4.0, tol=1e-10)
    z = (scores - center)[:, None] / width
    truth, found = platt.fit(z, y).predict_proba(z), expit(slope * scores + offset)
    assert_allclose(found, truth[:, 1], atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_unit_and_the_zero_of_scores_do_not_matter(n_classes):
    scores, _, known = drawn(10, 40, 2.0, n_classes=n_classes)
    slope, offset = calibrate(scores, known)
    moved = 0.0 if n_classes == 2 else np.array([5.0, -2.0, 0.0])
    for unit, zero in ((1e-6, 0.0), (40.0, 30.0), (1e6, -1e7)):
        a, b = calibrate(unit * scores + zero + unit * moved, known)
        again = a * (unit * scores + zero + unit * moved) + b
        first = slope * scores + offset
        if n_classes == 3:
            again, first = log_softmax(again, axis=1), log_softmax(first, axis=1)
        assert_allclose(again, first, atol=1e-3)


def test_one_score_far_away_and_wrong_changes_little():
    scores, _, known = drawn(5, 160, 2.0)
    slope, _ = calibrate(scores, known)
    bag = int(np.flatnonzero(known.counts == 0)[0])
    wrong = scores.copy()
    wrong[np.flatnonzero(known.bags == bag)[0]] = 1e4
    assert calibrate(wrong, known)[0] > 0.8 * slope
    assert calibrate(wrong, known, lapse=0.0)[0] < 0.01 * slope


def test_scores_that_rise_against_the_counts_have_slope_0():
    scores, _, known = drawn(1, 300, 2.0)
    slope, offset = calibrate(-scores, known)
    assert slope == 0
    assert expit(offset[0]) == pytest.approx(known.counts.mean(), abs=1e-4)
    for constant in (0.0, 7.0):  # so do scores that say nothing
        slope, offset = calibrate(np.full(300, constant), known)
        p = expit(slope * constant + offset[0])
        assert p == pytest.approx(known.counts.mean(), abs=1e-4)


# --- folds --------------------------------------------------------------------------------------------------


def test_folds_are_whole_bags_with_like_shares_whatever_the_order():
    X, _, bags, P = gaussian_bags(n=300)
    folds = cl.bag_folds(read_bags(X, bags, P, None), 5)
    assert all(len(set(folds[bags == k])) == 1 for k in range(50))
    of = np.array([folds[bags == k][0] for k in range(50)])
    assert_array_equal(np.bincount(of), 10)
    means = [P[of == k, 1].mean() for k in range(5)]
    assert np.ptp(means) < 0.03
    order, rename = (np.random.default_rng(s).permutation(n) for s, n in ((1, 300), (2, 50)))  # fmt: skip
    moved = read_bags(X[order], rename[bags[order]], P[np.argsort(rename)], None)
    assert_array_equal(cl.bag_folds(moved, 5), folds[order])


def test_held_out_scores_are_of_fits_that_have_not_seen_the_bag(capsys):
    X, y, bags, P = gaussian_bags(n=200)
    ridge = BagMeanRegression(alpha=0.1)
    model = CountCalibration(ridge, n_folds=4, verbose=2).fit(X, bags, P)
    assert "Calibration: 5 of at most 5 fits in 0 s" in capsys.readouterr().out
    folds = cl.bag_folds(read_bags(X, bags, P, None), 4)
    for k in range(4):
        part = BagMeanRegression(0.1).fit(X[folds != k], bags[folds != k], P)
        scores = part.decision_function(X)
        scores *= cl.spread(model.estimator_.decision_function(X))[1] / cl.spread(scores)[1]  # fmt: skip
        assert_allclose(model.held_out_scores_[folds == k], scores[folds == k])
    slope, offset = calibrate(model.held_out_scores_, bag_counts(bags, P))
    assert (slope, offset) == (model.slope_, model.offset_)
    scores = ridge.fit(X, bags, P).decision_function(X)
    p = 0.99 * expit(slope * scores + offset) + 0.01 * P[bags, 1].mean()
    assert_allclose(model.predict_proba(X)[:, 1], p)
    assert_allclose(model.class_prior_, np.bincount(y) / 200)
    few = CountCalibration(ridge, n_folds=1000).fit(X, bags, P)
    assert len(np.unique(few.held_out_scores_.round(9))) > 150


def test_known_labels_reach_the_fits_and_the_likelihood_but_not_of_the_fold():
    X, y, bags, P = gaussian_bags(n=200)
    labels = np.where(np.random.default_rng(0).random(200) < 0.5, y, -1)
    model = CountCalibration(BagMeanRegression()).fit(X, bags, P, labels=labels)
    folds = cl.bag_folds(read_bags(X, bags, P, None), 10)
    rest = folds != 3
    part = BagMeanRegression().fit(X[rest], bags[rest], P, labels=labels[rest])
    ratio = model.held_out_scores_[~rest] / part.decision_function(X[~rest])
    assert_allclose(ratio, ratio[0])
    every = CountCalibration(BagMeanRegression(), lapse=0).fit(X, bags, P, labels=y)
    single = bag_counts(np.arange(200), np.eye(2)[y])
    slope, _ = calibrate(every.held_out_scores_, single, lapse=0)
    assert every.slope_ == pytest.approx(slope, rel=1e-4)


# --- what users hand it -------------------------------------------------------------------------------------


def named(n=240, n_classes=2):
    X, y, bags, P = gaussian_bags(n=n, d=3, n_classes=n_classes)
    names = np.array([f"county {k}" for k in range(len(P))])
    frame = pd.DataFrame(X, columns=["age", "income", "rooms"])
    words = np.array(["no", "yes", "maybe"])[:n_classes]
    return frame, names[bags], pd.DataFrame(P, names, words), words[y]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labeled", [False, True])
def test_names_of_bags_classes_and_features_reach_the_estimator(n_classes, labeled):
    X, bags, P, y = named(n_classes=n_classes)
    labels = np.where(np.arange(240) % 4 == 0, y.astype(object), -1)
    columns = make_column_transformer((StandardScaler(), ["age", "income", "rooms"]))
    pipe = make_pipeline(columns, BagMeanRegression(bag_weights="uniform"))
    model = CountCalibration(pipe)
    model.fit(X, bags, P.sample(frac=1, random_state=0), labels if labeled else None)
    assert list(model.classes_) == list(model.estimator_.classes_) == list(P.columns)
    assert model.score(X, y) > 0.8
    assert model.predict_proba(X).shape == (240, n_classes)
    shares = model.predict_proportions(X, bags, soft=True)
    assert shares.index[0] in P.index and list(shares.columns) == list(P.columns)
    outside = make_pipeline(StandardScaler(), CountCalibration(BagMeanRegression()))
    outside.fit(X, bags, countcalibration__proportions=P)
    assert outside.predict_proba(X).shape == (240, n_classes)


@pytest.mark.parametrize(
    "inner",
    [AlterSVM(random_state=0), InvCal(), KDEDifference(), MajorityClass()],
    ids=lambda inner: type(inner).__name__,
)
@pytest.mark.filterwarnings("ignore:.* bags into two samples", "ignore:.*slope_ is 0")
def test_all_kinds_of_estimators_get_probabilities(inner):
    X, bags, P, y = named()
    model = CountCalibration(inner).fit(X, bags, P)
    p = model.predict_proba(X)
    assert ((p > 0.0) & (p < 1)).all()
    if isinstance(inner, MajorityClass):
        assert_allclose(p - model.class_prior_, 0, atol=1e-3)
    else:
        assert log_loss(y, p) < 0.6 < log_loss(y, np.full((240, 2), 0.5))


def test_a_precomputed_kernel_is_cut_in_rows_and_columns():
    X, bags, P, _ = named()
    X = X.to_numpy()
    inner = MeanMap(kernel="precomputed", fit_intercept=False)
    model = CountCalibration(inner, n_folds=3).fit(X @ X.T, bags, P)
    assert model.__sklearn_tags__().input_tags.pairwise
    assert model._scale is None and CountCalibration()._scale == "penalty"
    folds = cl.bag_folds(read_bags(X @ X.T, bags, P, None), 3)
    rest = folds != 0
    part = MeanMap(fit_intercept=False).fit(X[rest], bags[rest], P)
    ratio = model.held_out_scores_[~rest] / part.decision_function(X[~rest])
    assert_allclose(ratio, ratio[0], rtol=1e-3)


def test_what_cannot_be_calibrated_is_refused():
    X, bags, P, _ = named()
    one, two = np.zeros(240, dtype=int), np.arange(240) // 120
    with (
        pytest.warns(LLPWarning, match="the same in every bag"),
        pytest.raises(NotIdentifiableError, match=r"three or more bags, got 1"),
    ):
        CountCalibration(BagMeanRegression()).fit(X, one, [0.4])
    with pytest.raises(NotIdentifiableError, match=r"three or more bags, got 2"):
        CountCalibration(BagMeanRegression()).fit(X, two, [0.4, 0.7])
    alone = LogisticRegression()
    for inner in (alone, make_pipeline(StandardScaler(), alone)):
        with pytest.raises(ValueError, match=r"LogisticRegression.* no proportions"):
            CountCalibration(inner).fit(X, bags, P)
    three = named(n_classes=3)[:3]
    with pytest.raises(ValueError, match="two classes for KDEDifference"):
        CountCalibration(KDEDifference()).fit(*three)
    # Without the one bag that differs nothing tells the classes apart.
    codes, shares = np.arange(240) // 60, [0.5, 0.5, 0.5, 0.9]
    with pytest.raises(
        NotIdentifiableError, match=r"without fold [0-3] of the bags, of 4: prop"
    ):
        CountCalibration(MeanMap()).fit(X, codes, shares)
    with pytest.raises(ValueError, match="proportion_errors must be"):
        CountCalibration(proportion_errors=[0.1]).fit(X, bags, P)


def test_a_pipeline_inside_goes_in_front_where_its_steps_mend_the_table():
    X, bags, P, _ = named()
    X.iloc[0, 0] = np.nan
    inside, words = make_pipeline(SimpleImputer(), MeanMap()), "goes last in the pipeli"
    with pytest.raises(ValueError, match=f"in front. CountCalibration {words}"):
        CountCalibration(inside).fit(X, bags, P)
    with pytest.raises(ValueError, match=f"in front(?!.*{words})"):
        CountCalibration(MeanMap()).fit(X, bags, P)
    pipe = make_pipeline(SimpleImputer(), CountCalibration(MeanMap()))
    pipe.fit(X, bags, countcalibration__proportions=P).predict_proba(X)


def test_a_slope_of_0_warns_and_gives_all_the_same():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 3 == 0
    with pytest.warns(LLPWarning, match="slope_ is 0.*scores of BagMeanRegression,"):
        model = CountCalibration(BagMeanRegression(), n_folds=200)
        model.fit(np.ones((200, 2)) * X[:1], np.arange(200), y.astype(float))
    p = model.predict_proba(X)[:, 1]
    assert_allclose(p, y.mean(), atol=1e-3)
    assert not model.predict(X).any()


def test_a_pipeline_is_fitted_alike_with_metadata_routing():
    X, _, bags, P = gaussian_bags(120)
    pipe = make_pipeline(StandardScaler(), BagMeanRegression())
    plain = CountCalibration(pipe, 2).fit(X, bags, P)
    drawn = bag_bootstrap(pipe, X, bags, P, offset, n_resamples=4, random_state=0)
    with config_context(enable_metadata_routing=True):
        routed = CountCalibration(pipe, 2).fit(X, bags, P)
        again = bag_bootstrap(pipe, X, bags, P, offset, n_resamples=4, random_state=0)
    assert routed.slope_ == plain.slope_
    assert_array_equal(again.replicates, drawn.replicates)


def offset(model):
    return model[-1].intercept_[0]
