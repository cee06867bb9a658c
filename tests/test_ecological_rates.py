"""Rates of groups by strata of places: the model against slow oracles, limits, coverage, tables with truth."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize
from scipy.special import expit, logsumexp, softmax
from scipy.stats import multivariate_normal

from llpbook import LLPWarning, NotIdentifiableError, ecological_rates
from llpbook.ecological import _cells, _joint, _strata
from llpbook.ecological._margins import read_margins
from studies import ecological_beside, strata
from studies.ecological import robinson_table, senc_table
from studies.runner import RESULTS

BOOK = RESULTS.parents[1]

WIDE = pytest.mark.filterwarnings("ignore:the places say hardly more")


def made(seed=0, strata=4, places=12, groups=2, classes=2, spread=0.5, context=0.0, deviation=0.0):  # fmt: skip
    """Tables of places in strata whose rates differ, and the true cells."""
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(strata), places)
    shares = rng.dirichlet(np.full(groups, 2.0), len(stratum))
    n = rng.integers(200, 1000, len(stratum))
    members = rng.multinomial(n, shares)
    scores = rng.normal(size=(groups, classes))
    scores = scores + spread * rng.normal(size=(strata, groups, classes))
    scores = scores[stratum] + deviation * rng.normal(size=(len(n), groups, classes))
    scores[:, :, -1] += context * (shares[:, -1] - shares[:, -1].mean())[:, None]
    cells = rng.multinomial(members, softmax(scores, axis=2))
    return members, cells.sum(axis=1), stratum, cells


def slow_value(m, variances, prior, theta, mean):
    """The log-posterior place by place, up to the constant of the prior."""
    scores = theta.reshape(len(m.strata), len(m.groups), -1)
    rates = softmax(scores @ m.contrasts.T, axis=2)
    total = 0.0
    for N, c, r, V in zip(m.members, m.counts, m.stratum, variances, strict=True):
        total += multivariate_normal.logpdf(c @ m.contrasts, N @ rates[r] @ m.contrasts, V)  # fmt: skip
    return total + prior.log_density(scores, mean)


@pytest.mark.parametrize("groups, classes", [(2, 2), (3, 2), (2, 4)])
@pytest.mark.equation("eq-ecological-strata")
def test_scores_maximize_the_likelihood_summed_place_by_place(groups, classes):
    m = read_margins(*made(1, 2, 7, groups, classes)[:3])
    rates = np.full((2, groups, classes), 1 / classes)
    V = _strata.place_variances(m, rates, 0.2)
    sums, prior = _strata.place_sums(m, np.linalg.inv(V)), _strata.prior_of(m, 0.4)
    fit = _strata.fit_rates(m, sums, prior)
    n = fit.scores.size

    def loss(flat):
        return -slow_value(m, V, prior, flat[:n], flat[n:])

    start = np.append(fit.scores.ravel(), fit.mean)
    assert_allclose(
        _strata.log_posterior(sums, prior, fit.scores, fit.mean, m.contrasts)[0],
        -loss(start),
        rtol=1e-9,
    )
    better = minimize(loss, start + 0.3, method="BFGS", options={"gtol": 1e-4})
    assert -better.fun <= -loss(start) + 1e-3
    assert_allclose(better.x, start, atol=0.02)


def test_the_evidence_is_the_integral_over_the_scores():
    """One stratum, two groups, two classes: two scores on a grid; their mean integrates out in closed form."""
    m = read_margins(*made(3, 1, 6)[:2])
    V = _strata.place_variances(m, np.full((1, 2, 2), 0.5), 0.0)
    sums, gaps = _strata.place_sums(m, np.linalg.inv(V)), []
    for sd in (0.3, 1.0):
        prior = _strata.prior_of(m, sd)
        fit = _strata.fit_rates(m, sums, prior)
        axes = fit.scores.reshape(2, 1) + np.linspace(-3, 3, 241)
        theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        rates = softmax(theta[..., None] * m.contrasts[:, 0], axis=-1)
        misfit = (m.counts - np.einsum("kg,abgc->abkc", m.members, rates)) @ m.contrasts
        likelihood = -0.5 * (misfit[..., 0] ** 2 / V[:, 0, 0]).sum(axis=-1)
        spread = np.linalg.inv(prior.precision) + np.linalg.inv(prior.mean_precision)
        density = multivariate_normal(prior.center, spread).logpdf(theta)
        gaps.append(logsumexp(likelihood + density) - fit.evidence)
    assert_allclose(gaps[0], gaps[1], atol=0.02)


@pytest.mark.equation("eq-ecological-place-variance")
def test_the_variance_of_a_place_is_that_of_labels_and_of_effects_of_its_groups():
    rng, m = np.random.default_rng(0), read_margins(*made(2, 1, 3, 2, 3)[:2])
    rates, deviation = softmax(rng.normal(size=(1, 2, 3)), axis=2), 0.05
    V = _strata.place_variances(m, rates, deviation)[0]
    H, N = m.contrasts, m.members[0].astype(int)
    effects = deviation / np.sqrt(2) * rng.normal(size=(20_000, 2, 2)) @ H.T
    moved = softmax(np.log(rates) + effects, axis=2)
    draws = sum(rng.multinomial(N[g], moved[:, g]) for g in range(2)) @ H
    assert_allclose(np.cov(draws.T), V, rtol=0.06, atol=0.06 * np.sqrt(V[0, 0] * V[1, 1]))  # fmt: skip


@pytest.mark.equation("eq-ecological-cells")
def test_cells_meet_both_margins_and_keep_the_odds_ratios():
    members, counts, stratum, _ = made(4, groups=3, classes=4)
    m = read_margins(members, counts, stratum)
    rates = softmax(np.random.default_rng(0).normal(size=(4, 3, 4)), axis=2)
    x = _cells.fitted_cells(m, rates)
    assert_allclose(x.sum(axis=2), m.members, atol=1e-2)
    assert_allclose(x.sum(axis=1), m.counts, atol=1e-2)
    odds = np.log(x[:, 1:, 1:] * x[:, :1, :1] / x[:, 1:, :1] / x[:, :1, 1:])
    r = rates[m.stratum]
    assert_allclose(odds, np.log(r[:, 1:, 1:] * r[:, :1, :1] / r[:, 1:, :1] / r[:, :1, 1:]), atol=1e-6)  # fmt: skip


def test_with_two_classes_everybody_in_a_place_has_one_shift():
    members, counts, stratum, _ = made(5)
    m = read_margins(members, counts, stratum)
    rates = np.array([[[0.8, 0.2], [0.3, 0.7]]] * 4)
    x = _cells.fitted_cells(m, rates)[0, :, 1]
    f = np.log(rates[0, :, 1] / rates[0, :, 0])
    shift = brentq(lambda t: m.members[0] @ expit(f + t) - m.counts[0, 1], -20, 20)
    assert_allclose(x, m.members[0] * expit(f + shift), rtol=1e-4)


def test_slopes_of_the_cells_are_their_derivatives():
    m = read_margins(*made(6, 2, 5, 3, 3)[:3])
    scores = np.random.default_rng(1).normal(size=(2, 3, 2))
    H = m.contrasts

    def cells(scores):
        x = _cells.fitted_cells(m, softmax(scores @ H.T, axis=2))
        return (m.by_stratum(x) @ H).reshape(2, -1)

    x = _cells.fitted_cells(m, softmax(scores @ H.T, axis=2))
    slopes, chance = _cells.cell_slopes(m, x, 0.0)
    for column in range(6):
        step = np.zeros(6)
        step[column] = 1e-4
        ends = [cells(scores + s * step.reshape(3, 2)) for s in (1, -1)]
        assert_allclose((ends[0] - ends[1]) / 2e-4, slopes[:, :, column], atol=0.05)
    assert_allclose(chance, slopes, atol=1e-6)  # without effects the variance of labels
    wider = _cells.cell_slopes(m, x, 0.5)[1]
    assert (np.linalg.eigvalsh(wider - chance) > -1e-6).all()


@pytest.mark.equation("eq-ecological-correlation")
@pytest.mark.parametrize("size", [-0.3, 0.3])
def test_a_shift_of_everybody_is_fitted_as_if_it_stood_in_the_model(size):
    m = read_margins(*made(7, 2, 8)[:3])
    joint = _joint.fit_joint(m)
    fit, H = joint.parts[0].fit, m.contrasts
    prior = _strata.prior_of(m, fit.sd)
    shift = size * joint.shares @ np.ones((joint.shares.shape[1], 1))
    moved = _cells.shifted_fit(m, joint.sums, fit, prior, shift)
    V = np.linalg.inv(joint.sums.inverses)
    n = fit.scores.size

    def loss(flat):
        scores = flat[:n].reshape(fit.scores.shape)
        rates = softmax((scores[m.stratum] + shift[:, None]) @ H.T, axis=2)
        means = np.einsum("kg,kgc->kc", m.members, rates) @ H
        gaps = m.counts @ H - means
        quadratic = np.einsum("ki,kij,kj->", gaps, np.linalg.inv(V), gaps)
        return 0.5 * quadratic - prior.log_density(scores, flat[n:])

    start = np.append(moved.scores.ravel(), moved.mean)
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-4})
    rates = softmax(best.x[:n].reshape(fit.scores.shape) @ H.T, axis=2)
    assert_allclose(moved.rates, rates, atol=1e-4)
    push = _cells.push_of_shares(m, joint.sums, fit.rates, joint.shares)
    small = _cells.shifted_fit(m, joint.sums, fit, prior, 0.01 * shift)
    linear = fit.response(push).sum(axis=2).reshape(fit.scores.shape) * 0.01 * size
    assert_allclose(small.scores - fit.scores, linear, atol=2e-3)


def test_places_of_one_group_give_its_rates_without_a_model():
    rng = np.random.default_rng(0)
    n, group = rng.integers(50, 200, 30), np.arange(30) % 2
    members = np.eye(2, dtype=int)[group] * n[:, None]
    counts = rng.binomial(n, np.where(group, 0.7, 0.2))
    table = ecological_rates(members, np.column_stack([n - counts, counts])).table
    truth = [counts[group == g].sum() / n[group == g].sum() for g in (0, 1)]
    for column in ("rate", "low", "high", "band_low", "least", "most"):
        assert_allclose(table[column].xs(1, level="class"), truth, rtol=1e-9)


def test_order_of_places_groups_and_classes_changes_nothing():
    members, counts, stratum, _ = made(8, groups=3, classes=3)
    base = ecological_rates(members, counts, strata=stratum).table
    p = np.random.default_rng(1).permutation(len(members))
    table = ecological_rates(
        pd.DataFrame(members[p][:, [2, 0, 1]], columns=[2, 0, 1]),
        pd.DataFrame(counts[p][:, [1, 2, 0]], columns=[1, 2, 0]),
        strata=stratum[p],
    ).table
    assert_allclose(table.loc[base.index], base, atol=2e-4)


def test_tables_are_matched_by_the_names_of_places():
    members, counts, stratum, _ = made(9)
    names = [f"p{i}" for i in range(len(members))]
    groups = pd.DataFrame(members, names, columns=["a", "b"])
    classes = pd.DataFrame(counts, names, columns=["no", "yes"]).iloc[::-1]
    regions = pd.Series(stratum, names).sample(frac=1, random_state=0)
    table = ecological_rates(groups, classes, strata=regions).table
    same = ecological_rates(members, counts, strata=stratum).table
    assert_allclose(table, same)
    index = pd.MultiIndex.from_arrays([stratum, names], names=["region", "place"])
    level = ecological_rates(
        groups.set_axis(index), classes[::-1].set_axis(index), strata="region"
    )
    assert_allclose(level.table, same)
    assert level.table.index[1] == ("a", "yes")


def test_differences_and_shares_among_classes_come_from_the_joint_answer():
    members, counts, stratum, _ = made(10, groups=2, classes=3, deviation=0.2)
    rates = ecological_rates(members, counts, strata=stratum, correlation=0.2)
    t = rates.table
    groups = rates.difference(groups=(1, 0))
    one = groups.loc["1 − 0"]
    assert_allclose(one["difference"], t["rate"][1] - t["rate"][0], atol=1e-9)
    apart = np.sqrt(t["error"][1] ** 2 + t["error"][0] ** 2)
    assert (one["error"] > apart).all()  # what one group has the other has not
    classes = rates.difference(classes=(2, 0))
    assert_allclose(classes["difference"].to_numpy(), t["rate"].xs(2, level=1) - t["rate"].xs(0, level=1))  # fmt: skip
    among = rates.among([1, 2])
    assert_allclose(among["rate"].groupby(level=0).sum(), 1)
    ratio = t["rate"][0, 2] / (t["rate"][0, 1] + t["rate"][0, 2])
    assert_allclose(among["rate"][0, 2], ratio)
    assert_allclose(rates.among([0, 1, 2])["error"], t["error"], rtol=1e-6)
    for table, name in ((groups, "difference"), (among, "rate")):
        assert (table["band_low"] <= table["low"]).all()
        assert (table["low"] < table[name]).all()


def test_the_band_widens_with_the_correlation_and_is_the_interval_at_none():
    members, counts, stratum, _ = made(11, deviation=0.3)
    rates = ecological_rates(members, counts, strata=stratum, correlation=0)
    assert_allclose(rates.table["band_low"], rates.table["low"])
    widths = [
        (t["band_high"] - t["band_low"]).sum()
        for t in (rates.with_correlation(r).table for r in (0.0, 0.2, 0.4))
    ]
    assert widths == sorted(widths) and widths[0] < widths[2]
    row = rates.table.loc[(1, 1)]
    value = row["high"] + 0.02
    needed = rates.correlation_needed(value, group=1, class_=1)
    table = rates.with_correlation(needed).table
    assert_allclose(table.loc[(1, 1), "band_high"], value, atol=1e-3)
    assert rates.correlation_needed(row["rate"], group=1, class_=1) == 0


@pytest.mark.slow
@WIDE
@pytest.mark.filterwarnings("ignore:the counts speak for")
@pytest.mark.parametrize(
    "world, least_in, least_band",
    [
        ({"spread": 0.0}, 0.9, 0.9),
        ({"spread": 0.5}, 0.9, 0.9),
        ({"spread": 0.5, "deviation": 0.3}, 0.85, 0.95),
        ({"spread": 0.5, "deviation": 0.3, "context": 0.4}, 0.0, 0.95),
    ],
)
def test_intervals_and_bands_hold_the_rates_as_often_as_they_say(world, least_in, least_band):  # fmt: skip
    inside = {"": [], "band_": []}
    for seed in range(60):
        members, counts, stratum, cells = made(seed, 8, 10, **world)
        table = ecological_rates(members, counts, strata=stratum).table
        truth = (cells.sum(axis=0) / members.sum(axis=0)[:, None]).ravel()
        for kind, hits in inside.items():
            hits.append(table[kind + "low"].le(truth) & table[kind + "high"].ge(truth))
    assert np.mean(inside[""]) > least_in
    assert np.mean(inside["band_"]) > least_band


@WIDE
def test_strata_made_up_at_random_neither_help_nor_move_a_rate():
    members, counts, _, _ = made(12, strata=1, places=80, spread=0.0, deviation=0.2)
    one = ecological_rates(members, counts).table
    regions = np.random.default_rng(0).permutation(np.arange(80) % 8)
    rates = ecological_rates(members, counts, strata=regions)
    assert (np.abs(rates.table["rate"] - one["rate"]) < one["error"]).all()
    with pytest.warns(LLPWarning, match="less probable with the strata than with one"):
        gain = rates.gain_of_strata()
    assert gain["gain"] < -2 * gain["error"]
    members, counts, stratum, _ = made(12, spread=0.8)  # and here no warning
    gain = ecological_rates(members, counts, strata=stratum).gain_of_strata()
    assert gain["gain"] > 3 * gain["error"]


@pytest.mark.slow
@WIDE
@pytest.mark.filterwarnings("ignore:the counts speak for")
@pytest.mark.parametrize(
    "table, most", [("senc", 1.4), ("reg", 1.0), ("by stratum", 1.0), ("robinson", 3.5)]
)
def test_regions_made_up_at_random_move_a_rate_by_less_than_it_may_be_wrong(table, most):  # fmt: skip
    """In standard errors of one rate everywhere; on Robinson's table, where this rate is wrong, the band holds."""
    read = strata.PUBLISHED.get(table, lambda: strata.made(table, "20 x 6", "large", 2, 0))  # fmt: skip
    d = read()
    groups, classes = (t.reset_index(drop=True) for t in (d.groups, d.classes))
    one, regions = ecological_rates(groups, classes).table, len(groups) // 20
    for seed in range(3):
        made_up = np.random.default_rng(seed).permutation(len(groups)) % regions
        rates = ecological_rates(groups, classes, strata=made_up).table["rate"]
        assert (np.abs(rates - one["rate"]) < most * one["error"]).all()
        assert rates.between(one["band_low"], one["band_high"]).all()


