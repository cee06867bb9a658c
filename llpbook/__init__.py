"""Learning from label proportions: a textbook that runs, and the package of the same code.

One module a method: ``from llpbook import mean_map``, then ``mean_map.MeanMap().fit(X, bags, proportions)``.
"""

import importlib
import inspect
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
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name, cls in inspect.getmembers(module, inspect.isclass):
            usable = cls is not LLPClassifier and not inspect.isabstract(cls)
            if issubclass(cls, LLPClassifier) and usable and not name.startswith("_"):
                found[name] = cls
    return sorted(found.items())
