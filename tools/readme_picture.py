"""Draw the picture of the README: what is given (bags, their proportions) and what is learned from it (a boundary).

Run from the root: ``python tools/readme_picture.py`` writes ``book/_static/llpbook-bags.png``.
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from llpbook.mean_map import MeanMap
from llpbook.plotting import plot_bags, use_style

TARGET = Path(__file__).parents[1] / "book" / "_static" / "llpbook-bags.png"


def three_bags(seed=0, size=60, shares=(0.8, 0.5, 0.2)):
    """Three bags from the same two classes, mixed in different proportions."""
    rng = np.random.default_rng(seed)
    bags = np.repeat(np.arange(len(shares)), size)
    y = np.concatenate([np.arange(size) < round(s * size) for s in shares]).astype(int)
    center = np.where(y[:, None] == 1, [1.1, 0.7], [-1.1, -0.7])
    return center + rng.normal(size=(len(y), 2)) @ [[0.9, -0.3], [-0.3, 0.8]], bags, y


def main():
    use_style()
    X, bags, y = three_bags()
    proportions = np.array([y[bags == k].mean() for k in range(3)])
    clf = MeanMap(alpha=1.0).fit(X, bags, proportions)

    fig = plt.figure(figsize=(7.6, 3.0), layout="constrained")
    given, bars, learned = fig.subplots(1, 3, width_ratios=[1, 0.6, 1])
    plot_bags(X, bags, proportions, bag_names=["A", "B", "C"], axes=(given, bars))
    plot_bags(X, bags, proportions, clf, y, axes=(learned, None))
    given.set_title("given: instances in bags …")
    bars.set_title("… and label proportions")
    learned.set_title(f"learned: {100 * clf.score(X, y):.0f} % right")
    learned.get_legend().set_title("true labels, unseen in learning", {"size": "small"})
    fig.savefig(TARGET, dpi=160)
    plt.close(fig)
    # 128 colors are plenty, at a third of the size
    small = Image.open(TARGET).convert("RGB").quantize(128)
    small.save(TARGET, optimize=True)
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
