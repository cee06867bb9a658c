"""The figures say what the data say: bars, boundaries, keys, and no more than they should."""

import subprocess
import sys
from itertools import pairwise

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from llpbook import taxonomy
from llpbook.comparison import critical_difference, indistinct_groups
from llpbook.ecological import plot_band
from llpbook.plotting import (
    MARKERS,
    PALETTE,
    Table,
    draw_dag,
    draw_dags,
    plot_bags,
    plot_critical_difference,
    use_style,
)
from llpbook.plotting._bags import INKS, look, spread
from llpbook.proportions import label_proportions
from llpbook.uncertainty import BagReport


@pytest.fixture(autouse=True)
def settings():
    """Each test leaves matplotlib's settings as they were."""
    with matplotlib.rc_context():
        yield


@pytest.fixture
def toy():
    """Two bags of 40 in the plane."""
    rng = np.random.default_rng(0)
    y, bags = np.repeat([0, 1, 0, 1], [12, 28, 26, 14]), np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 2)) + 1.5 * y[:, None]
    return X, bags, label_proportions(y, bags)[:, 1]


@pytest.fixture
def iris():
    data, rng = load_iris(), np.random.default_rng(1)
    bags = rng.permutation(150) % 5
    return data.data, bags, label_proportions(data.target, bags)


def by_gid(ax, gid):
    return [artist for artist in ax.get_children() if artist.get_gid() == gid]


def only(ax, gid):
    (artist,) = by_gid(ax, gid)
    return artist


def points(ax, bag):
    """What is drawn of a bag: coordinates and colors."""
    drawn = only(ax, f"bag {bag}")
    return drawn.get_offsets(), [to_hex(c).upper() for c in drawn.get_facecolors()]


def widths(ax):
    return np.array([bar.get_width() for bars in ax.containers for bar in bars])


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


# --- colors -------------------------------------------------------------------------
def test_ink_reads_on_white():
    """WCAG 2 asks of text a contrast of 4.5 with white."""
    for ink in INKS:
        rgb = np.array(to_rgb(ink))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 4.49


def test_every_color_has_its_own_marker():
    looks = [look(k)[:2] for k in range(64)]
    assert looks[:8] == list(zip(PALETTE, MARKERS, strict=True))
    assert len(set(looks)) == 64


# --- plot_bags: the bars -------------------------------------------------------------
def test_bars_are_the_proportions(toy):
    X, bags, p = toy
    left, right = plot_bags(X, bags, p).axes
    assert_allclose(widths(right), p)
    (bars,) = right.containers
    colors = [to_hex(bar.get_facecolor()).upper() for bar in bars]
    assert colors == [points(left, k)[1][0] for k in range(2)] == [*PALETTE[:2]]
    assert ticks(right.yaxis) == ["bag 0 (n = 40)", "bag 1 (n = 40)"]
    assert [t.get_text() for t in right.texts] == [f"{v:.2f}" for v in p]
    assert right.get_ylim()[0] > right.get_ylim()[1]  # the first bag on top
    uneven = np.repeat([0, 2], [60, 20])
    names = {"class_names": ["well", "ill"]}
    right = plot_bags(X, uneven, [0.2, np.nan, 0.6], **names).axes[1]
    assert ticks(right.yaxis) == ["bag 0 (n = 60)", "bag 2 (n = 20)"]
    assert right.get_xlabel() == "proportion of ill"
    prior = only(right, "class prior")
    assert prior.get_xdata()[0] == pytest.approx(0.3)  # weighted by size
    assert legend(right) == ["class prior 0.30"]


