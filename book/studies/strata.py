"""Do intervals and bands of `llpbook.ecological_rates` hold the rates, with strata and without?

Made tables: places of 200 to 999 people in strata, two groups, two or three classes. In the world *one rate* a group
has the same rates everywhere; *by stratum* they differ between strata (sd .5 of the log-odds), partly with the share of
the group there; *places differ* adds an effect of each group in each place (sd .3); in *related* and *strongly related*
this effect has a correlation of .3 and .7 with the share of the second group within the stratum. ``small`` minorities
are 5 to 15 % of a stratum, ``large`` ones 20 to 60 %. Errors and hits are of the second group, in all places and by
stratum.

The table ``ecological_rivals`` has Goodman's regression beside it, also within strata, and the debiased estimator with
strata as covariates (`debiased_rates`), and the same for the tables of `studies.ecological` whose cells are known. Its
columns ``gap`` say by how much each one overstates the difference of two groups, and ``contrast`` how often interval
and band hold the differences and the shares among two classes.

The table ``ecological_gain`` asks what `gain_of_strata` says of strata whose rates differ and of the same places in
strata made up at random: the gain in standard errors, and the errors with strata and with one rate everywhere.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from llpbook import ecological_rates

from . import ecological
from .runner import Table, cells

WORLDS = {
    "one rate": (0.0, 0.0, 0.0),
    "by stratum": (0.5, 0.0, 0.0),
    "places differ": (0.5, 0.3, 0.0),
    "related": (0.5, 0.3, 0.0944),
    "strongly related": (0.5, 0.3, 0.294),
}
#: Of ``ecological_gain``: strata that differ little.
LITTLE = {
    "by stratum, little": (0.2, 0.0, 0.0),
    "places differ, little": (0.2, 0.3, 0.0),
}
SHARES = {"small": (0.05, 0.15), "large": (0.2, 0.6)}
SIZES = ["5 x 40", "6 x 6", "20 x 6", "50 x 3", "50 x 20"]


def made(world, size, minority, classes, seed):
    """A made table, as `ecological.Margins`."""
    spread, deviation, related = (WORLDS | LITTLE)[world]
    R, B = map(int, size.split(" x "))
    rng = np.random.default_rng([seed, R, B, classes])
    stratum, (low, high) = np.repeat(np.arange(R), B), SHARES[minority]
    base = rng.uniform(low, high, R)
    gap = rng.normal(0, (high - low) / 4, R * B)
    share = np.clip(base[stratum] + gap, 0.01, 0.95)
    n = rng.integers(200, 1000, R * B)
    second = rng.binomial(n, share)
    members = np.column_stack([n - second, second])
    of_share = ((base - base.mean()) / base.std())[:, None, None]
    effects = spread * (rng.normal(size=(R, 2, classes - 1)) + of_share) / np.sqrt(2)
    scores = np.array([-0.8, 1.2])[:, None] - 1.2 * np.arange(classes - 1)
    scores = scores + effects[stratum]
    scores += deviation * rng.normal(size=scores.shape)
    scores += related * (gap / gap.std())[:, None, None]
    scores = np.concatenate([np.zeros((*scores.shape[:2], 1)), scores], axis=2)
    rates = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    people = rng.multinomial(members, rates)
    return ecological.Margins(
        pd.DataFrame(members, columns=["majority", "minority"]),
        pd.DataFrame(people.sum(axis=1)),
        stratum,
        people,
    )


def hits(table, truth, kind=""):
    """Whether the interval, or the band, holds each rate."""
    return table[f"{kind}low"].le(truth + 1e-9) & table[f"{kind}high"].ge(truth - 1e-9)


def run(cell, seed):
    """One row: errors, hits and widths for the second group."""
    d = made(**cell, seed=seed)
    with warnings.catch_warnings(action="ignore"):
        rates = ecological_rates(d.groups, d.classes, strata=d.strata)
    table, truth = rates.table.loc["minority"], d.truth[len(d.classes.columns) :]
    places = rates.joint.margins.by_stratum(d.cells[:, 1])
    by_stratum = rates.by_stratum.xs("minority", level="group")
    own = (places / places.sum(axis=1, keepdims=True))[places.sum(axis=1) > 0].ravel()
    found = {
        "error": np.abs(table["rate"] - truth).mean(),
        "bounds": (table["most"] - table["least"]).mean(),
        "strata error": np.abs(by_stratum["rate"] - own).mean(),
        "deviation": rates.deviation,
        "level of context": rates.context,
    }
    for name, kind in (("interval", ""), ("band", "band_")):
        found[name] = hits(table, truth, kind).mean()
        found[f"{name} width"] = (table[f"{kind}high"] - table[f"{kind}low"]).mean()
        found[f"strata {name}"] = hits(by_stratum, own, kind).mean()
    return {key: round(float(value), 6) for key, value in found.items()}


def goodman_rates(d, strata=None):
    """Goodman's regression, weighted by people, within strata where they are given; shape (n_groups, n_classes)."""
    members, counts = d.groups.to_numpy(float), d.classes.to_numpy(float)
    strata = np.zeros(len(members), int) if strata is None else strata
    total = np.zeros((members.shape[1], counts.shape[1]))
    for name in np.unique(strata):
        N, c = members[strata == name], counts[strata == name]
        root = np.sqrt(N.sum(axis=1))[:, None]
        total += N.sum(axis=0)[:, None] * np.linalg.lstsq(N / root, c / root, rcond=None)[0]  # fmt: skip
    return total / members.sum(axis=0)[:, None]


