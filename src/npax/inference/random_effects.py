"""Mean and standard deviation of what is measured, from measurements of unequal errors."""

import numpy as np
from jaxtyping import Float

STEPS, DOWN = 80, 30
"""Of the search, and those of them that find the order of magnitude."""
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
    $w_i = 1 / (e_i^2 + v)$ the mean is $\mu = \sum w_i y_i / \sum w_i$ and the variance the largest $v$ of which
    $\sum w_i^2 (y_i - \mu)^2 = \sum w_i$ (random effects in the analysis of many studies; Hardy and Thompson 1996): at
    a single value without an error the likelihood has another summit, of a mean that is this value and no variance.
    Few bad measurements among good ones have no say. Without errors both are those of the $y_i$; whatever noise is not
    known counts as the field's.

    Where the errors explain all that varies, the variance is a twentieth of a good measurement's, the mean of
    $1 / w_i - v$ by weight, but for the best one. **Cost:** 80 passes over the values.
    """
    n, first = y.shape[-2], y[..., :1, :]
    y, square = y - first, np.square(error)
    range_square = np.square(np.ptp(y, axis=-2))
    high = np.log(np.maximum(range_square, NONE))  # from there on no term of the first sum is larger
    step, found = -np.log(LEAST) / DOWN, np.zeros(high.shape, bool)
    for _ in range(DOWN):  # from above, to the largest
        found |= _more(y, square, np.exp(high - step))
        high = np.where(found, high, high - step)
    low = high - step
    for _ in range(STEPS - DOWN):
        middle = (low + high) / 2
        more = _more(y, square, np.exp(middle))
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    v = np.exp(high)
    _, w = _weighted(y, square, v)
    others = np.sort(w, axis=-2)[..., : max(n - 1, 1), :]
    v = np.maximum(v, UNRESOLVED * (1 / others.mean(axis=-2) - v))
    return first[..., 0, :] + _weighted(y, square, v)[0], np.sqrt(v)


def _more(y, square, v):
    """Whether the values vary more than by the variance `v [*contexts dy]` and their errors."""
    mean, w = _weighted(y, square, v)
    return np.sum(np.square(w * (y - mean[..., None, :])), axis=-2) > w.sum(axis=-2)


def _weighted(y, square, v):
    """The weighted mean, and the weights."""
    w = 1 / (square + v[..., None, :])
    return np.sum(w * y, axis=-2) / w.sum(axis=-2), w
