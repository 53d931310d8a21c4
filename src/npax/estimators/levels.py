"""Whether levels are taken off: if held-out places are better predicted so."""

from typing import Any

import numpy as np

from ..inference import Drift, come_again, levels_of
from ..likelihoods import of_real_numbers
from ..progress import Progress
from .held_out import HeldOut, gain

MOST = 500
"""Observations that are predicted in either way, about."""


def levels_help(estimator: Any, X: np.ndarray, y: np.ndarray, error: np.ndarray | None) -> bool:
    """Whether values `y [n]` or `[n dy]` have levels (`npax.inference.levels_of`) and a fifth of the places, which are
    held out, is clearly better predicted if these are taken off. Smooth fields on lattices have some, too, but what is
    left of them is rougher.

    **Cost:** sorting the columns of `X [n d]`; where places come again the drift; where there are levels two fits, and
    up to 500 predictions by each.
    """
    if not (estimator.levels and estimator.normalize and of_real_numbers(estimator.model_.likelihood)):
        return False
    places, z = estimator._columns.split(X)
    if not come_again(estimator._system, places):
        return False
    for values, known in estimator._groups(y, error):
        rest = values - Drift(estimator._system, places, z, values, known)(z)
        if levels_of(estimator._system, places, rest, known)[0]:
            break
    else:
        return False
    held_out = HeldOut(estimator, X, y, error, MOST)
    with Progress("Levels", 2 * len(held_out.turns), shown=estimator.progress) as bar:
        without, with_levels = (held_out.losses(bar, takes_levels_=taken) for taken in (False, True))
    return gain(without, with_levels) > 0
