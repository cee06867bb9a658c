"""The data set of bags that `llpbook.datasets` hands out."""

import numpy as np
from sklearn.metrics import accuracy_score


class BagDataset:
    """Instances in bags, their label proportions, and labels that are for evaluation only.

    ``clf.fit(*dataset)`` learns, ``dataset.evaluate(clf)`` says how well: the labels reach neither fit nor tuning.
    Made by `load_bags` and `make_dataset`.

    Attributes
    ----------
    X : DataFrame or array, shape (n_instances, n_features)
    bags : ndarray of int, shape (n_instances,)
        Rows of ``proportions``.
    proportions : DataFrame, shape (n_bags, n_classes)
        The columns are the classes, which become ``classes_`` of an estimator, so that predictions and evaluation speak
        the same labels. Of two classes the positive one is the second. The index is 0, 1, ….
    bag_names : ndarray, shape (n_bags,)
        What the bags are called, for instance the occupations.
    name : str

    Examples
    --------
    >>> from llpbook import BagMeanRegression, load_bags
    >>> data = load_bags("heart", bag_size=8, random_state=0)
    >>> data
    BagDataset('heart': 270 instances, 13 features, 34 bags, 2 classes)
    >>> model = BagMeanRegression().fit(*data)  # X, bags, proportions
    >>> data.evaluate(model) > 0.7
    True
    """

    def __init__(self, X, bags, proportions, y, bag_names, name):
        self.X, self.bags, self.proportions = X, bags, proportions
        self.bag_names, self.name, self._y = bag_names, name, y

    def __iter__(self):
        return iter((self.X, self.bags, self.proportions))

    def __repr__(self):
        (n, d), n_classes = self.X.shape, len(self.classes)
        return f"BagDataset({self.name!r}: {n} instances, {d} features, {self.n_bags} bags, {n_classes} classes)"

    @property
    def classes(self):
        """The class labels in the order of the columns, shape (n_classes,)."""
        return self.proportions.columns.to_numpy()

    @property
    def n_bags(self):
        """Number of bags."""
        return len(self.proportions)

    @property
    def bag_sizes(self):
        """Instances in each bag, shape (n_bags,)."""
        return np.bincount(self.bags, minlength=self.n_bags)

    def true_labels_for_evaluation(self):
        """A copy of the instance labels, shape (n_instances,): for plots and results, never for fit or tuning."""
        return self._y.copy()

    def evaluate(self, estimator, *, metric=accuracy_score):
        """Compare predictions with the true labels.

        Parameters
        ----------
        estimator : object with ``predict``, or array-like, shape (n_instances,)
            A fitted estimator, or its predictions for ``X``.
        metric : callable, default `sklearn.metrics.accuracy_score`
            ``metric(true, predicted)``.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the predictions have another length or hold something that is not a class.
        """
        predicted = np.asarray(
            estimator.predict(self.X) if hasattr(estimator, "predict") else estimator
        )
        if predicted.shape != self._y.shape:
            raise ValueError(
                f"predictions must be one for each instance, {self._y.shape}, got {predicted.shape}"
            )
        strange = [
            p for p in np.unique(predicted).tolist() if p not in self.classes.tolist()
        ]
        if strange:
            raise ValueError(
                f"predictions hold {strange[0]!r}, which is none of the classes {self.classes.tolist()}"
            )
        return float(metric(self._y, predicted))
