"""The study of networks: rows are of the tasks that they name, and tables are made of them as they say."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from llpbook.bag_losses import LOSSES
from studies import benchmark, complexllp, load
from studies import networks as study

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: `make networks`"
)


def test_every_loss_and_every_task_of_the_benchmark_has_a_cell():
    assert {*LOSSES} - {"normal"} <= {m["loss"] for m in study.METHODS.values()}
    cells = [*study.tasks_of_benchmark()]
    tasks = {(c["dataset"], c["kind"], c["bag_size"]) for c in cells}
    wanted = [c for c in benchmark.all_cells() if c["method"] == "CountLogistic"]
    assert {(c["dataset"], c["kind"], c["bag_size"]) for c in wanted} <= tasks
    limits = {(c["kind"], c["bag_size"]) for c in cells if c["method"] == study.LABELS}
    assert limits == {("any", "any"), ("natural", "natural")}
    assert len(cells) == len({tuple(cell.values()) for cell in cells})


def test_accuracies_are_those_of_the_rows():
    scores, nets, rows = study.accuracies(), load("networks"), load("benchmark")
    assert scores["majority"].notna().all()
    for task in (("heart", "simple", "10", 0), ("adult", "natural", "natural", 0)):
        for method, table, value in (
            ("proportion", nets, "accuracy"),
            ("CountBoosting", rows, "accuracy_untuned"),
        ):
            same = table[
                (table[study.TASK].astype(str) == [*map(str, task)]).all(axis=1)
            ]
            [wanted] = same.loc[same["method"] == method, value]
            name = f"network, {method}" if table is nets else method
            assert scores.loc[task, name] == pytest.approx(100 * wanted)
    # The limits see no bags: one row stands for all tasks of a draw but for natural bags, whose features are others.
    heart = scores.loc["heart"]
    assert heart["network, labels"].nunique() == heart["labels (trees)"].nunique() == 1
    refused = rows[rows["accuracy_untuned"].isna() & (rows["seed"] == 0)]
    for _, row in refused[refused["method"] == "CountBoosting"].iterrows():
        task = (row["dataset"], row["kind"], str(row["bag_size"]), 0)
        assert scores.loc[task, "CountBoosting"] == scores.loc[task, "majority"]


def test_gaps_are_means_over_data_sets():
    scores = study.accuracies()
    found = study.beside("CountBoosting", scores).loc["network, proportion"]
    gaps = scores["network, proportion"] - scores["CountBoosting"]
    each = [gaps.loc[name].mean() for name in benchmark.DATASETS]
    assert found["gap"] == pytest.approx(np.mean(each))
    assert found["error"] == pytest.approx(np.std(each, ddof=1) / np.sqrt(len(each)))
    assert found["tasks"] == len(gaps)


def test_the_costs_that_the_page_names():
    """Seconds as typed on the page, of fits to up to 1,000 instances, and of images."""
    nets, rows = load("networks"), load("benchmark")
    mean = pd.concat([nets, rows]).groupby("method")["cpu_fit"].mean()
    named = {
        "proportion": 0.5,
        "counts": 1.4,
        "CountBoosting": 0.4,
        "CountLogistic": 0.1,
    }
    for method, seconds in named.items():
        assert mean[method] == pytest.approx(seconds, abs=0.1), method
    images = load("networks_images").query("dataset == 'digits' and seed == 0")
    images = images[images["bag_size"].isin(["16", "64"])]
    images = images[images["method"].isin(["proportion", "counts", "vat", "mixed"])]
    assert 2.5 < images["cpu_fit"].min() < 3.5 < 10.5 < images["cpu_fit"].max() < 11.5


@needs_torch
@pytest.mark.slow
def test_labels_reach_a_network_through_shares_alone(monkeypatch):
    X, X_new, y, y_new, bags = benchmark.make_problem("heart", "simple", 10, 0)
    cell = {"dataset": "heart", "kind": "simple", "bag_size": 10, "method": "counts"}
    plain = study.run(cell, 0)
    dealt = y.copy()
    for bag in range(bags.max() + 1):
        dealt[bags == bag] = y[bags == bag][::-1]
    assert (dealt != y).any()
    other = (X, X_new, dealt, y_new, bags)
    monkeypatch.setattr(benchmark, "make_problem", lambda *task: other)
    again = study.run(cell, 0)
    assert plain.pop("cpu_fit") and again.pop("cpu_fit")
    assert plain == again
    shares = study.bags_of(study.LABELS, dealt, bags, 2)
    assert_array_equal(shares[1][:, 1], dealt)


def test_the_bags_of_others_are_beside_their_published_results():
    table, rows = study.others(), load("networks_others").set_index("dataset")
    published = pd.read_csv(complexllp.FOLDER / "results.csv")
    name = table.index[0]
    assert table.loc[name, "BagNetwork"] == pytest.approx(
        100 * rows.loc[name, "accuracy"]
    )
    same = (published["dataset"] == name) & (published["metric"] == "abs")
    [dllp] = published.loc[same & (published["model"] == "dllp"), "acc_mean"]
    assert table.loc[name, "dllp"] == pytest.approx(100 * dllp)
    assert table.notna().all(axis=None) and table["majority"].nunique() == 1


def test_draws_of_natural_bags_are_those_that_all_networks_have():
    table, rows = study.natural_bags(), load("networks_natural")
    whole = rows.groupby(["how", "seed"])["method"].nunique() == len(study.METHODS) + 1
    assert set(table.index) == set(whole[whole].index)
    how = "german by purpose"
    for name, found, method in (
        ("network, vat", rows, "vat"),
        ("CountLogistic", load("natural"), "CountLogistic"),
    ):
        same = found[(found["how"] == how) & (found["method"] == method)]
        wanted = 100 * same.set_index("seed")["accuracy"]
        assert_array_equal(table.loc[how, name], wanted[table.loc[how].index])


def test_errors_over_draws_count_the_images_that_draws_share():
    scores = study.pictures()
    n_draws = scores.loc["digits", "16"]["counts"].count()
    found = study.over_draws(scores, "proportion").loc[("digits", "16", "counts")]
    gaps = scores.loc["digits", "16"].eval("counts - proportion")
    assert n_draws > 1 and found["n_seed"] == n_draws
    assert found["difference"] == pytest.approx(gaps.mean())
    error = gaps.std() * np.sqrt(1 / n_draws + 517 / 1280)
    assert found["error"] == pytest.approx(error)
    level = study.over_draws(scores).loc[("digits", "16", "counts"), "difference"]
    assert level == pytest.approx(scores.loc["digits", "16"]["counts"].mean())


def test_shrunk_images_keep_their_brightness_and_their_places():
    X = np.arange(28 * 28, dtype=float).reshape(1, 28, 28)
    small = study.shrunk(X)
    assert small.shape == (1, 14 * 14) and small.mean() == pytest.approx(X.mean())
    assert small[0, 0] == X[0, :2, :2].mean() and small[0, 1] == X[0, :2, 2:4].mean()
