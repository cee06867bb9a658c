"""The papers' protocols, runnable and resumable.

Our results are CSV files in ``results``, those that the papers print in ``tables``.
"""

from ._agreement import agreement, draws_behind, paper_table, resolution
from .runner import Table, load, run_table, summary

__all__ = [
    "Table",
    "agreement",
    "draws_behind",
    "load",
    "paper_table",
    "resolution",
    "run_table",
    "summary",
    "tables",
]


def tables():
    """All tables that can be run, by name.

    Returns
    -------
    dict of str to Table
    """
    # Here, so that reading results needs no method.
    from . import (
        alter_svm,
        bag_deviation,
        bag_losses,
        benchmark,
        beyond_memory,
        calibration,
        choice,
        choosing,
        cluster_times,
        counts_fair,
        duplessis2013,
        ecological,
        franco2023,
        label_worth,
        model_selection,
        natural,
        networks,
        open_cells,
        outside,
        penalty,
        perezortiz2016,
        relaxation,
        stolpe2011,
        strata,
        thread,
        uncertainty,
        yu2013,
    )

    modules = (
        yu2013, duplessis2013, perezortiz2016, stolpe2011, model_selection,
        alter_svm, relaxation, cluster_times,
        counts_fair, choice, choosing, natural, calibration, bag_losses, outside,
        open_cells,
        benchmark, franco2023, uncertainty, ecological, strata, bag_deviation, beyond_memory, thread,
        penalty, label_worth, networks,
    )  # fmt: skip
    return {table.name: table for module in modules for table in module.TABLES}
