"""Draw the picture of README and of the first page: what is given (bags and their shares), and what is learned.

python tools/picture.py
"""

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from check_site import ROOT
from matplotlib.colors import ListedColormap
from PIL import Image

from llpbook import MeanMap
from llpbook.plotting import MARKERS, PALETTE, plot_bags, use_style

TARGET = ROOT / "book/_static/llpbook-bags.png"


def three_bags():
    """Three bags from the same two classes, mixed in different proportions."""
    rng, bags = np.random.default_rng(0), np.repeat(list("ABC"), 60)
    y = np.concatenate([np.arange(60) < n for n in (48, 30, 12)]).astype(int)
    center = np.where(y[:, None] == 1, [1.1, 0.7], [-1.1, -0.7])
    return center + rng.normal(size=(180, 2)) @ [[0.9, -0.3], [-0.3, 0.8]], bags, y


def draw_learned(ax, model, X, bags, y):
    """The prediction as shading, its boundary, and each true class as filled or open markers of the bags."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    x, z = np.meshgrid(np.linspace(left, right, 400), np.linspace(low, high, 400))
    score = model.decision_function(np.c_[x.ravel(), z.ravel()]).reshape(x.shape)
    ax.contourf(x, z, score > 0, levels=[0.5, 1], cmap=ListedColormap(["0.9"]))
    ax.contour(x, z, score, levels=[0], colors="black")
    for bag, marker, color in zip("ABC", MARKERS, PALETTE, strict=False):
        for label, face in enumerate(("white", color)):
            some = X[(bags == bag) & (y == label)]
            ax.plot(*some.T, marker, mfc=face, mec=color, ms=5, ls="")
    for label, face in enumerate(("white", "black")):
        ax.plot([], [], "o", mfc=face, mec="black", label=f"class {label}")
    ax.fill([], [], "0.9", ec="black", label="predicted 1")
    where = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 3}
    ax.legend(**where, columnspacing=0.8, handlelength=1.2, handletextpad=0.4)


def main():
    use_style()
    X, bags, y = three_bags()
    shares = pd.Series(y).groupby(bags).mean()
    model = MeanMap(alpha=1.0).fit(X, bags, shares)
    figure = plot_bags(X, bags, shares, figsize=(9, 3))
    places = figure.add_gridspec(1, 3, width_ratios=[1, 0.6, 1])
    for ax, place in zip(figure.axes, places, strict=False):
        ax.set_subplotspec(place)
    given, bars = figure.axes
    learned = figure.add_subplot(places[2])
    learned.set(xlim=given.get_xlim(), ylim=given.get_ylim(), xlabel=given.get_xlabel())
    draw_learned(learned, model, X, bags, y)
    given.set_title("given: bags of instances", loc="left")
    bars.set_title("and label proportions", loc="left")
    right = f"{100 * model.score(X, y):.0f} %"
    learned.set_title(f"learned: {right} right", loc="left")
    figure.savefig(TARGET, dpi=135)
    Image.open(TARGET).convert("RGB").quantize(128).save(TARGET, optimize=True)
    print(f"{TARGET.name}: {right} right, {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
