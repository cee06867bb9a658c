"""Standard errors, group rates, bounds and reports, against enumeration, refits and simulated coverage."""

import copy
import re
import warnings
from contextlib import nullcontext
from dataclasses import replace
from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import delayed, parallel_config
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax
from scipy.stats import f as fisher
from scipy.stats import norm
from scipy.stats import t as student
from sklearn import preprocessing as pre
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from llpbook import BagLogistic, CountLogistic, MeanMap, label_proportions
from llpbook import uncertainty as un
from llpbook._linear import BagCounts
from llpbook.base import LLPWarning, NotIdentifiableError, _running
from llpbook.count_likelihood import CountLoss, posterior
from llpbook.uncertainty import _cautions as cautions

SLOPES = np.array([1.0, -0.5])


def problem(n_bags=60, size=8, shift=0.7, seed=0, d=2, offset=-0.3):
    """One logistic model in all bags, whose features are shifted."""
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(n_bags), size)
    X = rng.normal(size=(len(bags), d)) + shift * rng.normal(size=(n_bags, d))[bags]
    slopes = np.append(SLOPES, np.zeros(max(d - 2, 0)))[:d]
    y = (rng.random(len(bags)) < expit(X @ slopes + offset)).astype(int)
    return X, y, bags, label_proportions(y, bags, classes=[0, 1])


def of_classes(n_classes, n_bags=60, size=8):
    X, y, bags, _ = problem(n_bags, size)
    y = y + (n_classes == 3) * (X[:, 1] > 0.5)
    return X, y, bags, label_proportions(y, bags, classes=range(n_classes))


def linear(X, bags, counts, weights, C=10.0, exact_up_to=20, errors=None):
    sizes = np.bincount(bags)
    errors = np.zeros(len(sizes)) if errors is None else errors
    known = BagCounts(bags, sizes, np.asarray(counts, float), errors)
    penalty, loss = np.full(X.shape[1], 1 / C), CountLoss(exact_up_to)
    return un.Problem(loss, X, known, penalty, np.arange(len(sizes)), weights)


def enumerated(f, count):
    """All labelings of a bag with the count: their probabilities, and its total."""
    labelings = [y for y in product((0, 1), repeat=len(f)) if sum(y) == count]
    labelings = np.array(labelings, float)
    p = np.prod(np.where(labelings > 0, expit(f), expit(-f)), axis=1)
    return labelings, p / p.sum(), p.sum()


# --- gradients, Hessians and the sandwich -------------------------------------------------------------------


@pytest.mark.equation("eq-uncertainty-gradient", "eq-uncertainty-hessian")
def test_gradients_and_hessians_by_enumeration():
    rng = np.random.default_rng(0)
    bags, counts = np.repeat([0, 1, 2], [4, 5, 3]), [1, 3, 0]
    X, w = rng.normal(size=(12, 3)), rng.normal(size=(1, 3))
    fit = linear(X, bags, counts, w)
    G, H = un.bag_gradients(fit), un.bag_hessians(fit)
    for k in range(3):
        Z = X[bags == k]
        f = Z @ w[0]
        labelings, p, _ = enumerated(f, counts[k])
        s, q = expit(f), p @ labelings
        assert_allclose(G[k], (q - s) @ Z, atol=1e-9)
        given = (labelings * p[:, None]).T @ labelings - np.outer(q, q)
        by_hand = Z.T @ (np.diag(s * (1 - s)) - given) @ Z
        assert_allclose(H[k], by_hand, atol=1e-6)


@pytest.mark.parametrize("exact_up_to", [0, 20])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_hessians_are_derivatives_of_the_likelihood(n_classes, exact_up_to):
    rng = np.random.default_rng(1)
    bags, X = np.repeat(np.arange(4), 10), rng.normal(size=(40, 2))
    w = rng.normal(size=(1 if n_classes == 2 else 3, 2))
    y = rng.integers(0, n_classes, 40)
    counts = 10 * label_proportions(y, bags, classes=range(n_classes))
    counts = counts[:, 1] if n_classes == 2 else counts
    errors = None if n_classes == 2 else np.zeros((4, 3, 3))
    fit = linear(X, bags, counts, w, exact_up_to=exact_up_to, errors=errors)

    def total(flat):
        scores = X @ flat.reshape(w.shape).T
        scores = scores[:, 0] if n_classes == 2 else scores
        return posterior(scores, fit.observed, exact_up_to)[0].sum()

    numeric = approx_fprime(w.ravel(), total, 1e-6)
    assert_allclose(un.bag_gradients(fit).sum(axis=0), numeric, atol=2e-4)
    H = un.bag_hessians(fit)
    assert_allclose(H, H.transpose(0, 2, 1))


@pytest.mark.equation("eq-uncertainty-influence", "eq-uncertainty-sandwich")
def test_influences_and_sandwich_by_hand():
    G = np.array([[1.0, 0.0], [-2.0, 1.0], [1.0, 1.0]])
    H = np.array([np.eye(2), 2 * np.eye(2), np.zeros((2, 2))])
    J = 4 * np.eye(2)
    psi = un.influences(G, H, J)
    assert_allclose(psi, G / np.array([3.5, 3.0, 4.0])[:, None])
    assert_allclose(un.influences(G, H, J, left=1.0)[0], G[0] / 3)
    assert_allclose(un.sandwich(psi), 1.5 * sum(np.outer(v, v) for v in psi))


def test_bags_of_size_one_have_the_robust_errors_of_logistic_regression():
    # For a single label minus the second derivative is s (1 - s) x x', and the correction is HC2's to first order.
    X, y, _, _ = problem(400, 1, shift=0)
    bags, C = np.arange(400), 1e4
    model = CountLogistic(C=C, tol=1e-8).fit(X, bags, y.astype(float))
    table = un.coefficient_table(model, X, bags, y.astype(float))
    Z = np.column_stack([X, np.ones(400)])
    s = expit(Z @ table.coefficients.to_numpy())
    J = (Z * (s * (1 - s))[:, None]).T @ Z + np.eye(3) / C
    g, h = (y - s)[:, None] * Z, np.sum(Z @ np.linalg.inv(J) * Z, axis=1) * s * (1 - s)
    root = np.linalg.solve(J, (g / np.sqrt(1 - h)[:, None]).T).T
    assert_allclose(table.covariance_, root.T @ root * 400 / 399, rtol=0.01)
    sure = LogisticRegression(C=C, tol=1e-10).fit(X, y).coef_[0]
    assert_allclose(table.coefficients[:2], sure, atol=1e-3)


@pytest.mark.slow
def test_coverage_is_nominal_with_a_hundred_bags():
    # 50 draws of three coefficients: the deviation of the mean is about .03.
    inside, truth = [], np.append(SLOPES, -0.3)
    for seed in range(50):
        X, _, bags, P = problem(100, 3, seed=seed)
        model = CountLogistic(C=100.0).fit(X, bags, P)
        ends = un.coefficient_table(model, X, bags, P).interval(0.9)
        inside.append((ends["low"] < truth) & (truth < ends["high"]))
    assert 0.81 < np.mean(inside) < 0.97


def test_the_table_reads_as_people_know_it():
    X, _, bags, P = problem()
    model = CountLogistic(C=10.0).fit(X, bags, P)
    table = un.coefficient_table(model, X, bags, P, names=["age", "income"])
    lines, rows = str(table).splitlines(), table.table
    assert lines[1] == "480 instances, 60 bags, C=10; sandwich over bags, t with 57 df"
    assert lines[2] == "log-odds of class 1 against class 0"
    assert lines[4].split() == ["coef", "std", "err", "t", "P>|t|", "[0.025", "0.975]"]
    forms = ("{:.4g}", "{:.4g}", "{:.3f}", "{:.3f}", "{:.4g}", "{:.4g}")
    row = [form.format(v) for form, v in zip(forms, rows.loc["age"], strict=True)]
    assert lines[6].split()[1:] == row
    given = model, X, bags, P
    narrow = un.coefficient_table(*given, names=["age", "income"], level=0.9)
    assert str(narrow).splitlines()[4].split()[-2:] == ["[0.05", "0.95]"]
    half = narrow.interval().diff(axis=1)["high"] / 2
    assert_allclose(half / table.errors, student.isf(0.05, 57))
    assert_allclose(rows["t"], rows["coef"] / rows["error"])
    # One coefficient: F is the square of t.
    F, p = table.test("age")
    assert pytest.approx(rows.loc["age", "t"] ** 2) == F
    assert p == pytest.approx(rows.loc["age", "p_value"])
    assert table.test("age", rows.loc["age", "coef"])[0] == pytest.approx(0)
    assert table.test(["age", "income"])[1] < 0.05
    with pytest.raises(ValueError, match="names must be coefficients"):
        table.test("weight")


