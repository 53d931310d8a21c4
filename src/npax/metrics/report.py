from numpy.typing import ArrayLike

from ._check import checked
from .crps import crps
from .errors import mae, rmse
from .intervals import coverage, interval_score
from .nll import nll


def score_report(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> dict[str, float]:
    """All scores of Gaussian predictions at once: `rmse mae nll crps coverage interval`, the last two at 95 %.

    **Shapes:** any, all the same. Each score is pooled over all values.
    """
    y, mean, std = checked(y=y, mean=mean, std=std, positive=("std",))  # what is lazy is computed once
    return {
        "rmse": rmse(y, mean),
        "mae": mae(y, mean),
        "nll": nll(y, mean, std),
        "crps": crps(y, mean, std),
        "coverage": coverage(y, mean, std),
        "interval": interval_score(y, mean, std),
    }
