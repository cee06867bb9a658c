"""The experiment of franco2023: its protocol on made-up data, the paper's test and figures by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import binary_objective
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ShuffleSplit

from llpbook import LaplacianMeanMap
from llpbook.base import LLPClassifier
from llpbook.model_selection import _splitters, proportion_scorer, select_setting
from llpbook.proportions import label_proportions
from studies import franco2023 as study
from studies import franco2023_beside as compare
from studies import paper_table
from studies.complexllp import SEEDS

(TABLE,) = study.TABLES
ADULT = "adult-hard-10bags-cluster-kmeans-10"
DIGITS = "mnist-digits-2-8-{}-3bags-cluster-{}"
SIMPLE = DIGITS.format("simple", "None-None")
PUBLISHED = list(study.PUBLISHED.values())


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A folder of small files in the place of the data."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.RandomState(0)
    (folder / "franco2023").mkdir()
    y = rng.randint(0, 2, 900)
    X = rng.normal(size=(900, 6)) + y[:, None]
    held = {ADULT: (X[:, 0] * 2 + 9).astype(int).clip(4, 13) - 4}
    np.savez(folder / "franco2023/adult.npz", X=X.astype("f4"), y=y, **held)
    digit = rng.choice([2, 8, 5], 600, p=[0.5, 0.3, 0.2])
    images = rng.randint(0, 60, (600, 11, 11)) + digit[:, None, None] // 4
    parts = {"x_train": images[:400], "x_test": images[400:]}
    parts |= {"y_train": digit[:400], "y_test": digit[400:]}
    np.savez(folder / "mnist.npz", **parts)
    return folder


@pytest.fixture(autouse=True, scope="module")
def in_its_place(made_up):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(study.FOLDER, str(made_up))
        for cached in (study.load_data, study.load_bags):
            cached.cache_clear()
        yield
    for cached in (study.load_data, study.load_bags):
        cached.cache_clear()


# --- the cases ---------------------------------------------------------------------------------------------------


def test_the_cells_hold_every_published_row_and_the_grids_are_the_papers():
    table = paper_table("franco2023_results")
    assert len(table) == 306 and len(study.cases()) == 36
    cells = {(c["dataset"], c["method"], c["strategy"]) for c in TABLE.cells}
    for row in table.itertuples():
        assert (row.dataset, study.PUBLISHED[row.model], row.split_method) in cells
        assert row.n_splits == study.read_case(row.dataset)[2]
    sizes = [len(ParameterGrid(study.METHODS[name][1])) for name in PUBLISHED]
    assert sizes == [6, 36, 36] and len(SEEDS) == 30


def test_the_reversed_rule_of_the_public_code_leaves_one_bag_per_fold_as_it_is(
    monkeypatch,
):
    """Which changes nothing where folds are as many as bags; with fewer folds their shares are less alike."""
    chances = _splitters.next_bag_chances
    counts = np.array([[30, 70], [70, 30], [45, 55], [20, 80], [85, 15], [60, 40]])

    def reversed_chances(left, held, prior):
        lacking = int(held[1] >= prior[1] * held.sum() - 1e-9 and held.sum() > 0)
        weights = left[:, lacking] ** 2.0
        return weights / weights.sum()

    gaps = {}
    for name, rule in (("mended", chances), ("reversed", reversed_chances)):
        monkeypatch.setattr(_splitters, "next_bag_chances", rule)
        for seed in range(20):
            each = _splitters.whole_bag_folds(counts, 6, np.random.RandomState(seed))
            assert sorted(each) == [*range(6)]
        for seed in range(200):
            two = _splitters.whole_bag_folds(counts, 2, np.random.RandomState(seed))
            parts = [counts[two == k].sum(axis=0) for k in (0, 1)]
            share = [part[1] / part.sum() for part in parts]
            gaps.setdefault(name, []).append(abs(share[0] - share[1]))
    assert np.mean(gaps["reversed"]) > 1.5 * np.mean(gaps["mended"])


def test_digits_are_the_two_of_the_case_turned_without_a_shift(made_up):
    X, y, clusters = study.load_data("mnist-digits-2-8", 3)
    with np.load(made_up / "mnist.npz") as data:
        digit = np.concatenate([data["y_train"], data["y_test"]])
        pixels = np.concatenate([data["x_train"], data["x_test"]]).reshape(600, -1)
    rows = np.isin(digit, [2, 8])
    assert_array_equal(y, digit[rows] == 2)  # the more frequent one
    assert X.shape == (rows.sum(), study.DIRECTIONS) and len(set(clusters)) == 3
    kept = pixels[rows].astype(float)
    low, high = kept.min(axis=0), kept.max(axis=0)
    scaled = 2 * (kept - low) / (high - low) - 1
    # As near as any fifty directions: lengths from the origin, not from the mean, are kept.
    best = np.linalg.svd(scaled, compute_uv=False)[: study.DIRECTIONS]
    assert_allclose((X.astype(float) ** 2).sum(), (best**2).sum(), rtol=5e-3)


# --- the protocol ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 300])
def test_a_split_has_the_papers_seed_and_exact_shares(size):
    X, X_new, y, y_new, bags, shares = study.split(ADULT, 4, size)
    (Z, labels, _), all_bags = study.load_data("adult", 10), study.load_bags(ADULT)
    splits = ShuffleSplit(n_splits=1, test_size=0.25, random_state=SEEDS[4])
    train, new = next(splits.split(Z))
    assert_array_equal(X_new, Z[new])
    assert_array_equal(y_new, labels[new])
    assert len(X) == (size or len(train)) == len(y) == len(bags)
    assert_allclose(shares, label_proportions(y, bags, classes=[0, 1]))
    ahead = np.bincount(all_bags[train]) * len(X) / len(train)
    assert np.abs(np.bincount(bags) - ahead).max() <= 1
    rows = {row.tobytes() for row in Z[new].astype(float)}
    assert not rows & {row.tobytes() for row in X}


@pytest.mark.parametrize("strategy", study.STRATEGIES[::3])
def test_fits_are_counted_and_labels_reach_them_through_shares_alone(
    strategy, monkeypatch
):
    seen, own = [], LLPClassifier.fit

    def spy(self, X, bags, proportions, labels=None):
        seen.append((self.C, len(X), np.asarray(proportions), labels))
        return own(self, X, bags, proportions, labels)

    monkeypatch.setattr(LLPClassifier, "fit", spy)
    cell = {"dataset": SIMPLE, "size": 0, "method": "EM/LR", "strategy": strategy}
    row = study.run(cell, 2)
    X, *_, shares = study.split(SIMPLE, 2, 0)
    assert len(seen) == 3 * 6 + 1
    assert [fit[0] for fit in seen[:-1]] == 3 * study.POWERS
    assert row["chosen"] == f"C={seen[-1][0]:g}" and seen[-1][1] == len(X)
    for _, n, given, labels in seen:
        assert labels is None
        assert n <= len(X)
        assert_array_equal(given, shares)


@pytest.mark.parametrize("strategy", study.STRATEGIES)
def test_the_choice_is_that_of_algorithm_1_as_written(strategy):
    X, _, _, _, bags, shares = study.split(ADULT, 0, 200)
    cv = study.splitter(strategy, 10, shares, 5)
    found = study.choose("ridge", X, bags, shares, cv, 5)
    estimator, grid = study.METHODS["ridge"]
    settings = list(ParameterGrid(grid))
    scorer = proportion_scorer(shares, soft=False)
    splits = list(study.splitter(strategy, 10, shares, 5).split(X, groups=bags))
    data = X, bags, shares
    best, errors = select_setting(estimator, settings, splits, data, scorer)
    assert found[0] == best
    assert_allclose(found[1], errors.mean(axis=1).min())


def test_a_fit_that_fails_has_the_largest_error(monkeypatch):
    X, _, _, _, bags, shares = study.split(ADULT, 0, 200)
    flat = np.full_like(shares, 0.5)
    labels = study.predict_all("LMM", LMM_SETTINGS[:2], X, bags, flat, X, 0)
    assert np.isnan(labels).all()
    assert_array_equal(study.share_errors(labels, bags, flat), 1)
    pure = np.tile([0.0, 1.0], (len(shares), 1))
    labels = study.predict_all("ridge", [{"alpha": 1.0}], X, bags, pure, X, 0)
    assert np.isnan(labels).all()
    both = np.vstack([labels[:1], np.ones((1, len(bags)))])
    gap = np.abs(1 - shares[:, 1]).mean()
    assert_allclose(study.share_errors(both, bags, shares), [1, gap])


# --- LMM as the R program has it ---------------------------------------------------------------------------------

LMM_SETTINGS = list(ParameterGrid(study.METHODS["LMM"][1]))


@pytest.mark.filterwarnings("ignore::llpbook.LLPWarning")
def test_weights_are_those_of_the_estimator_where_there_is_a_penalty():
    X, _, _, _, bags, shares = study.split(ADULT, 0, 300)
    settings = [s for s in LMM_SETTINGS if s["alpha"] > 0]
    weights = study.lmm_weights(X, bags, shares, settings)
    options = {"bag_weights": "uniform", "operator_weights": "uniform"}
    model = LaplacianMeanMap(**options, fit_intercept=False)
    for w, setting in zip(weights.T, settings, strict=True):
        fitted = clone(model).set_params(**setting).fit(X, bags, shares)
        assert_allclose(w, fitted.coef_[0] / 2, atol=2e-3 * np.abs(w).max())
        given = X, fitted.mean_operator_, setting["alpha"]
        reached = binary_objective(w, *given)[0]
        assert reached <= binary_objective(fitted.coef_[0] / 2, *given)[0] + 1e-6


# --- beside the published rows -----------------------------------------------------------------------------------


def cells_of(draws):
    """Cells as `compare.published` gives them, of draws by strategy; one case of each kind."""
    rows = []
    for name in (ADULT, SIMPLE):
        for s, v in draws.items():
            rows.append((name, "LMM", s, np.mean(v), np.std(v, ddof=1), len(v)))
    frame = pd.DataFrame(rows, columns=[*compare.KEYS, "mean", "sd", "n"])
    return compare._described(frame)


DRAWS = {
    study.FULL_BAG: [0.70, 0.72, 0.71],
    "split-bag-bootstrap": [0.80, 0.82, 0.83],
    "split-bag-k-fold": [0.50, 0.52, 0.51],
    "split-bag-shuffle": [0.60, 0.90, 0.71],
}


def test_the_papers_test_is_welchs():
    pairs = compare.against_full_bag(cells_of(DRAWS))
    assert len(pairs) == 6
    for row in pairs.itertuples():
        two = DRAWS[row.strategy], DRAWS[study.FULL_BAG]
        p = stats.ttest_ind(*two, equal_var=False).pvalue
        assert_allclose(row.pvalue, p)
        assert_allclose(row.difference, np.mean(two[0]) - np.mean(two[1]))
    outcome = pairs.set_index("strategy")["outcome"]
    assert set(outcome["split-bag-bootstrap"]) == {"better"}
    assert set(outcome["split-bag-k-fold"]) == {"worse"}
    assert set(outcome["split-bag-shuffle"]) == {"open"}
    assert compare.won(pairs) == (0.5, 4)


# --- numbers in the ledger of claims and on the page --------------------------------------------------------------


def points(row):
    return f"{100 * row['difference']:+.1f} ± {100 * row['se']:.1f}".replace("-", "−")


def share_won(pairs):
    outcome = pairs["outcome"]
    return f"{(outcome == 'better').sum()} of {(outcome != 'open').sum()}"


def stated():
    """What the ledger states, by place: of the published rows (p) and of ours (o)."""
    found = {}
    sources = {"p": compare.published(), "o": compare.ours()}
    for source, cells in sources.items():
        cells = cells[cells["method"].isin(PUBLISHED)]
        pairs = compare.against_full_bag(cells)
        told = pairs[pairs["outcome"] != "open"]
        found[source, "won"] = share_won(pairs)
        naive = pairs["variant"] == "naive"
        open_ = (pairs[naive]["outcome"] != "open").sum()
        found[source, "naive"] = f"{open_} of {naive.sum()}"
        for by in ("variant", "kind"):
            for key, row in compare.over_data(cells, by).iterrows():
                found[source, *key] = points(row)
        for key, row in compare.against_bootstrap(cells).iterrows():
            found[source, *key] = points(row)
        for method, part in pairs.groupby("method"):
            found[source, method, "won"] = share_won(part)
        for side, part in told.groupby("outcome"):
            mean = 100 * part["difference"].mean()
            found[source, side] = f"{mean:+.1f}".replace("-", "−")
    return found | stated_of_ours()


def stated_of_ours():
    found, paired = {}, compare.paired_against_full_bag()
    found["o", "paired"] = share_won(paired[paired["method"].isin(PUBLISHED)])
    for key, row in compare.ties().drop("naive").iterrows():
        found["o", "reversed", key] = f"{row['gain']:+.1f} ± {row['se']:.1f} ({key})"
    same = compare.same_choice()
    for method in ("LMM", "EM/LR"):
        found["o", method, "same"] = f"{same.loc[method].mean():.0%}".replace("%", " %")
    return found


def test_the_ledger_states_what_the_rows_say():
    text = (Path(__file__).parents[1] / "book/claims.md").read_text()
    missing = {key: v for key, v in stated().items() if v not in text}
    assert not missing


def test_the_page_states_which_cells_differ():
    """ "57 are of LMM, and 14 of the full-bag strategy", and that one penalty is further from the print."""
    table = compare.beside()
    off = table[table["verdict"] == "differs"]
    assert len(off) == 74 and (off["method"] == "LMM").sum() == 57
    assert (off["strategy"] == study.FULL_BAG).sum() == 14
    both = table, compare.beside(lmm="LMM one penalty")
    lmm = [t[t["method"] == "LMM"] for t in both]
    grid, one = (t["difference"].abs().mean() for t in lmm)
    assert one > grid + 0.005


def test_the_page_states_what_the_published_rows_say():
    theirs = compare.published()
    pairs = compare.against_full_bag(theirs)
    share, _ = compare.won(pairs)
    # "split bag is better in 80 % of the significant pairs"
    assert round(100 * share) == 80
    told = pairs[pairs["outcome"] != "open"].set_index("outcome")
    means = 100 * told.groupby("outcome")["difference"].mean()
    assert_allclose(means[["better", "worse"]], [9.8, -3.2], atol=0.05)
    medians = 100 * told.groupby("outcome")["difference"].median()
    assert_allclose(medians[["better", "worse"]], [4.8, -1.0], atol=0.1)
    middle = told[told["variant"] == "intermediate"]
    assert (len(middle), (middle.index == "worse").sum()) == (31, 10)
    em = pairs[pairs["method"] == "EM/LR"]
    # "three pairs in four are gray"
    assert 0.7 < (em["outcome"] == "open").mean() < 0.8
    gap = compare.resolution(theirs, ["dataset", "method"], "mean")
    own = (theirs["sd"] / np.sqrt(theirs["n"])).median()
    assert round(100 * gap, 1) == 0.2 and 1.9 < own / gap < 2.3
    blue = compare.fractions(pairs, "kind")["better"].groupby("kind").mean()
    assert 1.8 < blue["digits"] / blue["tabular"] < 2.8  # "about twice as much blue"
