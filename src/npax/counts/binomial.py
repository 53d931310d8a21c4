import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.special import expit, gammaln, log_expit, logit

from ._base import AbstractCounts, refuse

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
ROUNDS, WIDEST = 50, 10.0
"""Of the search for the level of a rate, and the largest standard deviation that is looked for."""


@dataclasses.dataclass(frozen=True)
class Binomial(AbstractCounts):
    r"""Positives among those who were tested, or yes and no: $y \sim \mathrm{Binomial}(e, r)$, $r = 1 / (1 + \exp
    (-\eta))$; `exposure` is how many were tested, 1 where `y` is zero or one. Rates are the shares of positives."""

    alone = 1.0
    curved = 0.0

    def refuse_impossible(self, y, exposure):
        wrong = ~((exposure > 0) & np.isfinite(exposure))
        rule = "`exposure`, how many were tested, must be positive and finite; got {:g}"
        refuse(wrong, rule, exposure, remedy="Leave out rows of none.")
        rule = "`y` must hold numbers of positives, got the share {:g}"
        shares = (exposure == 1).all() & (y != np.round(y))
        refuse(shares, rule, y, remedy="Multiply shares by how many were tested, and give that as `exposure`.")
        rule = "`y` must hold numbers of positives, from 0 to `exposure`, how many were tested; got {:g} of {:g}"
        refuse(~((y >= 0) & (y <= exposure)), rule, y, exposure)

    def rate(self, level):
        return expit(level)

    def level(self, rate):
        if not 0 < rate < 1:
            raise ValueError(f"A share of positives must be above 0 and below 1, got {rate:g}.")
        return float(logit(rate))

    def moments(self, mean, std):
        expected = averaged(expit, mean, std)
        squares = averaged(lambda level: np.square(expit(level) - expected[..., None]), mean, std)
        return expected, np.sqrt(squares)

    def of_moments(self, mean, std):
        def width(mean, std):  # exact where shares are small
            return np.sqrt(np.log1p(np.square(std / (mean * (1 - mean)))))

        level, across = logit(mean), width(mean, std)
        for _ in range(ROUNDS):
            expected, spread = self.moments(level, across)
            level = level + (logit(mean) - logit(expected)) * expected * (1 - expected) / self.slope(level, across)
            across = np.minimum(across * width(mean, std) / width(expected, spread), WIDEST)
        return level, across

    def slope(self, mean, std):
        return averaged(lambda level: expit(level) * expit(-level), mean, std)

    def events(self, y, exposure):
        share = y.sum() / exposure.sum()
        return exposure * min(share, 1 - share)

    def seen(self, y, exposure):
        return np.minimum(y, exposure - y)

    def with_prior(self, y, exposure):
        share = exposure / exposure.sum()
        return y + share / 2, exposure + share

    def log_prob(self, y, exposure, level):
        ways = gammaln(exposure + 1) - gammaln(y + 1) - gammaln(exposure - y + 1)
        return ways + y * log_expit(level) + (exposure - y) * log_expit(-level)

    def draw(self, rng, exposure, rate):
        return rng.binomial(np.round(exposure).astype(int), rate).astype(float)


def averaged(function: Callable[[np.ndarray], np.ndarray], mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """The mean of a function of normal levels."""
    return function(mean[..., None] + std[..., None] * NODES) @ WEIGHTS
