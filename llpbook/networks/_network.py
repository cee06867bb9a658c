"""The estimator."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from threading import Lock

import numpy as np
from sklearn.utils import check_random_state

from .._input import RandomState
from .._linear import BagLoss, BagLossClassifier, held_out_bags
from ..bag_losses import LOSSES, loss_of
from ..base import Interval, StrOptions, blocks, probabilities, warn
from ._torch import need_torch, scores_of
from ._training import (
    check_device,
    compares_bags,
    in_canonical_order,
    make_network,
    seeded,
    train,
)

#: Probabilities that differ by less between instances are alike.
ALIKE = 0.01
#: The global generator of PyTorch serves one fit at a time.
ONE_FIT = Lock()


class BagNetwork(BagLossClassifier):
    r"""A network by any loss of bags, in batches of whole bags.

    Parameters
    ----------
    loss : {"counts", "normal", "proportion", "squares", "easy", "forward"} or BagLoss, default "proportion"
    hidden : sequence of int, default (64, 64)
        Units of each hidden layer. It does not act beside ``module``.
    module : callable, default None
        ``module(n_features, n_scores)`` returns a ``torch.nn.Module`` of your own, from instances to scores:
        ``n_scores`` is 1 for two classes, else the number of classes. A function of a module can be pickled.
    learning_rate : float, default 0.005
        Step of Adam.
    alpha : float, default 0.0001
        Multiplies the penalty :math:`\lVert\theta\rVert^2 / 2` beside the mean loss of an instance.
    batch_size : int, default 128
        Instances of a batch, about: bags stay whole, and each is in the batch in which its first instance falls.
    max_iter : int, default 100
        Most epochs.
    validation_fraction : float, default 0.1
        Share of the bags that are held out to say which epoch is the best; their labels stay unknown.
    consistency : {"vat"}, default None
        "vat" adds `consistency_loss`, that of LLP-VAT.
    consistency_weight : float, default 0.05
        Of this loss; it rises over the first 40 % of the epochs. It acts with ``consistency`` only.
    radius : float, default 0.5
        Length of a shift, in the units of X. It acts with ``consistency`` only.
    mix_bags : bool, default False
        True mixes about half of the bags of a batch with another bag, see `mix_some`. For losses that compare a bag
        with its own share: not "easy" and "forward".
    device : str, default "cpu"
        Where training and prediction run, such as "cuda".
    random_state : int, RandomState or None, default None
        Draws the first weights, batches, mixtures and shifts.
    verbose : int, default 0
        1 prints a line a second while the epochs go on, 2 a line for each epoch.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    loss_ : BagLoss
        The loss that was minimized, with the class prior where it needs that.
    weights_ : dict of str to ndarray
        The state of the module after the best epoch.
    n_iter_ : int
        The best epoch, which is the last one kept.
    validation_loss_ : ndarray
        The mean loss of the bags held out, before the first epoch and after each.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    NotIdentifiableError
        If all bags have the same proportions.
    ValueError
        For malformed input, see `llpbook.base`; and if the training diverges.

    Notes
    -----
    The training ends when the loss of the bags held out has not fallen for 30 epochs. Of few bags (up to three per
    class) none is held out, and the loss of all bags chooses. "easy" and "forward", whose loss of a few bags is mostly
    noise, are judged by the proportion loss there. "normal" and "forward" know two classes; several are
    fitted one against the rest. The same seed gives the same weights on the same machine and number of threads.
    Weights are trained in single precision; predictions are computed in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook import BagNetwork
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 2)) + 3.0 * y[:, None]
    >>> bags = np.repeat(np.arange(80), 5)
    >>> p = np.bincount(bags, y) / 5
    >>> model = BagNetwork(random_state=0)
    >>> float(model.fit(X, bags, p).score(X, y)) > 0.9  # doctest: +SKIP
    True
    """

    assumes = (
        ("Y_B|X", "X_B|Y"),
        "one P(y | x), or one P(x | y), holds in all bags. By loss: 'proportion' and "
        "'squares' need one P(y | x) or one P(x), 'forward' needs one P(x | y), 'easy' "
        "needs one P(x)",
    )
    cost = "a network: seconds for 10,000 instances"
    _needs = "torch"
    _scale, _cure = "penalty", "another loss"
    _uses_frequencies = False
    _parameter_constraints = {
        "loss": [StrOptions({*LOSSES}), BagLoss],
        "hidden": ["array-like"],
        "module": [callable, None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "consistency": [StrOptions({"vat"}), None],
        "consistency_weight": [Interval(Real, 0, None, closed="neither")],
        "radius": [Interval(Real, 0, None, closed="neither")],
        "mix_bags": ["boolean"],
        "device": [str],
    }

    def __init__(
        self, loss: str | BagLoss = "proportion", hidden: Sequence[int] = (64, 64), *,
        module: Callable | None = None, learning_rate: float = 0.005,
        alpha: float = 1e-4, batch_size: int = 128, max_iter: int = 100,
        validation_fraction: float = 0.1, consistency: str | None = None,
        consistency_weight: float = 0.05, radius: float = 0.5,
        mix_bags: bool = False, device: str = "cpu",
        random_state: RandomState = None, verbose: int = 0,
    ):  # fmt: skip
        self.loss, self.hidden, self.module = loss, hidden, module
        self.learning_rate, self.alpha, self.batch_size = (
            learning_rate,
            alpha,
            batch_size,
        )
        self.max_iter, self.validation_fraction = max_iter, validation_fraction
        self.consistency, self.consistency_weight = consistency, consistency_weight
        self.radius, self.mix_bags, self.device = radius, mix_bags, device
        self.random_state, self.verbose = random_state, verbose

    def _bag_loss(self):
        return loss_of(self.loss)

    def _fit(self, data):
        if self.mix_bags and compares_bags(self.loss):
            raise ValueError(
                "mix_bags=True needs a loss that compares a bag with its own share, "
                f"got loss={self.loss!r}"
            )
        self.loss_ = self._bag_loss().with_prior(data.class_prior)
        check_device(self.device)
        X, observed = in_canonical_order(data, self.loss_)
        random = check_random_state(self.random_state)
        held_out = held_out_bags(observed, X, self.validation_fraction)
        with ONE_FIT, seeded(random.randint(2**31 - 1), self.device):
            best = train(self, X, observed, held_out, random)
        self.n_iter_, self.weights_, self.validation_loss_ = best
        if self.n_iter_ == 0:
            warn(
                "BagNetwork keeps its first, random weights: no epoch lowered the loss "
                "of the bags held out. Few bags, or shares that hardly differ, show no "
                "progress; CountLogistic needs fewer",
                of_one_fit=True,
            )
        elif np.ptp(probabilities(self._scores(X)), axis=0).max() < ALIKE:
            warn(
                "BagNetwork predicts the same for all instances: the mean share. Steps "
                "that are too large can leave units at 0; try a smaller learning_rate",
                of_one_fit=True,
            )

    def _scores(self, X):
        torch = need_torch()
        with ONE_FIT, seeded(0, self.device):  # the first weights are overwritten
            network = make_network(self, X.shape[1]).double().eval()
        network.load_state_dict(
            {name: torch.tensor(array) for name, array in self.weights_.items()}
        )
        with torch.no_grad():
            parts = [
                scores_of(network, torch.tensor(some, device=self.device)).cpu()
                for _, some in blocks(X)
            ]
        return torch.cat(parts).numpy()
