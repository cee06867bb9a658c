"""Conjugate gradients for the normal equations of class means of bags; the chapter shows how to check the solution."""

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from ..base import NotIdentifiableError, warn
from ._graph import laplacian_times

#: Links below this share of the degrees of their ends are lost in rounding and connect nothing.
LINK = 1e-12
#: Singular values of shares, relative to the largest, below which shares cannot tell classes apart.
RANK = 1e-8
#: Most parts of the graph whose constants are solved for by themselves; with more, only those of the whole graph.
MOST_PARTS = 100
#: Singular values of the problem of the constants, relative to the largest, that count as 0.
COARSE = 1e-12
#: Relative residual at which to stop, and above which to warn; most rounds.
TOLERANCE, LOOSE, MOST_ROUNDS = 1e-11, 1e-5, 10_000


def solve_normal_equations(rhs, proportions, weights, similarity, smoothness, epsilon):
    r"""Solve :math:`(P^\top D P + \tau \operatorname{Lap}) M = R` for the class means of the bags.

    Preconditioned conjugate gradients. In each bag the coordinates are turned so that the first is along the shares:
    the data determine this coordinate and the neighbors the others, so a :math:`\tau V` of 1e-18 works as well as one
    of 1. Vectors that are constant over a part of the graph converge slowly, so they have a solution of their own. An
    iteration costs :math:`O(L^2 K)` per right side, or :math:`O(L K)` with neighbors only.

    Parameters
    ----------
    rhs : ndarray, shape (n_bags, n_classes, m)
    proportions : ndarray, shape (n_bags, n_classes)
    weights : ndarray, shape (n_bags,)
    similarity : ndarray or sparse array, shape (n_bags, n_bags)
    smoothness, epsilon : float

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
    (L, K), length = proportions.shape, np.linalg.norm(proportions, axis=1)
    parts = np.zeros(len(rhs), int)
    if epsilon == 0:
        parts = connected_parts(similarity)
        refuse_unanswerable(parts, proportions, weights)
    turn, data = _rotation(proportions), weights * length**2
    pull = smoothness * (similarity.sum(axis=1) + epsilon)
    diagonal = np.repeat(pull[:, None], K, axis=1)
    diagonal[:, 0] += data
    root = np.sqrt(diagonal)[:, :, None]
    unit = np.divide(1, root, out=np.zeros_like(root), where=root > 0)

    def times(v):  # the system with 1 on its diagonal
        y = unit * v.reshape(L, K, -1)
        x = turn(y)
        product = turn(smoothness * (laplacian_times(similarity, x) + epsilon * x))
        product[:, 0] += data[:, None] * y[:, 0]
        return (unit * product).reshape(v.shape)

    slow = (root * turn(_constants(parts, K))).reshape(proportions.size, -1)
    right = (unit * turn(rhs)).reshape(proportions.size, -1)
    y = unit * _conjugate_gradients(times, right, slow).reshape(rhs.shape)
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
        links.data = links.data > LINK * root[links.row] * root[links.col]
        links.eliminate_zeros()
        return connected_components(links, directed=False)[1]
    parts, left = np.full(len(root), -1), np.arange(len(root))
    while len(left):  # usually the first bag is linked to all others
        part, new = parts.max() + 1, left[:1]
        while len(new):
            parts[new] = part
            left = np.flatnonzero(parts < 0)
            links = similarity[np.ix_(new, left)] > LINK * np.outer(
                root[new], root[left]
            )
            new = left[links.any(axis=0)]
    return parts


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


def _conjugate_gradients(times, right, slow):
    """The solution for each column of the right side: exact along the slow vectors, the rest conjugate to these."""
    applied = times(slow)
    coarse = np.linalg.pinv(slow.T @ applied, rcond=COARSE)

    def without_slow(v):
        return v - applied @ (coarse @ (slow.T @ v))

    system = LinearOperator(2 * right.shape[:1], lambda v: without_slow(times(v)))
    fast, size = np.empty_like(right), np.linalg.norm(right, axis=0)
    for j, b in enumerate(without_slow(right).T):
        near = TOLERANCE * size[j]
        fast[:, j] = cg(system, b, rtol=0, atol=near, maxiter=MOST_ROUNDS)[0]
    solution = fast + slow @ (coarse @ (slow.T @ right - applied.T @ fast))
    residual = np.linalg.norm(right - times(solution), axis=0)
    left = residual / np.where(size > 0, size, 1)
    if left.max() > LOOSE:
        warn(
            f"class means of bags are known to a relative residual of {left.max():.0e} only: bags hang together by "
            "similarities near 0 (raise sigma), or smoothness is extreme",
            ConvergenceWarning,
        )
    return solution