#: Penalties of the interactions that the debiased estimator tries.
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def left_out_error(F, Y, penalty):
    """Mean squared error of a ridge for each place by the fit to the others."""
    hat = F @ np.linalg.solve(F.T @ F + np.diag(penalty), F.T)
    gaps = (Y - hat @ Y) / (1 - np.diag(hat))[:, None]
    return (gaps**2).mean()


def debiased_rates(d, folds=10):
    r"""The debiased estimator of McCartan and Kuriwaki with indicators of strata as covariates, and standard errors.

    With shares x of the groups, covariates b and people N of a place, :math:`\theta_g = E[N x_g \eta_g(b)] / E[N x_g]`
    is estimated by the mean of :math:`N x_g \hat\eta_g(b) / E[N x_g] + \hat\alpha_g (y - \hat\eta(x, b))`: a ridge
    on :math:`x \otimes b`, its Riesz representer on the same columns, both from other folds. The penalty of the
    interactions is the one of `ALPHAS` with the smallest error for places that are left out.

    Returns
    -------
    rates, errors : ndarray, shape (n_groups, n_classes)
    """
    N, c = d.groups.to_numpy(float), d.classes.to_numpy(float)
    people = N.sum(axis=1, keepdims=True)
    X, Y, G = N / people, c / people, N.shape[1]
    b = pd.get_dummies(pd.Series(d.strata), drop_first=True, dtype=float).to_numpy()
    B = np.column_stack([np.ones(len(b)), b])

    def design(shares):
        return np.einsum("kg,kb->kgb", shares, B).reshape(len(B), -1)

    F, alone = design(X), [design(np.eye(G)[[g] * len(X)]) for g in range(G)]
    weight = N / N.mean(axis=0)
    penalties = [np.tile(np.append(1e-6, np.full(b.shape[1], a)), G) for a in ALPHAS]
    penalty = min(penalties, key=lambda some: left_out_error(F, Y, some))
    psi = np.zeros((len(X), G, Y.shape[1]))
    for seen, out in KFold(folds, shuffle=True, random_state=0).split(X):
        scaled = F / np.sqrt(penalty)
        fit = Ridge(1.0, fit_intercept=False).fit(scaled[seen], Y[seen])
        coef = fit.coef_.T / np.sqrt(penalty)[:, None]
        gram = F[seen].T @ F[seen] + np.diag(penalty)
        for g in range(G):
            target = weight[seen, g] @ alone[g][seen]
            riesz = F[out] @ np.linalg.solve(gram, target)
            psi[out, g] = weight[out, g][:, None] * (alone[g][out] @ coef)
            psi[out, g] += riesz[:, None] * (Y[out] - F[out] @ coef)
    rates = psi.mean(axis=0)
    centered = psi - weight[:, :, None] * rates
    return rates, np.sqrt((centered**2).mean(axis=0) / len(X))


PUBLISHED = {
    "senc": ecological.senc_table,
    "robinson": ecological.robinson_table,
    "reg": lambda: as_margins(ecological.reg()),
}


def as_margins(d):
    """A table of cells of two classes as two tables without strata."""
    members = pd.Series(d.counts, [d.bags, d.group]).unstack(fill_value=0)
    yes = d.proportions[1] * members.sum(axis=1)
    rates = d.truth[members.columns]
    # The cells of a place are not needed: their sums give the truth.
    total = np.column_stack([(1 - rates) * members.sum(), rates * members.sum()])
    classes = pd.DataFrame({0: members.sum(axis=1) - yes, 1: yes}).round()
    return ecological.Margins(members, classes, np.zeros(len(members), int), total[None])  # fmt: skip


def contrasts(rates):
    """Differences of two groups and of two classes, and shares among two of three classes, with their ends.

    Parameters
    ----------
    rates : EcologicalRates

    Returns
    -------
    DataFrame
        A row per contrast, ``value`` and the ends of interval and band.
    """
    groups, classes = (rates.table.index.unique(level).tolist() for level in (0, 1))
    some = [
        rates.difference(groups=groups[1::-1]),
        rates.difference(classes=classes[:-3:-1]),
    ]
    if len(classes) > 2:
        some.append(rates.among(classes[-2:]))
    names = {"difference": "value", "rate": "value"}
    return pd.concat([table.rename(columns=names) for table in some])