@pytest.mark.filterwarnings("ignore:the shares of")  # repeated labels deviate
def test_labels_with_counts_are_those_of_repeated_rows():
    """A labeled row that stands for three instances is three bags, not one."""
    X, y, bags, P = problem()
    every = np.arange(len(y))
    labels, n = np.where(every % 4 == 0, y, -1), every % 3
    rows = np.repeat(every, n)
    P = label_proportions(y[rows], bags[rows])
    model = CountLogistic(C=100.0, tol=1e-7).fit(X, bags, P, labels, counts=n)
    cells = (X, bags, P), {"labels": labels, "counts": n}
    people = (X[rows], bags[rows], P), {"labels": labels[rows]}
    one, other = (un.coefficient_table(model, *a, **k) for a, k in (cells, people))
    assert one.n_bags == other.n_bags == 60 + n[labels >= 0].sum()
    assert_allclose(one.covariance_, other.covariance_, rtol=1e-6)
    group = X[:, 0] > 0
    rates = un.group_rate(model, *cells[0], group, **cells[1])
    wanted = un.group_rate(model, *people[0], group[rows], **people[1])
    pd.testing.assert_frame_equal(rates, wanted, rtol=1e-6)


def test_three_classes():
    X, _, bags, P = of_classes(3, size=5)
    P = pd.DataFrame(P, columns=["a", "b", "c"])
    model = CountLogistic(C=1.0).fit(X, bags, P)
    table, _ = said(un.coefficient_table, model, X, bags, P)
    assert table.coefficients.index[2:4].tolist() == ["a: intercept", "b: x0"]
    report = un.bag_report(model, X, bags, P)
    assert len(report.table) == 180 and report.table.index.names == ["bag", "class"]
    data = un.read_shares(model, X, bags[::-1], P)
    each = [*un._report.beyond_chance(model.predict_proba(X), data)]
    assert un.bag_report(model, X, bags[::-1], P).deviation == max(each) > min(each)
    limit = max(report.spread, 1) * norm.isf(0.025 / 180)
    assert report.limit == pytest.approx(limit)
    free = np.eye(3) - 1 / 3  # of three errors that do not change the sum
    stated = np.random.default_rng(0).uniform(0.01, 0.04, (60, 3, 1)) * free
    wider = un.bag_report(model, X, bags, P, proportion_errors=free @ stated)
    for k, c in ((0, "a"), (7, "c")):
        row, at = report.table.loc[(k, c)], "abc".index(c)
        s = model.predict_proba(X[bags == k])[:, at].mean()
        gap = P.loc[k, c] - s
        assert_allclose([*row[["observed", "expected"]]], [P.loc[k, c], s])
        assert row["z"] == pytest.approx(gap / row["error"])
        error = row["error"] ** 2 + (free @ stated)[k, at, at]
        assert wider.table.loc[(k, c), "error"] ** 2 == pytest.approx(error)
    sizes = un.bag_report(model, X[3:], bags[3:], P).table["n"].to_numpy()
    assert sorted(sizes) == [2] * 3 + [5] * 177
    moved = un.bag_influence(model, X, bags, P, group=X[:, 0] > 0)
    of_sparse = un.bag_influence(model, sp.csr_array(X), bags, P, group=X[:, 0] > 0)
    assert_allclose(of_sparse, moved)
    assert moved.columns.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_shift_of_all_bags_is_said(n_classes):
    """New bags whose log-odds are shifted alike: no bag stands out against the others."""
    rng, said = np.random.default_rng(0), []
    bags, n = np.repeat(np.arange(60), 40), 2400
    w, names = rng.normal(size=(2, n_classes)), list("abc")[:n_classes]
    model = LogisticRegression()
    model.classes_, model.intercept_ = np.array(names), np.zeros(1)
    model.coef_ = w.T if n_classes > 2 else (w[:, 1:] - w[:, :1]).T
    for shift in (0.0,) * 40 + (-0.8,):
        X = rng.normal(size=(n, 2))
        moved = X @ w + shift * np.eye(n_classes)[-1]
        chosen = (moved + rng.gumbel(size=moved.shape)).argmax(axis=1)
        P = pd.DataFrame(
            label_proportions(chosen, bags, classes=range(n_classes)), columns=names
        )
        report = un.bag_report(model, X, bags, P)
        p = model.predict_proba(X)[:, -1]
        total = (np.sum(chosen == n_classes - 1) - p.sum()) / np.sqrt(p @ (1 - p))
        assert report.shift[names[-1]] == pytest.approx(total)
        said.append("All bags together have fewer" in str(report))
    assert not any(said[:-1]) and said[-1] and total < -8


# --- chunks ------------------------------------------------------------------------------------------------


def as_frame(X, bags):
    return pd.DataFrame(X, columns=["a", "b"]).assign(bag=bags)


@pytest.mark.parametrize("noise", [None, "laplace", "three", "deviation"])
def test_chunks_of_whole_bags_give_the_same_table_and_rates(noise, capsys):
    X, _, bags, P = of_classes(3 if noise == "three" else 2)
    frame, given = as_frame(X, bags), {"exact_up_to": 0}
    if noise == "three":
        given = {"fit_intercept": False}
    elif noise == "deviation":
        given["bag_deviation"] = 0.5
    elif noise is not None:
        P = P[:, 1] + np.random.default_rng(0).laplace(scale=0.02, size=60)
        errors = np.full(60, 0.02 * np.sqrt(2))
        given = {"proportion_noise": noise, "proportion_errors": errors}
    model = CountLogistic(C=0.1, **given)
    pipe = make_pipeline(pre.StandardScaler(), "passthrough", model)
    pipe.fit(frame[["a", "b"]], bags, countlogistic__proportions=P)
    given = pipe, frame[["a", "b"]], bags, P
    whole, text = said(un.coefficient_table, *given, level=0.9)
    frame["high"] = (frame["a"] > 1) & (frame["bag"] > 10)  # nobody in the first chunk
    frame["part"] = np.where(frame["b"] > 0, "u", "d")
    chunks = [frame[frame.bag < 11], frame[(frame.bag >= 11) & (frame.bag < 50)]]
    chunks += [frame[:0], frame[frame.bag >= 50]]
    chunks[0] = lambda part=chunks[0]: part
    options = {"bags": "bag", "verbose": 2, "level": 0.9}
    parts, heard = said(un.chunk_coefficient_table, pipe, chunks, P, **options)
    assert heard == text != []
    assert_allclose(parts.covariance_, whole.covariance_, rtol=1e-6)
    assert_allclose(parts.coefficients, whole.coefficients)
    assert (parts.n_bags, parts.n_instances) == (60, 480)
    assert str(parts) == str(whole)
    assert "pass over squares: 4 of at most 4 chunks" in capsys.readouterr().out
    for group in ("high", "part"):
        options = {"rounding": 0.01, "level": 0.9}
        data = pipe, chunks, P, group
        with parallel_config("threading", n_jobs=2):
            found, heard = said(un.chunk_group_rate, *data, bags="bag", **options)
        wanted, text = said(un.group_rate, *given, frame[group], **options)
        assert heard == text
        pd.testing.assert_frame_equal(found, wanted, check_index_type=False, rtol=1e-6)


def test_chunks_of_tables_are_checked_as_those_of_fits():
    X, _, bags, P = problem()
    frame = as_frame(X, bags)
    model = CountLogistic(C=10.0).fit(frame[["a", "b"]], bags, P)
    left = [frame]
    changing = lambda: left.pop() if left else frame.assign(a=frame["a"] + 1, g=True)  # noqa: E731
    for match, chunks, shares in (
        ("bag 12 has instances in chunk 0 and in chunk 1", [frame.iloc[:100], frame.iloc[100:]], P),
        ("chunk 0: it holds other values in the pass over gradients", [changing], P),
        ("not at the maximum", [frame], 1 - P),
        ("the classes", [frame], pd.DataFrame(P, columns=["no", "yes"])),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            un.chunk_coefficient_table(model, chunks, shares, bags="bag")
    unchecked = {"bags": "bag", "check_chunks": False}
    left = [frame] * 2
    assert un.chunk_coefficient_table(model, [changing], P, **unchecked).n_bags == 60
    left = [frame.assign(g=True)] * 3
    given = model, [changing], P, "g"
    row = un.chunk_group_rate(*given, features=["a", "b"], **unchecked)
    assert row["rate"].item() == pytest.approx(P[:, 1].mean(), abs=0.1)
    with pytest.raises(ValueError, match="has no column 'county'"):
        un.chunk_group_rate(model, [frame], P, "county", bags="bag")
    nameless = CountLogistic(C=10.0).fit(X, bags, P)
    rates = un.chunk_group_rate(
        nameless, [frame.assign(old=X[:, 0] > 0)], P, "old", bags="bag"
    )
    wanted = un.group_rate(nameless, X, bags, P, X[:, 0] > 0)
    pd.testing.assert_frame_equal(rates, wanted, check_index_type=False, rtol=1e-6)
    with pytest.raises(ValueError, match="True for at least one instance"):
        un.chunk_group_rate(
            model, [frame.assign(old=False)], P, "old", bags="bag", features=["a", "b"]
        )


# --- what is refused ---------------------------------------------------------------------------------------


def test_no_strict_maximum_is_refused():
    sums = un.BagSums(10, np.arange(5), np.zeros(2), -np.eye(2))
    with pytest.raises(NotIdentifiableError, match="no strict maximum"):
        un.check_maximum(np.zeros((1, 2)), sums, np.eye(2) / 10)
    J = un.check_maximum(np.zeros((1, 4)), sums, 2 * np.eye(2))
    assert_allclose(J, np.eye(2))
    words = "^5 bags cannot give standard errors of 5"
    with pytest.raises(NotIdentifiableError, match=words):
        un.check_maximum(np.zeros((1, 5)), sums, 2 * np.eye(2))


@pytest.mark.parametrize("slack", [0.2, 1.0])
def test_a_gradient_that_is_no_rest_of_a_fit_is_said_with_its_size(slack):
    """Gradient per instance, and the Newton step in standard errors; where V is 0 in those of the penalty."""
    w, V = np.array([[3.0, -1.0]]), np.diag([4.0, 0.0])
    words = "by 0.5 standard" if slack == 1 else "is 0.2, the fit left at most 0.2"
    refused = pytest.raises(ValueError, match=words)
    for left, context in ((1.999, nullcontext()), (2.001, refused)):
        sums = un.BagSums(10, np.arange(5), np.array([1.5 - left, -0.1]), 0)
        with context:
            given = 2 * np.eye(2), V, np.eye(2) / 2, slack
            un._table.check_converged(w, sums, *given)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("free", "intercept"), [(1, 1), (0, 1), (0, 0)])
