"""What values a likelihood is of."""

import jax
import jax.numpy as jnp
from numpyro.distributions import constraints

from ._base import AbstractLikelihood


def of_real_numbers(likelihood: AbstractLikelihood) -> bool:
    """Whether any real number can be observed, so that values may be shifted and scaled before a model sees them and
    its predictions back again. Counts, classes, shares and amounts may not: what the support of the distribution says.
    """
    supports = []

    def predicted(raw):
        supports.append(likelihood(raw).support)
        return raw

    jax.eval_shape(predicted, jax.ShapeDtypeStruct((1, likelihood.size), jnp.float32))
    support = supports[0]
    while hasattr(support, "base_constraint"):  # of vectors with independent entries
        support = support.base_constraint
    return support is None or isinstance(support, type(constraints.real))
