import dataclasses

import numpy as np
from scipy.special import gammaln

from ..links import Log
from ._base import AbstractCounts, refuse

LOG = Log(most=300.0)
"""Rates and their squares stay finite."""


@dataclasses.dataclass(frozen=True)
class Poisson(AbstractCounts):
    r"""Events in a time, an area or among people: cases of a disease, storms, animals seen. $y \sim \mathrm{Poisson}(e
    r)$, $r = \exp(\eta)$; `exposure` is how many people, years, square kilometres, or how many cases were expected."""

    alone = 0.0
    curved = 1.0

    def refuse_impossible(self, y, exposure):
        refuse(~((y >= 0) & np.isfinite(y)), "`y` must hold counts, finite and not negative; got {:g}", y)
        wrong = ~((exposure > 0) & np.isfinite(exposure))
        refuse(
            wrong, "`exposure` must be positive and finite; got {:g}", exposure, remedy="Leave out rows without any."
        )

    def rate(self, level):
        return LOG.rate(level)

    def level(self, rate):
        if not rate > 0:
            raise ValueError(f"A rate of events must be positive, got {rate:g}.")
        return LOG.level(rate)

    def moments(self, mean, std):
        return LOG.moments(mean, std)

    def of_moments(self, mean, std):
        return LOG.of_moments(mean, std)

    def slope(self, mean, std):
        return LOG.slope(mean, std)

    def events(self, y, exposure):
        return exposure * (y.sum() / exposure.sum())

    def seen(self, y, exposure):
        return y

    def with_prior(self, y, exposure):
        return y + exposure / (2 * exposure.sum()), exposure

    def log_prob(self, y, exposure, level):
        return y * (level + np.log(exposure)) - exposure * self.rate(level) - gammaln(y + 1)

    def draw(self, rng, exposure, rate):
        expected = np.minimum(exposure * rate, 1e15)  # NumPy's largest is near 2**63
        return rng.poisson(expected).astype(float)
