"""Draw the pictures of the front page: what is published, what is known of each person, what is learned.

python tools/picture.py

One file for each panel, so that they stand below each other on a phone, and one of all three for README. The numbers
are those of the introduction: census-income-balanced, bags by level of education.
"""

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from check_site import ROOT
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from llpbook import CountLogistic, load_bags
from llpbook.plotting import PALETTE, use_style

TARGET = ROOT / "book/_static"
BLUE, ORANGE = PALETTE[:2]
LIGHT, GRAY, WORDS = "#EDEDED", "#9A9A9A", "#555555"
BOX = [0.02, 0.02, 0.96, 0.8]  # one for all panels: their titles align
LEVELS = {  # the names of the source are long
    "Less than 1st grade": "no school", "7th and 8th grade": "grade 7 or 8", "11th grade": "grade 11",
    "High school graduate": "high school", "Some college but no degree": "some college",
    "Bachelors degree(BA AB BS)": "bachelor", "Masters degree(MA MS MEng MEd MSW MBA)": "master",
    "Doctorate degree(PhD EdD)": "doctorate",
}  # fmt: skip


def census():
    """People, names of their levels, shares of the levels, and the accuracy of four classifiers."""
    data = load_bags("census-income-balanced", by="education")
    adults = data.bags != list(data.bag_names).index("Children")
    people = data.X.loc[adults, ["age", "sex=Male", "weeks_worked"]]
    X, bags = StandardScaler().fit_transform(people), data.bags[adults]
    share = data.proportions["50000+"].to_numpy()
    rich = data.true_labels_for_evaluation()[adults]
    count = CountLogistic().fit(X, bags, data.proportions)
    supervised = LogisticRegression().fit(X, rich)
    accuracy = {
        "everybody alike": max(np.mean(rich == "50000+"), np.mean(rich != "50000+")),
        "the table alone": np.mean(np.maximum(share, 1 - share)[bags]),
        "CountLogistic,\nno income seen": count.score(X, rich),
        "logistic regression,\nall incomes seen": supervised.score(X, rich),
    }
    names = np.array(data.bag_names)
    return people, names[bags], dict(zip(names, share, strict=True)), accuracy


def start_panel(ax, title, subtitle):
    """Words and marks, no axes."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=20)
    ax.text(0, 1.03, subtitle, transform=ax.transAxes, fontsize=9.5, color=WORDS)


def draw_table(ax, shares):
    start_panel(ax, "1  Published", r"share who earn over \$50,000, by education")
    for i, (name, short) in enumerate(LEVELS.items()):
        ax.barh(-i, 1, color=LIGHT, height=0.62)
        ax.barh(-i, shares[name], color=ORANGE, height=0.62)
        ax.text(-0.04, -i, short, ha="right", va="center", fontsize=10)
        ax.text(1.04, -i, f"{shares[name]:.0%}", va="center", fontsize=10)
    more = f"… {len(shares) - 1 - len(LEVELS)} more levels"
    ax.text(-0.04, -len(LEVELS), more, ha="right", va="center", fontsize=9.5, color=WORDS)  # fmt: skip
    ax.set(xlim=(-0.95, 1.3), ylim=(-len(LEVELS) - 0.4, 0.6))


def draw_people(ax, people, levels):
    """One person of each of eight levels, drawn at random."""
    start_panel(ax, "2  Known of each person", "features and level, but no income")
    people = people.assign(level=levels)[np.isin(levels, list(LEVELS))]
    drawn = people.sample(frac=1, random_state=3).drop_duplicates("level")
    places = {
        "age": (0.0, "right"), "sex": (0.07, "left"), "weeks": (0.34, "right"),
        "level": (0.42, "left"), "income": (1.0, "right"),
    }  # fmt: skip
    for word, (x, side) in places.items():
        ax.text(x, 0.45, word, fontsize=9.5, color=WORDS, ha=side)
    ax.plot([-0.1, 1.01], [0.2, 0.2], color=GRAY, lw=0.8)
    for k, (age, man, weeks, level) in enumerate(drawn.itertuples(index=False)):
        cells = f"{age:.0f}", "m" if man else "f", f"{weeks:.0f}", LEVELS[level]
        for (x, side), text in zip(places.values(), cells, strict=False):
            ax.text(x, -k - 0.35, text, fontsize=10, va="center", ha=side)
        ax.text(
            0.93, -k - 0.35, "?", fontsize=12, fontweight="bold", color=ORANGE,
            va="center", ha="right",
        )  # fmt: skip
    ax.text(-0.1, -8.2, f"… {len(levels):,} people", fontsize=9.5, color=WORDS, va="center")  # fmt: skip
    ax.set(xlim=(-0.12, 1.03), ylim=(-8.6, 0.8))


def draw_accuracy(ax, accuracy):
    start_panel(ax, "3  Learned", "share of people classified correctly")
    faces = GRAY, GRAY, BLUE, "white"
    for i, ((name, right), face) in enumerate(zip(accuracy.items(), faces, strict=True)):  # fmt: skip
        edge, weight = (BLUE, "normal") if face == "white" else (face, "normal")
        weight = "bold" if face == BLUE else weight
        ax.barh(-i, right, color=face, ec=edge, height=0.6, lw=1.4)
        ax.text(-0.03, -i, name, ha="right", va="center", fontsize=10, fontweight=weight)  # fmt: skip
        ax.text(right + 0.03, -i, f"{right:.1%}", va="center", fontsize=10.5, fontweight=weight)  # fmt: skip
    ax.plot([0, 0], [-3.5, 0.5], color=GRAY, lw=0.8)
    ax.set(xlim=(-0.78, 1.14), ylim=(-3.75, 0.55))


def main():
    use_style()
    people, levels, shares, accuracy = census()
    panels = {
        "published": (draw_table, shares),
        "people": (lambda ax, data: draw_people(ax, *data), (people, levels)),
        "learned": (draw_accuracy, accuracy),
    }
    whole = plt.figure(figsize=(10.2, 3.1), layout="none")
    for i, (name, (draw, data)) in enumerate(panels.items()):
        figure = plt.figure(figsize=(3.4, 3.1), layout="none")
        draw(figure.add_axes(BOX), data)
        figure.savefig(TARGET / f"hero-{name}.svg", metadata={"Date": None})
        draw(whole.add_axes([(i + BOX[0]) / 3, BOX[1], BOX[2] / 3, BOX[3]]), data)
    whole.savefig(TARGET / "llpbook-hero.png", dpi=200)
    for name, right in accuracy.items():
        print(f"{right:.4f}", " ".join(name.split()))


if __name__ == "__main__":
    main()