def test_what_is_left_out_is_said_and_no_more(toy):
    """Eight bags are shown whole, nine are not; nobody is in an empty bag."""
    X, bags, p = toy
    figure = plot_bags(X, 1 + bags, [np.nan, 0.2, 0.6])
    left, right = figure.axes
    assert ticks(right.yaxis) == ["bag 1 (n = 40)", "bag 2 (n = 40)"]
    assert legend(right) == ["class prior 0.40"] and left.get_legend() is None
    assert (left.get_xlabel(), left.get_ylabel()) == ("$x_1$", "$x_2$")
    assert figure.get_size_inches().tolist() == [7, 3]
    assert plot_bags(X, bags, p, figsize=(6, 4)).get_size_inches().tolist() == [6, 4]
    for n_bags, loc, some in ((8, "left", ""), (9, "right", ", 8 of 9 bags")):
        shares = [np.nan, *np.linspace(0, 1, n_bags)]
        right = plot_bags(X, 1 + np.arange(80) % n_bags, shares).axes[1]
        assert right.get_title(loc=loc) == "label proportions" + some
    many, half = np.tile(X, (20, 1)), [0.5, 0.5]
    for rows, d, some in ((1500, 2, ""), (1501, 2, ", 1500 of 1501"), (1600, 1, "")):
        left = plot_bags(many[:rows, :d], np.arange(rows) % 2, half).axes[0]
        assert left.get_title(loc="left") == "instances, colored by bag" + some


def test_stacks_sum_to_one(iris):
    X, bags, P = iris
    right = plot_bags(X, bags, P).axes[1]
    w = widths(right).reshape(3, 5)
    assert_allclose(w.T, P)
    starts = np.array([[bar.get_x() for bar in bars] for bars in right.containers])
    assert_allclose(starts, np.cumsum(w, axis=0) - w, atol=1e-12)
    lines = sorted(line.get_xdata()[0] for line in by_gid(right, "class prior"))
    assert_allclose(lines, [1 / 3, 2 / 3])
    assert legend(right) == ["class 0", "class 1", "class 2", "class prior"]
    assert right.get_xlabel() == "proportion of each class"


def test_many_bags_are_spread_over_the_proportions():
    rng = np.random.default_rng(0)
    bags, p = np.repeat(np.arange(101), 3), (rng.permutation(101) / 100) ** 2
    left, right = plot_bags(rng.normal(size=(303, 3)), bags, p, max_bags=5).axes
    assert_allclose(widths(right), np.linspace(0, 1, 5) ** 2)
    prior = only(right, "class prior").get_xdata()[0]
    assert prior == pytest.approx(p.mean())  # of all bags, not of those shown
    assert right.get_title(loc="right") == "label proportions, 5 of 101 bags"
    assert legend(left) == ["other bags"]
    assert len(only(left, "other bags").get_offsets()) == 3 * 96
    rows = [int(name.split()[1]) for name in ticks(right.yaxis)]
    assert_allclose(p[rows], widths(right))
    # of three classes, the one that varies most decides; empty bags are not there
    P = np.array([[0.4, 0.6, 0], [0.4, 0, 0.6], [0.4, 0.3, 0.3], [1, 0, 0]])
    assert spread(P, np.array([1, 1, 1, 0]), 2).tolist() == [1, 0]
    assert spread(P, np.array([1, 1, 1, 0]), 3).tolist() == [0, 1, 2]


DOLLARS = ("under $10 a day", r"$\frac$", r"\$5 and $6", "$a$", "_hidden", "50 % _{")


def texts_of(figure):
    """Every text of a figure as it is drawn, not as it is written for matplotlib."""
    figure.canvas.draw()  # raises where a formula cannot be read
    texts = [t._preprocess_math(t.get_text()) for t in figure.findobj(Text)]
    return [text for text, is_formula in texts if not is_formula]


@pytest.mark.parametrize("name", DOLLARS)
def test_a_dollar_in_a_name_is_a_dollar(name):
    frame = pd.DataFrame(np.eye(2), columns=[name, "b"])
    table = pd.DataFrame({"no": [0.5, 0.5], name: [0.5, 0.5]}, [name, "z"])
    shown = texts_of(plot_bags(frame, [name, "z"], table))
    ends = (name, f"{name} (n = 1)", f"proportion of class {name}")
    assert all(any(text.strip() == end for text in shown) for end in ends)
    three = np.array([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]])
    shown = texts_of(plot_bags(frame, [0, 1], three, class_names=["a", name, "c"]))
    assert name in [text.strip() for text in shown]


