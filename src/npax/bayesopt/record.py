"""How the answers of a search have borne out what was foreseen of them."""

import math
from typing import NamedTuple

import numpy as np

from .scale import Scale

TRUST = 2.0
"""Answers' worth of trust in the model's standard deviations that a search begins with."""
WORST = 3.0
"""Standard deviations that an answer counts as being away from its prediction, at most: one leap is no rule."""


class Foreseen(NamedTuple):
    """What was predicted of an answer: its mean and standard deviation on the `scale` of then, and the share of the
    function, not the noise, in its variance."""

    mean: float
    std: float
    share: float
    scale: Scale


class Record:
    r"""By what factor the standard deviations of the function are to be multiplied, after the answers so far,

    $$s^2 = \frac{\nu + \sum_i w_i^2 z_i^2}{\nu + \sum_i w_i^2},$$

    with $z_i$ the distance of an answer from its prediction, in standard deviations, and $w_i$ the share of the
    function in the predicted variance (known errors of the answer included in both): under noise an answer says little
    of the function. Each prediction was made before its answer was known.

    A search asks where the model is hopeful and uncertain. Of smooth functions it is too uncertain there: half of the
    answers lie within a third of a standard deviation of what it predicts, not two thirds.
    """

    def __init__(self):
        self.weight = self.surprise = TRUST

    @property
    def factor(self) -> float:
        return math.sqrt(self.surprise / self.weight)

    def add(self, foreseen: Foreseen, y: float, error: float = 0.0) -> None:
        """Takes note of an answer, whose standard error may be known; one that is not finite says nothing."""
        if not math.isfinite(y):
            return
        told, its_error = np.array([y]), np.array([error])
        away = abs(float(foreseen.scale(told)[0]) - foreseen.mean)
        predicted = max(foreseen.std, 1e-30)
        std = math.hypot(predicted, float(foreseen.scale.error(told, its_error)[0]))
        share, z = foreseen.share * (predicted / std) ** 2, min(away / std, WORST)
        self.weight += share**2
        self.surprise += (share * z) ** 2
