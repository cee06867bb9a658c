"""The proportions of many bags, against what chance alone would do."""

import numpy as np
from scipy.stats import binom, hypergeom

from .._checks import check_whole, numbers
from ..base import check_proportions, keyed_rows
from ..proportions import class_prior
from ._style import (
    DARK,
    PALETTE,
    PRIOR,
    SHARES,
    check_names,
    legend_below,
    literal,
    mix,
    pyplot,
)


def plot_proportions(
    proportions,
    bag_sizes=None,
    *,
    noise=None,
    class_names=None,
    bins=None,
    axes=None,
    figsize=None,
):
    """Histogram and rug of the proportions of many bags, with the class prior and the spread of sampling noise.

    Where the noise alone explains the spread, as with random bags, the bags say no more than the class prior.

    Parameters
    ----------
    proportions : array-like, Series, dict or DataFrame, shape (n_bags,) or (n_bags, n_classes)
        The share of the positive class in each bag, or of every class: two classes give one panel, for the second;
        more give a panel each.
    bag_sizes : int, array-like of int, Series or dict, shape (n_bags,), optional
        Instances in each bag. The class prior is the mean weighted by them, unweighted if not given. Bags of size 0
        are left out.
    noise : {None, "binomial", "hypergeometric"}
        The number of bags to expect in each bar if all differences were chance, as a line, with its standard deviation
        in the legend: bags drawn from a population with the class prior, with replacement, or without (random bags that
        divide a finite data set). Each bag counts with its own size.
    class_names : sequence of str, shape (n_classes,), optional
    bins : int or array-like, optional
        Number of bars over [0, 1], or their edges. By default, where all bags have one size, edges half-way between
        possible proportions, and otherwise 20 to 40 bars, as the spread asks.
    axes : Axes or sequence of Axes, optional
        As many as panels.
    figsize : pair of float, optional
        Inches. Not used with ``axes``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If proportions are malformed, sizes negative, none positive or of another number, ``noise`` is not one of the
        values above or given without ``bag_sizes``, or the number of ``axes`` is not that of the panels.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbook.plotting import plot_proportions
    >>> p = np.random.default_rng(0).binomial(50, 0.44, size=200) / 50
    >>> fig = plot_proportions(p, bag_sizes=50, noise="binomial")
    >>> len(fig.axes)
    1
    """
    plt = pyplot()
    P, classes, keys = check_proportions(proportions)
    L, K = P.shape
    kinds = (None, "binomial", "hypergeometric")
    if not isinstance(noise, str | None) or noise not in kinds:
        raise ValueError(
            f'noise must be None, "binomial" or "hypergeometric", got {noise!r}'
        )
    if noise is not None and bag_sizes is None:
        raise ValueError(f"noise={noise!r} needs bag_sizes, got None")
    sizes = keyed_rows("bag_sizes", 1 if bag_sizes is None else bag_sizes, L, keys)
    if sizes.shape not in ((), (L,)):
        raise ValueError(
            f"bag_sizes must be one number or one for each of the {L} bags, got shape {sizes.shape}"
        )
    whole = np.isfinite(sizes) & (sizes == np.round(sizes)) & (sizes >= 0)
    if not whole.all() or not sizes.any():
        raise ValueError(
            f"bag_sizes must be integers of at least 0, not all 0, got {bag_sizes!r}"
        )
    if noise is not None and sizes.max() > 10**7:  # chance() lists all counts
        raise ValueError(f"noise needs bag_sizes up to 10 million, got {sizes.max():g}")
    sizes = np.broadcast_to(sizes, (L,)).astype(int)
    P, sizes = P[sizes > 0], sizes[sizes > 0]
    names = check_names(class_names, [f"class {c}" for c in classes], "class_names")
    bins = None if bins is None else check_bins(bins)
    shown = [1] if K == 2 else list(range(K))
    if axes is None:
        ncols = 2 if len(shown) == 4 else min(len(shown), 3)
        nrows = -(-len(shown) // ncols)
        size = figsize or (7 if ncols > 1 else 5.5, 2.8 * nrows)
        fig = plt.figure(figsize=size, layout="constrained")
        axes = [fig.add_subplot(nrows, ncols, k + 1) for k in range(len(shown))]
    axes = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(axes) != len(shown):
        raise ValueError(
            f"axes must hold {len(shown)} Axes, one a panel, got {len(axes)}"
        )

    prior = class_prior(P, sizes)
    for panel, (ax, c) in enumerate(zip(axes, shown, strict=True)):
        p, color = P[:, c], PALETTE[panel % 8]
        edges = bin_edges(p, sizes) if bins is None else bins
        light = {"color": mix(color, 0.35), "edgecolor": "white", "linewidth": 0.5}
        bars = f"{len(p)} bags, sd {p.std():.3f}"
        ax.hist(p, edges, zorder=2, label=bars, **light)
        rug = {"markersize": 7, "markeredgewidth": 0.8, "color": color, "gid": "rug"}
        rug |= {"transform": ax.get_xaxis_transform(), "clip_on": False}
        faint = np.clip(20 / len(p), 0.15, 0.8)
        ax.plot(p, np.full(len(p), -0.035), "|", alpha=faint, **rug)
        if noise is not None:
            expected, sd = chance(sizes, prior[c], edges, noise)
            line = {"color": DARK, "linewidth": 1.4, "zorder": 3, "gid": "noise"}
            ax.stairs(expected, edges, label=f"noise alone, sd {sd:.3f}", **line)
        ax.axvline(
            prior[c], label=f"class prior {prior[c]:.2f}", gid="class prior", **PRIOR
        )
        pad = 0.005 + max(0, -edges[0])  # half a bar where 0 and 1 are centers
        ax.set_xticks(*SHARES)
        ax.set(
            xlim=(-pad, 1 + pad),
            xlabel=literal(f"proportion of {names[c]}"),
            ylabel="number of bags",
        )
        ax.tick_params(axis="x", pad=9)  # room for the rug
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        legend_below(ax, drop=6)
    return axes[0].figure


def check_bins(bins):
    """Edges of bars from a number of bars over [0, 1], or the edges themselves."""
    if np.ndim(bins) == 0:
        return np.linspace(0, 1, check_whole("bins", bins, most=10_000) + 1)
    edges = numbers("bins", bins)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(f"bins must be edges that increase, got {bins!r}")
    return edges


def bin_edges(p, sizes):
    """Edges of 20 to 40 bars over [0, 1]; half-way between possible values where all bags have one size."""
    spread, size = np.subtract(*np.percentile(p, [75, 25])), sizes[0]
    width = np.clip(2 * spread / np.cbrt(len(p)), 1 / 40, 1 / 20)  # Freedman, Diaconis
    if size == 1 or np.any(sizes != size):
        return np.linspace(0, 1, round(1 / width) + 1)
    step = max(1, round(width * size))
    return (np.arange(0, size + step + 1, step) - 0.5) / size


def chance(sizes, prior, edges, kind):
    """The expected number of bags in each bar, and the standard deviation of proportions, by chance alone."""
    total, expected, variance = int(sizes.sum()), np.zeros(len(edges) - 1), 0.0
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        law = binom(size, prior)
        if kind == "hypergeometric":
            law = hypergeom(total, round(prior * total), size)
        k = np.arange(size + 1)
        expected += count * np.histogram(k / size, edges, weights=law.pmf(k))[0]
        variance += count * law.var() / size**2
    return expected, np.sqrt(variance / len(sizes))
