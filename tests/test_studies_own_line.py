"""A method's line of the common tables, recomputed from the rows."""

from pathlib import Path

import numpy as np
import pytest

from studies.benchmark import DATASETS
from studies.own_line import RATIOS, WARDS, every_line, own_line, own_table
from studies.runner import RESULTS, load


def paired(rows, method, rival, ratio):
    """Points and corrected error of a difference over draws, as text."""
    table = rows.pivot(index="seed", columns="method", values="accuracy")
    gap = 100 * (table[method] - table[rival]).dropna()
    error = np.sqrt((1 / len(gap) + ratio) * np.var(gap, ddof=1))
    return f"{gap.mean():+.1f} ± {error:.1f}"


@pytest.mark.parametrize("method", ["InvCal", "BagBoosting"])
def test_draws_have_corrected_errors(method):
    table, natural = own_line(method), load("natural")
    for how, ratio in RATIOS.items():
        rows = natural[natural["how"] == how]
        for rival in ("majority", "ridge", "labels"):
            known = paired(rows, method, rival, ratio)
            assert table.loc[how, f"less {rival}"] == known
        line = every_line()[how].loc[method]
        known = paired(rows, method, "ridge", ratio)
        assert f"{line['less ridge']:+.1f} ± {line['±']:.1f}" == known
        mean = rows.loc[rows["method"] == method, "accuracy"].mean()
        assert line["accuracy"] == pytest.approx(100 * mean)
    known = paired(load("thread"), method, "CountLogistic", 5 / 4)  # five parts
    assert table.loc[WARDS, "less counts"] == known


def test_the_benchmark_has_errors_over_data_sets():
    rows = load("benchmark")
    keys = ["dataset", "kind", "bag_size", "seed"]
    rows = rows[rows["method"].isin(["InvCal", "ridge"])].set_index(keys)
    assert (rows["failed"] == "").all()  # else a refusal is the majority class
    score = rows.pivot(columns="method", values="accuracy_likelihood")
    gap = 100 * (score["InvCal"] - score["ridge"]).dropna()
    sets = gap.groupby(level=keys[:3]).mean().groupby(level="dataset").mean()
    for name, several in (("two", False), ("several", True)):
        some = sets[[(DATASETS[key][1] > 2) == several for key in sets.index]]
        error = some.std(ddof=1) / len(some) ** 0.5
        line = own_line("InvCal").loc[f"benchmark, {name} classes"]
        assert line["less ridge"] == f"{some.mean():+.1f} ± {error:.1f}"
        assert line["over"] == f"{len(some)} sets"


def test_the_table_of_a_page_has_the_line_under_heads_in_words():
    line, table = own_line("InvCal"), own_table("InvCal", "inverse calibration")
    assert table.caption.startswith("inverse calibration's accuracy on new instances")
    names, accuracy, *gaps, over = table.cells
    assert names == [*line.index] and over == [*line["over"]]
    assert accuracy == [*line["accuracy"]] and len(gaps) == 4
    for head, column in zip(table.heads[2:6], gaps, strict=True):
        rival = head.removeprefix("minus ").removesuffix(", points")
        assert [c.replace("−", "-") for c in column] == [*line[f"less {rival}"]]


def test_a_method_without_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="in the table natural, got 'SVC'"):
        own_line("SVC")
    for name in ("natural", "thread", "benchmark"):
        rows = (RESULTS / f"{name}.csv").read_text()
        lines = rows.splitlines(keepends=True)
        some = [line for line in lines if name != "benchmark" or "InvCal" not in line]
        (tmp_path / f"{name}.csv").write_text("".join(some))
    with pytest.raises(ValueError, match='TABLE=benchmark ARGS="--only method=InvCal"'):
        own_line("InvCal", tmp_path)


@pytest.mark.parametrize(
    ("page", "method", "classes", "rival", "words"),
    [
        ("invcal", "InvCal", "several", "counts", "7.3 ± 2.1"),
        ("alter_svm", "AlterSVM", "two", "counts", "3.0 ± 0.5"),
        ("conv_svm", "ConvSVM", "several", "counts", "13.7 ± 5.2"),
        ("smic", "SMIC", "two", "ridge", "13.2 ± 3.2"),
    ],
)
def test_the_chapters_quote_the_benchmark(page, method, classes, rival, words):
    line = own_line(method).loc[f"benchmark, {classes} classes"]
    assert line[f"less {rival}"] == f"-{words}"
    text = Path(__file__).parents[1] / f"book/src/{page}.md"
    assert words in text.read_text(encoding="utf-8")
