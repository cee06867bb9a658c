"""The band for an effect that no bag shows: real tables with truth, a reversed relation, and its parts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from llpbook import CountLogistic, LLPWarning, ecological, group_rate, group_rate_band
from llpbook.base import bag_counts
from llpbook.uncertainty import group_rate_bounds
from studies.ecological import reg, reversed_bags, senc


def band(d, **options):
    model = CountLogistic().fit(d.X, d.bags, d.proportions, counts=d.counts)
    given = d.X, d.bags, d.proportions, d.group
    return group_rate_band(model, *given, counts=d.counts, **options)


def read(d):
    model = CountLogistic().fit(d.X, d.bags, d.proportions, counts=d.counts)
    shape = d.X, d.bags, d.proportions, d.group, d.counts
    return ecological.read_cells(model, *shape)[0]


def share_inside(found, truth):
    return ((found["low"] <= truth) & (truth <= found["high"])).mean()


def width(found):
    return ((found["high"] - found["low"]) / (found["most"] - found["least"])).mean()


@pytest.mark.parametrize("table", [senc, reg])
def test_the_band_holds_the_truth_of_published_tables(table):
    d = table()
    found = band(d)
    assert share_inside(found, d.truth) == 1 and width(found) < 0.5
    for name in ("plain", "contextual"):
        assert found[name].between(found["low"], found["high"]).all()
    assert (found["least"] <= d.truth).all() and (d.truth <= found["most"]).all()


@pytest.mark.filterwarnings("ignore:the band leaves out")
@pytest.mark.parametrize("seed", range(4))
def test_a_reversed_relation_is_within_the_band_and_neither_fit_finds_it(seed):
    d = reversed_bags(seed=seed)
    found = band(d)
    assert share_inside(found, d.truth) == 1 and width(found) < 0.5
    assert d.truth["member"] > d.truth["other"]
    assert found.loc["member", "plain"] < found.loc["other", "plain"]


def test_a_larger_limit_gives_a_wider_band_within_the_bounds():
    d = reg()
    widths = [
        band(d, limit=limit).eval("high - low").to_numpy() for limit in (0, 0.5, 50)
    ]
    assert (np.diff(widths, axis=0) > 0).all()
    last = band(d, limit=50.0)
    assert_allclose(last["low"], last["least"], atol=0.03)
    assert_allclose(last["high"], last["most"], atol=0.03)


@pytest.mark.equation("eq-ecological-context")
def test_the_context_is_the_share_in_the_bag_less_its_mean():
    cells = read(reg())
    z = ecological.context(cells.members[0], cells.known)
    times, bags = cells.known.frequencies, cells.known.bags
    assert times @ z == pytest.approx(0, abs=1e-6 * times.sum())
    rows = bags == 7
    share = times[rows & cells.members[0]].sum() / times[rows].sum()
    total = times[cells.members[0]].sum() / times.sum()
    assert_allclose(z[rows], share - total)


@pytest.mark.equation("eq-ecological-limit")
def test_the_limit_is_the_change_of_the_rate_to_first_order():
    p, step = 0.2, 1e-4
    effect = ecological.largest_effect(0.3, p) * step
    log_odds = np.log(p / (1 - p)) + effect
    assert 1 / (1 + np.exp(-log_odds)) - p == pytest.approx(0.3 * step, rel=1e-3)


@pytest.mark.equation("eq-ecological-refit")
def test_the_refit_is_that_of_a_model_whose_effect_is_known():
    """Without an effect it is the model's own rate; with one, it is the fit whose extra weight is held."""
    d = reg()
    cells = read(d)
    plain = ecological.rate_at(cells, cells.members, np.zeros(cells.Z.shape[0]))
    model = CountLogistic().fit(d.X, d.bags, d.proportions, counts=d.counts)
    given = d.X, d.bags, d.proportions, d.group
    with pytest.warns(LLPWarning, match="275 bags deviate from the model by 1 in log"):
        own = group_rate(model, *given, counts=d.counts)
    assert_allclose(plain[:, 0], own["rate"], atol=1e-3)
    z = ecological.context(cells.members[0], cells.known)
    w = np.array([[0.2, -0.3, 0.1]])
    scores = (cells.Z @ w.T)[:, 0] + 2 * z
    shifted = ecological.Shifted(ecological.CountLoss(), 2 * z)
    one = shifted.of_counts((cells.Z @ w.T)[:, 0], cells.known)
    other = ecological.CountLoss().of_counts(scores, cells.known)
    assert one[0] == pytest.approx(other[0])
    assert_allclose(one[1], other[1])


def test_rows_with_counts_are_expanded_rows():
    rng = np.random.default_rng(0)
    n, bags = rng.integers(20, 40, 80), np.repeat(np.arange(40), 2)
    X = np.tile([[0.0], [1.0]], (40, 1))
    yes = rng.binomial(n, np.where(X[:, 0] > 0, 0.7, 0.3))
    shares = np.bincount(bags, yes) / np.bincount(bags, n)
    model = CountLogistic().fit(X, bags, shares, counts=n)
    rows = np.repeat(np.arange(80), n)
    many = X[rows], bags[rows], shares, X[rows, 0]
    for ask in (group_rate, group_rate_band):
        few = ask(model, X, bags, shares, X[:, 0], counts=n)
        pd.testing.assert_frame_equal(few, ask(model, *many), atol=1e-6)
    bounds = group_rate_bounds(bags[rows], shares, X[rows, 0])
    assert_allclose(few[["least", "most"]], bounds[["low", "high"]])


def test_a_group_in_too_few_bags_gets_its_bounds_and_a_warning():
    d = reg()
    model = CountLogistic().fit(d.X, d.bags, d.proportions, counts=d.counts)
    given = d.X, d.bags, d.proportions, (d.bags == 3) & (d.group == "black")
    with pytest.warns(LLPWarning, match="too few bags"):
        found = group_rate_band(model, *given, counts=d.counts)
    assert_allclose(found["low"], found["least"])
    assert_allclose(found["high"], found["most"])


def test_a_negative_limit_is_refused():
    with pytest.raises(ValueError, match="limit must be a number, 0 or more"):
        band(reg(), limit=-1.0)


def test_the_share_of_a_group_is_a_feature_of_variance_1(monkeypatch):
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(20), 10)
    X = (rng.random((200, 1)) < np.linspace(0.1, 0.9, 20)[bags, None]).astype(float)
    variances, rate_at = {}, ecological.rate_at

    def seen(cells, members, scores):
        total = cells.known.total(cells.Z[:, -1] ** 2)
        variances.setdefault(cells.Z.shape[1], []).append(total / 200)
        return rate_at(cells, members, scores)

    monkeypatch.setattr(ecological, "rate_at", seen)
    shares = np.linspace(0.2, 0.6, 20)
    group_rate_band(CountLogistic().fit(X, bags, shares), X, bags, shares, X[:, 0])
    assert variances[max(variances)] == pytest.approx([1] * 2)
    assert len(variances) == 2


@pytest.mark.parametrize(("n_held", "is_alone"), [(2, True), (3, False)])
def test_three_bags_that_hold_one_member_each_are_enough(n_held, is_alone):
    known = bag_counts(np.repeat(np.arange(4), 2), np.full((4, 2), 0.5))
    members = np.zeros(8, bool)
    members[: 2 * n_held : 2] = True
    assert ecological.alone(members, np.arange(8.0), known) == is_alone