def test_steps_of_a_large_table_end(monkeypatch):
    """Rounding of an objective of 10⁵ must not keep a fit from ending; it did, at 100 halved steps each."""
    rng, calls = np.random.default_rng(0), []
    members, counts, stratum, _ = made(0, 40, 50, 4, 5, spread=0.4, deviation=0.3)
    m = read_margins(100 * members, 100 * counts, stratum)
    joint = _joint.fit_joint(m)
    value = _strata.log_posterior

    def counted(*arguments):
        calls.append(1)
        return value(*arguments)

    monkeypatch.setattr(_strata, "log_posterior", counted)
    directions = rng.normal(size=(6, joint.shares.shape[1] * 4))
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        _joint.shifted_cells(joint, 0.6 * joint.deviation * direction)
    assert len(calls) < 6 * 6 * 30


def test_a_relation_that_bends_the_counts_is_said():
    tables = made(13, 1, 200, spread=0.0, context=4.0)
    with pytest.warns(LLPWarning, match="counts speak for"):
        rates = ecological_rates(*tables[:2])
    assert rates.context < 0.01 and rates.correlation == 0.6
    straight = made(13, 1, 200, spread=0.0)
    rates = ecological_rates(*straight[:2])
    assert rates.context > 0.01 and rates.correlation == 0.3


