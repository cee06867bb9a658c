"""The papers' protocols, runnable and resumable.

Our results are CSV files in ``results``, those that the papers print in ``tables``.
"""

from .runner import Table, load, paper_table, run_table, select, summary

__all__ = ["Table", "load", "paper_table", "run_table", "select", "summary", "tables"]


def tables():
    """All tables that can be run, by name.

    Returns
    -------
    dict of str to Table
    """
    from . import yu2013  # here, so that reading results needs no method

    return {table.name: table for table in (*yu2013.TABLES,)}
