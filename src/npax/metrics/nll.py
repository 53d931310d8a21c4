import numpy as np
from numpy.typing import ArrayLike

from ._check import checked


def nll(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    r"""Negative log-likelihood of Gaussian predictions, per value, in nats:
    $\frac1n \sum_i \log \sigma_i + \tfrac12 \log 2\pi + (y_i - \mu_i)^2 / 2\sigma_i^2$.

    Lower is better; it depends on the units of `y` (ten times larger units: $\log 10$ less).

    **Pitfalls:** one value far outside its predicted distribution can decide the score; read it beside `crps`.
    Of other distributions than normal ones `npax.objectives.nll` is the likelihood of a model's own.
    **Shapes:** any, all the same.
    """
    y, mean, std = checked(y=y, mean=mean, std=std, positive=("std",))
    return float(np.mean(np.log(std) + 0.5 * np.log(2 * np.pi) + 0.5 * np.square((y - mean) / std)))
