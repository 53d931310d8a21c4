"""Targets beyond what the observations say something about."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ..warn import warn
from .degrees import advice_of_range


class Extrapolation(UserWarning):
    """Targets lie so far outside the observations that intervals there are too narrow, or their covariates outside the
    range of the observed ones.

    That is outside the box that holds the observations by more than half of its half-width, in any coordinate in which
    they vary (with `coords="latlon"`: of its larger half-width, on a map whose distances from the middle of the
    observations are true; a box around the globe has no outside). Of the shipped model's 95 % intervals of noisy Matern
    3/2 fields, on a line and in the plane, length scales 0.3 to 2 half-widths, 95 % hold at 1.2 half-widths from the
    middle of the box, 88 % at 2 and 91 % at 21; of the smoothest field in the plane 67 % at 2.
    """


def warn_of_extrapolation(
    outside: Callable[[np.ndarray], np.ndarray], places: np.ndarray, names: Sequence[Hashable], total: int | None = None
) -> None:
    """Warns where `outside` says so of targets at `places [n d]`, which are all or some of `total`; `names`: of their
    columns, if they have any."""
    far = outside(places)
    count = int(far.sum())
    if count:
        n, about = (len(places), "") if total is None else (total, "About ")
        warn(
            f"{about}{round(count / len(places) * n):,} of {n:,} targets lie outside the observations by more than "
            "half of their half-width. Intervals are too narrow there: of the shipped model, at twice the half-width "
            "from the middle, 95 % intervals hold 88 % of new observations, of smooth fields 67 %. Predict nearer to "
            "the observations, or do not rely on the standard deviations of these targets."
            + advice_of_range(names, places, far, outside),
            Extrapolation,
        )