def bands_of(names):
    """A band, with such groups alone and within strata of such names."""
    columns = ["least", "low", "plain", "contextual", "high", "most"]
    both = pd.MultiIndex.from_product([names, ["$old$", "_young"]])
    for index in (pd.Index(names), both):
        yield pd.DataFrame(
            [[0.1, 0.3, 0.4, 0.45, 0.5, 0.9]] * len(index), index, columns
        )


def standing_out(names):
    """A report of bags of which each stands out."""
    columns = {"z": 9.0, "expected": 0.5, "stands_out": True}
    return BagReport(pd.DataFrame(columns, names), 1.0, 2.0, 1.0, 0.0)


def test_every_plot_of_names_draws_them_as_they_are():
    names = list(DOLLARS)
    figures = {
        "critical difference": [plot_critical_difference(dict(zip(names, range(1, 7), strict=True)), 9)],
        "band": [plot_band(band).figure for band in bands_of(names)],
        "report": [standing_out(names).plot().figure],
    }  # fmt: skip
    for what, drawn in figures.items():
        for figure in drawn:
            shown = " | ".join(texts_of(figure))
            assert [name for name in names if name not in shown] == [], what


def test_keyed_proportions_name_bags_and_classes(toy):
    X, bags, p = toy
    keys = ["Cook", "Los Angeles County, California"]
    table = pd.DataFrame({"no": 1 - p, "yes": p}, index=keys)
    right = plot_bags(X, np.array(keys)[bags], table).axes[1]
    names = ["Cook (n = 40)", "Los Angeles County,\nCalifornia (n = 40)"]
    assert ticks(right.yaxis) == names
    assert right.get_xlabel() == "proportion of class yes"


# --- plot_bags: the instances --------------------------------------------------------


def test_more_features_are_principal_components(iris):
    X, bags, P = iris
    left = plot_bags(X, bags, P).axes[0]
    assert {points(left, k)[1][0] for k in range(5)} == set(PALETTE[:5])
    assert left.get_xlabel() == "PC 1 (92 % of variance)"
    assert left.get_ylabel() == "PC 2 (5 % of variance)"
    centered = X - X.mean(axis=0)
    scores = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T
    for k in range(5):
        drawn, _ = points(left, k)
        expected = np.sort(np.abs(scores[bags == k]), axis=0)
        assert_allclose(np.sort(np.abs(drawn), axis=0), expected, atol=1e-9)


@pytest.mark.filterwarnings("error")
def test_input_forms_give_the_same_picture(toy):
    X, bags, p = toy
    X = np.column_stack([X, X[:, ::-1] ** 2])
    pictures = []
    for given in (X, pd.DataFrame(X, columns=list("abcd")), sp.csr_array(X)):
        drawn, _ = points(plot_bags(given, bags, p).axes[0], 0)
        pictures.append(np.sort(np.abs(drawn), axis=0))
    assert_allclose(pictures[1:], 2 * pictures[:1], atol=1e-8)
    left = plot_bags(pd.DataFrame(X[:, :2], columns=["age", "dose"]), bags, p).axes[0]
    assert (left.get_xlabel(), left.get_ylabel()) == ("age", "dose")


def test_nothing_is_cut_off_and_no_names_overlap(toy, iris):
    use_style()
    X, bags, P = iris
    long = [f"{name} but not quite as long as {k}" for k, name in enumerate("abcde")]
    many = np.arange(150) // 4
    keys = np.array([f"bag {k} is not quite as long" for k in range(38)])
    for fig in (
        plot_bags(*toy),
        plot_bags(X, np.array(long)[bags], pd.DataFrame(P, long)),
        plot_bags(X[:, 2:], bags, P, class_names=load_iris().target_names),
        plot_bags(X, many, np.linspace(0, 1, 38)),
        plot_bags(X, many, np.linspace(0, 1, 38), max_bags=40),
        plot_bags(X, keys[many], pd.Series(np.ones(38), keys), figsize=(7, 2.5)),
    ):
        fig.canvas.draw()
        width, height = fig.canvas.get_width_height()
        for ax in fig.axes:
            names = [t for t in ax.get_yticklabels() if "(n =" in t.get_text()]
            texts = [ax.xaxis.label, ax.yaxis.label, ax.title, *ax.texts, *names]
            texts += [ax._left_title, ax._right_title]
            texts += ax.get_legend().get_texts() if ax.get_legend() else []
            for text in filter(Text.get_text, texts):
                box = text.get_window_extent()
                assert box.x0 >= 0 and box.x1 <= width, text.get_text()
                assert box.y0 >= 0 and box.y1 <= height, text.get_text()
            boxes = [name.get_window_extent() for name in names]  # from the top
            assert all(low.y1 <= high.y0 for high, low in pairwise(boxes))