def test_the_penalty_and_its_gradient_balance_the_counts(n_classes, free, intercept):
    X, _, bags, P = of_classes(n_classes)
    own = {"fit_intercept": bool(intercept), "penalize_intercept": not free}
    pipe = make_pipeline(CountLogistic(0.5, tol=1e-6, **own))  # of one step
    pipe.fit(X, bags, countlogistic__proportions=P)
    fit, _ = un.read_fit(pipe, X, bags, P)
    K, level = len(fit.weights), np.zeros_like(fit.weights)
    level[:, 2:] = free / np.sqrt(K)
    wanted = np.diag(2.0 * (level.ravel() == 0)) + 2 * (K > 1) * np.outer(level, level)
    assert_allclose(fit.curvature.toarray(), wanted)
    total = un.bag_gradients(fit).sum(axis=0)
    assert_allclose(total, fit.curvature @ fit.weights.ravel(), atol=1e-3)
    assert fit.slack == 10 * max(pipe[-1].gap_, 1e-6)
    for gap, slack in ((0.5, 5), (0.01, 1)):
        pipe[-1].gap_, pipe[-1].tol = gap, 0.1
        assert un.read_fit(pipe, X, bags, P)[0].slack == slack


@pytest.mark.parametrize(("share", "refused"), [(0.99, True), (1.01, False)])
def test_the_memory_of_curvatures_and_covariances_is_asked_for(
    share, refused, monkeypatch
):
    X, _, bags, P = problem()
    fit, _ = un.read_fit(CountLogistic().fit(X, bags, P), X, bags, P)
    laplace = un.laplace_covariance(fit)
    for name, need, ask in (
        ("curvature of 60 bags", 32 * 60 * 9, lambda: un._table.fit_covariance(fit)),
        ("covariance of 3 coefficients", 16 * 9, laplace.block),
    ):
        has = share * need / _running.REFUSE_SHARE
        monkeypatch.setattr(_running, "machine_memory", lambda has=has: has)
        kind = pytest.raises(ValueError, match=name) if refused else pytest.warns(LLPWarning, match=name)  # fmt: skip
        with kind:
            ask()


# --- groups ------------------------------------------------------------------------------------------------


def labelings(bags, counts):
    """All labels of all instances with the counts."""
    parts = []
    for k, c in enumerate(counts):
        n = (bags == k).sum()
        parts.append([y for y in product((0, 1), repeat=n) if sum(y) == c])
    for chosen in product(*parts):
        yield np.concatenate(chosen)


def test_bounds_of_rates_for_several_classes_and_groups():
    bags, group = np.repeat([0, 1], 4), np.array(list("aabbabbb"))
    P = pd.DataFrame({"x": [0.5, 0.25], "y": [0.25, 0.25], "z": [0.25, 0.5]})
    found = un.group_rate_bounds(bags, P, group)
    of_bags = {*permutations("xxyz")}, {*permutations("xyzz")}
    labels = np.array([[*one, *two] for one, two in product(*of_bags)])
    for g, c in product("ab", "xyz"):
        rates = (labels[:, group == g] == c).mean(axis=1)
        wanted = [rates.min(), rates.max(), (group == g).sum()]
        assert_allclose(found.loc[(g, c), ["low", "high", "n"]], wanted)


