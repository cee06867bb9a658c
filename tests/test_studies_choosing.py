"""The study of advice: parts share no data, no label reaches a fit or a signal, rules and tables by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from llpbook import MajorityClass, MeanMap
from llpbook.base import LLPClassifier
from llpbook.proportions import label_proportions
from studies import choosing as study
from studies import load

TASK = {"part": "testing", "task": "iris, simple, 5"}


def data_sets(part):
    names = {name.partition(", ")[0] for name, *_ in study.TASKS[part].values()}
    return {"adult" if name.startswith("adult") else name for name in names}


def test_making_and_testing_share_no_data_set():
    making, testing = data_sets("making"), data_sets("testing")
    assert not making & testing and len(making) >= 8 and len(testing) >= 8
    assert "adult" in testing  # to which the bags of others belong
    assert len(study.TASKS["making"]) >= 40 and len(study.OUTSIDE) == 26
    kinds = {how for part in study.BAGS.values() for v in part.values() for how, _ in v}
    assert kinds == {"random", *study.MADE}


def test_labels_reach_fits_and_signals_through_shares_alone(monkeypatch):
    few = {"counts": MajorityClass(), "count trees": MajorityClass(), "EM": MeanMap()}
    few |= {"counts, C = 1": MeanMap(), "InvCal": MeanMap(), "MeanMap": MeanMap()}
    few |= {"majority": MajorityClass()}
    monkeypatch.setattr(study, "CANDIDATES", few)
    seen, fit = [], LLPClassifier.fit

    def spy(self, X, bags, proportions, labels=None):
        seen.append(labels)
        return fit(self, X, bags, proportions, labels)

    monkeypatch.setattr(LLPClassifier, "fit", spy)
    row = study.run(TASK, 0)
    X, _, y, y_new, bags = study.make_problem(**TASK, seed=0)
    assert len(seen) > 7 and all(labels is None for labels in seen)
    assert row["agree EM, InvCal"] == 1 and row["n"] == len(X)
    shares = label_proportions(y, bags)
    prior = np.argmax(np.bincount(bags) @ shares)
    right = np.mean(y_new == np.unique(y)[prior])
    assert row["accuracy majority"] == pytest.approx(right, abs=1e-6)
    assert row["nats counts"] == 0  # the majority class against itself


def test_tables_by_loops():
    rows = study.signal_table()
    rows = rows[rows["part"] == "testing"]
    lost, over = {}, {}
    for _, row in rows.iterrows():
        name = study.advised(row)
        best = max(row[f"accuracy {other}"] for other in study.CANDIDATES)
        lost.setdefault(row["task"], []).append(best - row[f"accuracy {name}"])
        gain = row[f"accuracy {name}"] - row["accuracy majority"]
        over.setdefault(row["task"], []).append(gain)
    means = 100 * np.array([np.mean(v) for v in lost.values()])
    found = study.compare_rules("testing").loc["advice"]
    assert_allclose(found["regret"], means.mean())
    assert found["below"] == sum(np.mean(v) < -0.01 for v in over.values())
    table = study.calibration("testing")
    assert table["n"].sum() == len(rows)
    said = [study.verdict(row) for _, row in rows.iterrows()]
    assert table.loc["weak", "n"] == said.count("weak")


def test_the_advice_on_bags_of_others_by_loops():
    rows, table = load("choosing_outside"), study.outside_table()
    assert len(rows) == 26 == table[["fit", "weak", "do not fit"]].to_numpy().sum()
    for name, part in table.iterrows():
        own = rows[rows["dataset"].str.contains(f"adult-{name}-")]
        over = 100 * (own["accuracy"] - own["majority"])
        assert part["advice"] == pytest.approx(over.mean())
        assert part["lowest"] == pytest.approx(over.min())
        for verdict in ("fit", "weak", "do not fit"):
            assert part[verdict] == (own["verdict"] == verdict).sum()
        refused = own["verdict"] == "do not fit"
        assert (own["accuracy"] == own["majority"])[refused].all()
        assert (own["accuracy"] == own["fit"])[~refused].all()
    verdicts = table[["fit", "weak", "do not fit"]].to_dict("index")  # as the page says
    assert verdicts["naive"] == {"fit": 0, "weak": 0, "do not fit": 4}
    assert verdicts["intermediate"]["weak"] == 7 and table["lowest"].min() > -1
    lead = table["advice"] - table["best"]
    assert lead["hard"] > 2 and lead["simple"] > 1 and abs(lead["intermediate"]) < 1
    fits = rows[rows["verdict"] == "fit"]
    assert len(fits) == 12 and (fits["accuracy"] - fits["majority"]).min() > 0.05