# --- graphs --------------------------------------------------------------------------
def drawn(ax):
    """The edges that an axes shows, read off the ends of its arrows."""
    places = {t.get_text(): np.array(t.get_position()) for t in ax.texts[:3]}

    def nearest(point):
        return min(places, key=lambda v: np.linalg.norm(places[v] - point))

    arrows = [p._posA_posB for p in ax.patches if isinstance(p, FancyArrowPatch)]
    return frozenset((nearest(start), nearest(end)) for start, end in arrows)


def test_draw_dags_shows_all_of_them():
    axes = draw_dags()
    shown = [drawn(ax) for ax in axes.ravel() if ax.patches]
    assert axes.shape == (8, 6) and len(shown) == 25
    assert set(shown) == set(taxonomy.all_dags())
    for row in axes[:-1]:
        mine = [drawn(ax) for ax in row if ax.patches]
        assert mine == taxonomy.dags_of(row[0].texts[-1].get_text())
    ax = draw_dag({("X", "Y")})
    assert drawn(ax) == {("X", "Y")}
    white = [circle.get_facecolor() == (1, 1, 1, 1) for circle in ax.patches[:3]]
    assert white == [True, True, False]  # the bag is shaded


# --- plot_critical_difference --------------------------------------------------------
RANKS = pd.Series({"A$": 1.4, "_B": 2.1, "C": 3.1, "D": 3.6, "E": 4.8})


def lines(ax, gid):
    return [line for line in ax.lines if (line.get_gid() or "").startswith(gid)]


def test_bars_join_the_groups_of_nemenyi_and_names_show_ranks():
    critical = critical_difference(5, 14, test="nemenyi", level=0.1)
    (ax,) = plot_critical_difference(RANKS.sample(frac=1, random_state=0), 14).axes
    groups = indistinct_groups(RANKS, critical)
    bars = lines(ax, "group")
    assert len(bars) == len(groups) > 1
    for bar, group in zip(bars, groups, strict=True):
        ends = RANKS[group].min(), RANKS[group].max()
        assert_allclose(sorted(bar.get_xdata()), ends, atol=0.03)
    assert len({bar.get_ydata()[0] for bar in bars}) == len(bars)
    assert not lines(ax, "band")
    left, right = ax.get_xlim()
    assert left > right and ticks(ax.xaxis) == ["1", "2", "3", "4", "5"]
    assert ax.get_title(loc="left") == f"CD = {critical:.2f} (Nemenyi, level 0.1)"
    sides = sorted(ax.texts, key=lambda t: (t.get_ha(), t.xy[1]))  # from the top
    shown = [t.get_text().strip() for t in sides]
    assert shown == [r"A\$  1.40", "_B  2.10", "4.80  E", "3.60  D", "3.10  C"]


def test_markers_outside_the_band_of_the_control_are_filled():
    (ax,) = plot_critical_difference(RANKS, 14, control="C", level=0.05).axes
    critical = critical_difference(5, 14, level=0.05)
    (band,) = lines(ax, "band")
    assert_allclose(band.get_xdata(), [3.1 - critical, 3.1 + critical])
    assert not lines(ax, "group")
    for name, rank in RANKS.items():
        (marker,) = lines(ax, f"method {name}")
        filled = marker.get_markerfacecolor() != "white"
        assert filled == (abs(rank - 3.1) >= critical)
        assert marker.get_xdata() == [rank]
    assert [t.get_text() for t in ax.texts if t.get_weight() == "bold"] == ["3.10  C"]
    title = f"CD = {critical:.2f} (Bonferroni–Dunn, level 0.05)"
    assert ax.get_title(loc="left") == title
    for name, ends in (("A$", [1, 1.4 + critical]), ("E", [4.8 - critical, 5])):
        (ax,) = plot_critical_difference(RANKS, 14, control=name, level=0.05).axes
        assert_allclose(lines(ax, "band")[0].get_xdata(), ends)