@pytest.mark.equation("eq-uncertainty-rate", "eq-uncertainty-rate-variance")
def test_rates_and_their_variances_by_enumeration():
    rng = np.random.default_rng(2)
    bags, counts, f = np.repeat([0, 1], [5, 6]), [2, 4], rng.normal(size=11)
    known = BagCounts(bags, np.array([5, 6]), np.array(counts), np.zeros(2))
    members = rng.random((2, 11)) < 0.5
    rates = un.posterior_rates(f, known, members)
    fit = un.Problem(
        CountLoss(), f[:, None], known, np.ones(1), weights=np.ones((1, 1))
    )
    again, slopes, variances = un.rates_and_slopes(fit, members)
    np.testing.assert_array_equal(again, rates)
    for g, member in enumerate(members):
        mean = variance = 0.0
        for k in (0, 1):
            inside = member[bags == k]
            ys, p, _ = enumerated(f[bags == k], counts[k])
            sums = ys[:, inside].sum(axis=1)
            mean, variance = mean + p @ sums, variance + p @ (sums - p @ sums) ** 2
        assert rates[g, 0] == pytest.approx(mean / member.sum(), abs=1e-9)
        assert variances[g, 0] == pytest.approx(variance / member.sum() ** 2, abs=1e-7)
    up, down = (un.posterior_rates(a * f, known, members) for a in (1.00001, 0.99999))
    assert_allclose(slopes[:, 0, 0], (up - down)[:, 0] / 2e-5, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_error_of_a_rate_joins_the_labels_and_the_weights(n_classes):
    """And `rate_table` turns the rate of the one column of two classes, of a weaker penalty too."""
    X, _, bags, P = of_classes(n_classes, 80)
    model = CountLogistic(1.0, tol=1e-8, exact_up_to=0).fit(X, bags, P)
    group, (fit, data) = X[:, 0] > 0, un.read_fit(model, X, bags, P)
    rates, slopes, variances = un.rates_and_slopes(fit, group[None])
    scores, own = model.decision_function(X), (fit.observed, group[None], 0)
    assert_allclose(rates, un.posterior_rates(scores, *own))
    up, down = (un.posterior_rates(a * scores, *own) for a in (1.0001, 0.9999))
    along = slopes[0] @ fit.weights.ravel()
    assert_allclose((up - down)[0] / 2e-4, along, rtol=1e-4)
    V = un._table.covariance_of(fit)
    of_weights = np.array([b @ V.matrix @ b for b in slopes[0]])
    labels, weights = np.sqrt(variances[0]), np.sqrt(of_weights)
    assert min(labels.min(), weights.min()) > 0.2 * max(labels.max(), weights.max())
    found = un.group_rate(model, X, bags, P, group)
    assert_allclose(found["error"], np.hypot(labels, weights))
    sums = un._groups.group_sums(fit, group[None], data, 0.0)
    table = un.rate_table(sums, V, np.array([True]), data.classes, 0.95)
    pd.testing.assert_frame_equal(table.drop(columns="weaker"), found)
    assert_allclose(table["weaker"], rates[0] + slopes[0] @ V.step)
    whole = un.group_rate(model, X, bags, P, np.where(group, "a", "b"))
    means = (whole["rate"] * whole["n"]).to_numpy().reshape(2, -1).sum(axis=0) / len(X)
    assert_allclose(means, P.mean(axis=0)[-len(means) :], atol=1e-6)
    assert found.index.names == (["group"] if n_classes == 2 else ["group", "class"])


def test_tomography_by_hand():
    bags = np.repeat([0, 1, 2], [4, 4, 2])
    group = np.array([1, 1, 0, 0, 1, 1, 1, 1, 0, 0], bool)
    table = un.tomography(bags, pd.Series([0.75, 0.5, 0.5]), group)
    assert_allclose(table.loc[0], [0.75, 0.5, 0.5, 1.0, 0.5, 1.0])
    assert_allclose(table.loc[1, ["low", "high"]], [0.5, 0.5])
    assert table.loc[1, ["rest_low", "rest_high"]].isna().all()


# --- accuracy ----------------------------------------------------------------------------------------------


def test_accuracy_bounds_for_three_classes():
    rng, bags = np.random.default_rng(0), np.zeros(6, int)
    for truth, predicted in rng.integers(-1, 2, (15, 2, 6)):
        P = pd.DataFrame(
            [[np.mean(truth == c) for c in (-1, 0, 1)]], columns=[-1, 0, 1]
        )
        labels = np.array([*permutations(truth)])
        right = (labels == predicted).mean(axis=1)
        found = un.accuracy_bounds(predicted, bags, P)
        assert_allclose(found, [right.min(), right.max()])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_expected_accuracy_is_that_of_the_posteriors(n_classes):
    X, y, bags, P = of_classes(n_classes)
    model = CountLogistic(1.0).fit(X, bags, P)
    proba, best = model.predict_proba(X), model.predict(X)
    assert un.expected_accuracy(model, X) == pytest.approx(proba.max(axis=1).mean())
    data = un.read_shares(model, X, bags, P)
    q = un._accuracy.expected_labels(proba, model, data)
    assert_allclose(data.bag_means(q), P, atol=1e-6)
    expected = un.expected_accuracy(model, X, bags=bags, proportions=P)
    assert expected == pytest.approx(q[np.arange(480), best].mean())
    each = {"bags": np.arange(480), "proportions": np.eye(n_classes)[y]}
    pure = un.expected_accuracy(model, X, **each)
    assert pure == pytest.approx(model.score(X, y))  # bags of one tell the labels


def test_shares_without_whole_counts_are_said_unless_they_are_stated():
    bags, shares = np.repeat([0, 1, 2], [4, 3, 10]), np.array([0.5, 1 / 3, 0.5])
    asks = (
        lambda p, **kw: un.accuracy_bounds(bags % 2, bags, p, **kw),
        lambda p, **kw: un.group_rate_bounds(bags, p, bags > 0, **kw),
        lambda p, **kw: un.tomography(bags, p, bags > 0, **kw),
    )
    for ask in asks:
        assert not said(ask, shares)[1] and not said(ask, shares + 9e-7)[1]
        text = said(ask, shares + np.array([1e-3, 1.1e-6, 0]))[1]
        assert text[0].startswith("the shares of 2 bags give no whole counts")
        assert not said(ask, shares + 1e-3, rounding=0.005)[1]
        for wrong in (1.0, -1e-9, "0.1"):
            with pytest.raises(ValueError, match=f"rounding must .* got {wrong!r}"):
                ask(shares, rounding=wrong)


# --- bags that do not fit ----------------------------------------------------------------------------------


@pytest.mark.equation("eq-uncertainty-z")
def test_z_by_hand():
    X, _, bags, P = problem()
    model = CountLogistic(C=10.0).fit(X, bags, P)
    report = un.bag_report(model, X, bags, P)
    s = model.predict_proba(X)[:, 1]
    for k in (0, 7, 59):
        row, v = report.table.loc[k], s[bags == k]
        error = np.sqrt(np.sum(v * (1 - v))) / 8
        assert row["error"] == pytest.approx(error)
        assert row["z"] == pytest.approx((P[k, 1] - v.mean()) / error)
    assert report.table["z"].abs().is_monotonic_decreasing
    middle = report.table["z"].abs().median()
    assert report.spread == pytest.approx(middle / norm.ppf(0.75))


def test_the_influence_is_that_of_leaving_a_bag_out():
    X, _, bags, P = problem(40, 6, seed=1)
    model = CountLogistic(C=10.0, tol=1e-8).fit(X, bags, P)
    found = un.bag_influence(model, X, bags, P)
    real, out = [], range(0, 40, 4)
    for k in out:
        keep = bags != k
        codes = np.unique(bags[keep], return_inverse=True)[1]
        left = clone(model).fit(X[keep], codes, np.delete(P, k, 0))
        gap = left.coef_ - model.coef_, left.intercept_ - model.intercept_
        real.append(np.append(*gap))
    assert_allclose(found.loc[out], real, atol=0.1 * np.abs(real).max())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_moved_rates_are_derivatives_and_labels_are_bags_without_a_row(n_classes):
    X, y, bags, P = of_classes(n_classes, 40, 6)
    pipe = make_pipeline(pre.StandardScaler(), CountLogistic(1.0, tol=1e-8))
    pipe.fit(X, bags, countlogistic__proportions=P)
    model, Z, group = pipe[-1], pipe[0].transform(X), X[:, 0] > 0
    found = un.bag_influence(model, Z, bags, P)
    moved = un.bag_influence(model, Z, bags, P, group=group)
    W = np.column_stack([model.coef_, model.intercept_])
    ones = np.column_stack([Z, np.ones(len(Z))])
    for k in (0, 7):
        step = 1e-4 * found.loc[k].to_numpy().reshape(W.shape)
        ends = [ones[group] @ (W + sign * step).T for sign in (1, -1)]
        ends = [np.column_stack([0 * f, f]) if n_classes == 2 else f for f in ends]
        up, down = (softmax(f, axis=1).mean(axis=0) for f in ends)
        change = ((up - down) / 2e-4)[-moved.shape[1] :]
        assert_allclose(moved.loc[k], change, rtol=1e-5)
    assert moved.columns.tolist() == [*range(n_classes)][-moved.shape[1] :]
    # In the units of the features: the log-odds of an instance change as those of the scaled one.
    given = un.bag_influence(pipe, X, bags, P).loc[7].to_numpy().reshape(W.shape)
    own = found.loc[7].to_numpy().reshape(W.shape)
    assert_allclose(given @ np.append(X[3], 1), own @ ones[3])
    labels = np.where(np.arange(len(y)) % 4 == 0, y, -1)
    codes = np.where(labels < 0, bags, 40 + np.arange(len(y)))
    codes = np.unique(codes, return_inverse=True)[1]
    shares = label_proportions(y, codes, classes=range(n_classes))
    model = CountLogistic(1.0, tol=1e-8).fit(X, codes, shares)
    for part in ({}, {"group": group}):
        one = un.bag_influence(model, X, bags, P, labels=labels, **part)
        two = un.bag_influence(model, X, codes, shares, **part)
        assert_allclose(one, two[:40], atol=1e-8)


# --- bootstrap ---------------------------------------------------------------------------------------------


def slopes(model):
    return model.coef_[0]


def test_drawn_bags_are_whole_and_new():
    bags = np.array([2, 0, 1, 0, 2, 2])
    rows, codes = un.draw_bags(bags, 3, np.array([2, 0, 2]))
    assert rows.tolist() == [0, 4, 5, 1, 3, 0, 4, 5]
    assert codes.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]


def test_the_bootstrap_has_the_standard_errors_of_the_sandwich():
    X, _, bags, P = problem(100, 3, seed=2)
    model = CountLogistic(C=10.0)
    drawn = un.bag_bootstrap(model, X, bags, P, slopes, n_resamples=20, random_state=0)
    table = un.coefficient_table(model.fit(X, bags, P), X, bags, P)
    assert_allclose(drawn.errors, table.errors[:2], rtol=0.4)
    assert_allclose(drawn.errors, np.std(drawn.replicates, axis=0, ddof=1))
    assert drawn.replicates.shape == (20, 2) and drawn.failed == 0
    ends = np.quantile(drawn.replicates, [0.05, 0.95], axis=0)
    assert_allclose(drawn.interval(0.9, "percentile").T, ends)
    half = drawn.interval() - drawn.estimate[:, None]
    assert_allclose(half.T, 1.959964 * np.outer([-1, 1], drawn.errors), rtol=1e-6)
    for words, options in (
        ("studentized' needs a statistic", {"kind": "studentized"}),
        ("studentized'\\), got 'bca'", {"kind": "bca"}),
        ("level must lie between 0 and 1, got 1", {"level": 1}),
    ):
        with pytest.raises(ValueError, match=words):
            drawn.interval(**options)


def test_the_bootstrap_takes_pipelines_frames_names_and_pairs(capsys):
    X, _, bags, P = problem(40, 3)
    frame = pd.DataFrame(X, columns=["a", "b"])
    shares = pd.DataFrame(P, [f"county {k}" for k in range(40)], ["no", "yes"])
    pipe = make_pipeline(pre.StandardScaler(), CountLogistic(C=1.0))
    names = shares.index.to_numpy()[bags]

    def pair(model):
        assert model.classes_.tolist() == ["no", "yes"]
        return model[-1].coef_[0], 1 + np.abs(model[-1].coef_[0])

    drawn = un.bag_bootstrap(
        pipe, frame, names, shares, pair, n_resamples=10, random_state=0, verbose=2
    )
    assert "bag_bootstrap: 10 of at most 10 draws" in capsys.readouterr().out
    errors = 1 + np.abs(drawn.replicates)
    off = (drawn.replicates - drawn.estimate) / errors
    errors = 1 + np.abs(drawn.estimate)
    high, low = drawn.estimate - errors * np.quantile(off, [0.05, 0.95], axis=0)
    assert_allclose(drawn.interval(0.9, "studentized").T, [low, high])
    task = CountLogistic(C=1.0), X, bags, P, slopes
    one = un.bag_bootstrap(*task, n_resamples=4, random_state=0)
    with parallel_config("threading"):
        both = un.bag_bootstrap(*task, n_resamples=4, random_state=0, n_jobs=2)
    assert_allclose(both.replicates, one.replicates)


