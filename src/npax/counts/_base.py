import abc
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

ACROSS = np.linspace(-12, 12, 121)
"""Where a level is looked at, in standard deviations of its posterior."""
STEPS, FARTHEST = 50, 1.0
"""Of the search for the posterior of a single level, and how far each goes at most: rates are curved."""
LEAST = 1e-12
"""The least information that a count is taken to hold."""

Array = Float[np.ndarray, "*n"]


class Linearised(NamedTuple):
    """Counts as normal observations of the level: values, and their standard errors."""

    value: np.ndarray
    error: np.ndarray


class AbstractCounts(abc.ABC):
    r"""The distribution of a count $y$, given its exposure $e$ (people and years, or how many were tested) and a rate
    $r(\eta)$, an increasing function of a level $\eta$ that may be any real number: the canonical one, whose derivative
    is the variance of a count of exposure 1.

    **Shapes:** counts, exposures, levels and their standard deviations are arrays of one shape, float64.
    """

    alone: ClassVar[float]
    """The exposure of which counts cannot show that rates differ by more than chance."""
    curved: ClassVar[float]
    """Half the variance of a level, times this, is by how much the level of a mean rate lies above the mean level."""

    @abc.abstractmethod
    def refuse_impossible(self, y: Array, exposure: Array) -> None:
        """**Raises** `ValueError` for counts or exposures that cannot be."""

    @abc.abstractmethod
    def rate(self, level: Array) -> np.ndarray:
        """The rate at a level."""

    @abc.abstractmethod
    def level(self, rate: float) -> float:
        """The level of a rate. **Raises** `ValueError` for a rate that cannot be."""

    @abc.abstractmethod
    def moments(self, mean: Array, std: Array) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the rate, where the level is normal."""

    @abc.abstractmethod
    def of_moments(self, mean: Array, std: Array) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the normal level whose rate has these `moments`."""

    @abc.abstractmethod
    def slope(self, mean: Array, std: Array) -> np.ndarray:
        """The mean of the derivative of the rate, where the level is normal."""

    @abc.abstractmethod
    def events(self, y: Array, exposure: Array) -> np.ndarray:
        """How many events are expected of each exposure at the rate of all, or of their opposite where these are fewer:
        how much it says of the rate."""

    @abc.abstractmethod
    def seen(self, y: Array, exposure: Array) -> np.ndarray:
        """How many events were seen of each exposure, or of their opposite where these are fewer."""

    @abc.abstractmethod
    def with_prior(self, y: Array, exposure: Array) -> tuple[np.ndarray, np.ndarray]:
        """Counts and exposures with Jeffreys' prior of the rate of all, half an event, which is shared out by exposure:
        so the rate is finite where nothing was counted."""

    @abc.abstractmethod
    def log_prob(self, y: Array, exposure: Array, level: Array) -> np.ndarray:
        """The logarithm of the probability of a count."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, exposure: Array, rate: Array) -> np.ndarray:
        """Counts at random."""

    def linearised(self, y: Array, exposure: Array, mean: Array, std: Array) -> Linearised:
        r"""A count as a normal observation of its level, which is taken to be $\mathcal N(m, s^2)$.

        With $\lambda = e\, \mathbb E\, r'(\eta)$ it is $z = m + (y - e\, \mathbb E\, r(\eta)) / \lambda$, of variance
        $1 / \lambda$: the natural gradient step of variational inference, whose fixed point has the greatest evidence
        bound (Khan and Lin, 2017, *Conjugate-computation variational inference*); where $s = 0$ the working response of
        a generalised linear model.
        """
        information = np.maximum(exposure * self.slope(mean, std), LEAST)
        expected, _ = self.moments(mean, std)
        return Linearised(mean + (y - exposure * expected) / information, 1 / np.sqrt(information))

    def overdispersion(self, y: Array, exposure: Array, mean: Array, std: Array) -> float:
        """The variance of the noise of levels that are predicted as normal but for it, from how much counts vary beyond
        chance (Pearson's statistic)."""
        rate, slope = self.moments(mean, std)[0], self.slope(mean, std)
        chance = np.maximum(exposure * slope, LEAST)
        beyond, room = np.sum(np.square(y - exposure * rate) / chance - 1), np.sum((exposure - self.alone) * slope)
        return float(np.log1p(beyond / room)) if beyond > 0 and room > LEAST else 0.0

    def shared_overdispersion(
        self, y: Array, exposure: Array, mean: Array, std: Array, places: Sequence[np.ndarray]
    ) -> float:
        """That part of it which the counts of a place have in common, from how pairs of these go together; `places`:
        the rows of each. 0 where no place has several."""
        rate, slope = self.moments(mean, std)[0], self.slope(mean, std)
        beyond, steep = y - exposure * rate, exposure * slope
        pairs = [np.square(a[rows].sum()) - np.square(a[rows]).sum() for a in (beyond, steep) for rows in places]
        together, room = np.sum(np.reshape(pairs, (2, -1)), axis=1)
        return float(np.log1p(together / room)) if together > 0 and room > LEAST else 0.0

    def posterior(self, y: Array, exposure: Array, mean: Array, std: Array) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of levels that are normal before they are counted, and taken for normal after."""
        at, width = mean, std
        for _ in range(STEPS):
            end, width = met(mean, std, self.linearised(y, exposure, at, width))
            at = at + np.clip(end - at, -FARTHEST, FARTHEST)
        return at, width

    def log_evidence(self, y: Array, exposure: Array, mean: Array, std: Array) -> np.ndarray:
        r"""$\log \int p(y \mid e, \eta)\, \mathcal N(\eta; m, s^2)\, d\eta$, by the trapezoidal rule around the
        posterior, which is exact to many digits for what is smooth and falls off at both ends: for priors of up to some
        units (s = 3: to 0.3 %; of 5 the long tail beside a count of zero lacks a sixth)."""
        at, width = self.posterior(y, exposure, mean, std)
        levels = at[..., None] + width[..., None] * ACROSS
        prior = (
            -np.square((levels - mean[..., None]) / std[..., None]) / 2 - np.log(std * np.sqrt(2 * np.pi))[..., None]
        )
        likely = self.log_prob(y[..., None], exposure[..., None], levels)
        return logsumexp(likely + prior, axis=-1) + np.log(width * (ACROSS[1] - ACROSS[0]))


def met(mean: Array, std: Array, seen: Linearised) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a normal level once it is seen with an error."""
    share = np.square(std) / (np.square(std) + np.square(seen.error))
    return mean + share * (seen.value - mean), np.sqrt(share) * seen.error


def refuse(wrong: np.ndarray, rule: str, *of: Array, remedy: str = "") -> None:
    """**Raises** `ValueError` where any is `wrong`: with the first one's values, its row, and how many there are."""
    if wrong.any():
        row = int(np.argmax(wrong))
        more = f" and in {wrong.sum() - 1:,} more" if wrong.sum() > 1 else ""
        raise ValueError(f"{rule.format(*(a[row] for a in of))} in row {row}{more}. {remedy}".rstrip())
