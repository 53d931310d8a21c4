import abc

import equinox as eqx
from jaxtyping import Array, Float
from numpyro.distributions import Distribution


class AbstractLikelihood(eqx.Module):
    """Turns the raw output of a network at each target into a distribution over `y`.

    The distribution is NumPyro's, with batch shape `[nt]` (`[*batch nt]`) and event shape `[dy]`: `log_prob`,
    `sample`, `mean`, `variance`; marginal quantiles come from `npax.likelihoods.marginals`. Its `support` tells
    whether values may be standardised (`of_real_numbers`): estimators leave counts, shares and classes as they are.

    To write your own, subclass and give `dy`, `size` and `__call__`.
    """

    dy: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """How many raw numbers the likelihood reads per target."""

    @abc.abstractmethod
    def __call__(self, raw: Float[Array, "*batch nt size"]) -> Distribution:
        """The distribution of each target."""