def test_with_counties_the_registered_voters_are_near_the_truth():
    groups, classes, counties, cells = senc_table()
    truth = (cells.sum(axis=0) / cells.sum(axis=(0, 2))[:, None]).ravel()
    with pytest.warns(LLPWarning, match="counts speak for"):
        one = ecological_rates(groups, classes).table
    table = ecological_rates(groups, classes, strata=counties).table
    assert np.abs(table["rate"] - truth).mean() < 0.015
    assert np.abs(one["rate"] - truth).mean() > 0.02
    assert (table["band_low"].le(truth) & table["band_high"].ge(truth)).all()


def test_sentences_and_pictures_of_differences_and_shares():
    members, counts, stratum, _ = made(10, groups=2, classes=3, deviation=0.2)
    groups = pd.DataFrame(members, columns=["old", "young"])
    classes = pd.DataFrame(counts, columns=["ill", "well", "gone"])
    rates = ecological_rates(groups, classes, strata=stratum)
    of_groups = rates.difference(groups=("young", "old"))
    of_classes = rates.difference(classes=("ill", "well"))
    among = rates.among(["ill", "well"])
    for table, name, subject in (
        (
            of_groups,
            ("young − old", "ill"),
            "difference young − old in the rate of ill is",
        ),
        (of_classes, ("old", "ill − well"), "difference ill − well in group old is"),
        (
            among,
            ("old", "ill"),
            "share of ill among those in ill, well in group old is",
        ),
    ):
        text = rates.sentences(table)[name]
        row = 100 * table.loc[name]
        assert f"The {subject} {row.iloc[0]:.0f} p" in text
        assert f"{row['band_low']:.0f} to {row['band_high']:.0f} with a" in text
        assert "without an assumption" not in text
        ax = rates.plot(table)
        assert ax.get_yticklabels()[0].get_text() == ", ".join(table.index[0])
        low, high = ax.get_xlim()
        assert low < table.iloc[:, 0].min() and table.iloc[:, 0].max() < high
    alone = rates.homogeneous(0.6)
    both = alone.dropna().index
    assert_allclose(alone["estimate"][both], rates.table["rate"][both])


