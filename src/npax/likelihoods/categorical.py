"""Classes instead of numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.distributions import constraints

from ..arguments import whole_number
from ._base import AbstractLikelihood


class OneHotCategorical(dist.Distribution):
    r"""One of several classes as a one-hot vector: $p(y) = \prod_k p_k^{y_k}$, $p = \mathrm{softmax}(\text{logits})$.

    `mean` is the vector of probabilities, `variance` that of each entry, $p_k (1 - p_k)$; `entropy()`, in nats, tells
    how uncertain the class is: from 0 to the logarithm of the number of classes.
    """

    arg_constraints = {"logits": constraints.real_vector}
    support = constraints.simplex  # pyright: ignore

    def __init__(self, logits: Float[Array, "*batch classes"], *, validate_args=None):
        self.logits = logits
        shape = jnp.shape(logits)
        validate_args = False if 0 in shape else validate_args  # NumPyro's checks do not take empty arrays
        super().__init__(batch_shape=shape[:-1], event_shape=shape[-1:], validate_args=validate_args)

    @property
    def classes(self) -> dist.CategoricalLogits:
        """The distribution of the number of the class."""
        return dist.CategoricalLogits(self.logits, validate_args=False)

    @property
    def probs(self) -> Float[Array, "*batch classes"]:
        return jax.nn.softmax(self.logits, axis=-1)

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, key, sample_shape=()):
        drawn = jnp.asarray(self.classes.sample(key, sample_shape))
        return jax.nn.one_hot(drawn, self.event_shape[0], dtype=self.logits.dtype)

    def log_prob(self, value, intermediates=None):
        return jnp.sum(_times(value, jax.nn.log_softmax(self.logits, axis=-1)), axis=-1)

    def entropy(self):
        return -jnp.sum(_times(self.probs, jax.nn.log_softmax(self.logits, axis=-1)), axis=-1)


def _times(share, log_share):
    """Zero where nothing has a share, also where the logarithm is infinite."""
    return jnp.where(share == 0, 0.0, share * jnp.where(share == 0, 0.0, log_share))


class Categorical(AbstractLikelihood):
    r"""One of `dy` classes; `y` is one-hot, and the network gives a logit for each class (SIR of KR2 §4.4).

    The negative log-likelihood of a target is $-\log p$ of its class, the cross-entropy.
    """

    dy: int = eqx.field(static=True)

    def __check_init__(self):
        whole_number(2, dy=self.dy)

    @property
    def size(self):
        return self.dy

    def __call__(self, raw):
        return OneHotCategorical(raw)
