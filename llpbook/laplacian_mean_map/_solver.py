"""Conjugate gradients for the normal equations of class means of bags; the chapter shows how to check the solution."""

from functools import partial

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from ..base import NotIdentifiableError, warn
from ._graph import laplacian_times

#: Links below this share of the degrees of their ends are lost in rounding and connect nothing.
LINK = 1e-12
#: Bags whose links are computed at once.
FRONT = 64
#: Singular values of shares, relative to the largest, below which shares cannot tell classes apart.
RANK = 1e-8
#: Most parts of the graph whose constants are deflated; with more parts, only the constants of the whole graph.
MOST_PARTS = 100
#: Singular values of the deflated problem, relative to the largest, that count as 0.
COARSE = 1e-12
#: Relative residual at which to stop, and above which to warn.
TOLERANCE, LOOSE = 1e-11, 1e-6
#: Most rounds, and most rounds in a row without a residual below `BETTER` times the best one.
MOST_ROUNDS, PATIENCE, BETTER = 10_000, 100, 0.9
#: Usual number of rounds.
USUAL_ROUNDS = 10


def solve_normal_equations(
    rhs, proportions, weights, similarity, smoothness, epsilon, *, tell=None
):
    r"""Solve :math:`(P^\top D P + \tau \operatorname{Lap}) M = R` for the class means of the bags.

    Preconditioned conjugate gradients. In each bag the coordinates are turned so that the first is along the shares:
    the data determine this coordinate and the neighbors the others, so a :math:`\tau V` of 1e-18 works as well as one
    of 1. Vectors that are constant over a part of the graph converge slowly, so they are deflated. An iteration
    costs :math:`O(L^2 K m)`, or :math:`O(L K m)` with neighbors only.

    Parameters
    ----------
    rhs : ndarray, shape (n_bags, n_classes, m)
    proportions : ndarray, shape (n_bags, n_classes)
    weights : ndarray, shape (n_bags,)
    similarity : ndarray or sparse array, shape (n_bags, n_bags)
    smoothness, epsilon : float
    tell : callable, optional
        Called after each round.

    Returns
    -------
    solution : ndarray, shape of ``rhs``
    mixed : ndarray, shape (n_bags, m)
        :math:`\sum_j \pi_{kj} m_{kj}`, free of the cancellation in the sum.

    Raises
    ------
    NotIdentifiableError
        If the proportions of connected bags cannot tell their classes apart.
    """
    parts, length = np.zeros(len(rhs), int), np.linalg.norm(proportions, axis=1)
    if epsilon == 0:
        parts = connected_parts(similarity)
        refuse_unanswerable(parts, proportions, weights)
    turn, data = _rotation(proportions), weights * length**2

    def apply(y):
        x = turn(y)
        found = turn(smoothness * (laplacian_times(similarity, x) + epsilon * x))
        found[:, 0] += data[:, None] * y[:, 0]
        return found

    pull = smoothness * (similarity.sum(axis=1) + epsilon)
    diagonal = np.repeat(pull[:, None], proportions.shape[1], axis=1)
    diagonal[:, 0] += data
    slow = turn(_constants(parts, proportions.shape[1]))
    y, left = _conjugate_gradients(apply, turn(rhs), diagonal[:, :, None], slow, tell)
    if left > LOOSE:
        warn(
            f"class means of bags are known to a relative residual of {left:.0e} only: bags hang together by "
            "similarities near 0 (raise sigma), or smoothness is extreme",
            ConvergenceWarning,
        )
    return turn(y), -length[:, None] * y[:, 0]


def _rotation(proportions):
    """Householder reflections, one per bag, that turn its shares into the (negative) first axis."""
    v = proportions / np.linalg.norm(proportions, axis=1, keepdims=True)
    v[:, 0] += 1.0
    half = v[:, :1]  # half of the squared length of v

    def turn(x):
        along = np.einsum("kc,kcm->km", v, x) / half
        return x - v[:, :, None] * along[:, None, :]

    return turn


