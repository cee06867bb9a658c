"""PyEI on the tables that `python -m studies.ecological_beside FOLDER` writes, like ``ecological_beside.R``.

``python ecological_beside_pyei.py FOLDER TABLE`` in an environment with PyEI (here 1.1.4) appends rows to
``FOLDER/rates.csv``: two chains of 500 draws after 500 of tuning, of the model of King, Rosen and Tanner (1999) with a
Pareto prior for two groups and classes, of the multinomial-Dirichlet model for more (``senc``: 300 draws after 300).
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd


def draws(members, counts):
    """Draws of the rates, shape (n_chains, n_draws, n_groups, n_classes), and the number of divergences."""
    from pyei import RowByColumnEI, TwoByTwoEI

    sizes = members.sum(axis=1)
    X, Y = members / sizes[:, None], counts / sizes[:, None]
    options = {"draws": 500, "tune": 500, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}  # fmt: skip
    if X.shape[1] == Y.shape[1] == 2:
        model = TwoByTwoEI("king99_pareto_modification")
        model.fit(X[:, 0], Y[:, 1], sizes, **options)
        first = np.stack([*model.sampled_voting_prefs], axis=1)
        rates = np.stack([1 - first, first], axis=2)
    else:
        model = RowByColumnEI("multinomial-dirichlet-modified")
        model.fit(X.T, Y.T, sizes, **options)
        rates = np.asarray(model.sampled_voting_prefs)
    lost = int(model.sim_trace["sample_stats"]["diverging"].sum())
    return rates.reshape(2, -1, *rates.shape[1:]), lost


def main(folder, name):
    """Append the rates of a table."""
    import arviz

    d = pd.read_csv(Path(folder) / f"{name}.csv")
    tables = [d.filter(regex=f"^{kind}").to_numpy() for kind in ("group", "class")]
    start = time.process_time()
    rates, lost = draws(*tables)
    seconds, rows = time.process_time() - start, []
    for g, j in np.ndindex(rates.shape[2:]):
        x = rates[:, :, g, j]
        low, high = np.quantile(x, [0.025, 0.975])
        rhat = float(arviz.rhat(x))
        rows.append([name, "pyei", f"group{g} class{j}", x.mean(), low, high, rhat, round(seconds, 1)])  # fmt: skip
    print(name, "divergences:", lost)
    pd.DataFrame(rows).round(6).to_csv(
        Path(folder) / "rates.csv", mode="a", header=False, index=False
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
