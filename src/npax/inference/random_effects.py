"""Mean and standard deviation of what is measured, from measurements of unequal errors."""

import numpy as np
from jaxtyping import Float

STEPS = 60
LEAST = 1e-30
"""The least variance that is told from none, as a share of the square of the range."""
NONE = 1e-200
"""The square of a range that is taken for none: variances of `LEAST` of it have reciprocals."""
UNRESOLVED = 0.05
"""Of the noise of a good measurement, the share that the variance is taken for where the noise hides it."""


def random_effects(
    y: Float[np.ndarray, "*contexts n dy"], error: Float[np.ndarray, "*contexts n dy"]
) -> tuple[Float[np.ndarray, "*contexts dy"], Float[np.ndarray, "*contexts dy"]]:
    r"""Of values $y_i = f_i + \epsilon_i$, whose errors have the known standard deviations $e_i$, mean and standard
    deviation of the $f_i$, as though these were independent and normal: those of greatest likelihood. With the weights
    $w_i = 1 / (e_i^2 + v)$ the mean is $\mu = \sum w_i y_i / \sum w_i$ and the variance $v$ the one of which
    $\sum w_i^2 (y_i - \mu)^2 = \sum w_i$ (random effects in the analysis of many studies; Hardy and Thompson 1996).
    Few bad measurements among good ones have no say. Without errors both are those of the $y_i$; whatever noise is not
    known counts as the field's.

    Where the errors explain all that varies, the variance is a twentieth of a good measurement's, $n / \sum w_i - v$.
    **Cost:** 60 passes over the values.
    """
    n, first = y.shape[-2], y[..., :1, :]
    y, square = y - first, np.square(error)
    range_square = np.square(np.ptp(y, axis=-2))
    high = np.log(np.maximum(range_square, NONE))  # from there on no term of the first sum is larger
    low = high + np.log(LEAST)
    for _ in range(STEPS):
        middle = (low + high) / 2
        mean, w = _weighted(y, square, np.exp(middle))
        more = np.sum(np.square(w * (y - mean[..., None, :])), axis=-2) > w.sum(axis=-2)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    v = np.exp(high)
    mean, w = _weighted(y, square, v)
    return first[..., 0, :] + mean, np.sqrt(np.maximum(v, UNRESOLVED * (n / w.sum(axis=-2) - v)))


def _weighted(y, square, v):
    """The weighted mean, and the weights."""
    w = 1 / (square + v[..., None, :])
    return np.sum(w * y, axis=-2) / w.sum(axis=-2), w