@pytest.mark.slow
@pytest.mark.parametrize("table", ["senc", "robinson"])
def test_no_penalty_makes_the_debiased_estimator_better_than_strata(table, monkeypatch):
    d = strata.PUBLISHED[table]()
    rates = ecological_rates(d.groups, d.classes, strata=d.strata).table["rate"]
    for alpha in (0.1, 1.0, 3.0):
        monkeypatch.setattr(strata, "ALPHAS", (alpha,))
        debiased = strata.debiased_rates(d)[0].ravel()
        assert np.abs(debiased - d.truth).mean() > np.abs(rates - d.truth).mean()


def test_an_interval_of_a_random_correlation_is_no_narrower_than_the_band():
    """Hits and widths of the page: a normal correlation with a standard deviation of 0.1 and 0.2, to first order."""
    d = senc_table()
    rates = ecological_rates(d.groups, d.classes, strata=d.strata)
    joint, t = rates.joint, rates.table
    quantity = _joint.all_rates(joint.margins)
    g = quantity.gradient(joint.parts[0].cells.sum(axis=0)) @ joint.margins.contrasts
    slopes = np.linalg.norm(g.reshape(len(g), -1) @ joint.responses, axis=1)
    for sd, hits, wide in ((0.1, 5, 0.030), (0.2, 9, 0.051)):
        moved = sd * joint.deviation * slopes / np.sqrt(2)
        half = 1.96 * np.sqrt(t["error"] ** 2 + moved**2)
        assert (np.abs(t["rate"] - d.truth) <= half).sum() == hits
        assert_allclose(2 * half.mean(), wide, atol=0.001)
        band = rates.with_correlation(sd).table
        assert (band["band_high"] - band["band_low"]).mean() < wide + 0.001


