"""Where the relaxation of conv-∝SVM is loose, and what its gap says of the labels.

240 instances of a data set (all 208 of sonar), standardized, in random bags; nothing is tuned. ``classification`` is
scikit-learn's ``make_classification``, ``clouds`` two normal clouds three standard deviations apart in the first of
five features. ``supervised`` is the support vector machine of the same kernel and C on the true labels, ``alter``
alter-∝SVM with ten starts, ``started`` the same begun at conv-∝SVM, ``first`` conv-∝SVM with a single labeling;
accuracy is on the instances of the bags. ``agreement`` is the part of them whose label MeanMap predicts, too.

``lower`` is certified and ``upper`` is the value over the labelings found: the optimum of the relaxation lies between
them. ``labeled`` is the value of the nearest allowed labeling, ``truth`` that of the true labels. ``gap`` is one less
the ratio of ``upper`` to ``labeled``, an estimate; the same with ``lower`` is never too small.
"""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from llpbook.alter_svm import AlterSVM
from llpbook.conv_svm import ConvSVM, labeled_value
from llpbook.datasets import load_bags, random_bags
from llpbook.invcal import gram_matrix, kernel_coefficient, kernel_features
from llpbook.mean_map import MeanMap
from llpbook.proportions import label_proportions

from .runner import Table, cells

PROTOCOL = "relaxation-3"
N_INSTANCES = 240
SETS = [
    "heart", "vote", "credit-a", "sonar", "ionosphere", "german", "classification", "clouds",
]  # fmt: skip


def make_problem(dataset, bag_size, seed):
    """Standardized instances, labels 0 and 1, bags."""
    rng = np.random.RandomState(seed)
    if dataset == "classification":
        X, y = make_classification(N_INSTANCES, random_state=seed)
    elif dataset == "clouds":
        y = rng.randint(0, 2, N_INSTANCES)
        X = rng.normal(size=(N_INSTANCES, 5)) + np.outer(y, [3.0, 0, 0, 0, 0])
    else:
        data = load_bags(dataset, bag_size=8, random_state=0)
        rows = rng.permutation(len(data.bags))[:N_INSTANCES]
        y = (data.true_labels_for_evaluation()[rows] == data.classes[1]).astype(int)
        X = np.asarray(data.X, dtype=float)[rows]
    bags = random_bags(len(y), bag_size=bag_size, random_state=seed)
    return StandardScaler().fit_transform(X), y, bags


def value_of_truth(X, y, kernel, C):
    """The minimum of the machine of the method for the true labels."""
    if kernel == "linear":
        Z = np.column_stack([X, np.ones(len(X))])
    else:
        gram = gram_matrix(X, X, kernel, kernel_coefficient("scale", X))
        Z = kernel_features(gram + 1)[0]
    return labeled_value(Z, 2.0 * y - 1, C)


def run(cell, seed):
    """One row: a data set, a bag size, a kernel and C."""
    X, y, bags = make_problem(cell["dataset"], cell["bag_size"], seed)
    given = X, bags, label_proportions(y, bags, classes=[0, 1])
    kernel, C = cell["kernel"], cell["C"]
    same = {"kernel": kernel, "C": C}
    model = ConvSVM(**same).fit(*given)
    others = {
        "first": ConvSVM(**same, max_cutting_planes=1),
        "alter": AlterSVM(**same, random_state=seed),
        "started": AlterSVM(**same, init=ConvSVM(**same)),
        "mean_map": MeanMap(kernel=kernel),
    }
    right = {name: fit.fit(*given).score(X, y) for name, fit in others.items()}
    agreement = np.mean(others["mean_map"].predict(X) == model.predict(X))
    return {
        "accuracy": round(model.score(X, y), 6),
        **{name: round(score, 6) for name, score in right.items()},
        "supervised": round(SVC(kernel=kernel, C=C).fit(X, y).score(X, y), 6),
        "agreement": round(agreement, 6),
        "gap": round(model.relaxation_gap_, 6),
        "upper": round(model.upper_bound_, 4),
        "lower": round(model.lower_bound_, 4),
        "labeled": round(model.labeled_value_, 4),
        "truth": round(value_of_truth(X, y, kernel, C), 4),
        "cuts": model.n_cutting_planes_,
    }


TABLES = [
    Table(
        "relaxation",
        PROTOCOL,
        cells(
            dataset=SETS, bag_size=[2, 8, 32], kernel=["linear", "rbf"], C=[0.1, 1.0]
        ),
        run,
        "the gap of conv-∝SVM and what it predicts: eight data sets, three bag sizes, two kernels, two penalties",
    )
]
