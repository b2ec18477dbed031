"""Algorithm 1 of Allen-Zhu & Li (2019): one sample a step, both hidden layers at once, each with a rate of its own.

    W_{t+1} = W_t − η_w ∂Obj/∂W,     V_{t+1} = V_t − η_v ∂Obj/∂V,     Obj = ½‖y_t − out(W_t, V_t; x_t)‖²

both from the same forward pass. With fresh samples it is one epoch of

    train(HalfSquares(net), net.origin, X, y, optimiser=residual_sgd(η_w, η_v), steps=len(X), batch=1, key=key)
"""

import math
from typing import Any

import optax

from offtangent._checks import check_real
from offtangent._errors import InputError
from offtangent.networks.resnet import Hidden


def residual_sgd(rate_w: float | int, rate_v: float | int) -> optax.GradientTransformationExtraArgs:
    """Gradient descent on a `networks.resnet.Hidden` with the rates η_w and η_v; `theory.allen_zhu_li.theorem1` names
    both.

    A rate of 0 holds its layer, as in training one layer after the other.
    """
    for name, rate in (("rate_w", rate_w), ("rate_v", rate_v)):
        check_real(name, rate)
        if not 0 <= rate < math.inf:
            raise InputError(f"{name}={rate:g}: a learning rate is at least 0 and finite.")
    labels: Any = Hidden._make(("W", "V"))
    return optax.partition({"W": optax.sgd(rate_w), "V": optax.sgd(rate_v)}, labels)