@WIDE
def test_the_workflow_that_readers_copy_goes_from_two_files_to_sentences(tmp_path, monkeypatch, capsys):  # fmt: skip
    page = (BOOK / "src" / "ecological.md").read_text()
    code = page.split("copy this\n\n```python\n")[1].split("```")[0]
    assert len(code.splitlines()) <= 40
    d = senc_table()
    precincts = pd.RangeIndex(len(d.groups))
    index = pd.MultiIndex.from_arrays([d.strata, precincts], names=["county", "precinct"])  # fmt: skip
    for name, table in (("groups", d.groups), ("classes", d.classes)):
        table.set_axis(index).to_csv(tmp_path / f"{name}.csv")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "page", "exec"), {})
    report = capsys.readouterr().out.splitlines()
    sentences = [line for line in report if line.startswith("The ")]
    assert len(sentences) == 9 + 3 + 3 + 6 and (tmp_path / "rates.png").stat().st_size
    truth = d.cells[:, 1, 0].sum() / d.cells[:, 1].sum()
    [said] = [x for x in sentences if x.startswith("The rate of dem in group black")]
    low, high = said.split(" with a correlation")[0].split(", ")[-1].split(" to ")
    assert float(low) / 100 < truth < float(high) / 100


def test_places_without_people_are_left_out():
    members, counts, stratum, _ = made(14)
    padded = [np.vstack([t, np.zeros((1, 2), int)]) for t in (members, counts)]
    more = ecological_rates(*padded, strata=np.append(stratum, 99))
    same = ecological_rates(members, counts, strata=stratum)
    assert_allclose(more.table, same.table)
    assert 99 not in more.by_stratum.index.get_level_values("stratum")


