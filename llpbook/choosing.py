r"""Advice: which method to fit to given bags, or none, from what can be seen without labels.

Three fits speak: the line of the count likelihood, its trees, and EM, which assumes something else. Two signals decide.

- The gain of a fit over the class prior, in nats per bag: each instance gets a probability from a fit to the other
  folds of its bag, and the counts of whole bags are scored by these probabilities,
  :math:`g = \frac1L \sum_k \log \frac{P(c_k \mid \hat p)}{P(c_k \mid \eta)}`, equation :eq:`eq-choosing-gain`.
- The agreement of two methods, :math:`a = \frac1n \#\{i : \hat y_i = \hat y'_i\}`: of two methods that agree on a share
  :math:`a` of the instances, the worse errs on at least :math:`(1 - a) / 2`, equation :eq:`eq-choosing-agreement`.

The questions, their thresholds and the record of the answers come from the study ``choosing``.

Chapter: ``book/choosing``. The rule is ours.
"""

import textwrap
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_random_state

from .base import check_features, read_bags
from .baselines import MajorityClass
from .count_likelihood import CountBoosting, CountLogistic
from .em import EMLR
from .model_selection import OutOfFold, SplitBagKFold, count_log_likelihood
from .proportions import identifiability
