"""The figures say what the data say: bars, boundaries, keys, and no more than they should."""

import doctest
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.text import Text
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import llpbook.plotting
from llpbook.mean_map import MeanMap
from llpbook.plotting import (
    MARKERS,
    PALETTE,
    _contrast_with_white,
    _margins,
    _move_apart,
    _spread,
    ink,
    plot_bags,
    plot_learning_curve,
    plot_proportions,
    use_style,
)
from llpbook.proportions import label_proportions


@pytest.fixture(autouse=True)
def closed():
    """Each test starts and ends without figures, and leaves matplotlib's settings as they were."""
    plt.close("all")
    with matplotlib.rc_context():
        yield
    plt.close("all")


@pytest.fixture
def toy():
    """Two bags of 40 in the plane, with true labels."""
    rng = np.random.default_rng(0)
    y, bags = np.repeat([0, 1, 0, 1], [12, 28, 26, 14]), np.repeat([0, 1], 40)
    return (
        rng.normal(size=(80, 2)) + 1.5 * y[:, None],
        bags,
        label_proportions(y, bags)[:, 1],
        y,
    )


@pytest.fixture
def iris():
    data, rng = load_iris(), np.random.default_rng(1)
    bags = rng.permutation(150) % 5
    return data.data, bags, label_proportions(data.target, bags), data.target


def by_gid(ax, gid):
    return [artist for artist in ax.get_children() if artist.get_gid() == gid]


def widths(ax):
    return np.array(
        [bar.get_width() for container in ax.containers for bar in container]
    )


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- colours ---------------------------------------------------------------------------------------------------------
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]