def true_contrasts(d):
    """The values of `contrasts` from the cells."""
    cells = d.cells.sum(axis=0)
    rates = cells / cells.sum(axis=1, keepdims=True)
    parts = [rates[1] - rates[0], rates[:, -1] - rates[:, -2]]
    if cells.shape[1] > 2:
        two = cells[:, -2:] / cells[:, -2:].sum(axis=1, keepdims=True)
        parts.append(two.ravel())
    return np.concatenate(parts)


def overstated(rates, d):
    """By how much rates overstate the difference of the first two groups, mean over classes."""
    shape = (d.cells.shape[1], -1)
    gaps = [np.abs(np.subtract(*np.reshape(x, shape)[:2])) for x in (rates, d.truth)]
    return np.mean(gaps[0] - gaps[1])


def rivals(cell, seed):
    """Mean absolute error of each method over all rates, and how often its 95 % interval holds one."""
    name, options = cell["table"], {k: cell[k] for k in ("minority", "classes")}
    read = PUBLISHED.get(name, lambda: made(name, "20 x 20", **options, seed=seed))
    d = read()
    strata = d.strata if len(np.unique(d.strata)) > 1 else None
    with warnings.catch_warnings(action="ignore"):
        one = ecological_rates(d.groups, d.classes)
        own = ecological_rates(d.groups, d.classes, strata=strata)
    rates, errors = debiased_rates(d)
    half = 1.96 * errors.ravel()
    found = {
        "Goodman": goodman_rates(d).ravel(),
        "Goodman by stratum": goodman_rates(d, strata).ravel(),
        "debiased": rates.ravel(),
        "one rate": one.table["rate"].to_numpy(),
        "strata": own.table["rate"].to_numpy(),
    }
    row = {key: np.abs(value - d.truth).mean() for key, value in found.items()}
    row |= {f"gap {key}": overstated(value, d) for key, value in found.items()}
    row["debiased inside"] = (np.abs(rates.ravel() - d.truth) <= half).mean()
    row["debiased width"] = 2 * half.mean()
    for label, table in (("one rate", one.table), ("strata", own.table)):
        for kind, ends in (("inside", ""), ("band", "band_")):
            row[f"{label} {kind}"] = hits(table, d.truth, ends).mean()
            width = table[f"{ends}high"] - table[f"{ends}low"]
            row[f"{label} {kind} width"] = width.mean()
    table, truth = contrasts(own), true_contrasts(d)
    row["contrast error"] = np.abs(table["value"] - truth).mean()
    row["contrast inside"] = hits(table, truth).mean()
    row["contrast band"] = hits(table, truth, "band_").mean()
    return {key: round(float(value), 6) for key, value in row.items()}


def gain(cell, seed):
    """One row: what held-out places say of the strata, and errors and widths with them and without."""
    d = made(cell["world"], cell["size"], cell["minority"], 2, seed)
    strata = d.strata
    if cell["strata"] == "random":
        strata = np.random.default_rng(seed).permutation(strata)
    with warnings.catch_warnings(action="ignore"):
        one = ecological_rates(d.groups, d.classes)
        own = ecological_rates(d.groups, d.classes, strata=strata)
        gain = own.gain_of_strata()
    row = {"gain": gain["gain"], "in errors": gain["gain"] / gain["error"]}
    for label, table in (("", own.table), ("one rate ", one.table)):
        row[f"{label}error"] = np.abs(table["rate"] - d.truth).mean()
        row[f"{label}width"] = (table["high"] - table["low"]).mean()
    row["moved"] = np.abs((own.table["rate"] - one.table["rate"]) / own.table["error"]).max()  # fmt: skip
    return {key: round(float(value), 6) for key, value in row.items()}


GAIN = cells(
    world=["one rate", *LITTLE, "by stratum", "places differ"],
    size=["5 x 40", "20 x 6", "50 x 3"], minority=[*SHARES], strata=["as made", "random"],
)  # fmt: skip
TWO = cells(world=[*WORLDS], size=SIZES, minority=[*SHARES], classes=[2])
THREE = cells(world=["by stratum", "places differ"], size=["20 x 6"], minority=[*SHARES], classes=[3])  # fmt: skip
TABLES = [
    Table(
        "strata", "strata-2", [*TWO, *THREE], run,
        "whether intervals and bands of rates hold, by stratum and in all", "interval",
    ),
    Table(
        "ecological_rivals", "rivals-3",
        [
            *[{"table": name, "minority": "-", "classes": 3 if name == "senc" else 2} for name in PUBLISHED],
            *cells(table=[*WORLDS], minority=[*SHARES], classes=[2]),
            *cells(table=[*WORLDS], minority=["large"], classes=[3]),
        ],
        rivals, "rates of groups by five estimates, on published and made tables", "strata",
    ),
    Table(
        "ecological_gain", "gain-1", [c for c in GAIN if c["world"] != "one rate" or c["strata"] == "as made"],
        gain, "whether held-out places tell strata that help from strata made up at random", "in errors",
    ),
]  # fmt: skip
