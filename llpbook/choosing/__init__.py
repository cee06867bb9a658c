r"""Advice: which method to fit to given bags, or none, from what can be seen without labels.

Two signals decide whether to fit.

- *Agreement.* Two methods that assume different things should predict the same labels. Their agreement is
  :math:`a = \frac1n \#\{i : \hat y_i = \hat y'_i\}`. Of two methods that agree on a share :math:`a`, the worse one errs
  on at least :math:`(1 - a) / 2` of the instances, equation :eq:`eq-choosing-agreement`.
- *Gain.* The features should predict the counts of the bags better than the class prior does. Each instance gets a
  probability from a fit to other folds, and the gain is the log-likelihood of the counts of whole bags under these
  probabilities less that under the prior, :math:`G = \sum_k \log \frac{P(c_k \mid \hat p)}{P(c_k \mid \eta)}`, in nats,
  equation :eq:`eq-choosing-gain`. The folds are parts of all bags, and, for a second gain, whole bags.

The gain also chooses between a line and trees. The thresholds and the record of the answers come from the study
``choosing`` (``study.json``).

Chapter: ``book/choosing``. The rule is ours.
"""

from ._advice import Advice, recommend
from ._decision import (
    CHECKED,
    RULE,
    Question,
    count_right,
    decide,
    judge,
    needed,
    plot_decision,
)
from ._signals import METHODS, Signals, agreement, held_out_gain

__all__ = ["Advice", "needed", "recommend"]
