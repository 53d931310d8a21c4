"""Mean and standard deviation of what is measured, from measurements of unequal errors."""

import numpy as np
from jaxtyping import Float

STEPS = 40
LEAST = 1e-8
"""The least variance that is told from none, as a share of that of the measurements."""
UNRESOLVED = 0.05
"""Of the noise of a good measurement, the share that the variance is taken for where the noise hides it."""


def random_effects(
    y: Float[np.ndarray, "*contexts n dy"], error: Float[np.ndarray, "*contexts n dy"]
) -> tuple[Float[np.ndarray, "*contexts dy"], Float[np.ndarray, "*contexts dy"]]:
    r"""Of values $y_i = f_i + \epsilon_i$, whose errors have the known standard deviations $e_i$, mean and standard
    deviation of the $f_i$: with the weights $w_i = 1 / (e_i^2 + v)$ and the mean $\mu = \sum w_i y_i / \sum w_i$ the
    variance $v$ of which $\sum w_i (y_i - \mu)^2 = n$ (Paule and Mandel 1982). Few bad measurements among good ones
    have no say. Without errors both are those of the $y_i$; whatever noise is not known counts as the field's.

    Where the errors explain all that varies, the variance is a twentieth of a good measurement's, $n / \sum w_i - v$.
    """
    n = y.shape[-2]
    total = np.maximum(y.var(axis=-2), np.finfo(float).tiny)
    square = np.square(error)
    low, high = np.log(LEAST * total), np.log(total)  # of no v above the second the sum is larger than n
    for _ in range(STEPS):
        middle = (low + high) / 2
        _, weighted, _ = _weighted(y, square, np.exp(middle))
        above = weighted > n
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    v = np.exp(high)
    mean, _, weight = _weighted(y, square, v)
    return mean, np.sqrt(np.maximum(v, UNRESOLVED * (n / weight - v)))


def _weighted(y, square, v):
    """The weighted mean, the sum of weighted squares around it, and that of the weights."""
    w = 1 / (square + v[..., None, :])
    weight = w.sum(axis=-2)
    mean = np.sum(w * y, axis=-2) / weight
    return mean, np.sum(w * np.square(y - mean[..., None, :]), axis=-2), weight