def connected_parts(similarity):
    """The part of the graph that each bag belongs to, without links that rounding would lose."""
    root = np.sqrt(similarity.sum(axis=1))
    if issparse(similarity):
        links = similarity.tocoo()
        bar = LINK * root[links.row] * root[links.col]
        links.data = (links.data > bar).astype(float)
        return connected_components(links, directed=False)[1]
    parts, left, part = np.full(len(root), -1), np.arange(len(root)), 0
    while len(left):
        front = left[[root[left].argmax()]]  # mostly linked to all others
        while len(front):
            parts[front] = part
            left = np.flatnonzero(parts < 0)
            front = left[_linked(similarity, root, front, left)]
        part += 1
    return parts


def _linked(similarity, root, front, left):
    """Whether each bag of ``left`` is linked to one of ``front``."""
    linked = np.zeros(len(left), bool)
    for block in gen_batches(len(front), FRONT):
        some = front[block]
        bar = LINK * root[some][:, None] * root[left]
        linked |= (similarity[np.ix_(some, left)] > bar).any(axis=0)
    return linked


def refuse_unanswerable(parts, proportions, weights):
    """Raise NotIdentifiableError if the shares of a part cannot tell its classes apart."""
    for part in range(parts.max() + 1):
        inside = parts == part
        n_classes = int((proportions[inside].max(axis=0) > 0).sum())
        used = proportions[inside & (weights > 0)]
        least = RANK * np.linalg.norm(used, 2) if len(used) else 0
        rank = np.linalg.matrix_rank(used, tol=least) if len(used) else 0
        if rank < n_classes:
            why = ": shares must differ between bags"
            if not inside.all():
                why = ", and no other bag is similar to them: raise sigma or epsilon"
            raise NotIdentifiableError(
                f"proportions of {inside.sum()} bags have rank {rank}, which cannot tell their {n_classes} classes "
                f"apart{why}"
            )


def _constants(parts, n_classes):
    """A column for each class and part of the graph: 1 for this class in these bags."""
    n_parts = parts.max() + 1
    if n_parts > MOST_PARTS:
        parts, n_parts = np.zeros_like(parts), 1
    inside = (parts[:, None] == np.arange(n_parts)).astype(float)
    columns = np.einsum("kp,cj->kcpj", inside, np.eye(n_classes))
    return columns.reshape(len(parts), n_classes, -1)


def _conjugate_gradients(apply, rhs, diagonal, slow, tell):
    """The best solution found and its relative residual; each column of the right side is a problem of its own."""
    dot = partial(np.einsum, "kcm,kcm->m")
    scale = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    y, deflate = _deflation(apply, rhs, slow)
    # The residual is rest, and z the preconditioned one; size is their product.
    rest, unit = rhs - apply(y), np.sqrt(dot(rhs, scale * rhs))
    z, unit = scale * rest, np.where(unit > 0, unit, 1.0)
    direction, size = deflate(z), dot(rest, z)
    best, best_y, since = np.inf, y, 0
    for _ in range(MOST_ROUNDS):
        left = float((np.sqrt(size) / unit).max())
        since = 0 if left < BETTER * best else since + 1
        if left < best:
            best, best_y = left, y
        if best < TOLERANCE or since > PATIENCE:
            break
        if tell is not None:
            tell()
        ahead = apply(direction)
        curve = dot(direction, ahead)
        step = np.divide(size, curve, out=np.zeros_like(size), where=curve > 0)
        y, rest = y + step * direction, rest - step * ahead
        z, before = scale * rest, size
        size = dot(rest, z)
        ratio = size / np.where(before > 0, before, 1.0)
        direction = deflate(z) + ratio * direction
    return best_y, best


def _deflation(apply, rhs, slow):
    """The best combination of the slow vectors, and a function that makes a direction conjugate to all of them."""
    applied, both = apply(slow), ([0, 1], [0, 1])
    coarse = np.linalg.pinv(np.tensordot(slow, applied, both), rcond=COARSE)

    def deflate(z):
        return z - slow @ (coarse @ np.tensordot(applied, z, both))

    return slow @ (coarse @ np.tensordot(slow, rhs, both)), deflate
