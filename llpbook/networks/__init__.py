r"""Networks on bags: any network by any loss of bags, in batches of whole bags.

A network :math:`f_\theta` maps an instance to log-odds, or to one score per class. It minimizes, by Adam,

.. math::
    \min_\theta \; \frac1n \sum_k \ell_k\bigl(f_\theta(x_i), i \in B_k; p_k\bigr)
    + \frac{\lambda}{n} \sum_i \mathrm{KL}\bigl(s_i \,\Vert\, s(x_i + r_i)\bigr)
    + \tfrac{\alpha}{2} \lVert\theta\rVert^2 ,

where :math:`\ell_k` is a loss of `llpbook.bag_losses`, :math:`s_i` the prediction for :math:`x_i`, held fixed, and
:math:`r_i` the shift of a given length that changes it most: the consistency of LLP-VAT, absent by default. Bags may be
mixed with one another (MixBag). Bags that are held out say when to stop; no label of an instance is seen.

Chapter: ``book/networks``. Sources: ardehaly2017 for networks on bags, tsai2020 for the consistency, asanomi2023 for
mixed bags, zhang2022 for the forward loss. A fit needs PyTorch, the extra ``torch``; importing this room does not.
"""

from .._linear import BagLoss, BagLossClassifier, held_out_bags
from ._batches import count_of_drawn, draw_batches, mix_some, whole_bags
from ._network import (
    ALIKE,
    LOSSES,
    ONE_FIT,
    BagNetwork,
    Interval,
    StrOptions,
    blocks,
    check_device,
    check_random_state,
    compares_bags,
    in_canonical_order,
    loss_of,
    make_network,
    probabilities,
    seeded,
    train,
    warn,
)
from ._torch import (
    FIRST_SHIFT,
    bag_loss,
    consistency_loss,
    divergence,
    is_sure,
    log_probabilities,
    multilayer,
    need_torch,
    scores_of,
    unit,
    worst_shift,
)

__all__ = ["BagNetwork"]
