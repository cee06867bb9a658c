"""The band of a rate: published tables with truth, reversed relations, its parts; Goodman's regression; polls."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from llpbook import (
    CountLogistic,
    LLPWarning,
    NotIdentifiableError,
    ecological,
    group_rate,
    group_rate_band,
)
from llpbook.uncertainty import loose_bounds
from studies import load, tables
from studies.ecological import (
    confounded,
    counties,
    fitted,
    people,
    reg,
    reversed_bags,
    senc,
)

#: Of the chance of the bags, where a test is not about it.
CHANCE = pytest.mark.filterwarnings(
    "ignore:by the chance", "ignore:the band leaves out"
)


def band(d, **options):
    given, counts = fitted(d)
    return group_rate_band(*given, **counts, **options)


def read(d):
    (model, *given), counts = fitted(d)
    cells = ecological.read_cells(model, *given, counts["counts"])
    return cells, ecological.split_of(cells, cells.probabilities(cells.scores))


def share_inside(found, truth):
    return ((found["low"] <= truth) & (truth <= found["high"])).mean()


def widths(found):
    return (found["high"] - found["low"]) / (found["most"] - found["least"])


def few_bags(L=40, seed=0):
    """Bags of two groups of 20 to 39, with rates .7 and .3."""
    rng = np.random.default_rng(seed)
    n, bags = rng.integers(20, 40, 2 * L), np.repeat(np.arange(L), 2)
    X = np.tile([[0.0], [1.0]], (L, 1))
    yes = rng.binomial(n, np.where(X[:, 0] > 0, 0.7, 0.3))
    return X, bags, n, np.bincount(bags, yes) / np.bincount(bags, n)


@CHANCE
@pytest.mark.parametrize("table", [senc, reg, reversed_bags])
def test_the_band_holds_the_truth_and_is_less_than_half_as_wide_as_the_bounds(table):
    d = table()
    found = band(d)
    assert share_inside(found, d.truth) == 1 and (widths(found) < 0.5).all()
    assert widths(found).max() > 0.499
    assert found["plain"].between(found["low"], found["high"]).all()
    assert (found["least"] <= d.truth).all() and (d.truth <= found["most"]).all()


@CHANCE
def test_where_the_relation_is_reversed_the_model_has_the_wrong_sign():
    d = reversed_bags()
    found = band(d, limit=0.0)
    assert d.truth["member"] > d.truth["other"]
    assert found.loc["member", "plain"] < found.loc["other", "plain"]
    assert share_inside(found, d.truth) == 0


def test_stored_rows_of_the_study():
    """On published and reversed bags and people all but few rates are inside; on the hardest made ones fewer."""
    rows = load(tables()["band"])
    share = rows.groupby("kind")[["inside", "rates"]].sum()
    share = share["inside"] / share["rates"]
    assert (share.drop("confounded") > 0.97).all() and 0.8 < share["confounded"] < 0.95
    assert (rows["width"] < 0.5).all()


@CHANCE
def test_a_larger_limit_gives_a_wider_band_up_to_the_bounds():
    d = reg()
    found = [band(d, limit=limit) for limit in (0, 0.1, 2)]
    wide = [(one["high"] - one["low"]).to_numpy() for one in found]
    assert (np.diff(wide, axis=0) > 0).all()
    assert_allclose(found[-1][["low", "high"]], found[-1][["least", "most"]])


@pytest.mark.equation("eq-ecological-within")
def test_with_the_true_differences_the_rate_is_the_true_one():
    """Any counts within the bounds, their differences by hand, and the rate from these."""
    cells, split = read(confounded(60, 3))
    rng = np.random.default_rng(0)
    true = split.low + rng.uniform(size=split.low.shape) * (split.high - split.low)
    sizes, inside = cells.known.sizes, split.inside
    mixed = (inside > 0) & (inside < sizes)
    counts = split.even / np.maximum(inside, 1) * sizes
    D = np.zeros_like(true)
    rest = (counts - true)[mixed] / (sizes - inside)[mixed]
    D[mixed] = true[mixed] / inside[mixed] - rest
    lean = inside * (1 - inside / sizes) * D
    assert_allclose(ecological.rates_within(split, lean), split.total(true))


@pytest.mark.equation("eq-ecological-band")
@pytest.mark.parametrize("seed", range(5))
def test_differences_within_the_limit_are_rates_within_the_band(seed):
    """The theorem, with another part and another change in each bag; and the ends are attained."""
    rng = np.random.default_rng(seed)
    _, split = read(confounded(30, seed))
    low, high = ecological.rates_between(split, 0.15)
    for _ in range(20):
        part = rng.uniform(0.5, 1, split.even.shape)
        change = rng.choice([-0.15, 0.15, rng.uniform(-0.15, 0.15)], split.even.shape)
        rate = ecological.rates_within(split, part * split.lean + change * split.swing)
        assert (low <= rate + 1e-12).all() and (rate <= high + 1e-12).all()
    held = split.inside / split.inside.sum(axis=1, keepdims=True)
    wrong = rng.random(split.even.shape) < 0.2  # bags that break the premise
    lean = np.where(wrong, rng.uniform(-2, 2, wrong.shape), part * split.lean)
    rate, most = ecological.rates_within(split, lean), (wrong * held).sum(axis=1)
    assert (low - most <= rate + 1e-12).all() and (rate <= high + most + 1e-12).all()
    part = np.where(split.lean > 0, 1, 0.5)
    top = ecological.rates_within(split, part * split.lean + 0.15 * split.swing)
    assert_allclose(top, high)


@pytest.mark.equation("eq-ecological-context")
def test_the_context_is_the_share_in_the_bag_less_its_mean():
    cells, _ = read(reg())
    z = ecological.context(cells.members[0], cells.known)
    times, bags = cells.known.frequencies, cells.known.bags
    assert times @ z == pytest.approx(0, abs=1e-6 * times.sum())
    rows = bags == 7
    share = times[rows & cells.members[0]].sum() / times[rows].sum()
    total = times[cells.members[0]].sum() / times.sum()
    assert_allclose(z[rows], share - total)


@CHANCE
def test_plain_and_contextual_rates_are_those_of_two_models():
    X, bags, n, shares = few_bags()
    model = CountLogistic(10.0, tol=1e-9).fit(X, bags, shares, counts=n)
    group = X[:, 0] == 1
    given = bags, shares, group
    found = group_rate_band(model, X, *given, counts=n, limit=2).iloc[0]
    own = group_rate(model, X, *given, counts=n)["rate"].iloc[0]
    assert found["plain"] == pytest.approx(own)
    share = np.bincount(bags, n * group) / np.bincount(bags, n)
    z = share[bags] - n[group].sum() / n.sum()
    wide = np.column_stack([X, z / np.sqrt(np.average(z**2, weights=n))])
    wider = CountLogistic(10.0, tol=1e-9).fit(wide, bags, shares, counts=n)
    own = group_rate(wider, wide, *given, counts=n)["rate"].iloc[0]
    assert found["contextual"] == pytest.approx(own, abs=1e-3)
    assert abs(found["contextual"] - found["plain"]) > 0.01
    narrow = group_rate_band(model, X, *given, counts=n, limit=0).iloc[0]
    assert narrow["contextual"] == found["contextual"]  # not cut


def test_units_are_parts_of_the_groups():
    d, where = senc(), counties()
    found = band(d, units=where)
    assert found.index.names == ["unit", "group", "class"]
    whole = band(d)
    for name in ("plain", "least", "most"):
        weighted = (found[name] * found["n"]).groupby(level=[1, 2], sort=False).sum()
        total = weighted / found["n"].groupby(level=[1, 2], sort=False).sum()
        assert_allclose(total[whole.index], whole[name], atol=1e-9)
    assert (widths(found)[found["most"] > found["least"]] < 0.5).all()


@pytest.mark.equation("eq-ecological-strength")
def test_the_strength_is_that_of_a_property_that_makes_the_bias():
    """A property which explains so much of both variances moves the slope by the bias: by a regression with it."""
    rng = np.random.default_rng(0)
    L = 5000
    s, noise, other = np.linalg.qr(rng.normal(size=(L, 3)))[0].T
    y = 0.3 * s + 0.8 * noise
    bias, scale = 0.5, 0.8  # of y given s, per that of s
    strength = ecological.robustness_value(np.array(bias), np.array(scale))

    def slope_with(rv):
        """The least slope of s beside a property with partial R² of rv with s and with y."""
        r = np.sqrt(rv)
        # Given s the property goes with y's residual, and it explains rv of s.
        given_s = r * noise + np.sqrt(1 - rv) * other
        u = r * s + np.sqrt(1 - rv) * given_s
        return np.linalg.lstsq(np.column_stack([s, u]), y, rcond=None)[0][0]

    found = brentq(lambda rv: slope_with(rv) - (0.3 - bias), 1e-6, 1 - 1e-6)
    assert strength == pytest.approx(found, rel=1e-6)


@CHANCE
def test_the_effect_needed_is_the_limit_whose_band_reaches_the_value():
    d = reg()
    given, counts = fitted(d)
    needed = ecological.effect_needed(*given, value=0.7, **counts)
    found = group_rate_band(*given, **counts, limit=needed.loc["black", "limit"])
    assert found.loc["black", "high"] == pytest.approx(0.7, abs=1e-6)
    assert 0 < needed.loc["black", "strength"] < 1
    outside = ecological.effect_needed(*given, value=0.99, **counts)
    limit, strength = outside.loc["white", ["limit", "strength"]]
    assert np.isinf(limit) and np.isnan(strength)
    overall = ecological.effect_needed(*given, **counts)["value"]
    sizes = np.bincount(d.bags, d.counts)
    assert_allclose(overall, np.average(d.proportions[1], weights=sizes))


def test_a_group_in_too_few_bags_gets_its_bounds_and_a_warning():
    d = reg()
    (model, *given, _), counts = fitted(d)
    group = (d.bags == 3) & (d.group == "black")
    with pytest.warns(LLPWarning, match="too few bags"):
        found = group_rate_band(model, *given, group, **counts)
    assert_allclose(found[["low", "high"]], found[["least", "most"]])
    assert "only that it is between" in ecological.band_sentences(found).iloc[0]


def test_a_table_without_its_counts_is_asked_about_and_other_shares_are_refused():
    d = reg()
    (_, X, bags, shares, group), counts = fitted(d)
    model = CountLogistic(C=10).fit(X, bags, shares)
    with pytest.warns(LLPWarning) as heard:
        group_rate_band(model, X, bags, shares, group, rounding=0.01)
    assert any("was counts= forgotten" in str(w.message) for w in heard)
    model = CountLogistic().fit(X, bags, shares, counts=d.counts)
    with pytest.raises(ValueError, match=r"not at the maximum.* labels and counts"):
        group_rate_band(model, X, bags, shares, group)
    other = shares.iloc[::-1].reset_index(drop=True)
    with pytest.raises(ValueError, match="not at the maximum"):
        group_rate_band(model, X, bags, other, group, **counts)
    counts = pd.DataFrame({"people": d.counts})
    with pytest.raises(ValueError, match=r"pass counts\['people'\]"):
        model.fit(X, bags, shares, counts=counts)


def test_bags_of_one_group_are_exact_and_said_to_be():
    """A row per precinct, and what most of its people are as the group: that is no rate of these people."""
    d = reg()
    n = np.bincount(d.bags, d.counts).astype(int)
    most = d.counts[d.group == "black"] > n / 2
    X, bags = most[:, None].astype(float), np.arange(len(n))
    model = CountLogistic().fit(X, bags, d.proportions, counts=n)
    with pytest.warns(LLPWarning, match="no bag mixes group True with others"):
        found = group_rate_band(model, X, bags, d.proportions, most, counts=n)
    rate = np.average(d.proportions[1][most], weights=n[most])
    assert_allclose(found[["low", "high", "plain"]], rate)
    says = ecological.band_sentences(found).iloc[0]
    assert says.startswith("The rate of the class 1 in the group is ")
    assert "percent, the share of its bags" in says


def test_few_bags_warn_that_their_chance_leaves_the_band():
    d = reg(np.arange(0, 275, 27))
    with pytest.warns(LLPWarning, match="by the chance of the 11 bags"):
        band(d, limit=0.02)


def test_a_sentence_names_group_class_and_limit():
    found = ecological.band_sentences(band(senc(), limit=0.1))
    assert found["white", "dem"].startswith(
        "The rate of the class dem in group white is between"
    )
    assert "up to 10 points more or less." in found["white", "dem"]
    found = ecological.band_sentences(band(reg()))
    assert found["black"].startswith("The rate of the class 1 in group black is")
    assert "(the widest limit" in found["black"]


@CHANCE
def test_a_picture_has_a_line_for_each_row():
    found = band(people(0), limit=0.1)
    ax = ecological.plot_band(found, truth=people(0).truth)
    assert [t.get_text() for t in ax.get_yticklabels()] == found.index.tolist()


@CHANCE
def test_stated_errors_loosen_the_bounds_of_each_class_by_two_of_its_own():
    rng = np.random.default_rng(0)
    bags, group = np.repeat(np.arange(40), 50), rng.random(2000) < 0.8
    P = rng.dirichlet([9, 4, 2], 40)
    errors = 0.02 * ecological.polling_errors(bags, P)
    model = CountLogistic(10.0, proportion_errors=errors).fit(group[:, None], bags, P)
    found = group_rate_band(model, group[:, None], bags, P, group)
    inside, sizes = np.bincount(bags, group), np.full(40, 50)
    for k in range(3):
        slack = 2 * 50 * np.sqrt(errors[:, k, k])
        low, high = loose_bounds(sizes, 50 * P[:, k], inside, slack)
        wanted = [low.sum() / inside.sum(), high.sum() / inside.sum()]
        assert_allclose(found.loc[(True, k), ["least", "most"]], wanted)


@pytest.mark.equation("eq-ecological-goodman")
@pytest.mark.parametrize("weights", ["size", "uniform"])
def test_goodman_is_least_squares_of_repeated_bags(weights):
    """Weights of whole numbers are repeated bags; two groups are a line over the share of one."""
    X, bags, n, shares = few_bags()
    found = ecological.goodman(bags, shares, X[:, 0] == 1, counts=n, weights=weights)
    sizes = np.bincount(bags, n).astype(int)
    share = np.bincount(bags, n * X[:, 0]) / sizes
    times = sizes if weights == "size" else np.ones(40, dtype=int)
    line = np.polyfit(np.repeat(share, times), np.repeat(shares, times), 1)
    assert_allclose(found["rate"], [line[1], line.sum()])
    # The sandwich over bags.
    S = np.column_stack([1 - share, share])
    bread = np.linalg.inv((S * times[:, None]).T @ S)
    psi = (times * (shares - S @ found["rate"]))[:, None] * S @ bread
    assert_allclose(found["error"], np.sqrt((psi**2).sum(axis=0) * 40 / 38))


def test_goodman_of_several_classes_sums_to_one():
    d = senc()
    found = ecological.goodman(d.bags, d.proportions, d.group, counts=d.counts)
    assert_allclose(found["rate"].groupby(level=0).sum(), 1)
    assert found.loc[("black", "dem"), "rate"] > 1


def test_errors_of_a_poll():
    """Drawn polls deviate from the shares as it says; several classes give covariances."""
    rng = np.random.default_rng(0)
    p, n = rng.uniform(0.2, 0.8, 20), rng.integers(20, 200, 20)
    bags = np.repeat(np.arange(20), n)
    found = ecological.polling_errors(bags, pd.Series(p), design=2.0)
    drawn = rng.binomial(n, p, (4000, 20)) / n
    assert_allclose(found / np.sqrt(2), drawn.std(axis=0), rtol=0.06)
    P = np.column_stack([p, (1 - p) / 3, 2 * (1 - p) / 3])
    of_three = ecological.polling_errors(bags, P)
    assert_allclose(of_three[:, 0, 0], p * (1 - p) / n)
    assert_allclose(of_three.sum(axis=1), 0, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, c: group_rate_band(*g, **c, limit=-1.0), "limit must be a number, 0 or more"),
        (lambda g, c: group_rate_band(*g, **c, units=["a"]), "units"),
        (lambda g, c: ecological.effect_needed(*g, **c, value=2), "value must be a rate"),
        (lambda g, c: ecological.goodman(*g[2:], **c, weights="n"), "weights must be"),
        (lambda g, c: ecological.polling_errors(*g[2:4], **c, design=0), "design must be"),
    ],
)  # fmt: skip
def test_malformed_options_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(*fitted(reg()))


@pytest.mark.parametrize("other", ["group", "counts"])
def test_practice_refuses_series_of_another_order(other):
    """Rows are matched by position, so two indices must agree, as everywhere."""
    X, bags, n, shares = few_bags()
    given = {"group": pd.Series(X[:, 0]), "counts": pd.Series(n)}
    given[other] = given[other][::-1]
    calls = [ecological.goodman]
    if other == "counts":
        calls.append(
            lambda *given, group, counts: ecological.polling_errors(
                *given, counts=counts
            )
        )
    for call in calls:
        with pytest.raises(ValueError, match=f"{other}.index differs from"):
            call(pd.Series(bags), shares, **given)


def test_goodman_needs_shares_that_differ():
    bags, group = np.repeat(np.arange(5), 4), np.tile([0, 0, 1, 1], 5)
    with pytest.raises(NotIdentifiableError, match="do not differ enough"):
        ecological.goodman(bags, np.linspace(0.1, 0.9, 5), group)
