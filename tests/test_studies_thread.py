"""The thread of the book: its draws, its rows and the table that grows."""

import pandas as pd
from numpy.testing import assert_allclose

from llpbook.datasets import load_bags
from llpbook.proportions import label_proportions
from studies import thread


def test_a_draw_holds_out_whole_wards_of_the_books_draw():
    X, X_new, y, y_new, bags = thread.make_problem(3)
    data = load_bags("heart", bag_size=8, random_state=3)
    assert len(X) + len(X_new) == len(data.X) and bags.max() == 26
    assert_allclose(X.mean(0), 0, atol=1e-12)
    # The shares of the given wards are among those of the draw.
    given = label_proportions(y, bags, classes=[0, 1])[:, 1]
    whole = data.proportions[data.classes[1]].to_numpy()
    assert not pd.Index(given.round(9)).difference(whole.round(9)).size
    assert y.sum() + y_new.sum() == 120
    news = [len(thread.make_problem(3, part)[1]) for part in range(thread.PARTS)]
    assert sum(news) == 270
