"""Training of a network on bags, of which some are held out."""

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._linear import BagCounts, BagLoss, observed_counts
from ..bag_losses import ProportionLoss, loss_of
from ..base import feature_free_order, row_order
from ._batches import draw_batches, mix_some, whole_bags
from ._torch import bag_loss, consistency_loss, multilayer, need_torch, scores_of

#: Epochs without progress on the bags held out, after which the training ends.
PATIENCE = 30
#: Share of the epochs over which the weight of the consistency rises.
RISE = 0.4


class Part(NamedTuple):
    """Some bags: their instances as a tensor, their counts, and the loss of them."""

    X: Any
    observed: BagCounts
    loss: BagLoss


def train(model, X, observed, held_out, random):
    """Train a network, and keep the best epoch.

    Parameters
    ----------
    model : BagNetwork
        With its loss and its classes.
    X : ndarray, shape (n_instances, n_features)
    observed : BagCounts
    held_out : ndarray of bool, shape (n_bags,)
    random : RandomState

    Returns
    -------
    best : int
        The epoch whose weights are kept.
    weights : dict of str to ndarray
    history : ndarray
        Loss per bag of the bags held out, or of all if none is, before the first epoch and after each.
    """
    torch, loss = need_torch(), model.loss_.of_all(observed)
    network = make_network(model, X.shape[1])
    rate, alpha = model.learning_rate, model.alpha
    adam = torch.optim.Adam(network.parameters(), lr=rate, weight_decay=alpha)
    X = torch.tensor(X, dtype=torch.float32, device=model.device)
    check_scores(network, X, len(model.classes_))
    seen = part_of(X, observed, loss, ~held_out)
    judge = ProportionLoss() if compares_bags(model.loss) else loss
    judged = part_of(X, observed, judge, held_out if held_out.any() else ~held_out)
    history, best, weights = [mean_loss(network, judged)], 0, arrays(network)
    progress = model._progress(model.max_iter, "epoch")
    for epoch in range(1, model.max_iter + 1):
        one_epoch(model, network, adam, seen, random, epoch)
        history.append(mean_loss(network, judged))
        progress.step(f"loss of the bags held out {history[-1]:.4g}")
        if history[-1] < history[best]:
            best, weights = epoch, arrays(network)
        if epoch - best >= PATIENCE:
            break
    return best, weights, np.array(history)


def one_epoch(model, network, adam, seen, random, epoch):
    """Take one step of Adam for each batch of whole bags."""
    network.train()
    rise = min(1.0, epoch / (RISE * model.max_iter))
    weight = model.consistency_weight * np.exp(-5 * (1 - rise) ** 2)
    for bags in draw_batches(seen.observed.sizes, model.batch_size, random):
        if model.mix_bags:
            rows, some = mix_some(seen.observed, bags, random)
            loss = seen.loss
        else:
            rows, some = whole_bags(seen.observed, bags)
            loss = seen.loss.some(bags)
        X = seen.X[rows]
        value = bag_loss(scores_of(network, X), loss, some) / len(rows)
        if model.consistency == "vat":
            scores = partial(scores_of, network)
            value = value + weight * consistency_loss(scores, X, model.radius)
        adam.zero_grad()
        value.backward()
        adam.step()


def mean_loss(network, part):
    """Loss per bag of a `Part`, without a gradient."""
    network.eval()
    with need_torch().no_grad():
        scores = scores_of(network, part.X).cpu().numpy().astype(float)
    value, _, _ = part.loss.of_counts(scores, part.observed)
    return float(value) / len(part.observed.sizes)


def part_of(X, observed, loss, chosen):
    """The `Part` of the bags of a mask."""
    rows = np.flatnonzero(chosen[observed.bags])
    return Part(X[rows], observed.part(chosen), loss.some(np.flatnonzero(chosen)))


def make_network(model, n_features):
    """Make the network of a `BagNetwork` with its first weights."""
    n_scores = 1 if len(model.classes_) == 2 else len(model.classes_)
    if model.module is None:
        network = multilayer(n_features, n_scores, model.hidden)
    else:
        network = model.module(n_features, n_scores)
    return network.to(model.device)


def compares_bags(loss):
    """Tell if a loss, or the one of a name, asks more of a bag than its own share, as "easy" and "forward" do."""
    loss = loss_of(loss)
    return loss.fewest_bags > 1 or not loss.bounded


@contextmanager
def seeded(seed, device):
    """Within this context PyTorch draws from a seed, and afterwards goes on where it was."""
    torch = need_torch()
    devices = [] if device == "cpu" else [device]
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield


def in_canonical_order(data, loss):
    """Rows and bags in an order of their own, so that another order of the input gives the same fit."""
    order = row_order(data)
    observed = observed_counts(
        replace(data, X=data.X[order], bags=data.bags[order]), loss
    )
    X = data.X[order]
    means = observed.sums(X) / observed.sizes[:, None]
    turn = feature_free_order(observed.shares, observed.sizes, means)
    bags = np.argsort(turn)[observed.bags]
    parts = {
        name: getattr(observed, name)[turn] for name in ("sizes", "counts", "errors")
    }
    return X, replace(observed, bags=bags, **parts)


def check_device(device):
    """Refuse a device that PyTorch does not have here."""
    torch = need_torch()
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        raise ValueError(
            f"device must be one that PyTorch has here, such as 'cpu' or 'cuda', got {device!r}"
        ) from error


def check_scores(network, X, n_classes):
    """Refuse a module of the user whose scores have another shape than (n_instances, n_scores)."""
    network.eval()
    with need_torch().no_grad():
        shape = tuple(network(X[:1]).shape)
    if shape not in ([(1,), (1, 1)] if n_classes == 2 else [(1, n_classes)]):
        columns = 1 if n_classes == 2 else n_classes
        raise ValueError(
            f"module must return scores of shape (n_instances, {columns}), the number it is called with; "
            f"for one instance got {shape}"
        )


def arrays(network):
    """The state of a module as arrays."""
    return {
        name: value.cpu().numpy().copy() for name, value in network.state_dict().items()
    }