def test_reports_name_classes_and_assumptions():
    members, counts, stratum, _ = made(15)
    groups = pd.DataFrame(members, columns=["old", "young"])
    classes = pd.DataFrame(counts, columns=["$no$", "yes"])
    rates = ecological_rates(groups, classes, strata=stratum)
    text = rates.sentences()["old", "yes"]
    assert "of yes in group old" in text and "correlation up to 0.3" in text
    assert "48 places in 4 strata" in str(rates) and "yes" in str(rates)
    ax = rates.plot(truth=rates.table["rate"])
    assert len(ax.get_yticklabels()) == 4
    pure = rates.homogeneous(0.6).loc[("old", "yes")]
    own = members[:, 0] >= 0.6 * members.sum(axis=1)
    assert pure["places"] == own.sum() and pure["n"] == members[own].sum()
    assert_allclose(pure["rate"], counts[own, 1].sum() / members[own].sum())


GOOD = [[9, 1], [5, 5], [2, 8]], [[7, 3], [6, 4], [4, 6]]


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"groups": [[9, 2], [5, 5], [2, 8]]},
            "same sum .* 11 and 10 .* check_margins",
        ),
        ({"groups": [[9, -1], [5, 5], [2, 8]]}, "groups must be counts"),
        ({"groups": [[9, np.nan], [5, 5], [2, 8]]}, "has not reported"),
        ({"groups": [[9], [5], [2]]}, "two or more columns"),
        ({"groups": [["x", 1], [5, 5], [2, 8]]}, "groups must be numbers"),
        ({"classes": [[10, 0], [10, 0], [10, 0]]}, "classes has nobody in column 1"),
        ({"classes": [[7, 3], [6, 4]]}, "3 and 2 rows"),
        ({"strata": [1, 2]}, "strata must have one entry"),
        ({"strata": "county"}, "level of the index"),
        ({"correlation": 1.5}, "correlation must be"),
        ({"level": 1.0}, "level"),
        ({"groups": pd.DataFrame(GOOD[0], ["a", "b", "b"])}, "'b' more than once"),
    ],
)
def test_malformed_tables_are_refused(change, message):
    arguments = {"groups": GOOD[0], "classes": GOOD[1], **change}
    with pytest.raises(ValueError, match=message):
        ecological_rates(arguments.pop("groups"), arguments.pop("classes"), **arguments)


