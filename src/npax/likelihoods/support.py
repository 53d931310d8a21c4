"""What values a likelihood is of."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from numpyro.distributions import Distribution, Normal, constraints

from ._base import AbstractLikelihood
from .noisy import NoisyNormal, marginals, noiseless


def of_real_numbers(likelihood: AbstractLikelihood) -> bool:
    """Whether any real number can be observed, so that values may be shifted and scaled before a model sees them and
    its predictions back again. Counts, classes, shares and amounts may not: what the support of the distribution says.
    """
    return _asked(likelihood, _is_real)


def tells_noise(likelihood: AbstractLikelihood) -> bool:
    """Whether it tells the noiseless function from a new observation; if not, `noiseless` leaves all as it is."""
    return _asked(likelihood, _has_noise)


def is_normal(likelihood: AbstractLikelihood) -> bool:
    """Whether each value by itself is normal."""
    return _asked(likelihood, _is_normal)


def possible(likelihood: AbstractLikelihood, y: Float[np.ndarray, "n dy"]) -> Bool[np.ndarray, " n"]:
    """Which rows of `y` can be observed at all: counts are no fractions and not negative. Shares of classes whose sum
    is 1 can: the likelihood is that of each class, weighted by them."""
    if of_real_numbers(likelihood):
        return np.array(np.isfinite(y).all(axis=1))
    support: Any = likelihood(jnp.zeros((1, likelihood.size), jnp.float32)).support
    return np.array(np.broadcast_to(support(jnp.asarray(y, jnp.float32)), len(y)))


def _asked(likelihood: AbstractLikelihood, question: Callable[[Distribution], bool]) -> bool:
    """What is asked of the kind of distribution that it makes, whose numbers do not matter."""
    leaves, structure = jax.tree.flatten(likelihood)
    kinds = (jax.ShapeDtypeStruct(a.shape, a.dtype) if eqx.is_array(a) else a for a in leaves)
    return _answer(question, structure, tuple(kinds))


@lru_cache(maxsize=64)
def _answer(question, structure, leaves):
    size, answers = jax.tree.unflatten(structure, leaves).size, []

    def predicted(leaves, raw):
        answers.append(question(jax.tree.unflatten(structure, leaves)(raw)))

    eqx.filter_eval_shape(predicted, leaves, jax.ShapeDtypeStruct((1, size), jnp.float32))
    return answers[0]


def _is_real(distribution):
    support = distribution.support
    while hasattr(support, "base_constraint"):  # of vectors with independent entries
        support = support.base_constraint
    return support is None or isinstance(support, type(constraints.real))


def _is_normal(distribution):
    return isinstance(marginals(distribution), Normal | NoisyNormal)


def _has_noise(distribution):
    return noiseless(distribution) is not distribution
