"""Learning from label proportions: a textbook that runs, and the package of the same code.

One room a chapter: ``from llpbook import dsdd`` is the module of that chapter. What most people want is here by name:
``from llpbook import DSDD, MeanMap, diagnose``. Nothing is imported before it is used.
"""

import importlib as _importlib
import pkgutil as _pkgutil
import typing as _typing
from inspect import isabstract as _isabstract

__version__ = "0.1.0"

_HOMES = {
    "alter_svm": ["AlterSVM"],
    "bag_losses": ["BagBoosting", "BagLogistic"],
    "baselines": ["BagMeanRegression", "MajorityClass"],
    "base": ["LLPWarning", "NotIdentifiableError"],
    "comparison": ["average_ranks", "critical_difference", "friedman"],
    "conv_svm": ["ConvSVM"],
    "datasets": ["load", "load_bags", "make_dataset", "random_bags"],
    "cluster_selection": ["ClusterModelSelection"],
    "count_likelihood": ["CountBoosting", "CountCalibration", "CountLogistic"],
    "density_difference": ["KDEDifference"],
    "diagnosis": ["diagnose"],
    "discriminant": ["WeightedLDA"],
    "dsdd": ["DSDD"],
    "ecological": ["check_margins", "ecological_rates", "group_rate_band"],
    "em": ["EMLR"],
    "invcal": ["InvCal"],
    "kernel_kmeans": ["AOCKernelKMeans"],
    "laplacian_mean_map": ["AlternatingMeanMap", "LaplacianMeanMap"],
    "lsdd": ["LSDD"],
    "mean_map": ["MeanMap"],
    "model_selection": [
        "FullBagKFold",
        "LLPGridSearchCV",
        "LLPRandomizedSearchCV",
        "SplitBagBootstrap",
        "SplitBagKFold",
        "SplitBagShuffle",
        "proportion_scorer",
    ],
    "beyond_memory": ["fit_chunks", "sample_bags"],
    "choosing": ["recommend"],
    "networks": ["BagNetwork"],
    "plotting": ["plot_bags", "plot_critical_difference"],
    "proportions": ["identifiability", "label_proportions", "restore_counts"],
    "smic": ["SMIC"],
    "theory": ["label_worth"],
    "uncertainty": [
        "accuracy_bounds",
        "bag_bootstrap",
        "bag_deviation",
        "bag_report",
        "coefficient_table",
        "expected_accuracy",
        "group_rate",
        "group_rate_bounds",
    ],
    "variants": ["make_bags"],
}
_HOME = {name: room for room, names in _HOMES.items() for name in names}
_ROOMS = [m.name for m in _pkgutil.iter_modules(__path__) if m.name[0] != "_"]

if _typing.TYPE_CHECKING:  # what type checkers read; `_HOMES` says the same to Python
    from .alter_svm import AlterSVM as AlterSVM
    from .bag_losses import BagBoosting as BagBoosting, BagLogistic as BagLogistic
    from .base import (
        LLPWarning as LLPWarning,
        NotIdentifiableError as NotIdentifiableError,
    )
    from .baselines import (
        BagMeanRegression as BagMeanRegression,
        MajorityClass as MajorityClass,
    )
    from .beyond_memory import fit_chunks as fit_chunks, sample_bags as sample_bags
    from .choosing import recommend as recommend
    from .cluster_selection import ClusterModelSelection as ClusterModelSelection
    from .comparison import (
        average_ranks as average_ranks,
        critical_difference as critical_difference,
        friedman as friedman,
    )
    from .conv_svm import ConvSVM as ConvSVM
    from .count_likelihood import (
        CountBoosting as CountBoosting,
        CountCalibration as CountCalibration,
        CountLogistic as CountLogistic,
    )
    from .datasets import (
        load as load,
        load_bags as load_bags,
        make_dataset as make_dataset,
        random_bags as random_bags,
    )
    from .density_difference import KDEDifference as KDEDifference
    from .diagnosis import diagnose as diagnose
    from .discriminant import WeightedLDA as WeightedLDA
    from .dsdd import DSDD as DSDD
    from .ecological import (
        check_margins as check_margins,
        ecological_rates as ecological_rates,
        group_rate_band as group_rate_band,
    )
    from .em import EMLR as EMLR
    from .invcal import InvCal as InvCal
    from .kernel_kmeans import AOCKernelKMeans as AOCKernelKMeans
    from .laplacian_mean_map import (
        AlternatingMeanMap as AlternatingMeanMap,
        LaplacianMeanMap as LaplacianMeanMap,
    )
    from .lsdd import LSDD as LSDD
    from .mean_map import MeanMap as MeanMap
    from .model_selection import (
        FullBagKFold as FullBagKFold,
        LLPGridSearchCV as LLPGridSearchCV,
        LLPRandomizedSearchCV as LLPRandomizedSearchCV,
        SplitBagBootstrap as SplitBagBootstrap,
        SplitBagKFold as SplitBagKFold,
        SplitBagShuffle as SplitBagShuffle,
        proportion_scorer as proportion_scorer,
    )
    from .networks import BagNetwork as BagNetwork
    from .plotting import (
        plot_bags as plot_bags,
        plot_critical_difference as plot_critical_difference,
    )
    from .proportions import (
        identifiability as identifiability,
        label_proportions as label_proportions,
        restore_counts as restore_counts,
    )
    from .smic import SMIC as SMIC
    from .theory import label_worth as label_worth
    from .uncertainty import (
        accuracy_bounds as accuracy_bounds,
        bag_bootstrap as bag_bootstrap,
        bag_deviation as bag_deviation,
        bag_report as bag_report,
        coefficient_table as coefficient_table,
        expected_accuracy as expected_accuracy,
        group_rate as group_rate,
        group_rate_bounds as group_rate_bounds,
    )
    from .variants import make_bags as make_bags

__all__ = sorted([*_HOME, *_ROOMS, "all_estimators"])


def __getattr__(name):
    if name in _ROOMS:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(_importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*__all__, "__version__"]


def all_estimators():
    """List all estimators of the package that need no other package; `BagNetwork` needs PyTorch, and is left out.

    Returns
    -------
    list of (str, type)
        Name and class, sorted by name.
    """
    from .base import LLPClassifier

    estimators = {}
    for room in _ROOMS:
        for name, value in vars(__getattr__(room)).items():
            is_class = isinstance(value, type) and issubclass(value, LLPClassifier)
            own = is_class and value is not LLPClassifier and not _isabstract(value)
            if own and value._needs is None:
                estimators[name] = value
    return sorted(estimators.items())