def test_places_of_two_tables_must_be_the_same():
    groups, classes = (pd.DataFrame(t, ["a", "b", "c"]) for t in GOOD)
    with pytest.raises(ValueError, match="'d' is in one of them only"):
        ecological_rates(groups.rename({"a": "d"}), classes)
    with pytest.raises(ValueError, match="'c' is in one of them only"):
        ecological_rates(groups[:2], classes)
    with pytest.raises(ValueError, match="no entry for place 'c'"):
        ecological_rates(groups, classes, strata=pd.Series([1, 2], ["a", "b"]))


def test_margins_that_say_nothing_are_not_identifiable():
    with pytest.raises(NotIdentifiableError, match="3 places"):
        ecological_rates(GOOD[0][:2], GOOD[1][:2])
    with pytest.raises(NotIdentifiableError, match="same in all places"):
        ecological_rates([[5, 5]] * 3, GOOD[1])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda r: r.difference(), "groups= or classes="),
        (lambda r: r.difference(groups=(0, 0)), "pair of different"),
        (lambda r: r.difference(classes=(0, 7)), "classes must be among"),
        (lambda r: r.among([1]), "two or more"),
        (lambda r: r.among([0, 5]), "classes must be among"),
        (lambda r: r.correlation_needed(2.0, group=0, class_=0), "value must be"),
        (lambda r: r.homogeneous(0.2), "share must be"),
        (lambda r: r.with_correlation(-1), "correlation must be"),
        (lambda r: r.gain_of_strata(), "strata must be two"),
    ],
)
@WIDE
def test_questions_that_cannot_be_answered_are_refused(call, message):
    rates = ecological_rates(*GOOD)
    with pytest.raises(ValueError, match=message):
        call(rates)


@pytest.mark.parametrize(
    "table, strata, least, most",
    [
        (senc_table, True, 0.25, 0.51),
        (senc_table, False, 0.3, 0.6),
        (robinson_table, True, 0.05, 0.2),
    ],
)
def test_deviations_of_places_are_correlated_with_shares_as_the_page_says(table, strata, least, most):  # fmt: skip
    d, found = table(), []
    for g in range(d.cells.shape[1]):
        seen = d.groups.iloc[:, g].to_numpy() > 20
        cells = d.cells[seen, g]
        rates = (cells[:, -1 if cells.shape[1] == 2 else 0] + 0.5) / (cells.sum(axis=1) + 1)  # fmt: skip
        values = pd.DataFrame({"deviation": np.log(rates / (1 - rates))})
        values["share"] = (d.groups.iloc[:, g] / d.groups.sum(axis=1)).to_numpy()[seen]
        own = pd.Series(d.strata[seen] if strata else 0, values.index)
        w = cells.sum(axis=1)
        means = values.mul(w, axis=0).groupby(own).transform("sum")
        means = means.div(pd.Series(w).groupby(own).transform("sum"), axis=0)
        found.append(np.cov((values - means).T, aweights=w))
    size = [abs(c[0, 1]) / np.sqrt(c[0, 0] * c[1, 1]) for c in found]
    assert least < min(size) and max(size) < most


def test_other_tools_get_margins_alone_and_are_judged_by_the_truth(tmp_path):
    ecological_beside.write(tmp_path)
    names = set(ecological_beside.tables())
    assert {path.stem for path in tmp_path.iterdir()} == names
    senc = pd.read_csv(tmp_path / "senc.csv")
    assert [c.strip("0123456789") for c in senc] == ["group"] * 3 + ["class"] * 3
    rows = ecological_beside.results().set_index(["table", "method"])
    truth = senc_table().truth
    rates = pd.read_csv(RESULTS / "ecological_beside.csv")
    md = rates[(rates["table"] == "senc") & (rates["method"] == "md")]["rate"]
    assert_allclose(rows.loc[("senc", "md"), "error"], np.abs(md - truth).mean())
    held = rows.xs("band", level="method")["inside"].eq(1)
    # Two worlds are outside of the assumption, a correlation of at most 0.3.
    assert set(held.index[~held]) == {"strongly related", "reversed"}