def lab(color, vision):
    """CIE Lab (D65) of a colour as seen."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = XYZ @ np.clip(VISION[vision] @ linear, 0, 1) / [0.95047, 1, 1.08883]
    fx, fy, fz = (
        np.cbrt(t) if t > (6 / 29) ** 3 else t * (29 / 6) ** 2 / 3 + 4 / 29
        for t in (x, y, z)
    )
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(("first", "least"), [(3, 35), (6, 15)])
def test_colours_differ_for_colour_blind_readers(vision, first, least):
    distances = [
        np.linalg.norm(lab(a, vision) - lab(b, vision))
        for a, b in combinations(PALETTE[:first], 2)
    ]
    assert min(distances) >= least  # 2.3 is just noticeable


def test_lab_reference_values():
    np.testing.assert_allclose(lab("#FFFFFF", "normal"), [100, 0, 0], atol=0.02)
    np.testing.assert_allclose(
        lab("#FF0000", "normal"), [53.24, 80.09, 67.20], atol=0.05
    )


def test_contrast_with_white():
    assert _contrast_with_white("#FFFFFF") == pytest.approx(1)
    assert _contrast_with_white("#000000") == pytest.approx(21)
    assert all(_contrast_with_white(color) >= 3 for color in PALETTE[:3])
    for color in PALETTE:  # outlines and texts
        assert _contrast_with_white(ink(color)) >= 4.5
        assert ink(ink(color)) == ink(color)
    with pytest.raises(ValueError, match=r"contrast must be in \[1, 21\], got 22"):
        ink("#000000", 22)


def test_every_colour_has_its_own_marker():
    assert len(set(PALETTE)) == len(set(MARKERS)) == len(PALETTE) == len(MARKERS) == 8
    looks = [llpbook.plotting._look(k) for k in range(64)]
    assert looks[:8] == list(zip(PALETTE, MARKERS, strict=True))
    assert len(set(looks)) == 64


# --- plot_bags, right panel ------------------------------------------------------------------------------------------
def test_bars_are_the_proportions(toy):
    X, bags, p, _ = toy
    right = plot_bags(X, bags, p).axes[1]
    np.testing.assert_allclose(widths(right), p)
    assert [t.get_text() for t in right.get_yticklabels()] == [
        "bag 0 (n = 40)",
        "bag 1 (n = 40)",
    ]
    assert [t.get_text() for t in right.texts] == [f"{v:.2f}" for v in p]
    (prior,) = by_gid(right, "class prior")
    assert prior.get_xdata()[0] == pytest.approx(p.mean())
    assert right.get_ylim()[0] > right.get_ylim()[1]  # the first bag on top


def test_class_prior_is_weighted_by_bag_size():
    X, bags = np.random.default_rng(0).normal(size=(40, 2)), np.repeat([0, 1], [30, 10])
    (prior,) = by_gid(plot_bags(X, bags, [0.2, 0.6]).axes[1], "class prior")
    assert prior.get_xdata()[0] == pytest.approx(0.3)


def test_stacks_sum_to_one(iris):
    X, bags, P, _ = iris
    right = plot_bags(X, bags, P).axes[1]
    w = widths(right).reshape(3, 5)
    np.testing.assert_allclose(w.T, P)
    np.testing.assert_allclose(w.sum(axis=0), 1)
    starts = np.array([bar.get_x() for c in right.containers for bar in c]).reshape(
        3, 5
    )
    np.testing.assert_allclose(starts[1:], (starts + w)[:-1], atol=1e-12)
    lines = sorted(line.get_xdata()[0] for line in by_gid(right, "class prior"))
    np.testing.assert_allclose(lines, [1 / 3, 2 / 3])


def test_predicted_proportions_are_those_of_the_estimator(toy, iris):
    X, bags, p, _ = toy
    clf = MeanMap().fit(X, bags, p)
    (marks,) = by_gid(plot_bags(X, bags, p, clf).axes[1], "predicted proportions")
    np.testing.assert_allclose(
        marks.get_xdata(), clf.predict_proportions(X, bags)[:, 1]
    )
    X, bags, P, y = iris
    clf = LogisticRegression(max_iter=1000).fit(X, y)
    (marks,) = by_gid(plot_bags(X, bags, P, clf).axes[1], "predicted proportions")
    shares = label_proportions(clf.predict(X), bags)
    np.testing.assert_allclose(
        marks.get_xdata().reshape(5, 2), np.cumsum(shares, axis=1)[:, :2]
    )


def test_many_bags_are_spread_over_the_proportions():
    rng = np.random.default_rng(0)
    bags, p = np.repeat(np.arange(101), 3), rng.permutation(101) / 100
    left, right = plot_bags(rng.normal(size=(303, 2)), bags, p, max_bags=5).axes
    np.testing.assert_allclose(widths(right), [0, 0.25, 0.5, 0.75, 1])
    assert right.get_title(loc="right") == "label proportions, 5 of 101 bags"
    assert "other bags" in legend(left)
    assert len(by_gid(left, "other bags")[0].get_offsets()) == 3 * 96
    # of three classes, the one that varies most decides; bags without instances are not there
    P = np.array([[0.4, 0.6, 0], [0.4, 0, 0.6], [0.4, 0.3, 0.3], [1, 0, 0]])
    assert _spread(P, np.array([1, 1, 1, 0]), 2).tolist() == [1, 0]
    assert _spread(P, np.array([1, 1, 1, 0]), 8).tolist() == [0, 1, 2]


def test_keyed_proportions_name_bags_and_classes(toy):
    X, bags, p, y = toy
    named = np.array(["Cook", "Los Angeles County, California"])[bags]
    table = pd.DataFrame(
        {"no": 1 - p, "yes": p}, index=["Cook", "Los Angeles County, California"]
    )
    left, right = plot_bags(X, named, table, y=np.array(["no", "yes"])[y]).axes
    assert [t.get_text() for t in right.get_yticklabels()] == [
        "Cook (n = 40)",
        "Los Angeles County,\nCalifornia (n = 40)",
    ]
    assert right.get_xlabel() == "proportion of class yes"
    assert legend(left) == ["class yes", "class no"]


# --- plot_bags, left panel -------------------------------------------------------------------------------------------
def test_colour_and_marker_by_bag(toy):
    X, bags, p, _ = toy
    left = plot_bags(X, bags, p).axes[0]
    for k in range(2):
        (points,) = by_gid(left, f"bag {k}")
        assert sorted(points.get_offsets().tolist()) == sorted(X[bags == k].tolist())
        assert {
            matplotlib.colors.to_hex(c).upper() for c in points.get_facecolors()
        } == {PALETTE[k]}
    shapes = [
        by_gid(left, f"bag {k}")[0].get_paths()[0].vertices.shape for k in range(2)
    ]
    assert shapes[0] != shapes[1]
    assert (left.get_xlabel(), left.get_ylabel()) == ("$x_1$", "$x_2$")


def test_boundary_is_where_the_decision_function_is_zero(toy):
    X, bags, p, _ = toy
    clf = MeanMap().fit(X, bags, p)
    left = plot_bags(X, bags, p, clf).axes[0]
    (border,) = by_gid(left, "decision boundary")
    on = np.concatenate([path.vertices for path in border.get_paths()])
    assert len(on) > 50
    np.testing.assert_allclose(clf.decision_function(on), 0, atol=1e-9)
    names = {t.get_text(): t.xy for t in left.texts}
    assert set(names) == {"predicts class 0", "predicts class 1"}
    for k in range(2):  # each name stands where it is true
        assert clf.predict([names[f"predicts class {k}"]])[0] == k


def test_boundary_of_three_classes_and_hard_predictions(iris):
    X, bags, P, y = iris
    clf = LogisticRegression(max_iter=1000).fit(X[:, 2:], y)
    left = plot_bags(X[:, 2:], bags, P, clf).axes[0]
    for border in by_gid(left, "decision boundary"):
        on = np.concatenate([path.vertices for path in border.get_paths()])
        scores = np.sort(clf.decision_function(on), axis=1)
        spread = np.ptp(clf.decision_function(X[:, 2:]))
        assert (
            scores[:, 2] - scores[:, 1]
        ).max() < 0.01 * spread  # the best two are level

    class Hard:  # nothing but predict
        classes_ = clf.classes_
        predict = staticmethod(clf.predict)

    hard = _margins(Hard(), X[:, 2:], np.arange(3))
    np.testing.assert_array_equal(hard.argmax(axis=1), clf.predict(X[:, 2:]))
    straight, turned = (
        _margins(clf, X[:, 2:], np.array(order)) for order in ([0, 1, 2], [2, 0, 1])
    )
    np.testing.assert_allclose(turned, straight[:, [2, 0, 1]])
    assert len(np.unique(straight)) > 100  # smooth


def test_scores_that_disagree_with_predict_are_not_trusted(toy):
    X, _, _, y = toy
    clf = LogisticRegression().fit(X, y)

    class Shifted:  # its threshold is not 0
        classes_ = clf.classes_

        def decision_function(self, X):
            return clf.decision_function(X)

        def predict(self, X):
            return (clf.decision_function(X) > 2).astype(int)

    margins = _margins(Shifted(), X, np.arange(2))
    np.testing.assert_array_equal(margins.argmax(axis=1), Shifted().predict(X))


def test_one_feature_is_a_strip_a_bag(toy):
    X, bags, p, _ = toy
    clf = MeanMap().fit(X[:, :1], bags, p)
    left, right = plot_bags(X[:, :1], bags, p, clf).axes
    for k in range(2):
        strip = by_gid(left, f"bag {k}")[0].get_offsets()
        assert np.abs(strip[:, 1] - k).max() < 0.3
        np.testing.assert_allclose(np.sort(strip[:, 0]), np.sort(X[bags == k, 0]))
    assert left.get_ylim() == right.get_ylim()
    (cut,) = by_gid(left, "decision boundary")
    np.testing.assert_allclose(
        clf.decision_function([[cut.get_xdata()[0]]]), 0, atol=1e-9
    )


def test_more_features_are_principal_components_without_a_boundary(iris):
    X, bags, P, y = iris
    clf = LogisticRegression(max_iter=1000).fit(X, y)
    left = plot_bags(X, bags, P, clf).axes[0]
    assert left.get_xlabel() == "PC 1 (92 % of variance)"
    assert left.get_ylabel() == "PC 2 (5 % of variance)"
    assert not by_gid(left, "decision boundary")
    assert left.get_title(loc="left") == "instances by bag and prediction"
    centred = X - X.mean(axis=0)
    scores = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    drawn = np.concatenate(
        [by_gid(left, f"bag {k}")[0].get_offsets() for k in range(5)]
    )
    for j in range(2):
        np.testing.assert_allclose(
            np.sort(np.abs(drawn[:, j])), np.sort(np.abs(scores[:, j])), atol=1e-9
        )
    used = {
        matplotlib.colors.to_hex(c).upper()
        for k in range(5)
        for c in by_gid(left, f"bag {k}")[0].get_facecolors()
    }
    assert used == set(PALETTE[:3])  # the three predicted classes


def test_fill_is_the_prediction_then_the_label(toy):
    X, bags, p, y = toy
    X = np.column_stack([X, np.random.default_rng(1).normal(size=80)])
    clf = MeanMap().fit(X, bags, p)

    def filled(fig):
        faces = [by_gid(fig.axes[0], f"bag {k}")[0].get_facecolors() for k in range(2)]
        return [int((f[:, :3] < 1).any(axis=1).sum()) for f in faces]

    fig = plot_bags(X, bags, p, clf)
    assert filled(fig) == [int(clf.predict(X)[bags == k].sum()) for k in range(2)]
    assert legend(fig.axes[0]) == ["predicted class 1", "predicted class 0"]
    fig = plot_bags(X, bags, p, clf, y)
    assert filled(fig) == [int(y[bags == k].sum()) for k in range(2)]
    assert (
        len(by_gid(fig.axes[0], "wrong predictions")[0].get_offsets())
        == (clf.predict(X) != y).sum()
        > 0
    )
    assert fig.axes[0].get_title(loc="left") == "true labels (evaluation only)"


def test_labels_enter_only_the_evaluation_panel(toy):
    X, bags, p, y = toy
    clf = MeanMap().fit(X, bags, p)
    plain, evaluated = plot_bags(X, bags, p, clf), plot_bags(X, bags, p, clf, y)
    assert "true" not in plain.axes[0].get_title(loc="left")
    assert evaluated.axes[0].get_title(loc="left") == "true labels (evaluation only)"
    images = []
    for fig in (
        plain,
        evaluated,
    ):  # the panel of the proportions is the same, whatever the labels
        images.append(
            (
                widths(fig.axes[1]),
                by_gid(fig.axes[1], "predicted proportions")[0].get_xdata(),
            )
        )
    np.testing.assert_array_equal(images[0][0], images[1][0])
    np.testing.assert_array_equal(images[0][1], images[1][1])


def test_input_forms_give_the_same_picture_and_stay_as_they_were(toy):
    X, bags, p, _ = toy
    wide = np.column_stack([X, X[:, ::-1] ** 2])
    clf = MeanMap().fit(wide, bags, p)
    frame = pd.DataFrame(wide, columns=list("abcd"))
    pictures = []
    for given in (wide.copy(), frame.copy(), sp.csr_array(wide)):
        model = (
            MeanMap().fit(frame, bags, p) if isinstance(given, pd.DataFrame) else clf
        )
        if sp.issparse(given):
            model = LogisticRegression().fit(given, clf.predict(wide))
            model.coef_, model.intercept_ = (
                clf.coef_.reshape(1, -1),
                np.atleast_1d(clf.intercept_),
            )
        left = plot_bags(given, bags, p, model).axes[0]
        pictures.append(np.sort(np.abs(by_gid(left, "bag 0")[0].get_offsets()), axis=0))
        np.testing.assert_array_equal(
            given.toarray() if sp.issparse(given) else np.asarray(given), wide
        )
    np.testing.assert_allclose(pictures[1], pictures[0])
    np.testing.assert_allclose(pictures[2], pictures[0], atol=1e-8)


@pytest.mark.filterwarnings("error")
def test_a_frame_reaches_the_estimator_with_its_names(toy):
    X, bags, p, _ = toy
    frame = pd.DataFrame(X, columns=["age", "dose"])
    left = plot_bags(frame, bags, p, MeanMap().fit(frame, bags, p)).axes[0]
    assert (left.get_xlabel(), left.get_ylabel()) == ("age", "dose")


def test_too_many_instances_are_thinned_and_said_so():
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(20), 100)
    left = plot_bags(
        rng.normal(size=(2000, 2)),
        bags,
        rng.uniform(size=20),
        max_bags=2,
        max_instances=250,
    ).axes[0]
    assert left.get_title(loc="left").endswith(", 250 of 2000")
    sizes = [len(c.get_offsets()) for c in left.collections]
    assert sorted(sizes) == [50, 100, 100]  # shown bags first, whole


def test_no_figure_is_leaked_and_axes_are_used(toy):
    X, bags, p, _ = toy
    with pytest.raises(ValueError, match="proportions"):
        plot_bags(X, bags, [2.0, 0.5])
    with pytest.raises(ValueError):
        plot_proportions([2.0])
    with pytest.raises(ValueError):
        plot_learning_curve(pd.DataFrame())
    assert plt.get_fignums() == []
    fig, axes = plt.subplots(1, 3)
    assert plot_bags(X, bags, p, axes=axes[:2]) is fig
    assert plot_bags(X, bags, p, axes=(axes[2], None)) is fig
    assert len(plt.get_fignums()) == 1
    assert len(axes[1].containers) == 1 and not axes[2].containers
    plot_bags(X, bags, p)
    assert len(plt.get_fignums()) == 2


def test_nothing_is_cut_off_at_the_edge(toy, iris):
    use_style()
    X, bags, P, y = iris
    clf = LogisticRegression(max_iter=1000).fit(X, y)
    for fig in (
        plot_bags(
            *toy[:3], MeanMap().fit(*toy[:3]), toy[3], class_names=["healthy", "ill"]
        ),
        plot_bags(X, bags, P, clf, y),
        plot_bags(X, np.arange(150) // 5, np.full(30, 0.5), max_bags=8),
        plot_proportions(np.linspace(0, 1, 30), 20, noise="binomial"),
    ):
        fig.canvas.draw()
        width, height = fig.canvas.get_width_height()
        for ax in fig.axes:
            names = [t for t in ax.get_yticklabels() if "(n =" in t.get_text()]
            titles = [ax.title, ax._left_title, ax._right_title]
            keys = ax.get_legend().get_texts()
            for text in [
                ax.xaxis.label,
                ax.yaxis.label,
                *titles,
                *ax.texts,
                *names,
                *keys,
            ]:
                if text.get_text():
                    box = Text.get_window_extent(text)
                    assert (
                        box.x0 >= 0
                        and box.y0 >= 0
                        and box.x1 <= width
                        and box.y1 <= height
                    ), text.get_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bags": [0, 1]}, "bags must name one bag for each of the 80 instances"),
        ({"proportions": [0.5]}, "bags holds 1"),
        ({"proportions": [0.5, 1.2]}, r"proportions must lie in \[0, 1\], got 1.2"),
        ({"X": np.full((80, 2), np.nan)}, "Input X contains NaN"),
        ({"y": [0, 1]}, "y must have one label for each of the 80 instances"),
        ({"y": np.arange(80)}, "y has the classes"),
        ({"max_bags": 0}, "max_bags must be an integer of at least 1, got 0"),
        (
            {"max_instances": 1.5},
            "max_instances must be an integer of at least 1, got 1.5",
        ),
        ({"class_names": ["a"]}, "class_names must have 2 entries, got 1"),
        ({"bag_names": ["a"]}, "bag_names must have 2 entries, got 1"),
        ({"feature_names": ["a"]}, "feature_names must have 2 entries"),
        ({"axes": [None]}, "axes must be a pair"),
        ({"axes": (None, None)}, "axes must hold at least one"),
        (
            {
                "estimator": LogisticRegression().fit(
                    [[0, 0], [1, 1], [2, 2]], [0, 1, 2]
                )
            },
            "estimator has the classes",
        ),
    ],
)
def test_bad_input_is_named(toy, change, message):
    X, bags, p, _ = toy
    with pytest.raises(ValueError, match=message):
        plot_bags(**{"X": X, "bags": bags, "proportions": p} | change)
    assert plt.get_fignums() == []


# --- plot_proportions ------------------------------------------------------------------------------------------------
def test_histogram_counts_every_bag_once():
    p = np.random.default_rng(0).binomial(30, 0.4, size=200) / 30
    (ax,) = plot_proportions(p, 30).axes
    assert sum(patch.get_height() for patch in ax.patches) == 200
    np.testing.assert_array_equal(by_gid(ax, "rug")[0].get_xdata(), p)
    assert by_gid(ax, "class prior")[0].get_xdata()[0] == pytest.approx(p.mean())
    left = np.array([patch.get_x() for patch in ax.patches]) * 30
    np.testing.assert_allclose(left % 1, 0.5)  # edges lie between possible proportions


def test_sampling_noise_has_its_textbook_spread():
    rng = np.random.default_rng(0)
    p = rng.binomial(25, 0.4, size=80) / 25
    eta = p.mean()
    for noise, factor in (
        ("binomial", 1),
        ("hypergeometric", (2000 - 25) / (2000 - 1)),
    ):
        (ax,) = plot_proportions(p, 25, noise=noise).axes
        sd = np.sqrt(eta * (1 - eta) / 25 * factor)
        assert f"noise alone, sd {sd:.3f}" in legend(ax)
        (curve,) = by_gid(ax, "sampling noise")
        assert curve.get_data().values.sum() == pytest.approx(80)
        middle = (curve.get_data().edges[1:] + curve.get_data().edges[:-1]) / 2
        assert np.average(middle, weights=curve.get_data().values) == pytest.approx(
            eta, abs=0.02
        )


def test_each_bag_counts_with_its_own_size():
    p, sizes = np.array([0.5, 0.5, 0.5, 0.9]), np.array([10, 40, 40, 0])
    (ax,) = plot_proportions(p, sizes, noise="binomial").axes
    sd = np.sqrt(np.mean(0.25 / sizes[:3]))
    assert legend(ax)[:2] == ["3 bags, sd 0.000", f"noise alone, sd {sd:.3f}"]


def test_a_panel_for_each_of_many_classes():
    P = np.random.default_rng(0).dirichlet([3, 2, 1, 1], size=40)
    fig = plot_proportions(P, class_names=list("abcd"))
    assert [ax.get_xlabel() for ax in fig.axes] == [
        f"proportion of {c}" for c in "abcd"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": "poisson", "bag_sizes": 5}, "noise must be None"),
        ({"noise": "binomial"}, "needs bag_sizes"),
        (
            {"bag_sizes": [1, 2, 3]},
            "bag_sizes must be one number or one for each of the 2 bags",
        ),
        (
            {"bag_sizes": [1, -2]},
            "bag_sizes must be integers of at least 0, not all 0, got -2",
        ),
        ({"bag_sizes": 0}, "not all 0, got 0"),
        ({"axes": [None, None]}, "axes must hold 1 Axes"),
    ],
)
def test_bad_proportion_plots_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_proportions([0.2, 0.4], **arguments)
    assert plt.get_fignums() == []


# --- plot_learning_curve ---------------------------------------------------------------------------------------------
@pytest.fixture
def runs():
    rng = np.random.default_rng(0)
    grid = [
        (m, s)
        for m in ("MeanMap", "InvCal", "AlterSVM")
        for s in (2, 8, 64)
        for _ in range(4)
    ]
    table = pd.DataFrame(grid, columns=["method", "bag_size"])
    return table.assign(
        accuracy=0.9 - 0.03 * np.log2(table.bag_size) + rng.normal(0, 0.01, len(table))
    )


def test_lines_are_means_and_bands_standard_deviations(runs):
    (ax,) = plot_learning_curve(runs, references={"majority class": 0.6}).axes
    for k, (method, color) in enumerate(
        zip(["MeanMap", "InvCal", "AlterSVM"], PALETTE, strict=False)
    ):
        line = next(line for line in ax.lines if line.get_label() == method)
        groups = runs[runs.method == method].groupby("bag_size").accuracy
        np.testing.assert_allclose(line.get_ydata(), groups.mean())
        assert line.get_color() == color and line.get_marker() == MARKERS[k]
        edge = ax.collections[k].get_paths()[0].vertices[:, 1]
        assert edge.max() == pytest.approx((groups.mean() + groups.std()).max())
        assert edge.min() == pytest.approx((groups.mean() - groups.std()).min())
    assert [t.get_text() for t in ax.get_xticklabels()] == ["2", "8", "64"]
    assert ax.get_xscale() == "log" and ax.xaxis.get_transform().base == 2
    assert {t.get_text() for t in ax.texts} == {
        "MeanMap",
        "InvCal",
        "AlterSVM",
        "majority class",
    }
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("bag size", "accuracy")


def test_paper_is_hollow_and_dashed_in_the_same_colour(runs):
    paper = pd.DataFrame(
        {"method": "InvCal", "bag_size": [2, 8, 32], "accuracy": [0.8, 0.7, 0.6]}
    )
    (ax,) = plot_learning_curve(runs, paper=paper).axes
    line = next(line for line in ax.lines if line.get_label() == "InvCal (paper)")
    np.testing.assert_array_equal(line.get_ydata(), [0.8, 0.7, 0.6])
    assert (
        line.get_markerfacecolor() == "white"
        and line.get_color() == ink(PALETTE[1])
        and line.is_dashed()
    )
    assert [t.get_text() for t in ax.get_xticklabels()] == ["2", "8", "32", "64"]
    assert legend(ax) == ["mean ± standard deviation", "paper"]


def test_labels_do_not_overlap_nor_cover_the_data(runs):
    level = runs.assign(accuracy=0.8)  # all lines end at one point
    fig = plot_learning_curve(level)
    fig.canvas.draw()
    (ax,) = fig.axes
    boxes = sorted(
        (Text.get_window_extent(t) for t in ax.texts), key=lambda box: box.y0
    )  # without the leaders
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert min(box.x0 for box in boxes) > ax.get_window_extent().x1
    many = pd.concat([runs.assign(method=f"method {k}") for k in range(30)])
    (ax,) = plot_learning_curve(many).axes  # no room: a legend beside the data
    assert len(legend(ax)) == 30 and not ax.texts


def test_move_apart_keeps_gaps_and_moves_little():
    placed = _move_apart(np.array([0.1, 0.5, 0.5, 0.9]), 0.1)
    np.testing.assert_allclose(placed, [0.1, 0.45, 0.55, 0.9])
    wanted = np.sort(np.random.default_rng(0).uniform(size=12))
    assert np.diff(_move_apart(wanted, 0.06)).min() >= 0.06 - 1e-12


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, {"x": "size"}, "table has no column 'size'"),
        (
            {"accuracy": np.nan},
            {},
            "table has a missing value in column 'accuracy', row 0",
        ),
        (
            {"bag_size": 0},
            {},
            "column 'bag_size' of table must be positive on a logarithmic axis, got 0",
        ),
        ({}, {"hue_order": ["SVM"]}, "hue_order holds 'SVM'"),
        ({}, {"paper": {"InvCal": 0.9}}, "paper must be a DataFrame"),
    ],
)
def test_bad_tables_are_named(runs, change, arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_learning_curve(runs.assign(**change), **arguments)
    assert plt.get_fignums() == []


# --- style and imports -----------------------------------------------------------------------------------------------
def test_only_use_style_changes_settings(toy, runs):
    before = dict(matplotlib.rcParams)
    plot_bags(*toy[:3])
    plot_proportions([0.2, 0.5, 0.4], 10, noise="hypergeometric")
    plot_learning_curve(runs)
    assert dict(matplotlib.rcParams) == before
    with plt.style.context("llpbook.llpbook"):
        by_name = dict(matplotlib.rcParams)
    use_style()
    assert dict(matplotlib.rcParams) == by_name != before
    assert tuple(matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]) == PALETTE
    assert (
        matplotlib.rcParams["savefig.facecolor"] == "white"
        and not matplotlib.rcParams["savefig.transparent"]
    )


def test_module_imports_without_matplotlib_and_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = sys.modules['seaborn'] = None\n"
        "import llpbook.plotting as p\n"
        "for call in (p.use_style, lambda: p.plot_proportions([0.5])):\n"
        "    try: call()\n"
        "    except ImportError as err: assert 'pip install llpbook[plot]' in str(err), err\n"
        "    else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_examples_run():
    assert doctest.testmod(llpbook.plotting).failed == 0


def test_readme_picture_is_small_and_opaque():
    path = Path(__file__).parents[1] / "book" / "_static" / "llpbook-bags.png"
    assert path.stat().st_size < 120_000
    image = plt.imread(path)
    assert image.shape[2] == 3 or image[..., 3].min() == 1
    np.testing.assert_array_equal(image[0, 0, :3], 1)
