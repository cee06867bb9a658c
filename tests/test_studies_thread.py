"""The thread of the book: its draws, its rows and the table that grows."""

import numpy as np
import pandas as pd
import pytest

from llpbook.datasets import load_bags
from llpbook.proportions import label_proportions
from studies import load, thread
from studies.natural import METHODS


def test_every_method_has_one_chapter():
    named = [method for some in thread.CHAPTERS.values() for method in some]
    assert sorted([*named, "labels"]) == sorted(METHODS)


def test_a_draw_holds_out_whole_wards_of_the_books_draw():
    X, X_new, y, y_new, bags = thread.make_problem(3)
    data = load_bags("heart", bag_size=8, random_state=3)
    assert len(X) + len(X_new) == len(data.X) and bags.max() == 26
    np.testing.assert_allclose(X.mean(0), 0, atol=1e-12)
    # The shares of the given wards are among those of the draw.
    given = label_proportions(y, bags, classes=[0, 1])[:, 1]
    whole = data.proportions[data.classes[1]].to_numpy()
    assert not pd.Index(given.round(9)).difference(whole.round(9)).size
    assert y.sum() + y_new.sum() == 120
    news = [len(thread.make_problem(3, part)[1]) for part in range(thread.PARTS)]
    assert sum(news) == 270


def test_the_table_grows():
    rows = load("thread")
    sizes = [len(thread.table_so_far(chapter)) for chapter in thread.CHAPTERS]
    assert sizes == sorted(sizes) and sizes[-1] == len(METHODS)
    whole = thread.table_so_far()
    assert whole.equals(thread.table_so_far("smic"))
    new = rows.query("method == 'MeanMap'")["accuracy"]
    assert (
        whole.loc["MeanMap", "new"] == f"{100 * new.mean():.1f} ({100 * new.sem():.1f})"
    )
    assert whole.loc["ridge", "over ridge"] == "0.0 (0.0)"
    with pytest.raises(ValueError, match="chapter must be one of"):
        thread.table_so_far("nowhere")
