"""Learning from label proportions: a textbook that runs, and the package of the same code.

One module a method: ``from llpbook import mean_map``, then ``mean_map.MeanMap().fit(X, bags, proportions)``.
"""

import importlib
import pkgutil

__version__ = "0.1.0"


def all_estimators():
    """Every estimator of the package.

    Returns
    -------
    list of (str, type)
        Name and class, sorted by name.
    """
    from .base import LLPClassifier

    found = {}
    for info in pkgutil.iter_modules(__path__):
        for name, thing in vars(
            importlib.import_module(f"{__name__}.{info.name}")
        ).items():
            if (
                isinstance(thing, type)
                and issubclass(thing, LLPClassifier)
                and not name.startswith("_")
            ):
                found[name] = thing
    del found["LLPClassifier"]
    return sorted(found.items())