def test_the_estimator_of_a_bootstrap_keeps_the_parameters_of_its_bags():
    X, _, bags, P = problem()
    own = pd.Series(1.0 + np.arange(len(P)), name="by bag")
    model = MeanMap(bag_weights=own)
    un.bag_bootstrap(model, X, bags, P, slopes, n_resamples=2, random_state=0)
    assert model.bag_weights is own


def test_draws_without_differences_are_counted_and_said():
    X, _, bags, P = problem(2, 20, seed=1)
    with pytest.warns(LLPWarning, match="of 20 draws of bags cannot be fitted") as said:
        drawn = un.bag_bootstrap(
            CountLogistic(C=1.0), X, bags, P, slopes, n_resamples=20, random_state=0
        )
    assert said[0].filename == __file__ and 0 < drawn.failed < 20
    assert len(drawn.replicates) == 20 - drawn.failed
    assert str(said[0].message).startswith(f"{drawn.failed} of 20 draws")
    # Two fits are an answer, one is none.
    tasks = [delayed(SimpleNamespace)()] * 2 + [delayed(type(None))()] * 2
    with pytest.warns(LLPWarning, match="^2 of 4 draws"):
        assert len(un._bootstrap._fit_draws(tasks, 4, None, 0)) == 2
    with pytest.raises(ValueError, match="only 1 of 3 draws can be fitted"):
        un._bootstrap._fit_draws(tasks[1:], 3, None, 0)


# --- silent wrong answers of earlier versions --------------------------------------------------------------


@pytest.mark.parametrize(
    "steps",
    [
        (SimpleImputer(), pre.StandardScaler()),
        ("passthrough", pre.StandardScaler(with_std=False), pre.MaxAbsScaler()),
        (pre.MaxAbsScaler(), None, pre.RobustScaler(with_centering=False)),
        (pre.RobustScaler(with_scaling=False), pre.StandardScaler()),
        (pre.MinMaxScaler(clip=True),),
        (pre.StandardScaler(with_mean=False), pre.RobustScaler()),
        (pre.StandardScaler(), pre.RobustScaler()),
    ],
)
def test_known_steps_are_undone_and_log_odds_stay(steps):
    X, _, bags, P = problem()
    X = pd.DataFrame({"income": 1e4 * X[:, 0] + 3e4, "age": X[:, 1]})
    pipe = make_pipeline(*steps, CountLogistic(C=10.0))
    pipe.fit(X, bags, countlogistic__proportions=P)
    b = un.coefficient_table(pipe, X, bags, P).coefficients
    assert b.index.tolist() == ["income", "age", "intercept"]
    by_table = X.to_numpy() @ b[:2] + b["intercept"]
    assert_allclose(by_table, pipe.decision_function(X), atol=1e-9)
    # The standard error of the log-odds does not depend on the units.
    scaled = pipe[:-1].transform(X)
    inner = un.coefficient_table(pipe[-1], scaled, bags, P).covariance_.to_numpy()
    x, z = np.append(X.iloc[0], 1), np.append(scaled[0], 1)
    given = un.coefficient_table(pipe, X, bags, P).covariance_
    assert_allclose(x @ given @ x, z @ inner @ z, rtol=1e-6)


def nameless(X):
    return X**2


OF_TWO = ["age (transformed)", "x (transformed)"]
STEPS = [
    ([pre.PolynomialFeatures(include_bias=False)], [*OF_TWO, "age^2", "age x", "x^2"]),
    ([pre.StandardScaler(), pre.PolynomialFeatures(2, interaction_only=True, include_bias=False)],
     [*OF_TWO, "age x (transformed)"]),
    ([pre.FunctionTransformer(nameless)], ["column 0 (transformed)", "column 1 (transformed)"]),
    ([SimpleImputer(add_indicator=True)], [*OF_TWO, "missingindicator_age"]),
    ([pre.PowerTransformer()], OF_TWO),
    ([pre.StandardScaler()], ["age (scaled)", "x (scaled)"]),
    ([pre.StandardScaler(with_mean=False)], ["age", "x"]),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "names"), STEPS)
def test_what_the_steps_return_has_its_own_names(steps, names):
    X, _, bags, P = problem()
    X = pd.DataFrame(X, columns=["age", "x"])
    X.iloc[::9, 0] = np.nan if isinstance(steps[0], SimpleImputer) else 1.0
    pipe = make_pipeline(*steps, CountLogistic(C=1.0, fit_intercept=False))
    pipe.fit(X, bags, countlogistic__proportions=P)
    b = said(un.coefficient_table, pipe, X, bags, P)[0].coefficients
    assert b.index.tolist() == names
    scale = steps[0].scale_ if names == ["age", "x"] else 1.0
    assert_allclose(b, pipe[-1].coef_[0] / scale)
    own = list("abcdef"[: len(names)])
    table, _ = said(un.coefficient_table, pipe, X, bags, P, names=own)
    scaled = " (scaled)" * ("(scaled)" in names[0])
    assert table.coefficients.index.tolist() == [name + scaled for name in own]


@pytest.mark.filterwarnings("ignore:.* predicts class")
def test_parameters_of_bags_follow_the_drawn_bags():
    X, _, bags, P = problem(30, 4)
    rng = np.random.default_rng(0)
    counties = np.array([f"county {k}" for k in range(29, -1, -1)])
    shares = pd.Series(P[:, 1] + rng.laplace(size=30) / 4, counties)
    errors = pd.Series(np.linspace(0.1, 0.9, 30), shares.index)
    model = CountLogistic(proportion_errors=errors[::-1], proportion_noise="laplace")
    seen = []

    def look(fitted):
        seen.append(np.asarray(fitted[-1].proportion_errors))
        return fitted[-1].coef_[0]

    pipe = make_pipeline(pre.StandardScaler(), model)
    given = pipe, X, counties[bags], shares, look
    un.bag_bootstrap(*given, n_resamples=3, random_state=1)
    assert_allclose(seen[0], errors)
    rng = np.random.RandomState(1)
    for own in seen[1:]:
        assert_allclose(own, errors.to_numpy()[rng.randint(30, size=30)])
    named = pd.Series(P[:, 1], counties)
    data = un.read_shares(None, None, counties[bags], named)
    read = un._bootstrap.parameters_of_bags
    assert_allclose(read(MeanMap(bag_weights=errors), data)["bag_weights"], errors)
    words = "bag_weights must have an entry for each of 30 bags, got 29"
    with pytest.raises(ValueError, match=words):
        read(MeanMap(bag_weights=np.ones(29)), data)


def test_the_test_of_all_classes_counts_the_rank():
    V = np.kron(np.eye(3) - 1 / 3, [[1.0]]) * np.outer([1, 1, 1], [1, 1, 1])
    names = ["a: x", "b: x", "c: x"]
    b = pd.Series([2.0, -1.0, -1.0], names)
    table = un.CoefficientTable(b, un.Sandwich(V, 50), 100, 53, 1.0)
    F, p = table.test(names)
    assert pytest.approx(6 / 2) == F  # pinv(V) is V: 4 + 1 + 1, of rank 2
    assert p == pytest.approx(fisher.sf(3.0, 2, 50))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_reports_take_the_noise_that_the_model_states(noise):
    X, _, bags, P = problem()
    errors = np.full(60, 0.3)
    shares = P[:, 1] + 0.3 * np.random.default_rng(0).normal(size=60)
    model = CountLogistic(C=1.0, proportion_errors=errors, proportion_noise=noise)
    model.fit(X, bags, shares)
    assert shares.min() < 0
    report = un.bag_report(model, X, bags, shares)
    assert (report.table["error"] > 0.3).all() and report.deviation == 0
    less = un.bag_report(model, X, bags, shares, proportion_errors=np.full(60, 0.1))
    assert_allclose((report.table["error"] ** 2 - less.table["error"] ** 2), 0.08)
    assert less.deviation > 0.5
    none = {"proportion_errors": None, "proportion_noise": None}
    plain = clone(model).set_params(**none).fit(X, bags, P)
    told = un.bag_report(plain, X, bags, shares, proportion_errors=errors)
    assert (told.table["error"] > 0.3).all()
    assert report.spread_limit == pytest.approx(1 + 2.3 / np.sqrt(60))
    lines = un.tomography(bags, shares, X[:, 0] > 0, model=model, X=X).dropna()
    assert (lines["low"] == 0).all() and (lines["high"] == 1).all()
    fit = un.read_fit(model, X, bags, shares)[0]
    assert fit.observed.laplace == (noise == "laplace")
    rows = un.group_rate(model, X, bags, shares, X[:, 0] > 0, level=0.9)
    assert rows["least"].item() == 0 and rows["most"].item() == 1
    # By enumeration of the first bag: the labelings weigh their probability and that of the noise of their count.
    f = model.decision_function(X[bags == 0])
    ys = np.array([*product((0, 1), repeat=8)], float)
    off = ys.mean(axis=1) - shares[0]
    log_p = ys @ f - off**2 / (2 * 0.09)
    if noise == "laplace":
        log_p = ys @ f - np.abs(off) * np.sqrt(2) / 0.3
    q = softmax(log_p) @ ys
    data = un.read_shares(model, X, bags, shares)
    labels = un._accuracy.expected_labels(model.predict_proba(X), model, data)
    assert_allclose(labels[:8, 1], q, atol=0.02)
    g = (q - expit(f)) @ np.column_stack([X[:8], np.ones(8)])
    assert_allclose(un.bag_gradients(fit)[0], g, atol=0.02)


