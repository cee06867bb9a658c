"""The band of a rate: published tables with truth, reversed relations, its parts; Goodman's regression; polls."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import named
from scipy.optimize import brentq

from llpbook import (
    CountLogistic,
    LLPWarning,
    NotIdentifiableError,
    ecological,
    fit_chunks,
    group_rate,
    group_rate_band,
)
from llpbook.ecological._band import warn_of_chance
from llpbook.uncertainty import (
    chunk_group_rate,
    loose_bounds,
    members_of,
    rates_and_slopes,
    read_fit,
)
from studies import load, tables
from studies.ecological import (
    confounded,
    fitted,
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
    """Bags of two groups of 2 to 59, with rates .7 and .3."""
    rng = np.random.default_rng(seed)
    n, bags = rng.integers(2, 60, 2 * L), np.repeat(np.arange(L), 2)
    X = np.tile([[0.0], [1.0]], (L, 1))
    yes = rng.binomial(n, np.where(X[:, 0] > 0, 0.7, 0.3))
    return X, bags, n, np.bincount(bags, yes) / np.bincount(bags, n)


def three_of_each(L=24, seed=0):
    """Three groups and classes by name, bags of unlike sizes by name in another order, two larger units."""
    rng = np.random.default_rng(seed)
    n, group = rng.integers(4, 40, 3 * L), np.tile(list("cab"), L)
    codes = np.repeat(np.arange(L), 3)
    chance = {"a": [0.6, 0.3, 0.1], "b": [0.2, 0.5, 0.3], "c": [0.1, 0.2, 0.7]}
    cells = rng.multinomial(n, [chance[g] for g in group])
    P = np.add.reduceat(cells, np.arange(0, 3 * L, 3))
    bags, P = named(codes, P / P.sum(axis=1, keepdims=True), ["no", "yes", "abstain"])
    given = pd.get_dummies(group).astype(float), bags, P, group
    model = CountLogistic(10.0).fit(*given[:3], counts=n)
    return (model, *given), {"counts": n}, np.where(codes < 9, "west", "east")


@CHANCE
@pytest.mark.parametrize("table", [senc, reg, reversed_bags])
def test_the_band_holds_the_truth_and_is_less_than_half_as_wide_as_the_bounds(table):
    d = table()
    found = band(d)
    assert share_inside(found, d.truth) == 1 and (widths(found) < 0.5).all()
    assert widths(found).max() > 0.499
    assert found["plain"].between(found["low"], found["high"]).all()
    assert (found["least"] <= d.truth).all() and (d.truth <= found["most"]).all()


def test_a_fit_of_millions_of_people_is_close_to_the_maximum_and_may_have_the_wrong_sign():
    d = reversed_bags()
    (one, counts), (close, _) = fitted(d), fitted(d, tol=1e-10)
    assert d.counts.sum() > 5e6
    with pytest.warns(LLPWarning):  # the two groups of a bag differ beyond its counts
        rates, exact = (group_rate(*given, **counts) for given in (one, close))
    assert (np.abs(rates["rate"] - exact["rate"]) < 0.1 * exact["error"]).all()
    assert rates["rate"]["member"] < rates["rate"]["other"]
    assert d.truth["member"] > d.truth["other"]


@pytest.mark.filterwarnings("ignore::llpbook.LLPWarning")
def test_a_level_that_only_the_penalty_holds_is_no_reason_to_refuse_rates():
    """Columns of all groups and a free intercept have a common level, which the bags do not know."""
    rates = []
    for C in (0.1, 100.0):
        given, counts = fitted(senc(swapped=True), C=C)
        rates.append(group_rate(*given, **counts)["rate"])
    assert_allclose(*rates, atol=2e-3)


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
    assert found[0].attrs == {"class": 1, "widest": False}
    wide = [(one["high"] - one["low"]).to_numpy() for one in found]
    assert (np.diff(wide, axis=0) > 0).all()
    assert_allclose(found[-1][["low", "high"]], found[-1][["least", "most"]])


@pytest.mark.equation("eq-ecological-within")
def test_with_the_true_differences_the_rate_is_the_true_one():
    """Any counts within the bounds, their differences by hand, and the rate from these."""
    cells, split = read(confounded(60, 3))
    rng = np.random.default_rng(0)
    true = split.low + rng.uniform(size=split.low.shape) * (split.high - split.low)
    sizes, inside = cells.observed.sizes, split.inside
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
    part = np.where(split.lean > 0, 0.5, 1)
    end = ecological.rates_within(split, part * split.lean - 0.15 * split.swing)
    assert_allclose(end, low)


def test_the_context_is_the_share_in_the_bag_less_its_mean():
    cells, _ = read(reg())
    z = ecological.context(cells.members[0], cells.observed)
    times, bags = cells.observed.frequencies, cells.observed.bags
    assert times @ z == pytest.approx(0, abs=1e-6 * times.sum())
    rows = bags == 7
    share = times[rows & cells.members[0]].sum() / times[rows].sum()
    total = times[cells.members[0]].sum() / times.sum()
    assert_allclose(z[rows], share - total)


@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": False, "C": 0.1}, {"penalize_intercept": True}],
)
def test_plain_and_contextual_rates_are_those_of_two_models(options, form):
    X, bags, n, shares = few_bags(seed=1)
    options = {"C": 10.0, "tol": 1e-9} | options
    model = CountLogistic(**options).fit(form(X), bags, shares, counts=n)
    group = X[:, 0] == 1
    given = bags, shares, group
    found = group_rate_band(model, form(X), *given, counts=n, limit=2).iloc[0]
    own = group_rate(model, X, *given, counts=n)["rate"].iloc[0]
    assert found["plain"] == pytest.approx(own)
    share = np.bincount(bags, n * group) / np.bincount(bags, n)
    z = share[bags] - n[group].sum() / n.sum()
    wide = np.column_stack([X, z / np.sqrt(np.average(z**2, weights=n))])
    wider = CountLogistic(**options).fit(wide, bags, shares, counts=n)
    own = group_rate(wider, wide, *given, counts=n)["rate"].iloc[0]
    assert found["contextual"] == pytest.approx(own, abs=3e-4)
    assert abs(found["contextual"] - found["plain"]) > 0.005
    narrow = group_rate_band(model, form(X), *given, counts=n, limit=0).iloc[0]
    assert narrow["contextual"] == found["contextual"]  # not cut


def test_units_are_parts_of_the_groups_and_groups_need_not_stand_together():
    given, counts, units = three_of_each()
    *rest, group = given
    found = group_rate_band(*given, **counts, units=units)
    assert found.index.names == ["unit", "group", "class"]
    keys = [("east", "west"), ("a", "b", "c"), ("no", "yes", "abstain")]
    assert list(found.index) == list(product(*keys))
    with warnings.catch_warnings(action="ignore"):
        whole = group_rate_band(*given, **counts)
        alone = group_rate_band(*rest, group == "b", **counts)
    for name in ("plain", "contextual", "least", "most"):
        weighted = (found[name] * found["n"]).groupby(level=[1, 2], sort=False).sum()
        total = weighted / found["n"].groupby(level=[1, 2], sort=False).sum()
        assert_allclose(total[whole.index], whole[name], atol=1e-9)
    assert (widths(found) < 0.5).all() and found.attrs == {"widest": True}
    assert_allclose(whole.loc["b"], alone.loc[True])
    of = pd.Series(counts["counts"]).groupby(group).sum()
    assert_array_equal(whole["n"], np.repeat(of, 3))


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
    given, counts, _ = three_of_each()
    found = group_rate_band(*given, **counts, limit=0.0)
    cells = ecological.read_cells(*given, **counts)
    split = ecological.split_of(cells, cells.probabilities(cells.scores))
    for value in (0.4, 0.83):
        needed = ecological.effect_needed(*given, value=value, **counts)
        outside = (found["least"] > value) | (found["most"] < value)
        assert_array_equal(np.isinf(needed["limit"]), outside)
        assert_array_equal(np.isnan(needed["strength"]), outside)
        limit = needed["limit"].to_numpy()
        low, high = ecological.rates_between(split, np.where(outside, 0, limit))
        end = np.where(needed["plain"] < value, high, low)
        assert_allclose(end[~outside & (limit > 0)], value, atol=1e-6)
    assert outside.sum() == 2
    # Within half of the fitted difference and the whole nothing is needed.
    for end in ("plain", "low", "high"):
        value = found.loc[("b", "yes"), end]
        row = ecological.effect_needed(*given, value=value, **counts).loc[("b", "yes")]
        assert row["limit"] == pytest.approx(0, abs=1e-8)
        assert (row["strength"] < 1e-9) == (end == "plain" or value == row["plain"])
    ends = "least", "most"
    for value in (0, 1):  # allowed, and as near as the bounds come
        limit = ecological.effect_needed(*given, value=value, **counts)["limit"]
        assert_array_equal(np.isfinite(limit), found[ends[value]] == value)


def test_without_a_value_the_effect_is_that_of_no_difference_and_its_strength_that_of_a_regression():
    (model, X, bags, P, group), counts, _ = three_of_each()
    found = ecological.effect_needed(model, X, bags, P, group, **counts)
    n = counts["counts"]
    table = pd.crosstab(bags, group, n, aggfunc="sum").loc[P.index]
    sizes = table.sum(axis=1).to_numpy()
    assert_allclose(found["value"], np.tile(np.average(P, axis=0, weights=sizes), 3))
    assert np.isfinite(found["limit"]).all()
    for (g, k), row in found.iterrows():
        s = (table[g] / sizes).to_numpy()
        line = sm_residuals(s, P[k].to_numpy(), sizes)
        swing = np.average(1 - s, weights=table[g])
        scale = np.sqrt(
            np.average(line**2, weights=sizes) / np.cov(s, aweights=sizes, ddof=0)
        )
        f = abs(row["plain"] - row["value"]) / swing / scale
        rv = row["strength"]
        assert rv / np.sqrt(1 - rv) == pytest.approx(f, rel=1e-6)
    assert ecological.robustness_value(np.eye(2)[0], np.zeros(2)).tolist() == [1, 0]


def sm_residuals(x, y, weights):
    """Of a weighted line of y over x."""
    return y - np.polyval(np.polyfit(x, y, 1, w=np.sqrt(weights)), x)


def said(call):
    """What the warnings of a call say, and what it returns."""
    with warnings.catch_warnings(record=True, action="always") as heard:
        found = call()
    return [str(w.message) for w in heard], found


@pytest.mark.parametrize("n_bags", [2, 3])
def test_a_group_in_too_few_bags_gets_its_bounds_and_a_warning(n_bags):
    X, bags, n, p = few_bags()
    group = np.where((bags < n_bags) & (X[:, 0] == 1), "few", "many")
    model = CountLogistic(10.0).fit(X, bags, p, counts=n)
    heard, found = said(lambda: group_rate_band(model, X, bags, p, group, counts=n))
    few = [w for w in heard if "too few bags" in w]
    assert [w.split(":")[0] for w in few] == [
        "group 'few' is in too few bags, or has the same share in all"
    ] * (n_bags < 3)
    bounds = (found[["low", "high"]].to_numpy() == found[["least", "most"]]).all(axis=1)
    assert bounds.tolist() == np.isinf(found["limit"]).tolist() == [n_bags < 3, False]


def test_a_group_of_the_same_share_everywhere_has_no_context():
    X, bags = (
        np.tile([[0.0], [1.0], [2.0], [3.0]], (20, 1)),
        np.repeat(np.arange(20), 4),
    )
    n, p = np.tile([10, 30, 2, 18], 20), np.linspace(0.1, 0.9, 20).round(1)
    group = np.tile(list("babc"), 20)
    model = CountLogistic(10.0).fit(X, bags, p, counts=n)
    heard, found = said(lambda: group_rate_band(model, X, bags, p, group, counts=n))
    said_of = [w[7] for w in heard if "same share in all" in w]
    assert said_of == list("abc")
    assert_allclose(found["contextual"], found["plain"])
    assert_allclose(found[["low", "high"]], found[["least", "most"]])


@CHANCE
@pytest.mark.parametrize("rows", [1, 2])
def test_one_row_of_a_group_in_each_bag_may_be_a_table_without_its_counts(rows):
    X, bags, _, p = few_bags()
    X, bags = np.tile(X, (rows, 1)), np.tile(bags, rows)
    p = (p * 2 * rows).round() / (2 * rows)
    model = CountLogistic(20.0).fit(X, bags, p)
    given = model, X, bags, p, X[:, 0]
    for counts in (None, np.ones(len(X), int)):
        heard, _ = said(lambda c=counts: group_rate_band(*given, counts=c))
        asked = any("was counts= forgotten" in w for w in heard)
        assert asked == (rows == 1 and counts is None)


def test_a_table_without_its_counts_is_asked_about_and_other_shares_are_refused():
    d = reg()
    (_, X, bags, shares, group), counts = fitted(d)
    model = CountLogistic(10.0).fit(X, bags, shares, counts=d.counts)
    with pytest.raises(ValueError, match=r"counts is missing: the .* cells of a table"):
        group_rate_band(model, X, bags, shares, group)
    ones = np.ones(len(bags), int)
    with pytest.raises(ValueError, match=r"not at the maximum.* labels and counts"):
        group_rate_band(model, X, bags, shares, group, counts=ones)
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
    model = CountLogistic(10.0).fit(X, bags, d.proportions, counts=n)
    with pytest.warns(LLPWarning, match="no bag mixes group True with others"):
        found = group_rate_band(model, X, bags, d.proportions, most, counts=n)
    rate = np.average(d.proportions[1][most], weights=n[most])
    assert_allclose(found[["low", "high", "plain"]], rate)
    says = ecological.band_sentences(found).iloc[0]
    assert says.startswith("The rate of the class 1 in the group is ")
    assert "percent, the share of its bags" in says


@pytest.mark.filterwarnings("ignore:the penalty")
@pytest.mark.parametrize("end", ["low", "high"])
def test_where_the_interval_by_chance_leaves_the_band_by_a_point_it_is_said(end):
    X, bags, n, p = few_bags()
    given = X, bags, p, np.where(X[:, 0] == 1, "new", "old")
    model = CountLogistic(10.0).fit(*given[:3], counts=n)
    cells, own = (
        ecological.read_cells(model, *given, n),
        group_rate(model, *given, counts=n),
    )
    band = pd.DataFrame(
        {"low": -1.0, "high": 2.0, "least": 0.0, "most": 1.0}, own.index
    )
    out = -1 if end == "low" else 1
    for beyond in (0.0099, 0.0101):
        band.loc["old", end] = own.loc["old", end] - out * beyond
        heard, _ = said(lambda: warn_of_chance(cells, band, own))
        assert len(heard) == (beyond > 0.01)
    low, high = own.loc["old", ["low", "high"]]
    assert "the 40 bags alone, the rates of 1 of 2 rows may" in heard[0]
    assert f"such as 'old': its 95 % interval is [{low:.2f}, {high:.2f}]" in heard[0]
    band["least"], band["most"] = low + 0.03, high - 0.03  # cuts the interval
    band.loc["old", end] -= out * 0.03
    heard, _ = said(lambda: warn_of_chance(cells, band, own))
    assert (
        "of 1 of 2 rows" in heard[0]
        and f"is [{low + 0.03:.2f}, {high - 0.03:.2f}]" in heard[0]
    )
    model.coef_, model.tol = model.coef_ + 0.5, 1.0  # too far off for an interval
    heard, _ = said(lambda: group_rate_band(model, *given, counts=n))
    assert any(
        "for want of an interval: model is not at the maximum" in w for w in heard
    )


ROW = {
    "low": 0.474,
    "high": 0.716,
    "plain": 0.552,
    "limit": 0.304,
    "least": 0.217,
    "most": 0.983,
}
RANGE = (
    " is between 47 and 72 percent (the model says 55), if for nearly all members the difference between the group and "
    "the rest of the bag is between half of the fitted one and the whole, up to 30 points more or less"
)
REST = ". Without this assumption it is between 22 and 98 percent."
WIDEST = (
    " (the widest limit whose range is half as wide as the one without this assumption)"
)
KEYS = ["unit", "group", "class"]


@pytest.mark.parametrize(
    ("name", "keys", "attrs", "change", "says"),
    [
        (True, KEYS[1:2], {"class": "yes"}, {}, f"of the class yes in the group{RANGE}{REST}"),
        (False, KEYS[1:2], {"class": 1}, {}, f"of the class 1 in group False{RANGE}{REST}"),
        (("black",), KEYS[1:2], {"widest": True}, {}, f"of the class in group black{RANGE}{WIDEST}{REST}"),
        (("old", "dem"), KEYS[1:], {"widest": False}, {}, f"of the class dem in group old{RANGE}{REST}"),
        (("here", "old"), KEYS[:2], {"class": "a"}, {}, f"of the class a in group old of here{RANGE}{REST}"),
        (("here", True, "dem"), KEYS, {}, {}, f"of the class dem in the group of here{RANGE}{REST}"),
        ("old", KEYS[1:2], {"class": "a"}, {"limit": np.inf, "most": 0.217 + 2e-9},
         "The bags say of the rate of the class a in group old only that it is between 22 and 22 percent."),
        ("old", KEYS[1:2], {"class": "a"}, {"limit": np.inf, "most": 0.217},
         "of the class a in group old is 22 percent, the share of its bags: none of them holds others."),
    ],
)  # fmt: skip
def test_a_sentence_says_what_the_row_holds(name, keys, attrs, change, says):
    rows = [name if isinstance(name, tuple) else (name,)]
    index = pd.MultiIndex.from_tuples(rows, names=keys)
    index = index if len(keys) > 1 else pd.Index([rows[0][0]], name=keys[0])
    row = pd.DataFrame(ROW | change, index)
    row.attrs |= attrs
    found = ecological.band_sentences(row)
    assert found.index.equals(index)
    assert found.iloc[0] == (says if says.startswith("The") else f"The rate {says}")
    row.attrs["class"] = "none"
    own = ecological.band_sentences(row, outcome="voting").iloc[0]
    assert ("of voting in" in own) == (len(keys) == 1 or keys == KEYS[:2])


def test_a_picture_shows_each_number_of_the_table():
    index = pd.MultiIndex.from_tuples([("here", "old"), ("there", "new")])
    names = ["least", "low", "plain", "contextual", "high", "most"]
    found = pd.DataFrame(np.arange(12).reshape(2, 6) / 12, index, names)
    ax = ecological.plot_band(found, truth=[0.5, 0.25])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["here, old", "there, new"]
    for lines, ends in zip(
        ax.collections, [["least", "most"], ["low", "high"]], strict=True
    ):
        drawn = np.array(lines.get_segments())
        assert_array_equal(drawn[:, :, 0], found[ends])
        assert_array_equal(drawn[:, :, 1], [[0, 0], [1, 1]])
    labels = {line.get_label(): line.get_xdata().tolist() for line in ax.lines}
    shown = {"model": found["plain"], "contextual": found["contextual"]}
    shown["truth"] = pd.Series([0.5, 0.25])
    assert labels == {name: values.tolist() for name, values in shown.items()}
    assert ax.yaxis_inverted() and len(ecological.plot_band(found).lines) == 2


@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
@pytest.mark.parametrize("given", ["errors", "rounding", "nothing"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_stated_errors_loosen_the_bounds_of_each_class_by_two_of_its_own(
    n_classes, given
):
    """By two errors, or by what rounding may hide; the last but one bag is empty."""
    rng = np.random.default_rng(0)
    sizes = np.append(rng.integers(20, 60, 38), [0, 30])
    bags, group = np.repeat(np.arange(40), sizes), rng.random(sizes.sum()) < 0.8
    P = rng.dirichlet([9, 4, 2][:n_classes], 40)
    errors = ecological.polling_errors(bags, P, design=0.02)
    options = {"proportion_errors": errors} if given == "errors" else {}
    model = CountLogistic(10.0, **options).fit(group[:, None], bags, P)
    rounding = 0.02 if given == "rounding" else 0.0
    found = group_rate_band(model, group[:, None], bags, P, group, rounding=rounding)
    inside = np.bincount(bags, group)
    for k in range(3) if n_classes == 3 else [1]:
        error = np.sqrt(errors[:, k, k]) if n_classes == 3 else errors
        slack = sizes * (2 * error if given == "errors" else rounding)
        ends = loose_bounds(sizes, sizes * P[:, k], inside, slack)
        wanted = [end.sum() / inside.sum() for end in ends]
        row = found.loc[(True, k) if n_classes == 3 else True]
        assert_allclose(row[["least", "most"]].astype(float), wanted)


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
    assert found.index.tolist() == [False, True]
    assert_array_equal(found["n"], np.bincount(X[:, 0].astype(int), n))
    if weights == "size":  # the default
        given = bags, shares, X[:, 0] == 1
        assert_allclose(ecological.goodman(*given, counts=n), found)


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
    own = ecological.polling_errors(bags, pd.Series(p))
    pd.testing.assert_series_equal(own, found / np.sqrt(2))
    assert isinstance(ecological.polling_errors(bags, p), np.ndarray)
    drawn = rng.binomial(n, p, (4000, 20)) / n
    assert_allclose(found / np.sqrt(2), drawn.std(axis=0), rtol=0.06)
    P = np.column_stack([p, (1 - p) / 3, 2 * (1 - p) / 3])
    of_three = ecological.polling_errors(bags, P, design=3.0) / 3
    assert_allclose(of_three[:, 0, 0], p * (1 - p) / n)
    assert_allclose(of_three[:, 0, 2], -p * 2 * (1 - p) / 3 / n)
    assert_allclose(of_three.sum(axis=1), 0, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "message", "odd"),
    [
        (lambda g, c, v: group_rate_band(*g, **c, limit=v), "limit must be a number, 0 or more, or None, got {}",
         [-0.1, np.inf, np.nan, "all"]),
        (lambda g, c, v: group_rate_band(*g, **c, units=v), "units", [["a"]]),
        (lambda g, c, v: group_rate_band(*g, **c, rounding=v), "rounding must lie in .* got {}", [-0.1, 1]),
        (lambda g, c, v: ecological.effect_needed(*g, **c, rounding=v), "rounding must lie in .* got {}", [1]),
        (lambda g, c, v: ecological.effect_needed(*g, **c, value=v), "value must be a rate in .* got {}",
         [-0.1, 1.1, np.nan, "all"]),
        (lambda g, c, v: ecological.goodman(*g[2:], **c, weights=v), "must be 'size' or 'uniform', got {}", ["n"]),
        (lambda g, c, v: ecological.polling_errors(*g[2:4], **c, design=v), "design must be a number above 0, got {}",
         [0, -1, np.inf, np.nan, "one"]),
    ],
)  # fmt: skip
def test_malformed_options_are_refused(call, message, odd):
    X, bags, n, p = few_bags()
    given = CountLogistic(10.0).fit(X, bags, p, counts=n), X, bags, p, X[:, 0]
    for value in odd:
        with pytest.raises(ValueError, match=message.format(repr(value))):
            call(given, {"counts": n}, value)


@pytest.mark.parametrize("other", ["group", "counts"])
def test_practice_refuses_series_of_another_order(other):
    """Rows are matched by position, so two indices must agree, as everywhere."""
    X, bags, n, shares = few_bags()
    given = {"group": pd.Series(X[:, 0]), "counts": pd.Series(n)}
    given[other] = given[other][::-1]
    calls = [ecological.goodman]
    if other == "counts":
        polled = ecological.polling_errors
        calls.append(lambda *given, group, counts: polled(*given, counts=counts))
    for call in calls:
        with pytest.raises(ValueError, match=f"{other}.index differs from"):
            call(pd.Series(bags), shares, **given)


def test_goodman_needs_shares_that_differ():
    bags, group = np.repeat(np.arange(5), 4), np.tile([0, 0, 1, 1], 5)
    said = "shares of the 2 groups do not differ enough between the {} bags"
    with pytest.raises(NotIdentifiableError, match=said.format(5)):
        ecological.goodman(bags, np.linspace(0.1, 0.9, 6), group)  # one bag is empty
    group[[2, 7]] = 0, 2
    for L, others in [(2, 2), (3, 2), (3, 3), (4, 3)]:  # one bag more is enough
        rows = (bags < L) & (group < others)
        given = bags[rows], np.linspace(0.1, 0.9, 5), group[rows]
        if others < L:
            assert len(ecological.goodman(*given)) == others
        else:
            said = f"the {others} groups .* the {L} bags"
            with pytest.raises(NotIdentifiableError, match=said):
                ecological.goodman(*given)


# --- the penalty does not decide about rates of groups ----------------------------------------------------------------


def minority(seed, K=2):
    """A minority of 8 %, 40 bags, the same rates in each: indicators, bags, shares, groups, counts, true rates."""
    rng = np.random.default_rng(seed)
    s, n = rng.beta(2.4, 27.6, 40), rng.integers(150, 600, 40)
    few = rng.binomial(n, s)
    chances = [[0.1, 0.9], [0.7, 0.3]] if K == 2 else [[0.1, 0.8, 0.1], [0.6, 0.2, 0.2]]
    of_few = np.array([rng.multinomial(m, chances[0]) for m in few])
    of_rest = np.array([rng.multinomial(m, chances[1]) for m in n - few])
    group = pd.Series(np.tile(["few", "most"], 40))
    X, bags = pd.get_dummies(group, dtype=float), np.repeat(range(40), 2)
    counts = np.column_stack([few, n - few]).ravel()
    truth = [v.sum(axis=0) / v.sum() for v in (of_few, of_rest)]
    shares = (of_few + of_rest) / n[:, None]
    return X, bags, shares, group, counts, np.array(truth)


#: Functions of rates, by what they say of the group.
OF_RATES = {
    "group_rate": lambda *given, **k: group_rate(*given, **k)["rate"],
    "group_rate_band": lambda *given, **k: group_rate_band(*given, **k)["plain"],
    "effect_needed": lambda *given, **k: ecological.effect_needed(*given, **k)["plain"],
}


@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("name", OF_RATES)
def test_rates_of_a_model_of_groups_alone_are_not_held_by_its_penalty(name, K):
    X, bags, shares, group, counts, _ = minority(0, K)
    weak = CountLogistic(10.0).fit(X, bags, shares, counts=counts)
    wanted = OF_RATES[name](weak, X, bags, shares, group, counts=counts)
    for one in [X, sp.csr_array(X)] + [X[["few"]]] * (K == 2):
        with pytest.warns(LLPWarning, match="holds the probabilities of .* of 2"):
            held = CountLogistic(0.1, tol=1e-8).fit(one, bags, shares, counts=counts)
        held_rates = "penalty C=0.1 holds .* rates of groups, such as that of few"
        with pytest.warns(LLPWarning, match=held_rates):
            found = OF_RATES[name](held, one, bags, shares, group, counts=counts)
        assert_allclose(found, wanted, atol=0.01 if one.shape[1] < 2 else 1e-3)


@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
@pytest.mark.parametrize(("C", "stated"), [(0.1, 0.68), (10.0, 0.88)])
def test_what_your_data_says_of_the_penalty(C, stated):
    rates = []
    for seed in range(20):
        X, bags, shares, group, counts, _ = minority(seed)
        fit, data = read_fit(
            CountLogistic(C).fit(X, bags, shares, counts=counts),
            X,
            bags,
            shares,
            None,
            counts,
        )
        members, _ = members_of(group, data, X)
        rates.append(rates_and_slopes(fit, members)[0].ravel()[0])
    assert np.mean(rates) == pytest.approx(stated, abs=0.005)


@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
def test_bands_and_intervals_of_a_minority_hold_its_rate_at_the_default():
    inside = []
    for seed in range(8):
        X, bags, shares, group, counts, truth = minority(seed)
        model = CountLogistic().fit(X, bags, shares, counts=counts)
        own = group_rate(model, X, bags, shares, group, counts=counts).loc["few"]
        found = group_rate_band(model, X, bags, shares, group, counts=counts).loc["few"]
        inside.append(
            [row["low"] <= truth[0, 1] <= row["high"] for row in (own, found)]
        )
    assert np.mean(inside, axis=0).min() > 0.7


@pytest.mark.filterwarnings("default::llpbook.base.LLPWarning")
def test_other_features_and_weak_penalties_are_left_alone():
    X, bags, shares, group, counts, _ = minority(0)
    with warnings.catch_warnings(action="error"):
        weak = CountLogistic(10.0).fit(X, bags, shares, counts=counts)
        ecological.effect_needed(weak, X, bags, shares, group, counts=counts)
    age = X.assign(age=np.random.default_rng(0).normal(size=80))
    held = CountLogistic().fit(age, bags, shares, counts=counts)
    with pytest.warns(LLPWarning) as heard:
        group_rate_band(held, age, bags, shares, group, counts=counts)
    texts = [str(w.message) for w in heard]
    assert any("the penalty C=0.1 holds 2 of 2 rates: with C=1" in t for t in texts)
    assert not any("rates of groups" in t for t in texts)


def test_rates_from_chunks_say_that_the_penalty_holds_them():
    X, bags, shares, group, counts, _ = minority(0)
    frame = X.assign(bag=bags, n=counts, group=group)
    one = {"bags": "bag", "counts": "n", "features": list(X)}
    with pytest.warns(LLPWarning, match="holds the probabilities"):
        model = fit_chunks(CountLogistic(), [frame], shares, **one)
    with pytest.warns(LLPWarning, match="the penalty C=0.1 holds 2 of 2 rates"):
        chunk_group_rate(model, [frame], shares, "group", **one)
