"""What several studies take of `adult` and `census-income-balanced`: few columns, and tables as arrays."""

from functools import lru_cache

from llpbook.datasets import load_bags

#: The numbers, and two categories that tell much of the income.
ADULT = [
    "age", "education-num", "capital-gain", "capital-loss", "hours-per-week",
    "sex=Male", "marital-status=Married-civ-spouse",
]  # fmt: skip
CENSUS = [
    "age", "wage_per_hour", "capital_gains", "capital_losses", "dividends",
    "num_persons_worked", "weeks_worked", "sex=Male",
]  # fmt: skip


@lru_cache(maxsize=2)
def table_of(name, by, columns):
    """Features, labels (0 and 1) and the bags by a column of a data set; without a column all are one bag."""
    data = load_bags(name, n_bags=1) if by is None else load_bags(name, by=by)
    X = data.X if columns is None else data.X[list(columns)]
    y = data.true_labels_for_evaluation() == data.classes[1]
    return X.to_numpy(dtype=float), y.astype(int), data.bags