def test_quantiles_and_limits_by_hand():
    X, _, bags, P = problem()
    model = CountLogistic(C=10.0).fit(X, bags, P)
    groups = np.where(X[:, 0] > 0, "a", "b")
    rows = un.group_rate(model, X, bags, P, groups, level=0.9)
    quantile = (rows["high"] - rows["low"]) / (2 * rows["error"])
    assert_allclose(quantile, student.isf(0.05, 60 - 3), rtol=1e-9)
    for shares, above in ((P, False), (P[::-1], True)):
        report = un.bag_report(model, X, bags, shares, level=0.2)
        assert (report.spread > 1) == above
        limit = max(1.0, report.spread) * norm.isf(0.1 / 60)
        assert report.limit == pytest.approx(limit)
        out = report.table["z"].abs() > limit
        assert report.table["stands_out"].tolist() == out.tolist()


def test_rates_stay_within_their_bounds_in_large_bags():
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(30), 60)
    X = rng.normal(size=(1800, 1)) + 4 * rng.normal(size=(30, 1))[bags]
    y = (rng.random(1800) < expit(3 * X[:, 0])).astype(int)
    P = label_proportions(y, bags)
    model = CountLogistic(C=100.0).fit(X, bags, P)
    with pytest.warns(LLPWarning, match=r"8 of 25 intervals end at 0 or 1 \(-5,"):
        rows = un.group_rate(model, X, bags, P, np.round(X[:, 0]))
    assert (rows["least"] <= rows["rate"]).all()
    assert (rows["rate"] <= rows["most"]).all() and rows["rate"].between(0, 1).all()


def test_labeled_instances_have_no_error_of_their_share():
    X, y, bags, P = problem()
    labels = np.where(np.arange(len(y)) % 8 == 0, y, -1)
    model = CountLogistic(C=1.0, proportion_errors=np.full(60, 0.1))
    model.fit(X, bags, P, labels=labels)
    fit = un.read_fit(model, X, bags, P, labels)[0]
    alone = fit.used < 0
    assert alone.sum() == 60 and not fit.observed.errors[alone].any()
    assert_allclose(fit.observed.errors[~alone], (8 * 0.1) ** 2)  # 8/7 wider, 7 people


def test_a_column_of_zeros_hides_nothing():
    """It has the coefficient 0 and no error; a model of other bags is found out beside it, too."""
    X, _, bags, P = problem(size=10)
    Z = np.column_stack([X, np.zeros(len(X))])
    model = CountLogistic(10.0, tol=1e-6).fit(Z, bags, P)
    table = un.coefficient_table(model, Z, bags, P)
    model_without = CountLogistic(10.0, tol=1e-6).fit(X, bags, P)
    without = un.coefficient_table(model_without, X, bags, P)
    assert table.errors.iloc[2] == 0
    F, _ = table.test(["x0", "x1", "x2"])
    assert_allclose(F, without.test(["x0", "x1"])[0], rtol=1e-4)
    with pytest.raises(ValueError, match="'x2', whose column is 0 everywhere"):
        table.test("x2")
    with pytest.raises(ValueError, match="'x2', whose column is 0 everywhere"):
        table.test(["x0", "x2"], [0.0, 1.0])
    assert table.test(["x0", "x2"], [1.0, 0.0]) == table.test("x0", 1.0)


@pytest.fixture(scope="module")
def fitted():
    """A model, and the bags that it was fitted to."""
    X, _, bags, P = problem()
    return CountLogistic(C=10.0, tol=1e-6).fit(X, bags, P), X, bags, P


REFUSED = {
    "at least one instance": lambda m, *g: un.group_rate_bounds(*g[1:], g[0][:, 0] > 99),
    "group must have one entry": lambda m, *g: un.group_rate_bounds(*g[1:], [True]),
    "group must be a mask": lambda m, *g: un.tomography(*g[1:], g[1].astype(str)),
    "both bags and proportions": lambda m, X, b, P: un.expected_accuracy(m, X, bags=b),
    "have predict_proba": lambda m, X, b, P: un.expected_accuracy(LinearSVC().fit(X, b > 3), X),
    "holds -1, which is none": lambda m, X, b, P: un.accuracy_bounds(0 * b - 1, b, P),
    r"\['no', 'yes'\], the model": lambda m, X, b, P: un.expected_accuracy(m, X, bags=b, proportions=named(P)),
    "the classes": lambda m, X, b, P: un.coefficient_table(m, X, b, named(P)),
    "one bag per": lambda m, X, b, P: un.group_rate_bounds(None, P, b > 3),
    "level must lie between 0 and 1, got '0.1'": lambda m, *g: un.coefficient_table(m, *g, level="0.1"),
    "statistic must return": lambda m, *g: un.bag_bootstrap(m, *g, lambda m: None),
    "n_resamples must be": lambda m, *g: un.bag_bootstrap(m, *g, slopes, n_resamples=1),
    "got MeanMap: for other": lambda m, *g: un.coefficient_table(MeanMap().fit(*g), *g),
    "got 'rbf'": lambda m, *g: un.coefficient_table(CountLogistic(kernel="rbf").fit(*g), *g),
    "must maximize": lambda m, *g: un.coefficient_table(BagLogistic("proportion").fit(*g), *g),
    "the gradient per instance is": lambda m, X, b, P: un.coefficient_table(m, X, b, P[::-1]),
    "each of 2 features": lambda m, *g: un.coefficient_table(m, *g, names=["a"]),
}  # fmt: skip


def named(P):
    return pd.DataFrame(P, columns=["no", "yes"])


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_wrong_is_named(message, fitted):
    model, *given = fitted
    with pytest.raises(ValueError, match=message):
        REFUSED[message](clone(model).fit(*given), *given)


@pytest.mark.parametrize(("out", "rows", "tau"), [(3, 5, 0), (7, 7, 0.254), (15, 12, 0.25)])  # fmt: skip
def test_a_report_prints_its_numbers(out, rows, tau):
    equal = dict.fromkeys(["n", "observed", "expected", "error"], 1.0)
    own = {"z": np.arange(20) / 9, "stands_out": np.arange(20) < out}
    table = pd.DataFrame({**equal, **own})
    text = str(un.BagReport(table, 1.104, 3.24, 1.514, tau)).split("\n", 2)
    assert text[0] == (
        f"{out} of 20 stand out: |z| > 3.2; typical differences are 1.10 standard errors (by chance up to 1.51)."
    )
    how = "by 0.25 in log-odds beyond the chance of counts"
    wanted = f"The shares deviate {how if tau else 'no more than chance gives'}."
    assert text[1:] == [wanted, table[:rows].round(3).to_string()]


def test_pictures_show_each_bag(fitted):
    model, X, bags, P = fitted
    table = un.tomography(bags, P, X[:, 0] > 0, model=model, X=X)
    lines = [line.get_xydata() for line in un.plot_tomography(table).lines]
    both = table[(table["inside"] > 0) & (table["inside"] < 1)]
    assert len(lines) == len(both) + 1 < len(table)  # and the rates
    assert_allclose(lines[-1], both[["rate", "rest_rate"]])
    assert_allclose([line[:, 0] for line in lines[:-1]], both[["low", "high"]])
    report = un.bag_report(model, X, bags, P)
    report.table["stands_out"] = report.table["z"].abs() > 1.5
    names = pd.Index([f"$ {k}" for k in report.table.index])
    ax = replace(report, table=report.table.set_index(names)).plot()
    out = report.table["stands_out"]
    assert 0 < len(ax.texts) == min(out.sum(), 12)
    shown = [report.table.loc[rows, ["expected", "z"]] for rows in (~out, out)]
    for line, wanted in zip(ax.lines, shown, strict=False):
        assert_allclose(line.get_xydata(), wanted)
    assert_allclose([text.xy for text in ax.texts], shown[1][: len(ax.texts)])
    ends = [line.get_ydata()[0] for line in ax.lines[2:]]
    assert ends == [-report.limit, 0, report.limit]
    ax.figure.canvas.draw()  # a name with a dollar sign is no formula


