"""Networks, losses of bags as tensors, and the consistency of LLP-VAT, computed by PyTorch."""

from importlib import import_module
from typing import Any

import numpy as np

from .._input import check_whole
from ..base import probabilities

#: Length of the first, random shift of an instance, as a share of the radius.
FIRST_SHIFT = 0.01
#: Standard deviations of the share of a mixed bag within which a prediction counts as right: 99 %.
SURE = 2.576


def need_torch() -> Any:
    """Import PyTorch, or say how to install it.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    """
    try:
        return import_module("torch")
    except ImportError as error:
        raise ImportError(
            "BagNetwork needs PyTorch, which is not installed: pip install torch, or python3-torch of Debian; "
            "CountBoosting and BagBoosting learn from the same losses without it"
        ) from error


def multilayer(n_features, n_scores, hidden):
    """Make a network of linear layers with ReLU between them.

    Parameters
    ----------
    n_features, n_scores : int
    hidden : sequence of int
        Units of each hidden layer; none for a linear model.

    Returns
    -------
    torch.nn.Sequential
    """
    nn = need_torch().nn
    network = nn.Sequential()
    for units in hidden:
        network.append(nn.Linear(n_features, check_whole("hidden", units)))
        network.append(nn.ReLU())
        n_features = units
    return network.append(nn.Linear(n_features, n_scores))


def scores_of(network, X):
    """Scores of a network, of two classes as a vector."""
    scores = network(X)
    return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores


def bag_loss(scores, loss, observed):
    """Value of a loss of bags as a tensor, through which PyTorch differentiates.

    Parameters
    ----------
    scores : tensor, shape (n_instances,) or (n_instances, n_classes)
    loss : BagLoss
    observed : BagCounts
        Where the counts have errors that the loss cannot use, a bag whose mean prediction lies within `SURE` standard
        deviations of its share has no gradient: the confidence interval of MixBag.

    Returns
    -------
    tensor
        Of one number.
    """
    f = scores.detach().cpu().numpy().astype(float)
    value, gradient, _ = loss.of_counts(f, observed)
    if observed.errors.any() and not loss.takes_errors:
        gradient = np.where(is_sure(f, observed)[observed.bags].T, 0.0, gradient.T).T
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise ValueError(
            f"the loss {loss!r} is {value} during the training, which diverges: take a smaller learning_rate, or put "
            "a StandardScaler in front"
        )
    inner = (scores * scores.new_tensor(gradient)).sum()
    return inner - inner.detach() + float(value)


def is_sure(scores, observed):
    """Bags whose mean prediction lies within the confidence interval of their share, shape (n_bags,)."""
    errors = observed.errors
    variances = errors[:, None] if errors.ndim == 1 else np.einsum("kcc->kc", errors)
    miss = observed.sums(probabilities(scores)) / observed.sizes[:, None]
    miss = np.abs(miss - observed.shares)
    inside = miss <= SURE * np.sqrt(variances) / observed.sizes[:, None]
    return inside.all(axis=1) & (variances > 0).any(axis=1)


def log_probabilities(scores):
    """Logarithms of the class probabilities, shape (n_instances, n_classes)."""
    torch = need_torch()
    if scores.ndim == 1:
        scores = torch.stack([torch.zeros_like(scores), scores], dim=1)
    return torch.log_softmax(scores, dim=1)


def divergence(scores, moved):
    r"""Mean divergence of the predictions at instances from those at shifted copies.

    :math:`\mathrm{KL}(s_i \Vert \tilde s_i)`, equation :eq:`eq-networks-consistency`.

    Parameters
    ----------
    scores, moved : tensor, shape (n_instances,) or (n_instances, n_classes)
        At the instances and at their shifted copies.

    Returns
    -------
    tensor
        Of one number.
    """
    log_s, log_moved = log_probabilities(scores), log_probabilities(moved)
    # eq: eq-networks-consistency
    return (log_s.exp() * (log_s - log_moved)).sum(dim=1).mean()


def worst_shift(network, X, radius):
    r"""Shift of each instance, of a given length, that changes its prediction most.

    One step of power iteration from a random direction d, equation :eq:`eq-networks-shift`.

    Parameters
    ----------
    network : callable
        From instances to scores.
    X : tensor, shape (n_instances, n_features)
    radius : float

    Returns
    -------
    tensor, of the shape of X
    """
    torch = need_torch()
    with torch.no_grad():
        scores = network(X)
    first = radius * FIRST_SHIFT * unit(torch.randn_like(X))
    first.requires_grad_()
    # eq: eq-networks-shift
    [slope] = torch.autograd.grad(divergence(scores, network(X + first)), first)
    return radius * unit(slope)


def unit(rows):
    """Rows of length 1; a row of zeros stays."""
    lengths = rows.norm(dim=1, keepdim=True)
    return rows / lengths.clamp_min(1e-30)


def consistency_loss(network, X, radius):
    """`divergence` of the predictions, held fixed, from those at the `worst_shift`.

    Parameters
    ----------
    network, X, radius
        See `worst_shift`.

    Returns
    -------
    tensor
        Of one number.
    """
    shift = worst_shift(network, X, radius)
    return divergence(network(X).detach(), network(X + shift))