def test_a_gap_that_is_the_critical_difference_is_one(monkeypatch):
    where = "llpbook.plotting._critical_difference.critical_difference"
    monkeypatch.setattr(where, lambda *args, **kwargs: 1.0)
    (ax,) = plot_critical_difference([1, 2, 3], 9, control=1).axes
    faces = [lines(ax, f"method {k}")[0].get_markerfacecolor() for k in range(3)]
    assert [face != "white" for face in faces] == [True, False, True]
    given = plt.subplots()[1]
    assert plot_critical_difference([1, 2, 3], 9, ax=given) is given.figure
    assert not lines(given, "group")


# --- bad input -----------------------------------------------------------------------
GOOD = {
    plot_bags: {"X": np.eye(4, 2), "bags": [0, 0, 1, 1], "proportions": [0.5, 0.5]},
    plot_critical_difference: {"ranks": {"A": 1, "B": 2}, "n_sets": 8},
}


@pytest.mark.parametrize("plot, change, message", [
    (plot_bags, {"X": np.full((4, 2), np.nan)}, "X must be a matrix of finite numbers"),
    (plot_bags, {"class_names": ["a"]}, "class_names must be 2 names, got"),
    (plot_critical_difference, {"ranks": [1, 1]}, "ranks of 2 methods must sum"),
    (plot_critical_difference, {"control": "C"}, "control must be one of"),
    (draw_dag, {"dag": {("X", "Y"), ("Y", "X")}}, "cycle"),
])  # fmt: skip
def test_bad_input_is_named_and_leaves_no_figure(plot, change, message):
    with pytest.raises(ValueError, match=message):
        plot(**GOOD.get(plot, {}) | change)
    assert plt.get_fignums() == []


# --- style and imports ---------------------------------------------------------------
def test_only_use_style_changes_settings(toy):
    before = dict(matplotlib.rcParams)
    plot_bags(*toy)
    plot_critical_difference({"A": 1, "B": 2}, 8)
    draw_dags()
    assert dict(matplotlib.rcParams) == before
    with plt.style.context("llpbook.llpbook"):
        by_name = dict(matplotlib.rcParams)
    use_style()
    assert dict(matplotlib.rcParams) == by_name != before
    assert tuple(matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]) == PALETTE


def test_matplotlib_is_imported_late_and_its_absence_explained():
    code = (
        "import sys; import llpbook.plotting as p; assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "for call in (p.use_style, p.draw_dags):\n"
        "    try: call()\n"
        "    except ImportError as err: assert 'pip install matplotlib' in str(err), err\n"
        "    else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_table_reads_the_same_as_text_and_as_html():
    frame = pd.DataFrame(
        {"gap": [-0.52, 9.31, np.nan], "error": [1.9, 2.3, np.nan], "kind": ["leave-out", "a<b", "c"]},
        pd.MultiIndex.from_product([["ridge"], ["1", "2", "3"]]),
    )  # fmt: skip
    columns = {"gap, points": ("{:.1f} ± {:.1f}", "gap", "error"), "kind": "{}"}
    table = Table(frame, "Points <below> labels.", columns, rows="method")
    text, html = repr(table), table._repr_html_()
    cells = ["−0.5 ± 1.9", "9.3 ± 2.3", "–", "leave-out", "ridge, 2"]
    assert all(cell in text and f">{cell}<" in html for cell in cells)
    assert '<th scope="col">gap, points</th>' in html and "<td>a&lt;b</td>" in html
    assert "Points &lt;below&gt; labels." in html and "a<b" in text
    widths = {len(line) for line in text.splitlines()[2:] if "±" in line}
    assert len(widths) == 1 and text.startswith("Points <below> labels.\n\n")
    assert "<td></td><th" in Table(frame, "", columns)._repr_html_()
    with pytest.raises(ValueError, match=r"columns must name .*'gain'"):
        Table(frame, "", {"gain": "{:.1f}"})