def test_bags_without_instances_are_not_drawn(fitted):
    model, X, bags, P = fitted
    options, more = {"n_resamples": 2, "random_state": 0}, np.vstack([P, P[:9]])
    one = un.bag_bootstrap(model, X, bags, P, slopes, **options)
    two = un.bag_bootstrap(model, X, bags, more, slopes, **options)
    assert_allclose(one.replicates, two.replicates)


@pytest.mark.equation("eq-uncertainty-bounds", "eq-uncertainty-accuracy")
@pytest.mark.parametrize("off", [0, 1])
def test_bounds_by_all_labelings_of_all_counts(fitted, off):
    """Two bags of four, shares off by at most a quarter: each count off by at most one."""
    rng, bags = np.random.default_rng(0), np.repeat([0, 1], 4)
    for counts in product(range(5), range(5)):
        near = product(*(range(max(c - off, 0), min(c + off, 4) + 1) for c in counts))
        labels = np.array([y for c in near for y in labelings(bags, c)])
        guess, group = rng.integers(0, 2, 8), rng.random(8) < 0.6
        P, group[0] = np.array(counts) / 4, True
        right, rates = (labels == guess).mean(axis=1), labels[:, group].mean(axis=1)
        ends = un.accuracy_bounds(guess, bags, P, rounding=0.25 * off)
        assert_allclose(ends, [right.min(), right.max()])
        row = un.group_rate_bounds(bags, P, group, rounding=0.25 * off).loc[True]
        assert_allclose(row[["low", "high"]], [rates.min(), rates.max()])
        lines = un.tomography(bags, P, group, rounding=0.25 * off)
        inside = 4 * lines["inside"]
        for end, bound in zip(("low", "high"), row[["low", "high"]], strict=True):
            assert (lines[end] * inside).sum() / group.sum() == pytest.approx(bound)
    model, X, bags, P = fitted
    row = un.group_rate(model, X, bags, P, X[:, 0] > 0, rounding=0.1)
    bounds = un.group_rate_bounds(bags, P, X[:, 0] > 0, rounding=0.1)
    assert_allclose(row[["least", "most"]], bounds[["low", "high"]])


# --- what an interval takes for granted ---------------------------------------------------------------------


def shares_with_effects(n_bags, size, tau, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X, _, bags, _ = problem(n_bags, size, d=d, seed=seed)
    f = X @ np.append(SLOPES, np.zeros(d - 2)) + tau * rng.normal(size=n_bags)[bags]
    return X, bags, label_proportions((rng.random(len(f)) < expit(f)).astype(int), bags)


def said(function, *given, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LLPWarning)
        found = function(*given, **options)
    return found, [str(w.message) for w in caught]


# --- what is said, and when: both sides of each limit ------------------------------------------------------------


def loud(ratio, most, slope=0.25):
    """`NormalCounts` whose ratio is known."""
    return SimpleNamespace(flat=lambda: SimpleNamespace(ratio=lambda: (ratio, most)), slope=slope)  # fmt: skip


def rows_of(*ends):
    """A table of `rate_table` whose rows a, b, … have the low, high, least and most that are given."""
    columns = ["low", "high", "least", "most"]
    table = pd.DataFrame(ends, list("abcdef"[: len(ends)]), columns)
    return table.assign(rate=0.5, error=0.1, weaker=0.5)


ENDS = [(0, 0.4, 0, 0.5), (0.6, 1, 0.5, 1), (0.1, 0.9, 0, 1), (0, 0, 0, 0), (1, 1, 1, 1)]  # fmt: skip
SERIES = [pd.Series(v, list("abc")) for v in ([1.0, 2, 0], [1.0, 0.5, 0], [2.0, 1.5, 0], [2.5, 0, 0])]  # fmt: skip
C4 = SimpleNamespace(C=4.0)
FEW, RATES = cautions.caution_of_few, cautions.caution_of_rates
BAGS, PENALTY = cautions.caution, cautions.caution_of_penalty
SAID = [
    (FEW, (20, 20), "20 bags for 20 coefficients: the penalty stands"),
    (FEW, (21, 20), "21 bags are under 3 for each of 20 coefficients"),
    (FEW, (62, 21), "62 bags are under 3 for each of 21 coefficients"),
    (FEW, (63, 21), ""),
    (FEW, (29, 3), "29 bags and 26 degrees of freedom are few: with under 30 bags or 20 degrees"),
    (FEW, (30, 10), ""),
    (BAGS, (20, 20, []), "20 bags for 20 coefficients"),
    (BAGS, (29, 2, [loud(9, 0.5)]), "the shares of 29 bags deviate"),
    (BAGS, (99, 2, [loud(6.6, 0.5)]), ""),
    (BAGS, (99, 2, [loud(6.7, 0.1)]), ""),
    (BAGS, (99, 2, [loud(9, 0.5)], 0.1), ""),
    (BAGS, (99, 2, [loud(6.7, 0.2)]), "the shares of 99 bags deviate from the model by 0.2 in log-odds (about 5 "),
    (BAGS, (99, 2, [loud(8, 0.2, 0.1), loud(9, 0.5, 0.2), loud(1, 0.9, 0.1)]), "by 0.5 in log-odds (about 10 points)"),
    (RATES, (rows_of(*ENDS), C4, 99, 3), "2 of 5 intervals end at 0 or 1 (a, b):"),
    (RATES, (rows_of(*ENDS[:2], *ENDS[:1]), C4, 99, 3), "3 of 3 intervals end at 0 or 1 (a, b, c):"),
    (RATES, (rows_of(*ENDS[1::-1] * 2), C4, 99, 3), "4 of 4 intervals end at 0 or 1 (a, b, c, …):"),
    (RATES, (rows_of(*ENDS[2:]), C4, 99, 33), ""),
    (RATES, (rows_of(*ENDS), C4, 98, 33), ""),
    (PENALTY, ("rate", *SERIES[:3], 0.1), ""),
    (PENALTY, ("rate", *SERIES[:2], SERIES[3], 0.1),
     "the penalty C=0.1 holds 2 of 3 rates: with C=10 that of b would be about 0 instead of 2, 4.0 standard"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "words"), SAID)
def test_what_is_said_holds_the_true_numbers_at_its_limits(function, given, words):
    text = " ".join(said(function, *copy.deepcopy(given))[1])
    assert words in text and bool(words) == bool(text)


def test_the_step_of_a_weaker_penalty_by_hand():
    """A Newton step from the maximum; where the counts alone have none, with the whole curvature."""
    w, penalty = np.array([[2.0, 1.0]]), sp.diags_array([1.0, 0.25])
    left = 0.99 * np.array([1.0, 0.25])
    V, A = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[2.0, 0.0], [1.0, 1.0]])
    for J, H in (([3.0, 2.0], [2.01, 1.7525]), ([0.5, 2.0], [0.5, 2.0])):
        found = un.Sandwich.of(V, 9, w, np.diag(J), penalty)
        assert_allclose(found.step, left * w[0] / H)
        assert (found.C, found.df) == (1.0, 9)
        units = found.in_units(A)
        assert_allclose(units.step, A @ found.step)
        assert_allclose(units.block(), A @ V @ A.T)
        assert_allclose(units.block([1]), [[7.0]])
        assert_allclose(units.variances(), [8, 7])
        assert_allclose(found.quadratic(A), [8, 7])


def test_the_sentence_about_the_penalty_is_in_the_units_of_the_table():
    X, _, bags, P = problem(200, 20)
    X = X * [1e3, 1.0]
    pipe = make_pipeline(pre.MaxAbsScaler(), CountLogistic(0.001, tol=1e-9))
    pipe.fit(X, bags, countlogistic__proportions=P)
    Z, found = pipe[0].transform(X), []
    for model, given in ((pipe, X), (pipe[-1], Z)):
        _, (text, *_) = said(un.coefficient_table, model, given, bags, P)
        form = r"that of x(\d) would be about (\S+) instead of (\S+), (\S+) standard"
        found.append(np.array(re.findall(form, text)[0], float))
    scale = pipe[0].scale_[int(found[0][0])]
    assert_allclose(found[0] * [1, scale, scale, 1], found[1], rtol=0.01)


@pytest.mark.parametrize("C", [0.001, 0.1])
def test_a_penalty_that_holds_a_rate_is_said_with_the_value_of_a_weaker_one(C):
    rng = np.random.default_rng(0)
    X, bags = rng.normal(size=(6000, 1)), np.repeat(np.arange(120), 50)
    y = (rng.random(6000) < expit(3 * X[:, 0] - 0.5)).astype(int)
    given, group, found = (X, bags, label_proportions(y, bags)), X[:, 0] > 0, {}
    for c in (C, 100 * C, 100.0):
        model = CountLogistic(c, tol=1e-7).fit(*given)
        found[c] = said(un.group_rate, model, *given, group)
    rates, (*_, text) = found[C]
    assert rates["high"].item() < y[group].mean() - 0.05
    assert f"C={C:g} holds 1 of 1 rates: with C={100 * C:g}" in text
    weaker, own = float(text.partition("about ")[2].split()[0]), found[100 * C][0]
    off = own["rate"].item() - np.array([weaker, rates["rate"].item()])
    assert abs(off[0]) < 0.4 * abs(off[1])
    assert not found[100.0][1]


def test_bags_of_one_model_are_not_said_to_deviate():
    heard = beyond = out = 0
    for seed in range(30):
        X, bags, P = shares_with_effects(50, 20, 0.0, seed)
        model = CountLogistic(100.0, tol=1e-6).fit(X, bags, P)
        heard += len(said(un.coefficient_table, model, X, bags, P)[1])
        report = un.bag_report(model, X, bags, P)
        beyond += report.deviation > 0
        out += report.table["stands_out"].any()  # in 5 % by the level
    assert heard <= 2 >= beyond and out <= 5


@pytest.mark.parametrize("size", [20, 200])
def test_bags_that_deviate_are_said_whatever_their_size(size):
    X, bags, P = shares_with_effects(80, size, 0.7)
    model = CountLogistic(100.0, tol=1e-6).fit(X, bags, P)
    for ask in (un.coefficient_table, un.group_rate):
        given = (X[:, 0] > 0,) if ask is un.group_rate else ()
        text = said(ask, model, X, bags, P, *given)[1]
        assert len(text) == 1 and text[0].startswith("the shares of 80 bags deviate")
        assert "by 0.5 in" in text[0] or "by 0.75 in" in text[0]
    assert un.bag_report(model, X, bags, P).deviation in (0.5, 0.75)
    # A model with intercepts has them in its errors of slopes; a rate still takes one P(y | x) for granted.
    mixed = CountLogistic(100.0, bag_deviation="estimate", tol=1e-6).fit(X, bags, P)
    assert not said(un.coefficient_table, mixed, X, bags, P)[1]
    assert said(un.group_rate, mixed, X, bags, P, X[:, 0] > 0)[1]


@pytest.mark.parametrize("n_bags", [20, 21, 62, 63])
def test_with_few_bags_per_coefficient_the_bounds_are_the_interval(n_bags):
    X, bags, P = shares_with_effects(n_bags, 20, 0.0, d=20)
    model = CountLogistic().fit(X, bags, P)
    more = np.vstack([P, P[:3]])  # nobody is in the last bags
    row, text = said(un.group_rate, model, X, bags, more, X[:, 0] > 0)
    ends = row[["low", "high"]].to_numpy() == row[["least", "most"]].to_numpy()
    assert ends.tolist() == [[n_bags < 63] * 2]
    assert any(f"{n_bags} bags" in one for one in text) == (n_bags < 63)
    if n_bags > 61:
        frame = pd.DataFrame(X).assign(bag=bags, g=X[:, 0] > 0)
        given = model, [frame], P, "g"
        part, _ = said(un.chunk_group_rate, *given, bags="bag", features=[*range(20)])
        pd.testing.assert_frame_equal(part, row, check_index_type=False)


def test_more_coefficients_than_bags_have_the_errors_of_laplace():
    """The inverse of penalty and information, as matrices; bags of one: the curvature of logistic regression."""
    X, y, _, _ = problem(30, 1, d=40)
    bags, C = np.arange(30), 0.5
    model = CountLogistic(C, tol=1e-9).fit(X, bags, y.astype(float))
    table, text = said(un.coefficient_table, model, X, bags, y.astype(float))
    assert "30 bags for 41 coefficients" in text[0] and "Laplace's" in str(table)
    Z = np.column_stack([X, np.ones(30)])
    s = model.predict_proba(X)[:, 1]
    prior = np.append(np.full(40, 1 / C), 1e-4 / C)
    inverse = np.linalg.inv(np.diag(prior) + (Z.T * (s * (1 - s))) @ Z)
    assert_allclose(table.covariance_, inverse, rtol=1e-6, atol=1e-9)
    assert_allclose(table.errors, np.sqrt(np.diag(inverse)), rtol=1e-8)
    ends = table.interval(0.9)
    assert_allclose(ends["high"] - ends["low"], 2 * norm.isf(0.05) * table.errors)
    gap = table.coefficients.iloc[:2]
    F = gap @ np.linalg.solve(inverse[:2, :2], gap) / 2
    assert table.test(["x0", "x1"])[0] == pytest.approx(F, rel=1e-6)
    rates, _ = said(un.group_rate, model, X, bags, y.astype(float), X[:, 0] > 0)
    assert rates["error"].item() == pytest.approx(0, abs=1e-6)  # the labels are known


def test_several_classes_and_units_have_the_errors_of_laplace():
    rng = np.random.default_rng(0)
    X, bags = rng.normal(size=(80, 9)) * 3, np.repeat(np.arange(20), 4)
    P = label_proportions(rng.integers(0, 3, 80), bags, classes=range(3))
    pipe = make_pipeline(pre.StandardScaler(), CountLogistic(0.5, tol=1e-9))
    pipe.fit(X, bags, countlogistic__proportions=P)
    table, _ = said(un.coefficient_table, pipe, X, bags, P)
    fit, _ = un.read_fit(pipe, X, bags, P)
    F = un.information_factors(fit)
    A = np.diag(np.append(1 / pipe[0].scale_, 1.0))
    A[-1, :-1] = -pipe[0].mean_ / pipe[0].scale_
    A = np.kron(np.eye(3), A)
    inverse = np.linalg.inv(np.diag(fit.curvature.diagonal()) + F.T @ F)
    S = rng.normal(size=(4, 30))
    quadratic = un.laplace_covariance(fit).quadratic(S)
    assert_allclose(quadratic, np.diag(S @ inverse @ S.T), rtol=1e-6)
    by_hand = A @ inverse @ A.T
    assert_allclose(table.covariance_, by_hand, rtol=1e-6, atol=1e-9)
    moved = CountLogistic(0.5).fit(X, bags, P[::-1])
    with pytest.raises(ValueError, match="not at the maximum"):
        un.coefficient_table(moved, X, bags, P)


def test_groups_that_share_no_bag_rise_at_once():
    X, _, bags, P = problem(20, 8)
    model = CountLogistic().fit(X, bags, P)
    fit, _ = un.read_fit(model, X, bags, P)
    halves = (X[:, 0] > 0).astype(int)
    members = np.array([(bags == k) & (halves == h) for k in range(20) for h in (0, 1)])
    members = members[members.any(axis=1)]
    assert len(un.apart(members, fit.observed)) == 2
    together = un.rates_and_slopes(fit, members)
    for g, mine in enumerate(members):
        alone = un.rates_and_slopes(fit, mine[None])
        for one, other in zip(together, alone, strict=True):
            assert_allclose(one[g], other[0], atol=1e-12)


def test_the_variance_after_the_counts_loses_what_each_of_them_tells():
    left = un._covariance.LaplaceCovariance(None, np.array([4.0, 9.0]), np.eye(2))
    assert left.quadratic(np.array([[1.0, 1.0]])) == pytest.approx([13 - 2])


def test_the_deviations_of_several_classes_are_those_of_each_against_the_rest():
    rng, bags = np.random.default_rng(0), np.repeat(np.arange(4), 5)
    scores, Z, counts = rng.normal(size=(20, 3)), np.ones((20, 1)), rng.random((4, 3))
    known = BagCounts(bags, np.full(4, 5), counts, rng.random((4, 3, 3)))
    S = softmax(scores, axis=1)
    for c, found in enumerate(cautions.deviations(scores, Z, known)):
        rest = np.log(np.delete(np.exp(scores), c, axis=1).sum(axis=1))
        alone = replace(known, counts=counts[:, c], errors=known.errors[:, c, c])
        wanted = cautions.deviations(scores[:, c] - rest, Z, alone)[0]
        for name in ("V", "noise", "y", "A", "slope"):
            assert_allclose(getattr(found, name), getattr(wanted, name))
        assert_allclose(found.y, counts[:, c] - np.bincount(bags, S[:, c]))
        assert_allclose(found.noise, known.errors[:, c, c])
        assert found.slope == pytest.approx(np.mean(S[:, c] * (1 - S[:, c])))


def test_a_free_linear_model_knows_no_scale_and_tries_each_deviation():
    X, bags, P = shares_with_effects(30, 20, 0.7)
    fit, _ = un.read_fit(CountLogistic().fit(X, bags, P), X, bags, P)
    near = cautions.deviations(fit.Z @ fit.weights[0], fit.Z, fit.observed)[0]
    tried = un._deviation.TRIED
    values = [near.flat().log_likelihood(tau) for tau in tried]
    ratio, best = near.flat().ratio()
    assert best == tried[np.argmax(values)] > 0
    assert ratio == pytest.approx(2 * (max(values) - values[0]))
    wide = np.column_stack([1e3 * near.A, np.zeros(30)])
    assert_allclose(replace(near, A=wide).flat().ratio(), (ratio, best), rtol=1e-5)
